"""RMCP+ as bytes: the login to a BMC, and the packets of its session.  No I/O, no clock.

    login = Login(SUITES[17], info, console_id)
    session = login.finish(send(login.rakp3(send(login.rakp1(send(login.open_session()))))))
    session.unseal(send(session.seal(request(0x00, 0x01, number=1))))

Source: IPMI 2.0 revision 1.1, sections 13.6 (packets), 13.17 to 13.24 (login), 13.28 (algorithms).
"""

from __future__ import annotations

import hmac
import os
import struct
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bloomery.drivers.ipmi.info import Info

LEVELS: Final = {"CALLBACK": 1, "USER": 2, "OPERATOR": 3, "ADMINISTRATOR": 4}
_HEADER: Final = struct.Struct("<4sBBIIH")  # RMCP, format, payload type, session, sequence, length
_RMCP: Final = bytes.fromhex("0600ff07")
_FORMAT: Final = 0x06  # RMCP+
_IPMI: Final = 0xC0  # payload type: an IPMI message, encrypted and authenticated
_OPEN, _OPENED, _RAKP1, _RAKP2, _RAKP3, _RAKP4 = range(0x10, 0x16)
_ANSWERS: Final = (_OPENED, _RAKP2, _RAKP4)
_AES: Final = 0x01
_BY_NAME: Final = 0x10  # the user is looked up by name alone, and not by name and role
_NEXT_HEADER: Final = 0x07
_BLOCK: Final = 16
_NO_SUITE: Final = 0x11
_ABOUT_SUITE: Final = (0x04, 0x05, 0x06, 0x07, 0x10, _NO_SUITE)
_BMC_ADDRESS, _CONSOLE_ADDRESS = 0x20, 0x81


class Suite(NamedTuple):
    """A cipher suite with AES-CBC-128.  ``mac_bytes``: of a truncated HMAC.

    Source: IPMI 2.0, table 22-20.
    """

    authentication: int
    integrity: int
    digest: str
    mac_bytes: int


SUITES: Final = {3: Suite(1, 1, "sha1", 12), 17: Suite(3, 4, "sha256", 16)}


class LoginFailed(Exception):
    """The BMC refused the login, or does not know its keys.  ``status``: by table 13-15."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__("wrong key" if status is None else f"RMCP+ status 0x{status:02x}")
        self.is_about_suite = status in _ABOUT_SUITE


def console_id(packet: bytes) -> int | None:
    """Return the console's session ID of a BMC's packet, or None for another packet."""
    if len(packet) < _HEADER.size + 8 or packet[:5] != _RMCP + bytes([_FORMAT]):
        return None
    at = _HEADER.size + 4 if packet[5] in _ANSWERS else 6
    return int.from_bytes(packet[at : at + 4], "little")


class Login:
    """One login.  Each method takes the answer to the message before it.

    The methods return None for a packet that is no such answer, and raise LoginFailed.
    """

    __slots__ = ("_bmc_id", "_console_id", "_info", "_ours", "_role", "_sik", "_suite", "_theirs")

    def __init__(
        self, suite: Suite, info: Info, console_id: int, ours: bytes | None = None
    ) -> None:
        """``ours``: the console's random number of 16 bytes."""
        name = (info.username or "").encode()
        self._suite, self._info, self._console_id = suite, info, struct.pack("<I", console_id)
        self._role = bytes([LEVELS[info.priv_level] | _BY_NAME, len(name)]) + name
        self._ours = os.urandom(16) if ours is None else ours
        self._bmc_id = self._theirs = self._sik = b""

    def open_session(self) -> bytes:
        return _pack(_OPEN, bytes(4) + self._console_id + self._algorithms)

    def rakp1(self, packet: bytes) -> bytes | None:
        body = _answer(packet, _OPENED, 36)
        if body is None:
            return None
        if any(body[at] & 0x3F != self._algorithms[at - 12] for at in (16, 24, 32)):
            raise LoginFailed(_NO_SUITE)
        self._bmc_id = body[8:12]
        role, name = self._role[:1], self._role[1:]
        return _pack(_RAKP1, bytes(4) + self._bmc_id + self._ours + role + bytes(2) + name)

    def rakp3(self, packet: bytes) -> bytes | None:
        digest_bytes = 20 if self._suite.digest == "sha1" else 32
        body = _answer(packet, _RAKP2, 40 + digest_bytes)
        if body is None:
            return None
        self._theirs = body[8:40]  # random number and GUID
        theirs, ids = body[8:24], self._console_id + self._bmc_id
        expected = self._mac(self._password, ids, self._ours, self._theirs, self._role)
        if not hmac.compare_digest(expected, body[40 : 40 + digest_bytes]):
            raise LoginFailed
        self._sik = self._mac(self._info.kg_key or self._password, self._ours, theirs, self._role)
        proof = self._mac(self._password, theirs, self._console_id, self._role)
        return _pack(_RAKP3, bytes(4) + self._bmc_id + proof)

    def finish(self, packet: bytes) -> Session | None:
        mac_bytes = self._suite.mac_bytes
        body = _answer(packet, _RAKP4, 8 + mac_bytes)
        if body is None:
            return None
        expected = self._mac(self._sik, self._ours, self._bmc_id, self._theirs[16:])
        if not hmac.compare_digest(expected[:mac_bytes], body[8 : 8 + mac_bytes]):
            raise LoginFailed
        first, second = (self._mac(self._sik, bytes([number]) * 20) for number in (1, 2))
        return Session(self._suite, self._bmc_id, mac_key=first, aes_key=second[:_BLOCK])

    @property
    def _algorithms(self) -> bytes:
        numbers = self._suite.authentication, self._suite.integrity, _AES
        return b"".join(bytes([at, 0, 0, 8, no, 0, 0, 0]) for at, no in enumerate(numbers))

    @property
    def _password(self) -> bytes:
        return self._info.password.encode()

    def _mac(self, key: bytes, *parts: bytes) -> bytes:
        return hmac.digest(key, b"".join(parts), self._suite.digest)


