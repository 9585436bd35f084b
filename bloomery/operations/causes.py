"""The engine of every ``why``, and the causes that keep a node in its state.

    causes.find(causes.OF_NODE, situation).next_action
    # "wait: step deploy.deploy of deploy runs"

A table has a rule for each cause; the first rule that applies is the cause.  Causes that block all
others come first: a dead conductor, then the flow's current step, then the reasons to skip the
node, then the verbs that the state allows.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar

from bloomery import secrets
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.conf.conductor import Conductor as Options
from bloomery.db.engine import Refusal
from bloomery.model.conductor import Conductor
from bloomery.model.node import FLOW_RETRY, LEFT_OUT_BY_INSPECTION, POWER_FAILURE, Node
from bloomery.model.rules import agents
from bloomery.model.rules import nodes as rules
from bloomery.model.step import Run, StepRun

Json = dict[str, Any]
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """One cause: its condition, its code, its sentence, and what to do next.

    ``when``: a fact about the subject; the rule applies where it is true.  Code and sentences are
    templates of the subject ``s`` and that ``fact``; the next action may have the ``{cause}``.
    A field with a format such as ``{s.reason: (%s)}`` is left out where it has no value.
    An empty code: nothing is wrong.
    ``since``: the field of the cause's begin, such as ``s.run.started_at``.
    """

    code: str
    when: Callable[[S], Any]
    cause: str
    next_action: str
    since: str | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason, its begin, and the next action: of the service, or of the operator."""

    code: str | None
    cause: str
    since: datetime | None
    next_action: str


