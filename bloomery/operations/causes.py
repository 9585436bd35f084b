"""Find what keeps a node in its state: one rule for each cause, asked in order.

    causes.find(situation).next_action
    # "wait: step deploy.deploy of deploy runs"

A rule returns a cause or None; the first cause is shown.  Causes that block all others come first:
a dead conductor, then the flow's current step, then the reasons to skip the node, then the verbs
that the state allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import secrets
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.conf.conductor import Conductor as Options
from bloomery.db.engine import Refusal
from bloomery.model.conductor import Conductor
from bloomery.model.node import LEFT_OUT_BY_INSPECTION, POWER_FAILURE, Node
from bloomery.model.rules import agents
from bloomery.model.rules import nodes as rules
from bloomery.model.step import Run, StepRun

Json = dict[str, Any]

_LATE_HEARTBEATS: Final = 2  # missing heartbeats: the conductor may be dead
_LOOK_AT_BMC: Final = "look at the BMC (its address: baremetal node show --fields driver_info)"
_ADVICE_IF_OFF: Final = (
    "power it on (baremetal node power on), unless it shall be off: its user's system does not run"
)


_ADJECTIVES: Final = (State.MANAGEABLE, State.AVAILABLE, State.ACTIVE)
_END_OF_RETIREMENT: Final = "end its retirement (baremetal node unset --retired)"
_ACTIONS_IF_RETIRED: Final = {
    State.ACTIVE: "{now}; after deleted (baremetal node undeploy) it is cleaned and stays "
    "manageable",
    State.MANAGEABLE: "delete the node (baremetal node delete), or "
    f"{_END_OF_RETIREMENT}, and ask for provide (baremetal node provide)",
    State.AVAILABLE: "ask for manage, so that nothing is deployed on it (baremetal node manage); "
    f"or {_END_OF_RETIREMENT}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSituation:
    """The facts about a node that the rules read.

    ``refusal``: why nothing can be written.
    ``host``: the conductor that serves it, by the ring; ``nobody``: why there is none.
    ``unreachable``: why the host did not answer; ``unusable``: its refusal of the driver.
    ``driver_info_fault``: why driver_info names no BMC.
    ``bmc_shared``: the node with the same BMC and system.
    ``deploy_refusal``: why its deployment would be refused.
    ``bmc``: what it remembers of the BMC; ``no_worker_since``: when it had none for the flow's
    turn, and has none yet.  ``deploying``, ``cleaning``: how many other nodes are.
    ``power_corrections``: time and text of those of power sync, oldest first.
    """

    refusal: Refusal | None
    node: Node
    runs: Sequence[StepRun]
    run: StepRun | None
    bmc: Json | None
    no_worker_since: datetime | None
    host: str | None
    nobody: str | None
    unreachable: str | None
    unusable: str | None
    conductors: Mapping[str, Conductor]
    deploying: int
    cleaning: int
    power_corrections: Sequence[tuple[datetime, str]]
    options: Options
    now: datetime
    bmc_shared: str | None = None
    driver_info_fault: str | None = None
    deploy_refusal: str | None = None


_MOST_LISTED: Final = 8


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason, its begin, and the next action: of the service, or of the operator."""

    cause: str
    since: datetime | None
    next_action: str


Rule = Callable[[NodeSituation], Cause | None]


def find(situation: NodeSituation) -> Cause:
    """Return the first cause that applies; the state's own at the end."""
    return next(cause for rule in _RULES if (cause := rule(situation)) is not None)


# ------------------------------------------------------------------------------- conductors


def _nothing_can_be_written(s: NodeSituation) -> Cause | None:
    """The database refuses writes; heartbeats, locks and steps are stale meanwhile."""
    if s.refusal is None:
        return None
    return Cause(
        f"{s.refusal}", s.refusal.since,
        "make room on the disk, or see why the database of [database]connection fails: work goes "
        "on by itself with the next write",
    )  # fmt: skip


