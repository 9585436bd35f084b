"""A window of a browser that shows the pages of a service, as a user sees and operates it.

window = Window(driver, service.url)
window.open("/stacks")
window.click("New stack")
window.fill("Name", "web")
window.see("Nothing is ordered yet.")
assert window.complaints() == []
"""

from __future__ import annotations

import importlib.resources
import json
from typing import Any, Final

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement

from tests.kit.waiting import wait_for

PATIENCE_S: Final = 20
AXE: Final = importlib.resources.files("axe_playwright_python") / "axe.min.js"
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN_AXE: Final = """
    const [tags, done] = arguments;
    axe.run(document, {runOnly: tags, resultTypes: ['violations']}).then(found => done(
        found.violations.flatMap(each => each.nodes.map(node =>
            `${each.id}: ${node.target} ${node.html.slice(0, 200)} ${node.failureSummary}`))));
"""
# A control by its name: that of aria-label, of the label around it, or its own text.
_FIND: Final = """
    const [selector, name] = arguments;
    const roots = [...document.querySelectorAll('dialog[open]')].slice(-1);
    const nameOf = each => each.ariaLabel ?? each.closest('label')?.querySelector('span')?.innerText
        ?? each.closest('label')?.innerText ?? each.innerText;
    const plain = text => text.trim().replace(/\\s+/g, ' ');
    return [...(roots[0] ?? document).querySelectorAll(selector)].find(each =>
        each.checkVisibility() && (plain(nameOf(each)) || each.title) === name) ?? null;
"""
_CLICKABLE: Final = "button, a, summary, [role=button], [role=tab], input[type=checkbox]"
_TYPED: Final = "input, textarea, select"


class Window:
    def __init__(self, driver: WebDriver, url: str) -> None:
        self.driver = driver
        self.url = url

    def load(self, path: str = "/nodes") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/ui/#{path}")

    def open(self, path: str = "/nodes") -> None:
        """Load the pages anew, and wait until this one is drawn."""
        self.load(path)
        wait_for(lambda: self.main() not in ("", "Loading"), path, timeout_s=PATIENCE_S)

    def go(self, path: str) -> None:
        """Go to another page of the same window."""
        self.driver.execute_script("location.hash = arguments[0]", path)

    def main(self) -> str:
        return self.text("main")

    def text(self, selector: str) -> str:
        """Return the visible text, a space in place of each line's end."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return " ".join(self.driver.execute_script(script, selector).split())

    def see(self, words: str, selector: str = "body") -> None:
        wait_for(
            lambda: words in self.text(selector) or _Absent(self.text(selector)),
            f"{words!r}", timeout_s=PATIENCE_S,
        )  # fmt: skip

    def find(self, name: str, selector: str = _CLICKABLE) -> WebElement:
        """Wait for the control of this name; of a dialogue, where one is open."""
        return wait_for(
            lambda: self.driver.execute_script(_FIND, selector, name) or _Absent(self.text("body")),
            f"a control {name!r}", timeout_s=PATIENCE_S,
        )  # fmt: skip

    def shows(self, name: str, selector: str = _CLICKABLE) -> bool:
        return self.driver.execute_script(_FIND, selector, name) is not None

    def click(self, name: str) -> None:
        """Click the control, once it may be clicked; live pages may draw it anew meanwhile."""
        wait_for(lambda: self._click(name), f"{name!r} to be clicked", timeout_s=PATIENCE_S)

    def _click(self, name: str) -> bool:
        try:
            control = self.find(name)
            if not control.is_enabled():
                return False
            self.driver.execute_script(
                "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", control
            )
            control.click()
        except StaleElementReferenceException:
            return False
        return True

    def fill(self, name: str, value: str) -> None:
        """Type into the field, or choose from it."""
        field = self.find(name, _TYPED)
        if field.tag_name == "select":
            script = (
                "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
            )
            self.driver.execute_script(script, field, value)
        else:
            field.clear()
            field.send_keys(value)

    def emulate(self, width: int = 1280, scheme: str = "light") -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def violations(self, width: int, scheme: str) -> list[str]:
        """What axe-core finds in the page as it stands, on a screen like this."""
        self.emulate(width, scheme)
        if not self.driver.execute_script("return 'axe' in window"):
            self.driver.execute_script(AXE.read_text())
        return list(self.driver.execute_async_script(_RUN_AXE, RULES))

    def complaints(self) -> list[str]:
        """Errors, refusals of the policy and requests to elsewhere, since it was last asked.

        A refusal by an API is no complaint; a file of the pages that is not there is one.
        """
        console = [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE"
            and (entry["source"] != "network" or "/ui/" in entry["message"])
        ]
        return console + [url for url in self._requests() if not url.startswith(self._own)]

    @property
    def _own(self) -> tuple[str, ...]:
        return f"{self.url}/", "data:", "about:", "blob:", "chrome:"  # of the browser's own pages

    def _requests(self) -> list[str]:
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


class _Absent:
    """Falsy, and says in the failure of a wait what there was instead."""

    def __init__(self, text: Any) -> None:
        self.text = text

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return str(self.text)
