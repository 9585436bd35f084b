"""Provision and power states, edges and targets.

A leaf: it imports no other module of ours.  The machine, the tables of doc/reference/states.md and
the exhaustive tests come from ``EDGES``.  Only ``TaskManager.process_event`` moves a node.

    fsm = at("available")
    fsm.process_event("deploy")
    fsm.current_state, fsm.target_state      # ("deploying", "active")
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from automaton import exceptions as automaton_errors
from automaton import machines

NOSTATE: Final = None


class State(StrEnum):
    """Provision states; the values are wire format, blanks included."""

    ENROLL = "enroll"  # stable; not verified yet
    VERIFYING = "verifying"  # a worker asks the BMC
    MANAGEABLE = "manageable"  # stable; for the operator
    AVAILABLE = "available"  # stable; waits for a user
    ACTIVE = "active"  # stable; deployed
    DEPLOYING = "deploying"  # reserved by a worker
    DEPLOYWAIT = "wait call-back"  # not reserved; waits for the agent's heartbeat
    DEPLOYFAIL = "deploy failed"
    DEPLOYHOLD = "deploy hold"  # until an operator says unhold
    DELETING = "deleting"
    CLEANING = "cleaning"
    CLEANWAIT = "clean wait"
    CLEANFAIL = "clean failed"
    CLEANHOLD = "clean hold"
    ERROR = "error"  # stable; tear-down failed
    INSPECTING = "inspecting"
    INSPECTWAIT = "inspect wait"
    INSPECTFAIL = "inspect failed"
    ADOPTING = "adopting"
    ADOPTFAIL = "adopt failed"
    RESCUE = "rescue"  # stable; runs the rescue ramdisk
    RESCUING = "rescuing"
    RESCUEWAIT = "rescue wait"
    RESCUEFAIL = "rescue failed"
    UNRESCUING = "unrescuing"
    UNRESCUEFAIL = "unrescue failed"
    SERVICING = "servicing"
    SERVICEWAIT = "service wait"
    SERVICEFAIL = "service failed"
    SERVICEHOLD = "service hold"


class Power(StrEnum):
    """Power states and targets; ``rebooting`` and the soft forms are targets only."""

    ON = "power on"
    OFF = "power off"
    REBOOT = "rebooting"
    SOFT_REBOOT = "soft rebooting"
    SOFT_OFF = "soft power off"
    ERROR = "error"


POWER_TARGETS: Final = (Power.ON, Power.OFF, Power.REBOOT, Power.SOFT_REBOOT, Power.SOFT_OFF)
ENDS_ON: Final = frozenset({Power.ON, Power.REBOOT, Power.SOFT_REBOOT})

S = State
STABLE_STATES: Final = frozenset(
    {S.ENROLL, S.MANAGEABLE, S.AVAILABLE, S.ACTIVE, S.ERROR, S.RESCUE},
)
UNSTABLE_STATES: Final = frozenset(
    {
        S.DEPLOYING, S.DEPLOYWAIT, S.CLEANING, S.CLEANWAIT, S.VERIFYING, S.DELETING,
        S.INSPECTING, S.INSPECTWAIT, S.ADOPTING, S.RESCUING, S.RESCUEWAIT, S.UNRESCUING,
        S.SERVICING, S.SERVICEWAIT,
    },
)  # fmt: skip
FAILURE_STATES: Final = frozenset(
    {
        S.DEPLOYFAIL, S.CLEANFAIL, S.INSPECTFAIL, S.RESCUEFAIL, S.UNRESCUEFAIL, S.ADOPTFAIL,
        S.SERVICEFAIL,
    },
)  # fmt: skip
WAIT_STATES: Final = frozenset(
    {S.DEPLOYWAIT, S.CLEANWAIT, S.INSPECTWAIT, S.RESCUEWAIT, S.SERVICEWAIT},
)
HOLD_STATES: Final = frozenset({S.DEPLOYHOLD, S.CLEANHOLD, S.SERVICEHOLD})
STATES_OF_ERRORS: Final = FAILURE_STATES | {S.ERROR, S.ENROLL}  # last_error explains the state
BAD_STATES: Final = FAILURE_STATES | HOLD_STATES | {S.ERROR}  # somebody has to look
SERVICING_STATES: Final = frozenset({S.SERVICING, S.SERVICEWAIT, S.SERVICEFAIL, S.SERVICEHOLD})
INSPECTION_STATES: Final = frozenset({S.INSPECTING, S.INSPECTWAIT, S.INSPECTFAIL})
UPDATE_ALLOWED_STATES: Final = frozenset(
    {
        S.DEPLOYFAIL, S.INSPECTING, S.INSPECTFAIL, S.INSPECTWAIT, S.CLEANFAIL, S.ERROR,
        S.VERIFYING, S.ADOPTFAIL, S.RESCUEFAIL, S.UNRESCUEFAIL, S.SERVICEHOLD, S.SERVICEFAIL,
    },
)  # fmt: skip
INSTANCE_STATES: Final = SERVICING_STATES | {  # somebody's system is, or may be, on the machine
    S.ACTIVE, S.DEPLOYING, S.DEPLOYWAIT, S.DEPLOYFAIL, S.DEPLOYHOLD, S.DELETING, S.ERROR,
    S.RESCUE, S.RESCUING, S.RESCUEWAIT, S.RESCUEFAIL, S.UNRESCUING, S.UNRESCUEFAIL,
}  # fmt: skip
DELETE_ALLOWED_STATES: Final = frozenset({S.MANAGEABLE, S.ENROLL, S.ADOPTFAIL})
INTERFACE_CHANGE_STATES: Final = frozenset(
    {S.ENROLL, S.INSPECTING, S.INSPECTWAIT, S.MANAGEABLE, S.AVAILABLE},
)
STUCK_STATES_TREATED_AS_FAIL: Final = frozenset(
    {
        S.DEPLOYING, S.CLEANING, S.VERIFYING, S.INSPECTING, S.ADOPTING, S.RESCUING,
        S.UNRESCUING, S.DELETING, S.SERVICING,
    },
)  # fmt: skip
LOOKUP_ALLOWED_STATES: Final = frozenset(
    {
        S.DEPLOYING, S.DEPLOYWAIT, S.CLEANING, S.CLEANWAIT, S.INSPECTING, S.INSPECTWAIT,
        S.RESCUING, S.RESCUEWAIT, S.SERVICEWAIT,
    },
)  # fmt: skip
FASTTRACK_LOOKUP_ALLOWED_STATES: Final = LOOKUP_ALLOWED_STATES | {
    S.ENROLL, S.MANAGEABLE, S.AVAILABLE, S.SERVICING, S.SERVICEHOLD,
}  # fmt: skip
# States that accept heartbeats; those in HEARTBEAT_RESUMES_STATES resume a flow.
HEARTBEAT_RESUMES_STATES: Final = frozenset(
    {S.DEPLOYWAIT, S.CLEANWAIT, S.RESCUEWAIT, S.SERVICEWAIT},
)
HEARTBEAT_STATES: Final = HEARTBEAT_RESUMES_STATES | {
    S.DEPLOYING,
    S.CLEANING,
    S.RESCUING,
    S.DEPLOYHOLD,
    S.CLEANHOLD,
    S.SERVICING,
    S.SERVICEHOLD,
}
# In inspecting, the lock refuses the first heartbeat, which the agent then repeats within seconds.
FASTTRACK_HEARTBEAT_STATES: Final = HEARTBEAT_STATES | {
    S.MANAGEABLE, S.AVAILABLE, S.ENROLL, S.INSPECTING,
}  # fmt: skip
POWER_SYNC_EXCLUDED_STATES: Final = frozenset(
    {S.DEPLOYWAIT, S.CLEANWAIT, S.ENROLL, S.ADOPTFAIL},
)


class Limit(NamedTuple):
    """The time-out of a wait state: an option of [conductor] in seconds; 0 disables it."""

    option: str
    since: str  # the node's column that the time counts from


WAIT_LIMITS: Final[dict[State, Limit]] = {
    S.DEPLOYWAIT: Limit("deploy_callback_timeout", "provision_updated_at"),
    S.CLEANWAIT: Limit("clean_callback_timeout", "provision_updated_at"),
    S.SERVICEWAIT: Limit("service_callback_timeout", "provision_updated_at"),
    S.RESCUEWAIT: Limit("rescue_callback_timeout", "provision_updated_at"),
    S.INSPECTWAIT: Limit("inspect_wait_timeout", "inspection_started_at"),
}

# What pages show of a state: its kind, and its place in the diagram as column and line.
KINDS: Final[dict[State, str]] = {
    **dict.fromkeys(UNSTABLE_STATES, "busy"),
    **dict.fromkeys(BAD_STATES - HOLD_STATES, "failed"),
    **dict.fromkeys(HOLD_STATES, "hold"),
    S.ENROLL: "idle", S.MANAGEABLE: "idle", S.AVAILABLE: "free", S.ACTIVE: "ok", S.RESCUE: "ok",
}  # fmt: skip
_ROWS: Final = (
    (S.INSPECTFAIL, S.INSPECTWAIT, S.INSPECTING, S.CLEANFAIL, S.DELETING, S.ERROR, None,
     S.RESCUEWAIT, S.RESCUEFAIL),
    (S.ENROLL, S.VERIFYING, S.MANAGEABLE, S.CLEANING, S.AVAILABLE, S.DEPLOYING, S.ACTIVE,
     S.RESCUING, S.RESCUE),
    (None, None, None, S.CLEANWAIT, None, S.DEPLOYWAIT, None, S.UNRESCUING, S.UNRESCUEFAIL),
    (None, S.ADOPTFAIL, S.ADOPTING, S.CLEANHOLD, S.DEPLOYHOLD, S.DEPLOYFAIL, S.SERVICING,
     S.SERVICEWAIT, S.SERVICEFAIL),
    (*[None] * 8, S.SERVICEHOLD),
)  # fmt: skip
PLACES: Final[dict[State, tuple[int, int]]] = {
    state: (column, line)
    for line, row in enumerate(_ROWS)
    for column, state in enumerate(row)
    if state is not None
}

# The stable state that an unstable, failed or held one is on its way to.
TARGETS: Final[dict[State, State]] = {
    S.VERIFYING: S.MANAGEABLE,
    S.DEPLOYING: S.ACTIVE, S.DEPLOYWAIT: S.ACTIVE, S.DEPLOYFAIL: S.ACTIVE, S.DEPLOYHOLD: S.ACTIVE,
    S.DELETING: S.AVAILABLE,
    S.CLEANING: S.AVAILABLE, S.CLEANWAIT: S.AVAILABLE, S.CLEANFAIL: S.AVAILABLE,
    S.CLEANHOLD: S.AVAILABLE,
    S.INSPECTING: S.MANAGEABLE, S.INSPECTWAIT: S.MANAGEABLE, S.INSPECTFAIL: S.MANAGEABLE,
    S.ADOPTING: S.ACTIVE, S.ADOPTFAIL: S.ACTIVE,
    S.RESCUING: S.RESCUE, S.RESCUEWAIT: S.RESCUE, S.RESCUEFAIL: S.RESCUE,
    S.UNRESCUING: S.ACTIVE, S.UNRESCUEFAIL: S.ACTIVE,
    S.SERVICING: S.ACTIVE, S.SERVICEWAIT: S.ACTIVE, S.SERVICEFAIL: S.ACTIVE,
    S.SERVICEHOLD: S.ACTIVE,
}  # fmt: skip


class Edge(NamedTuple):
    source: State
    event: str
    target: State


EDGES: Final[tuple[Edge, ...]] = (
    Edge(S.ENROLL, "manage", S.VERIFYING),
    Edge(S.VERIFYING, "done", S.MANAGEABLE),
    Edge(S.VERIFYING, "fail", S.ENROLL),
    Edge(S.MANAGEABLE, "provide", S.CLEANING),
    Edge(S.MANAGEABLE, "clean", S.CLEANING),
    Edge(S.MANAGEABLE, "inspect", S.INSPECTING),
    Edge(S.MANAGEABLE, "adopt", S.ADOPTING),
    Edge(S.AVAILABLE, "deploy", S.DEPLOYING),
    Edge(S.AVAILABLE, "manage", S.MANAGEABLE),
    Edge(S.DEPLOYING, "wait", S.DEPLOYWAIT),
    Edge(S.DEPLOYING, "hold", S.DEPLOYHOLD),
    Edge(S.DEPLOYING, "fail", S.DEPLOYFAIL),
    Edge(S.DEPLOYING, "done", S.ACTIVE),
    Edge(S.DEPLOYWAIT, "resume", S.DEPLOYING),
    Edge(S.DEPLOYWAIT, "hold", S.DEPLOYHOLD),
    Edge(S.DEPLOYWAIT, "fail", S.DEPLOYFAIL),
    Edge(S.DEPLOYWAIT, "abort", S.DEPLOYFAIL),
    Edge(S.DEPLOYWAIT, "delete", S.DELETING),
    Edge(S.DEPLOYHOLD, "unhold", S.DEPLOYWAIT),
    Edge(S.DEPLOYHOLD, "abort", S.DEPLOYFAIL),
    Edge(S.DEPLOYFAIL, "rebuild", S.DEPLOYING),
    Edge(S.DEPLOYFAIL, "deploy", S.DEPLOYING),
    Edge(S.DEPLOYFAIL, "delete", S.DELETING),
    Edge(S.ACTIVE, "rebuild", S.DEPLOYING),
    Edge(S.ACTIVE, "delete", S.DELETING),
    Edge(S.ACTIVE, "rescue", S.RESCUING),
    Edge(S.ACTIVE, "service", S.SERVICING),
    Edge(S.ERROR, "rebuild", S.DEPLOYING),
    Edge(S.ERROR, "delete", S.DELETING),
    Edge(S.DELETING, "fail", S.ERROR),
    Edge(S.DELETING, "clean", S.CLEANING),
    Edge(S.CLEANING, "done", S.AVAILABLE),
    Edge(S.CLEANING, "manage", S.MANAGEABLE),
    Edge(S.CLEANING, "wait", S.CLEANWAIT),
    Edge(S.CLEANING, "hold", S.CLEANHOLD),
    Edge(S.CLEANING, "fail", S.CLEANFAIL),
    Edge(S.CLEANWAIT, "resume", S.CLEANING),
    Edge(S.CLEANWAIT, "hold", S.CLEANHOLD),
    Edge(S.CLEANWAIT, "fail", S.CLEANFAIL),
    Edge(S.CLEANWAIT, "abort", S.CLEANFAIL),
    Edge(S.CLEANHOLD, "unhold", S.CLEANWAIT),
    Edge(S.CLEANHOLD, "abort", S.CLEANFAIL),
    Edge(S.CLEANFAIL, "manage", S.MANAGEABLE),
    Edge(S.INSPECTING, "done", S.MANAGEABLE),
    Edge(S.INSPECTING, "wait", S.INSPECTWAIT),
    Edge(S.INSPECTING, "fail", S.INSPECTFAIL),
    Edge(S.INSPECTWAIT, "done", S.MANAGEABLE),
    Edge(S.INSPECTWAIT, "resume", S.INSPECTING),
    Edge(S.INSPECTWAIT, "fail", S.INSPECTFAIL),
    Edge(S.INSPECTWAIT, "abort", S.INSPECTFAIL),
    Edge(S.INSPECTFAIL, "manage", S.MANAGEABLE),
    Edge(S.INSPECTFAIL, "inspect", S.INSPECTING),
    Edge(S.ADOPTING, "done", S.ACTIVE),
    Edge(S.ADOPTING, "fail", S.ADOPTFAIL),
    Edge(S.ADOPTFAIL, "adopt", S.ADOPTING),
    Edge(S.ADOPTFAIL, "manage", S.MANAGEABLE),
    Edge(S.RESCUING, "done", S.RESCUE),
    Edge(S.RESCUING, "wait", S.RESCUEWAIT),
    Edge(S.RESCUING, "fail", S.RESCUEFAIL),
    Edge(S.RESCUEWAIT, "resume", S.RESCUING),
    Edge(S.RESCUEWAIT, "fail", S.RESCUEFAIL),
    Edge(S.RESCUEWAIT, "abort", S.RESCUEFAIL),
    Edge(S.RESCUEWAIT, "delete", S.DELETING),
    Edge(S.RESCUE, "rescue", S.RESCUING),
    Edge(S.RESCUE, "unrescue", S.UNRESCUING),
    Edge(S.RESCUE, "delete", S.DELETING),
    Edge(S.RESCUEFAIL, "rescue", S.RESCUING),
    Edge(S.RESCUEFAIL, "unrescue", S.UNRESCUING),
    Edge(S.RESCUEFAIL, "delete", S.DELETING),
    Edge(S.UNRESCUING, "done", S.ACTIVE),
    Edge(S.UNRESCUING, "fail", S.UNRESCUEFAIL),
    Edge(S.UNRESCUEFAIL, "rescue", S.RESCUING),
    Edge(S.UNRESCUEFAIL, "unrescue", S.UNRESCUING),
    Edge(S.UNRESCUEFAIL, "delete", S.DELETING),
    Edge(S.SERVICING, "done", S.ACTIVE),
    Edge(S.SERVICING, "wait", S.SERVICEWAIT),
    Edge(S.SERVICING, "hold", S.SERVICEHOLD),
    Edge(S.SERVICING, "fail", S.SERVICEFAIL),
    Edge(S.SERVICEWAIT, "resume", S.SERVICING),
    Edge(S.SERVICEWAIT, "hold", S.SERVICEHOLD),
    Edge(S.SERVICEWAIT, "fail", S.SERVICEFAIL),
    Edge(S.SERVICEWAIT, "abort", S.SERVICEFAIL),
    Edge(S.SERVICEWAIT, "delete", S.DELETING),
    Edge(S.SERVICEHOLD, "service", S.SERVICING),
    Edge(S.SERVICEHOLD, "unhold", S.SERVICEWAIT),
    Edge(S.SERVICEHOLD, "fail", S.SERVICEFAIL),
    Edge(S.SERVICEHOLD, "abort", S.SERVICEFAIL),
    Edge(S.SERVICEFAIL, "service", S.SERVICING),
    Edge(S.SERVICEFAIL, "rescue", S.RESCUING),
    Edge(S.SERVICEFAIL, "wait", S.SERVICEWAIT),
    Edge(S.SERVICEFAIL, "hold", S.SERVICEHOLD),
    Edge(S.SERVICEFAIL, "delete", S.DELETING),
    Edge(S.SERVICEFAIL, "abort", S.ACTIVE),
)

DRAWN: Final = frozenset((edge.source.value, edge.event) for edge in EDGES)
EVENTS: Final = tuple(sorted({edge.event for edge in EDGES}))

# The verbs of PUT states/provision, and the event that each fires.
VERBS: Final[dict[str, str]] = {
    "active": "deploy", "deploy": "deploy", "rebuild": "rebuild",
    "deleted": "delete", "undeploy": "delete",
    "manage": "manage", "provide": "provide", "inspect": "inspect", "abort": "abort",
    "clean": "clean", "adopt": "adopt", "rescue": "rescue", "unrescue": "unrescue",
    "unhold": "unhold", "service": "service",
}  # fmt: skip


class Verb(NamedTuple):
    """A verb as ``baremetal node VERB`` names it; ``target`` is its word in VERBS.

    ``purpose``: what it does, for whoever is about to order it.
    ``arguments``: the fields of the request that the verb alone takes.
    ``loss``: how the disks are erased or written anew by default; None: they stay.
    """

    name: str
    target: str
    purpose: str
    arguments: tuple[str, ...] = ()
    loss: str | None = None

    @property
    def event(self) -> str:
        return VERBS[self.target]

    @property
    def loses_data(self) -> bool:
        return self.loss is not None

    @property
    def sources(self) -> list[State]:
        """Return the states in which a client may use the verb."""
        return [state for state in State if (state, self.event) in DRAWN]


VERB_LIST: Final[tuple[Verb, ...]] = (
    Verb("manage", "manage",
         "The machine becomes manageable, and is not deployed until it is provided. The BMC of a "
         "new one is checked first."),
    Verb("inspect", "inspect", "The processors, memory, disks and ports of the machine are read."),
    Verb("adopt", "adopt",
         "The machine becomes active with the system that it runs. Nothing is written to it."),
    Verb("provide", "provide",
         "The machine is cleaned, unless automated cleaning is off, and becomes available to "
         "deployments.",
         loss="Automated cleaning may erase all disks of the machine."),
    Verb("clean", "clean",
         "The chosen steps run one after the other. The machine is manageable again afterwards.",
         ("clean_steps", "runbook"), "Clean steps may erase disks."),
    Verb("deploy", "active",
         "The image is written to the root disk, or the boot ISO is booted, and the machine "
         "becomes active.", ("configdrive", "deploy_steps")),
    Verb("rebuild", "rebuild", "The machine is deployed anew, and keeps its instance.",
         ("configdrive", "deploy_steps"),
         "An image is written anew: the data on the root disk is lost. A boot ISO writes no disk."),
    Verb("undeploy", "deleted",
         "The instance ends. The machine is cleaned, unless automated cleaning is off, and becomes "
         "available again. A retired one that was cleaned becomes manageable.",
         loss="The machine is undeployed. Cleaning may erase all its disks."),
    Verb("rescue", "rescue",
         "The machine boots a rescue system in memory, with a login by the password given here.",
         ("rescue_password",)),
    Verb("unrescue", "unrescue", "The rescue ends, and the machine boots its own system again."),
    Verb("service", "service",
         "The chosen steps run on the machine in use, which they may restart.",
         ("service_steps", "runbook"), "Service steps may change volumes, and erase disks."),
    Verb("unhold", "unhold", "The steps on hold go on."),
    Verb("abort", "abort", "The flow that waits or is on hold ends where it is."),
)  # fmt: skip


class PowerOrder(NamedTuple):
    """A power target as people order it: its label, and ``baremetal node COMMAND``.

    ``sources``: the power states in which it is of use; None: unknown.
    """

    target: Power
    label: str
    command: str
    sources: tuple[Power | None, ...]
    ends_in: Power
    loss: str | None = None


_HARD: Final = "The system is not asked to shut down first."
POWER_ORDERS: Final = (
    PowerOrder(Power.ON, "Power on", "power on", (None, Power.OFF, Power.ERROR), Power.ON),
    PowerOrder(Power.SOFT_OFF, "Shut down", "power off --soft", (Power.ON,), Power.OFF),
    PowerOrder(Power.OFF, "Power off", "power off", (Power.ON,), Power.OFF, _HARD),
    PowerOrder(Power.REBOOT, "Reboot", "reboot", (Power.ON,), Power.ON, _HARD),
)


class InvalidState(Exception):
    """An unknown state, a missing edge, or a target that is not stable."""


class Machine(machines.FiniteMachine):
    """automaton's machine with stable states and a target for each move."""

    def __init__(self) -> None:
        super().__init__()
        self.target_state: str | None = None

    def add(self, state: str, *, stable: bool = False, target: str | None = None) -> None:
        """Add ``state``; its ``target`` must be added before and be stable."""
        self._require_stable(target)
        self.add_state(state)
        self._states[state]["stable"] = stable  # type: ignore[typeddict-unknown-key]
        self._states[state]["target"] = target  # type: ignore[typeddict-unknown-key]

    def is_stable(self, state: str | None) -> bool:
        if state not in self._states:
            raise InvalidState(f"no state is called {state!r}")
        return bool(self._states[state]["stable"])  # type: ignore[typeddict-item]

    def initialize(self, start_state: str | None = None, target_state: str | None = None) -> None:
        """Start in ``start_state``, with ``target_state`` or the state's own target."""
        try:
            super().initialize(start_state)
        except automaton_errors.AutomatonException as exc:
            raise InvalidState(str(exc)) from exc
        self.target_state = target_state or self._own_target()

    def process_event(self, event: str, target_state: str | None = None) -> Any:
        """Move along the edge named ``event``; ``target_state`` overrides the state's own."""
        self._require_stable(target_state)
        try:
            effect = super().process_event(event)
        except automaton_errors.AutomatonException as exc:
            raise InvalidState(str(exc)) from exc
        if self.target_state == self.current_state:
            self.target_state = None
        self.target_state = target_state or self._own_target() or self.target_state
        return effect

    def _own_target(self) -> str | None:
        own: str | None = self._states[str(self.current_state)]["target"]  # type: ignore[typeddict-item]
        return own

    def _require_stable(self, target: str | None) -> None:
        if target is not None and not self.is_stable(target):
            raise InvalidState(f"cannot aim for {target!r}: it is not a stable state")


