"""A task: one node, reserved for a purpose, and the only way to move it.

    with task_manager.acquire(context, node_uuid, purpose="power on") as task:
        task.process_event("deploy", callback=runner.launch, call_args=(slot, flow))

Shared tasks read; exclusive ones hold the node's reservation.  Waiters of one process queue at the
node's lock in order of arrival; the reservation in the database arbitrates between processes.  Each
reservation has a generation that guards every write: a task whose node was taken over fails with
LockLost, and writes nothing.

A worker is spawned when the ``with`` block ends without an error (``spawn_after``).  The lock stays
with the future that the spawning call returns, and is released when the future is done.

Only ``process_event`` changes the provision state: one transaction writes node row, history,
journal and event row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Generic, ParamSpec, Self, TypeAlias, TypeVar

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import bmc_sharing, notification_utils, states, transition, writes
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.states import State
from bloomery.conductor.writes import NodeEvent, Write
from bloomery.db import locks, nodes, records, rows
from bloomery.drivers.base import Driver
from bloomery.model import node as node_model
from bloomery.model.node import Node
from bloomery.model.noun import Noun
from bloomery.model.nouns import PORT, PORTGROUP, VOLUME_CONNECTOR, VOLUME_TARGET
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.rules import agents
from bloomery.model.volume import VolumeConnector, VolumeTarget

LOG = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
_Call: TypeAlias = tuple[Callable[..., T], tuple[Any, ...], dict[str, Any]]

_NOT_SAVED: Final = frozenset(
    {
        "id", "uuid", "traits", "created_at", "updated_at", "reservation", "reserved_for",
        "reserved_at", "lock_generation",
    },
)  # fmt: skip
_PLAIN: Final = tuple(
    name for name in node_model.COLUMNS if name not in _NOT_SAVED | node_model.OBJECTS
)
_OBJECTS: Final = tuple(name for name in node_model.COLUMNS if name in node_model.OBJECTS)
_SAVED: Final = _PLAIN + _OBJECTS
_INFO: Final = "driver_internal_info"
_ERROR_AT: Final = _SAVED.index("last_error")
_INFO_AT: Final = _SAVED.index(_INFO)
_TOKEN: Final = nodes.AGENT_TOKEN
_PREGENERATED: Final = nodes.KERNEL_HAS_TOKEN
_OF_SESSION: Final = (  # of an agent
    "agent_url", "agent_verify_ca", "agent_start_attempted", "agent_status",
    "agent_status_message", agents.LOOKED_UP, agents.TOKEN_TAKER, agents.ATTESTED,
)  # fmt: skip
_plain_of = operator.attrgetter(*_PLAIN)
_objects_of = operator.attrgetter(*_OBJECTS)
_RETRY_RELEASE_S: Final = 1.0
_CONFIRMED_FOR_S: Final = 1.0  # how long a commit replaces a read of the row


def acquire(context: Context, node_id: str | int, **more: Any) -> TaskManager:
    """Return a task on the node; see ``TaskManager`` for the arguments and errors."""
    return TaskManager(context, node_id, **more)


def require_exclusive_lock(method: Callable[P, T]) -> Callable[P, T]:
    """Refuse a call whose task holds a shared lock: ExclusiveLockRequired.

    The task is the first argument, or the one after ``self``.
    """

    @functools.wraps(method)
    def guarded(*args: P.args, **more: P.kwargs) -> T:
        task = next(arg for arg in args[:2] if isinstance(arg, TaskManager))
        task.assert_exclusive()
        return method(*args, **more)

    return guarded


class _Records(Generic[T]):
    """Records of a task's node; drivers may replace them."""

    def __init__(self, name: str, noun: Noun) -> None:
        self._name, self._noun = name, noun

    def __get__(self, task: TaskManager, _owner: type) -> Sequence[T]:
        return task.records(self._name, self._noun)

    def __set__(self, task: TaskManager, values: Sequence[T]) -> None:
        task.lists[self._name] = values


