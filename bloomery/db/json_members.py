"""Print fields of a row as members of a JSON object, in the database.

    column(conn.dialect, NODES, JsonMembers((FIELDS["name"], FIELDS["retired"])))
    # a column with texts such as "name":"web-1","retired":false

Rows with many columns cost most where each column becomes a value of Python.  Printed values are
equal to orjson's of the same row.  Objects and lists are copied, since rows hold them as JSON.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import sqlalchemy as sa

from bloomery.model.fields import Field, JsonMembers

_Columns: TypeAlias = Sequence[tuple[Field, str]]  # fields, each with its quoted column

_SQLITE_PAIRS: Final = 60  # in one json_object: a function of SQLite takes 127 arguments
_COPIED: Final = ("object", "list")
_WHOLE_SECOND: Final = ".000000"  # omitted by orjson


@functools.lru_cache(maxsize=512)
def column(dialect: sa.Dialect, table: sa.Table, members: JsonMembers) -> sa.ColumnElement[str]:
    """Return the column ``members`` of a table; its texts are empty without fields."""
    quote = dialect.identifier_preparer.quote
    columns = [(each, f"{quote(table.name)}.{quote(each.name)}") for each in members.fields]
    text = _PRINTERS[dialect.name](columns) if columns else "''"
    return sa.literal_column(text, sa.Text).label("members")


def _sqlite(columns: _Columns) -> str:
    """Print texts and numbers by json_object, which costs half as much as json_quote for each."""
    pieces = [
        f"CASE {sql} "
        f"WHEN 1 THEN '\"{field.name}\":true' "
        f"WHEN 0 THEN '\"{field.name}\":false' "
        f"ELSE '\"{field.name}\":null' END"
        for field, sql in columns
        if field.kind == "bool"
    ]
    copied = [(field, sql) for field, sql in columns if field.kind in _COPIED]
    if copied:
        formats = ",".join(f'"{field.name}":%s' for field, _ in copied)
        pieces.append(f"printf('{formats}',{','.join(sql for _, sql in copied)})")
    pairs = []
    for field, sql in columns:
        if field.kind == "time":
            iso = f"replace(replace({sql},' ','T'),'{_WHOLE_SECOND}','')||'+00:00'"
            pairs.append(f"'{field.name}',{iso}")
        elif field.kind != "bool" and field.kind not in _COPIED:
            pairs.append(f"'{field.name}',{sql}")
    for start in range(0, len(pairs), _SQLITE_PAIRS):
        batch = ",".join(pairs[start : start + _SQLITE_PAIRS])
        pieces.append(f"trim(json_object({batch}),'{{}}')")
    return "||','||".join(pieces)


def _postgresql(columns: _Columns) -> str:
    """Print a row as a whole: other functions of PostgreSQL take 100 arguments at most."""
    values = []
    for field, sql in columns:
        if field.kind in _COPIED:
            values.append(f'CAST({sql} AS json) AS "{field.name}"')
        elif field.kind == "time":
            iso = f"to_char({sql},'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
            values.append(f"replace({iso},'{_WHOLE_SECOND}','')||'+00:00' AS \"{field.name}\"")
        else:
            values.append(f'{sql} AS "{field.name}"')
    printed = f"(SELECT {','.join(values)}) AS of_row"
    document = f"(SELECT CAST(row_to_json(of_row) AS text) FROM {printed})"  # noqa: S608
    return f"left(right({document},-1),-1)"  # without braces


def _mysql(columns: _Columns) -> str:
    """Print each value: JSON functions of MySQL would read and rewrite objects."""
    pieces: list[str] = []
    for field, sql in columns:
        pieces.append(f"'{',' if pieces else ''}\"{field.name}\":'")
        if field.kind in _COPIED:
            pieces.append(sql)
        elif field.kind == "bool":
            pieces.append(f"CASE {sql} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END")
        elif field.kind == "time":
            iso = f"replace(date_format({sql},'\"%Y-%m-%dT%H:%i:%s.%f'),'{_WHOLE_SECOND}','')"
            pieces.append(f"coalesce(concat({iso},'+00:00\"'),'null')")
        elif field.kind == "int":
            pieces.append(f"coalesce({sql},'null')")
        else:
            pieces.append(f"coalesce(json_quote({sql}),'null')")
    return f"concat({','.join(pieces)})"


_PRINTERS: Final[dict[str, Callable[[_Columns], str]]] = {
    "sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql, "mariadb": _mysql,
}  # fmt: skip
