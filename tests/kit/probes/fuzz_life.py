"""Clients do anything in any order to a few nodes whose hardware has moods.

    fuzz_life.run(target, seed, lives=20, steps=30)

After every step: no error of ours, every node rests in a state where it may rest, nobody holds
it, and what was acknowledged is there.  hypothesis draws the steps, and shortens what fails.
"""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from bloomery.conductor import states
from bloomery.conductor.periodics import agents
from tests.fakes.client import Answer
from tests.kit.probes import fuzzing
from tests.kit.waiting import wait_for

SLOTS = st.integers(0, 2)
KEYS = st.sampled_from(["a", "b", "c"])
STEP = {"interface": "vendor", "step": "log_passthrough"}
WAITING_STEP = {"interface": "vendor", "step": "trigger_servicewait"}
VERBS: list[dict[str, Any]] = [
    *[
        {"target": verb}
        for verb in (
            "manage", "provide", "active", "rebuild", "deleted", "inspect", "adopt", "abort",
            "unrescue", "unhold", "manage", "provide", "active",
        )
    ],
    {"target": "rescue", "rescue_password": "correct"},
    {"target": "clean", "clean_steps": [STEP]},
    {"target": "clean", "clean_steps": [{"interface": "power", "step": "nothing"}]},
    {"target": "service", "service_steps": [STEP]},
    {"target": "service", "service_steps": [WAITING_STEP]},
    {"target": "active", "configdrive": {"meta_data": {"a": 1}}},
    {"target": "active", "deploy_steps": [STEP | {"priority": 50, "args": {}}]},
    {"target": "clean", "clean_steps": [{"step": "hold"}]},
    {"target": "clean", "clean_steps": [{"step": "power_off"}, {"step": "reboot"}]},
]  # fmt: skip
DRAWN = {(edge.source.value, edge.event) for edge in states.EDGES}
KINDS = st.sampled_from(
    [
        "power", "power.get_power_state", "power.set_power_state", "power.reboot", "deploy",
        "deploy.deploy", "deploy.prepare", "deploy.tear_down", "deploy.prepare_cleaning", "boot",
        "management", "inspect", "rescue",
    ],
)  # fmt: skip
MOODS = (
    st.just({})
    | st.just({})
    | st.lists(KINDS, min_size=1, max_size=2).map(lambda kinds: {"fail": kinds})
    | KINDS.map(lambda kind: {"flap": {kind: 2}})
    | KINDS.map(lambda kind: {"delay": {kind: 0.01}})
    | st.tuples(KINDS, st.sampled_from([-1, 0.001])).map(lambda it: {"wait": {it[0]: it[1]}})
)  # fmt: skip
POWER = st.sampled_from([target.value for target in states.POWER_TARGETS])
MAY_REST = {s.value for s in states.State} - {s.value for s in states.STUCK_STATES_TREATED_AS_FAIL}


def _event(verb: str) -> str:
    return {"active": "deploy", "deleted": "delete"}.get(verb, verb)


