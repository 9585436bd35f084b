"""Lookups in plans: their values as they are now, which other resources of the plan refer to.

A traversal does not use them: it reads the values when it reaches the lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Knowledge
from bloomery.orchestration.plan.plans import NOT_SET, Difference, Verb, between
from bloomery.orchestration.plan.rules import Candidate, Decision
from bloomery.orchestration.resources.lookup import HIDDEN, VALUES, LookedUp, Lookup, NotReadYet
from bloomery.orchestration.resources.machines import Busy

HIDDEN_VALUE: Final = "it has the value of a hidden parameter"
HIDDEN_OUTPUT: Final = "it depends on a secret of the other stack"
CHANGED: Final = "its values have changed"
READ_AGAIN: Final = "its values are read again"


def read(builder: PlanBuilder, name: str) -> tuple[Difference, ...]:
    """Read the values of a lookup now; return their differences from those of its row.

    Nothing is read where its properties are not known beforehand.  Values that depend on secrets
    of another stack are not given to resources of this plan.
    """
    look_up, kind = builder.existing.look_up, builder.new.kind(name)
    record = builder.records.get(name)
    if look_up is None or not issubclass(kind, Lookup):
        return ()
    references = builder.after.references(builder.new.definitions[name].properties)
    if any(builder.judge(each) is not Knowledge.KNOWN for each in references):
        return ()
    properties = builder.new.properties(name, builder.after)
    stored = None if record is None else record.data.get(VALUES)
    before = {} if record is None else record.properties
    if stored is not None and not properties["refresh"] and properties == before:
        return ()
    try:
        values, names = look_up(name, kind, properties)
    except (NotReadYet, Busy) as exc:
        builder.warnings.append(f"{name}: {exc}; its values are read in the action")
        return ()
    except errors.Failure as exc:
        builder.lookup_faults[name] = f"cannot use {name}: {exc}"
        return ()
    hidden = {*names, *(record.data.get(HIDDEN) or () if record is not None else ())}
    if not hidden:
        live = builder.existing.live.get(name)
        builder.lookups[name] = LookedUp(
            kind, name, values, None if live is None else live.reference_id()
        )
    return tuple(_differences(builder, kind, stored, values, hidden))


def _differences(
    builder: PlanBuilder, kind: type[Lookup], stored: Any, values: Any, hidden: set[str]
) -> Iterator[Difference]:
    before: Mapping[str, Any] = {} if stored is None else kind.attributes_of(stored)
    after = kind.attributes_of(values)
    for name in kind.shown:
        for leaf in between(before.get(name, NOT_SET), after[name], (name,)):
            if name == "outputs" and len(leaf.path) == 1 and isinstance(leaf.after, dict):
                yield from (
                    _masked(builder, each, hidden) for each in between({}, leaf.after, (name,))
                )
            else:
                yield _masked(builder, leaf, hidden)


def _masked(builder: PlanBuilder, leaf: Difference, hidden: set[str]) -> Difference:
    if hidden.intersection(map(str, leaf.path[1:2])):
        return leaf.masked(leaf.path[:2], HIDDEN_OUTPUT)
    if builder.secrecy.has_hidden([leaf.before, leaf.after]):
        return leaf.masked(leaf.path, HIDDEN_VALUE)
    return leaf


def decide(
    candidate: Candidate, decision: Decision, differences: tuple[Difference, ...]
) -> Decision:
    """Return the decision on an existing lookup, whose update reads its values again."""
    kind, name, builder = candidate.kind, candidate.name, candidate.builder
    if decision.verb is not Verb.UNCHANGED or not issubclass(kind, Lookup):
        return decision
    if differences:
        return Decision(Verb.UPDATE, CHANGED)
    properties = candidate.change.after
    is_read = name in builder.lookups or properties.get("refresh") is False
    if builder.existing.look_up is None or (is_read and name not in builder.lookup_faults):
        return decision
    return Decision(Verb.UPDATE, READ_AGAIN, certain=False)
