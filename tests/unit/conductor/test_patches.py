"""The patcher: what it copies, what it leaves as it is."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from bloomery import errors, secrets
from bloomery.conductor.patches import Limits, Patcher
from bloomery.model.node import Node
from bloomery.model.rules import nodes
from bloomery.secrets import Sealer

SEALER = Sealer(Fernet.generate_key())
PATCHER = Patcher(nodes.ATTRIBUTES, Node)
LIMITS = Limits(depth=25, size_kib=1024)


class Counted(dict[str, Any]):
    """An object that counts how often it is copied as a whole."""

    copies = 0

    def __deepcopy__(self, memo: Any) -> Counted:
        Counted.copies += 1
        return Counted({name: copy.deepcopy(value, memo) for name, value in self.items()})

    def copy(self) -> Counted:
        Counted.copies += 1
        return Counted(self)


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def apply(node: Node, *patch: dict[str, Any]) -> dict[str, Any]:
    return PATCHER.apply(node, PATCHER.prepare(patch, SEALER, LIMITS))


@pytest.fixture
def node() -> Node:
    Counted.copies = 0
    return Node(uuid="u", driver="d", extra=Counted(a=1), properties=Counted(b=1))


def test_work_grows_with_the_patch_and_not_with_patch_times_node(node):
    changed = apply(node, *[add(f"/extra/k{n}", n) for n in range(500)])
    assert len(changed["extra"]) == 501
    assert Counted.copies <= 1


def test_neither_node_nor_patch_is_changed(node):
    patch = [add("/extra/list", [1]), add("/extra/list/-", 2), add("/extra/list/-", 3)]
    given = copy.deepcopy(patch)
    prepared = PATCHER.prepare(patch, SEALER, LIMITS)
    for _ in range(2):
        assert PATCHER.apply(node, prepared) == {"extra": {"a": 1, "list": [1, 2, 3]}}
    assert patch == given
    assert node.extra == {"a": 1}


def test_what_a_patch_undoes_is_no_change(node):
    assert apply(node, add("/extra/b", 1), {"op": "remove", "path": "/extra/b"}) == {}


def test_a_sealed_value_is_closed_under_whatever_name_it_stands(node):
    """Which names are secret is a list that grows; what was sealed stays closed."""
    node.driver_info = {"plain": {"$sealed": "k", "token": "t"}}
    with pytest.raises(errors.PatchError, match="plain is a secret: replace it as a whole"):
        apply(node, add("/driver_info/plain/token", 1))


def test_depth_is_counted_without_recursion(node):
    patch = [add("/extra" + "/a" * n, {}) for n in range(1, 900)]
    with pytest.raises(errors.PatchError, match="deeper than 25 levels"):
        apply(node, *patch)


# ------------------------------------------------------------------- whatever a client tries

MARK = "hunter2"
NAMES = ("a", "x_password", "list", "0", "-", "token", "secrets")
VALUES = st.recursive(
    st.sampled_from(["plain", 1, None]) | st.just({"x_password": MARK}),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "list"]), inner, max_size=2)
        | st.dictionaries(st.just("secrets"), st.just([MARK, {"a": MARK}]), max_size=1)
    ),
    max_leaves=5,
)


@st.composite
def operations(draw: st.DrawFn) -> dict[str, Any]:
    below = draw(st.lists(st.sampled_from(NAMES), max_size=4))
    path = "/".join(("", draw(st.sampled_from(["driver_info", "instance_info"])), *below))
    if draw(st.booleans()) and below:
        return {"op": "remove", "path": path}
    value = MARK if any(secrets.is_secret_key(name) for name in below) else draw(VALUES)
    return {"op": draw(st.sampled_from(["add", "replace"])), "path": path, "value": value}


@given(st.lists(operations(), max_size=6))
def test_no_patch_brings_a_secret_into_a_row_nor_breaks_one(patch):
    info = SEALER.seal(
        {"x_password": "old", "list": [{"x_password": "old"}], "secrets": ["old"], "a": {"a": 1}},
    )
    node = Node(uuid="u", driver="d", driver_info=info, instance_info=copy.deepcopy(info))
    for operation in patch:
        with contextlib.suppress(errors.PatchError, errors.InvalidParameterValue):
            for name, value in apply(node, operation).items():
                setattr(node, name, value)
    for stored in (node.driver_info, node.instance_info):
        assert MARK not in json.dumps(stored)
        SEALER.open(stored)  # each seal is whole