class Known:
    """What was acknowledged about one node."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.extra: dict[str, int] = {}
        self.traits: set[str] = set()
        self.ports: dict[str, str] = {}
        self.in_maintenance = False
        self.is_gone = False


class Life(stateful.RuleBasedStateMachine):
    """Three nodes; rules never look at what the service says, so that a life can be lived again."""

    def __init__(self, target: fuzzing.Target) -> None:
        super().__init__()
        self.target, self.stage, self.count = target, target.stage, 0
        self.nodes = [self._made({}) for _ in range(3)]

    def _made(self, mood: dict[str, Any]) -> Known:
        secret = {"fake_password": fuzzing.SECRET}
        return Known(self.stage.enrol(mood, driver_info=secret))

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        return self.target.ask(method, path, body=body)

    def _patch(self, known: Known, *changes: dict[str, Any]) -> bool:
        return self._ask("PATCH", f"/v1/nodes/{known.uuid}", list(changes)).status == 200

    # ------------------------------------------------------------------------------ the rules

    @stateful.rule(slot=SLOTS, mood=MOODS)
    def create_again(self, slot: int, mood: dict[str, Any]) -> None:
        if self.nodes[slot].is_gone:
            self.nodes[slot] = self._made(mood)

    @stateful.rule(slot=SLOTS, mood=MOODS)
    def change_the_mood(self, slot: int, mood: dict[str, Any]) -> None:
        change = {"op": "add", "path": "/driver_info/fake", "value": mood}
        self._patch(self.nodes[slot], change)

    @stateful.rule(slot=SLOTS, verbs=st.lists(st.sampled_from(VERBS), min_size=1, max_size=3))
    def ask_for_verbs(self, slot: int, verbs: list[dict[str, Any]]) -> None:
        """The later ones meet whatever the first one has begun."""
        for body in verbs:
            self._ask("PUT", f"/v1/nodes/{self.nodes[slot].uuid}/states/provision", body)

    @stateful.rule(slot=SLOTS, choice=st.integers(0, 5))
    def go_on(self, slot: int, choice: int) -> None:
        """Ask for something that the node's state allows."""
        known = self.nodes[slot]
        if known.is_gone:
            return
        state = self.stage.site.node(known.uuid).provision_state
        fits = [body for body in VERBS if (state, _event(body["target"])) in DRAWN]
        if fits:
            body = fits[choice % len(fits)]
            self._ask("PUT", f"/v1/nodes/{known.uuid}/states/provision", body)

    @stateful.rule(slot=SLOTS)
    def bring_to_life(self, slot: int) -> None:
        for verb in ("manage", "provide", "active"):
            path = f"/v1/nodes/{self.nodes[slot].uuid}/states/provision"
            self._ask("PUT", path, {"target": verb})
            self.settle()

    @stateful.rule(slot=SLOTS, wanted=POWER)
    def turn(self, slot: int, wanted: str) -> None:
        self._ask("PUT", f"/v1/nodes/{self.nodes[slot].uuid}/states/power", {"target": wanted})

    @stateful.rule(slot=SLOTS, on=st.booleans())
    def maintain(self, slot: int, on: bool) -> None:
        known = self.nodes[slot]
        method = "PUT" if on else "DELETE"
        if self._ask(method, f"/v1/nodes/{known.uuid}/maintenance").status == 202:
            known.in_maintenance = on

    @stateful.rule(slot=SLOTS, key=KEYS)
    def set_extra(self, slot: int, key: str) -> None:
        known, self.count = self.nodes[slot], self.count + 1
        if self._patch(known, {"op": "add", "path": f"/extra/{key}", "value": self.count}):
            known.extra[key] = self.count

    @stateful.rule(slot=SLOTS, key=KEYS)
    def remove_extra(self, slot: int, key: str) -> None:
        known = self.nodes[slot]
        if self._patch(known, {"op": "remove", "path": f"/extra/{key}"}):
            del known.extra[key]

    @stateful.rule(slot=SLOTS, keys=st.sets(KEYS))
    def set_traits(self, slot: int, keys: set[str]) -> None:
        known, traits = self.nodes[slot], {f"CUSTOM_{key.upper()}" for key in keys}
        body = {"traits": sorted(traits)}
        if self._ask("PUT", f"/v1/nodes/{known.uuid}/traits", body).status == 204:
            known.traits = traits

    @stateful.rule(slot=SLOTS, key=KEYS, method=st.sampled_from(["PUT", "DELETE"]))
    def change_trait(self, slot: int, key: str, method: str) -> None:
        known, trait = self.nodes[slot], f"CUSTOM_{key.upper()}"
        if self._ask(method, f"/v1/nodes/{known.uuid}/traits/{trait}").status == 204:
            known.traits = known.traits | {trait} if method == "PUT" else known.traits - {trait}

    @stateful.rule(slot=SLOTS, number=st.integers(0, 3))
    def add_port(self, slot: int, number: int) -> None:
        known, address = self.nodes[slot], f"52:54:00:aa:00:{number:02x}"
        answer = self.stage.api.post("/v1/ports", {"node_uuid": known.uuid, "address": address})
        fuzzing.check(answer)
        if answer.status == 201:
            known.ports[answer.json["uuid"]] = address

    @stateful.rule(
        slot=SLOTS, method=st.sampled_from(["PATCH", "DELETE"]), number=st.integers(0, 3)
    )
    def change_port(self, slot: int, method: str, number: int) -> None:
        known, address = self.nodes[slot], f"52:54:00:bb:00:{number:02x}"
        for port in sorted(known.ports)[:1]:
            change = [{"op": "replace", "path": "/address", "value": address}]
            body = change if method == "PATCH" else None
            status = self._ask(method, f"/v1/ports/{port}", body).status
            if status == 200:
                known.ports[port] = address
            elif status == 204:
                del known.ports[port]

    @stateful.rule(slot=SLOTS, device=st.sampled_from(["pxe", "disk", "nothing"]))
    def boot_from(self, slot: int, device: str) -> None:
        path = f"/v1/nodes/{self.nodes[slot].uuid}/management/boot_device"
        self._ask("PUT", path, {"boot_device": device})

    @stateful.rule(slot=SLOTS, dice=st.integers(0, 3))
    def delete(self, slot: int, dice: int) -> None:
        known = self.nodes[slot]
        if dice == 0 and self.stage.api.delete(f"/v1/nodes/{known.uuid}").status == 204:
            known.is_gone = True

    @stateful.rule()
    def let_agents_call(self) -> None:
        agents.make(self.stage.site.runtime)()

    @stateful.rule(slot=SLOTS)
    def let_time_pass(self, slot: int) -> None:
        if not self.nodes[slot].is_gone:
            self.stage.let_time_pass(self.nodes[slot].uuid)

    # ------------------------------------------------------------------------- what must hold

    def settle(self) -> None:
        for known in self.nodes:
            if not known.is_gone:
                wait_for(lambda it=known: self._rests(it), f"{known.uuid} to rest")

    def _rests(self, known: Known) -> bool:
        node = self.stage.site.node(known.uuid)
        return node.reservation is None and node.provision_state in MAY_REST

    @stateful.invariant()
    def everything_adds_up(self) -> None:
        self.settle()
        for known in self.nodes:
            if known.is_gone:
                self._check_gone(known)
            else:
                self._check(known)
        assert self.target.broken.said == []

    def _check_gone(self, known: Known) -> None:
        for path in (f"/v1/nodes/{known.uuid}", *(f"/v1/ports/{port}" for port in known.ports)):
            assert self._ask("GET", path).status == 404

    def _check(self, known: Known) -> None:
        shown = self.stage.show(known.uuid)
        assert shown["provision_state"] in fuzzing.STATES
        assert shown["extra"] == known.extra
        assert set(shown["traits"]) == known.traits
        assert shown["maintenance"] or not known.in_maintenance
        ports = self._ask("GET", f"/v1/nodes/{known.uuid}/ports").json["ports"]
        assert {port["uuid"]: port["address"] for port in ports} == known.ports
        assert self._ask("GET", f"/ext/v1/nodes/{known.uuid}/why").status == 200

    def teardown(self) -> None:
        """The next life's ports want their addresses."""
        for known in self.nodes:
            for port in () if known.is_gone else known.ports:
                self.stage.site.order("destroy_record", "port", port)


def run(target: fuzzing.Target, seed: int, lives: int, steps: int) -> None:
    @hypothesis.seed(seed)
    def born() -> Life:
        return Life(target)

    stateful.run_state_machine_as_test(
        born,
        settings=hypothesis.settings(fuzzing.settings(lives), stateful_step_count=steps),
    )
