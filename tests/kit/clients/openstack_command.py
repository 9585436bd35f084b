"""The published ``openstack`` and ``baremetal``, in one process of its own for many commands.

A start of the command takes seconds, mostly for imports.  Here a child process imports it once and
runs each command line anew, as a shell would: a new application, new requests for everything.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
LONGEST_PAUSE_S = 0.1


class Result(NamedTuple):
    code: int
    out: str
    err: str


class OpenStackCommand:
    """``env``: the variables that lead the command to its cloud; nothing else is inherited.

    ``shell``: the module whose ``main`` the command is.
    """

    def __init__(self, env: Mapping[str, str], shell: str = "openstackclient.shell") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), shell],
            cwd=ROOT,
            env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._process.communicate()

    def run(self, *words: str) -> Result:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return Result(*json.loads(self._process.stdout.readline()))

    def ok(self, *words: str) -> str:
        """What a command prints; the test ends if the command fails."""
        result = self.run(*words)
        assert result.code == 0, (words, result)
        return result.out

    def json(self, *words: str) -> Any:
        """What a command prints as JSON; the test ends if the command fails."""
        return json.loads(self.ok(*words, "-f", "json"))


def serve() -> None:
    """Run lines until there are no more; where the command would pause for seconds, less does."""
    shell = importlib.import_module(sys.argv[1])
    pause = time.sleep
    time.sleep = lambda seconds: pause(min(seconds, LONGEST_PAUSE_S))
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = shell.main(json.loads(line))
            except SystemExit as exc:
                code = exc.code
        sys.stdout.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
