"""Take pictures of the pages of ``bloomery demo``: what ``make ui-shots`` runs.

python -m tests.pages.shots                    those of doc/ and README
python -m tests.pages.shots --all build/shots  every page, wide and narrow, light and dark
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kit.clients.browser import chromium
from tests.kit.clients.window import Window
from tests.kit.waiting import wait_for

PICTURES: Final = Path("doc/pictures")
URL: Final = re.compile(r"http://127\.0\.0\.1:\d+")
READY: Final = "Ctrl-C"
START_S: Final = 180
STACK: Final = "stacks/servers/{stack}"
PAGES: Final = {
    "fleet": "/nodes", "node": "/nodes/{failed}", "stack": f"/{STACK}", "plan": f"/{STACK}/update",
}  # fmt: skip
OTHERS: Final = {
    "stacks": "/stacks", "new-stack": "/stacks/new", "stack-events": f"/{STACK}?tab=events",
    "stack-template": f"/{STACK}?tab=template", "stack-outputs": f"/{STACK}?tab=outputs",
    "activity": "/activity", "events": "/events", "allocations": "/allocations", "books": "/books",
    "conductors": "/conductors", "bmcs": "/bmcs", "firmware": "/firmware",
    "webhooks": "/webhooks", "audit": "/audit", "users": "/users", "about": "/about",
}  # fmt: skip

READ_LAST: Final = {  # by a part of the path: what the page draws last
    "/nodes/": ".timeline", "/stacks/servers": ".panel", "/activity": "table",
}  # fmt: skip


@contextmanager
def demo(port: int = 0) -> Iterator[str]:
    """Run it on ``port``, or on a free one; yield its address once its job is done."""
    program = "from bloomery.cli.main import main; main()"
    command = [sys.executable, "-c", program, "demo", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed: list[str] = []
    for line in process.stdout:
        printed.append(line)
        if READY in line:
            break
    try:
        yield URL.findall("".join(printed))[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=START_S)
        process.stdout.close()


def names(window: Window) -> dict[str, str]:
    """What the paths of pages name: a node that has failed, and the stack."""
    nodes = ask(window, "/ext/v1/nodes")["nodes"]
    failed = [each for each in nodes if each["cause"]] or nodes
    [stack, *_] = ask(window, "/ext/v1/orchestration/v1/admin/stacks")["stacks"]
    return {"failed": failed[0]["name"], "stack": stack["id"]}


def ask(window: Window, path: str) -> Any:

    with urllib.request.urlopen(f"{window.url}{path}", timeout=30) as answer:
        return json.loads(answer.read())


def prepare(window: Window) -> None:
    """End the tour, which stands above the fleet."""
    window.load("/about")
    window.driver.execute_script("localStorage.setItem('bloomery.tour', 'ended')")


def show(window: Window, path: str) -> None:
    window.open(path)
    wait_for(lambda: "Live" in window.text("#status"), "the stream", timeout_s=30)
    for part, selector in READ_LAST.items():
        if part in path and not path.endswith("/update"):
            wait_for(lambda selector=selector: window.text(selector), selector, timeout_s=30)
    if path.endswith("/new"):
        window.see("How the sentence begins")
    if path.endswith("/update"):
        template = window.find("Template", "textarea").get_property("value")
        image = template.replace("boot_iso:", "source:").replace("any.iso", "debian-12.img")
        window.fill("Template", image)
        window.click("Show the plan")
        window.see("lose data:")
        window.driver.execute_script(
            "document.querySelector('section[aria-label=Plan]').scrollIntoView()"
        )


def take(window: Window, path: str, file: Path) -> None:
    show(window, path)
    shot = window.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    file.write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every page, on every screen")
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    pages = PAGES | (OTHERS if args.all else {})
    screens = itertools.product((1280, 360), ("light", "dark")) if args.all else [(1280, "light")]
    with demo() as url, tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        window = Window(driver, url)
        prepare(window)
        known = names(window)
        for (width, scheme), (name, path) in itertools.product(list(screens), pages.items()):
            window.emulate(width, scheme)
            ending = f"-{width}-{scheme}" if args.all else ""
            take(window, path.format(**known), args.folder / f"{name}{ending}.png")


if __name__ == "__main__":
    main()
