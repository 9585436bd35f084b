#!/usr/bin/env python3
"""Run ``pip install`` with the arguments of this program, and say how far it is.

    .venv/bin/python tools/pip_install.py --require-hashes --requirement requirements.lock

On a terminal the line is written anew for each package; elsewhere each tenth is a line.  Packages
of the named files are the most that there can be.  pip's own words are shown if it fails.
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Final

EVERY: Final = 10
SHOWN: Final = 40  # of pip's last lines, if it fails


def main(arguments: list[str]) -> int:
    locks = [Path(each) for each in arguments if each.endswith(".lock")]
    most = sum("==" in line for lock in locks for line in lock.read_text("utf-8").splitlines())
    command = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "install",
               "--progress-bar", "off", *arguments]  # fmt: skip
    last, count, on_terminal = deque[str](maxlen=SHOWN), 0, sys.stdout.isatty()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        for line in pip.stdout or ():
            last.append(line)
            verb, _, name = line.strip().partition(" ")
            count += verb == "Collecting"
            text = f"  {count} of at most {most} packages: {name.split()[0] if name else ''}"
            if line.startswith("Installing collected packages"):
                text = f"  {count} packages are fetched, and are installed now"
            elif verb != "Collecting" or (count % EVERY and not on_terminal):
                continue
            print(f"\r\033[K{text}" if on_terminal else text, end="" if on_terminal else "\n",
                  flush=True)  # fmt: skip
    if on_terminal and count:
        print("\r\033[K", end="", flush=True)
    if pip.returncode:
        sys.stderr.writelines(last)
    return pip.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
