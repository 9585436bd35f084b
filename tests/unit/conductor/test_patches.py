"""The patcher: what it copies, what it leaves as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from cryptography.fernet import Fernet

from bloomery import errors
from bloomery.conductor.patches import Limits, Patcher
from bloomery.model import node as model
from bloomery.model.node import Node
from bloomery.secrets import Sealer

SEALER = Sealer(Fernet.generate_key())
PATCHER = Patcher(model.FIELDS, sorted(model.PATCHABLE), Node)
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
