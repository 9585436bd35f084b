"""The plan of a preview as a terminal shows it: its order, and what it warns of."""

from __future__ import annotations

from typing import Any

from bloomery.cli import plan_text


def step(name: str, action: str, stage: int) -> dict[str, Any]:
    return {
        "resource": name, "type": "T", "action": action, "stage": stage, "certain": True,
        "loses_data": False, "takes": None, "verbs": ["active"], "reason": "", "differences": [],
    }  # fmt: skip


def plan(*steps: dict[str, Any], warnings: list[str] | None = None) -> dict[str, Any]:
    return {
        "steps": [*steps], "machines": 2, "machines_at_once": 2, "takes": None, "differs": False,
        "summary": {"create": 1, "delete": 1}, "warnings": warnings or [],
    }  # fmt: skip


def test_what_goes_on_at_once_is_one_stage_and_warnings_come_last() -> None:
    steps = [step("green", "create", 1), step("blue", "delete", 1), step("tests", "create", 2)]
    lines = plan_text.text(plan(*steps, warnings=["blue goes first"])).splitlines()
    assert lines[4:6] == ["stage 1: +green, -blue", "stage 2: +tests"]
    assert lines[-1] == "warning: blue goes first"


def test_one_step_has_no_order() -> None:
    assert "stage" not in plan_text.text(plan(step("green", "create", 1)))


def test_long_orders_are_cut() -> None:
    steps = [step(f"m{number}", "create", number // 7) for number in range(7 * 22)]
    lines = [line for line in plan_text.text(plan(*steps)).splitlines() if "stage" in line]
    assert lines[0] == "stage 0: +m0, +m1, +m2, +m3, +m4 and 2 more"
    assert (len(lines), lines[-1]) == (21, "and 2 more stages")
