#!/usr/bin/env python3
"""Write doc/reference/states.md: the paths between stable states and the tables behind them.

The page is made from ``bloomery.conductor.states``; a test fails when the page is out of date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bloomery.conductor import states
from bloomery.conductor.states import State

PAGE: Final = Path(__file__).resolve().parent.parent / "doc/reference" / "states.md"
HEAD: Final = """\
# Provision states

This page is made by `make states` from the table in `bloomery/conductor/states.py`: edit that
table.

A stable state stays until somebody asks for a verb. In the other states a conductor works, waits
for a call, or needs an operator. Only `TaskManager.process_event` moves a node.
"""
AFTER_PATHS: Final = """\
Cleaning ends in `available` after `provide` or a deletion, and in `manageable` after `clean`.
The event `manage` moves an available node to `manageable` at once. The table of moves adds every
wait, hold and failure."""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_paths(), "", *_state_table(), "", *_edge_table(), ""])


def _paths() -> list[str]:
    """Return the ways from one stable state to the next, without waits, holds and failures."""
    drawn = [
        f"{source:<10} -- {', '.join(events):<14} --> {working:<11}"
        f" -- {edge.event:<6} --> {edge.target}"
        for (source, working), events in _beginnings().items()
        for edge in states.EDGES
        if edge.source == working and edge.event in {"done", "manage", "clean"}
    ]
    return ["## Paths", "", "```text", *drawn, "```", "", AFTER_PATHS]


def _beginnings() -> dict[tuple[State, State], list[str]]:
    """Return the events that lead from a stable state to a working state."""
    events: dict[tuple[State, State], list[str]] = {}
    for edge in states.EDGES:
        if edge.source in states.STABLE_STATES and edge.target in states.UNSTABLE_STATES:
            events.setdefault((edge.source, edge.target), []).append(edge.event)
    return events


def _state_table() -> list[str]:
    head = [
        "## States", "", "The last column is the `kind` of `/ext/v1/states`: what pages show.", "",
        "| state | kind | on its way to | shown as |", "|---|---|---|---|",
    ]  # fmt: skip
    rows = [
        f"| `{s}` | {_kind(s)} | {_quoted(states.TARGETS.get(s))} | {states.KINDS[s]} |"
        for s in State
    ]
    return head + rows


def _kind(state: State) -> str:
    kinds = {
        "stable": states.STABLE_STATES,
        "at work": states.UNSTABLE_STATES - states.WAIT_STATES,
        "waits for a call": states.WAIT_STATES,
        "held": states.HOLD_STATES,
        "failed": states.FAILURE_STATES,
    }
    return next(kind for kind, members in kinds.items() if state in members)


def _quoted(state: State | None) -> str:
    return f"`{state}`" if state else ""


def _edge_table() -> list[str]:
    verbs = {event: [v for v, e in states.VERBS.items() if e == event] for event in states.EVENTS}
    head = ["## Moves", "", "| from | event | to | asked for with |", "|---|---|---|---|"]
    return head + [
        f"| `{e.source}` | {e.event} | `{e.target}` | {', '.join(verbs[e.event])} |"
        for e in states.EDGES
    ]


def main() -> None:
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(PAGE.parent.parent)}")


if __name__ == "__main__":
    main()
