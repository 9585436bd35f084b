"""A BMC that speaks RMCP+ on a UDP port of loopback, in the asyncio loop of a test.

    bmc = RmcpBmc(password="secret")
    await bmc.start()                        # then bmc.driver_info
    bmc.reply = lambda kind, packet: []      # from now on it is silent

Written from IPMI 2.0, sections 13.17 to 13.31, apart from the product. ipmitool reads it, too.
``received``: the kinds of messages that came, as open, rakp1, rakp3, level, status, close.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

HOST: Final = "127.0.0.1"
GUID: Final = bytes(range(16))
_DIGESTS: Final = {1: ("sha1", 12), 3: ("sha256", 16)}
_INTEGRITY: Final = {1: 1, 3: 4}
_COMMANDS: Final = {
    (0x06, 0x38): "capabilities", (0x06, 0x54): "suites", (0x06, 0x3B): "level",
    (0x00, 0x01): "status", (0x06, 0x3C): "close",
}  # fmt: skip
Reply = bytes | tuple[float, bytes]  # at once, or after seconds


def _number(octets: bytes) -> int:
    return int.from_bytes(octets, "little")


@dataclass
class _Session:
    console: bytes
    digest: str
    mac_size: int
    authentication: int
    theirs: bytes = b""
    ours: bytes = b""
    role: bytes = b""
    sik: bytes = b""
    sent: int = 0

    def mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self.digest).digest()

    def key(self, which: int) -> bytes:
        return self.mac(self.sik, bytes([which] * 20))


@dataclass
class RmcpBmc(asyncio.DatagramProtocol):
    """``suites``: the numbers of authentication algorithms that it takes: 1 is SHA1, 3 SHA256."""

    username: str = "admin"
    password: str = "password"
    kg: bytes = b""
    suites: tuple[int, ...] = (1, 3)
    host: str = HOST
    is_on: bool = False
    refusal: dict[str, int] = field(default_factory=dict)  # kind: status or completion code
    reply: Callable[[str, bytes], Iterable[Reply]] = field(default=lambda _, packet: [packet])
    received: list[str] = field(default_factory=list)
    sessions: dict[int, _Session] = field(default_factory=dict)
    transport: Any = None
    port: int = 0

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.create_datagram_endpoint(
            lambda: self, local_addr=(self.host, 0)
        )
        self.port = self.transport.get_extra_info("sockname")[1]

    @property
    def driver_info(self) -> dict[str, Any]:
        return {
            "ipmi_address": self.host, "ipmi_port": self.port, "ipmi_username": self.username,
            "ipmi_password": self.password, "ipmi_hex_kg_key": self.kg.hex(),
        }  # fmt: skip

    def forget(self) -> None:
        """End all sessions, as after their idle time: further packets get no answer."""
        self.sessions.clear()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        kind, packet = self._answer(data)
        if kind:
            self.received.append(kind)
        for each in self.reply(kind, packet) if packet else ():
            delay_s, octets = each if isinstance(each, tuple) else (0.0, each)
            if delay_s:
                asyncio.get_running_loop().call_later(delay_s, self.transport.sendto, octets, addr)
            else:
                self.transport.sendto(octets, addr)

    def _answer(self, data: bytes) -> tuple[str, bytes]:
        """Return the kind of message and the packet of its answer; empty: it is dropped."""
        if data[4] == 0:  # IPMI 1.5 without a session, which ipmitool begins with
            return self._bare(data[14:])
        kind, body = data[5] & 0x3F, data[16:]
        if kind == 0x10:
            return "open", self._open(body)
        session = self.sessions.get(_number(body[4:8]) if kind else _number(data[6:10]))
        if session is None:
            return "", b""
        if kind == 0x12:
            return "rakp1", self._rakp2(session, _number(body[4:8]), body)
        if kind == 0x14:
            return "rakp3", self._rakp4(session, _number(body[4:8]), body)
        return self._command(session, _number(data[6:10]), data)

    def _bare(self, message: bytes) -> tuple[str, bytes]:
        function, command, number = message[1] >> 2, message[5], message[4]
        kind = _COMMANDS.get((function, command), "")
        # Channel 14; no IPMI 1.5 authentication, 2.0 is listed; users with names.
        data = bytes([0, 1, 0x80, 0x04, 0x02, 0, 0, 0, 0]) if kind == "capabilities" else b"\xc1"
        answer = _message(function, number, command, data)
        return kind, bytes.fromhex("0600ff07") + bytes(9) + bytes([len(answer)]) + answer

    def _open(self, body: bytes) -> bytes:
        tag, console, authentication = body[:1], body[4:8], body[12]
        status = 0 if authentication in self.suites else 0x11
        status = self.refusal.get("open", status)
        if status:
            return _packet(0x11, tag + bytes([status, 0, 0]) + console)
        ident = _number(os.urandom(4)) or 1
        assert (body[20], body[28]) == (_INTEGRITY[authentication], 1)
        self.sessions[ident] = _Session(console, *_DIGESTS[authentication], authentication)
        ident_bytes = ident.to_bytes(4, "little")
        return _packet(0x11, tag + bytes([0, 4, 0]) + console + ident_bytes + body[8:32])

    def _rakp2(self, session: _Session, ident: int, body: bytes) -> bytes:
        session.theirs, session.role = body[8:24], body[24:25] + body[27:]
        session.ours = os.urandom(16)
        name = session.role[2:].decode()
        status = self.refusal.get("rakp1", 0 if name == self.username else 0x0D)
        head = body[:1] + bytes([status, 0, 0]) + session.console
        if status:
            return _packet(0x13, head)
        key = self.password.encode()
        ids = session.console + ident.to_bytes(4, "little")
        proof = session.mac(key, ids + session.theirs + session.ours + GUID + session.role)
        session.sik = session.mac(self.kg or key, session.theirs + session.ours + session.role)
        return _packet(0x13, head + session.ours + GUID + proof)

    def _rakp4(self, session: _Session, ident: int, body: bytes) -> bytes:
        expected = session.mac(
            self.password.encode(), session.ours + session.console + session.role
        )
        status = self.refusal.get("rakp3", 0 if body[8:] == expected else 0x0F)
        head = body[:1] + bytes([status, 0, 0]) + session.console
        if status:
            return _packet(0x15, head)
        text = session.theirs + ident.to_bytes(4, "little") + GUID
        return _packet(0x15, head + session.mac(session.sik, text)[: session.mac_size])

    def _command(self, session: _Session, ident: int, data: bytes) -> tuple[str, bytes]:
        signed, mac = data[: -session.mac_size], data[-session.mac_size :]
        if session.mac(session.key(1), signed[4:])[: session.mac_size] != mac:
            return "", b""
        assert data[5] == 0xC0
        assert not len(signed[4:]) % 4
        payload = data[16 : 16 + int.from_bytes(data[14:16], "little")]
        cipher = Cipher(AES(session.key(2)[:16]), CBC(payload[:16])).decryptor()
        padded = cipher.update(payload[16:]) + cipher.finalize()
        assert padded[-1 - padded[-1] : -1] == bytes(range(1, padded[-1] + 1))
        message = padded[: -1 - padded[-1]]
        assert (sum(message[:3]) % 256, sum(message[3:]) % 256) == (0, 0)
        kind = _COMMANDS.get((message[1] >> 2, message[5]), "")
        code = self.refusal.get(kind, 0 if kind else 0xC1)
        content = {"status": bytes([0x60 | self.is_on, 0, 0]), "level": message[6:7]}
        if kind == "close":
            self.sessions.pop(ident, None)
        answer = _message(
            message[1] >> 2, message[4], message[5],
            bytes([code]) + (b"" if code else content.get(kind, b"")),
        )  # fmt: skip
        return kind, self.seal(session, answer)

    def seal(self, session: _Session, answer: bytes) -> bytes:
        session.sent += 1
        pad = bytes(range(1, 16 - len(answer) % 16))
        vector = os.urandom(16)
        cipher = Cipher(AES(session.key(2)[:16]), CBC(vector)).encryptor()
        payload = vector + cipher.update(answer + pad + bytes([len(pad)])) + cipher.finalize()
        packet = _packet(0xC0, payload, session.console, session.sent)
        while (len(packet) - 4 + 2) % 4:
            packet += b"\xff"
        packet += bytes([len(packet) - 16 - len(payload), 7])
        return packet + session.mac(session.key(1), packet[4:])[: session.mac_size]


def _message(function: int, number: int, command: int, data: bytes) -> bytes:
    head = bytes([0x81, (function + 1) << 2])
    body = bytes([0x20, number, command]) + data
    return head + bytes([-sum(head) % 256]) + body + bytes([-sum(body) % 256])


def _packet(kind: int, body: bytes, session: bytes = bytes(4), number: int = 0) -> bytes:
    head = bytes.fromhex("0600ff0706") + bytes([kind]) + session + number.to_bytes(4, "little")
    return head + len(body).to_bytes(2, "little") + body