class TaskManager:
    """A node and the right to work on it; also the ``DriverTask`` of drivers.

    ``shared`` tasks take no lock.  ``retry``: wait for a busy node as long as the caller accepts;
    ``patient``: without limit.  ``load_driver``: False where no driver is needed.  ``insists``,
    ``budget_s``: see ``DriverTask``.  ``ends_agent_session``: the next save drops the agent's
    token, even one given out since the node was read; other saves keep it.  ``child``: the task on
    a child node that the current step works on.

    ``node``: of a shared task, the node as the caller has read it just now.

    ``late``: the reservation comes with the first write or the first check of the lock.  They raise
    ``locks.NodeChanged`` if the node is not as it was read; then acquire it again, not late.

    ``takes_over``: take the node from whoever holds it, without a queue, if this check of the node
    raises nothing; the former holder then fails with LockLost.

    Raises NodeNotFound, NodeLocked, DriverNotFound, InterfaceNotFoundInEntrypoint, with everything
    released.
    """

    node: Node  # None once it was released
    driver: Driver  # the node's interfaces; None if not loaded, or once the node was released
    turn = 0
    reads: Json | None = None
    child: TaskManager | None = None
    ends_agent_session = False
    _reserved = _has_lock = False
    _guard: locks.Guard | None = None
    _late: locks.LateReservation | None = None  # until the first write
    _incarnation: str | None = None
    _confirmed_at = -math.inf  # when the row last said that the node is ours
    _opened: tuple[Any, Mapping[str, Any]]  # sealed driver_info, and the same opened
    _change: transition.StateChange | None = None
    _spawn: _Call[Future[Any]] | None = None
    _on_spawn_error: _Call[None] | None = None

    def __init__(
        self,
        context: Context,
        node_id: str | int,
        shared: bool = False,
        purpose: str = "unspecified action",
        retry: bool = True,
        patient: bool = False,
        load_driver: bool = True,
        insists: bool = False,
        budget_s: float | None = None,
        late: bool = False,
        takes_over: Callable[[Node], None] | None = None,
        node: Node | None = None,
    ) -> None:
        self.context = context
        self.runtime = context.runtime
        if not isinstance(node_id, str):  # the ID of the row
            with context.runtime.db.read() as conn:
                node_id = nodes.uuid_of(conn, node_id)
        self.node_id = node_id
        self.shared = shared
        self.insists, self.budget_s = insists, budget_s
        self._purpose, self._retry, self._patient = purpose, retry, patient
        self._forget_node()
        try:
            if node is not None:
                self._take(node)
            elif shared:
                with self.runtime.db.read() as conn:
                    self._take(nodes.get(conn, self.node_id))
            elif late:
                self._lock_late()
            elif takes_over is not None:
                self._hold(self._reserve(takes_over))
            else:
                self._lock()
            if load_driver:
                self.load_driver()
            if insists:
                self.log("%s is ordered", purpose)
        except BaseException:
            self.release_resources()
            raise

    # ------------------------------------------------------------------------ what it shows

    @property
    def fsm(self) -> states.Machine | None:
        """The state machine in the node's state, or None after the release."""
        return None if self.node is None else transition.machine_at(self.node)

    @property
    def driver_info(self) -> Mapping[str, Any]:
        """The node's driver_info with readable secrets: for drivers, never for storage."""
        sealed, opened = self._opened
        if sealed is not self.node.driver_info:
            opened = self.runtime.sealer.open(self.node.driver_info)
            if self.shared:  # shared tasks are short and read it often
                self._opened = self.node.driver_info, opened
        return opened

    def opened(self, value: Any) -> Any:
        """Return a value of the node with readable secrets: for drivers, never for storage."""
        return self.runtime.sealer.open(value)

    def sealed(self, value: Any) -> Any:
        """Return a value of the node with sealed secrets, to store it."""
        return self.runtime.sealer.seal(value)

    @contextlib.contextmanager
    def others_of_bmc(self) -> Iterator[list[TaskManager]]:
        """Lock the other nodes behind the node's BMC within the block.  Raises NodeLocked."""
        with self.runtime.db.read() as conn:
            uuids = bmc_sharing.list_of_bmc(self.runtime, conn, self.node)
        context = dataclasses.replace(self.context, in_place=True)
        purpose = f"{self._purpose} of node {self.node_id}, which has the same BMC"
        with contextlib.ExitStack() as held:
            yield [
                held.enter_context(acquire(context, uuid, purpose=purpose, retry=False))
                for uuid in uuids
            ]

    # The node's records, read at the first use; secrets of volume targets are readable.
    ports = _Records[Port]("ports", PORT)
    portgroups = _Records[Portgroup]("portgroups", PORTGROUP)
    volume_connectors = _Records[VolumeConnector]("volume_connectors", VOLUME_CONNECTOR)
    volume_targets = _Records[VolumeTarget]("volume_targets", VOLUME_TARGET)

    def records(self, name: str, noun: Noun) -> Sequence[Any]:
        """Return records of the node, None after the release; a failed read releases the node."""
        if name not in self.lists and self.node is not None:
            try:
                with self.runtime.db.read() as conn:
                    values = records.list_where(conn, noun, node_uuid=self.node.uuid)
                for target in values if noun is VOLUME_TARGET else ():
                    target.properties = self.runtime.sealer.open(target.properties)
                self.lists[name] = values
            except Exception:
                self.release_resources()
                raise
        return self.lists.get(name)  # type: ignore[return-value]

    def load_driver(self) -> None:
        """Load the interfaces that the node uses, once."""
        self.driver = self.driver or self.runtime.registry.driver_of(self.node)

    def _forget_node(self) -> None:
        self.node = self.driver = None  # type: ignore[assignment]
        self._opened = (None, {})
        self.lists: dict[str, Sequence[Any]] = {}
        self._columns: tuple[Any, ...] = (None,) * len(_SAVED)

    def _take(self, node: Node) -> None:
        self.node = node
        self._columns = _columns_of(node)

    # ------------------------------------------------------------------------------ the lock

    def _lock(self) -> None:
        """Queue for the node, then reserve it in the database."""
        node = self.context.wait_in_queue(
            self.node_id, self._reserve, retry=self._retry, patient=self._patient
        )
        self._has_lock = True
        self._hold(node)

    def _hold(self, node: Node) -> None:
        self._reserved, self.shared = True, False
        self._guard = locks.Guard(
            node_uuid=node.uuid, holder=self.runtime.host, generation=node.lock_generation,
        )  # fmt: skip
        self._take(node)

    def _lock_late(self) -> None:
        """Queue for the node, and show it as the first write will reserve it."""
        row = self.context.wait_in_queue(
            self.node_id, self._read_free, retry=self._retry, patient=self._patient
        )
        self._has_lock, self.shared = True, False
        self._guard = locks.Guard(
            node_uuid=row["uuid"], holder=self.runtime.host, generation=row["lock_generation"] + 1,
        )  # fmt: skip
        self._late = locks.LateReservation(
            row=row, guard=self._guard, purpose=self._purpose, at=rows.now()
        )
        self._take(nodes.from_row({**row, **self._late.columns()}))

    def _read_free(self) -> Json:
        with self.runtime.db.read() as conn:
            row = nodes.get_row(conn, self.node_id)
        if row["reservation"] is not None:
            raise locks.locked(nodes.from_row(row))
        return row

    def _reserve(self, takes_over: Callable[[Node], None] | None = None) -> Node:
        lease, host = self.runtime.lease, self.runtime.host
        began, incarnation = lease.now(), lease.incarnation
        node = self.runtime.db.transact(
            functools.partial(
                locks.reserve, uuid=self.node_id, holder=host, purpose=self._purpose,
                incarnation=incarnation, takes_over=takes_over,
            )
        )  # fmt: skip
        self._confirmed_at, self._incarnation = began, incarnation
        return node

    def upgrade_lock(self, purpose: str | None = None, retry: bool | None = None) -> None:
        """Make a shared task exclusive and read the node again; an exclusive one stays."""
        self._purpose = self._purpose if purpose is None else purpose
        self._retry = self._retry if retry is None else retry
        if self.shared:
            self._lock()

    def downgrade_lock(self) -> None:
        """Release the reservation and keep a shared task.  RuntimeError when already released."""
        self._require_node()
        if not self.shared:
            self._release_lock()
            self.shared = True
            with self.runtime.db.read() as conn:
                self._take(nodes.get(conn, self.node_id))

    def assert_exclusive(self) -> None:
        """Raise ExclusiveLockRequired unless the lock is exclusive."""
        if self.shared:
            raise errors.ExclusiveLockRequired(log=f"task on {self.node_id}: {self._purpose}")

    def _require_node(self) -> None:
        if self.node is None:
            raise RuntimeError(f"the task on node {self.node_id} has released it")

    def assert_lease(self) -> None:
        """Raise LockLost if the node was taken over; every write to a BMC calls this first.

        The row is read, unless a transaction has confirmed it within the last second.  The lease is
        checked last, because it may run out while the database is slow.  Raises DatabaseBusy.
        """
        self.assert_exclusive()
        if self.runtime.lease.now() - self._confirmed_at > _CONFIRMED_FOR_S:
            self.require_held()
        self.runtime.lease.require(self.node_id, self.runtime.host, self._incarnation)

    def release_child(self) -> None:
        """Release the child node of the current step."""
        child, self.child = self.child, None
        if child is not None:
            child.release_resources()

    def release_resources(self) -> None:
        """Release everything; safe to call twice, or on a task that holds nothing."""
        self.release_child()
        self._release_lock()
        self._forget_node()

    def _release_lock(self) -> None:
        guard, self._guard = self._guard, None
        self._late = None
        reserved, self._reserved = self._reserved, False
        has_lock, self._has_lock = self._has_lock, False
        try:
            if reserved and guard is not None:
                _release_row(self.runtime, guard)
        finally:
            if has_lock:
                self.runtime.node_locks.leave(self.node_id)

    def log(self, text: str, *args: object, level: int = logging.INFO) -> None:
        """Log an event of the node; the line begins with the node's UUID and name."""
        if LOG.isEnabledFor(level):
            name = self.node.name if self.node is not None else None
            line = text % args
            for phrase in ("Node {} ", " on node {}", " of node {}"):
                line = line.replace(phrase.format(self.node_id), "")
            LOG.log(level, "node %s %s: %s", self.node_id, name or "-", line)

    # ------------------------------------------------------------------------------- spawning

    @property
    def _work(self) -> str:
        """The name of the background work, for log lines."""
        method, args, _ = self._spawn or (None, (), {})
        work = next((arg for arg in args if callable(arg)), method)
        return f"{getattr(work, '__name__', 'the worker')} ({self._purpose})"

    def spawn_after(self, method: Callable[..., Future[Any]], *args: Any, **more: Any) -> None:
        """Call ``method`` when the block ends without an error; it must return a future."""
        self._spawn = (method, args, more)

    def set_spawn_error_hook(self, hook: Callable[..., None], *args: Any, **more: Any) -> None:
        """Call ``hook(exception, ...)`` if spawning fails, not for the worker's errors."""
        self._on_spawn_error = (hook, args, more)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _exc: BaseException | None,
        _tb: TracebackType | None,
    ) -> None:
        if kind is not None or self._spawn is None:
            self.release_resources()
            return
        method, args, more = self._spawn
        future: Future[Any] | None = None
        try:
            future = method(*args, **more)
            future.add_done_callback(self._after_worker)
        except Exception as exc:
            if future is not None:
                future.cancel()
            try:
                if self._on_spawn_error is not None:
                    hook, args, more = self._on_spawn_error
                    hook(exc, *args, **more)
            except Exception as broken:  # noqa: BLE001  the task ends either way
                LOG.warning("node %s: the spawn error hook failed: %s", self.node_id, broken)
            finally:
                self.release_resources()
            raise

    def _after_worker(self, future: Future[Any]) -> None:
        """Store the worker's error on the node, then release the node.

        After a database failure the end of the flow may be committed all the same: recovery reads
        the rows and decides.
        """
        exc = None if future.cancelled() else future.exception()
        try:
            if future.cancelled():
                LOG.warning("node %s: the worker was cancelled", self.node_id)
            elif isinstance(exc, errors.DatabaseBusy):
                LOG.warning("node %s: %s lost the database, recovering its flow: %s",
                            self.node_id, self._work, secrets.report(exc))  # fmt: skip
            elif exc is not None:
                self._note_death(exc)
        finally:
            self.release_resources()
            if isinstance(exc, errors.DatabaseBusy):
                self.runtime.on_flow_orphaned(self.node_id)

    def _note_death(self, exc: BaseException) -> None:
        LOG.error("node %s: %s died: %s", self.node_id, self._work, secrets.report(exc))
        if self.node is None or self.shared or self.node.last_error is not None:
            return
        sentence = f"{self._work} died: {secrets.brief(exc)}"
        self.node.last_error = sentence
        try:
            self.save()
        except (errors.LockLost, errors.NodeNotFound, errors.DatabaseBusy) as unable:
            LOG.warning("node %s: cannot write its last_error: %s", self.node_id, unable)

    # -------------------------------------------------------------------------------- writing

    def require_held(self) -> None:
        """Raise LockLost if another conductor took the node over; call it after a pause."""
        self.assert_exclusive()
        self._require_node()
        if self._late is not None:
            self.save()
            return
        began = self.runtime.lease.now()
        try:
            with self.runtime.db.read() as conn:
                locks.require_held(conn, self._proof())
        except sa.exc.DBAPIError as exc:
            raise errors.DatabaseBusy(
                reason=f"it does not say who holds node {self.node_id}", log=str(exc.orig)
            ) from exc
        self._confirmed_at = began

    def _proof(self) -> locks.Guard:
        assert self._guard is not None
        return self._guard

    def save(self, *journal: Write, release: bool = False) -> None:
        """Write what changed on the node, and ``journal``, in one guarded transaction.

        ``release``: the reservation ends with it.  Raises LockLost with nothing written, and
        NodeChanged for a late reservation.
        """
        self.assert_exclusive()
        self._require_node()
        guard = self._proof()
        if self.node.last_error != self._columns[_ERROR_AT]:
            self.node.last_error = transition.fit(self.context, self.node, self.node.last_error)
        columns = _columns_of(self.node)
        both = zip(_SAVED, columns, self._columns, strict=True)
        changed = {name: now for name, now, was in both if now != was}
        if self.ends_agent_session:
            changed[_INFO] = columns[_INFO_AT]
        values: Json = changed | (locks.FREE if release else {})
        late, incarnation = self._late, self.runtime.lease.incarnation
        if not (values or journal or late):
            return
        self.node.updated_at = values["updated_at"] = rows.now()
        encoded = writes.encoded(journal)
        # Lists show these columns; an event of the journal has those of the node's condition.
        listed = changed.keys() & notification_utils.DESCRIPTION
        if not any(isinstance(write, NodeEvent) for write in encoded):
            listed |= changed.keys() & notification_utils.CONDITION
        if listed:
            encoded.append(notification_utils.emit_changed(self.context, self.node, sorted(listed)))
        # An agent may have got its token since the node was read: lookups give it out without the
        # lock (``nodes.add_agent_token``).
        knows_token = self.ends_agent_session or _TOKEN in self.node.driver_internal_info
        former_info = self._columns[_INFO_AT]
        if _INFO not in changed or knows_token or f'"{_TOKEN}"' in former_info:
            former_info = None

        def work(conn: sa.Connection) -> Any:
            token = None
            if late is None:
                token = locks.update_guarded(conn, guard, values, former_info=former_info)
            else:
                locks.reserve_late(conn, late, values, incarnation=incarnation)
            for write in encoded:
                write(conn)
            return token

        began = self.runtime.lease.now()
        try:
            token = self.runtime.db.transact(work)
        except errors.CommitInDoubt:
            self._reserved = True  # perhaps
            raise
        self._confirmed_at = began
        if token is not None:
            self.node.driver_internal_info[_TOKEN] = token
            columns = _columns_of(self.node)
        self._columns, self.ends_agent_session = columns, False
        if late is not None:
            self._late, self._reserved, self._incarnation = None, True, incarnation
        if release:
            self._reserved = False
        if encoded:
            self.runtime.on_events_written()

    def forget_agent(self, *, may_boot_again: bool = False) -> None:
        """End the session of the node's agent.

        ``may_boot_again``: the same boot files may start the next agent, so a token in its kernel
        parameters stays.
        """
        info = self.node.driver_internal_info
        for key in _OF_SESSION:
            info.pop(key, None)
        if not (may_boot_again and info.get(_PREGENERATED)):
            info.pop(_PREGENERATED, None)
            info.pop(_TOKEN, None)
            self.ends_agent_session = True

    def make_agent_token(self) -> str:
        """Return the token for the kernel parameters of the next agent; lookup then gives none.

        A token that a lookup gave out before is void.
        """
        info = self.node.driver_internal_info
        if not info.get(_PREGENERATED):
            self.forget_agent()
            info[_TOKEN] = self.runtime.sealer.seal_under(_TOKEN, secrets.new_token())
            info[_PREGENERATED] = True
            self.save()
        return str(self.opened(info[_TOKEN]))

    def record(self, sentence: str) -> None:
        """Add a sentence to the node's history, with the node's changes."""
        self.save(writes.history_entry(self.context, self.node, sentence, event_type="agent"))

    @property
    def is_changed(self) -> bool:
        """Whether the node has changes that are not saved."""
        return _columns_of(self.node) != self._columns

    def process_event(
        self,
        event: str,
        callback: Callable[..., Future[Any]] | None = None,
        call_args: tuple[Any, ...] | None = None,
        call_kwargs: dict[str, Any] | None = None,
        err_handler: Callable[..., None] | None = None,
        target_state: str | None = None,
        last_error: str | None = None,
        *,
        journal: Sequence[Write] = (),
        release: bool = False,
        waits_since: datetime | None = None,
    ) -> None:
        """Move the node along ``event``: the row, its history, the journal and the event row.

        With a ``callback`` the node's last_error is cleared (or set to ``last_error``), and the
        callback runs when the block ends.  If the callback fails, ``err_handler`` undoes the move:
        it gets the exception, the node, its previous state and its previous target.
        ``waits_since``: the wait that begins counts from then.

        Raises InvalidState with the node untouched; LockLost.
        """
        self.assert_exclusive()
        self._require_node()
        change = self._change = transition.apply(
            self.context, self.node, event, target_state=target_state,
            last_error=last_error, has_worker=callback is not None,
        )  # fmt: skip
        if waits_since is not None:
            limit = states.WAIT_LIMITS[State(str(self.node.provision_state))]
            setattr(self.node, limit.since, waits_since)
        if callback is not None:
            if err_handler is not None:
                self.set_spawn_error_hook(
                    err_handler, self.node, change.previous_provision_state,
                    change.previous_target_provision_state,
                )  # fmt: skip
            self.spawn_after(callback, *(call_args or ()), **(call_kwargs or {}))
        state = self.node.provision_state
        record = transition.record(self.context, self.node, change)
        self.save(*record, *journal, release=release)
        self.log("%s -> %s on %s", change.previous_provision_state, state, change.event)

    # The last transition, under the private names that drivers written for Ironic read (spec 1.4).
    _event = property(operator.attrgetter("_change.event"))
    _prev_provision_state = property(operator.attrgetter("_change.previous_provision_state"))
    _prev_target_provision_state = property(
        operator.attrgetter("_change.previous_target_provision_state")
    )

    def _notify_provision_state_change(self) -> tuple[str, str]:
        """Return level and status of the last transition's notification."""
        assert self._change is not None
        return transition.level_and_status(self.node, self._change)

    def resume_cleaning(self) -> None:
        """Resume cleaning; manual cleaning keeps its target manageable."""
        manual = self.node.target_provision_state == State.MANAGEABLE
        self.process_event("resume", target_state=State.MANAGEABLE if manual else None)


def _columns_of(node: Node) -> tuple[Any, ...]:
    """Return the columns of ``_SAVED``, encoded; two such tuples show the changes."""
    columns: tuple[Any, ...] = _plain_of(node)
    return columns + rows.dump_all(_objects_of(node))


def _release_row(runtime: ConductorRuntime, guard: locks.Guard) -> None:
    """Clear the reservation; retry until the database does it."""
    try:
        runtime.db.transact(lambda conn: locks.release(conn, guard))
    except (errors.DatabaseBusy, sa.exc.SQLAlchemyError) as exc:
        if runtime.db.refusal is None:  # the database logs its refusal once
            LOG.warning("node %s: cannot release it yet: %s", guard.node_uuid, exc)
        runtime.timers.after(_RETRY_RELEASE_S, _release_row, runtime, guard)
