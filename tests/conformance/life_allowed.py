"""Why a life may differ from that in Heat: a name, a reason, how many views, and which.

A reason names a decision of ours or an accident of Heat that clients cannot rely on.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tests.conformance.life_views import UNSEEN, Difference


class Allowance(NamedTuple):
    why: str
    most: int  # views of the seed that is recorded; other seeds have other numbers
    applies: Callable[[Difference], bool]


def _hidden_child(difference: Difference) -> bool:
    return difference.theirs == UNSEEN and any(map(_is_nested, difference.places))


def _is_nested(place: str) -> bool:
    return "." in place or (place != "/" and place.endswith("/"))


def _deleted_early(difference: Difference) -> bool:
    """The view is of what Heat had deleted before the failure, or of a child of it."""
    gone = {
        name
        for seen in difference.heat[: difference.step + 1]
        for name in _deleted_before_failure(seen["events"])
    }
    names = {re.split("[./]", place)[0] for place in difference.places}
    return bool(gone) and (bool(gone & names) or difference.view.startswith("outputs"))


def _deleted_before_failure(events: Sequence[str]) -> Iterator[str]:
    failed = [n for n, line in enumerate(events) if line.startswith("/ UPDATE_FAILED")]
    for line in events[: failed[0]] if failed else ():
        place, words = line.split(" ", 1)
        if words.startswith("DELETE_IN_PROGRESS"):
            yield place


def _cancelled_child(difference: Difference) -> bool:
    reasons = [seen["reason"] for seen in difference.heat[: difference.step + 1]]
    return any(reason.endswith("Stack UPDATE cancelled") for reason in reasons)


def _lost_event(difference: Difference) -> bool:
    """An act of Heat that ended without having begun, among its events."""
    theirs = difference.theirs if isinstance(difference.theirs, list) else []
    words = [line.rpartition(" ")[2] for line in theirs]
    pairs = zip(["", *words], words, strict=False)
    return any(before == word == "UPDATE_COMPLETE" for before, word in pairs)


def _later_deletion(difference: Difference) -> bool:
    """Here what was needed goes when all that needed it have changed; in Heat before that."""
    if " changed before the end of " not in difference.view or UNSEEN in difference[3:5]:
        return False
    lines = difference.ours
    changed = [n for n, line in enumerate(lines) if " DELETE_" not in line]
    deleted = [n for n, line in enumerate(lines) if " DELETE_" in line]
    return bool(changed and deleted) and max(changed) < max(deleted)


def _still_moving(difference: Difference) -> bool:
    """A place of the view was in flight in Heat when the second update came."""
    events = difference.heat[difference.step]["events"]
    starts = [n for n, line in enumerate(events) if line == "/ UPDATE_IN_PROGRESS"]
    latest = dict(line.split(" ", 1) for line in events[: starts[1]]) if len(starts) > 1 else {}
    moving = {place for place, words in latest.items() if words.endswith("_IN_PROGRESS")}
    return bool((moving - {"/", "slow"}) & difference.places)


def _kept(difference: Difference) -> bool:
    """Heat makes once more what the superseded update had made as it is wanted now."""
    events = difference.heat[difference.step]["events"]
    lines = (line.split(" ", 1) for line in events)
    made = collections.Counter(place for place, words in lines if words == "CREATE_COMPLETE")
    return any(made[place] > 1 for place in difference.places)


ALLOWED: Final[Mapping[str, Allowance]] = {
    "children that are gone": Allowance(
        "Heat lists no event of a nested stack that has no resources any more; here all are kept",
        653,
        _hidden_child,
    ),
    "what a failed update had deleted": Allowance(
        "Heat does not make again what the update had removed, and begins anew what it had "
        "replaced; here the former is made again, and of the latter the old one is kept",
        156,
        _deleted_early,
    ),
    "a nested update that was superseded": Allowance(
        "Heat may fail the stack when a nested stack that is updated is updated again",
        48,
        _cancelled_child,
    ),
    "an event that Heat lost": Allowance(
        "of two updates of one resource Heat may leave out where the second began",
        5,
        _lost_event,
    ),
    "a replacement that is kept": Allowance(
        "of two resources of one name, Heat makes a third; here the one that equals the new "
        "definition is kept",
        12,
        _kept,
    ),
    "a resource that is deleted later": Allowance(
        "Heat may delete what was replaced before those that needed it are updated",
        5,
        _later_deletion,
    ),
    "a race that had not come to rest": Allowance(
        "a second sibling was still in flight in Heat when the second update was sent",
        1,
        _still_moving,
    ),
}


def judge(differences: Iterable[Difference], *, counts: bool = True) -> list[str]:
    """Return what is wrong with the differences; nothing if all are allowed.

    ``counts`` False: of another seed, so that only the reasons matter and not how often.
    """
    counted: collections.Counter[str] = collections.Counter()
    faults = []
    for difference in differences:
        if reason := _reason(difference):
            counted[reason] += 1
        else:
            faults.append(str(difference))
    for name, allowance in ALLOWED.items() if counts else ():
        if counted[name] > allowance.most:
            faults.append(f"{name}: {counted[name]} views differ, {allowance.most} are allowed")
        if allowance.most and not counted[name]:
            faults.append(f"{name}: no view differs any more; take it out of life_allowed.py")
    return faults


def _reason(difference: Difference) -> str | None:
    for name, allowance in ALLOWED.items():
        if allowance.applies(difference):
            return name
    return None
