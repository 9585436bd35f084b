from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from bloomery.conductor import states

TOOL = Path(__file__).resolve().parents[2] / "tools" / "states.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool_states", TOOL)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_table_says(tool: ModuleType):
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "out of date: run make states"


def test_the_table_has_every_edge_once(tool: ModuleType):
    lines = tool.page().splitlines()
    for edge in states.EDGES:
        row = f"| `{edge.source}` | {edge.event} | `{edge.target}` |"
        assert sum(line.startswith(row) for line in lines) == 1
