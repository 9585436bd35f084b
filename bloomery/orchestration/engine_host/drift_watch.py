"""The drift watch, which reports machines that differ from their stacks, without a request.

It reports outputs of other stacks that have changed since a stack has read them, too.  It compares
as a check does (``find_differences``), with rows that are read together, and with the rights of the
stack's last caller: a record that this caller may not see is "not found", and its values are not
reported.  The watch reports each difference once and its end once, and
stores the reported differences.  It changes no machine.  If ``[engine]drift_sets_check_failed`` is
set, an order to mark them unhealthy sets such resources CHECK_FAILED.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors, plugins, secrets
from bloomery.db import (
    credentials,
    events,
    resources,
    rows,
    stack_drift,
    stack_locks,
    stacks,
    tree_values,
    trees,
)
from bloomery.metrics import METRICS
from bloomery.model.stacks import Event, OrderKind, Properties, Stack, StoredResource
from bloomery.operations.context import Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.orders import acceptance, machine_pages
from bloomery.orchestration.orders.machine_pages import MachinePage, PageMachines
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.outputs import ReadableStacks
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources import base, stepwise
from bloomery.orchestration.resources.machine_records import MachineRecord
from bloomery.orchestration.resources.machines import Busy
from bloomery.orchestration.resources.node import Node
from bloomery.orchestration.resources.outside import StackOutputs
from bloomery.orchestration.resources.states import Action, Status

LOG = logging.getLogger(__name__)

DRIFT: Final = "DRIFT"  # the action of its events: FAILED is a difference, COMPLETE its end
REASON: Final = "Drifted: "
Differences = Mapping[str, str]  # sentence by field


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The rows of one page, read in one snapshot."""

    resources: Sequence[sa.Row[Any]]
    properties: Mapping[str, Properties]
    data: Mapping[str, dict[str, Any]]
    machines: MachinePage
    former: Mapping[str, Differences]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The present differences of one resource, and the differences reported before."""

    resource: sa.Row[Any]
    differences: Differences
    former: Differences

    @property
    def begun(self) -> list[str]:
        return [text for name, text in self.differences.items() if self.former.get(name) != text]

    @property
    def ended(self) -> list[str]:
        return [name for name in self.former if name not in self.differences]


class DriftWatch:
    """``on_accepted`` is called with the root of a tree that has an order to mark a resource."""

    def __init__(
        self,
        services: Services,
        runtime: EngineRuntime,
        *,
        on_events_written: Callable[[], None],
        on_accepted: Callable[[str], None],
    ) -> None:
        assert services.sealer is not None, "stacks are stored with a key only"
        self._services, self._runtime, self._sealer = services, runtime, services.sealer
        self._on_events_written, self._on_accepted = on_events_written, on_accepted

    @cached_property
    def _kinds(self) -> Mapping[str, type[stepwise.Stepwise | StackOutputs]]:
        loaded = {name: load() for name, load in plugins.loaders("bloomery.resources").items()
                  if name.startswith("OS::Ironic::") or name == stack_drift.OUTPUTS}  # fmt: skip
        return {name: kind for name, kind in loaded.items() if issubclass(kind, StackOutputs)
                or (issubclass(kind, stepwise.Stepwise) and kind.compares)}  # fmt: skip

    def look(self, after_id: int, size: int, owns: Callable[[str], bool]) -> int | None:
        """Compare a page of machines; return the id of its last row, None: no rows are left."""
        with METRICS.timer("stack_drift_page"):
            with self._services.db.snapshot() as conn:
                page = stack_drift.list_page(conn, after_id, size)
                ours = [row for row in page if row.type in self._kinds and owns(row.root_uuid)]
                look = self._read(conn, ours)
            reports: dict[str, list[Report]] = {}
            for row in look.resources:
                differences, former = self._differences(look, row), look.former.get(row.uuid, {})
                if differences is not None and differences != former:
                    each = Report(resource=row, differences=differences, former=former)
                    reports.setdefault(row.stack_uuid, []).append(each)
            for stack_uuid, of_stack in reports.items():
                with self._services.db.read() as conn:
                    stack = stacks.find(conn, stack_uuid)
                if stack is not None:
                    self._emit_of_stack(stack, of_stack)
            if reports:
                self._on_events_written()
        return page[-1].id if len(page) == size else None

    def _read(self, conn: sa.Connection, page: Sequence[sa.Row[Any]]) -> Look:
        idents: dict[str, set[str]] = {}
        for row in page:
            kind = self._kinds[row.type]
            if issubclass(kind, StackOutputs):
                continue
            if issubclass(kind, MachineRecord):
                nouns = [kind.noun]
            else:
                nouns = ["node", "ports_of"] if issubclass(kind, Node) else ["node"]
            for noun in nouns:
                idents.setdefault(noun, set()).add(row.physical_id)
        uuids = [row.uuid for row in page]
        stored = {row.properties_uuid for row in page if row.properties_uuid}
        properties = resources.properties_of(conn, stored, self._sealer)
        return Look(
            resources=page,
            properties=properties,
            data=resources.data_of(conn, uuids, self._sealer)[0],
            machines=machine_pages.read(conn, idents),
            former=stack_drift.stored(conn, uuids),
        )

    # ---------------------------------------------------------------------------- comparing

    def _differences(self, look: Look, row: sa.Row[Any]) -> Differences | None:
        """Return sentences by field; None: a conductor holds the node, or the comparison failed."""
        try:
            differences = self._resource(look, row).find_differences()
        except Busy:
            return None
        except errors.NotFound as exc:
            return {"physical_id": str(exc)}
        except Exception as exc:  # noqa: BLE001  a fault of one kind must not stop the others
            LOG.warning("stack %s: cannot compare resource %s: %s",
                        row.stack_name, row.name, secrets.brief(exc))  # fmt: skip
            return None
        sentences: dict[str, str] = {}
        for field, sentence in differences:
            sentences[field] = f"{sentences[field]}; {sentence}" if field in sentences else sentence
        return sentences

    def _resource(self, look: Look, row: sa.Row[Any]) -> stepwise.Stepwise | StackOutputs:
        values = look.properties.get(str(row.properties_uuid))
        record = StoredResource(
            name=row.name, type=row.type, uuid=row.uuid, physical_id=row.physical_id,
            data=look.data.get(row.uuid, {}),
        )  # fmt: skip
        caller = None
        if row.caller_project is not None:
            roles = tuple(rows.load(row.roles))
            caller = credentials.Caller(user=row.user, project=row.caller_project, roles=roles)
        request = access.request_of(self._services, row.root_uuid, row.project, caller)
        caller_context = StackContext(
            services=self._services, request=replace(request, project=row.project),
            runtime=self._runtime,
        )  # fmt: skip
        context = base.ResourceContext(
            stack_name=row.stack_name, stack_id=row.stack_uuid, project_id=row.project,
            utc=lambda: self._runtime.utc().timestamp(), random=self._runtime.random,
            machines=PageMachines(self._services, request, look.machines),
            stacks=ReadableStacks(lambda: caller_context, row.root_uuid),
        )  # fmt: skip
        properties = {} if values is None else values.data
        return self._kinds[row.type](record, properties, context)

    # ------------------------------------------------------------------------------ reporting

    def _emit_of_stack(self, stack: Stack, reports: Sequence[Report]) -> None:
        """Write the reports of a stack's resources, and mark the resources if configured."""
        request = access.stored_caller(self._services, stack)
        ctx = StackContext(
            services=self._services, request=request, runtime=self._runtime,
            on_accepted=self._on_accepted,
        )  # fmt: skip
        redaction = StoredStack(ctx, stack).redaction
        masked = [
            replace(each, differences={
                name: redaction.masked(text) for name, text in each.differences.items()
            })
            for each in reports
        ]  # fmt: skip
        written, new_events = self._services.db.transact(
            lambda conn: self._write(conn, stack, masked)
        )
        acceptance.send(ctx, stack, None, new_events)
        for each in written:
            METRICS.send_counter("stack_drift:begun", len(each.begun))
            METRICS.send_counter("stack_drift:ended", len(each.ended))
            if self._services.conf.engine.drift_sets_check_failed:
                self._mark(ctx, stack, each)

    def _write(
        self, conn: sa.Connection, stack: Stack, reports: Sequence[Report]
    ) -> tuple[list[Report], list[Event]]:
        """Store reports and their events; return both.

        Leave out resources that have changed, and reports of another engine.
        """
        stack_locks.hold(conn, stack.root_uuid)
        stored = stack_drift.stored(conn, [each.resource.uuid for each in reports])
        written: list[Report] = []
        new: list[Event] = []
        for each in reports:
            row = each.resource
            former = stored.get(row.uuid, {})
            if former != dict(each.former) or former == each.differences:
                continue
            if not stack_drift.is_unchanged(conn, row):
                continue
            stack_drift.replace(conn, row.uuid, each.differences, now=rows.now())
            written.append(each)
            if each.begun:
                new.append(self._event(stack, each, Status.FAILED, "; ".join(each.begun)))
            if each.ended:
                reason = f"as the template says again: {', '.join(each.ended)}"
                new.append(self._event(stack, each, Status.COMPLETE, reason))
        trees.insert_events(conn, [tree_values.encode_event(event) for event in new])
        events.insert(conn, [trees.relay_row(each, stack) for each in _of_stack(stack, new)])
        return written, new

    def _event(self, stack: Stack, report: Report, status: Status, reason: str) -> Event:
        return Event(
            uuid=self._runtime.new_id(), stack_uuid=stack.uuid, root_uuid=stack.root_uuid,
            created_at=self._runtime.utc(), action=DRIFT, status=status, name=report.resource.name,
            type=report.resource.type, physical_id=report.resource.physical_id, reason=reason,
        )  # fmt: skip

    def _mark(self, ctx: StackContext, stack: Stack, report: Report) -> None:
        """Accept an order that sets CHECK_FAILED, or CHECK_COMPLETE after the drift has ended."""
        row = report.resource
        is_marked = (row.action, row.status) == (Action.CHECK, Status.FAILED)
        is_foreign = is_marked and not row.reason.startswith(REASON)  # of a check or an operator
        if is_foreign or is_marked == bool(report.differences):
            return
        text = "; ".join(report.differences.values()) or "as the template says again"
        reason = f"{REASON}resources.{row.name}: {text}" if report.differences else text
        payload = {"resource": row.uuid, "unhealthy": not is_marked, "reason": reason}
        status = Status.COMPLETE if is_marked else Status.FAILED

        def mark(conn: sa.Connection) -> None:
            if not stack_drift.is_unchanged(conn, row):
                raise acceptance.Overtaken
            resources.set_state(conn, row.uuid, action=Action.CHECK, status=status, reason=reason)

        with suppress(acceptance.Overtaken):  # the state of a later action counts
            acceptance.accept(ctx, acceptance.Change(
                stack=stack, kind=OrderKind.MARK_UNHEALTHY, payload=payload, check=mark,
                renews=False,
            ))  # fmt: skip


def _of_stack(stack: Stack, resource_events: Sequence[Event]) -> list[Event]:
    """Return the events of the stack: one for new differences, one for ended differences."""
    return [
        Event.of_stack(
            stack, uuid=stack.uuid, created_at=of_status[0].created_at, action=DRIFT, status=status,
            reason="; ".join(f"{each.name}: {each.reason}" for each in of_status),
        )
        for status in (Status.FAILED, Status.COMPLETE)
        if (of_status := [each for each in resource_events if each.status == status])
    ]  # fmt: skip