def _holder_is_away(s: NodeSituation) -> Cause | None:
    """The node's lock belongs to a conductor that is dead, paused, or ends its work."""
    node = s.node
    holder = s.conductors.get(node.reservation) if node.reservation else None
    if node.reservation is None or (holder and holder.alive and not _is_late(s, holder)):
        return None
    reservation = f"conductor {node.reservation} holds the node for {node.reserved_for}"
    if holder is None:
        return Cause(
            f"{reservation}, and is not registered", node.reserved_at,
            f"start conductor {node.reservation} again (bloomery conductor): it frees what it held",
        )  # fmt: skip
    if not holder.online and holder.silent_s < s.options.heartbeat_timeout:
        return Cause(
            f"{reservation}, is off line and ends its work", node.reserved_at,
            "wait: when it ends the node is free, or another conductor continues its flow",
        )  # fmt: skip
    timeout_s, silent_s = s.options.heartbeat_timeout, holder.silent_s
    return Cause(
        f"{reservation}, and sent no heartbeat for {silent_s:.0f} s",
        s.now - timedelta(seconds=silent_s),
        f"look at conductor {holder.hostname} (bloomery conductor list); another conductor frees "
        f"its nodes and continues their flows after {timeout_s} s, or it does so itself when it "
        "starts again",
    )


def _is_late(s: NodeSituation, conductor: Conductor) -> bool:
    return conductor.silent_s > _LATE_HEARTBEATS * s.options.heartbeat_interval


def _nobody_serves(s: NodeSituation) -> Cause | None:
    if s.nobody is None or s.node.reservation is not None:
        return None
    return Cause(
        f"no conductor serves the node: {s.nobody}", None,
        "start a conductor with this driver and conductor group ([DEFAULT]enabled_hardware_types, "
        "[conductor]conductor_group), or change those of the node (baremetal node set)",
    )  # fmt: skip


def _flow_is_orphaned(s: NodeSituation) -> Cause | None:
    """The node has an open flow but no lock, and the flow waits for no call."""
    if s.run is None or s.node.reservation or s.run.state not in (Run.RUNNING, Run.AGAIN):
        return None
    left_by = f", left by conductor {s.run.conductor}" if s.run.conductor else ""
    return Cause(
        f"no conductor runs its flow{left_by}: step {s.run.step.name}", s.run.started_at,
        f"wait: conductor {s.host} continues the flow within "
        f"{s.options.check_provision_state_interval} s",
    )  # fmt: skip


def _conductor_is_out_of_reach(s: NodeSituation) -> Cause | None:
    if s.unreachable is None or s.host is None:
        return None
    conductor = s.conductors.get(s.host)
    late = "" if conductor is None or not _is_late(s, conductor) else (
        f", and it sent no heartbeat for {conductor.silent_s:.0f} s"
    )  # fmt: skip
    return Cause(
        f"conductor {s.host} serves the node and cannot be asked from here: {s.unreachable}{late}",
        s.now - timedelta(seconds=conductor.silent_s) if conductor and late else None,
        f"check the connection to conductor {s.host}: its network, the message broker "
        "([DEFAULT]transport_url), its process (bloomery conductor list); its work continues",
    )


def _driver_is_unusable(s: NodeSituation) -> Cause | None:
    if s.unusable is None:
        return None
    return Cause(
        f"conductor {s.host} cannot use the node's driver: {s.unusable}", None,
        "enable it on that conductor ([DEFAULT]enabled_hardware_types, and those of "
        "interfaces), or change the node's driver or interfaces (baremetal node set)",
    )  # fmt: skip


# ------------------------------------------------------------------------------------- flows


def _driver_info_is_unfit(s: NodeSituation) -> Cause | None:
    """A key of driver_info is missing or wrong, so that the BMC cannot be asked."""
    if s.driver_info_fault is None or s.runs:
        return None
    return Cause(
        f"{_is_in(s.node)}; its BMC cannot be asked: "
        f"{secrets.mask(s.driver_info_fault)}", None,
        "correct driver_info (baremetal node set --driver-info KEY=VALUE, baremetal node unset "
        "--driver-info KEY), and repeat what failed; in enroll, that is manage (baremetal node "
        "manage)",
    )  # fmt: skip


