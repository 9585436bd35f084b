"""Whether enough nodes are free for the machines that a plan deploys, by class and traits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.plans import MAKE, Key, Verb
from bloomery.orchestration.resources.effects import Need
from bloomery.orchestration.resources.machines import Json

K = TypeVar("K")
MOST_NAMES: Final = 5
NODE: Final = "OS::Ironic::Node"


def check_capacity(builder: PlanBuilder) -> None:
    """Warn where more nodes are needed than are free; refuse what no free node can be.

    Nodes that the plan gives back before may be free in time, so that they make nothing certain.
    """
    list_free = builder.existing.list_free
    if builder.parent is not None or list_free is None:
        return
    needs = {
        key: action.effect.needs
        for key, action in builder.actions.items()
        if action.effect.needs is not None and not action.effect.is_refused
    }
    for name in sorted({need.resource_class for need in needs.values()}):
        of_class = {key: need for key, need in needs.items() if need.resource_class == name}
        free = list_free(name)
        returned = _count_returned(builder, of_class, name)
        _, unmet = _assign(of_class, free)
        if len(unmet) <= returned:
            continue
        names = [key.name for key in of_class]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        nodes = "node" if len(names) == 1 else "nodes"
        returns = f", {returned} given back before," if returned else ""
        builder.warnings.append(
            f"{len(names)} {nodes} of class {name} needed ({', '.join(names[:MOST_NAMES])}{more}), "
            f"and {len(free)} free{returns} as things are: enrol nodes, free some, or use another "
            "class or traits"
        )
        for key in unmet:
            need = of_class[key]
            if not (returned or need.waits or any(_fits(node, need) for node in free)):
                action, traits = builder.actions[key], ", ".join(need.traits)
                reason = f"no free node of class {name}" + (f" has {traits}" if traits else "")
                effect = replace(action.effect, is_refused=True, certain=True, reason=reason)
                builder.actions[key] = replace(action, effect=effect)


def _assign(needs: Mapping[K, Need], free: Sequence[Json]) -> tuple[list[Json], list[K]]:
    """Give each need the fitting node with the fewest traits.

    Return the nodes that are taken, and the needs that get none.
    """
    unassigned = sorted(free, key=lambda node: len(node["traits"] or ()))
    taken, unmet = [], []
    for key, need in sorted(needs.items(), key=lambda item: -len(item[1].traits)):
        node = next((node for node in unassigned if _fits(node, need)), None)
        if node is None:
            unmet.append(key)
        else:
            unassigned.remove(node)
            taken.append(node)
    return taken, unmet


def list_rows(
    needs: Sequence[Need], nodes: Mapping[str, Sequence[Json]], returned: Collection[str]
) -> list[Json]:
    """Return a row for each class and set of traits: its nodes, and those that a plan leaves free.

    ``nodes``: all of each class.  ``returned``: UUIDs of nodes that the plan gives back; they are
    free once they are clean, and not counted in ``left``.  A row whose ``left`` is below zero has
    needs that no free node meets.
    """
    rows: list[Json] = []
    for name in sorted({*nodes, *(need.resource_class for need in needs)}):
        groups: dict[tuple[str, ...], list[Json]] = {}
        for node in nodes.get(name, ()):
            groups.setdefault(tuple(sorted(node["traits"])), []).append(node)
        free = [node for group in groups.values() for node in group if node["is_free"]]
        of_class = dict(enumerate(need for need in needs if need.resource_class == name))
        taken, unmet = _assign(of_class, free)
        needed = Counter(tuple(sorted(node["traits"])) for node in taken)
        missing = Counter(tuple(sorted(of_class[number].traits)) for number in unmet)
        for traits in sorted({*groups, *missing}):
            group = groups.get(traits, [])
            count = sum(node["is_free"] for node in group)
            used = needed[traits] + missing[traits]
            rows.append(
                {
                    "resource_class": name, "traits": list(traits), "nodes": len(group),
                    "reserved": sum(node["instance_uuid"] is not None for node in group),
                    "free": count, "needed": used,
                    "returned": sum(node["uuid"] in returned for node in group),
                    "left": count - used,
                }
            )  # fmt: skip
    return rows


def _fits(node: Json, need: Need) -> bool:
    names = {node["uuid"], node["name"]}
    is_named = not need.candidates or bool(names & {*need.candidates})
    return is_named and not names & {*need.excluded} and {*need.traits} <= {*node["traits"]}


def _count_returned(builder: PlanBuilder, needs: Mapping[Key, Need], name: str) -> int:
    """Count the nodes of a class that the plan gives back before it needs others, or enrols."""
    todo, seen = list(needs), set(needs)
    while todo:
        for key in builder.graph.requires(todo.pop()):
            if key not in seen:
                seen.add(key)
                todo.append(key)
    actions = builder.actions.items()
    freed = [each.effect for key, each in actions if key in seen and "deleted" in each.effect.verbs]
    enrolled = [each.effect for key, each in actions if key.phase == MAKE and each.type == NODE
                and each.verb is not Verb.UNCHANGED]  # fmt: skip
    return sum(each.resource_class in (None, name) for each in (*freed, *enrolled))
