"""A TPM 2.0 of a simulated machine, as its agent's plug-in ``bloomery_attestation`` uses one.

    tpm = SoftwareTpm()
    tpm.boot_cd(iso)                             # what GRUB measures of a boot CD
    tpm.run("identify", {}), tpm.run("quote", {"credential": ..., "secret": ..., "pcrs": [4, 8, 9]})

``wrong`` makes it lie: see LIES.  Source: TCG TPM 2.0 Library 1.59, part 1, section 24 and part 3,
12.5 TPM2_ActivateCredential and 18.4 TPM2_Quote; TCG PC Client Platform Firmware Profile 1.05.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import re
import shlex
import struct
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Json = dict[str, Any]

LIES: Final = (
    "unanswered",  # its quote has a nonce of its own
    "replayed",  # it gives its first quote again and again
    "unbound",  # its attestation key is of no TPM
    "exportable",  # its attestation key may leave the TPM
    "values",  # its PCR values are not those of its quote
    "log",  # its event log has another ramdisk than it has booted
    "cut",  # its event log ends within an event
    "signature",  # its signature is another's
)
_EK_POLICY: Final = bytes.fromhex(
    "837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa"
)  # of the default template: a session with the password of the endorsement hierarchy
_EK_ATTRIBUTES, _AK_ATTRIBUTES = 0x000300B2, 0x00050472
_FIXED: Final = 0x12
_SHA256: Final = 0x000B
_APPLICATION, _ACTION, _SEPARATOR = 0x80000003, 0x80000007, 0x04
_TAG, _IPL = 0x06, 0x0D
_LOADER: Final = hashlib.sha256(b"GRUB of the lab").digest()  # Authenticode digest of its loader


class SoftwareTpm:
    """``wrong``: one of LIES, or None.  ``loader``: the digest of the boot loader's program."""

    def __init__(self, loader: bytes = _LOADER) -> None:
        self.loader = loader
        self.wrong: str | None = None
        self.certificate: bytes | None = None  # in DER, of its endorsement key
        self._ek = rsa.generate_private_key(65537, 2048)
        self._ak = ec.generate_private_key(ec.SECP256R1())
        self._first: Json | None = None
        self.reset()

    @property
    def endorsement_key(self) -> str:
        """The public endorsement key in PEM, as an operator enrols it."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._ek.public_key().public_bytes(serialization.Encoding.PEM, form).decode()

    # ------------------------------------------------------------------------------- the boot

    def reset(self) -> None:
        """Begin anew, as at power on."""
        self.pcrs = [bytes(32) for _ in range(24)]
        self.events: list[tuple[int, int, bytes, bytes]] = []

    def measure(self, pcr: int, kind: int, digest: bytes, data: bytes) -> None:
        """Extend a PCR, and log it; ``data`` describes what was measured."""
        self.pcrs[pcr] = hashlib.sha256(self.pcrs[pcr] + digest).digest()
        self.events.append((pcr, kind, digest, data))

    def log(self) -> bytes:
        """Return the event log in the firmware's form."""
        spec = b"Spec ID Event03\0" + struct.pack("<IBBBBIHHB", 0, 0, 2, 0, 2, 1, _SHA256, 32, 0)
        log = struct.pack("<II20sI", 0, 3, bytes(20), len(spec)) + spec
        for pcr, kind, digest, data in self.events:
            log += struct.pack("<IIIH", pcr, kind, 1, _SHA256) + digest
            log += struct.pack("<I", len(data)) + data
        return log

    def boot_cd(self, iso: bytes) -> None:
        """Measure what firmware and GRUB do of a boot CD with vmlinuz, initrd and a grub.cfg.

        Raises ValueError for one without them.
        """
        import pycdlib
        from pycdlib.pycdlibexception import PyCdlibException

        disc = pycdlib.PyCdlib()

        def read(path: str) -> bytes:
            out = io.BytesIO()
            disc.get_file_from_iso_fp(out, rr_path=path)
            return out.getvalue()

        try:
            disc.open_fp(io.BytesIO(iso))
            config = read("/EFI/BOOT/grub.cfg").decode()
            kernel, ramdisk = read("/vmlinuz"), read("/initrd")
            disc.close()
        except PyCdlibException as exc:
            raise ValueError(f"it is no boot CD for UEFI: {exc}") from exc
        self.boot_grub(config, kernel, ramdisk)

    def boot_grub(self, config: str, kernel: bytes, ramdisk: bytes) -> None:
        """Measure a boot by GRUB whose configuration has one command ``linux``."""
        self.reset()
        marks = ((_ACTION, b"Calling EFI Application from Boot Option"), (_SEPARATOR, bytes(4)))
        for kind, data in marks:
            self.measure(4, kind, hashlib.sha256(data).digest(), data)
        self.measure(4, _APPLICATION, self.loader, b"\x01\x02\x03\x04")
        self._measure_file("(cd0)/EFI/BOOT/grub.cfg", config.encode())
        self.measure_command("set timeout=0")
        match = re.search(r"^\s*linux (.*)$", config, re.MULTILINE)
        words = shlex.split(match[1] if match else "")
        self.measure_command(f"menuentry agent {config.partition('menuentry')[2][9:-1]}")
        self.measure_command("setparams agent")
        self.measure_command(" ".join(["linux", *words]))
        self._measure_file(words[0], kernel)
        line = " ".join(f'"{word}"' if " " in word else word for word in words)
        self._measure_text("kernel_cmdline: ", line)
        self.measure_command("initrd /initrd")
        self._measure_file("/initrd", ramdisk)
        for name, data in (("LOADED_IMAGE::LoadOptions", f"BOOT_IMAGE={line}".encode("utf-16-le")),
                           ("Linux initrd", ramdisk)):  # fmt: skip
            text = name.encode() + b"\0"
            head = struct.pack("<II", 0x8F3B22ED, len(text))
            self.measure(9, _TAG, hashlib.sha256(data).digest(), head + text)

    def measure_command(self, text: str) -> None:
        self._measure_text("grub_cmd: ", text)

    def _measure_text(self, prefix: str, text: str) -> None:
        data = f"{prefix}{text}\0".encode()
        self.measure(8, _IPL, hashlib.sha256(text.encode()).digest(), data)

    def _measure_file(self, path: str, content: bytes) -> None:
        self.measure(9, _IPL, hashlib.sha256(content).digest(), path.encode() + b"\0")

    # --------------------------------------------------------------------------- the commands

    def run(self, name: str, params: Json) -> Json:
        """Return the answer of a command of the plug-in.  Raises ValueError as the TPM refuses."""
        if name == "identify":
            keys = {"endorsement_key": self._ek_public(), "attestation_key": self._ak_public()}
            answer = {key: _text(_sized(area)) for key, area in keys.items()}
            own = self.certificate
            return answer if own is None else answer | {"endorsement_certificate": _text(own)}
        answer = self._quote(params)
        if self.wrong == "replayed":
            return self._first or answer
        self._first = self._first or answer
        return answer

    def _ek_public(self) -> bytes:
        numbers = self._ek.public_key().public_numbers()
        head = struct.pack(">HHI", 0x0001, _SHA256, _EK_ATTRIBUTES) + _sized(_EK_POLICY)
        scheme = struct.pack(">HHHHHI", 0x0006, 128, 0x0043, 0x0010, 2048, 0)
        return head + scheme + _sized(numbers.n.to_bytes(256, "big"))

    def _ak_public(self) -> bytes:
        numbers = self._ak.public_key().public_numbers()
        attributes = _AK_ATTRIBUTES & ~_FIXED if self.wrong == "exportable" else _AK_ATTRIBUTES
        head = struct.pack(">HHIH", 0x0023, _SHA256, attributes, 0)
        scheme = struct.pack(">HHHHH", 0x0010, 0x0018, _SHA256, 0x0003, 0x0010)
        point = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        return head + scheme + b"".join(map(_sized, point))

    def _quote(self, params: Json) -> Json:
        sent = [base64.b64decode(params[key]) for key in ("credential", "secret")]
        secret = self._activate(*sent)
        selected = sorted(params["pcrs"])
        bits = sum(1 << pcr for pcr in selected).to_bytes(3, "little")
        values = {pcr: self.pcrs[pcr] for pcr in selected}
        digest = hashlib.sha256(b"".join(values.values())).digest()
        nonce = bytes(32) if self.wrong == "unanswered" else secret
        document = (
            struct.pack(">IH", 0xFF544347, 0x8018) + _sized(self._ak_name()) + _sized(nonce)
            + bytes(25) + struct.pack(">IHB", 1, _SHA256, 3) + bits + _sized(digest)
        )  # fmt: skip
        key = ec.generate_private_key(ec.SECP256R1()) if self.wrong == "signature" else self._ak
        r, s = utils.decode_dss_signature(key.sign(document, ec.ECDSA(hashes.SHA256())))
        signature = struct.pack(">HH", 0x0018, _SHA256)
        signature += b"".join(_sized(number.to_bytes(32, "big")) for number in (r, s))
        log = self.log()
        if self.wrong == "values":
            values[selected[0]] = bytes(32)
        elif self.wrong == "log":
            log = log.replace(self.events[-1][2], bytes(32))
        elif self.wrong == "cut":
            log = log[:-3]
        return {
            "quote": _text(document), "signature": _text(signature), "event_log": _text(log),
            "pcrs": {str(pcr): value.hex() for pcr, value in values.items()},
        }  # fmt: skip

    def _ak_name(self) -> bytes:
        return struct.pack(">H", _SHA256) + hashlib.sha256(self._ak_public()).digest()

    def _activate(self, credential: bytes, encrypted: bytes) -> bytes:
        """Return the secret of a credential (TPM2_ActivateCredential).  Raises ValueError."""
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), b"IDENTITY\0")
        seed = self._ek.decrypt(encrypted[2:], oaep)
        name = b"\0" * 34 if self.wrong == "unbound" else self._ak_name()
        integrity, identity = credential[4:36], credential[36:]
        key = _derive(seed, b"INTEGRITY", b"", 256)
        if not hmac.compare_digest(hmac.digest(key, identity + name, "sha256"), integrity):
            raise ValueError("TPM2_ActivateCredential: TPM_RC_INTEGRITY")
        key = _derive(seed, b"STORAGE", name, 128)
        block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  CFB is made of it
        last, text = bytes(16), b""
        for at in range(0, len(identity), 16):
            mask = block.update(last)
            last = identity[at : at + 16]
            text += bytes(a ^ b for a, b in zip(last, mask, strict=False))
        return text[2:]


def _derive(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    text = b"\0\0\0\1" + label + b"\0" + context + struct.pack(">I", bits)
    return hmac.digest(key, text, "sha256")[: bits // 8]


def _sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
