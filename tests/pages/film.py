"""Film the pages of ``bloomery demo`` for twenty seconds: a part of ``make ui-shots``.

python -m tests.pages.film FILE.webp

The rack is filmed as it works; then come a machine that failed, the stack, its plan, and the
activity of the site, each for as long as it takes to read.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from PIL import Image

from tests.kit.clients.browser import chromium
from tests.kit.clients.window import Window
from tests.kit.waiting import wait_for
from tests.pages import shots
from tools.servers import free_port

SIZE: Final = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
EVERY_S: Final = 0.4
READ_S: Final = {"/nodes/{failed}": 4.0, f"/{shots.STACK}": 3.0, f"/{shots.STACK}/update": 4.0,
                 "/activity": 2.0}  # fmt: skip
MOST_OF_THE_RACK_S: Final = 9.0


class Film:
    """Pictures, and how long each is shown."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._pictures: list[Image.Image] = []
        self._lengths_s: list[float] = []

    def take(self, length_s: float) -> None:
        shot = self._window.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
        if self._pictures and picture.tobytes() == self._pictures[-1].tobytes():
            self._lengths_s[-1] += length_s
            return
        self._pictures.append(picture)
        self._lengths_s.append(length_s)

    def save(self, file: Path) -> None:
        first, *others = self._pictures
        first.save(
            file, save_all=True, append_images=others, loop=0, quality=55, method=6,
            duration=[round(1000 * each) for each in self._lengths_s],
        )  # fmt: skip


def main(file: Path) -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        window = Window(driver, f"http://127.0.0.1:{port}")
        film, done = Film(window), threading.Event()
        worker = threading.Thread(target=_film, args=(film, window, done))
        worker.start()
        with shots.demo(port):
            done.set()
            worker.join()
            known = shots.names(window)
            for path, length_s in READ_S.items():
                shots.show(window, path.format(**known))
                film.take(length_s)
        film.save(file)


def _film(film: Film, window: Window, done: threading.Event) -> None:
    """Film the fleet from the first answer of the service until the demo's job is done."""
    wait_for(lambda: _answers(window), "the service", timeout_s=shots.START_S, every_s=0.05)
    shots.prepare(window)
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
    window.open("/nodes")
    began = time.monotonic()
    while not done.wait(EVERY_S) and time.monotonic() - began < MOST_OF_THE_RACK_S:
        film.take(EVERY_S)


def _answers(window: Window) -> bool:
    try:
        shots.ask(window, "/ext/v1/states")
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
