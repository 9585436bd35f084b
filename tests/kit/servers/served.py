"""``bloomery serve``, or another role with an API, in a process of its own, on a free port.

with Served(tmp_path / "state", conductor={"graceful_shutdown_timeout": 1}) as served:
    served.wait_until_it_answers()
    served.api("PUT", f"/v1/nodes/{node}/states/power", {"target": "power on"})
    served.send(signal.SIGTERM)
    assert served.code() == 0
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.kit.servers import databases
from tests.kit.waiting import wait_for

_ANSWERS = re.compile(r"answers at (\S+)")
_STACKS = re.compile(r"[Ss]tacks are at (http[^\s:]*:[^\s:]*:\d+)")
_PROGRAM = "from bloomery.cli.main import main; main()"


class Served:
    """The process; ``options`` are groups of the configuration file, ``more`` arguments.

    Commits to its own SQLite do not wait for the disk, which other tests may keep busy for long.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        role: str = "serve",
        port: int = 0,
        more: Sequence[str] = (),
        **options: Mapping[str, Any],
    ) -> None:
        options.setdefault("database", {"synchronous": "NORMAL"})
        if options["database"].keys() == {"synchronous"}:
            databases.place_in(state_dir)
        config = state_dir.with_name(f"{state_dir.name}.conf")
        config.write_text(
            "".join(
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
                for group, values in options.items()
            )
        )
        listens = () if role in ("conductor", "engine") else (
            "--port", str(port), "--orchestration-port", "0",
        )  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, role, "--state-dir", str(state_dir),
             *listens, "--config-file", str(config), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.printed: list[str] = []
        self.complaints: list[str] = []
        pipes = ((self.process.stdout, self.printed), (self.process.stderr, self.complaints))
        self._readers = [threading.Thread(target=_read, args=pipe, daemon=True) for pipe in pipes]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str | None:
        found = _ANSWERS.search("".join(self.printed))
        return found[1] if found else None

    @property
    def orchestration_url(self) -> str:
        found = _STACKS.search("".join(self.printed))
        assert found is not None
        return found[1]

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_it_answers(self) -> None:
        wait_for(lambda: self.url or self.ended, "the API", timeout_s=60)
        assert self.url, "".join(self.complaints)

    def wait_until_it_prints(self, words: str) -> None:
        wait_for(
            lambda: words in "".join(self.printed) or self.ended,
            f"it to print {words!r}", timeout_s=60,
        )  # fmt: skip
        assert words in "".join(self.printed), "".join(self.complaints)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the API; the answer's document, None if it has none."""
        request = urllib.request.Request(
            f"{self.url}{path}", method=method, data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.90"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def code(self, *, within_s: float = 60.0) -> int:
        """Wait for its end and return its exit code; -9 where a signal ended it."""
        code = self.process.wait(timeout=within_s)
        for reader in self._readers:
            reader.join(timeout=5)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if not self.ended:
            self.process.kill()
        self.code()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def _read(pipe: Any, into: list[str]) -> None:
    into.extend(pipe)  # as the lines come
