"""One action on one resource: handlers called, checks asked, each state told.

An act is a task of the scheduler.  Whatever a kind raises becomes ``ResourceFailed``, because kinds
are plug-ins; a time-out or a cancellation leaves the resource FAILED and goes on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.resources import base, states
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.scheduler import After, Timeout
from bloomery.orchestration.scheduler.runner import Steps
from bloomery.orchestration.simulation import events
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.simulation import Simulation

RETRIES: Final = 5  # Heat: action_retry_limit
JITTER_S: Final = 2.0

Values = tuple[Mapping[str, Any], Mapping[str, Any], Any]  # properties, update policy, metadata


class ResourceFailed(Exception):
    """An action on a resource failed; ``fault`` says how, as the stack will tell it."""

    def __init__(self, action: Action, fault: states.Fault, cause: Exception) -> None:
        super().__init__(str(fault))
        self.action = action
        self.fault = fault
        self.cause = cause


class ResourceActions:
    """Acts on one row.  ``tell``: called with action, status and reason of each change."""

    def __init__(
        self, row: Row, simulation: Simulation, tell: Callable[[Row, Action, Status, str], None]
    ) -> None:
        self.row = row
        self.simulation = simulation
        self.tell = tell

    def __str__(self) -> str:
        where = self.row.context
        kind = self.row.kind.__name__
        return f'{kind} "{self.row.name}" Stack "{where.stack_name}" [{where.stack_id}]'

    # ------------------------------------------------------------------------------------- acts

    def create(self, read: Callable[[], Values]) -> Steps:
        """Create, and again while the real thing is in error or in conflict."""
        first: ResourceFailed | None = None
        for failed in range(1, RETRIES + 2):
            try:
                yield from self._record(Action.CREATE, lambda: self._create(read))
            except ResourceFailed as exc:
                first = first or exc
                if not _passing(exc.cause):
                    raise
                if failed > RETRIES:
                    raise first from exc
            else:
                return
            yield from self.delete()
            yield self._back_off(failed)

    def adopt(self, read: Callable[[], Any]) -> Steps:
        """Take over what is there already, and look at it."""

        def taking() -> Steps:
            self.row.record.physical_id = read()
            yield from ()

        yield from self._record(Action.ADOPT, taking)
        if hasattr(self.row.kind, "handle_check"):
            yield from self._record(Action.CHECK, lambda: self._handle_again(Action.CHECK))
        else:
            reason = f"CHECK not supported for {self.row.record.type}"
            self._change(Action.CHECK, Status.COMPLETE, reason)

    def update(
        self,
        read: Callable[[], Values],
        definition: Any,
        tmpl_diff: Mapping[str, Any],
        prop_diff: Mapping[str, Any],
        *,
        replace: bool = False,
    ) -> Steps:
        """Update in place; raises UpdateReplace if the kind cannot, or ``replace`` says so."""

        def updating() -> Steps:
            if replace:
                raise base.UpdateReplace
            properties, policy, metadata = read()
            self.simulation.hold(self.row, properties)
            resource = self.row.resource_with(properties, policy)
            yield from self._handle(resource, Action.UPDATE, definition, tmpl_diff, prop_diff)
            self.row.record.type = definition.type
            self.row.record.metadata = metadata
            self.row.keep(properties)

        yield from self._record(Action.UPDATE, updating)

    def delete(self, *, keep: bool = False) -> Steps:
        """Delete what is there; ``keep`` forgets it without a call, as what never had values."""
        if self.row.gone:
            return
        keep = keep or not self.row.has_values
        for failed in range(1, RETRIES + 2):
            try:
                yield from self._record(
                    Action.DELETE, lambda: iter(()) if keep else self._handle_again(Action.DELETE)
                )
            except ResourceFailed as exc:
                if failed > RETRIES or not isinstance(exc.cause, errors.Conflict):
                    raise
            else:
                self.simulation.release(self.row)
                return
            yield self._back_off(failed)

    def fail(self, action: Action, exc: Exception) -> Steps:
        """Fail in ``action`` before anything is done."""

        def failing() -> Steps:
            raise exc

        yield from self._record(action, failing)

    # ---------------------------------------------------------------------------------- how

    def _create(self, read: Callable[[], Values]) -> Steps:
        properties, policy, metadata = read()
        self.simulation.hold(self.row, properties)
        self.row.record.metadata = metadata
        self.row.keep(properties)
        yield from self._handle(self.row.resource_with(properties, policy), Action.CREATE)

    def _handle_again(self, action: Action) -> Steps:
        yield from self._handle(self.row.resource(), action)

    def _handle(self, resource: base.Resource, action: Action, *args: Any) -> Steps:
        """Call the handler of an action, then its check until it says true."""
        word = action.lower()
        token = getattr(resource, f"handle_{word}", _nothing)(*args)
        check = getattr(resource, f"check_{word}_complete", None)
        if check is None:
            return
        try:
            while not (yield from self._is_complete(check, token)):
                pass
        except (GeneratorExit, Timeout):
            getattr(resource, f"handle_{word}_cancel", _nothing)(token)
            raise

    def _is_complete(self, check: Callable[[Any], Any], token: Any) -> Any:
        try:
            if check(token):
                return True
        except base.PollDelay as exc:
            yield After(self.simulation.poll_s * max(exc.steps, 1))
        except base.WaitFor as exc:
            limit_s = self.simulation.poll_s if exc.timeout_s is None else exc.timeout_s
            yield After(min(self.simulation.poll_s, limit_s))
        else:
            yield After(self.simulation.poll_s)
        return False

    def _record(self, action: Action, work: Callable[[], Any]) -> Steps:
        """Tell of the beginning and of the end of an action, whatever the end is."""
        self._change(action, Status.IN_PROGRESS)
        try:
            yield from work()
        except base.UpdateReplace:
            self._change(action, Status.COMPLETE, events.replacement(self.row.name))
            raise
        except Timeout as exc:
            self._change(action, Status.FAILED, f"{action} aborted ({exc})")
            raise
        except GeneratorExit:
            reason = f"{action} aborted ({events.CANCELLED_BY_USER})"
            self._change(action, Status.FAILED, reason)
            raise
        except Exception as exc:  # kinds are plug-ins: what they raise is a failure of theirs
            fault = self.simulation.fault_of(self.row.name, exc)
            self._change(action, Status.FAILED, str(fault))
            raise ResourceFailed(action, fault, exc) from exc
        self._change(action, Status.COMPLETE)

    def _change(self, action: Action, status: Status, reason: str = events.CHANGED) -> None:
        record = self.row.record
        record.action, record.status, record.reason = action, status, reason
        self.tell(self.row, action, status, reason)

    def _back_off(self, failed: int) -> After:
        return After(2.0**failed + self.simulation.random() * JITTER_S)


def _passing(cause: Exception) -> bool:
    """Whether another attempt may go better."""
    return isinstance(cause, base.ResourceInError | errors.Conflict)


def _nothing(*args: Any) -> None:
    """The handler of a kind that has none."""
