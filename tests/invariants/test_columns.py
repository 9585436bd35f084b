"""A stored resource has one shape: what a column costs, and no second place that copies all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import bloomery
from bloomery.db.tables import RESOURCES, STACKS

ROOT = Path(bloomery.__file__).parent
DECLARED = ["db/tables.py", "model/stacks.py"]


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield every name that code can call a column by: fields, arguments, attributes, texts."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.Constant(value=str(name)):
                yield name
            case ast.keyword(arg=str(name)) | ast.arg(arg=name):
                yield name


def list_users(columns: set[str], most: float) -> list[str]:
    """List the files whose code names more than ``most`` of the columns."""
    texts = {path: path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    return [
        str(path.relative_to(ROOT))
        for path, text in texts.items()
        if "migrations" not in path.parts and sum(name in text for name in columns) > most
        if len(columns.intersection(names_in(ast.parse(text)))) > most
    ]


@pytest.mark.parametrize(
    ("column", "users"),
    [
        ("metadata_version", []),
        ("state_before", ["engine/resource_actions.py"]),
    ],
)
def test_a_column_costs_its_declaration_and_its_use(column: str, users: list[str]) -> None:
    """The migration comes beside them."""
    assert list_users({column}, 0) == [*DECLARED, *(f"orchestration/{user}" for user in users)]


@pytest.mark.parametrize("table", [RESOURCES, STACKS], ids=lambda table: table.name)
def test_no_other_file_names_most_columns_of_a_table(table: sa.Table) -> None:
    columns = set(table.c.keys())
    assert list_users(columns, 0.85 * len(columns)) == DECLARED
