"""Keys and quotes of the machine's TPM, by tpm2-tools.

Both keys are primary keys of the endorsement hierarchy: the same at each boot, and stored nowhere.
"""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

DEVICE: Final = Path("/dev/tpmrm0")
SECURITY: Final = Path("/sys/kernel/security")
EVENT_LOG: Final = SECURITY / "tpm0/binary_bios_measurements"
_CREDENTIAL_FILE: Final = struct.pack(">II", 0xBADCC0DE, 1)  # begins a file of a credential
_ATTRIBUTES: Final = (  # noda: a loss of power counts as no wrong password of this key
    "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign|noda"
)
_CERTIFICATE: Final = "0x1c00002"  # of the RSA key (TCG EK Credential Profile 2.5, 2.2.1.4)
_PCR_BYTES: Final = 32
_TIMEOUT_S: Final = 300  # a slow TPM takes a minute for an RSA key


class TpmError(Exception):
    """What the TPM, or a machine without one, refuses."""


class Tpm:
    """``tcti``: how tpm2-tools reach the TPM; None: the machine's own."""

    def __init__(self, tcti: str | None = None, event_log: Path = EVENT_LOG) -> None:
        if tcti is None and not DEVICE.exists():
            raise TpmError(
                f"this machine has no TPM 2.0: there is no {DEVICE}; switch it on in the firmware, "
                "and see that the ramdisk has the kernel's module for it"
            )
        self._tcti = tcti or f"device:{DEVICE}"
        self._forgets = tcti is None  # the kernel does, at the end of each tool
        self._event_log = event_log

    def identify(self) -> dict[str, str]:
        """Return the public areas of both keys in base64, and the certificate that the TPM has.

        Raises TpmError.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self._make_keys(folder)
            answer = {
                "endorsement_key": _encoded((folder / "ek.pub").read_bytes()),
                "attestation_key": _encoded((folder / "ak.pub").read_bytes()),
            }
            try:
                self._run(folder, "nvread", "-C", "o", _CERTIFICATE, "-o", "ek.crt")
            except TpmError:  # many TPMs have none
                return answer
            certificate = _encoded((folder / "ek.crt").read_bytes())
            return {**answer, "endorsement_certificate": certificate}

    def quote(self, credential: str, secret: str, pcrs: Iterable[int]) -> dict[str, Any]:
        """Answer a challenge with a quote of these PCRs, their values and the event log.

        Raises TpmError.
        """
        numbers = sorted(int(pcr) for pcr in pcrs)
        selection = "sha256:" + ",".join(map(str, numbers))
        sent = base64.b64decode(credential) + base64.b64decode(secret)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self._make_keys(folder)
            (folder / "credential").write_bytes(_CREDENTIAL_FILE + sent)
            self._run(folder, "startauthsession", "--policy-session", "-S", "session")
            try:
                self._run(folder, "policysecret", "-S", "session", "-c", "e")
                self._run(
                    folder, "activatecredential", "-c", "ak.ctx", "-C", "ek.ctx",
                    "-i", "credential", "-o", "answer", "-P", "session:session",
                )  # fmt: skip
            finally:
                self._run(folder, "flushcontext", "session")
            nonce = (folder / "answer").read_bytes().hex()
            self._run(
                folder, "quote", "-c", "ak.ctx", "-l", selection, "-q", nonce, "-g", "sha256",
                "-m", "quote", "-s", "signature",
            )  # fmt: skip
            self._run(folder, "pcrread", selection, "-o", "values")
            values = (folder / "values").read_bytes()
            starts = range(0, len(values), _PCR_BYTES)
            return {
                "quote": _encoded((folder / "quote").read_bytes()),
                "signature": _encoded((folder / "signature").read_bytes()),
                "pcrs": {
                    str(pcr): values[start : start + _PCR_BYTES].hex()
                    for pcr, start in zip(numbers, starts)  # noqa: B905  Python 3.9 has no strict
                },
                "event_log": _encoded(self._read_event_log()),
            }

    def _make_keys(self, folder: Path) -> None:
        self._run(folder, "createek", "-G", "rsa", "-c", "ek.ctx", "-u", "ek.pub")
        self._run(
            folder, "createprimary", "-C", "e", "-G", "ecc256:ecdsa-sha256:null", "-g", "sha256",
            "-a", _ATTRIBUTES, "-c", "ak.ctx",
        )  # fmt: skip
        self._run(folder, "readpublic", "-c", "ak.ctx", "-o", "ak.pub")

    def _run(self, folder: Path, tool: str, *arguments: str) -> None:
        """Run one of tpm2-tools in a folder for its files."""
        try:
            ran = subprocess.run(
                [f"tpm2_{tool}", *arguments], check=False, cwd=folder, timeout=_TIMEOUT_S,
                env={**os.environ, "TPM2TOOLS_TCTI": self._tcti}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
        except FileNotFoundError:
            raise TpmError(f"the ramdisk has no tpm2_{tool}: install tpm2-tools in it") from None
        except subprocess.TimeoutExpired:
            raise TpmError(f"tpm2_{tool} has not ended within {_TIMEOUT_S} s") from None
        if ran.returncode:
            lines = ran.stdout.strip().splitlines() or ["it says nothing"]
            line = next((each for each in lines if "ERROR" in each), lines[0])
            raise TpmError(f"tpm2_{tool} failed: {line}")
        if not self._forgets and tool != "flushcontext":
            self._run(folder, "flushcontext", "-t")  # a TPM has room for three objects

    def _read_event_log(self) -> bytes:
        if self._event_log == EVENT_LOG and not EVENT_LOG.exists():
            command = ["mount", "-t", "securityfs", "securityfs", str(SECURITY)]
            subprocess.run(command, check=False)
        try:
            return self._event_log.read_bytes()
        except OSError as exc:
            raise TpmError(
                f"there is no log of the machine's boot at {self._event_log}: {exc.strerror}; "
                "machines have one in UEFI mode"
            ) from None


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
