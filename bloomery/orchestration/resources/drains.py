"""Drains: before a machine loses its system, a webhook is called, and the work waits until cleared.

The webhook is a signed POST, as in Standard Webhooks, of the type ``drain.requested``.  Its data
name the resource, the machine, and what comes.  An answer 2xx accepts it, and ``{"drained": true}``
in the answer clears the drain at once.  A call that fails is repeated with the same ``webhook-id``.
A POST to ``clear_url``, or a signal, clears the drain later.  Then, or when its time is over, the
work goes on::

    renew -> drain -> renew         before a rebuild, a service, and before the power goes off
    release -> drain -> release     before the machine is given back, or its replacement is made

``data["drain"]`` holds the progress, so that another engine goes on after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.resources import base, instance_hardware, signals, step_run, stepwise
from bloomery.orchestration.resources.instance_info import writes_disk
from bloomery.orchestration.resources.instance_schema import CONTINUE
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.states import Action, Status
from bloomery.outcome import Again, Hold

DRAIN: Final = "drain"  # the property, its step, its key in data and in signals
CLEAR, ABORT = "clear", "abort"  # signals
CALLED, ACCEPTED, PAUSED = "called", "accepted", "paused"  # of a drain that waits
LOSES_DATA: Final = ("replace", "delete")  # always, of what may come
HARDWARE_RUNS: Final = ("rebuild", "service")  # the sections of hardware that are due
TYPE: Final = "drain.requested"
MOST_REST_S: Final = 60.0  # between two calls of a webhook that fails
POLL_S: Final = 1.0  # while the webhook is called
DRAINED: Final = frozenset({
    State.ACTIVE, State.SERVICEFAIL, State.RESCUE, State.RESCUEFAIL, State.UNRESCUEFAIL,
})  # the states of a node whose system may be in use  # fmt: skip


class Drained(stepwise.OnNode, signals.Signalled):
    """A kind with the property ``drain`` and the step of this name."""

    def enter_action(self) -> None:
        """Forget the drain of an earlier action; a repeated deletion goes on with its drain."""
        super().enter_action()
        if self.record.action is not Action.DELETE or not is_waiting(self.record.data):
            self.record.data.pop(DRAIN, None)

    def begin_drain(self, node: Json, comes: str, then: str) -> str | None:
        """Return the step that drains the node before ``comes``; None: go on.

        ``comes``: rebuild, replace, delete, service or power off.  The drain of this action has
        ended, or there is none, or nothing on the node is in use.
        """
        data, drain, now = self.record.data, self.properties[DRAIN], self.context.utc()
        progress = data.get(DRAIN) or {}
        if progress.get("comes") == comes:
            return DRAIN if is_waiting(data) else None
        if not drain or self.context.webhooks is None or node["provision_state"] not in DRAINED:
            return None
        number = data["drains"] = data.get("drains", 0) + 1
        self.draw_token()  # the URL of an earlier drain clears no later one
        data[DRAIN] = {
            "id": self.derived_id(f"{DRAIN} {number}"), "state": CALLED, "then": then,
            "comes": comes, "began_at": now, "ends_at": now + float(drain["timeout"]),
            "tries": 0, "is_called": False, "due_at": now, "fault": "",
            "node": [node[name] for name in ("uuid", "name", "instance_name")],
        }  # fmt: skip
        return DRAIN

    def step_drain(self) -> stepwise.Following:
        """Call the webhook until it accepts, then wait for a signal or the end of the time."""
        progress, now, drain = self.record.data[DRAIN], self.context.utc(), self.properties[DRAIN]
        signal = progress.pop("signal", None)
        if signal == ABORT:
            progress["state"] = "aborted by a signal"
            raise stepwise.MachineFailed(self._drain_text())
        if signal == CLEAR:
            progress["state"] = "cleared by a signal"
        if not is_waiting(self.record.data):
            return str(progress["then"])
        was, is_late = (progress["state"], progress["fault"]), now >= progress["ends_at"]
        webhooks, tries = self.context.webhooks, progress["tries"]
        is_due = progress["state"] == CALLED and progress["due_at"] <= now
        if is_due and webhooks is not None and not (is_late and progress["is_called"]):
            progress["is_called"] = True
            answer = webhooks.post(f"{progress['id']}/{tries}", progress["id"], drain, self._body())
            if answer is None:
                reason = self._drain_text()
                after_s = max(min(POLL_S, progress["ends_at"] - now), 0.001)
                return Again(after_s=after_s, reason=reason, source=self.record.uuid)
            progress |= {"tries": tries + 1, "fault": answer.fault}
            progress["due_at"] = now + min(2.0 ** (tries + 1), MOST_REST_S)
            if not answer.fault:
                progress["state"] = "cleared by its webhook" if answer.is_drained else ACCEPTED
        if is_late and progress["state"] in (CALLED, ACCEPTED):
            progress["state"] = "not cleared in time" if drain["on_timeout"] == CONTINUE else PAUSED
        if progress["state"] == PAUSED:
            return Hold(reason=self._drain_text())
        after_s, emits = 0.0, was != (progress["state"], progress["fault"])
        if is_waiting(self.record.data):
            is_called = progress["state"] == CALLED
            after_s = min(progress["due_at"] if is_called else now + MOST_REST_S,
                          progress["ends_at"]) - now  # fmt: skip
        reason, source = self._drain_text(), self.record.uuid if after_s else ""
        return Again(after_s=max(after_s, 0.0), reason=reason, source=source, emits=emits)

    def _body(self) -> Json:
        """Return the body of the webhook: it is the same in each call of one drain."""
        progress, context = self.record.data[DRAIN], self.context
        node_uuid, node_name, instance_name = progress["node"]
        comes = progress["comes"]
        due = self.record.data.get(instance_hardware.DUE, ()) if comes in HARDWARE_RUNS else ()
        loses_data = (
            comes in LOSES_DATA or (comes == "rebuild" and writes_disk(self.properties))
            or step_run.loses_data(self.properties["hardware"] or {}, due)
        )  # fmt: skip
        return {
            "type": TYPE,
            "timestamp": _time(progress["began_at"]),
            "data": {
                "project_id": context.project_id, "stack_name": context.stack_name,
                "stack_id": context.stack_id, "resource": self.record.name,
                "node_uuid": node_uuid, "node_name": node_name, "instance_name": instance_name,
                "comes": comes, "loses_data": loses_data,
                "until": _time(progress["ends_at"]),
                "on_timeout": self.properties[DRAIN]["on_timeout"],
                "clear_url": self.signed_url(),
            },
        }  # fmt: skip

    def _drain_text(self) -> str:
        progress = self.record.data[DRAIN]
        state = progress["state"]
        text = {
            CALLED: "its webhook is called",
            ACCEPTED: "its webhook has accepted it, and it waits to be cleared",
            PAUSED: "it was not cleared in time, and waits for a signal",
        }.get(state, state)
        if progress["fault"]:
            text = f"{text}; call {progress['tries']} has failed: {progress['fault']}"
        if state in (CALLED, ACCEPTED):
            end = "goes on" if self.properties[DRAIN]["on_timeout"] == CONTINUE else "pauses"
            text = f"{text}; it {end} at {_time(progress['ends_at'])}"
        return f"drain before {progress['comes']}: {text}"

    # -------------------------------------------------------------------------------- signals

    @classmethod
    def is_held(cls, data: Mapping[str, Any]) -> bool:
        return is_waiting(data)

    @classmethod
    def check_signal(cls, record: base.ResourceState, details: Mapping[str, Any] | None) -> None:
        signal, faults = _signal_of(details), []
        if signal not in (CLEAR, ABORT):
            faults.append(f"{DRAIN} is {errors.shortened(repr(signal))}")
        if record.status is not Status.IN_PROGRESS or not is_waiting(record.data):
            state = (record.data.get(DRAIN) or {}).get("state")
            faults.append(f"no drain waits{f', the last one was {state}' if state else ''}")
        if faults:
            way_out = f'a drain takes {{"{DRAIN}": "{CLEAR}" or "{ABORT}"}}'
            raise errors.SignalRefused(name=record.name, reason="; ".join([*faults, way_out]))

    def handle_signal(self, details: Mapping[str, Any] | None = None) -> str:
        """Take ``{"drain": "clear" | "abort"}``; a POST without a body clears."""
        self.check_signal(self.record, details)
        signal = self.record.data[DRAIN]["signal"] = _signal_of(details)
        return f"{DRAIN}: {signal}"

    def handle_preempt(self) -> None:
        """End a drain that waits before an update; one before a deletion goes on.

        Raises MachineFailed.
        """
        if is_waiting(self.record.data) and self.record.action is Action.UPDATE:
            self.record.data[DRAIN]["state"] = "ended by another order"
            raise stepwise.MachineFailed(self._drain_text())


def _signal_of(details: Mapping[str, Any] | None) -> Any:
    return (details or {DRAIN: CLEAR}).get(DRAIN)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def is_waiting(data: Mapping[str, Any]) -> bool:
    """Tell whether an instance with this ``data``, if IN_PROGRESS, waits for its drain."""
    return (data.get(DRAIN) or {}).get("state") in (CALLED, ACCEPTED, PAUSED)


def ends_at(data: Mapping[str, Any]) -> float | None:
    """Return when the drain of an instance with this ``data`` ends by itself, None for never."""
    progress = data.get(DRAIN) or {}
    return progress["ends_at"] if progress.get("state") in (CALLED, ACCEPTED) else None
