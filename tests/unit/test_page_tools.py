"""The tools that check and build pages: tools/site.py and tools/check_words.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tool_{name}", TOOLS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script async src="https://cdn.example/a.js"></script>'),
        ("a.html", "<link rel=stylesheet href=//cdn.example/a.css>"),
        (
            "a.html",
            '<script type="module">import mermaid from "https://cdn.example/m.mjs"</script>',
        ),
        ("a.css", "@font-face { src: url('https://cdn.example/f.woff') }"),
        ("a.js", 'const m = await import("https://cdn.example/m.mjs")'),
    ],
)
def test_a_site_that_loads_from_another_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
):
    monkeypatch.syspath_prepend(str(TOOLS))
    (tmp_path / name).write_text(text)
    (tmp_path / "b.html").write_text('<script src="a.js"></script><a href="https://example.org/">')
    [message] = load("site").remote_loads(tmp_path)
    assert message.startswith(f"{name}: loads ")
    assert "cdn.example" in message


def test_the_manual_page_has_every_command_as_it_is() -> None:
    """Of a fresh process: click keeps the help option of the first call of a command."""
    program = "import man_page, sys; sys.stdout.write(man_page.page())"
    command = [sys.executable, "-c", program]
    page = subprocess.run(command, cwd=TOOLS, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert (TOOLS.parent / "contrib/man/bloomery.1").read_text(encoding="utf-8") == page, (
        "run make man"
    )
    assert ".SS bloomery stack adopt" in page
