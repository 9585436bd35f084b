"""What an action on a resource does to a machine: what is ordered of it, and what it loses.

Kinds answer by functions of properties alone (``Resource.effect_of_update`` and its two like), so
that a plan says beforehand what handlers do::

    Instance.effect_of_update(before, after, {"image"}).verbs  # ("rebuild",)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Impact(StrEnum):
    """How deep a change in place goes."""

    PATCH = "patch"  # fields change; the machine goes on as it is
    SERVICE = "service"  # it is switched, or steps run on it; what is on its disks stays
    REBUILD = "rebuild"  # its system is written anew; what is on its root disk is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """``verbs``: ordered of the machine, in this order; "power on" and "power off" are two.

    ``certain`` False: the state of the machine decides, which properties do not tell.  ``driver``
    and ``resource_class`` of the machine, and its UUID or name as ``node``, where properties tell
    them.  ``is_refused``: nothing is done, and the action fails; ``reason`` says why.
    """

    impact: Impact = Impact.PATCH
    verbs: tuple[str, ...] = ()
    loses_data: bool = False
    reason: str = ""
    certain: bool = True
    driver: str | None = None
    resource_class: str | None = None
    node: str | None = None
    is_refused: bool = False


NO_EFFECT = Effect()
