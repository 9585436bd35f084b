"""What a machine's TPM says of its boot, and whether that is so.

``tpm`` reads keys and quotes, and makes the challenge; ``event_log`` reads what the firmware and
the boot loader measured; ``boot_files`` knows the digests of what was meant to boot.  None of them
asks a machine: the agent's step does (``drivers/agent/attestation``).
"""
