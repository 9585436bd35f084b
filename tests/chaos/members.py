"""Processes of a site on one server database: conductors and APIs, to be killed and stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.chaos import witness
from tests.kit.waiting import wait_for

_ROOT: Final = Path(__file__).resolve().parents[2]
_PROGRAM: Final = (
    "import bloomery; print(bloomery.__file__, flush=True);"
    "from tests.chaos import newer_release, witness; newer_release.install(); witness.install();"
    "from bloomery.cli.main import main; main()"
)
_SERVES: Final = re.compile(r"answers at (\S+?);? |conductor (\S+) serves")
_STARTS_WITHIN_S: Final = 90.0
_ENDS_WITHIN_S: Final = 60.0


class Member:
    """``bloomery ROLE`` with a state dir and a configuration of its own; may be started anew."""

    def __init__(
        self,
        role: str,
        name: str,
        folder: Path,
        options: dict[str, dict[str, Any]],
        witness_port: int,
    ) -> None:
        self.role, self.name, self._folder = role, name, folder
        self.env = os.environ | {
            witness.VARIABLE: str(witness_port), "PYTHONPATH": str(_ROOT),
            "PYTHONWARNINGS": "ignore",
        }  # fmt: skip
        folder.mkdir()
        self.code = _ROOT  # where its ``bloomery`` is
        self._config, self._options = folder / "bloomery.conf", options
        self.lives = 0
        self.runs_since: float | None = None  # it serves, and was not disturbed from then on
        self._output: list[str] = []
        self.complaints: list[str] = []

    def start(self) -> None:
        """Start a process; it serves a little later."""
        arguments = ["--port", "0", "--orchestration-port", "0"] if self.role == "api" else []
        self._config.write_text(
            "".join(_group(name, values) for name, values in self._options.items())
        )
        self.lives += 1
        self._output = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, self.role, "--state-dir", str(self._folder / "state"),
             "--config-file", str(self._config), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.code,
        )  # fmt: skip
        pipes = (
            (self.process.stdout, self._output, self._hear),
            (self.process.stderr, self.complaints, _ignore),
        )
        self._readers = [threading.Thread(target=_read, args=pipe, daemon=True) for pipe in pipes]
        for reader in self._readers:
            reader.start()

    def wait_until_it_serves(self) -> None:
        wait_for(
            lambda: self.is_serving or self.process.poll() is not None,
            f"{self.role} to serve", timeout_s=_STARTS_WITHIN_S,
        )  # fmt: skip
        assert self.is_serving, "".join(self.complaints)[-3000:]

    @property
    def is_serving(self) -> bool:
        return _SERVES.search("".join(self._output)) is not None

    def _hear(self) -> None:
        """It has printed something; the first thing is that it serves."""
        if self.runs_since is None and self.is_serving:
            self.runs_since = time.monotonic()

    @property
    def url(self) -> str:
        serving = _SERVES.search("".join(self._output))
        assert serving is not None
        return serving[1]

    def runs_code_in(self, folder: Path) -> bool:
        return Path(self._output[0].strip()).is_relative_to(folder)

    def kill(self) -> None:
        """kill -9, also of one that stands still."""
        self.runs_since = None
        self.process.send_signal(signal.SIGKILL)
        self._ended()

    def end(self, *numbers: signal.Signals) -> None:
        """Send these signals, and wait until it has ended in good order."""
        self.runs_since = None
        for number in numbers:
            self.process.send_signal(number)
        assert self._ended() == 0, "".join(self.complaints)[-3000:]

    def set_option(self, group: str, name: str, value: Any) -> None:
        """Change its configuration, from the next start on; None: leave the option out."""
        values = self._options[group]
        values[name] = value
        if value is None:
            del values[name]

    def _ended(self) -> int:
        code = self.process.wait(timeout=_ENDS_WITHIN_S)
        for reader in self._readers:
            reader.join(timeout=5)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def stand_still(self) -> None:
        self.runs_since = None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self._hear()


def _group(name: str, values: dict[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def _ignore() -> None:
    return


def _read(pipe: Any, into: list[str], on_line: Callable[[], None]) -> None:
    for line in pipe:
        into.append(line)
        on_line()