def _step_is_held(s: NodeSituation) -> Cause | None:
    if s.run is None or s.run.state != Run.HELD:
        return None
    return Cause(
        f"{s.run.phase} is held: {s.run.reason}", s.run.started_at,
        "unhold it to continue, or abort it (baremetal node unhold, baremetal node abort)",
    )  # fmt: skip


def _waits_for_call(s: NodeSituation) -> Cause | None:
    if s.run is None or s.run.state != Run.WAITING:
        return None
    info = s.node.driver_internal_info
    last, place = info.get(agents.LAST_HEARTBEAT), info.get("agent_url")
    heard = (
        f"whose last heartbeat came at {last} from {place}"
        if place
        else "which sent no heartbeat in this boot"
    )
    return Cause(
        f"step {s.run.step.name} of {s.run.phase} waits for a call of the agent, {heard}",
        s.run.started_at,
        f"wait for the call, or ask for abort (baremetal node abort): {s.run.reason}",
    )  # fmt: skip


def _step_bears_an_outage(s: NodeSituation) -> Cause | None:
    if s.run is None or s.run.state != Run.AGAIN or s.run.deadline_at is None:
        return None
    return Cause(
        f"step {s.run.step.name} of {s.run.phase} is tried again: {s.run.reason}",
        s.run.started_at, f"{_LOOK_AT_BMC}, or wait: {s.run.reason}",
    )  # fmt: skip


def _step_waits_for_a_worker(s: NodeSituation) -> Cause | None:
    """The step is due, and the conductor has no free worker."""
    if s.run is None or s.run.state != Run.AGAIN or s.no_worker_since is None:
        return None
    return Cause(
        f"step {s.run.step.name} of {s.run.phase} is due, and no worker of conductor "
        f"{s.node.reservation} is free", s.no_worker_since,
        "wait, or give that conductor more workers: [conductor]workers_pool_size",
    )  # fmt: skip


def _step_waits_for_the_bmc(s: NodeSituation) -> Cause | None:
    """The BMC failed to answer during the step, which tolerates that for a while."""
    run = s.run
    if run is None or run.step.child or (silence := _silence(s, run.started_at)) is None:
        return None
    since, sentence = silence
    own = f" ({run.reason})" if run.state == Run.AGAIN and run.reason else ""
    return Cause(
        f"step {run.step.name} of {run.phase} waits{own}: {sentence}", since,
        f"{_LOOK_AT_BMC}, or wait: step {run.step.name} goes on when it answers, or fails",
    )  # fmt: skip


def _step_goes_on(s: NodeSituation) -> Cause | None:
    if s.run is None:
        return None
    on_child = f" on child node {s.run.step.child}" if s.run.step.child else ""
    again = "; it was repeated after an interruption" if s.run.recovery_weight else ""
    paused = f": {s.run.reason}" if s.run.state == Run.AGAIN and s.run.reason else ""
    return Cause(
        f"step {s.run.step.name} of {s.run.phase} runs{on_child}{paused}{again}", s.run.started_at,
        f"wait: step {s.run.step.name} of {s.run.phase} runs",
    )  # fmt: skip


def _is_locked(s: NodeSituation) -> Cause | None:
    node = s.node
    if node.reservation is None:
        return None
    power = f"; its power changes to {node.target_power_state}" if (
        node.target_power_state
    ) else ""  # fmt: skip
    return Cause(
        f"conductor {node.reservation} holds the node for {node.reserved_for}{power}",
        node.reserved_at, "wait: the lock is free when that is done",
    )  # fmt: skip


def _is_underway_alone(s: NodeSituation) -> Cause | None:
    if s.node.provision_state not in states.UNSTABLE_STATES:
        return None
    return Cause(
        f"it is {s.node.provision_state}, and has no flow",
        s.node.provision_updated_at, "wait: the conductor ends this state at its next check",
    )  # fmt: skip


# -------------------------------------------------------------------------------- left alone


