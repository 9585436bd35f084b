"""Effects of an action on a machine: the verbs that are ordered, and the data that is lost.

Kinds compute effects from properties alone (``Resource.effect_of_update`` and so on), so that a
plan shows the work of handlers beforehand::

    Instance.effect_of_update(before, after, {"image"}).verbs  # ("rebuild",)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Impact(StrEnum):
    """How much an update in place disturbs the machine."""

    PATCH = "patch"  # fields change; the machine goes on as it is
    SERVICE = "service"  # its power changes, or steps run on it
    REBUILD = "rebuild"  # it is rebuilt; unless it boots an ISO, its root disk is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The free node that a create looks for; ``waits``: until there is one.

    ``candidates`` and ``excluded``: nodes by UUID or name.
    """

    resource_class: str
    traits: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    waits: bool = False

    @classmethod
    def of(cls, selector: object) -> Need | None:
        """Return the need of a selector or an allocation, or None if its values are not known."""
        if not isinstance(selector, Mapping):
            return None
        lists = [selector.get(n) or () for n in ("traits", "candidate_nodes", "exclude_nodes")]
        name = selector.get("resource_class")
        parts = [each for values in lists if isinstance(values, list | tuple) for each in values]
        are_known = all(isinstance(values, list | tuple) for values in lists)
        if not (are_known and all(isinstance(each, str) for each in [name, *parts])):
            return None
        traits, candidates, excluded = map(tuple, lists)
        return cls(
            resource_class=str(name), traits=traits, candidates=candidates, excluded=excluded,
            waits=selector.get("wait_for_capacity") is True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """``verbs``: the verbs of the machine, in their order, "power on" and "power off" included.

    ``certain`` False: the effect depends on the state of the machine.  ``driver``,
    ``resource_class`` and ``node`` (UUID or name): of the machine, where properties name them.
    ``is_refused``: nothing is done, and the action fails with ``reason``.  ``needs``: None where
    the node is named.
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
    needs: Need | None = None


NO_EFFECT = Effect()
