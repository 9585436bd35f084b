"""Would the fuzzing of templates notice?  Each row breaks something, and cases are drawn."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bloomery.orchestration import simulation
from bloomery.orchestration.drawing import svg
from bloomery.orchestration.foresight import document
from bloomery.orchestration.template import redaction
from bloomery.orchestration.template.functions import containers, text, yaql
from tests.kit.probes import fuzz_templates

BATCHES = 20  # at most: most notice within the first
CPU_S = 1.0  # of one case, in place of what is allowed otherwise
HELD: list[bytearray] = []


def _forgets(*args: Any, **more: Any) -> Any:
    raise KeyError("key")


def _dawdles(self: Any, args: Any, view: Any) -> Any:
    until = time.process_time() + 2 * CPU_S
    while time.process_time() < until:
        pass


def _hoards(self: Any, args: Any, view: Any) -> Any:
    HELD.append(bytearray(b"x") * 400 * 2**20)
    HELD.clear()
    return ""


def _blurts(self: Any, said: str) -> str:
    return said


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "a function forgets a key": (containers.ListConcat, "result", _forgets),
    "a drawing forgets a key": (svg, "drawn", _forgets),
    "a simulation raises": (simulation.Lifecycle, "delete", _forgets),
    "a function takes too long": (text.Digest, "result", _dawdles),
    "a function takes 400 MiB": (yaql.Yaql, "result", _hoards),
    "a message tells a secret": (redaction.Redaction, "masked", _blurts),
    "a plan forgets a key": (document, "of_templates", _forgets),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("where", "name", "broken"), MUTANTS.values(), ids=MUTANTS)
def test_drawn_templates_notice(where, name, broken, seed, monkeypatch):
    monkeypatch.setattr(where, name, broken)
    monkeypatch.setattr(fuzz_templates, "CPU_S", CPU_S)
    with pytest.raises((KeyError, AssertionError)):
        fuzz_templates.run(seed, BATCHES, shrink=False)