def _login_is_refused(s: NodeSituation) -> Cause | None:
    refusal = None if s.bmc is None else s.bmc.get("login_refused")
    if not refusal:
        return None
    return Cause(
        f"the BMC refuses the login; attempts so far: {refusal['tries']}",
        _time(refusal["since"]),
        "correct user name and password in driver_info (baremetal node set --driver-info): "
        f"the next attempt is at {_short(refusal['next_try_at'])}, or when driver_info changes",
    )


def _power_failed(s: NodeSituation) -> Cause | None:
    if not s.node.maintenance or s.node.fault != POWER_FAILURE:
        return None
    every_s = s.options.power_failure_recovery_interval
    action = (
        f"{_LOOK_AT_BMC}, and end maintenance when it answers again (baremetal node maintenance "
        "unset)"
    )
    if every_s:
        action = (
            f"{_LOOK_AT_BMC}: maintenance ends by itself when it answers again; it is asked after "
            f"{every_s} to {4 * every_s} s, and within {every_s} s once anything has reached it"
        )
    since = _since_bmc(s) or s.node.maintenance_at
    return Cause(f"the BMC does not answer: {_reason(s)}", since, action)


def _reason(s: NodeSituation) -> str:
    return str(
        secrets.mask(s.node.maintenance_reason or s.node.last_error or "no reason is recorded")
    )


def _since_bmc(s: NodeSituation) -> datetime | None:
    return None if s.bmc is None else _time(s.bmc.get("last_contact_at"))


def _silence(s: NodeSituation, after: datetime | None = None) -> tuple[datetime, str] | None:
    """Return the time of the BMC's first silence, and a sentence; None: the BMC is not silent."""
    bmc = s.bmc or {}
    since, asked_at = _time(bmc.get("silent_since")), _time(bmc.get("last_error_at"))
    if since is None or asked_at is None or (after and asked_at < after):
        return None
    return since, (
        f"the BMC does not answer since {since:%H:%M:%S} UTC, asked last at {asked_at:%H:%M:%S}: "
        f"{secrets.mask(bmc['last_error'])}"
    )


def _bmc_is_left_alone(s: NodeSituation) -> Cause | None:
    if s.bmc is None or not s.bmc.get("left_alone"):
        return None
    return Cause(
        f"the BMC failed again and again and is left alone: {secrets.mask(s.bmc['last_error'])}",
        _time(s.bmc.get("last_error_at")),
        f"{_LOOK_AT_BMC}; it is tried again at {_short(s.bmc['next_try_at'])}, and at once by an "
        "order of power or boot device, or by manage (baremetal node power, baremetal node boot "
        "device set, baremetal node manage)",
    )


def _bmc_is_silent(s: NodeSituation) -> Cause | None:
    if s.node.maintenance or (silence := _silence(s)) is None:
        return None
    since, sentence = silence
    return Cause(
        f"{_is_in(s.node)}, and {sentence}", since,
        f"{_LOOK_AT_BMC}: nothing that needs it can be done; once it answers again, "
        f"{_action_by_state(s)}",
    )  # fmt: skip


def _fault_is_set(s: NodeSituation) -> Cause | None:
    """A flow that failed has put the node into maintenance."""
    node = s.node
    if not node.maintenance or node.fault is None:
        return None
    return Cause(
        f"{_is_in(node)}, and in maintenance for {node.fault}: {_reason(s)}",
        node.maintenance_at, _action_by_state(s),
    )  # fmt: skip


def _is_in_maintenance(s: NodeSituation) -> Cause | None:
    if not s.node.maintenance:
        return None
    reason = secrets.mask(s.node.maintenance_reason)
    return Cause(
        "an operator has set maintenance" + (f": {reason}" if reason else ""),
        s.node.maintenance_at,
        "end maintenance when the work on the machine is done (baremetal node maintenance unset)",
    )  # fmt: skip


# ------------------------------------------------------------------------ what may be asked


def _limit_is_reached(s: NodeSituation) -> Cause | None:
    """A deployment, or the cleaning on the way to available, would be refused now."""
    options, state = s.options, s.node.provision_state
    if state == State.AVAILABLE and s.deploying >= options.max_concurrent_deploy:
        count, option, work = s.deploying, "max_concurrent_deploy", "deployments"
    elif state in (State.ACTIVE, State.MANAGEABLE) and s.cleaning >= options.max_concurrent_clean:
        count, option, work = s.cleaning, "max_concurrent_clean", "cleanings"
    else:
        return None
    return Cause(
        f"{count} {work} run, the limit of [conductor]{option}: another one is refused", None,
        f"{_action_by_state(s)}; wait for others to end first, or raise [conductor]{option}",
    )  # fmt: skip


