#!/usr/bin/env python3
"""Build the site of pages: doc/, the generated reference pages and the release notes.

Sphinx reads a copy in build/docs/source, so that no generated page lies beside a written one.
A warning fails the build. So does an address of another host that a page would load from.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reference_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "build/docs/source"
SITE: Final = ROOT / "build/docs/html"
HOST: Final = r"((?:https?:)?//[^\"'\s>)]+)"
REMOTE: Final = re.compile(
    rf"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)\s*=\s*[\"']?{HOST}"
    rf"|\burl\(\s*[\"']?{HOST}"
    rf"|\bimport\b[^;\n]{{0,200}}?[\"']{HOST}"
)


def main() -> int:
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "doc", SOURCE)
    reference_pages.write(SOURCE / "reference")
    _run("reno", "--quiet", "report", "--output", str(SOURCE / "release-notes.rst"))
    _run("sphinx-build", "-W", "--keep-going", "-q", "-E", str(SOURCE), str(SITE))
    if loads := list(remote_loads(SITE)):
        print("\n".join(loads))
        return 1
    print(f"wrote {SITE.relative_to(ROOT)}/index.html")
    return 0


def remote_loads(site: Path) -> Iterator[str]:
    """Yield each address of another host that a browser would fetch with a page of the site."""
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css", ".js"}:
            for match in REMOTE.finditer(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(site)}: loads {''.join(filter(None, match.groups()))}"


def _run(tool: str, *arguments: str) -> None:
    """Run one tool of this environment."""
    subprocess.run([Path(sys.executable).parent / tool, *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
