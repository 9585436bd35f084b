from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.drivers import processes
from bloomery.drivers.ipmi import info, tool
from tests.kit.waiting import wait_for

ASK = ("power", "status")
ONCE = tool.Patience(retries=1, interval_s=5)
KG = "c0ffee"


def line(*words: str, suite: int | None = None, **said: object) -> str:
    parsed = info.parse({"ipmi_address": "h"} | said)
    found = tool.command(
        parsed, words or ASK, suite=suite, patience=ONCE, password_file="/p",
    )  # fmt: skip
    return " ".join(found)


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ({}, ""),
        ({"ipmi_port": 6230}, "-p 6230 "),
        ({"ipmi_username": "admin"}, "-U admin "),
        ({"ipmi_hex_kg_key": KG}, "-K "),
        ({"ipmi_hex_kg_key": "0000"}, ""),
        ({"ipmi_local_address": "0x20"}, "-m 0x20 "),
        (
            {
                "ipmi_bridging": "single", "ipmi_target_channel": 0,
                "ipmi_target_address": "0x24",
            },
            "-b 0 -t 0x24 ",
        ),
        (
            {
                "ipmi_bridging": "dual", "ipmi_target_channel": 7, "ipmi_target_address": "0x24",
                "ipmi_transit_channel": 0, "ipmi_transit_address": "0x52",
                "ipmi_username": "u", "ipmi_port": 1, "ipmi_local_address": "0x20",
            },
            "-p 1 -U u -m 0x20 -B 0 -T 0x52 -b 7 -t 0x24 ",
        ),
    ],
)  # fmt: skip
def test_command_line(said, options):
    assert line(**said) == (
        f"ipmitool -I lanplus -H h -L ADMINISTRATOR {options}-v -R 1 -N 5 -f /p power status"
    )


def test_the_old_protocol_has_another_interface():
    assert line(ipmi_protocol_version="1.5", ipmi_priv_level="USER").startswith(
        "ipmitool -I lan -H h -L USER -v "
    )


def test_a_cipher_suite_is_named():
    assert " -C 17 " in line(suite=17)


def test_verbosity_is_asked_for_once():
    assert line("sdr", "-v").split().count("-v") == 1


# ----------------------------------------------------------------- with a program of our own


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a shell script in the place of ipmitool."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(*lines: str) -> None:
        path = tmp_path / "ipmitool"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)

    return write


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command; afterwards no password file may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    def call(password: str = "pa55word", within_s: float | None = 10.0) -> str:
        said = info.parse(
            {"ipmi_address": "h", "ipmi_password": password, "ipmi_hex_kg_key": KG},
        )
        return tool.run(said, ASK, patience=ONCE, within_s=within_s)

    yield call
    assert list(folder.iterdir()) == []


# The last file named by -f, as a shell sees it.
FILE = 'while [ "$1" != -f ]; do shift; done'


@pytest.mark.parametrize(
    ("password", "content"), [("pa55word", b"pa55word"), ("", b"\0")], ids=["some", "none"]
)
def test_the_password_is_in_memory_alone(run, program, tmp_path, password, content):
    program(
        FILE, f'cat "$2" >{tmp_path}/seen', f'readlink "$2" >{tmp_path}/place',
        f"env >{tmp_path}/environment", "echo fine",
    )  # fmt: skip
    assert run(password) == "fine\n"
    assert (tmp_path / "seen").read_bytes() == content
    assert (tmp_path / "place").read_text().startswith("/memfd:")
    assert b"pa55word" not in (tmp_path / "environment").read_bytes()


DYING = """
from bloomery.drivers.ipmi import info, tool
said = info.parse({"ipmi_address": "h", "ipmi_password": "pa55word", "ipmi_hex_kg_key": "c0ffee"})
tool.run(said, ("power", "status"), patience=tool.Patience())
"""


