"""Why a life may differ from that in Heat: a name, a reason, how many views, and which.

A reason names a decision of ours or an accident of Heat that clients cannot rely on.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from tests.conformance.life_views import Difference


class Allowance(NamedTuple):
    why: str
    most: int  # views of the seed that is recorded; other seeds have other numbers
    applies: Callable[[Difference], bool]


ALLOWED: Final[Mapping[str, Allowance]] = {}


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
