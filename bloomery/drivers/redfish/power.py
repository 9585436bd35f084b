"""Power by Redfish: send the order, then poll until the machine is in the state.

The node stores the order and its deadline from the first attempt.  An unclear answer counts as an
accepted order, and the state is polled.  An order without an effect is repeated a few times before
the deadline, after a pause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from bloomery import clock, errors, secrets
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, substeps
from bloomery.drivers.redfish import boot_device, reset, tasks
from bloomery.drivers.redfish.bmc_write import NotYet
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import DONE, Again, Done, Outcome

_READS: Final = {
    "On": PowerState.ON,
    "PoweringOn": PowerState.ON,
    "Off": PowerState.OFF,
    "PoweringOff": PowerState.OFF,
}
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
    first_look_s: float = 0.5


_ORDERS: Final = {
    PowerState.ON: _PowerAction("On", PowerState.ON, skip_if_there=True),
    PowerState.OFF: _PowerAction("ForceOff", PowerState.OFF, skip_if_there=True),
    PowerState.SOFT_OFF: _PowerAction("GracefulShutdown", PowerState.OFF, skip_if_there=True),
    PowerState.SOFT_REBOOT: _PowerAction("GracefulRestart", PowerState.ON, skip_if_there=False),
    PowerState.REBOOT: _PowerAction(
        "ForceRestart", PowerState.ON, skip_if_there=False, first_look_s=_RESTART_S,
    ),
}  # fmt: skip


class RedfishPower(RedfishInterface, base.Power):
    def describe_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        return self.access.describe(task)

    def examine_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        from bloomery.drivers.redfish import examination  # it needs sushy

        return examination.examine(self.access, task)

    def is_suspect(self, task: base.DriverTask) -> bool:
        return self.access.bmc(task).is_suspect

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self.access.bmc(task).has_answered(since)

    def get_power_state(self, task: base.DriverTask) -> str | None:
        return _read(self.access.document(task))

    def get_supported_power_states(self, task: base.DriverTask) -> Sequence[str]:
        """Return the supported states, as far as the BMC has told."""
        missing = reset.missing_states(task.node.driver_internal_info)
        return tuple(state for state in _ORDERS if state not in missing)

    def set_power_state(
        self,
        task: base.DriverTask,
        state: str,
        timeout_s: float | None = None,
    ) -> Outcome:
        """Order the state and poll it.  Raises PowerStateFailure at the deadline."""
        order = _order(state)
        return _recorded(task, self._take_turn(task, order, state, timeout_s), order.ends)

    def _take_turn(
        self,
        task: base.DriverTask,
        order: _PowerAction,
        state: str,
        timeout_s: float | None,
    ) -> Outcome:
        memory = _recall(task, state)
        if memory is None:
            if order.skip_if_there and self.get_power_state(task) == order.ends:
                return DONE
            return self._ask(task, order, self._begin(task, state, timeout_s))
        lost = memory.get("lost")
        order = _ORDERS[PowerState.OFF] if lost else order
        is_there = self._reads(task, memory) == order.ends
        if is_there and (order.skip_if_there or memory.get("was_taken")):
            if memory.pop("has_lost_boot", False):
                return self._take_back(task, memory, timeout_s)
            _forget(task)
            if lost:
                task.node.power_state = PowerState.OFF
                raise errors.PowerStateFailure(
                    state=state, reason=f"{lost}; the machine is off again"
                )
            return DONE
        self._check_tasks(task, memory)
        if clock.now() > _at(memory, "until"):
            raise self._late(task, state, memory)
        if memory.get("put_off") or _is_ignored(memory):
            return self._ask(task, order, memory)
        return _look_again(memory)

    def _take_back(
        self, task: base.DriverTask, memory: dict[str, Any], timeout_s: float | None
    ) -> Outcome:
        """Switch a machine off whose BMC has lost the boot device at the power on."""
        target = memory["override"]["BootSourceOverrideTarget"]
        memory = self._begin(task, memory["asked"], timeout_s)
        memory |= {
            "silent": False,
            "lost": f"the BMC lost the boot device {target} at the power on",
        }  # fmt: skip
        return self._ask(task, _ORDERS[PowerState.OFF], memory)

    def _check_tasks(self, task: base.DriverTask, memory: dict[str, Any]) -> None:
        """Raise PowerStateFailure where a task that the BMC named for the order has failed."""
        paths = memory.get("tasks")
        if not paths or memory["silent"]:
            return
        what = f"bring power to {memory['asked']}"
        try:
            self.access.read(task, lambda system: tasks.are_at_work(system, paths, what))
        except errors.StepFailure as no:
            _forget(task)
            raise errors.PowerStateFailure(state=memory["asked"], reason=no.facts["reason"]) from no

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off and on; restart where power off is forbidden.

        Only the end is recorded: a machine that stays off should be switched on by power sync.
        """
        if task.node.disable_power_off:
            return self.set_power_state(task, self._restart_state(task), timeout_s)

        def bring(state: PowerState) -> Outcome:
            return self._take_turn(task, _order(state), state, timeout_s)

        outcome = substeps.run_in_order(
            task, REBOOT, lambda: bring(PowerState.OFF), lambda: bring(PowerState.ON),
        )  # fmt: skip
        return _recorded(task, outcome, PowerState.ON)

    def _restart_state(self, task: base.DriverTask) -> str:
        """Return the restart's target; a machine that is off is switched on."""
        memory = task.node.driver_internal_info.get(_MEMORY)
        if task.turn and memory:
            return str(memory["asked"])
        is_on = self.get_power_state(task) == PowerState.ON
        return PowerState.REBOOT if is_on else PowerState.ON

    def _begin(self, task: base.DriverTask, state: str, timeout_s: float | None) -> dict[str, Any]:
        limit_s = timeout_s or self.conf.conductor.power_state_change_timeout
        now = clock.now()
        memory = {
            "asked": state, "since": now.isoformat(),
            "until": (now + timedelta(seconds=limit_s)).isoformat(),
        }  # fmt: skip
        task.node.driver_internal_info[_MEMORY] = memory
        return memory

    def _ask(self, task: base.DriverTask, order: _PowerAction, memory: dict[str, Any]) -> Outcome:
        """Send the order; a refusal in the target state counts as done."""
        internal = task.node.driver_internal_info
        was_given, orders = memory.get("given", 0) > 0, memory.get("orders", 0)
        memory |= {"orders": orders + 1, "no_answer": None, "put_off": None}
        hidden: list[str] = []

        def send(system: Any) -> None:
            hidden.extend(secrets.in_address(boot_device.address_of(system) or ""))
            if order.ends == PowerState.ON:
                boot_device.renew(system, task.node, memory)
            _reset(system, order, internal, again=was_given)
            memory["tasks"] = tasks.accepted(system)

        try:
            self.access.change(task, send, secrets=hidden)
        except errors.InvalidParameterValue:
            _forget(task)
            raise
        except NotYet as why:  # no order was sent
            memory |= {"orders": orders, "put_off": str(why)}
            return _look_again(memory)
        except errors.BmcLeftAlone as alone:  # nor here
            memory |= {"orders": orders, "put_off": alone.facts["reason"]}
            return _look_again(memory, alone.facts["retry_after_s"])
        except (errors.BmcRefused, errors.BmcBusy) as no:
            return self._refused(task, order, memory, no)
        except errors.BmcUnreachable as silent:
            return _unclear(memory, silent)
        memory |= {"was_taken": True, "taken_at": clock.now().isoformat()}
        _note_given(memory)
        return Again(after_s=order.first_look_s, reason=_reason(memory))

    def _refused(
        self,
        task: base.DriverTask,
        order: _PowerAction,
        memory: dict[str, Any],
        no: errors.BmcRefused | errors.BmcBusy,
    ) -> Outcome:
        """Return what follows a refusal; any conflict with the machine's state is put off."""
        status = no.facts.get("http_status", 400)
        if status in (400, _CONFLICT) and self._is_there(task, order, memory):
            _forget(task)
            return DONE
        is_busy = isinstance(no, errors.BmcBusy) or status == _CONFLICT
        pause_s = float(no.facts.get("retry_after_s") or 0)
        if status >= 500 or (is_busy and memory.get("was_taken")):
            return _unclear(memory, no, pause_s)
        if memory.get("was_taken"):
            _note_given(memory)  # the BMC works on its earlier order
            return _look_again(memory)
        if not is_busy or not self._may_try_again(order, memory):
            _forget(task)
            raise no
        memory["put_off"] = no.facts["reason"]
        if order.ends == PowerState.ON:
            pause_s = pause_s or float(self.conf.redfish.power_on_conflict_retry_interval)
        return _look_again(memory, pause_s)

    def _is_there(self, task: base.DriverTask, order: _PowerAction, memory: dict[str, Any]) -> bool:
        return order.skip_if_there and self._reads(task, memory) == order.ends

    def _may_try_again(self, order: _PowerAction, memory: dict[str, Any]) -> bool:
        """Return False after the last allowed conflict of a power on; others have the deadline."""
        if order.ends == PowerState.OFF:
            return True
        memory["conflicts"] = memory.get("conflicts", 0) + 1
        return int(memory["conflicts"]) < self.conf.redfish.power_on_conflict_retry_attempts

    def _reads(self, task: base.DriverTask, memory: dict[str, Any]) -> str | None:
        """Read the power state; None where the BMC is silent."""
        memory["silent"] = False
        try:
            document = self.access.document(task, insists=True)  # whatever the breaker says
        except errors.BmcUnreachable as silent:
            memory.update(silent=True, last=silent.facts["reason"])
            return None
        except errors.BmcRefused:
            _forget(task)
            raise
        state = _read(document)
        memory["last"] = f"it reads {state}"
        if "override" in memory and "taken_at" in memory:
            since_s = (clock.now() - _at(memory, "taken_at")).total_seconds()
            is_early = since_s < _FIRMWARE_S
            memory["has_lost_boot"] = is_early and boot_device.is_lost(document, memory["override"])
        return state

    def _late(self, task: base.DriverTask, state: str, memory: dict[str, Any]) -> errors.Failure:
        """Return the error at the deadline.

        BmcUnreachable for a silent BMC, else PowerStateFailure.
        """
        _forget(task)
        limit_s = (_at(memory, "until") - _at(memory, "since")).total_seconds()
        orders = memory.get("orders", 1)
        reasons = map(memory.get, ("lost", "no_answer", "put_off", "last"))
        why = next(filter(None, reasons), None)
        address = self.access.account(task).address
        words = (
            f"did not get there within {limit_s:g} s, "
            f"asked {'once' if orders == 1 else f'{orders} times'}; at last: {why}"
        )
        if memory["silent"]:
            return errors.BmcUnreachable(
                node=errors.name_of(task.node), address=address, reason=f"{state}: it {words}"
            )
        return errors.PowerStateFailure(state=state, reason=f"the BMC at {address} {words}")