def test_a_killed_service_leaves_no_password_behind(program, tmp_path, monkeypatch):
    left = tmp_path / "temporary"
    left.mkdir()
    monkeypatch.setenv("TMPDIR", str(left))
    program(FILE, f'cat "$2" >{tmp_path}/seen', "kill -9 $PPID")
    dead = subprocess.run([sys.executable, "-c", DYING], check=False)
    assert dead.returncode == -signal.SIGKILL
    assert (tmp_path / "seen").read_text() == "pa55word"
    assert list(left.iterdir()) == []


def test_the_kg_key_is_on_no_command_line(run, program, tmp_path):
    program(
        f'tr "\\0" " " </proc/$$/cmdline >{tmp_path}/line',
        f'printf %s "$IPMI_KGKEY" >{tmp_path}/key', "echo fine",
    )  # fmt: skip
    assert run() == "fine\n"
    assert (tmp_path / "key").read_bytes() == bytes.fromhex(KG)
    line = (tmp_path / "line").read_text()
    assert " -K " in line
    assert KG not in line


def test_the_kg_key_of_our_own_environment_is_nobodys(program, tmp_path, monkeypatch):
    monkeypatch.setenv("IPMI_KGKEY", "stray")
    program(f'printf %s "$IPMI_KGKEY" >{tmp_path}/key')
    tool.run(info.parse({"ipmi_address": "h"}), ASK, patience=ONCE)
    assert (tmp_path / "key").read_text() == ""


def test_a_failure_says_what_ipmitool_said_without_noise(run, program, caplog):
    caplog.set_level(logging.DEBUG - 5)
    program(
        "echo 'Loading IANA PEN Registry...' >&2",
        "echo 'Invalid completion code received: Invalid command' >&2",
        "echo '> RAKP 2 HMAC is invalid' >&2",
        "echo 'Error: Unable to establish IPMI v2 / RMCP+ session' >&2",
        "exit 1",
    )
    with pytest.raises(tool.Failed) as caught:
        run()
    assert str(caught.value) == "RAKP 2 HMAC is invalid"
    assert caught.value.__cause__ is None
    assert KG not in caplog.text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Error: Unable to establish LAN session", "Error: Unable to establish LAN session"),
        ("Get Auth Capabilities error", "no answer"),
        ("", "ipmitool ended with 3"),
        ("first\nsecond", "first; second"),
    ],
)
def test_a_failure_is_one_line(run, program, said, told):
    program(f"printf '%b' '{said}' >&2; exit 3")
    with pytest.raises(tool.Failed, match=f"^{told}$"):
        run()


def test_an_error_holds_nothing_that_moves_a_terminal(run, program):
    program(r"printf '\033[2Jgone\007' >&2; exit 1")
    with pytest.raises(tool.Failed, match=r"^\?\[2Jgone\?$"):
        run()


def test_what_is_no_text_becomes_question_marks(run, program):
    program(r"printf 'a\377b'")
    assert run() == "a?b"


def test_a_program_that_overruns_is_killed(run, program, tmp_path):
    program(f"echo $$ >{tmp_path}/pid", "exec sleep 1000")
    with pytest.raises(tool.Failed, match="no answer"):
        run(within_s=1)
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


