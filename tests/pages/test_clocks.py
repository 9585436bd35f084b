"""Times on the pages go by the clock of the service, whatever the browser's clock shows."""

from __future__ import annotations

import re

import pytest

from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.waiting import wait_for

TIMES = "return [...document.querySelectorAll('main time')].map(each => each.textContent)"
RECENT = re.compile(r"now|[\d.]+ (s|min) ago")


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_browser_whose_clock_is_wrong_shows_the_same_ages(window: Window, hours: int) -> None:
    shift = f"{{ const right = Date.now; Date.now = () => right() + {hours} * 3600000 }}"
    method = "Page.addScriptToEvaluateOnNewDocument"
    script = window.driver.execute_cdp_cmd(method, {"source": shift})
    try:
        window.open("/stacks")
        times = wait_for(lambda: window.driver.execute_script(TIMES), "ages", timeout_s=PATIENCE_S)
        assert all(RECENT.fullmatch(each) for each in times), times
    finally:
        window.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
