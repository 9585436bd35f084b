"""Draw the lives of stacks of plain kinds: what is asked of a stack from its create to its delete.

``lives(seed)`` yields documents, the same for a seed each time:

    {"id": "life-07", "steps": [{"do": "create", "body": {...}, "ends": "CREATE"},
                                {"do": "race", "body": {...}, "slow": "slow", "second": {...}, ...},
                                {"do": "update", ...}, {"do": "delete", ...}]}

A race is an update and another one sent while resource ``slow`` of the first is being updated and
all else has come to rest.  What fails, fails so late that all else has come to rest too: which of
two siblings is first is Heat's luck and nothing to be compared.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any, Final

COUNT: Final = 60
SLOW: Final = "slow"
BROKEN: Final = "broken"
VERSIONS: Final = ("2016-10-14", "2018-08-31", "2021-04-16")
KINDS: Final = ("value", "value", "random", "test", "test", "group", "delay", "none", "inner")
ATTRIBUTES: Final = {"value": "value", "test": "output", "inner": "text"}
INNER: Final = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: none}
resources:
  first: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
  second: {type: OS::Heat::Value, properties: {value: {get_attr: [first, output]}}}
outputs:
  text: {value: {get_attr: [second, value]}}
"""

Node = dict[str, Any]
Nodes = dict[str, Node]


def lives(seed: int = 1, *, patience_s: int, count: int = COUNT) -> Iterator[dict[str, Any]]:
    """``patience_s``: how long all else has to come to rest; it shows in nothing that is seen."""
    for number in range(count):
        yield Draw(seed, number, patience_s).life()


class Draw:
    """One life.  A node is what a resource is drawn as, before it is written as a template."""

    def __init__(self, seed: int, number: int, patience_s: int) -> None:
        self.number = number
        self.patience_s = patience_s
        self.random = random.Random(f"{seed}/{number}")
        self.names = (f"r{index}" for index in itertools.count())
        self.version = self.random.choice(VERSIONS)

    def life(self) -> dict[str, Any]:
        first = self.nodes()
        second = self.bumped(self.changed(first))
        third = self.bumped(self.changed(second))
        if self.number % 3 == 2:
            steps = [
                self.step("create", self.broken(first), "ROLLBACK", rollback=True),
                self.step("update", first, "UPDATE"),
                self.race(second, third),
            ]
        else:
            steps = [
                self.step("create", first, "CREATE"),
                self.race(second, third),
                self.step("update", self.broken(self.changed(third)), "ROLLBACK", rollback=True),
            ]
        return {"id": f"life-{self.number:02}", "steps": [*steps, {"do": "delete"}]}

    def step(
        self, do: str, nodes: Nodes, ends: str, *, rollback: bool | None = None
    ) -> dict[str, Any]:
        return {"do": do, "body": self.body(nodes, rollback=rollback), "ends": ends}

    def race(self, nodes: Nodes, second: Nodes) -> dict[str, Any]:
        step = self.step("race", nodes, "UPDATE")
        return {**step, "slow": SLOW, "second": self.body(second)}

    # -- nodes -------------------------------------------------------------------------------------

    def nodes(self) -> Nodes:
        nodes: Nodes = {}
        for _ in range(self.random.randint(2, 5)):
            nodes[next(self.names)] = self.node(nodes)
        nodes[SLOW] = self.waiting("slow", nodes)
        nodes[next(self.names)] = self.node(nodes)
        return nodes

    def node(self, nodes: Nodes) -> Node:
        kind = self.random.choice(KINDS)
        node = {"kind": kind, "rev": 0, "needs": self.needs(nodes), "count": 1}
        if kind == "group":
            node |= {
                "count": self.random.randint(0, 3),
                "of": self.random.choice(("value", "test")),
            }
        if kind == "test":
            node["replaced"] = self.random.random() < 0.4
        return node

    def waiting(self, kind: str, nodes: Nodes) -> Node:
        wait_s = self.patience_s * (2 if kind == "broken" else 1)
        return {"kind": kind, "rev": 0, "needs": self.needs(nodes), "wait_s": wait_s}

    def needs(self, nodes: Nodes) -> list[str]:
        return sorted(self.random.sample(sorted(nodes), min(len(nodes), self.random.randint(0, 2))))

    def bumped(self, nodes: Nodes) -> Nodes:
        nodes[SLOW]["rev"] += 1
        return nodes

    def changed(self, nodes: Nodes) -> Nodes:
        """A copy with one to three changes."""
        nodes = copy.deepcopy(nodes)
        for _ in range(self.random.randint(1, 3)):
            change = self.random.choice((self.raise_one, self.raise_one, self.drop, self.add))
            change(nodes)
        return nodes

    def raise_one(self, nodes: Nodes) -> None:
        node = nodes[self.random.choice(sorted(set(nodes) - {SLOW}) or [SLOW])]
        if node["kind"] == "group" and self.random.random() < 0.5:
            node["count"] = self.random.randint(0, 3)
        elif node["kind"] in {"value", "test"} and self.random.random() < 0.2:
            node["kind"] = "value" if node["kind"] == "test" else "test"
        elif node["kind"] != "slow":
            node["rev"] += 1

    def drop(self, nodes: Nodes) -> None:
        name = self.random.choice(sorted(set(nodes) - {SLOW}) or [SLOW])
        if name != SLOW:
            del nodes[name]
        for node in nodes.values():
            node["needs"] = [need for need in node["needs"] if need in nodes]

    def add(self, nodes: Nodes) -> None:
        nodes[next(self.names)] = self.node(nodes)

    def broken(self, nodes: Nodes) -> Nodes:
        """A copy that fails: by a new resource, one that needs others and is needed by some."""
        nodes = copy.deepcopy(nodes)
        names = sorted(nodes)
        nodes[BROKEN] = self.waiting("broken", nodes)
        if self.random.random() < 0.5:
            after = {"kind": "value", "rev": 0, "needs": [BROKEN, self.random.choice(names)]}
            nodes[next(self.names)] = after
        return nodes

    # -- what is sent ------------------------------------------------------------------------------

    def body(self, nodes: Nodes, *, rollback: bool | None = None) -> dict[str, Any]:
        outputs = {f"{name}_is": value for name in nodes if (value := output(name, nodes))}
        template = {
            "heat_template_version": self.version,
            "resources": {name: resource(name, nodes) for name in nodes},
            "outputs": {name: {"value": value} for name, value in outputs.items()},
        }
        body: dict[str, Any] = {"template": template, "files": {"inner.yaml": INNER}}
        return body if rollback is None else {**body, "disable_rollback": not rollback}