def _bmc_is_shared(s: NodeSituation) -> Cause | None:
    """Another node has the same BMC and system: both are synchronised with one machine."""
    if s.bmc_shared is None:
        return None
    return Cause(
        f"{_is_in(s.node)}; {secrets.mask(s.bmc_shared)}", None,
        "correct address or system in driver_info of one of the nodes, or delete one",
    )  # fmt: skip


def _inspection_left_out(s: NodeSituation) -> Cause | None:
    """Another node has the addresses of ports that the last inspection found."""
    left_out = s.node.driver_internal_info.get(LEFT_OUT_BY_INSPECTION)
    if not left_out:
        return None
    return Cause(
        f"{_is_in(s.node)}; its last inspection left out "
        f"{secrets.mask(', '.join(left_out[:_MOST_LISTED]))}",
        s.node.inspection_finished_at,
        "see whether one machine is enrolled twice, or a BMC's address is another machine's; "
        "delete the wrong port or node (baremetal port delete), and inspect again",
    )  # fmt: skip


def _power_was_corrected(s: NodeSituation) -> Cause | None:
    """The machine was in another power state than recorded, less than a day ago."""
    if not s.power_corrections:
        return None
    at, event = s.power_corrections[-1]
    return Cause(
        f"{_is_in(s.node)}; {secrets.mask(event)} (at {at:%H:%M:%S} UTC)", at,
        "find what switches it other than Bloomery (its system, heat, a power supply, a button), "
        "and set the wanted power state (baremetal node power on, or off)",
    )  # fmt: skip


def _console_is_down(s: NodeSituation) -> Cause | None:
    """The node's conductor is gone, and its successor could not start the console."""
    console = s.node.driver_internal_info.get("console") or {}
    if not s.node.console_enabled or not console.get("error"):
        return None
    return Cause(
        f"its console is enabled, and conductor {console['conductor']} could not start it: "
        f"{secrets.mask(console['error'])}", None,
        f"{_action_by_state(s)}; correct the cause, and enable the console again "
        "(baremetal node console enable)",
    )  # fmt: skip


def _is_protected(s: NodeSituation) -> Cause | None:
    if not s.node.protected or s.node.provision_state not in (State.ACTIVE, State.RESCUE):
        return None
    reason = secrets.mask(s.node.protected_reason)
    return Cause(
        "it is protected: deleted and rebuild are refused" + (f" ({reason})" if reason else ""),
        None,
        f"{_action_by_state(s)}; set protected to false before deleted or rebuild "
        "(baremetal node unset --protected)",
    )  # fmt: skip


def _is_retired(s: NodeSituation) -> Cause | None:
    """An available node gets there where automated cleaning is off; see ``cleaning.check``."""
    state = s.node.provision_state
    action = _ACTIONS_IF_RETIRED.get(State(state)) if s.node.retired and state else None
    if action is None:
        return None
    effect = (
        "no allocation takes it" if state == State.AVAILABLE else "it will not become available"
    )
    reason = secrets.mask(s.node.retired_reason)
    return Cause(
        f"it is retired: {effect}" + (f" ({reason})" if reason else ""), None,
        action.format(now=_action_by_state(s)),
    )  # fmt: skip


def _is_allocated(s: NodeSituation) -> Cause | None:
    node = s.node
    if node.provision_state != State.AVAILABLE or node.instance_uuid is None:
        return None
    whose = "a user"
    way_back = "remove its instance (baremetal node deploy, baremetal node unset --instance-uuid)"
    if node.allocation_uuid:
        whose = f"allocation {node.allocation_uuid}"
        way_back = "delete the allocation (baremetal node deploy, baremetal allocation delete)"
    return Cause(
        f"{whose} has reserved it for instance {node.instance_uuid}", None,
        f"ask for active, or {way_back}",
    )  # fmt: skip


