"""The plan of a preview as a terminal shows it: its order, and what it warns of."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.cli import plan_text


def step(name: str, action: str, stage: int) -> dict[str, Any]:
    return {
        "resource": name, "type": "T", "action": action, "stage": stage, "certain": True,
        "loses_data": False, "takes": None, "verbs": ["active"], "reason": "", "differences": [],
    }  # fmt: skip


def plan(*steps: dict[str, Any], warnings: list[str] | None = None) -> dict[str, Any]:
    return {
        "steps": [*steps], "machines": 2, "machines_at_once": 2, "takes": None, "differs": False,
        "summary": {"create": 1, "delete": 1}, "warnings": warnings or [], "outputs": {},
    }  # fmt: skip


def test_what_goes_on_at_once_is_one_stage_and_counts_come_last() -> None:
    steps = [step("green", "create", 1), step("blue", "delete", 1), step("tests", "create", 2)]
    lines = plan_text.text(plan(*steps, warnings=["blue goes first"])).splitlines()
    assert lines[4:6] == ["stage 1: +green, -blue", "stage 2: +tests"]
    assert lines[-3:-1] == ["signs: + made or adopted, - deleted", "warning: blue goes first"]
    assert lines[-1].startswith("1 to create, 1 to delete; 2 machines")


@pytest.mark.parametrize(
    ("ends_at", "text"),
    [
        ("2026-12-06T02:00+01:00", "ends: about Sun 2026-12-06 02:00 +0100."),
        (None, "ends: not known."),
    ],
)
def test_what_has_a_window_says_when_it_begins(ends_at, text) -> None:
    shown = plan(step("a", "rebuild", 1)) | {"begins_at": "2026-12-05T22:00+01:00"}
    line = plan_text.summary(shown | {"ends_at": ends_at})
    assert line.endswith(f"begins: Sat 2026-12-05 22:00 +0100, {text}")


def test_one_step_has_no_order() -> None:
    assert "stage" not in plan_text.text(plan(step("green", "create", 1)))


def test_long_orders_are_cut() -> None:
    steps = [step(f"m{number}", "create", number // 7) for number in range(7 * 22)]
    lines = [line for line in plan_text.text(plan(*steps)).splitlines() if "stage" in line]
    assert lines[0] == "stage 0: +m0, +m1, +m2, +m3, +m4 and 2 more"
    assert (len(lines), lines[-1]) == (21, "and 2 more stages")


def test_counts_say_where_data_is_lost() -> None:
    steps = [step(name, "replace", 1) | {"loses_data": name == "a"} for name in "ab"]
    rebuilt = step("c", "rebuild", 1) | {"loses_data": True}
    shown = plan(*steps, rebuilt) | {"summary": {"replace": 2, "rebuild": 1}}
    counts = plan_text.summary(shown).partition(";")[0]
    assert counts == "1 to rebuild (data lost), 2 to replace (1 with data lost)"
