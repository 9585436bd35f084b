"""Read the rows of a file: YAML, JSON or CSV.  Each row has its place, for messages.

for row in read(Path("machines.csv")):
    row.place, row.values            # "machines.csv:2", {"name": "web-1", "driver_info": {...}}
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bloomery import errors, parsing

Json = dict[str, Any]
_LONGEST: Final = 64 << 20  # bytes of a file
_SEPARATORS: Final = ",;\t"  # of CSV: spreadsheets write ; in half of Europe


class FileUnreadable(errors.Failure):
    """The file is no list of machines.  The message quotes no line: it may have a password."""

    code = "client.enrol_file"
    text = "cannot read {place}: {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One machine of a file.  ``left_out``: fields of the file that have no place in a node."""

    place: str
    values: Json = field(repr=False)
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """Read numbers, booleans and null as JSON does; all else is text.

    YAML 1.1 would read a MAC of digits as a number to the base 60, and 0123 as octal.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  declared so by yaml


for _tag, _form, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"-?(?:0|[1-9]\d*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9]\d*)\.\d+", "-0123456789"),
    ("null", r"null|~|", ["n", "~", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_form})$"), _first)


def read(path: Path) -> list[Row]:
    """Return the rows of a file.  Raises FileUnreadable."""
    try:
        if path.stat().st_size > _LONGEST:
            raise FileUnreadable(place=path, reason="it is longer than 64 MiB; split it")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise FileUnreadable(place=path, reason=exc.strerror) from exc
    except UnicodeDecodeError as exc:
        raise FileUnreadable(place=path, reason="it is no UTF-8 text; convert it") from exc
    if path.suffix.lower() == ".csv":
        return _read_csv(path.name, text)
    return _read_documents(path, text)


def _read_documents(path: Path, text: str) -> list[Row]:
    """Return the entries of lists, of ``nodes`` and ``items``, and documents with a ``kind``.

    JSON is read as YAML, too, which tells the lines.
    """
    if path.suffix.lower() == ".json":
        try:
            parsing.load_json(text)
        except parsing.TooMuch as exc:
            raise FileUnreadable(place=path, reason=exc) from exc
        except json.JSONDecodeError as exc:
            place = f"{path}, line {exc.lineno}, column {exc.colno}"
            raise FileUnreadable(place=place, reason=f"it is no JSON: {exc.msg}") from exc
        text = text.expandtabs(1)
    rows, loader = [], _Loader(text)
    try:
        parsing.check_yaml(text)
        while loader.check_node():
            for entry in _entries(path.name, loader.get_node()):
                place = f"{path.name}:{entry.start_mark.line + 1}"
                values = loader.construct_document(entry)
                if not isinstance(values, dict):
                    raise FileUnreadable(place=place, reason="an entry must be a map of fields")
                rows.append(Row(place=place, values=values))
    except yaml.MarkedYAMLError as exc:
        line = 1 if exc.problem_mark is None else exc.problem_mark.line + 1
        raise FileUnreadable(place=f"{path}, line {line}", reason=exc.problem) from exc
    except yaml.YAMLError as exc:
        raise FileUnreadable(place=path, reason=type(exc).__name__) from exc
    except parsing.TooMuch as exc:
        raise FileUnreadable(place=path, reason=exc) from exc
    finally:
        loader.dispose()
    return rows


def _entries(name: str, document: yaml.Node | None) -> list[yaml.Node]:
    if isinstance(document, yaml.SequenceNode):
        return list(document.value)
    keys = dict[str, yaml.Node]()
    if isinstance(document, yaml.MappingNode):
        keys = {str(key.value): value for key, value in document.value}
    for key in ("nodes", "items"):  # Ironic's and instackenv's files; a List of Kubernetes
        if isinstance(nodes := keys.get(key), yaml.SequenceNode):
            return list(nodes.value)
    if document is not None and "kind" in keys:
        return [document]
    if document is None or document.value in ("", "null", "~"):
        return []  # an empty document between two ---
    raise FileUnreadable(
        place=f"{name}:{document.start_mark.line + 1}",
        reason="it needs a list of machines, a map with the list nodes, or BareMetalHosts",
    )


def _read_csv(name: str, text: str) -> list[Row]:
    """Return the lines below the heading; a dot in a heading separates the keys of a map."""
    rows, lines = [], text.splitlines(keepends=True)
    separator = max(_SEPARATORS, key=lines[0].count) if lines else ","
    reader = csv.DictReader(lines, delimiter=separator, strict=True, skipinitialspace=True)
    try:
        for cells in reader:
            place = f"{name}:{reader.line_num}"
            if None in cells or None in cells.values():
                reason = f"the line needs {len(reader.fieldnames or ())} cells, as the heading has"
                raise FileUnreadable(place=place, reason=reason)
            rows.append(Row(place=place, values=_nested(place, cells)))
    except csv.Error as exc:
        raise FileUnreadable(place=f"{name}:{reader.line_num}", reason=exc) from exc
    return rows


def _nested(place: str, cells: dict[str, str]) -> Json:
    values: Json = {}
    for heading, cell in cells.items():
        *outer, last = heading.strip().split(".")
        if not cell.strip():
            continue
        if len(outer) >= parsing.LEVELS:
            raise FileUnreadable(place=place, reason=f"a heading has more than {len(outer)} dots")
        inner = values
        for key in outer:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise FileUnreadable(place=place, reason=f"the heading {heading} repeats {key}")
        inner[last] = cell.strip()
    return values