def _deployment_is_refused(s: NodeSituation) -> Cause | None:
    """The node waits for a deployment, and its settings do not allow one."""
    if s.deploy_refusal is None:
        return None
    return Cause(
        f"{_is_in(s.node)}, and a deployment would be refused: "
        f"{secrets.mask(s.deploy_refusal)}", None,
        "set what is named (baremetal node set), and ask again: bloomery node deploy --check",
    )  # fmt: skip


def _looks_mistaken(s: NodeSituation) -> Cause | None:
    """The node can be deployed, and probably not as its operator means."""
    is_available = s.node.provision_state == State.AVAILABLE
    doubts = rules.list_doubts(s.node) if is_available else []
    if not doubts:
        return None
    return Cause(
        f"{_is_in(s.node)}; {secrets.mask('; '.join(doubts))}", None,
        "set what is named (baremetal node set), or ask for active (baremetal node deploy)",
    )  # fmt: skip


def _state_says_all(s: NodeSituation) -> Cause:
    node, state = s.node, str(s.node.provision_state or "unknown")
    off = ", and is powered off" if _is_off(node) else ""
    error = ""
    if node.last_error is not None:
        rests = "" if _failed(node) else "; the last error is"
        error = f"{rests}: {secrets.mask(node.last_error)}"
    is_well = not (off or error or state in (*states.FAILURE_STATES, State.ERROR))
    return Cause(
        f"{'nothing is wrong: ' if is_well else ''}{_is_in(node)}{off}{error}",
        node.provision_updated_at, _action_by_state(s),
    )  # fmt: skip


def _is_in(node: Node) -> str:
    """Return the state as a clause; most states are nouns, a few are adjectives."""
    state = str(node.provision_state or "unknown")
    return f"it is {state}" if state in _ADJECTIVES else f"it is in {state}"


def _is_off(node: Node) -> bool:
    return node.provision_state == State.ACTIVE and node.power_state == states.Power.OFF


def _failed(node: Node) -> bool:
    """Whether the state itself is about the last error."""
    state = node.provision_state
    return state in states.FAILURE_STATES or state in (State.ERROR, State.ENROLL)


def _action_by_state(s: NodeSituation) -> str:
    node, state = s.node, s.node.provision_state
    if state == State.ENROLL and node.last_error is not None:
        return (
            "read last_error, correct its cause, and ask for manage again (baremetal node manage)"
        )
    words = states.advice(state, maintenance=bool(node.maintenance))
    if _is_off(node) and not node.maintenance:
        words = _ADVICE_IF_OFF
    if _failed(node) and (logs := node.driver_internal_info.get("agent_logs")):
        words += f"; the logs of its ramdisk are in {logs['file']} on {logs['host']}"
    if node.last_error is None or node.maintenance or _failed(node):
        return words
    return (
        "correct the cause in last_error (baremetal node show --fields last_error), and repeat "
        f"what failed; or {words}"
    )


def _short(time: str | None) -> str:
    """Return a time of the conductor's facts to the second."""
    at = _time(time)
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


_RULES: Final[tuple[Rule, ...]] = (
    _nothing_can_be_written,
    _holder_is_away,
    _nobody_serves,
    _flow_is_orphaned,
    _conductor_is_out_of_reach,
    _driver_is_unusable,
    _step_is_held,
    _waits_for_call,
    _step_bears_an_outage,
    _step_waits_for_a_worker,
    _step_waits_for_the_bmc,
    _step_goes_on,
    _driver_info_is_unfit,
    _login_is_refused,
    _is_locked,
    _is_underway_alone,
    _power_failed,
    _bmc_is_left_alone,
    _bmc_is_silent,
    _fault_is_set,
    _is_in_maintenance,
    _bmc_is_shared,
    _inspection_left_out,
    _power_was_corrected,
    _limit_is_reached,
    _console_is_down,
    _is_protected,
    _is_allocated,
    _is_retired,
    _deployment_is_refused,
    _looks_mistaken,
    _state_says_all,
)
