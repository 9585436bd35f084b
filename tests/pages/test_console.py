"""The console of a machine in the browser, and the terminal that shows it."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.waiting import wait_for

ESC, CSI = "\x1b", "\x1b["
LINES_OF = """
    const [texts, done] = arguments;
    import(`${location.origin}/ui/terminal.js`).then(({Screen}) => done(texts.map(text => {
        const screen = new Screen();
        screen.write(text);
        const lines = screen.lines.map(line =>
            line.cells.map(([char]) => char).join('').trimEnd());
        while (lines.length && !lines.at(-1)) lines.pop();
        return [lines, [screen.row, screen.column]];
    })));
"""
KEYS_OF = """
    const [keys, done] = arguments;
    import(`${location.origin}/ui/terminal.js`).then(({typedBy}) => done(keys.map(typedBy)));
"""
CASES = {  # what a machine writes: the lines, and the cursor's row and column
    "lines": ("a\r\nb\nc", ["a", "b", " c"], [2, 2]),
    "carriage return": ("12345\rab", ["ab345"], [0, 2]),
    "backspace": ("abc\b \b", ["ab"], [0, 2]),
    "tab": ("a\tb", ["a       b"], [0, 9]),
    "the 80th column": ("x" * 81, ["x" * 80, "x"], [1, 1]),
    "the 80th column, and the next line": ("x" * 80 + "\r\ny", ["x" * 80, "y"], [1, 1]),
    "a place": (f"{CSI}3;5Hx{CSI}Hy", ["y", "", "    x"], [0, 1]),
    "far away": (f"{CSI}999;999H{CSI}999D{CSI}999A.", ["."], [0, 1]),
    "steps": (f"{CSI}3B{CSI}2C.{CSI}A{CSI}D-", ["", "", "  -", "  ."], [2, 3]),
    "the end of a line": (f"abcdef{CSI}3D{CSI}K", ["abc"], [0, 3]),
    "the begin of a line": (f"abcdef{CSI}3D{CSI}1K", ["    ef"], [0, 3]),
    "the screen": (f"abc\r\ndef{CSI}2J{CSI}Hx", ["x"], [0, 1]),
    "the rest of the screen": (f"abc\r\ndef\r\nghi{CSI}2;2H{CSI}J", ["abc", "d"], [1, 1]),
    "colours": (f"{CSI}1;31;44mred{CSI}0m{CSI}38;5;200mx{CSI}48;2;1;2;3my", ["redxy"], [0, 5]),
    "scrolling": ("\r\n".join(map(str, range(30))), [str(n) for n in range(30)], [23, 2]),
    "a region": (f"1\r\n2\r\n3\r\n4{CSI}2;3r{CSI}3H\n\nx", ["1", "", "x", "4"], [2, 1]),
    "a line back": (f"1\r\n2{CSI}H{ESC}M0", ["0", "1", "2"], [0, 1]),
    "lines that come and go": (f"1\r\n2\r\n3{CSI}2H{CSI}L{CSI}H{CSI}M", ["", "2", "3"], [0, 0]),
    "characters that come and go": (f"abcd{CSI}3D{CSI}2@{CSI}HX{CSI}P", ["X bcd"], [0, 1]),
    "boxes": (f"{ESC}(0lqk{ESC}(Bq", ["┌─┐q"], [0, 4]),
    "a place that is kept": (f"ab{ESC}7{CSI}5;5H{ESC}8c", ["abc"], [0, 3]),
    "texts for others": (
        f"{ESC}]0;title\x07x{ESC}]2;other{ESC}\\y{ESC}Pq#0{ESC}\\z", ["xyz"], [0, 3]
    ),
    "questions": (f"{CSI}6n{CSI}c{CSI}>c{CSI}?1049hx{CSI}>4;2my", ["xy"], [0, 2]),
    "a sequence that never ends": (f"{CSI}{'1;' * 99}x", None, None),
    "a sequence that is broken off": (f"{CSI}3\x18x{CSI}{ESC}[Hy", ["y"], [0, 1]),
    "a control character within": (f"ab{CSI}\r1Cx", ["ax"], [0, 2]),
}  # fmt: skip
TYPED = {  # key, with which others: what is typed; None: the browser has it
    ("a",): "a", ("ä",): "ä", ("Enter",): "\r", ("Backspace",): "\x7f", ("Tab",): "\t",
    ("Tab", "shiftKey"): None, ("ArrowUp",): "\x1b[A", ("F2",): "\x1bOQ", ("F10",): "\x1b[21~",
    ("Delete",): "\x1b[3~", ("Escape",): "\x1b", ("c", "ctrlKey"): "\x03", ("[", "ctrlKey"): "\x1b",
    (" ", "ctrlKey"): "\0", ("1", "ctrlKey"): None, ("x", "altKey"): "\x1bx",
    ("r", "metaKey"): None, ("C", "ctrlKey", "shiftKey"): None, ("Shift",): None, ("Dead",): None,
}  # fmt: skip


def test_a_terminal_shows_what_a_vt100_shows(window: Window) -> None:
    window.open("/about")
    texts = [case[0] for case in CASES.values()]
    shown = dict(zip(CASES, window.driver.execute_async_script(LINES_OF, texts), strict=True))
    expected = {name: [case[1], case[2]] for name, case in CASES.items() if case[1] is not None}
    assert {name: shown[name] for name in expected} == expected


def test_keys_are_what_a_vt100_types(window: Window) -> None:
    window.open("/about")
    keys = [{"key": key, **dict.fromkeys(others, True)} for key, *others in TYPED]
    typed = window.driver.execute_async_script(KEYS_OF, keys)
    assert dict(zip(TYPED, typed, strict=True)) == TYPED


@pytest.fixture
def node(service, window):
    """The name of a machine that nobody uses, and that is off."""
    nodes = service.api("GET", "/v1/nodes/detail?associated=false&driver=redfish")["nodes"]
    name = nodes[-1]["name"]
    power(service, name, "power off")
    yield name
    window.load("/about")  # the console is closed
    service.api("PUT", f"/v1/nodes/{name}/states/console", {"enabled": False})
    wait_for(lambda: not enabled(service, name), "the console's end", timeout_s=PATIENCE_S)
    power(service, name, "power off")


def enabled(service, node):
    return service.api("GET", f"/v1/nodes/{node}/states")["console_enabled"]


def power(service, node, target):
    """Order the power and wait for it, as another order may hold the node."""

    def is_done():
        states = service.api("GET", f"/v1/nodes/{node}/states")
        return states["power_state"] == target and not states["target_power_state"]

    wait_for(lambda: not service.api("GET", f"/v1/nodes/{node}")["reservation"], "a free node")
    service.api("PUT", f"/v1/nodes/{node}/states/power", {"target": target})
    wait_for(is_done, target, timeout_s=PATIENCE_S)


def test_a_console_is_enabled_opened_typed_into_and_ends_in_words(
    window: Window, service, node
) -> None:
    window.open(f"/nodes/{node}?tab=console")
    window.see("The console is not enabled.", ".console")
    window.click("Enable the console")
    window.click("Open")
    window.see("Console: connected.", ".console")
    window.see("which is off", ".terminal")
    keyboard = ActionChains(window.driver)
    keyboard.send_keys("x").perform()  # the machine is off, and drops it
    power(service, node, "power on")
    window.see("login:", ".terminal")
    window.see("Bloomery lab BIOS", ".terminal .bold")
    keyboard = ActionChains(window.driver)
    keyboard.send_keys("?root/", Keys.BACKSPACE, Keys.ENTER).perform()  # no keys of the pages
    window.see("login: ?root", ".terminal")
    assert window.violations(1280, "light") == []
    assert window.violations(1280, "dark") == []
    service.api("PUT", f"/v1/nodes/{node}/states/console", {"enabled": False})
    window.see("it is not enabled", ".console [role=status]")
    window.see("The console is not enabled.", ".console")


def test_a_console_that_is_read_only_types_nothing(window: Window, service, node) -> None:
    service.api("PUT", f"/v1/nodes/{node}/states/console", {"enabled": True})
    wait_for(lambda: enabled(service, node), "the console", timeout_s=PATIENCE_S)
    window.open(f"/nodes/{node}?tab=console")
    window.click("Open read-only")
    window.see("Console: connected, read-only.", ".console")
    window.see("which is off", ".terminal")
    ActionChains(window.driver).send_keys("x").perform()
    window.see("what you type is dropped", ".console")
    power(service, node, "power on")
    window.see("login:", ".terminal")
    window.click("Close")
    window.see("Console: closed.", ".console")


def test_a_node_without_consoles_says_what_to_choose(window: Window, make) -> None:
    node = make("silent-1", console_interface="no-console")
    window.open(f"/nodes/{node}?tab=console")
    window.see("--console-interface ipmitool-socat, or console-server", ".console")
