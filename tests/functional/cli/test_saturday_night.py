"""The tutorial of a Saturday night: each command of the page, and what the page says it prints."""

from __future__ import annotations

import configparser
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.invariants.test_docs import ROOT
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tools.servers import free_port

PAGE = ROOT / "doc/tutorials/saturday-night.md"
EXAMPLE = ROOT / "examples/saturday-night"
STARTED = ("cd ", "bloomery lab up ", "bloomery serve ", "export OS_CLOUD")  # by fixtures
LOOKS = ("bloomery stack why ", "bloomery firmware list", "sort ")  # until they show it
PATIENCE_S = 180.0
FIRST_PORT = 8100


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of the page and the lines that each prints."""
    lines = [line[4:] for line in PAGE.read_text().splitlines() if line.startswith("    ")]
    command, output = "", list[str]()
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        elif line.startswith("> "):
            command += f"\n{line[2:]}"
        else:
            output.append(line)
    yield command, output


def pattern_of(lines: list[str]) -> re.Pattern[str]:
    """Return what fits the lines: ... stands for more on a line, and alone for more lines."""
    parts = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r".*\n"
        for line in map(squeezed, lines)
    ]
    return re.compile("".join(parts))


def squeezed(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text).strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example whose window opens in three days, whatever the day is."""
    folder = tmp_path / "saturday-night"
    shutil.copytree(EXAMPLE, folder)
    day = f"{datetime.now(UTC) + timedelta(days=3):%a}".lower()
    template = folder / "saturday.yaml"
    template.write_text(template.read_text().replace("days: [sat]", f"days: [{day}]"))
    return folder


@pytest.fixture
def own(folder: Path) -> Iterator[Callable[[str], str]]:
    """Start the rack; return a function that puts its ports, and that of the drains, in texts."""
    port = str(free_port())
    program = "from bloomery.cli.main import main; main()"
    words = "lab up --scenario rack.yaml --write machines.json --port 0"
    lab = subprocess.Popen(
        [sys.executable, "-c", program, *words.split()], cwd=folder, stdout=subprocess.DEVNULL
    )
    machines = folder / "machines.json"
    wait_for(lambda: machines.exists() and machines.read_text().rstrip().endswith("}"), "the rack")
    nodes = json.loads(machines.read_text())["nodes"]
    ports = {
        str(FIRST_PORT + number): node["driver_info"]["redfish_address"].rpartition(":")[2]
        for number, node in enumerate(nodes)
    } | {"8080": port}
    yield lambda text: re.sub(r"\b8[01]\d\d\b", lambda each: ports[each[0]], text)
    lab.terminate()
    lab.wait()


def test_each_command_prints_what_the_page_says(
    folder: Path, own: Callable[[str], str], tmp_path: Path
) -> None:
    for name in ("drain.py", "saturday.yaml"):
        path = folder / name
        path.write_text(own(path.read_text()))
    options = configparser.ConfigParser()
    options.read(folder / "service.conf")
    settings = {group: dict(options[group]) for group in options.sections()}
    with Served(tmp_path / "state", **settings) as served:
        served.wait_until_it_answers()
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OS_CLOUD": "bloomery",
            "OS_CLIENT_CONFIG_FILE": str(tmp_path / "state/clouds.yaml"), "COLUMNS": "200",
        }  # fmt: skip
        shells: list[subprocess.Popen[str]] = []

        def run(command: str) -> str:
            """Run a command in a shell of its own; one in the background goes on."""
            shells.append(subprocess.Popen(
                ["bash", "-c", command.removesuffix("&")], cwd=folder, text=True,
                env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,
            ))  # fmt: skip
            if command.endswith("&"):
                return ""
            output = shells[-1].communicate()[0]
            assert shells.pop().returncode == 0, (command, output)
            return "".join(f"{squeezed(line)}\n" for line in output.splitlines())

        def look(command: str, pattern: re.Pattern[str]) -> object:
            output = run(command)
            return pattern.fullmatch(output) or AnotherOutput(output)

        try:
            for shown, lines in commands():
                if shown.startswith(STARTED):
                    continue
                command, pattern = own(shown), pattern_of(own("\n".join(lines)).splitlines())
                if command.startswith(LOOKS):
                    wait_for(
                        functools.partial(look, command, pattern),
                        shown,
                        timeout_s=PATIENCE_S,
                        every_s=1,
                    )
                    continue
                output = run(command)
                assert pattern.fullmatch(output), f"{command}\n{output}\nfits not\n{lines}"
        finally:
            for shell in shells:
                os.killpg(shell.pid, signal.SIGTERM)
                shell.communicate()


class AnotherOutput(str):
    """What a command printed before it shows what the page says."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False
