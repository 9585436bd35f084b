"""JSON that the database prints, against orjson's of the same row."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from bloomery.db import engine, json_members, nodes, records
from bloomery.model import node as model
from bloomery.model import nouns
from bloomery.model.fields import Field, JsonMembers
from bloomery.model.volume import VolumeTarget

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CHARACTERS = "".join(map(chr, [*range(1, 0x180), 0x2028, 0xFEFF, 0xFFFF, 0x1F600, 0x10FFFF]))
FIELDS = tuple(field for field in model.FIELDS.values() if field.column)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"description": "", "last_error": "{}", "owner": '"}', "lessee": "{"},
        {"description": "100% %s :name 'it' \\ \\\\ \"x\"", "shard": "}", "owner": "a\nb\tc"},
        {"description": CHARACTERS, "last_error": CHARACTERS[::-1]},
        {"automated_clean": None, "protected": True, "secure_boot": False},
        {"automated_clean": True, "secure_boot": None},
        {"provision_updated_at": AT, "inspection_started_at": None},
        {"provision_updated_at": AT.replace(microsecond=1), "inspection_started_at": AT},
        {"provision_updated_at": AT.replace(microsecond=120_000)},
        {"extra": {CHARACTERS: [1, -1.5e300, 18446744073709551615, None, {"%s": "}"}]}},
        {"extra": {"nul": "\0"}, "driver_info": {"a": {"b": [{}]}}},
    ],
)
def test_a_printed_node_is_what_orjson_makes_of_its_row(
    db: engine.Database, add_node: Any, values: dict[str, Any]
) -> None:
    ident = db.transact(lambda conn: add_node(conn, **values))
    singles = tuple(field.name for field in FIELDS)
    with db.read() as conn:
        printed, *_ = nodes.find_row(conn, ident, (JsonMembers(FIELDS),))
        row = nodes.find_row(conn, ident, singles)
    _compare(printed, FIELDS, row)


def test_numbers_are_printed_as_numbers(db: engine.Database, add_node: Any) -> None:
    target = VolumeTarget(
        uuid=str(uuid.uuid4()), node_uuid="", volume_type="iscsi", volume_id="1", boot_index=-7
    )
    noun = nouns.VOLUME_TARGET
    fields = tuple(field for field in noun.fields.values() if field.column)

    def insert(conn: Any) -> None:
        target.node_uuid = add_node(conn)
        records.insert(conn, noun, target)

    db.transact(insert)
    with db.read() as conn:
        printed, *_ = records.find_row(conn, noun, target.uuid, [JsonMembers(fields)])
        row = records.find_row(conn, noun, target.uuid, [field.name for field in fields])
    _compare(printed, fields, row)
    assert '"boot_index":-7' in printed


def test_no_fields_are_an_empty_text(db: engine.Database, add_node: Any) -> None:
    ident = db.transact(add_node)
    with db.read() as conn:
        assert tuple(nodes.find_row(conn, ident, (JsonMembers(()), "uuid"))) == ("", ident)


def test_a_row_may_have_more_columns_than_a_function_has_arguments(
    db: engine.Database, add_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_members, "_SQLITE_PAIRS", 7)
    ident = db.transact(lambda conn: add_node(conn, owner="}", lessee="{"))
    with db.read() as conn:
        printed, *_ = nodes.find_row(conn, ident, (JsonMembers(FIELDS),))
        row = nodes.find_row(conn, ident, tuple(field.name for field in FIELDS))
    _compare(printed, FIELDS, row)


def _compare(printed: str, fields: tuple[Field, ...], row: Any) -> None:
    values = dict(zip((field.name for field in fields), row, strict=True))
    for field in fields:
        if field.kind in ("object", "list"):
            values[field.name] = orjson.loads(values[field.name])
    assert orjson.loads(f"{{{printed}}}") == orjson.loads(orjson.dumps(values))
