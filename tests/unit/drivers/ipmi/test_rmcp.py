"""Packets of RMCP+, against those that ipmitool 1.8.19 sent and got."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from bloomery.drivers.ipmi import info, rmcp
from tests.unit.drivers.ipmi.conftest import LEAST


class Recorded(NamedTuple):
    """One login; the BMC's side by ipmi_sim for suite 3, by our kit's BMC for suite 17."""

    suite: int
    open: str
    opened: str
    rakp1: str
    rakp2: str
    rakp3: str
    rakp4: str
    level: str  # the answer to Set Session Privilege Level
    kg: str = ""

    def packet(self, name: str) -> bytes:
        return bytes.fromhex(getattr(self, name))


RECORDED = [
    Recorded(
        suite=3,
        open=(
            "0600ff0706100000000000000000200000000000a4a3a2a000000008010000000100000801000000"
            "0200000801000000"
        ),
        opened=(
            "0600ff0706110000000000000000240000000000a4a3a2a002000000000000080100000001000008"
            "010000000200000801000000"
        ),
        rakp1=(
            "0600ff0706120000000000000000210000000000020000007631b375656bfa5415983f19ec5864fe"
            "1400000561646d696e"
        ),
        rakp2=(
            "0600ff07061300000000000000003c0000000000a4a3a2a0557ae9127a615fc0d516f739d800a4c3"
            "fac2a3ebd5e950c188d1e2d590158e1ebab808ae123248d35fdf625b930e02cc6719786a"
        ),
        rakp3=(
            "0600ff07061400000000000000001c000000000002000000e4fede02345ad83a9f606c478af0f64a"
            "1d821656"
        ),
        rakp4="0600ff0706150000000000000000140000000000a4a3a2a0bcad72904ef7b8381cda204b",
        level=(
            "0600ff0706c0a4a3a2a001000000200015865ce9b375b824a08fccbe7c87388a992ea7e9c7ba85e5"
            "cd74119ef0b1a6d7ffff02078b7e18dbe709352e8fa21ef7"
        ),
    ),
    Recorded(
        suite=17,
        kg="two-way",
        open=(
            "0600ff0706100000000000000000200000000000a4a3a2a000000008030000000100000804000000"
            "0200000801000000"
        ),
        opened=(
            "0600ff0706110000000000000000240000000400a4a3a2a0135e1833000000080300000001000008"
            "040000000200000801000000"
        ),
        rakp1=(
            "0600ff0706120000000000000000210000000000135e18338f1fb8749b3df7d36a244081ab09f44d"
            "1400000561646d696e"
        ),
        rakp2=(
            "0600ff0706130000000000000000480000000000a4a3a2a064a1fd9e0a25a6e45d5acf081d16ab94"
            "000102030405060708090a0b0c0d0e0fa17de4a4b45f2d6329321090eb2fa4523a2c7789f0f209af"
            "7b2ae596fe05609d"
        ),
        rakp3=(
            "0600ff0706140000000000000000280000000000135e1833f4dfa5f32f29c033ffb7f1ca04e4536a"
            "df5689f5682d020b3f7f165f8f50b766"
        ),
        rakp4=("0600ff0706150000000000000000180000000000a4a3a2a0f163f20ecde938527f5c996749ab2e68"),
        level=(
            "0600ff0706c0a4a3a2a0010000002000940ff4c028c49c18a645c4541de0295cffbcfb784f26ecd8"
            "d2a388ef8a583e80ffff0207a4217a607e47d65f3b932b6847bd7680"
        ),
    ),
]
LEVEL_ANSWER = (0x06, 0x3B)


@pytest.fixture(params=RECORDED, ids=lambda each: f"suite-{each.suite}")
def recorded(request) -> Recorded:
    return request.param


@pytest.fixture
def login(recorded) -> rmcp.Login:
    return make_login(recorded)


def make_login(recorded: Recorded, **keys: str) -> rmcp.Login:
    usual = {"ipmi_username": "admin", "ipmi_password": "password"}
    own = info.parse(LEAST | usual | {"ipmi_hex_kg_key": recorded.kg.encode().hex()} | keys)
    console_id = rmcp.console_id(recorded.packet("opened"))
    ours = recorded.packet("rakp1")[24:40]
    return rmcp.Login(rmcp.SUITES[recorded.suite], own, console_id, ours)


def log_in(recorded: Recorded, login: rmcp.Login) -> rmcp.Session:
    assert login.rakp1(recorded.packet("opened"))
    assert login.rakp3(recorded.packet("rakp2"))
    return login.finish(recorded.packet("rakp4"))


def test_a_login_sends_what_ipmitool_sends(recorded, login):
    assert login.open_session() == recorded.packet("open")
    assert login.rakp1(recorded.packet("opened")) == recorded.packet("rakp1")
    assert login.rakp3(recorded.packet("rakp2")) == recorded.packet("rakp3")
    session = login.finish(recorded.packet("rakp4"))
    message = session.unseal(recorded.packet("level"))
    assert rmcp.answer(message, *LEVEL_ANSWER, number=message[4] >> 2) == b"\0\x04"


@pytest.mark.parametrize(
    ("keys", "last"),
    [
        ({"ipmi_password": "Password"}, "rakp2"),
        ({"ipmi_username": "Admin"}, "rakp2"),
        ({"ipmi_priv_level": "USER"}, "rakp2"),
        ({"ipmi_hex_kg_key": b"one-way".hex()}, "rakp4"),
    ],
)
def test_a_bmc_must_know_the_keys(recorded, keys, last):
    login = make_login(recorded, **keys)
    login.rakp1(recorded.packet("opened"))
    if last == "rakp4":
        login.rakp3(recorded.packet("rakp2"))
    step = login.rakp3 if last == "rakp2" else login.finish
    with pytest.raises(rmcp.LoginFailed) as caught:
        step(recorded.packet(last))
    assert not caught.value.is_about_suite


def test_a_bmc_must_take_the_suite_as_it_was_asked(recorded, login):
    for at in (32, 40, 48):  # authentication, integrity, encryption
        weaker = bytearray(recorded.packet("opened"))
        weaker[at] = 0
        with pytest.raises(rmcp.LoginFailed) as caught:
            login.rakp1(bytes(weaker))
        assert caught.value.is_about_suite


def test_each_octet_of_a_packet_of_the_session_counts(recorded, login):
    session = log_in(recorded, login)
    packet = recorded.packet("level")
    for at in range(4, len(packet)):
        forged = bytearray(packet)
        forged[at] ^= 0x10
        assert session.unseal(bytes(forged)) is None, at
    for size in range(len(packet)):
        assert session.unseal(packet[:size]) is None, size
    assert session.unseal(packet) is not None


def test_a_packet_is_taken_once(recorded, login):
    session = log_in(recorded, login)
    assert session.unseal(recorded.packet("level")) is not None
    assert session.unseal(recorded.packet("level")) is None


@pytest.mark.parametrize("step", ["opened", "rakp2", "rakp4"])
def test_a_part_of_an_answer_is_none(recorded, login, step):
    packet = recorded.packet(step)
    steps = {"opened": login.rakp1, "rakp2": login.rakp3, "rakp4": login.finish}
    for earlier in ("opened", "rakp2"):
        if earlier == step:
            break
        steps[earlier](recorded.packet(earlier))
    for size in range(24, len(packet)):
        assert steps[step](packet[:size]) is None, size
    others = steps.keys() - {step}
    assert [steps[step](recorded.packet(other)) for other in others] == [None, None]


@pytest.mark.parametrize(
    ("packet", "ident"),
    [
        (b"", None),
        (b"\x06\0\xff\x07\x06", None),
        (bytes.fromhex("0600ff07000000000000000000092018c88100388e04b5000000"), None),  # IPMI 1.5
        (bytes.fromhex("0600ff0706c0a4a3a2a0010000002000940ff4c028c49c18"), 0xA0A2A3A4),
        (
            bytes.fromhex("0600ff07061100000000000000000800001100000102030400000000")[:24],
            0x04030201,
        ),
        (bytes.fromhex("0700ff0706c0a4a3a2a0010000002000940ff4c028c49c18"), None),
    ],
)
def test_a_packet_names_its_session(packet, ident):
    assert rmcp.console_id(packet) == ident


@pytest.mark.parametrize(
    ("change", "content"),
    [
        ({}, b"\0\x61\0\0"),
        ({1: 0x1C}, None),
        ({4: 6 << 2}, None),
        ({5: 0x02}, None),
        ({7: 0x60}, None),
        ({2: 0}, None),
    ],
    ids=["answer", "function", "number", "command", "data", "checksum"],
)
def test_an_answer_is_to_its_request(change, content):
    message = bytearray.fromhex("8104 7b 20 14 01 00 61 00 00 6a".replace(" ", ""))
    for at, octet in change.items():
        message[at] = octet
    if change.keys() & {1, 4, 5}:  # only the sums of the others are wrong
        message[2], message[-1] = -sum(message[:2]) % 256, -sum(message[3:-1]) % 256
    assert rmcp.answer(bytes(message), 0x00, 0x01, number=5) == content


def test_a_message_of_any_size_is_padded():
    for size in range(32):
        message = bytes(range(size))
        keys = {"mac_key": bytes(20), "aes_key": bytes(16)}
        sealed = rmcp.Session(rmcp.SUITES[3], b"abcd", **keys).seal(message)
        assert not (len(sealed) - 4 - 12) % 4
        assert rmcp.Session(rmcp.SUITES[3], b"abcd", **keys).unseal(sealed) == message
