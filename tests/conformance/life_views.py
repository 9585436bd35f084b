"""What of two observations of one life must be equal, each view of them under a name.

Orders are compared where they are determined: within a resource, between a resource and what it
needs, between a stack and its resources, between a group and its members.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

Observation = Mapping[str, Any]
Life = Mapping[str, Any]
UNSEEN: Final = "nothing"
MAKE: Final = "(?!DELETE)"
DELETE: Final = "DELETE"


class Difference(NamedTuple):
    life: str
    step: int
    view: str
    theirs: Any
    ours: Any
    heat: Sequence[Observation]  # of the whole life

    @property
    def places(self) -> set[str]:
        """The resources and stacks that the view is of."""
        return {word.removesuffix("_is") for word in self.view.split()}

    def __str__(self) -> str:
        theirs, ours = (json.dumps(side)[:700] for side in (self.theirs, self.ours))
        place = f"{self.life} step {self.step}: {self.view}"
        return f"{place}\n  Heat:     {theirs}\n  Bloomery: {ours}"


class Needs(NamedTuple):
    """Pairs of names, of which the first needs the second."""

    before: set[tuple[str, str]]
    after: set[tuple[str, str]]


def differences(
    life: Life, theirs: Sequence[Observation], ours: Sequence[Observation]
) -> Iterator[Difference]:
    """Yield each view in which ``ours`` differs, but those that are loose in Heat."""
    needs = needs_of_steps(life)
    for step, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        slow = life["steps"][step].get("slow", "")
        left, right = views(their, needs[step], slow), views(our, needs[step], slow)
        loose = set(their.get("loose", ()))
        for view in sorted({*left, *right}):
            if view not in loose and left.get(view, UNSEEN) != right.get(view, UNSEEN):
                sides = left.get(view, UNSEEN), right.get(view, UNSEEN)
                yield Difference(life["id"], step, view, *sides, theirs)


def views(seen: Observation, needs: Needs, slow: str = "") -> dict[str, Any]:
    """Return what is seen, by names; ``slow``: was in flight when a second update came.

    Who needs another is made after it.  Who needed another is deleted before it, or else changed.
    """
    events = [line.split(" ", 1) for line in seen["events"]]
    deletions_in_turn(events)
    paths = sorted({path for path, _ in events})
    shown = {"status": seen["status"], "reason": seen["reason"]}
    for section in ("outputs", "resources"):
        shown |= {f"{section} {name}": value for name, value in seen[section].items()}
    for path in paths:
        shown[f"events {path}"] = [words for each, words in events if each == path]
    for first, second in sorted(above_and_below(paths)):
        shown[f"order {first} {second}"] = merged(events, {first: "", second: ""})
    in_flight = [slow, "UPDATE_COMPLETE"]
    if in_flight in events:  # the end of the first update: all others of the second run beside it
        events.remove(in_flight)
    for name, (pairs, first_words, second_words) in {
        "made after": (needs.after, MAKE, MAKE),
        "deleted before": (needs.before, DELETE, DELETE),
        "changed before the end of": (needs.before, MAKE, DELETE),
    }.items():
        for first, second in sorted(pair for pair in pairs if set(pair) <= set(paths)):
            words = {first: first_words, second: second_words}
            shown[f"{first} {name} {second}"] = merged(events, words)
    return shown


def merged(events: Sequence[Sequence[str]], words: Mapping[str, str]) -> list[str]:
    """The events of two places in one order; ``words``: for each which count, a pattern."""
    return [" ".join(event) for event in events if _counts(event, words.get(event[0]))]


def _counts(event: Sequence[str], pattern: str | None) -> bool:
    return pattern is not None and re.match(pattern, event[1]) is not None


def above_and_below(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each stack with a resource of it, and each group with its own stack."""
    for path in paths:
        if path.endswith("/"):
            below = [each for each in paths if each not in {path, "/"} and owner(each) == path]
            yield from ((path, each) for each in below)
            if path != "/":
                yield path.rstrip("/"), path


def owner(path: str) -> str:
    """The stack that has a resource: ``/`` or ``group/``."""
    above, dot, _ = path.rstrip("/").rpartition(".")
    return f"{above}/" if dot else "/"


def deletions_in_turn(events: list[list[str]]) -> None:
    """Let each deletion of one name end before the next begins: two old ones are siblings."""
    for path in {path for path, _ in events}:
        places = [n for n, event in enumerate(events) if event[0] == path]
        words = [events[n][1] for n in places]
        for n in range(len(words) - 2):
            if words[n : n + 3] == ["DELETE_IN_PROGRESS"] * 2 + ["DELETE_COMPLETE"]:
                words[n + 1], words[n + 2] = words[n + 2], words[n + 1]
        for n, word in zip(places, words, strict=True):
            events[n] = [path, word]


def needs_of_steps(life: Life) -> list[Needs]:
    """For each step who needs whom, before it and in what it asks for."""
    before: set[tuple[str, str]] = set()
    steps = []
    for step in life["steps"]:
        bodies = [step[key] for key in ("body", "second") if key in step]
        after = [set(pairs(body["template"])) for body in bodies] or [set()]
        steps.append(Needs(before, after[-1]))
        before = before if step.get("ends") == "ROLLBACK" else after[-1]
    return steps


def pairs(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
