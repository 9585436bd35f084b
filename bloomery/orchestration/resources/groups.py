"""Members of groups and chains: names, definitions, the template of their stack, batches.

Everything here is a function of plain documents, so that the resource that acts and the plan that
only tells say the same::

    names = groups.names(3, skipped={"1"})  # ["0", "2", "3"]
    members = {name: groups.member(definition, name, "%index%") for name in names}
    groups.document(members)  # the template of the child stack
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from bloomery import errors
from bloomery.orchestration.properties.schema import secret_names
from bloomery.orchestration.resources import instance_schema

VERSION: Final = "2015-04-30"  # of the templates that Heat makes itself
SECRETS: Final = frozenset(
    {
        *((name,) for name in secret_names(instance_schema.PROPERTIES)),
        ("driver_info",),
        ("properties", "properties"), ("resource_properties", "properties"),
    }
)  # fmt: skip  # ends of paths where a group has what is secret of its members, whatever they are

Members: TypeAlias = dict[str, Mapping[str, Any]]  # by name, in the order of their indices


def names(count: int, skip_list: Collection[str] = ()) -> list[str]:
    """The first ``count`` indices as names, without those that are never used again."""
    kept = (name for name in map(str, itertools.count()) if name not in skip_list)
    return list(itertools.islice(kept, count))


def member(definition: Mapping[str, Any], name: str, index_var: str) -> dict[str, Any]:
    """The definition of one member: ``index_var`` becomes its name in values of properties."""
    body = {key: value for key, value in definition.items() if value is not None}
    if "properties" in body:
        body["properties"] = substitute(body["properties"], index_var, name)
    return body


def substitute(value: Any, placeholder: str, name: str) -> Any:
    """``value`` with ``name`` for the placeholder in every text; keys of maps stay as they are."""
    if isinstance(value, str):
        return value.replace(placeholder, name)
    if isinstance(value, Mapping):
        return {key: substitute(item, placeholder, name) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, placeholder, name) for item in value]
    return value


def document(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The template of a child stack that has exactly these members."""
    return {"heat_template_version": VERSION, "resources": dict(members)}


def members_of(document: Mapping[str, Any]) -> Members:
    """The members that the template of a child stack tells of."""
    return dict(document.get("resources") or {})


# ------------------------------------------------------------------------------------- removal


def resource_lists(policies: Iterable[Mapping[str, Any]] | None) -> list[Any]:
    """What ``removal_policies`` name, in order: names, indices or reference ids."""
    return [item for policy in policies or () for item in policy.get("resource_list") or ()]


def skip_list(
    remembered: Iterable[str],
    named: Iterable[Any],
    references: Mapping[str, Any] | None,
    *,
    forget: bool,
) -> list[str]:
    """The names never to be used again, after a policy named some.

    ``references``: reference id of each present member, by name; None while there is no group yet,
    which may then skip any name.  Later, what names neither a member nor one that was removed
    before says nothing.  ``forget``: the mode ``update``, which starts anew.
    """
    texts = [str(item) for item in named]
    before = list(remembered)
    if references is not None:
        known = {name: name for name in (*before, *references)}
        by_reference = {str(reference): name for name, reference in references.items()}
        texts = [match[0] for item in texts if (match := _names_of(item, known, by_reference))]
    return list(dict.fromkeys(texts if forget else [*before, *texts]))


def _names_of(text: str, *tables: Mapping[str, str]) -> list[str]:
    return [table[text] for table in tables if text in table]


# ------------------------------------------------------------------------------------- batches


class Batch(NamedTuple):
    """One update of the child stack: members after it, and how many take the new definition."""

    size: int
    changed: int


def batches(*, target: int, current: int, most: int, floor: int) -> Iterator[Batch]:
    """Yield the steps from ``current`` members to ``target`` new ones.

    At most ``most`` members (at least 1) change in a step; ``floor`` stay in service, for which the
    group may grow beyond its target; the surplus goes in the last step::

        list(batches(target=3, current=3, most=1, floor=3))
        # [Batch(4, 1), Batch(4, 1), Batch(4, 1), Batch(4, 1), Batch(3, 0)]
    """
    done = 0
    while not done >= current == target:
        changed = min(most, target - done)
        kept = min(floor, target, current)
        size = changed + max(min(current, target - changed), kept)
        yield Batch(size, changed)
        done += changed - max(size - max(current, target), 0)
        current = size


def time_of_each(count: int, *, pause_s: float, timeout_s: float) -> float:
    """How long one of ``count`` updates may take, in whole minutes, when all shall fit."""
    pauses_s = pause_s * max(count - 1, 0)
    if pauses_s >= timeout_s:
        raise errors.StackValidationFailed(
            reason=f"cannot change the group in {count} batches: pauses of {pauses_s:g} s do not "
            f"fit into the {timeout_s:g} s of the stack; raise max_batch_size or the stack's "
            "timeout, or lower pause_time"
        )
    return math.ceil((timeout_s - pauses_s) / 60) * 60.0


def after_batch(
    present: Mapping[str, Mapping[str, Any]],
    batch: Batch,
    names_after: Sequence[str],
    target: int,
    define: Callable[[str], Mapping[str, Any]],
) -> Members:
    """The members after one batch: who is not in ``names_after`` leaves, who is missing comes.

    New members are the first to take the new definition; what is left of the batch goes to the
    highest indices that still have the old one, and to those beyond ``target`` last.  Members whose
    names were removed are not among ``batch``'s current ones, so that the new ones in their place
    are what the batch adds.
    """
    missing = [name for name in names_after if name not in present]
    old = [name for name in names_after if name in present and present[name] != define(name)]
    inside = set(names_after[:target])
    old.sort(key=lambda name: (name not in inside, -int(name)))
    changed = {*missing, *old[: max(batch.changed - len(missing), 0)]}
    return {name: define(name) if name in changed else present[name] for name in names_after}


# -------------------------------------------------------------------------------------- chains


def chain_document(
    types: Sequence[str], properties: Mapping[str, Any] | None, *, at_once: int
) -> dict[str, Any]:
    """The template of a chain: member i waits for member i - ``at_once``."""
    members: dict[str, Mapping[str, Any]] = {}
    for index, kind in enumerate(types):
        body: dict[str, Any] = {"type": kind}
        if properties:
            body["properties"] = properties
        if index >= at_once:
            body["depends_on"] = [str(index - at_once)]
        members[str(index)] = body
    return document(members)
