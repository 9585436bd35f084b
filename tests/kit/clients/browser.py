"""A real browser: headless Chromium, driven by selenium.

    pytest_plugins or an import bring the fixture ``browser``, one Chromium for a module:

        from tests.kit.clients.browser import browser  # noqa: F401  a fixture

        def test_it(browser):
            browser.get(url)
            browser.execute_async_script("fetch('/v1').then(...)")

Where Chromium is not installed its tests skip and say so; with CI=true they fail.
Each host below ``.example`` leads to this machine, as a name that an attacker owns may.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

PROGRAMS: Final = {"chromium": "chromium", "chromedriver": "chromium-driver"}  # Debian's packages
SWITCHES: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP *.example 127.0.0.1",
)  # fmt: skip
PATIENCE_S: Final = 30
_FETCH: Final = """
    const [url, options, done] = arguments;
    if ('blob' in options) options.body = new Blob([options.blob]);
    fetch(url, options)
        .then(async answer => done([answer.status, await answer.text()]))
        .catch(error => done([0, String(error)]));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    require()
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def require() -> None:
    """Skip where the programs are missing, or fail with CI=true."""
    missing = [package for name, package in PROGRAMS.items() if not shutil.which(name)]
    if missing:
        message = f"needs a browser: apt-get install {' '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[WebDriver]:
    """Start one with an empty profile, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_script_timeout(PATIENCE_S)
        yield driver
    finally:
        driver.quit()


def fetch(driver: WebDriver, url: str, **options: Any) -> tuple[int, str]:
    """Have the page that is shown call ``fetch``; return status and text, 0 and why it failed.

    ``blob``: a body without a type.
    """
    status, text = driver.execute_async_script(_FETCH, url, options)
    return status, text
