#!/usr/bin/env python3
"""Write doc/reference/states.md: the diagram of provision states and the table behind it.

Both are made from ``bloomery.conductor.states``; a test notices when the page is out of date.
GitHub and most documentation tools draw the mermaid block.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bloomery.conductor import states
from bloomery.conductor.states import State

PAGE: Final = Path(__file__).resolve().parent.parent / "doc/reference" / "states.md"
HEAD: Final = """\
# Provision states

Made by `make states` from the table in `bloomery/conductor/states.py`; edit that one.

Round states are stable: nothing happens there until somebody asks. In the others a conductor is at
work, waits for a call, or needs somebody to look. Only `TaskManager.process_event` makes a move.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_diagram(), "", *_state_table(), "", *_edge_table(), ""])


def _diagram() -> list[str]:
    drawn = ["## Diagram", "", "```mermaid", "flowchart LR"]
    drawn += [f"    {_shape(state)}" for state in State]
    drawn += [f"    {e.source.name} -- {e.event} --> {e.target.name}" for e in states.EDGES]
    drawn += ["    classDef failed stroke:#c00,stroke-width:2px"]
    failed = [s.name for s in State if s in states.FAILURE_STATES or s is State.ERROR]
    return [*drawn, f"    class {','.join(failed)} failed", "```"]


def _shape(state: State) -> str:
    left, right = ('(["', '"])') if state in states.STABLE_STATES else ('["', '"]')
    return f"{state.name}{left}{state.value}{right}"


def _state_table() -> list[str]:
    head = ["## States", "", "| state | kind | on its way to |", "|---|---|---|"]
    rows = [f"| `{s}` | {_kind(s)} | {_quoted(states.TARGETS.get(s))} |" for s in State]
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
