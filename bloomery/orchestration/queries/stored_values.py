"""Values of stored stacks and resources: IDs, attributes and outputs.

    stack = StoredStack(ctx, row)
    stack.fetch(["web", "db"])  # one query; other resources are fetched on first use
    stack.output("address")

Only resources in use are fetched, so an output costs the resources that it refers to.  A child
stack is found only through its parent stack, even if another stack's resource has its ID.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from bloomery import errors
from bloomery.db import resources, stacks, trees
from bloomery.model import stacks as model
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.engine.definitions import identity_of, stack_of
from bloomery.orchestration.engine.stack_values import (
    ReadableResource,
    ReadableStack,
    RowFacade,
    StackSiblings,
)
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.machine_orders import ResourceOrder, mark
from bloomery.orchestration.resources.machines import Machines
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.stack.stacks import PendingResource
from bloomery.orchestration.template.dialect import Key, Section
from bloomery.orchestration.template.functions import base as functions
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import ResourceView, StackView

_MINUTE_S: Final = 60
_NO_ORDERS: Final[Mapping[str, ResourceOrder]] = {}


class StoredStack(ReadableStack):
    """A stored stack; its definition is parsed, and its resources are fetched, on first use."""

    def __init__(
        self,
        ctx: StackContext,
        row: model.Stack,
        orders: Mapping[str, ResourceOrder] = _NO_ORDERS,
        machines: Machines | None = None,
    ) -> None:
        """``orders``: for resources of the tree, by UUID; they are read as if marked already.

        ``machines``: of all stacks of the tree, read together; None: each is read by itself.
        """
        self.ctx = ctx
        self.row = row
        self.orders = orders
        self.machines = machines
        self._members: dict[str, StackMember] = {}
        self._leftovers: dict[str, list[StackMember]] = {}
        self._has_all = False
        self._sides: dict[str, Stack] = {}  # templates by UUID, of rows of other templates

    @functools.cached_property
    def template(self) -> model.Template:
        with self.ctx.services.db.read() as conn:
            return trees.get_template(conn, self.row.template_uuid, self.ctx.sealer)

    @functools.cached_property
    def parent(self) -> StoredStack | None:
        if self.row.owner_uuid is None:
            return None
        with self.ctx.services.db.read() as conn:
            owner = stacks.find(conn, self.row.owner_uuid)
        return None if owner is None else StoredStack(self.ctx, owner)

    @functools.cached_property
    def definition(self) -> Stack:  # type: ignore[override]  # parsed on first use
        return self.defined_by(self.template)

    def defined_by(self, template: model.Template) -> Stack:
        """Return the stack that another template of it defines."""
        row, parent = self.row, self.parent
        owner = str(row.owner_resource)
        return stack_of(
            template,
            identity_of(row.name, row.uuid, row.project),
            self.ctx.runtime,
            timeout_s=self._timeout_s,
            depth=row.depth,
            parent=None if parent is None else parent.definition,
            facade=None if parent is None else RowFacade(lambda: parent.member(owner)),
        )

    @property
    def _timeout_s(self) -> float:
        minutes, engine = self.row.timeout_mins, self.ctx.services.conf.engine
        return minutes * _MINUTE_S if minutes else engine.stack_action_timeout

    @functools.cached_property
    def secrecy(self) -> Secrecy:
        parent, name = self.parent, str(self.row.owner_resource)
        return Secrecy(self.definition, parent=None if parent is None else (parent.secrecy, name))

    @property
    def redaction(self) -> Redaction:
        return self.definition.redaction

    def description_of(self, name: str) -> str:
        """Return the description of a resource, as the template has it."""
        text = self.definition.written(name, Key.DESCRIPTION)
        return text if isinstance(text, str) else ""

    def kind_of(self, row: StoredResource) -> type[base.Resource]:
        """Return the kind of a resource; its own template decides if the stack's differs.

        The files of a former template are stored with that template only.
        """
        here = self.definition.definitions.get(row.name)
        if here is None or here.type != row.type:
            own = self.side_of(row)
            if row.name in own.definitions:
                return own.kind(row.name)
        return self.definition.kind_of_type(row.name, row.type)

    def side_of(self, row: StoredResource) -> Stack:
        """Return the stack with the template that a row belongs to."""
        if row.template_uuid == self.row.template_uuid:
            return self.definition
        if row.template_uuid not in self._sides:
            with self.ctx.services.db.read() as conn:
                template = trees.get_template(conn, row.template_uuid, self.ctx.sealer)
            self._sides[row.template_uuid] = self.defined_by(template)
        return self._sides[row.template_uuid]

    @functools.cached_property
    def names(self) -> Collection[str]:
        """The names of all resources of the template, regardless of their conditions."""
        section = self.definition.definition.template.section(Section.RESOURCES)
        return section.keys() if isinstance(section, Mapping) else ()

    def fetch(self, names: Collection[str] | None) -> None:
        """Read the rows of these resources, or of all with their leftovers; each only once."""
        missing = None if names is None else set(names) - self._members.keys()
        if self._has_all or (missing is not None and not missing):
            return
        sealer = self.ctx.sealer
        with self.ctx.services.db.read() as conn:
            rows = resources.list_of_stack(
                conn, self.row.uuid, sealer, missing, leftovers=missing is None
            )
            uuids = {row.properties_uuid for row in rows if row.properties_uuid}
            properties = resources.properties_of(conn, uuids, sealer) if uuids else {}
        for row in rows:
            if (values := properties.get(str(row.properties_uuid))) is not None:
                row.properties = values.data
            if (order := self.orders.get(row.uuid)) is not None:
                mark(row, order)
            if row.is_current:
                self._members.setdefault(row.name, StackMember(self, row))
            else:
                self._leftovers.setdefault(row.name, []).append(StackMember(self, row))
        self._has_all = missing is None

    def member(self, name: str) -> StackMember | None:
        self.fetch([name])
        return self._members.get(name)

    def resources(self) -> Mapping[str, StackMember]:
        self.fetch(None)
        return self._members

    def leftovers(self) -> Mapping[str, Sequence[StackMember]]:
        """Return replaced resources that still exist, by name, oldest first."""
        self.fetch(None)
        return self._leftovers

    # ----------------------------------------------------------------------------------- outputs

    def view(self) -> StackView:
        return self.definition.definition.view(_Members(self))

    def fetch_for(self, outputs: Collection[str]) -> None:
        """Read the rows of the resources to which outputs refer."""
        view, definitions = self.definition.definition.view({}), self.definition.outputs
        trees = [definitions[name].value for name in outputs if definitions[name].enabled]
        self.fetch({each.resource for each in functions.references(trees, view)})

    def outputs(self) -> Mapping[str, Any]:
        self.fetch_for(self.definition.outputs.keys())
        return super().outputs()

    def context(self) -> base.ResourceContext:
        together = {} if self.machines is None else {"machines": self.machines}
        return self.ctx.runtime.resource_context(
            self.row, timeout_s=self._timeout_s,
            children=StoredChildren(self), siblings=StackSiblings(self), **together,
        )  # fmt: skip


class _Members(Mapping[str, ResourceView]):
    """The resources of a stack for intrinsic functions; each is fetched on first use."""

    def __init__(self, stack: StoredStack) -> None:
        self._stack = stack

    def __getitem__(self, name: str) -> ResourceView:
        if name not in self._stack.names:
            raise KeyError(name)
        return self._stack.member(name) or PendingResource(name, self._stack.definition)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stack.names)

    def __len__(self) -> int:
        return len(self._stack.names)


class StackMember(ReadableResource):
    """A resource of a stored stack."""

    def __init__(self, stack: StoredStack, row: StoredResource) -> None:
        self.stack = stack
        self.row = row

    @property
    def stored(self) -> StoredResource:
        return self.row

    @functools.cached_property
    def kind(self) -> type[base.Resource]:
        return self.stack.kind_of(self.row)

    @property
    def definitions(self) -> Stack:  # type: ignore[override]  # read on first use
        return self.stack.side_of(self.row)

    @functools.cached_property
    def _resource(self) -> base.Resource:
        row = self.row
        return self.kind(row, row.properties, self.stack.context(), update_policy=row.policy)

    def resource(self) -> base.Resource:
        return self._resource


class StoredChildren:
    """The child stacks of a stack (``children.Children``), read-only."""

    converges = False

    def __init__(self, parent: StoredStack) -> None:
        self._parent = parent

    def find(self, stack_id: str) -> StoredStack | None:
        with self._parent.ctx.services.db.read() as conn:
            row = stacks.find(conn, stack_id)
        if row is None or row.deleted_at or row.owner_uuid != self._parent.row.uuid:
            return None
        return StoredStack(self._parent.ctx, row, self._parent.orders, self._parent.machines)

    def _refuse(self, *arguments: object) -> NoReturn:
        raise errors.NotSupported(feature="Changing a stack while it is read")

    create = update = delete = cancel = preempt = put_off = _refuse
    suspend = resume = check = snapshot = _refuse