def build() -> Machine:
    """Build the machine from the tables, stable states first because targets need them."""
    machine = Machine()
    for state in sorted(State, key=lambda s: s not in STABLE_STATES):
        machine.add(state.value, stable=state in STABLE_STATES, target=TARGETS.get(state))
    for edge in EDGES:
        machine.add_transition(edge.source.value, edge.target.value, edge.event)
    machine.freeze()
    return machine


MACHINE: Final = build()


def at(state: str | None, target: str | None = None) -> Machine:
    """Return the machine in ``state``: a shallow copy (4 us; a deep one costs 480)."""
    machine = MACHINE.copy(shallow=True)
    machine.initialize(state, target)
    return machine


def allows(state: str | None, event: str) -> bool:
    """Return whether an edge for ``event`` leaves ``state``."""
    return (state, event) in DRAWN


def events_from(state: str | None) -> list[str]:
    """Return the events of ``state``, sorted."""
    return sorted(edge.event for edge in EDGES if edge.source == state)


def verbs_from(state: str | None) -> list[str]:
    """Return the verbs that a client may use in ``state``."""
    return [verb for verb, event in VERBS.items() if (state, event) in DRAWN]


def verbs_before(state: str | None, verb: str) -> list[str]:
    """Return the verbs that lead from ``state`` to one that allows ``verb``, in their order.

    Only manage and provide are tried: no other verb leads on without a loss.  Empty: they do not
    lead there, or ``verb`` is allowed at once, or has led here.
    """
    ends = {"manage": State.MANAGEABLE, "provide": State.AVAILABLE}
    path: list[str] = []
    for step, reached in ends.items():
        if state != ends.get(verb) and not allows(state, VERBS[verb]) and allows(state, step):
            path.append(step)
            state = reached
    return path if allows(state, VERBS[verb]) else []


