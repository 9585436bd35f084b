"""Quotes of a simulated TPM: each lie, other boot and odd document is refused by name."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bloomery import errors
from bloomery.drivers.attestation import event_log, policy, tpm
from bloomery.lab.tpm import SoftwareTpm

LINE = "/vmlinuz console=ttyS0 ipa-agent-token=abc"
CONFIG = f"set timeout=0\nmenuentry 'agent' {{\n  linux {LINE}\n  initrd /initrd\n}}\n"
OPTIONS = f"BOOT_IMAGE={LINE}".encode("utf-16-le")
KERNEL, RAMDISK = b"a kernel", b"a ramdisk"


def sha256(data: bytes | str) -> bytes:
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).digest()


@pytest.fixture(scope="module")
def machine() -> SoftwareTpm:
    return SoftwareTpm()


@pytest.fixture(autouse=True)
def booted(machine: SoftwareTpm) -> None:
    machine.wrong = None
    machine.boot_grub(CONFIG, KERNEL, RAMDISK)


def expected(machine: SoftwareTpm, **changes: Any) -> policy.Expected:
    texts = dict.fromkeys(map(sha256, (CONFIG, f"linux {LINE}", OPTIONS)), "")
    facts = {
        "kernel": frozenset({sha256(KERNEL)}), "ramdisk": sha256(RAMDISK),
        "command_line": sha256(LINE), "others": texts | {machine.loader: "GRUB"},
    }  # fmt: skip
    return policy.Expected(**facts | changes)


def check(machine: SoftwareTpm, **changes: Any) -> None:
    quoted = {pcr: machine.pcrs[pcr] for pcr in policy.PCRS}
    policy.check(event_log.read(machine.log()), quoted, expected(machine, **changes))


def public(machine: SoftwareTpm, kind: str) -> tpm.Public:
    return tpm.read_public(base64.b64decode(machine.run("identify", {})[f"{kind}_key"]), kind)


def quote(machine: SoftwareTpm) -> tuple[tpm.Challenge, dict[str, Any]]:
    challenge = tpm.challenge(public(machine, "endorsement"), public(machine, "attestation"))
    sent = {"credential": challenge.credential, "secret": challenge.encrypted_secret}
    params = {name: base64.b64encode(data).decode() for name, data in sent.items()}
    return challenge, machine.run("quote", params | {"pcrs": [9, 4, 8]})


def read(machine: SoftwareTpm, answer: dict[str, Any]) -> tpm.Quote:
    document, signature = (base64.b64decode(answer[name]) for name in ("quote", "signature"))
    return tpm.read_quote(public(machine, "attestation"), document, signature)


def test_a_quote_has_the_secret_of_the_challenge_and_the_values_of_the_boot(machine):
    challenge, answer = quote(machine)
    quoted = read(machine, answer)
    assert quoted.nonce == challenge.secret
    assert quoted.pcrs == (4, 8, 9)
    assert quoted.pcr_digest == sha256(b"".join(machine.pcrs[pcr] for pcr in (4, 8, 9)))
    check(machine)


def test_a_challenge_is_never_the_same(machine):
    assert quote(machine)[0].secret != quote(machine)[0].secret


def test_a_challenge_for_another_attestation_key_is_not_answered(machine):
    machine.wrong = "unbound"
    with pytest.raises(ValueError, match="TPM_RC_INTEGRITY"):
        quote(machine)


def test_a_signature_of_another_key_is_refused(machine):
    machine.wrong = "signature"
    with pytest.raises(errors.StepFailure, match="is not that of its attestation key"):
        read(machine, quote(machine)[1])


@pytest.mark.parametrize("at", [0, 5, 60, -1])
def test_a_quote_with_a_changed_byte_is_refused(machine, at):
    answer = quote(machine)[1]
    document = bytearray(base64.b64decode(answer["quote"]))
    document[at] ^= 1
    with pytest.raises(errors.StepFailure, match="is not that of its attestation key"):
        read(machine, answer | {"quote": base64.b64encode(document).decode()})


@pytest.mark.parametrize(
    ("attributes", "is_fit"),
    [
        pytest.param(0x00050072, True, id="restricted, signs, fixed"),
        pytest.param(0x00040072, False, id="signs what anyone gives it"),
        pytest.param(0x00050070, False, id="may leave its TPM"),
        pytest.param(0x00050052, False, id="was imported"),
        pytest.param(0x00070072, False, id="decrypts, too"),
        pytest.param(0x00010072, False, id="does not sign"),
    ],
)
def test_an_attestation_key_signs_what_its_tpm_made_alone(machine, attributes, is_fit):
    area = base64.b64decode(machine.run("identify", {})["attestation_key"])
    changed = area[:6] + struct.pack(">I", attributes) + area[10:]
    key = tpm.read_public(changed, "attestation key")
    if is_fit:
        tpm.check_attestation_key(key)
    else:
        with pytest.raises(errors.StepFailure, match=f"attributes {attributes:#010x}"):
            tpm.check_attestation_key(key)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(lambda area: area[:40], "it ends too early", id="cut"),
        pytest.param(lambda area: area + b"\0", "it has more than it may", id="longer"),
        pytest.param(lambda area: b"", "it ends too early", id="empty"),
        pytest.param(
            lambda area: area[:2] + b"\0\x08" + area[4:], "neither RSA nor ECC", id="HMAC"
        ),
        pytest.param(lambda area: area[:-1] + bytes([area[-1] ^ 1]), "no key", id="off the curve"),
    ],
)
def test_a_key_that_cannot_be_read_is_named(
    machine: SoftwareTpm, change: Callable[[bytes], bytes], why: str
) -> None:
    area = base64.b64decode(machine.run("identify", {})["attestation_key"])
    with pytest.raises(errors.StepFailure, match=f"the agent's attestation key cannot .*{why}"):
        tpm.read_public(change(area), "attestation key")


def test_an_endorsement_key_of_ecc_takes_a_challenge_too(machine):
    """That the TPM reads it, too, swtpm shows in ``test_attestation_swtpm``."""
    point = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    scheme = struct.pack(">HHHHHH", 6, 128, 0x43, 0x10, 3, 0x10)
    raw = struct.pack(">HHIH", 0x23, 0xB, 0x000300B2, 0) + scheme
    raw += b"".join(b"\0\x20" + number.to_bytes(32, "big") for number in (point.x, point.y))
    ek = tpm.read_public(struct.pack(">H", len(raw)) + raw, "endorsement key")
    made = tpm.challenge(ek, public(machine, "attestation"))
    assert len(made.encrypted_secret) == 2 + 34 + 34
    with pytest.raises(errors.StepFailure, match="no storage key"):
        tpm.challenge(public(machine, "attestation"), public(machine, "attestation"))


# ----------------------------------------------------------------------- what was enrolled


def test_a_key_is_enrolled_as_pem_or_by_its_digest(machine):
    pem = machine.endorsement_key
    key = serialization.load_pem_public_key(pem.encode())
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    digest = hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()
    fingerprint = tpm.fingerprint(public(machine, "endorsement").key)
    assert fingerprint == f"sha256:{digest}"
    assert tpm.enrolled_fingerprint(pem) == fingerprint
    assert tpm.enrolled_fingerprint(fingerprint.upper().replace("SHA", "sha")) == fingerprint


@pytest.mark.parametrize(
    "text", ["sha256:abc", "ab" * 32, "-----BEGIN PUBLIC KEY-----\nnone\n", 7, ["sha256:"]]
)
def test_what_is_no_key_is_refused_with_what_is_taken(text):
    with pytest.raises(errors.InvalidParameterValue, match="takes the endorsement key"):
        tpm.enrolled_fingerprint(text)


# ------------------------------------------------------------------------- what was booted


@pytest.mark.parametrize(
    ("boot", "why"),
    [
        pytest.param({"kernel": b"another"}, "PCR 9 has EV_IPL '/vmlinuz' with", id="kernel"),
        pytest.param({"ramdisk": b"another"}, "PCR 9 has EV_IPL '/initrd' with", id="ramdisk"),
        pytest.param(
            {"config": CONFIG.replace("ttyS0", "ttyS0 init=/bin/sh")},
            r"PCR 9 has EV_IPL '\(cd0\)/EFI/BOOT/grub.cfg' with", id="script",
        ),
    ],
)  # fmt: skip
def test_another_boot_is_refused_with_what_was_measured(machine, boot, why):
    machine.boot_grub(
        boot.get("config", CONFIG), boot.get("kernel", KERNEL), boot.get("ramdisk", RAMDISK)
    )
    with pytest.raises(errors.StepFailure, match=why) as caught:
        check(machine)
    assert "add its digest there" in str(caught.value)


def test_another_boot_loader_is_refused(machine):
    with pytest.raises(errors.StepFailure, match=r"PCR 4 has EV_EFI_BOOT_SERVICES_APPLICATION"):
        check(machine, others=dict.fromkeys(map(sha256, (CONFIG, f"linux {LINE}", OPTIONS)), ""))


def test_a_boot_loader_of_the_sites_list_is_taken(machine, tmp_path: Path):
    from bloomery.drivers.attestation import boot_files

    listed = tmp_path / "digests"
    listed.write_text(f"# GRUB\n{machine.loader.hex()}  grubx64.efi\n\n{'0A' * 32}\n")
    digests = boot_files.read_list(str(listed))
    assert digests == {machine.loader: "grubx64.efi", b"\x0a" * 32: f"line 4 of {listed}"}
    assert boot_files.read_list(None) == {}
    listed.write_text("# GRUB\nnone  grubx64.efi\n")
    with pytest.raises(errors.StepFailure, match="line 2: a line is a SHA-256"):
        boot_files.read_list(str(listed))
    with pytest.raises(errors.StepFailure, match=r"cannot read .*none"):
        boot_files.read_list(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kernel": frozenset({b"k" * 32})}, "kernel"),
        ({"ramdisk": b"r" * 32}, "ramdisk"),
        ({"command_line": b"c" * 32}, "kernel's command line"),
    ],
)
def test_what_nothing_has_measured_is_not_proved(machine, changes, what):
    """All that was measured is known, and that does not show what runs."""
    known = {event.digest: "" for event in event_log.read(machine.log())}
    with pytest.raises(errors.StepFailure, match=f"nothing has measured the node's {what}: "):
        check(machine, **changes, others=known)


def test_a_boot_without_a_known_command_line_needs_none(machine):
    known = {event.digest: "" for event in event_log.read(machine.log())}
    check(machine, command_line=None, others=known)


ACTION, SEPARATOR, IPL = event_log.EFI_ACTION, event_log.SEPARATOR, event_log.IPL
CODE = b"MZ" + bytes(400)


@pytest.mark.parametrize(
    ("pcr", "kind", "data", "measured", "is_harmless"),
    [
        pytest.param(4, ACTION, b"Returning from EFI Application", None, True, id="action"),
        pytest.param(4, ACTION, CODE, None, False, id="a program as an action"),
        pytest.param(4, ACTION, b"Returning", CODE, False, id="the text of another digest"),
        pytest.param(9, ACTION, b"short file", None, False, id="a short file as an action"),
        pytest.param(8, ACTION, b"write_dword 0 0", None, False, id="a command as an action"),
        pytest.param(4, SEPARATOR, b"\xff" * 4, None, True, id="separator"),
        pytest.param(4, SEPARATOR, b"\0\0\0\1", None, False, id="the separator of an error"),
        pytest.param(9, SEPARATOR, CODE, None, False, id="a program as a separator"),
        pytest.param(8, IPL, b"grub_cmd: set root=cd0\0", b"set root=cd0", True, id="set"),
        pytest.param(8, IPL, b"grub_cmd: initrd /initrd\0", b"initrd /initrd", True, id="initrd"),
        pytest.param(8, IPL, b"grub_cmd: [ a = b ]\0", b"[ a = b ]", True, id="a condition"),
        pytest.param(
            8,
            IPL,
            b"grub_cmd: menuentry a {\n  boot\n}\0",
            b"menuentry a {\n  boot\n}",
            True,
            id="an entry of several lines",
        ),
        pytest.param(8, IPL, b"grub_cmd: linux /x\0", b"linux /x", False, id="another kernel"),
        pytest.param(8, IPL, b"grub_cmd: write_dword 0\0", b"write_dword 0", False, id="memory"),
        pytest.param(8, IPL, b"grub_cmd: set a=b\0", b"linux /x", False, id="a false command"),
        pytest.param(8, IPL, b"kernel_cmdline: set a\0", b"set a", False, id="a kernel's line"),
        pytest.param(9, IPL, b"grub_cmd: set a=b\0", b"set a=b", False, id="a file as a command"),
        pytest.param(4, 0x80000004, b"driver", CODE, False, id="a driver"),
        pytest.param(7, IPL, b"anything", CODE, True, id="PCRs of the firmware are not looked at"),
    ],
)
def test_claims_of_the_log_are_believed_where_they_do_no_harm(
    machine: SoftwareTpm, pcr: int, kind: int, data: bytes, measured: bytes | None,
    is_harmless: bool,
) -> None:  # fmt: skip
    machine.measure(pcr, kind, sha256(data if measured is None else measured), data)
    if is_harmless:
        check(machine)
    else:
        with pytest.raises(errors.StepFailure, match=f"PCR {pcr} has .* which is of none of"):
            check(machine)


@pytest.mark.parametrize("pcr", policy.PCRS)
def test_a_log_that_leaves_something_out_is_refused(machine, pcr):
    machine.pcrs[pcr] = sha256(machine.pcrs[pcr])
    with pytest.raises(errors.StepFailure, match=f"does not explain PCR {pcr}: its events give"):
        check(machine)


def test_an_event_that_is_called_none_is_left_out(machine):
    machine.measure(9, event_log.NO_ACTION, sha256(b"hidden"), b"")
    with pytest.raises(errors.StepFailure, match="does not explain PCR 9"):
        check(machine)


@pytest.mark.parametrize("size", [0, 10, 32, 60, 80, 150, -3])
def test_a_log_that_is_cut_off_is_refused(machine, size):
    log = machine.log()[:size]
    with pytest.raises(errors.StepFailure, match=r"the agent's event log cannot be read"):
        event_log.read(log)


def test_a_log_of_tpm_1_2_is_refused():
    with pytest.raises(errors.StepFailure, match=r"no log of a TPM 2.0"):
        event_log.read(struct.pack("<II20sI", 0, 3, bytes(20), 40) + bytes(40))
