"""What of two observations of one life must be equal, each view of them under a name.

Orders are compared where they are determined: within a resource, between a resource and what it
needs, between a stack and its resources, between a group and its members.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

Observation = Mapping[str, Any]
Life = Mapping[str, Any]
UNSEEN: Final = "nothing"


class Difference(NamedTuple):
    life: str
    step: int
    view: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        theirs, ours = (json.dumps(side)[:700] for side in (self.theirs, self.ours))
        place = f"{self.life} step {self.step}: {self.view}"
        return f"{place}\n  Heat:     {theirs}\n  Bloomery: {ours}"


def differences(
    life: Life, theirs: Sequence[Observation], ours: Sequence[Observation]
) -> Iterator[Difference]:
    """Yield each view in which ``ours`` differs, but those that are loose in Heat."""
    pairs = needs_of_steps(life)
    for step, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        left, right = views(their, pairs[step]), views(our, pairs[step])
        for view in sorted({*left, *right} - set(their.get("loose", ()))):
            if left.get(view, UNSEEN) != right.get(view, UNSEEN):
                yield Difference(
                    life["id"], step, view, left.get(view, UNSEEN), right.get(view, UNSEEN)
                )


def views(seen: Observation, needs: set[tuple[str, str]]) -> dict[str, Any]:
    events = [line.split(" ", 1) for line in seen["events"]]
    paths = sorted({path for path, _ in events})
    shown = {"status": seen["status"], "reason": seen["reason"]}
    for section in ("outputs", "resources"):
        shown |= {f"{section} {name}": value for name, value in seen[section].items()}
    for path in paths:
        shown[f"events {path}"] = [words for each, words in events if each == path]
    for first, second in sorted(ordered(paths, needs)):
        merged = [" ".join(event) for event in events if event[0] in {first, second}]
        shown[f"order {first} {second}"] = merged
    return shown


def ordered(paths: Sequence[str], needs: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of places whose events have an order."""
    for path in paths:
        if path.endswith("/"):
            below = [each for each in paths if each not in {path, "/"} and owner(each) == path]
            yield from ((path, each) for each in below)
            if path != "/":
                yield path.rstrip("/"), path
    yield from (pair for pair in needs if set(pair) <= set(paths))


def owner(path: str) -> str:
    """The stack that has a resource: ``/`` or ``group/``."""
    above, dot, _ = path.rstrip("/").rpartition(".")
    return f"{above}/" if dot else "/"


def needs_of_steps(life: Life) -> list[set[tuple[str, str]]]:
    """For each step who needs whom, in the template before it or in those of it."""
    before: set[tuple[str, str]] = set()
    steps = []
    for step in life["steps"]:
        bodies = [step[key] for key in ("body", "second") if key in step]
        after = [set(needs(body["template"])) for body in bodies]
        steps.append(before.union(*after))
        before = steps[-1]
    return steps


def needs(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, definition in template["resources"].items():
        yield from ((name, need) for need in definition.get("depends_on", ()))
        yield from ((name, need) for need in sources(definition.get("properties")))


def sources(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "get_attr" in value:
            yield value["get_attr"][0]
        for inner in value.values():
            yield from sources(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sources(inner)