OPENING = "Set Session Privilege Level to ADMINISTRATOR failed"
SLOW = "it answered at first, and then gave no answer within 5 s a try ([ipmi]min_command_interval)"


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (("Unable to Get Channel Cipher Suites", OPENING), SLOW),
        (("> Error: no response from RAKP 1 message", OPENING), SLOW),
        (
            ("Unable to get Chassis Power Status", "Close Session command failed"),
            f"{SLOW}; Unable to get Chassis Power Status",
        ),
        (("> RAKP 2 HMAC is invalid", OPENING), "RAKP 2 HMAC is invalid"),
        ((f"{OPENING}: Unknown (0x81)",), f"{OPENING}: Unknown (0x81)"),
    ],
)
def test_a_bmc_that_stops_answering_is_told_from_one_that_refuses(run, program, printed, message):
    """A privilege level that fails without a reason was never answered."""
    program(*(f"echo '{line}' >&2" for line in printed), "exit 1")
    with pytest.raises(tool.Failed) as caught:
        run()
    assert str(caught.value) == message
    is_slow = message.startswith(SLOW)
    assert (tool.meaning(message) is None) is is_slow


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("Loading IANA PEN Registry...", "no answer within 1 s (at most [ipmi]"),
        (
            "Running Get VSO Capabilities my_addr 0x20",
            "it opened a session and gave no answer within 1 s (at most [ipmi]",
        ),
    ],
)
def test_a_slow_bmc_is_told_from_a_silent_one_when_the_time_is_over(run, program, printed, message):
    program(f"echo '{printed}' >&2", "exec sleep 1000")
    with pytest.raises(tool.Failed) as caught:
        run(within_s=1)
    assert str(caught.value).startswith(message)


def test_a_missing_program_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.CannotStart, match="install the package ipmitool"):
        tool.require()


def test_a_program_that_vanished_is_a_failure(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tool.Failed, match="cannot run ipmitool: No such file"):
        run()


@pytest.mark.parametrize("before", ["E" * 489 + " ", ">", "\t"])
@pytest.mark.parametrize("password", ["Tr0ub4dor&3-x9Q", "> dented", "two  blanks", "odd\x01one"])
def test_no_part_of_a_password_is_told(run, program, tmp_path, before, password):
    (tmp_path / "said").write_text(f"{before}{password} more")
    program(f"cat {tmp_path}/said >&2", "exit 1")
    with pytest.raises(tool.Failed) as told:
        run(password)
    assert "******" in told.value.masked_text
    assert len(told.value.masked_text) <= 500
    assert not [
        part for part in password.split() if part in told.value.masked_text and len(part) > 1
    ]
    assert password[:6] not in told.value.masked_text


def test_what_a_bmc_echoes_of_its_login_is_masked(run, program):
    program("echo 'no: user admin, pa55word, key C0FFEE' >&2", "exit 1")
    with pytest.raises(tool.Failed) as told:
        run()
    assert told.value.masked_text == "no: user admin, ******, key ******"


def test_what_was_masked_means_what_it_meant(run, program):
    program("echo 'RAKP 2 HMAC is invalid' >&2", "exit 1")
    with pytest.raises(tool.Failed, match=r"^RAKP 2 HMAC is invalid$") as told:
        run("invalid")
    assert told.value.masked_text == "RAKP 2 HMAC is ******"


LASTING = """
import sys
from bloomery.drivers.ipmi import info, tool
said = info.parse({"ipmi_address": "h", "ipmi_password": "pa55word"})
tool.run(said, ("power", "off"), patience=tool.Patience())
"""


def test_ipmitool_ends_with_a_service_that_is_killed(program, tmp_path):
    program(f"echo $$ >{tmp_path}/pid.new && mv {tmp_path}/pid.new {tmp_path}/pid", "exec sleep 99")
    service = subprocess.Popen([sys.executable, "-c", LASTING])
    wait_for((tmp_path / "pid").exists, "ipmitool to run")
    pid = int((tmp_path / "pid").read_text())
    service.kill()
    service.wait()
    try:
        wait_for(lambda: not is_running(pid), "ipmitool to end")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("setpriv", ["exit 1", None])
def test_a_system_that_cannot_tie_it_to_us_runs_it_all_the_same(tmp_path, monkeypatch, setpriv):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, line in (("ipmitool", "echo fine"), ("setpriv", setpriv)):
        if line is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
            (tmp_path / name).chmod(0o755)
    processes.tie.cache_clear()
    try:
        said = info.parse({"ipmi_address": "h", "ipmi_password": "pa55word"})
        assert tool.run(said, ASK, patience=ONCE) == "fine\n"
    finally:
        processes.tie.cache_clear()