# ------------------------------------------------------------------------ what is to be done


ADVICE: Final[dict[State, str]] = {
    State.ENROLL: "ask for manage (baremetal node manage): the node was not checked yet",
    State.MANAGEABLE: "ask for provide, inspect, clean or adopt (baremetal node provide, and "
    "so on)",
    State.AVAILABLE: "deploy it when a user needs a machine (baremetal node deploy)",
    State.ACTIVE: "nothing needs to be done: it runs its user's system",
    State.RESCUE: "ask for unrescue when the rescue work is done (baremetal node unrescue)",
    State.ERROR: "correct the cause of the error, and undeploy it again (baremetal node undeploy)",
    State.DEPLOYFAIL: "correct the cause of the error, and deploy it again, or undeploy it "
    "(baremetal node deploy, baremetal node undeploy)",
    State.CLEANFAIL: "correct the cause of the error, end maintenance, and ask for manage and "
    "then for provide (baremetal node manage, baremetal node provide)",
    State.INSPECTFAIL: "correct the cause of the error, and ask for inspect, or for manage "
    "(baremetal node inspect, baremetal node manage)",
    State.ADOPTFAIL: "correct the cause of the error, and ask for adopt, or for manage "
    "(baremetal node adopt, baremetal node manage)",
    State.RESCUEFAIL: "correct the cause of the error, and ask for rescue or unrescue, or "
    "undeploy it (baremetal node rescue, baremetal node unrescue, baremetal node undeploy)",
    State.UNRESCUEFAIL: "correct the cause of the error, and ask for unrescue or rescue, or "
    "undeploy it (baremetal node unrescue, baremetal node rescue, baremetal node undeploy)",
    State.SERVICEFAIL: "correct the cause of the error, end maintenance, and ask for service or "
    "abort (baremetal node service, baremetal node abort)",
}  # what an operator may do next


def advice(state: str | None, *, maintenance: bool) -> str:
    """Return the next action for a node in a state; "wait" for a state that ends by itself."""
    if state is None:
        return "ask for manage (baremetal node manage)"
    sentence = ADVICE.get(State(state), "wait")
    if not maintenance:
        return sentence.replace(" end maintenance,", "")
    if "end maintenance" in sentence or State(state) not in ADVICE:
        return sentence
    return f"end maintenance (baremetal node maintenance unset); then {sentence}"
