"""The plan of an update, made from the stored rows and the nodes that templates name.

plan, document, reads = planning.plan(stored, new, converges=False)
reads.basis()  # the state of each node, and the values of each lookup, that the plan depends on
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.orchestration import foresight, stack
from bloomery.orchestration.foresight import capacity
from bloomery.orchestration.orders import machine_pages, plan_basis
from bloomery.orchestration.orders.machine_pages import MachinePage, PageMachines
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.queries import access, step_times
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.outputs import ReadableStacks
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources.base import ResourceContext
from bloomery.orchestration.resources.composite import Composite
from bloomery.orchestration.resources.lookup import Lookup
from bloomery.orchestration.resources.machines import Json, find_node

_NO_PAGE: Final = MachinePage()


class NodeReads:
    """Reads nodes for a plan, with the rights of the caller, and keeps what it has seen of them."""

    def __init__(
        self, ctx: StackContext, root_uuid: str | None = None, page: MachinePage = _NO_PAGE
    ) -> None:
        """``root_uuid``: of the tree that is planned, which has ``page``; None: it is not there."""
        self._ctx, self._root_uuid = ctx, root_uuid
        self._values: dict[str, str] = {}
        self._machines = PageMachines(ctx.services, ctx.request, page, with_reserved=True)
        self._has_service = ctx.runtime.machines is not None
        self._nodes: dict[str, Json] = {}

    def functions(self) -> dict[str, Any]:
        """Return the functions of an ``ExistingStack``."""
        if not self._has_service:
            return {"look_up": self._look_up}
        return {
            "look_up": self._look_up,
            "find_node": self._find,
            "list_free": self._machines.list_available,
        }

    def _look_up(
        self, name: str, kind: type[Lookup], properties: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        runtime = self._ctx.runtime
        context = ResourceContext(
            stack_name="", stack_id="", utc=runtime.utc_s, random=runtime.random,
            machines=self._machines if self._has_service else None,
            stacks=ReadableStacks(lambda: self._ctx, self._root_uuid),
        )  # fmt: skip
        values, hidden = kind.read(properties, context)
        ident, digest = (
            hashlib.sha256(json.dumps(self._ctx.sealer.sign(each)).encode()).hexdigest()[:16]
            for each in ({"kind": kind.__name__, **properties}, values)
        )  # signed: a hash alone would confirm a guessed secret
        text = plan_basis.values_text(name, values, digest=digest, is_hidden=bool(hidden))
        self._values[f"{name} {ident}"] = text
        return values, hidden

    def _find(self, ident: str) -> Json | None:
        node = find_node(self._machines, ident)
        if node is not None:
            self._nodes[node["uuid"]] = node
        return node

    def note_firmware(self, plan: Plan) -> None:
        """Note for the basis what the catalogue of firmware would change of each machine."""
        for key, action in plan:
            hardware = (action.properties or {}).get("hardware")
            if isinstance(hardware, Mapping) and hardware.get("catalogue"):
                text = f"firmware of {key.name}: {action.effect.reason}"
                self._values[f"firmware of {key.name}"] = text

    def capacity(self, plan: Plan, document: Mapping[str, Any]) -> list[Json]:
        """Return the nodes of the classes that a plan needs, or gives back, and what it leaves."""
        if not self._has_service:
            return []
        effects = [action.effect for action in plan.actions.values()]
        needs = [effect.needs for effect in effects if effect.needs is not None]
        deleted = [effect.resource_class for effect in effects if "deleted" in effect.verbs]
        classes = {need.resource_class for need in needs} | {each for each in deleted if each}
        returned = {
            step["machine"]
            for step in document["steps"]
            if "deleted" in step["verbs"] and step["machine"]
        }
        nodes = {
            name: self._machines.list_nodes({"resource_class": name}) for name in sorted(classes)
        }
        return capacity.list_rows(needs, nodes, returned)

    def basis(self) -> dict[str, dict[str, str]]:
        """Return what the plan has seen of nodes and of lookups, for its basis."""
        nodes = {uuid: plan_basis.node_text(node) for uuid, node in self._nodes.items()}
        return {plan_basis.NODES: nodes, plan_basis.VALUES: self._values}


def plan(
    stored: StoredStack, new: stack.Stack, *, converges: bool
) -> tuple[Plan, dict[str, Any], NodeReads]:
    """Return the plan of an update, its document, and the nodes that it has read."""
    services, root_uuid = stored.ctx.services, stored.row.root_uuid
    page = _NO_PAGE
    if stored.ctx.runtime.machines is not None:
        with services.db.read() as conn:
            page = machine_pages.read_tree(conn, root_uuid)
        owner = access.stored_caller(services, stored.row)
        stored.machines = PageMachines(services, owner, page, with_reserved=True)
    reads = NodeReads(stored.ctx, root_uuid, page)
    existing = _existing_stack(stored, reads, converges=converges)
    planned = foresight.plan(stored.definition, new, existing)
    reads.note_firmware(planned)
    return planned, step_times.document(stored.ctx, stored.row, planned), reads


def _existing_stack(stored: StoredStack, reads: NodeReads, *, converges: bool) -> ExistingStack:
    def existing_child(member: StackMember) -> ExistingStack | None:
        child = child_of(member)
        return None if child is None else _existing_stack(child, reads, converges=converges)

    return ExistingStack.of_rows(
        stored.definition,
        stored.resources(),
        stored.leftovers(),
        child=existing_child,
        template=stored.definition,
        **reads.functions(),
        converges=converges,
    )


def child_of(member: StackMember) -> StoredStack | None:
    resource = member.resource()
    child = resource.child() if isinstance(resource, Composite) else None
    return child if isinstance(child, StoredStack) else None
