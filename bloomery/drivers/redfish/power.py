"""Power by Redfish: send the order, then poll until the machine is in the state.

The node stores the order and its deadline from the first attempt.  An unclear answer counts as an
accepted order, and the state is polled.  An order without an effect is repeated a few times before
the deadline, after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from bloomery import clock, errors, secrets
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, substeps
from bloomery.drivers.looks import Look
from bloomery.drivers.redfish import boot_device, reading, reset, tasks
from bloomery.drivers.redfish.bmc_write import NotYet
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import DONE, Again, Done, Outcome

_MEMORY: Final = "redfish_power"
REBOOT: Final = "redfish_reboot"  # key of its substeps
_RESTART_S: Final = 15.0  # before the first poll after a forced restart
_MOST_ORDERS: Final = 3  # accepted, perhaps, without an effect
_CONFLICT: Final = 409
_FIRMWARE_S: Final = 10.0  # within which no firmware has read, and perhaps reset, its override
_PATIENCE: Final = 1 / 3  # share of the time left before an order is repeated


class _PowerAction(NamedTuple):
    reset_type: str
    ends: PowerState
    skip_if_there: bool
    first_poll_s: float = 0.5


_ACTIONS: Final = {
    PowerState.ON: _PowerAction("On", PowerState.ON, skip_if_there=True),
    PowerState.OFF: _PowerAction("ForceOff", PowerState.OFF, skip_if_there=True),
    PowerState.SOFT_OFF: _PowerAction("GracefulShutdown", PowerState.OFF, skip_if_there=True),
    PowerState.SOFT_REBOOT: _PowerAction("GracefulRestart", PowerState.ON, skip_if_there=False),
    PowerState.REBOOT: _PowerAction(
        "ForceRestart", PowerState.ON, skip_if_there=False, first_poll_s=_RESTART_S,
    ),
}  # fmt: skip
_STORED: Final = {  # the fields of an order: their keys in driver_internal_info
    "target": "asked", "began_at": "since", "deadline": "until", "orders": "orders",
    "orders_accepted": "given", "conflicts": "conflicts", "accepted_at": "taken_at",
    "repeat_at": "ignored_at", "tasks": "tasks", "is_silent": "silent", "reading": "last",
    "unclear_reason": "no_answer", "delay_reason": "put_off", "has_lost_boot": "has_lost_boot",
    "boot_loss": "lost", "is_renewed": "renews_boot", "override": "override",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class PowerOrder(boot_device.Renewal):
    """An order of a power state, which the node stores between the attempts of a run.

    ``orders``: requests sent, of which the BMC may carry out ``orders_accepted``; ``accepted_at``:
    when it last said so.  ``repeat_at``: when an order without an effect is repeated.  ``reading``:
    the last power state, or why there is none.  ``delay_reason``: why no request is sent yet.
    ``boot_loss``: why the machine is switched off again.
    """

    target: str
    began_at: datetime
    deadline: datetime
    orders: int = 0
    orders_accepted: int = 0
    conflicts: int = 0
    accepted_at: datetime | None = None
    repeat_at: datetime | None = None
    tasks: list[str] = field(default_factory=list)
    is_silent: bool = False
    reading: str | None = None
    unclear_reason: str | None = None
    delay_reason: str | None = None
    has_lost_boot: bool = False
    boot_loss: str | None = None

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> PowerOrder:
        values = {name: stored[key] for name, key in _STORED.items() if key in stored}
        for name in ("began_at", "deadline", "accepted_at", "repeat_at"):
            if values.get(name) is not None:
                values[name] = datetime.fromisoformat(values[name])
        return cls(**values)

    def store(self, task: base.DriverTask) -> None:
        values = {key: getattr(self, name) for name, key in _STORED.items()}
        task.node.driver_internal_info[_MEMORY] = {
            key: value.isoformat() if isinstance(value, datetime) else value
            for key, value in values.items()
            if value
        } | {"was_taken": self.accepted_at is not None}

    @property
    def reason(self) -> str:
        return f"waiting for {self.target}"

    def left_s(self) -> float:
        return (self.deadline - clock.now()).total_seconds()

    def accept(self) -> None:
        """Count an order that the BMC may carry out, and set the time of its repetition."""
        self.orders_accepted += 1
        self.repeat_at = clock.now() + timedelta(seconds=max(self.left_s(), 0) * _PATIENCE)

    def is_ignored(self) -> bool:
        """Return whether to repeat an order that had no effect."""
        if self.is_silent or self.orders_accepted >= _MOST_ORDERS:
            return False
        return self.repeat_at is None or clock.now() > self.repeat_at

    def poll_again(self, task: base.DriverTask, least_s: float = 0) -> Again:
        """Store the order; return a pause that grows with the time since its beginning."""
        self.store(task)
        waited_s = (clock.now() - self.began_at).total_seconds()
        pause_s = max(least_s, min(2.0, 0.5 + waited_s / 4))
        return Again(after_s=min(pause_s, max(self.left_s(), 0.1)), reason=self.reason)


class RedfishPower(RedfishInterface, base.Power):
    def describe_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        return self.access.describe(task)

    def examine_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        from bloomery.drivers.redfish import examination  # it needs sushy

        return examination.examine(self.access, task)

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self.access.bmc(task).has_answered(since)

    def look(self, task: base.DriverTask, former: Look | None) -> Look | None:
        return self.access.look(task, former)

    def get_power_state(self, task: base.DriverTask) -> str | None:
        return reading.power_state(self.access.document(task))

    def get_supported_power_states(self, task: base.DriverTask) -> Sequence[str]:
        """Return the supported states, as far as the BMC has told."""
        missing = task.node.driver_internal_info.get(reset.MEMORY) or ()
        return tuple(state for state in _ACTIONS if state not in missing)

    def set_power_state(
        self,
        task: base.DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Order the state and poll it.  Raises PowerStateFailure at the deadline."""
        return _recorded(task, self._bring(task, state, timeout_s), _action(state).ends)

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off and on; restart where power off is forbidden, or switch on if it is off.

        Only the end is recorded: a machine that stays off should be switched on by power sync.
        """
        if not task.node.disable_power_off:
            outcome = substeps.run_in_order(
                task,
                REBOOT,
                lambda: self._bring(task, PowerState.OFF, timeout_s),
                lambda: self._bring(task, PowerState.ON, timeout_s),
            )
            return _recorded(task, outcome, PowerState.ON)
        stored = task.node.driver_internal_info.get(_MEMORY)
        if task.turn and stored:
            return self.set_power_state(task, str(stored["asked"]), timeout_s)
        is_on = self.get_power_state(task) == PowerState.ON
        state = PowerState.REBOOT if is_on else PowerState.ON
        return self.set_power_state(task, state, timeout_s)

    def _bring(self, task: base.DriverTask, state: str, timeout_s: float | None) -> Outcome:
        """Run an attempt: send the order, or poll what an earlier attempt of this run has sent."""
        action = _action(state)
        stored = task.node.driver_internal_info.get(_MEMORY)
        if not task.turn or not stored or stored["asked"] != state:
            _forget(task)
            if action.skip_if_there and self.get_power_state(task) == action.ends:
                return DONE
            return self._send(task, action, self._begin(state, timeout_s))
        order = PowerOrder.load(stored)
        if order.boot_loss:
            action = _ACTIONS[PowerState.OFF]
        is_there = self._read(task, order) == action.ends
        if is_there and (action.skip_if_there or order.accepted_at):
            _forget(task)
            if order.has_lost_boot:  # switch off again, to boot nothing else
                target = (order.override or {})["BootSourceOverrideTarget"]
                order = self._begin(state, timeout_s)
                order.boot_loss = f"the BMC lost the boot device {target} at the power on"
                return self._send(task, _ACTIONS[PowerState.OFF], order)
            if order.boot_loss:
                task.node.power_state = PowerState.OFF
                raise errors.PowerStateFailure(
                    state=state, reason=f"{order.boot_loss}; the machine is off again"
                )
            return DONE
        order.store(task)
        if order.tasks and not order.is_silent:
            what = f"bring power to {state}"
            try:
                self.access.read(task, lambda system: tasks.are_at_work(system, order.tasks, what))
            except errors.StepFailure as no:
                _forget(task)
                raise errors.PowerStateFailure(state=state, reason=no.facts["reason"]) from no
        if clock.now() > order.deadline:
            _forget(task)
            raise self._late(task, order)
        if order.delay_reason or order.is_ignored():
            return self._send(task, action, order)
        return order.poll_again(task)

    def _begin(self, state: str, timeout_s: float | None) -> PowerOrder:
        limit_s = timeout_s or self.conf.conductor.power_state_change_timeout
        now = clock.now()
        return PowerOrder(target=state, began_at=now, deadline=now + timedelta(seconds=limit_s))

    def _send(self, task: base.DriverTask, action: _PowerAction, order: PowerOrder) -> Outcome:
        """Send the order; a refusal in the target state counts as done."""
        internal, is_first = task.node.driver_internal_info, not order.orders_accepted
        order.orders += 1
        order.unclear_reason = order.delay_reason = None
        hidden: list[str] = []

        def send(system: Any) -> None:
            hidden.extend(secrets.in_address(boot_device.address_of(system) or ""))
            if action.ends == PowerState.ON:
                boot_device.renew(system, task.node, order)
            reset_type = action.reset_type
            if (
                action.ends == PowerState.ON
                and not is_first
                and reading.power_state(system.json) == PowerState.OFF
            ):
                reset_type = "On"  # an earlier restart left the machine off
            reset.send(system, reset_type, internal)
            order.tasks = tasks.accepted(system)

        try:
            self.access.change(task, send, secrets=hidden)
        except errors.InvalidParameterValue:
            _forget(task)
            raise
        except NotYet as why:  # no order was sent
            order.orders, order.delay_reason = order.orders - 1, str(why)
            return order.poll_again(task)
        except errors.BmcLeftAlone as alone:  # nor here
            order.orders, order.delay_reason = order.orders - 1, alone.facts["reason"]
            return order.poll_again(task, alone.facts["retry_after_s"])
        except (errors.BmcRefused, errors.BmcBusy) as no:
            return self._refused(task, action, order, no)
        except errors.BmcUnreachable as silent:
            order.unclear_reason = silent.facts["reason"]
            order.accept()
            return order.poll_again(task)
        order.accepted_at = clock.now()
        order.accept()
        order.store(task)
        return Again(after_s=action.first_poll_s, reason=order.reason)

    def _refused(
        self,
        task: base.DriverTask,
        action: _PowerAction,
        order: PowerOrder,
        no: errors.BmcRefused | errors.BmcBusy,
    ) -> Outcome:
        """Return what follows a refusal; any conflict with the machine's state is put off.

        A power on has a number of conflicts, and other orders have the deadline.
        """
        status = no.facts.get("http_status", 400)
        may_be_there = status in (400, _CONFLICT) and action.skip_if_there
        if may_be_there and self._read(task, order) == action.ends:
            _forget(task)
            return DONE
        is_busy = isinstance(no, errors.BmcBusy) or status == _CONFLICT
        pause_s = float(no.facts.get("retry_after_s") or 0)
        if status >= 500 or (is_busy and order.accepted_at):
            order.unclear_reason = no.facts["reason"]
            order.accept()
            return order.poll_again(task, pause_s)
        if order.accepted_at:  # the BMC works on its earlier order
            order.accept()
            return order.poll_again(task)
        may_repeat, limits = is_busy, self.conf.redfish
        if is_busy and action.ends == PowerState.ON:
            order.conflicts += 1
            may_repeat = order.conflicts < limits.power_on_conflict_retry_attempts
            pause_s = pause_s or float(limits.power_on_conflict_retry_interval)
        if not may_repeat:
            _forget(task)
            raise no
        order.delay_reason = no.facts["reason"]
        return order.poll_again(task, pause_s)

    def _read(self, task: base.DriverTask, order: PowerOrder) -> str | None:
        """Read the power state, and note it in the order; None where the BMC is silent."""
        order.is_silent = False
        try:
            document = self.access.document(task, insists=True)  # whatever the breaker says
        except errors.BmcUnreachable as silent:
            order.is_silent, order.reading = True, silent.facts["reason"]
            return None
        except errors.BmcRefused:
            _forget(task)
            raise
        state = reading.power_state(document)
        order.reading = f"it reads {state}"
        if order.override is not None and order.accepted_at is not None:
            is_early = (clock.now() - order.accepted_at).total_seconds() < _FIRMWARE_S
            order.has_lost_boot = is_early and boot_device.override(document) != order.override
        return state

    def _late(self, task: base.DriverTask, order: PowerOrder) -> errors.Failure:
        """Return the error at the deadline.

        BmcUnreachable for a silent BMC, else PowerStateFailure.
        """
        limit_s = (order.deadline - order.began_at).total_seconds()
        reasons = (order.boot_loss, order.unclear_reason, order.delay_reason, order.reading)
        address = self.access.account(task).address
        sentence = (
            f"did not get there within {limit_s:g} s, "
            f"asked {'once' if order.orders == 1 else f'{order.orders} times'}; "
            f"at last: {next(filter(None, reasons), None)}"
        )
        if order.is_silent:
            return errors.BmcUnreachable(
                node=errors.name_of(task.node), address=address,
                reason=f"{order.target}: it {sentence}",
            )  # fmt: skip
        return errors.PowerStateFailure(
            state=order.target, reason=f"the BMC at {address} {sentence}"
        )


def _action(state: str) -> _PowerAction:
    try:
        return _ACTIONS[PowerState(state)]
    except (KeyError, ValueError):
        raise errors.InvalidParameterValue(
            reason=f'redfish cannot bring power to "{state}": it takes {", ".join(_ACTIONS)}',
        ) from None


def _recorded(task: base.DriverTask, outcome: Outcome, ends: PowerState) -> Outcome:
    if isinstance(outcome, Done):
        task.node.power_state = ends
    return outcome


def _forget(task: base.DriverTask) -> None:
    task.node.driver_internal_info.pop(_MEMORY, None)
