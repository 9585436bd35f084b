"""Whatever a rule says and a machine tells: an inspection ends, well or by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import hypothesis
import orjson
from hypothesis import strategies as st

from bloomery import errors
from bloomery.conf.inspection import Inspector
from bloomery.inspection import engine, hooks
from bloomery.inspection.draft import Draft
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import inspection as rules
from bloomery.secrets import SEALED
from tests.kit.sampling import count

HUSH = "correct-horse-battery"
MAC = "52:54:00:00:00:0a"
NAMES = (
    "validate-interfaces", "ports", "architecture", "cpus", "memory", "boot-mode", "root-device",
    "cpu-capabilities", "local-link-connection", "parse-lldp", "physical-network", "pci-devices",
    "accelerators", "raid-device", "extra-hardware",
)  # fmt: skip
KEYS = st.sampled_from(
    ["interfaces", "cpu", "count", "disks", "size", "memory", "physical_mb", "boot", "lldp", "name",
     "mac_address", "pxe_interface", "serial", "root_disk", "pci_devices", "data", "x", "0", "a.b"]
)  # fmt: skip
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False),
    st.sampled_from([MAC, "01-52-54-00-00-00-0a", "192.0.2.1", "fe80::1%e", "8", "", "\0", "é"]),
    st.text(max_size=8),
)  # fmt: skip
DATA = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)
TEXTS = st.sampled_from(
    ["{node}", "{inventory}", "{plugin_data}", "{item}", "{item[0]}", "{item[x]}", "{node.name}",
     "{node.driver_info[x_password]}", "{node.driver_info[x_password][token]}", "{node.traits[0]}",
     "{inventory[cpu][count]}", "{inventory[disks][0][size]:>9}", "{node.__class__}", "{", "}",
     "{0}", "{}", "{node.name!r:>300}", "{inventory[interfaces]}", "extra.x", "extra/x/y", "extra",
     "properties/memory_mb", "driver_info/x_password", "driver_info", "name", "driver", "p", MAC,
     "local_link_connection/port_id", "pxe_enabled", "physical_network", "CUSTOM_A", "a:b", "(a+)+",
     "[", "192.0.2.0/24", "network_data", "maintenance", "automated_clean", "conductor_group"]
) | st.text(min_size=1, max_size=12)  # fmt: skip
KINDS = {
    "anything": TEXTS | DATA, "text": TEXTS, "flag": st.booleans(), "count": st.just(0),
    "level": st.sampled_from(rules.LEVELS), "pair": st.lists(TEXTS | PLAIN, min_size=2, max_size=3),
    "values": TEXTS | st.lists(TEXTS | PLAIN, max_size=3), "object": st.none(),
    "seconds": st.just(0),
}  # fmt: skip
LOOP = st.one_of(st.none(), st.lists(DATA, max_size=3), TEXTS, st.dictionaries(KEYS, PLAIN))


@st.composite
def item(draw: Any, table: Any, *, condition: bool) -> Any:
    op = draw(st.sampled_from(sorted(table)))
    args = {name: draw(KINDS[kind]) for name, kind in table[op].items()}
    drawn = {"op": op, "args": args, "loop": draw(LOOP)}
    if condition:
        drawn["op"] = draw(st.sampled_from(["", "!", "! "])) + op
        drawn["multiple"] = draw(st.sampled_from(rules.MULTIPLE))
    return drawn


def refuse(**_arguments: Any) -> None:
    raise errors.Invalid(reason="no")


def failure_of(work: Callable[[], None]) -> str:
    try:
        work()
    except errors.HardwareInspectionFailure as exc:
        return str(exc)
    return ""


@hypothesis.settings(max_examples=count(400), deadline=None, database=None, derandomize=True,
                     suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
@hypothesis.given(
    conditions=st.lists(item(rules.CONDITIONS, condition=True), max_size=2),
    actions=st.lists(item(rules.ACTIONS, condition=False), min_size=1, max_size=4),
    inventory=st.dictionaries(KEYS, DATA, max_size=6),
    plugin_data=st.dictionaries(KEYS, DATA, max_size=4),
)
def test_an_inspection_ends_well_or_by_name(conditions, actions, inventory, plugin_data):
    rule = InspectionRule(
        uuid="r", conditions=rules.conditions(conditions), actions=rules.actions(actions)
    )
    node = Node(uuid="n", driver="fake-hardware", name="web-1",
                driver_info={"x_password": {SEALED: "k", "token": HUSH}})  # fmt: skip
    port = Port(uuid="p", address=MAC, node_uuid="n")
    draft = Draft.of(node, [port], inventory, plugin_data)
    powers = engine.Powers(mask_secrets="always", reveal=lambda value: value, call=refuse)
    error = failure_of(lambda: hooks.run(hooks.pipeline(NAMES), draft, Inspector()))
    assert "cannot use the data" not in error
    error = failure_of(lambda: engine.run([rule], draft, powers))
    rows = [draft.plugin_data, draft.node.extra, draft.node.properties, draft.node.traits,
            *(port.extra for port in draft.all_ports), draft.node.name, error]  # fmt: skip
    assert HUSH not in json.dumps(rows)
    orjson.dumps(draft.plugin_data)