def _order(state: str) -> _PowerAction:
    try:
        return _ORDERS[PowerState(state)]
    except (KeyError, ValueError):
        raise errors.InvalidParameterValue(
            reason=f'redfish cannot bring power to "{state}": it takes {", ".join(_ORDERS)}',
        ) from None


def _recorded(task: base.DriverTask, outcome: Outcome, ends: PowerState) -> Outcome:
    if isinstance(outcome, Done):
        task.node.power_state = ends
    return outcome


def _recall(task: base.DriverTask, state: str) -> dict[str, Any] | None:
    """Return the order of an earlier attempt of this run; drop that of another run."""
    memory: dict[str, Any] | None = task.node.driver_internal_info.get(_MEMORY)
    if task.turn and memory and memory["asked"] == state:
        return memory
    _forget(task)
    return None


def _forget(task: base.DriverTask) -> None:
    task.node.driver_internal_info.pop(_MEMORY, None)


def _reason(memory: dict[str, Any]) -> str:
    return f"waiting for {memory['asked']}"


def _at(memory: dict[str, Any], key: str) -> datetime:
    return datetime.fromisoformat(memory[key])


def _left_s(memory: dict[str, Any]) -> float:
    return (_at(memory, "until") - clock.now()).total_seconds()


def _unclear(memory: dict[str, Any], exc: errors.Failure, pause_s: float = 0) -> Again:
    """Note an order whose result is unknown; poll before repeating it."""
    memory["no_answer"] = exc.facts["reason"]
    _note_given(memory)
    return _look_again(memory, pause_s)


