"""OS::Ironic::InstanceGroup: identical instances, and roll-outs over them.

``data`` holds the progress of a roll-out, so that after a crash another engine continues it.  A
batch is one update of the child stack, whose resources are the members.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NoReturn

from bloomery import errors
from bloomery.orchestration.properties.schema import Attribute, Schema
from bloomery.orchestration.resources import (
    base,
    batches,
    composite,
    groups,
    instance_schema,
    machine_group_schema,
    resource_group,
    rollouts,
    stepwise,
    windows,
)
from bloomery.orchestration.resources.rollouts import OnFailure, Signal
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.resources.stepwise import Step
from bloomery.outcome import Again, Hold, Outcome

MEMBER_TYPE: Final = "OS::Ironic::Instance"
ROLLOUT: Final = "rollout"
OTHERS_S: Final = 5.0  # between two polls of members that an earlier update changes
OLDEST: Final = rollouts.RolloutOrder.OLDEST
PAUSE_ENDED: Final = "its pause ended, because its order was cancelled or another order came"
RUNNING, PAUSED, COMPLETE, FAILED = "running", "paused", "complete", "failed"  # of a roll-out
WAITING: Final = "waiting"  # of a roll-out: for its window
UNDERWAY: Final = (RUNNING, PAUSED, WAITING)
WINDOW_POLL_S: Final = 3600.0  # of a closed window, where a wall clock may be set
DUE, TRIED, SOAKED, DONE = "due", "tried", "soaked", "done"  # state of the canary
PROGRESS: Final = ("state", "batch", "of", "reason", "failed")  # in the attribute ``rollout``
STEPS: Final = stepwise.MARKS | {
    "look": Step("replace members that are gone", "change pause revert", "for its window"),
    "choose": Step("begin the next batch", "change pause revert resume end", "for its window"),
    "change": Step("wait for the members to change", "settle", "for the child stack"),
    "settle": Step("wait before checking the members", "judge", "settle_seconds, or soak_seconds"),
    "judge": Step("check whether the members are ready", "settle rest pause revert"),
    "rest": Step("wait between two batches", "choose", "pause_time"),
    "pause": Step("hold the roll-out", "resume revert", "for a signal"),
    "resume": Step("go on after a pause", "choose look", orders=True),
    "revert": Step("restore the old definition of members", "reverted"),
    "reverted": Step("wait for the members to change", "revert", "for the child stack"),
}


class RolloutFailed(Exception):
    """A roll-out ended before all members had the new definition."""


class InstanceGroup(resource_group.Indexed, stepwise.Stepwise):
    """A group of OS::Ironic::Instance, called 0, 1, 2 and so on without removed names."""

    properties_schema: ClassVar[Mapping[str, Schema]] = machine_group_schema.PROPERTIES
    update_policy_schema: ClassVar[Mapping[str, Schema]] = machine_group_schema.UPDATE_POLICY
    attributes_schema: ClassVar[Mapping[str, Attribute]] = machine_group_schema.ATTRIBUTES

    steps: ClassVar[Mapping[str, Step]] = STEPS
    counts_children: ClassVar[bool] = False
    compares: ClassVar[bool] = False  # the members of the child do

    def most_members(self) -> tuple[int, str]:
        return self.context.limits.group_machines, "group_machines"

    def validate(self) -> None:
        super().validate()
        rolling = self.update_policy.get("rolling_update") or {}
        windows.Window.of(rolling.get("window"))
        shares = (rolling.get(name, 1) for name in ("max_unavailable", "max_surge"))
        if not any(rollouts.share(share, max(self.count(), 1), up=True) for share in shares):
            raise errors.StackValidationFailed(
                reason="cannot roll out: max_unavailable and max_surge are both 0; raise one"
            )
        if self._least_ready() > self.count():
            raise errors.StackValidationFailed(
                reason=f"cannot be complete: {self._least_ready()} members are to be ready, and "
                f"there are {self.count()}; lower min_ready",
                path=["min_ready"],
            )
        member = self.properties["member"] or {}
        for place in instance_schema.PLACES:
            if place != "selector" and member.get(place):
                raise errors.StackValidationFailed(
                    reason=f"cannot run all members on one {place}: give a selector",
                    path=["member", place],
                )

    # ------------------------------------------------------------------------ template of the child

    def member(self, name: str) -> dict[str, Any]:
        return self._member_of(self.properties, name)

    def _member_of(self, properties: Mapping[str, Any], name: str) -> dict[str, Any]:
        overrides = (properties.get("member_overrides") or {}).get(name) or {}
        if not isinstance(overrides, Mapping):
            raise errors.StackValidationFailed(
                reason=f"cannot override properties with {overrides!r}: give a map",
                path=["member_overrides", name],
            )
        values = {**(properties.get("member") or {}), **overrides}
        if (by := properties.get("spread_by")) not in (None, "none"):
            values.setdefault("spread", {"by": by, "number": int(name)})
        if drain := properties.get("drain"):
            values.setdefault("drain", drain)
        definition = {"type": MEMBER_TYPE, "properties": values}
        return groups.member(definition, name, properties.get("index_var") or "%index%")

    def foresee_batches(
        self,
        before: Mapping[str, Any] | None,
        present: groups.Members,
        states: Mapping[str, Status] | None = None,
    ) -> list[batches.Batch]:
        """Default ``states`` to those of the child; a member without a status counts as ready."""
        make = rollouts.Pace.of if present else rollouts.Pace.of_creation
        pace, skipped = make(self.update_policy, self.count()), set(self.skip_list())
        names = groups.names(self.count(), skipped)
        surge_names = groups.names(self.count() + pace.max_surge, skipped)
        child, staying = self.child(), set(surge_names)
        if states is None:
            states = {} if child is None else child.statuses()
        outdated = self._outdated(present, states, pace, skipped)
        never_created = self._never_created(states)
        present = {name: body for name, body in present.items() if name not in never_created}
        members = [
            rollouts.Member(
                name=name,
                is_ready=states.get(name, Status.COMPLETE) is Status.COMPLETE,
                is_current=name not in outdated,
            )
            for name in present
            if name in staying
        ]
        return list(
            rollouts.rollout_steps(
                members,
                pace,
                names=names,
                surge_names=surge_names,
                leaving=present.keys() - staying,
            )
        )

    # ------------------------------------------------------------------------------------ handlers

    def handle_create(self) -> Any:
        self._begin_rollout()

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self._begin_rollout()

    def _begin_rollout(self) -> None:
        data, child = self.record.data, self.child()
        states = {} if child is None else child.statuses()
        present, skipped = self.current_members(), self.skip_list()
        remaining = self._outdated(present, states, self._pace, skipped)
        data[resource_group.SKIPPED] = skipped
        data[ROLLOUT] = {
            "unborn": sorted(self._never_created(states)),
            "leaving": sorted(present.keys() - self._names()),
            "state": RUNNING, "batch": 0, "of": 0, "left": remaining, "changed": [],
            "new": [], "failed": [], "excused": [], "members": [], "canary": DUE,
        }  # fmt: skip
        looks = data[ROLLOUT]["looks"] = child is not None and self.children().converges
        self.begin("look" if looks else "choose")

    check_create_complete = check_update_complete = stepwise.Stepwise.check_create_complete

    def handle_preempt(self) -> None:
        super().handle_preempt()
        if self.record.action in composite.PREEMPTED:
            is_held = self._rollout.get("state") in (PAUSED, WAITING)
            self._fail(PAUSE_ENDED if is_held else "a later order wants something else")

    @classmethod
    def is_held(cls, data: Mapping[str, Any]) -> bool:
        return is_paused(data) or opens_at(data) is not None

    def handle_signal(self, details: Mapping[str, Any] | None = None) -> str:
        """Take ``{"rollout": "continue" | "pause" | "abort" | "rollback"}``."""
        self.check_signal(self.record, details)
        signal = Signal(str((details or {}).get(ROLLOUT)))
        self._rollout["signal"] = signal
        return f"roll-out: {signal}"

    @classmethod
    def check_signal(cls, record: base.ResourceState, details: Mapping[str, Any] | None) -> None:
        signal, signals = (details or {}).get(ROLLOUT), [str(each) for each in Signal]
        state = (record.data.get(ROLLOUT) or {}).get("state")
        faults = []
        if signal not in signals:
            faults.append(f"{ROLLOUT} is {errors.shortened(repr(signal))}")
        if record.status is not Status.IN_PROGRESS or state not in UNDERWAY:
            faults.append("no roll-out is under way, and nothing waits for a signal")
        elif signal == Signal.CONTINUE and state == RUNNING:  # it would end the next pause
            faults.append("the roll-out is not paused")
        if faults:
            way_out = f'a roll-out takes {{"{ROLLOUT}": one of {", ".join(signals)}}}'
            raise errors.SignalRefused(name=record.name, reason="; ".join([*faults, way_out]))

    @property
    def _rollout(self) -> dict[str, Any]:
        return self.record.data.get(ROLLOUT) or {}

    @property
    def _pace(self) -> rollouts.Pace:
        make = rollouts.Pace.of
        if self.record.action is not Action.UPDATE:
            make = rollouts.Pace.of_creation
        return make(self.update_policy, self.count())

    # ------------------------------------------------------------------------------ steps: a batch

    def step_look(self) -> stepwise.Following:
        """Begin an update without changes: convergence replaces members that are gone."""
        if following := self._after_signal() or self._wait_for_window():
            return following
        self._rollout["looks"] = False
        return self._change({})

    def step_choose(self) -> stepwise.Following:
        if following := self._after_signal():
            return following
        remaining, present = self._rollout["left"], self.current_members()
        if not self._rollout["batch"] and (waits := self._wait_for_others()):
            return waits
        never_created = {name for name in remaining if name in self._rollout.get("unborn", ())}
        in_service = [name for name in remaining if name not in never_created]
        names = self._names(surge=bool(in_service))
        new = [name for name in names if name not in present or name in never_created]
        changes = in_service or (not new and present.keys() - self._names())
        if changes and (waits := self._wait_for_window()):
            return waits
        if new:
            batch = new[: self._pace.create_batch_size]
            self._rollout["new"] += [name for name in batch if name not in present]
            self._rollout["settles"] = bool(in_service)
            return self._begin_batch(batch, len(new) + len(in_service))
        self._rollout["settles"] = True
        if remaining:
            is_canary = self._rollout["canary"] == DUE
            states, failed = self._states(), set(self._rollout["failed"])
            lost = sum(member.name in failed and not member.is_ready for member in states)
            count = self.count() - lost
            batch = rollouts.next_batch(states, self._pace, count, is_canary=is_canary)
            if is_canary:
                self._rollout["canary"] = TRIED if self._pace.canary else DONE
            if batch:
                return self._begin_batch(batch, len(remaining))
            return self._pause("too few members are ready to take another one down")
        if leaving := batches.surplus(present, self._names(), self._pace.delete_batch_size):
            self._rollout["members"] = []
            return self._change(dict.fromkeys(leaving))
        ready = sum(member.is_ready for member in self._states())
        if ready < self._least_ready():
            self._fail(f"{ready} of {self.count()} members are ready; {self._failures()}")
        self._rollout["state"] = COMPLETE
        return None

    def _never_created(self, states: Mapping[str, Status]) -> set[str]:
        """Return members that the last roll-out failed to create: they are not in service."""
        last = self._rollout
        newcomers = {*last.get("new", ()), *last.get("unborn", ())} & set(last.get("failed", ()))
        return {name for name in newcomers if states.get(name) is Status.FAILED}

    def _begin_batch(self, batch: Sequence[str], remaining: int) -> str:
        rollout, names = self._rollout, set(batch)
        rollout["batch"] += 1
        rollout["of"] = rollout["batch"] + math.ceil((remaining - len(batch)) / len(batch))
        rollout["members"] = list(batch)
        rollout["left"] = [name for name in rollout["left"] if name not in names]
        rollout["changed"] = list(dict.fromkeys([*rollout["changed"], *batch]))
        # A member that was never created, and leaves, would be created beside its left-over rows.
        gone = dict.fromkeys(set(rollout.get("unborn", ())) & set(rollout["leaving"]))
        return self._change({**gone, **{name: self.member(name) for name in batch}})

    def _change(self, changes: Mapping[str, Mapping[str, Any] | None]) -> str:
        """Begin to update these members of the child only; None deletes the member."""
        present = self.current_members()
        either = {**present, **changes}
        members = {name: body for name, body in either.items() if body is not None}
        if members.keys() - present.keys():
            members = {name: members[name] for name in sorted(members, key=groups.in_order)}
        blueprint = self.blueprint(groups.document(members))
        self.change_child(replace(blueprint, changed=frozenset(changes)))
        return "change"

    def step_change(self) -> stepwise.Following:
        if waits := self._wait_for_child():
            return waits
        rollout = self._rollout
        settles = self.record.action is Action.UPDATE and rollout.get("settles", True)
        self._wait_later(self._pace.settle_s if settles and rollout["members"] else 0)
        return "settle"

    def step_settle(self) -> stepwise.Following:
        soaks, pace = self._rollout["canary"] == SOAKED, self._pace
        what = f"the canary soaks for {pace.soak_s:g} s (soak_seconds)"
        if not soaks:
            what = f"its members are judged {pace.settle_s:g} s later (settle_seconds)"
        return self._wait_until(what) or "judge"

    def step_judge(self) -> str | None:
        rollout, pace = self._rollout, self._pace
        states = self._states(health=pace.checks_health, only=set(rollout["members"]))
        failed = [member.name for member in states if not member.is_ready]
        before = [name for name in rollout["failed"] if name not in rollout["members"]]
        rollout["failed"] = [*before, *failed]
        unexcused = set(rollout["failed"]).difference(rollout["excused"])
        most_failures = pace.max_failures
        if self.record.action is not Action.UPDATE:
            most_failures = max(most_failures, self.count() - self._least_ready())
        if unexcused.intersection(failed) and len(unexcused) > most_failures:
            if pace.on_failure is OnFailure.PAUSE:
                return self._pause(self._failures())
            if pace.on_failure is OnFailure.ROLLBACK_BATCH:
                rollout["reverts"] = rollout["members"]
                return "revert"
            if pace.on_failure is OnFailure.STOP:
                self._fail(self._failures())
        if rollout["canary"] == TRIED:
            rollout["canary"] = SOAKED
            self._wait_later(pace.soak_s)
            return "settle"
        if rollout["canary"] == SOAKED:
            rollout["canary"] = DONE
            if pace.requires_signal:
                return self._pause("the canary is up")
        self._wait_later(pace.pause_s if rollout["members"] else 0)
        return "rest"

    def step_rest(self) -> stepwise.Following:
        if self._rollout["batch"] == self._rollout["of"]:
            return "choose"
        what = f"the next one begins {self._pace.pause_s:g} s later (pause_time)"
        return self._wait_until(what) or "choose"

    def _least_ready(self) -> int:
        return rollouts.share(self.properties["min_ready"] or "100%", self.count(), up=True)

    # --------------------------------------------------------------------- steps: pauses, rollback

    def _pause(self, reason: str) -> str:
        self._rollout.update(state=PAUSED, reason=reason)
        return "pause"

    def step_pause(self) -> stepwise.Following:
        if following := self._after_signal():
            return following
        signals = ", ".join(rollouts.ENDS_OF_PAUSE)
        why = self._rollout["reason"]
        return Hold(reason=f"roll-out paused {self._place()}, signal one of {signals}: {why}")

    def _after_signal(self) -> str | None:
        rollout = self._rollout
        signal = rollout.pop("signal", None)
        if signal == Signal.ABORT:
            self._fail(f"aborted by a signal {self._place()}")
        if signal == Signal.ROLLBACK:
            rollout["reverts"] = rollout["changed"]
            return "revert"
        if signal == Signal.PAUSE and rollout["state"] != PAUSED:
            return self._pause("a signal asked for it")
        if signal == Signal.CONTINUE and rollout["state"] == WAITING:
            rollout.update(state=RUNNING, any_time=True)
        if signal == Signal.CONTINUE and rollout["state"] == PAUSED:
            rollout["state"] = RUNNING
            rollout["excused"] = rollout["failed"]  # one more try, which may fail
            rollout["left"] = list(dict.fromkeys([*rollout["left"], *rollout["failed"]]))
            rollout["canary"] = DUE if rollout["canary"] == DUE else DONE
            return "resume"
        return None

    def step_resume(self) -> str | None:
        """Continue in a transaction of its own, so that a pause right after it is shown, too."""
        return "look" if self._rollout.get("looks") else "choose"

    def step_revert(self) -> str | None:
        """Restore the next batch, then delete new members.  Raises RolloutFailed at the end."""
        rollout, present = self._rollout, self.current_members()
        rollout["leaving"] = rollout["new"]
        before = {
            name: self._member_of(self.record.properties, name)
            for name in rollout["reverts"]
            if name not in rollout["new"]
        }
        back = [name for name, body in before.items() if present.get(name) != body]
        if back:
            rollout["left"] = back
            batch = rollouts.next_batch(self._states(), self._pace, self.count(), is_canary=False)
            self._change({name: before[name] for name in batch or back[:1]})
        elif leaving := set(rollout["new"]) & present.keys():
            self._change(dict.fromkeys(leaving))
        else:
            why = self._failures() if rollout["failed"] else f"by a signal {self._place()}"
            self._fail(f"rolled back: {why}")
        return "reverted"

    def step_reverted(self) -> stepwise.Following:
        return self._wait_for_child() or "revert"

    def _fail(self, reason: str) -> NoReturn:
        self._rollout.update(state=FAILED, reason=reason)
        raise RolloutFailed(reason)

    def _place(self) -> str:
        return f"after batch {self._rollout['batch']} of {self._rollout['of']}"

    def _failures(self) -> str:
        child = self.child()
        names = ", ".join(self._rollout["failed"]) or "none"
        reason = f": {child.reason}" if child is not None and child.status is Status.FAILED else ""
        return f"members that failed: {names}{reason}"

    # --------------------------------------------------------------------------------------- waits

    def _wait_for_child(self) -> Outcome | None:
        child = self.child()
        if child is None:
            self._fail("its stack is gone")
        if child.status is Status.IN_PROGRESS:
            return base.wait_for(child.id)
        failed = child.status is Status.FAILED
        if failed and Status.IN_PROGRESS in child.statuses().values():
            return Again(after_s=2, reason="its members are at work still")
        return None

    def _wait_for_others(self) -> Outcome | None:
        child, remaining = self.child(), set(self._rollout["left"])
        states = {} if child is None else child.statuses()
        at_work = [n for n, status in states.items() if status is Status.IN_PROGRESS]
        if others := ", ".join(sorted(set(at_work) - remaining, key=groups.in_order)):
            reason = f"waits for members that are at work already: {others}"
            return Again(after_s=OTHERS_S, reason=reason)
        return None

    def _wait_for_window(self) -> Outcome | None:
        """Wait until the window opens; the stack gets this time in addition to its time-out."""
        rollout, window, now = self._rollout, self._pace.window, self.context.utc()
        wait_s = 0 if window is None or rollout.get("any_time") else window.wait_s(now)
        if window is None or not wait_s:
            rollout["state"] = RUNNING
            return None
        opens_at = round(now + wait_s)
        if rollout["state"] != WAITING or rollout["opens_at"] != opens_at:
            self.children().put_off(wait_s)
        place = f" {self._place()}" if rollout["batch"] else ""
        reason = f"roll-out waits{place} for its window, which opens {window.local(opens_at)}"
        rollout.update(state=WAITING, opens_at=opens_at, reason=reason)
        return Again(
            after_s=min(wait_s, WINDOW_POLL_S), reason=f"{reason} ({window})",
            source=self.record.uuid, emits=True,
        )  # fmt: skip

    def _wait_later(self, seconds: float) -> None:
        self._rollout["until"] = self.context.utc() + seconds

    def _wait_until(self, what: str) -> Outcome | None:
        left_s = self._rollout["until"] - self.context.utc()
        if left_s <= 0:
            return None
        done = f"batch {self._rollout['batch']} of {self._rollout['of']} is done"
        return Again(after_s=left_s, reason=f"{done}; {what}", source=self.record.uuid)

    # --------------------------------------------------------------------------- state of members

    def _names(self, *, surge: bool = False) -> list[str]:
        more = self._pace.max_surge if surge else 0
        return groups.names(self.count() + more, set(self.record.data[resource_group.SKIPPED]))

    def _outdated(
        self,
        present: groups.Members,
        states: Mapping[str, Status],
        pace: rollouts.Pace,
        skipped: Collection[str],
    ) -> list[str]:
        """Return the members to change; extra ones only while a member in service changes."""

        def among(count: int) -> list[str]:
            staying = set(groups.names(count, set(skipped)))
            return [
                name
                for name, body in present.items()
                if name in staying
                and (states.get(name) is Status.FAILED or body != self.member(name))
            ]

        outdated = among(self.count() + pace.max_surge)
        in_service = set(outdated) - self._never_created(states)
        return outdated if in_service else among(self.count())

    def _states(
        self, *, health: bool = False, only: Collection[str] | None = None
    ) -> list[rollouts.Member]:
        """Return the state of members; ``health``: read their nodes, too, one read each."""
        child = self.child()
        if child is None:
            return []
        statuses, views, order = child.statuses(), child.resources(), self._pace.order
        health = health or order is rollouts.RolloutOrder.UNHEALTHY_FIRST
        remaining = set(self._rollout.get("left", ()))
        names = self._names(surge=True) if only is None else only
        return [
            rollouts.Member(
                name=name,
                is_ready=statuses[name] is Status.COMPLETE
                and view.ready
                and not (health and str(view.attribute("health")).lower() == "critical"),
                is_current=name not in remaining,
                since=str(view.attribute("deployed_at") or "") if order is OLDEST else "",
            )
            for name in names
            if (view := views.get(name)) is not None
        ]

    # --------------------------------------------------------------------------------- attributes

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        resolvers: dict[str, Callable[[], Any]] = {
            "ready_count": lambda: sum(m.is_ready for m in self._states(health=True)),
            "updated_count": lambda: sum(
                body == self.member(each) for each, body in self.current_members().items()
            ),
            "degraded": lambda: [m.name for m in self._states(health=True) if not m.is_ready],
            "rollout": lambda: {key: self._rollout.get(key) for key in PROGRESS},
            "addresses": lambda: self._of_each("first_address"),
            "nodes": lambda: self._of_each("node_uuid"),
        }
        if name not in resolvers:
            return super().resolve_attribute(name, path)
        return composite.value_at(resolvers[name](), path)

    def _of_each(self, attribute: str) -> list[Any]:
        return [member.attribute(attribute) for member in self.members().values()]


def is_paused(data: Mapping[str, Any]) -> bool:
    """Tell whether a group with this ``data``, if IN_PROGRESS, waits for a signal."""
    return (data.get(ROLLOUT) or {}).get("state") == PAUSED


def opens_at(data: Mapping[str, Any]) -> float | None:
    """Return when the window opens for which a group with this ``data``, if IN_PROGRESS, waits."""
    rollout = data.get(ROLLOUT) or {}
    return rollout["opens_at"] if rollout.get("state") == WAITING else None


def leaving(data: Mapping[str, Any]) -> Collection[str]:
    """Return the members that the running roll-out of a group with this ``data`` will delete."""
    rollout = data.get(ROLLOUT) or {}
    return rollout.get("leaving", ()) if rollout.get("state") in UNDERWAY else ()
