"""Do what README and the tutorial of stacks say, in an empty Debian 12, as a user of no rights.

    make newcomer

Every command is one that the pages show, in their order, and each must succeed.  The transcript
stays in build/newcomer/transcript.txt.  debootstrap makes the root folder, once; the clone in it
and the home of its user are new each time.

The Makefile starts this as process 1 of a namespace: mounts and processes end with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from tests.kit.waiting import wait_for

SOURCE: Final = Path(__file__).resolve().parents[2]
BUILT: Final = SOURCE / "build/newcomer"
ROOT: Final = BUILT / "root"
USER: Final = "newcomer"
HOME: Final = f"/home/{USER}"
CLONE: Final = f"{HOME}/bloomery"
README: Final = ("Two commands", "Five minutes")  # its sections
TUTORIAL: Final = tuple(f"Step {number}" for number in range(1, 7))
SERVE: Final = "bloomery serve"
ASKS: Final = re.compile(r"bloomery stack (up|down) ")
ENDLESS: Final = "--follow"  # until Ctrl-C, as the page says
STOPPED: Final = 124  # the status of timeout
FILE_OF_THE_READER: Final = re.compile(r"\bweb\.yaml\b")
COMMAND: Final = re.compile(
    r"    (?:\$ )?(?P<line>(?:\$ |make|pip|python3|export|curl|baremetal|openstack|bloomery"
    r"|\.venv/bin/bloomery)\b.*)"
)
OF_PIP: Final = ("/etc/pip.conf", "/etc/xdg/pip", "/etc/resolv.conf")
STARTS_S: Final = 60


def commands(page: str, sections: tuple[str, ...]) -> Iterator[str]:
    """Yield the commands that sections of a page show, without their output."""
    section = ""
    for line in (SOURCE / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        shown = COMMAND.match(line)
        if shown and section.startswith(sections) and not FILE_OF_THE_READER.search(line):
            yield shown["line"]


def prepare() -> None:
    """Give the root folder a user with a fresh clone, and what makes the network work."""
    shutil.rmtree(f"{ROOT}{HOME}", ignore_errors=True)
    if f"{USER}:" not in (ROOT / "etc/passwd").read_text():
        subprocess.run(["chroot", ROOT, "useradd", "--shell", "/bin/bash", USER], check=True)
    Path(f"{ROOT}{HOME}").mkdir(parents=True)
    subprocess.run(["git", "clone", "--quiet", SOURCE, f"{ROOT}{CLONE}"], check=True)
    subprocess.run(["chroot", ROOT, "chown", "--recursive", f"{USER}:", HOME], check=True)
    for name in (*OF_PIP, os.environ.get("PIP_CERT", "")):
        if name and Path(name).exists():
            Path(f"{ROOT}{name}").parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if Path(name).is_dir() else shutil.copy
            shutil.rmtree(f"{ROOT}{name}", ignore_errors=True)
            copy(name, f"{ROOT}{name}")
    for name in ("proc", "sys", "dev"):
        subprocess.run(["mount", "--rbind", f"/{name}", ROOT / name], check=True)


class Shell:
    """Runs lines as the user types them: what they set holds for later lines."""

    def __init__(self, transcript: IO[str]) -> None:
        self.transcript = transcript
        self.remembered: list[str] = []
        self.service: subprocess.Popen[bytes] | None = None

    def tell(self, text: str) -> None:
        for file in (sys.stdout, self.transcript):
            file.write(text)
            file.flush()

    def run(self, line: str) -> bool:
        """Run a line; return whether it did what the page says."""
        self.tell(f"$ {line}\n")
        if SERVE in line:
            return self.serve(line)
        if line.startswith("export"):
            self.remembered.append(line)
            return True
        typed = line
        if line.endswith(ENDLESS):
            typed = f"timeout --signal INT 3 {line}"
        elif ASKS.search(line):  # on a terminal
            typed = f"printf 'y\\n' | script --quiet --return --command '{line}' /dev/null"
        done = subprocess.run(
            self.words(typed), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        self.tell(done.stdout.decode(errors="replace"))
        _, activates, rest = line.partition(" && . ")
        if activates:
            self.remembered.append(f". {rest}")
        return done.returncode == (STOPPED if line.endswith(ENDLESS) else 0)

    def serve(self, line: str) -> bool:
        log = BUILT / "serve.log"
        with log.open("wb") as output:
            self.service = subprocess.Popen(self.words(line), stdout=output, stderr=output)
        wait_for(
            lambda: b"export" in log.read_bytes() or self.service.poll() is not None,
            "the service", timeout_s=STARTS_S,
        )  # fmt: skip
        self.tell(log.read_text())
        return self.service.poll() is None

    def words(self, line: str) -> list[str]:
        pip = [f"{name}={value}" for name, value in os.environ.items()
               if name.startswith("PIP_") or name.lower().endswith("_proxy")]  # fmt: skip
        script = "\n".join(
            [f"cd {CLONE}", *self.remembered, f"exec {line}" if SERVE in line else line]
        )
        own = [f"HOME={HOME}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TERM=xterm"]
        return ["chroot", f"--userspec={USER}:{USER}", str(ROOT),
                "env", "-i", *own, *pip, "bash", "-c", script]  # fmt: skip


def main() -> int:
    prepare()
    lines = [*commands("README.md", README), *commands("doc/tutorials/first-stack.md", TUTORIAL)]
    began, deployed_s = time.monotonic(), 0.0
    with (BUILT / "transcript.txt").open("w", encoding="utf-8") as transcript:
        shell = Shell(transcript)
        for line in lines:
            if not shell.run(line):
                shell.tell("\nthis command failed\n")
                return 1
            if not deployed_s and "stack up" in line:
                deployed_s = time.monotonic() - began
        took_s = time.monotonic() - began
        shell.tell(f"\n{len(lines)} commands, each as the pages say: {took_s:.0f} s; the first "
                   f"stack after {deployed_s:.0f} s\n")  # fmt: skip
        assert shell.service is not None
        shell.service.terminate()
        shell.service.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