class _Sentence(string.Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        if "%s" not in spec:
            return str(super().format_field(value, spec))
        return spec.replace("%s", str(value)) if value else ""


_SENTENCE: Final = _Sentence()


def find(table: Iterable[Rule[S]], subject: S) -> Cause:
    """Return the first cause that applies, secrets masked; the last rule of a table always does."""
    rule, fact = next((rule, fact) for rule in table if (fact := rule.when(subject)))
    facts: Json = {"s": subject, "fact": fact}
    cause = str(secrets.mask(_SENTENCE.format(rule.cause, **facts)))
    action = str(secrets.mask(_SENTENCE.format(rule.next_action, **facts, cause=cause)))
    since = None if rule.since is None else _SENTENCE.get_field(rule.since, (), facts)[0]
    return Cause(rule.code.format(**facts) or None, cause, since, action)


# ----------------------------------------------------------------------------------- the table

_LOOK_AT_BMC: Final = "look at the BMC (its address: baremetal node show --fields driver_info)"
_ASK_CONDUCTOR: Final = (
    "check the connection to conductor {s.host}: its network, the message broker "
    "([DEFAULT]transport_url), its process (bloomery conductor list); its work continues"
)
_STEP_RUNS: Final = "{s.step} runs{s.run.step.child: on child node %s}{s.pause:: %s}"
_END_OF_RETIREMENT: Final = "end its retirement (baremetal node unset --retired)"

OF_NODE: Final[tuple[Rule[NodeSituation], ...]] = (
    # heartbeats, locks and steps are stale meanwhile
    Rule("database_refuses_writes", lambda s: s.refusal, "{fact}",
         "make room on the disk, or see why the database of [database]connection fails: work goes "
         "on by itself with the next write", since="fact.since"),
    # --- conductors
    Rule("lock_of_unknown_conductor", lambda s: s.node.reservation and s.holder is None,
         "{s.lock}, and is not registered",
         "start conductor {s.node.reservation} again (bloomery conductor): it frees what it held",
         since="s.node.reserved_at"),
    Rule("lock_of_ending_conductor",
         lambda s: (holder := s.absent_holder) and not holder.online
         and holder.silent_s < s.options.heartbeat_timeout,
         "{s.lock}, is off line and ends its work",
         "wait: when it ends the node is free, or another conductor continues its flow",
         since="s.node.reserved_at"),
    Rule("lock_of_silent_conductor", lambda s: s.absent_holder,
         "{s.lock}, and sent no heartbeat for {fact.silent_s:.0f} s",
         "look at conductor {fact.hostname} (bloomery conductor list); another conductor frees its "
         "nodes and continues their flows after {s.options.heartbeat_timeout} s, or it does so "
         "itself when it starts again", since="s.holder_heard_at"),
    Rule("no_conductor", lambda s: s.nobody is not None and s.node.reservation is None,
         "no conductor serves the node: {s.nobody}",
         "start a conductor with this driver and conductor group ([DEFAULT]enabled_hardware_types, "
         "[conductor]conductor_group), or change those of the node (baremetal node set)"),
    # an open flow without a lock, which waits for no call
    Rule("flow_orphaned",
         lambda s: not s.node.reservation and s.runs_as(Run.RUNNING, Run.AGAIN),
         "no conductor runs its flow{s.run.conductor:, left by conductor %s}: step "
         "{s.run.step.name}",
         "wait: conductor {s.host} continues the flow within "
         "{s.options.check_provision_state_interval} s", since="s.run.started_at"),
    Rule("conductor_silent", lambda s: s.unreachable is not None and s.late_host,
         "conductor {s.host} serves the node and cannot be asked from here: {s.unreachable}, and "
         "it sent no heartbeat for {fact.silent_s:.0f} s", _ASK_CONDUCTOR, since="s.host_heard_at"),
    Rule("conductor_unreachable", lambda s: s.unreachable is not None and s.host is not None,
         "conductor {s.host} serves the node and cannot be asked from here: {s.unreachable}",
         _ASK_CONDUCTOR),
    Rule("driver_unusable", lambda s: s.unusable is not None,
         "conductor {s.host} cannot use the node's driver: {s.unusable}",
         "enable it on that conductor ([DEFAULT]enabled_hardware_types, and those of interfaces), "
         "or change the node's driver or interfaces (baremetal node set)"),
    # --- the machine is in danger, whatever it does
    Rule("leak", lambda s: s.leaks,
         "{s.in_state}; its leak detectors say Critical: {s.leaking}",
         "switch it off, and look for the leak (baremetal node power off); its sensors are read "
         "within {s.sensor_interval_s} s, and tell whether it has ended", since="s.leaks_since"),
    # --- flows
    Rule("step_held", lambda s: s.runs_as(Run.HELD), "{s.run.phase} is held: {s.run.reason}",
         "unhold it to continue, or abort it (baremetal node unhold, baremetal node abort)",
         since="s.run.started_at"),
    Rule("step_waits_for_call", lambda s: s.runs_as(Run.WAITING),
         "{s.step} waits for a call of the agent, {s.agent_heard}",
         "wait for the call, or ask for abort (baremetal node abort): {s.run.reason}",
         since="s.run.started_at"),
    Rule("step_waits_for_switch",
         lambda s: s.runs_as(Run.AGAIN) and s.run and (s.run.reason or "").startswith("switch "),
         "{s.step} waits: {s.run.reason}",
         "look at the switch that is named (its address and login: the file of "
         "[ironic_networking]switch_config_file), or wait: {s.run.reason}",
         since="s.run.started_at"),
    Rule("step_tolerates_outage", lambda s: s.runs_as(Run.AGAIN) and s.run and s.run.deadline_at,
         "{s.step} is tried again: {s.run.reason}", _LOOK_AT_BMC + ", or wait: {s.run.reason}",
         since="s.run.started_at"),
    Rule("step_without_worker", lambda s: s.runs_as(Run.AGAIN) and s.no_worker_since,
         "{s.step} is due, and no worker of conductor {s.node.reservation} is free",
         "wait, or give that conductor more workers: [conductor]workers_pool_size", since="fact"),
    # the step tolerates a silent BMC for a while
    Rule("step_waits_for_bmc", lambda s: s.step_silence,
         "{s.step} waits{s.pause: (%s)}: {fact.sentence}",
         _LOOK_AT_BMC + ", or wait: step {s.run.step.name} goes on when it answers, or fails",
         since="fact.since"),
    Rule("step_repeated", lambda s: s.run and s.run.recovery_weight,
         _STEP_RUNS + "; it was repeated after an interruption", "wait: {s.step} runs",
         since="s.run.started_at"),
    Rule("step_runs", lambda s: s.run, _STEP_RUNS, "wait: {s.step} runs",
         since="s.run.started_at"),
    Rule("driver_info_unfit", lambda s: s.driver_info_fault is not None and not s.runs,
         "{s.in_state}; its BMC cannot be asked: {s.driver_info_fault}",
         "correct driver_info (baremetal node set --driver-info KEY=VALUE, baremetal node unset "
         "--driver-info KEY), and repeat what failed; in enroll, that is manage (baremetal node "
         "manage)"),
    # the other password is that of a change (``drivers/passwords``)
    Rule("bmc_password_lost", lambda s: s.working_login == "former" and s.login_refused,
         "{s.in_state}; the BMC refuses its password, and takes the one before: it lost the change",
         "set a password again (step management.set_bmc_password); where the BMC loses that, too, "
         "tell its vendor", since="fact[since]"),
    Rule("bmc_password_pending", lambda s: s.working_login == "new" and s.login_refused,
         "{s.in_state}; the BMC refuses its password, and takes that of a change without an end",
         "end the change: set a password again (step management.set_bmc_password)",
         since="fact[since]"),
    Rule("login_refused", lambda s: s.login_refused,
         "the BMC refuses the login; attempts so far: {fact[tries]}",
         "correct user name and password in driver_info (baremetal node set --driver-info): the "
         "next attempt is at {s.next_try}, or when driver_info changes", since="fact[since]"),
    Rule("locked", lambda s: s.node.reservation,
         "{s.lock}{s.node.target_power_state:; its power changes to %s}",
         "wait: the lock is free when that is done", since="s.node.reserved_at"),
    Rule("state_without_flow", lambda s: s.stays(*states.UNSTABLE_STATES),
         "it is {s.node.provision_state}, and has no flow",
         "wait: the conductor ends this state at its next check",
         since="s.node.provision_updated_at"),
    # --- nodes that are left alone
    # a tray was pulled, or another number given to its system: other systems of the BMC go on
    Rule("system_absent", lambda s: (s.fits_power_failure and s.system_absent_since),
         "{s.in_state}; its BMC answers, and does not show its system{s.absent_system: %s} since "
         "{fact:%Y-%m-%d %H:%M:%S} UTC: it may have been pulled",
         "put its tray back, or correct driver_info/redfish_system_id (baremetal node set "
         "--driver-info){s.end_of_fault}", since="fact"),
    Rule("power_failure",
         lambda s: s.node.maintenance and s.node.fault == POWER_FAILURE
         and (every_s := s.options.power_failure_recovery_interval) and (every_s, 4 * every_s),
         "the BMC does not answer: {s.fault_reason}",
         _LOOK_AT_BMC + ": maintenance ends by itself when it answers again; it is asked after "
         "{fact[0]} to {fact[1]} s, and within {fact[0]} s once anything has reached it",
         since="s.bmc_heard_at"),
    Rule("power_failure", lambda s: s.node.maintenance and s.node.fault == POWER_FAILURE,
         "the BMC does not answer: {s.fault_reason}",
         _LOOK_AT_BMC + ", and end maintenance when it answers again (baremetal node maintenance "
         "unset)", since="s.bmc_heard_at"),
    Rule("retry_is_due", lambda s: s.retry,
         "{s.in_state}, for a cause that may pass: {s.fault_reason}",
         "wait: retry {fact[attempt]} of {fact[of]} begins by itself after {fact[due_at]}; to stop "
         "it, ask for manage (baremetal node manage)", since="s.node.provision_updated_at"),
    Rule("bmc_left_alone", lambda s: s.bmc and s.bmc.get("left_alone"),
         "the BMC failed again and again and is left alone: {s.bmc[last_error]}",
         _LOOK_AT_BMC + "; it is tried again at {s.next_try}, and at once by an order of power or "
         "boot device, or by manage (baremetal node power, baremetal node boot device set, "
         "baremetal node manage)", since="s.bmc_failed_at"),
    Rule("bmc_silent", lambda s: not s.node.maintenance and s.silence(),
         "{s.in_state}, and {fact.sentence}",
         _LOOK_AT_BMC + ": nothing that needs it can be done; once it answers again, "
         "{s.action_by_state}", since="fact.since"),
    # a flow that failed has put the node into maintenance
    Rule("{s.code}", lambda s: s.node.maintenance and s.node.fault,
         "{s.in_state}, and in maintenance for {fact}: {s.fault_reason}{s.evidence:; %s}",
         "{s.action_by_state}",
         since="s.node.maintenance_at"),
    Rule("maintenance", lambda s: s.node.maintenance,
         "an operator has set maintenance{s.node.maintenance_reason:: %s}",
         "end maintenance when the work on the machine is done (baremetal node maintenance unset)",
         since="s.node.maintenance_at"),
    # --- what may be asked
    # both are synchronised with one machine
    Rule("bmc_shared", lambda s: s.bmc_shared is not None, "{s.in_state}; {s.bmc_shared}",
         "correct address or system in driver_info of one of the nodes, or delete one"),
    # another node has the addresses of ports that the last inspection found
    Rule("ports_left_out", lambda s: s.ports_left_out,
         "{s.in_state}; its last inspection left out {fact}",
         "see whether one machine is enrolled twice, or a BMC's address is another machine's; "
         "delete the wrong port or node (baremetal port delete), and inspect again",
         since="s.node.inspection_finished_at"),
    Rule("power_corrected", lambda s: s.power_corrections and s.power_corrections[-1],
         "{s.in_state}; {fact[1]} (at {fact[0]:%H:%M:%S} UTC)",
         "find what switches it other than Bloomery (its system, heat, a power supply, a button), "
         "and set the wanted power state (baremetal node power on, or off)", since="fact[0]"),
    Rule("deploy_limit",
         lambda s: s.stays(State.AVAILABLE) and s.deploying >= s.options.max_concurrent_deploy,
         "{s.deploying} deployments run, the limit of [conductor]max_concurrent_deploy: another "
         "one is refused",
         "{s.action_by_state}; wait for others to end first, or raise "
         "[conductor]max_concurrent_deploy"),
    Rule("clean_limit",
         lambda s: s.stays(State.ACTIVE, State.MANAGEABLE)
         and s.cleaning >= s.options.max_concurrent_clean,
         "{s.cleaning} cleanings run, the limit of [conductor]max_concurrent_clean: another one is "
         "refused",
         "{s.action_by_state}; wait for others to end first, or raise "
         "[conductor]max_concurrent_clean"),
    # the node's conductor is gone, and its successor tried
    Rule("console_down", lambda s: s.failed_console,
         "its console is enabled, and conductor {fact[conductor]} could not start it: "
         "{fact[error]}",
         "{s.action_by_state}; correct the cause, and enable the console again (baremetal node "
         "console enable)"),
    Rule("protected", lambda s: s.node.protected and s.stays(State.ACTIVE, State.RESCUE),
         "it is protected: deleted and rebuild are refused{s.node.protected_reason: (%s)}",
         "{s.action_by_state}"),
    Rule("allocated",
         lambda s: s.stays(State.AVAILABLE) and s.node.instance_uuid and s.node.allocation_uuid,
         "allocation {fact} has reserved it for instance {s.node.instance_uuid}",
         "ask for active, or delete the allocation (baremetal node deploy, baremetal allocation "
         "delete)"),
    Rule("reserved", lambda s: s.stays(State.AVAILABLE) and s.node.instance_uuid,
         "a user has reserved it for instance {fact}",
         "ask for active, or remove its instance (baremetal node deploy, baremetal node unset "
         "--instance-uuid)"),
    # it gets there where automated cleaning is off
    Rule("retired", lambda s: s.node.retired and s.stays(State.AVAILABLE),
         "it is retired: no allocation takes it{s.node.retired_reason: (%s)}",
         "ask for manage, so that nothing is deployed on it (baremetal node manage); or "
         + _END_OF_RETIREMENT),
    Rule("retired", lambda s: s.node.retired and s.stays(State.MANAGEABLE),
         "it is retired: it will not become available{s.node.retired_reason: (%s)}",
         "delete the node (baremetal node delete), or " + _END_OF_RETIREMENT + ", and ask for "
         "provide (baremetal node provide)"),
    Rule("retired", lambda s: s.node.retired and s.stays(State.ACTIVE) and s.is_cleaned,
         "it is retired: it will not become available{s.node.retired_reason: (%s)}",
         "{s.action_by_state}; after deleted (baremetal node undeploy) it is cleaned and "
         "manageable"),
    Rule("retired", lambda s: s.node.retired and s.stays(State.ACTIVE),
         "it is retired: no allocation takes it{s.node.retired_reason: (%s)}",
         "{s.action_by_state}; after deleted (baremetal node undeploy) it is available, not "
         "cleaned"),
    Rule("deploy_refused", lambda s: s.deploy_refusal is not None,
         "{s.in_state}, and a deployment would be refused: {s.deploy_refusal}",
         "set what is named (baremetal node set), and ask again: bloomery node deploy --check"),
    # it can be deployed, and probably not as its operator means
    Rule("doubtful", lambda s: s.stays(State.AVAILABLE) and "; ".join(rules.list_doubts(s.node)),
         "{s.in_state}; {fact}",
         "set what is named (baremetal node set), or ask for active (baremetal node deploy)"),
    # --- the state says all
    Rule("{s.code}",
         lambda s: s.stays(*states.FAILURE_STATES, State.ERROR)
         or (s.has_failed and s.node.last_error),
         "{s.in_state}{s.node.last_error:: %s}{s.evidence:; %s}",
         "{s.action_by_state}", since="s.node.provision_updated_at"),
    Rule("last_error", lambda s: s.node.last_error,
         "{s.in_state}{s.off}; the last error is: {fact}{s.evidence:; %s}",
         "{s.action_by_state}", since="s.node.provision_updated_at"),
    Rule("powered_off", lambda s: s.off, "{s.in_state}{fact}", "{s.action_by_state}",
         since="s.node.provision_updated_at"),
    Rule("bmc_clock", lambda s: s.wrong_clock, "{s.in_state}; {fact}",
         "set the clock of the BMC, or its NTP server; by Redfish the step "
         "management.set_bmc_clock does the first; {s.action_by_state}"),
    Rule("", lambda _: True, "nothing is wrong: {s.in_state}", "{s.action_by_state}",
         since="s.node.provision_updated_at"),
)  # fmt: skip


# ------------------------------------------------------------------------------- what is known

# Fields that the node's conductor knows.
OF_CONDUCTOR: Final = frozenset(
    {
        "bmc",
        "no_worker_since",
        "bmc_shared",
        "driver_info_fault",
        "deploy_refusal",
        "agent_heard_at",
    }
)
_LATE_HEARTBEATS: Final = 2  # missing heartbeats: the conductor may be dead
_MOST_LISTED: Final = 8
_CLOCK_MATTERS_S: Final = 300
_ADJECTIVES: Final = (State.MANAGEABLE, State.AVAILABLE, State.ACTIVE)
_ADVICE_IF_OFF: Final = (
    "power it on (baremetal node power on), unless it shall be off: its user's system does not run"
)


class Silence(NamedTuple):
    since: datetime
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSituation:
    """The facts about a node that the rules read, and clauses of their sentences.

    ``refusal``: why nothing can be written.
    ``host``: the conductor that serves it, by the ring; ``nobody``: why there is none.
    ``unreachable``: why the host did not answer; ``unusable``: its refusal of the driver.
    ``driver_info_fault``: why driver_info names no BMC.
    ``bmc_shared``: the node with the same BMC and system.
    ``deploy_refusal``: why its deployment would be refused.
    ``bmc``: what it remembers of the BMC; ``no_worker_since``: when it had none for the flow's
    turn, and has none yet.  ``deploying``, ``cleaning``: how many other nodes are.
    ``agent_heard_at``: the agent's last heartbeat, unless the row has it.
    ``bmc_logged``: what the BMC logged while the last flow failed.
    ``leaks``: the leak detectors that say Critical, and since when; None where no sensor is read.
    ``sensor_interval_s``: between two reads of them.
    ``power_corrections``: time and text of those of power sync, oldest first.
    """

    refusal: Refusal | None
    node: Node
    runs: Sequence[StepRun]
    run: StepRun | None
    conductors: Mapping[str, Conductor]
    deploying: int
    cleaning: int
    power_corrections: Sequence[tuple[datetime, str]]
    bmc_logged: str | None
    options: Options
    now: datetime
    host: str | None = None
    nobody: str | None = None
    unreachable: str | None = None
    unusable: str | None = None
    bmc: Json | None = None
    no_worker_since: datetime | None = None
    bmc_shared: str | None = None
    driver_info_fault: str | None = None
    deploy_refusal: str | None = None
    agent_heard_at: str | None = None
    leaks: Json | None = None
    sensor_interval_s: int = 0

    # -------------------------------------------------------------------------- conductors

    @property
    def holder(self) -> Conductor | None:
        return self.conductors.get(self.node.reservation or "")

    @property
    def absent_holder(self) -> Conductor | None:
        """Return the lock's conductor if it is dead, paused, or ends its work."""
        holder = self.holder
        return holder if holder and (not holder.alive or self._is_late(holder)) else None

    @property
    def late_host(self) -> Conductor | None:
        host = self.conductors.get(self.host or "")
        return host if host and self._is_late(host) else None

    def _is_late(self, conductor: Conductor) -> bool:
        return conductor.silent_s > _LATE_HEARTBEATS * self.options.heartbeat_interval

    @property
    def holder_heard_at(self) -> datetime:
        return self.now - timedelta(seconds=self.holder.silent_s if self.holder else 0)

    @property
    def host_heard_at(self) -> datetime:
        return self.now - timedelta(seconds=self.late_host.silent_s if self.late_host else 0)

    @property
    def lock(self) -> str:
        return f"conductor {self.node.reservation} holds the node for {self.node.reserved_for}"

    # ------------------------------------------------------------------------------- flows

    def runs_as(self, *run_states: Run) -> bool:
        return self.run is not None and self.run.state in run_states

    @property
    def step(self) -> str:
        return "" if self.run is None else f"step {self.run.step.name} of {self.run.phase}"

    @property
    def pause(self) -> str | None:
        """Return what the step waits for between two attempts."""
        return self.run.reason if self.run and self.run.state == Run.AGAIN else None

    @property
    def last_heartbeat(self) -> str | None:
        stored: str | None = self.node.driver_internal_info.get(agents.LAST_HEARTBEAT)
        return self.agent_heard_at or stored

    @property
    def agent_heard(self) -> str:
        if place := self.node.driver_internal_info.get("agent_url"):
            return f"whose last heartbeat came at {self.last_heartbeat} from {place}"
        return "which sent no heartbeat in this boot"

    # ----------------------------------------------------------------------------- the BMC

    @property
    def login_refused(self) -> Json | None:
        refusal = (self.bmc or {}).get("login_refused")
        return refusal and refusal | {"since": _time(refusal["since"])}

    @property
    def working_login(self) -> str | None:
        """Return the role of the other password where the BMC takes that."""
        other = (self.bmc or {}).get("other_login") or {}
        return other["role"] if other.get("works") else None

    @property
    def system_absent_since(self) -> datetime | None:
        return _time((self.bmc or {}).get("system_absent_since"))

    @property
    def absent_system(self) -> str:
        return str(self.node.driver_info.get("redfish_system_id") or "")

    @property
    def fits_power_failure(self) -> bool:
        """Whether nobody but power sync has put the node into maintenance."""
        return not self.node.maintenance or self.node.fault == POWER_FAILURE

    @property
    def end_of_fault(self) -> str:
        if not self.node.maintenance:
            return ""
        if self.options.power_failure_recovery_interval:
            return "; maintenance ends by itself once the BMC shows it"
        return ", and end maintenance once the BMC shows it (baremetal node maintenance unset)"

    @property
    def bmc_heard_at(self) -> datetime | None:
        return _time((self.bmc or {}).get("last_contact_at")) or self.node.maintenance_at

    @property
    def bmc_failed_at(self) -> datetime | None:
        return _time((self.bmc or {}).get("last_error_at"))

    @property
    def next_try(self) -> str:
        """Return the time of the next call of the BMC, or login, to the second."""
        bmc = self.login_refused or self.bmc or {}
        at = _time(bmc.get("next_try_at"))
        return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def wrong_clock(self) -> str | None:
        """Return how far the BMC's clock is off, where certificates may suffer from it."""
        ahead_s = (self.bmc or {}).get("clock_difference_s") or 0.0
        if abs(ahead_s) < _CLOCK_MATTERS_S:
            return None
        way = "ahead" if ahead_s > 0 else "behind"
        return (
            f"the BMC's clock is {abs(ahead_s):.0f} s {way}, so that certificates may look invalid"
        )

    @property
    def evidence(self) -> str:
        """Return what the BMC says beside the error of a failed flow."""
        return "; ".join(filter(None, (self.bmc_logged, self.wrong_clock)))

    @property
    def leaking(self) -> str:
        detectors = (self.leaks or {}).get("detectors") or []
        return ", ".join(detectors[:_MOST_LISTED])

    @property
    def leaks_since(self) -> datetime | None:
        return _time((self.leaks or {}).get("since"))

    def silence(self, after: datetime | None = None) -> Silence | None:
        """Return the BMC's silence; None: it is not silent, or was not asked ``after`` a time."""
        bmc = self.bmc or {}
        since, asked_at = _time(bmc.get("silent_since")), self.bmc_failed_at
        if since is None or asked_at is None or (after and asked_at < after):
            return None
        return Silence(since, (
            f"the BMC does not answer since {since:%H:%M:%S} UTC, asked last at "
            f"{asked_at:%H:%M:%S}: {bmc['last_error']}"
        ))  # fmt: skip

    @property
    def step_silence(self) -> Silence | None:
        run = self.run
        return None if run is None or run.step.child else self.silence(run.started_at)

    # --------------------------------------------------------------------------- the state

    def stays(self, *provision_states: State) -> bool:
        return self.node.provision_state in provision_states

    @property
    def in_state(self) -> str:
        """Return the state as a clause; most states are nouns, a few are adjectives."""
        state = self.node.provision_state or "unknown"
        return f"it is {state}" if state in _ADJECTIVES else f"it is in {state}"

    @property
    def retry(self) -> Json | None:
        """Return the retry of the failed flow, unless an operator's maintenance keeps it back."""
        note = self.node.driver_internal_info.get(FLOW_RETRY)
        kept_back = self.node.maintenance and self.node.fault is None
        has_failed = self.stays(State.CLEANFAIL, State.INSPECTFAIL)
        if not (note and note.get("due_at") and self.options.failed_flow_retries and has_failed):
            return None
        due_at = f"{datetime.fromisoformat(note['due_at']):%Y-%m-%d %H:%M:%S} UTC"
        return None if kept_back else note | {"due_at": due_at}

    @property
    def off(self) -> str:
        is_off = self.stays(State.ACTIVE) and self.node.power_state == states.Power.OFF
        return ", and is powered off" if is_off else ""

    @property
    def is_cleaned(self) -> bool:
        """Whether automated cleaning is on for the node."""
        own = self.node.automated_clean
        return self.options.automated_clean if own is None else own

    @property
    def has_failed(self) -> bool:
        """Whether the state itself is about the last error."""
        return self.node.provision_state in states.STATES_OF_ERRORS

    @property
    def fault_reason(self) -> str:
        return self.node.maintenance_reason or self.node.last_error or "no reason is recorded"

    @property
    def action_by_state(self) -> str:
        node, state = self.node, self.node.provision_state
        if state == State.ENROLL and node.last_error is not None:
            return (
                "correct the cause of the error, and ask for manage again (baremetal node manage)"
            )
        words = states.advice(state, maintenance=bool(node.maintenance))
        if self.off and not node.maintenance:
            words = _ADVICE_IF_OFF
        if self.has_failed and (logs := node.driver_internal_info.get("agent_logs")):
            words += f"; the logs of its ramdisk are in {logs['file']} on {logs['host']}"
        if node.protected and states.allows(state, "delete"):
            words += (
                "; set protected to false before deleted or rebuild (baremetal node unset "
                "--protected)"
            )
        if node.retired and "provide" in words:
            words += f"; before provide, {_END_OF_RETIREMENT}"
        if node.last_error is None or node.maintenance or self.has_failed:
            return words
        return (
            "correct the cause of the error (baremetal node show --fields last_error), and "
            f"repeat what failed; or {words}"
        )

    @property
    def failed_console(self) -> Json | None:
        console = self.node.driver_internal_info.get("console") or {}
        return console if self.node.console_enabled and console.get("error") else None

    @property
    def ports_left_out(self) -> str:
        left_out = self.node.driver_internal_info.get(LEFT_OUT_BY_INSPECTION) or []
        return ", ".join(left_out[:_MOST_LISTED])

    @property
    def code(self) -> str:
        return rules.find_problem(self.node, self.host) or ""


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