def _note_given(memory: dict[str, Any]) -> None:
    """Count an order that the BMC may carry out, and set the time of its repetition."""
    patience = timedelta(seconds=max(_left_s(memory), 0) * _PATIENCE)
    memory["given"] = memory.get("given", 0) + 1
    memory["ignored_at"] = (clock.now() + patience).isoformat()


def _is_ignored(memory: dict[str, Any]) -> bool:
    """Return whether to repeat an order that had no effect."""
    if memory["silent"] or memory.get("given", 0) >= _MOST_ORDERS:
        return False
    return "ignored_at" not in memory or clock.now() > _at(memory, "ignored_at")


def _look_again(memory: dict[str, Any], least_s: float = 0) -> Again:
    """Return a pause that grows with the time since the order."""
    waited_s = (clock.now() - _at(memory, "since")).total_seconds()
    pause_s = max(least_s, min(2.0, 0.5 + waited_s / 4))
    return Again(after_s=min(pause_s, max(_left_s(memory), 0.1)), reason=_reason(memory))


def _read(document: Mapping[str, Any]) -> str | None:
    state = document.get("PowerState")
    return _READS.get(state) if isinstance(state, str) else None


def _reset(system: Any, order: _PowerAction, memory: dict[str, Any], *, again: bool) -> None:
    """Send a reset; a restart that left the machine off is repeated as a power on."""
    is_half_done = again and order.ends == PowerState.ON and _read(system.json) == PowerState.OFF
    reset.send(system, "On" if is_half_done else order.reset_type, memory)
