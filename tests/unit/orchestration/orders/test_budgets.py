"""How many nodes may deploy, or clean, before the orders of stacks are queued."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bloomery.conductor.states import State
from bloomery.conf.conductor import Conductor
from bloomery.conf.engine import Engine
from bloomery.db import nodes, rows
from bloomery.db.engine import Database
from bloomery.model import node as model
from bloomery.operations.context import Services
from bloomery.orchestration.orders import budgets
from bloomery.orchestration.resources.machines import Queued
from tests.kit.stacks import trees


def add_node(db: Database, group: str, state: State = State.AVAILABLE) -> str:
    node = model.Node(
        uuid=str(uuid.uuid4()), driver="fake-hardware", created_at=rows.now(),
        conductor_group=group, provision_state=state,
    )  # fmt: skip
    columns = dataclasses.asdict(node)
    for name in ("id", "traits", "updated_at"):
        del columns[name]
    db.transact(lambda conn: nodes.insert(conn, rows.encode(columns, model.OBJECTS)))
    return node.uuid


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = trees.database(tmp_path)
    for group, state in (("a", State.DEPLOYING), ("a", State.DEPLOYWAIT), ("b", State.CLEANING)):
        add_node(database, group, state)
    yield database
    database.close()


def services(db: Database, **options: Any) -> Services:
    """Those of a site where five nodes may deploy, and five may clean, at a time."""
    conductor = Conductor(max_concurrent_deploy=5, max_concurrent_clean=5, **options)
    engine = Engine(deploy_budget_percent=40, clean_budget_percent=40)
    return cast(Services, SimpleNamespace(
        db=db, conf=SimpleNamespace(conductor=conductor, engine=engine)))  # fmt: skip


@pytest.mark.parametrize("verb", ["active", "rebuild"])
def test_a_deployment_over_the_budget_is_queued(verb: str, db: Database) -> None:
    with pytest.raises(Queued, match="queued: 2 nodes are being deployed, as many as"):
        budgets.check(services(db), trees.ident("node"), verb)


@pytest.mark.parametrize("verb", ["deleted", "clean", "provide", "manage", "abort"])
def test_what_is_within_its_budget_or_has_none_goes_on(verb: str, db: Database) -> None:
    budgets.check(services(db), trees.ident("node"), verb)


def test_conductor_groups_have_budgets_of_their_own_as_they_have_limits(db: Database) -> None:
    uuids = {group: add_node(db, group) for group in ("a", "b")}
    per_group = services(db, max_concurrent_per_conductor_group=True)
    with pytest.raises(Queued, match="in conductor group 'a'") as queued:
        budgets.check(per_group, uuids["a"], "active")
    assert queued.value.uuid == "queue:deployed:a"
    budgets.check(per_group, uuids["b"], "active")