def output(name: str, nodes: Nodes) -> Any:
    kind = nodes[name]["kind"]
    if kind in ATTRIBUTES:
        return {"get_attr": [name, ATTRIBUTES[kind]]}
    if kind == "group" and nodes[name]["of"] in ATTRIBUTES:
        return {"get_attr": [name, ATTRIBUTES[nodes[name]["of"]]]}
    return {"get_attr": [name, "output"]} if kind == "slow" else None


def resource(name: str, nodes: Nodes) -> dict[str, Any]:
    """One resource: what it needs is in its value where that can be, else in depends_on."""
    node = nodes[name]
    sources = [need for need in node["needs"] if nodes[need]["kind"] in ATTRIBUTES]
    value: Any = f"v{node['rev']}"
    if sources and node["kind"] in {"value", "test", "inner"}:
        pulled: Any = {"get_attr": [sources[0], ATTRIBUTES[nodes[sources[0]]["kind"]]]}
        value = {"list_join": ["-", [value, pulled]]}
    else:
        sources = []
    written = WRITERS[node["kind"]](node, value)
    rest = [need for need in node["needs"] if need not in sources[:1]]
    return {**written, "depends_on": rest} if rest else written


def _value(_node: Node, value: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": value}}


def _test(node: Node, value: Any) -> dict[str, Any]:
    properties = {"value": value, "update_replace": node.get("replaced", False)}
    return {"type": "OS::Heat::TestResource", "properties": properties}


def _slow(node: Node, value: Any) -> dict[str, Any]:
    properties = {"value": value, "action_wait_secs": {"update": node["wait_s"]}}
    return {"type": "OS::Heat::TestResource", "properties": properties}


def _broken(node: Node, value: Any) -> dict[str, Any]:
    properties = {"value": value, "fail": True, "action_wait_secs": {"create": node["wait_s"]}}
    return {"type": "OS::Heat::TestResource", "properties": properties}


def _random(node: Node, _value: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::RandomString", "properties": {"length": 8 + node["rev"]}}


def _delay(node: Node, _value: Any) -> dict[str, Any]:
    properties = {"min_wait": 1, "max_jitter": node["rev"], "jitter_multiplier": 0}
    return {"type": "OS::Heat::Delay", "properties": properties}


def _none(node: Node, value: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::None", "properties": {"anything": value, "rev": node["rev"]}}


def _group(node: Node, value: Any) -> dict[str, Any]:
    member = {"type": "OS::Heat::Value", "properties": {"value": f"{value}-%index%"}}
    if node["of"] == "test":
        member["type"] = "OS::Heat::TestResource"
    properties = {"count": node["count"], "resource_def": member}
    return {"type": "OS::Heat::ResourceGroup", "properties": properties}


def _inner(_node: Node, value: Any) -> dict[str, Any]:
    return {"type": "inner.yaml", "properties": {"text": value}}


WRITERS: Final = {
    "value": _value,
    "test": _test,
    "slow": _slow,
    "broken": _broken,
    "random": _random,
    "delay": _delay,
    "none": _none,
    "group": _group,
    "inner": _inner,
}