class Session:
    """Seals and unseals the messages of a session.  ``bmc_id``: the BMC's ID of it, 4 bytes."""

    __slots__ = ("_aes", "_last", "_mac_key", "_sent", "_suite", "bmc_id")

    def __init__(self, suite: Suite, bmc_id: bytes, *, mac_key: bytes, aes_key: bytes) -> None:
        self.bmc_id = bmc_id
        self._suite, self._mac_key, self._aes = suite, mac_key, algorithms.AES(aes_key)
        self._sent, self._last = 0, -1  # sequence numbers

    def seal(self, message: bytes) -> bytes:
        """Return the packet of an IPMI message, with the next sequence number."""
        self._sent += 1
        pad = bytes(range(1, -(len(message) + 1) % _BLOCK + 1))
        vector = os.urandom(_BLOCK)
        cipher = Cipher(self._aes, modes.CBC(vector)).encryptor()
        payload = vector + cipher.update(message + pad + bytes([len(pad)])) + cipher.finalize()
        packet = _pack(_IPMI, payload, int.from_bytes(self.bmc_id, "little"), self._sent)
        # Padding makes the signed part, from the format on, a multiple of 4.
        filling = -(len(packet) - 4 + 2) % 4
        packet += b"\xff" * filling + bytes([filling, _NEXT_HEADER])
        return packet + self._sign(packet)

    def unseal(self, packet: bytes) -> bytes | None:
        """Return the IPMI message of the BMC's packet.

        Return None for a packet that is forged, garbled, sent again, or older than the last one.
        """
        mac_bytes = self._suite.mac_bytes
        if len(packet) < _HEADER.size + 2 * _BLOCK + 2 + mac_bytes or packet[5] != _IPMI:
            return None
        signed, mac = packet[:-mac_bytes], packet[-mac_bytes:]
        if not hmac.compare_digest(self._sign(signed), mac):
            return None
        _, _, _, _, number, size = _HEADER.unpack_from(packet)
        payload = signed[_HEADER.size : _HEADER.size + size]
        if number <= self._last or size % _BLOCK or not 2 * _BLOCK <= size == len(payload):
            return None
        self._last = number
        cipher = Cipher(self._aes, modes.CBC(payload[:_BLOCK])).decryptor()
        padded = cipher.update(payload[_BLOCK:]) + cipher.finalize()
        return padded[: max(len(padded) - 1 - padded[-1], 0)]

    def _sign(self, packet: bytes) -> bytes:
        return hmac.digest(self._mac_key, packet[4:], self._suite.digest)[: self._suite.mac_bytes]


def request(function: int, command: int, data: bytes = b"", *, number: int) -> bytes:
    """Return an IPMI message.  ``number``: 0 to 63, repeated by its answer.

    Source: IPMI 2.0, section 13.8.
    """
    head = bytes([_BMC_ADDRESS, function << 2])
    body = bytes([_CONSOLE_ADDRESS, number << 2, command]) + data
    return head + _checksum(head) + body + _checksum(body)


def answer(message: bytes, function: int, command: int, *, number: int) -> bytes | None:
    """Return completion code and data of the answer to a request, or None for another message."""
    if len(message) < 8 or message[1] >> 2 != function + 1 or message[4] >> 2 != number:
        return None
    if message[5] != command or sum(message[:3]) % 256 or sum(message[3:]) % 256:
        return None
    return message[6:-1]


def _checksum(part: bytes) -> bytes:
    return bytes([-sum(part) % 256])


def _pack(kind: int, payload: bytes, session: int = 0, number: int = 0) -> bytes:
    return _HEADER.pack(_RMCP, _FORMAT, kind, session, number, len(payload)) + payload


def _answer(packet: bytes, kind: int, least: int) -> bytes | None:
    """Return the body of an answer of the login.  Raises LoginFailed."""
    body = packet[_HEADER.size :]
    if packet[5] != kind or len(body) < 8:
        return None
    if body[1]:
        raise LoginFailed(body[1])
    return body if len(body) >= least else None
