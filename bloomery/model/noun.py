"""The declaration of a noun, for rows, conductor, operations and API.

    NOUN = Noun(name="port", plural="ports", value=Port, table="ports", fields=FIELDS, ...)

The ``records`` modules of those packages take the noun as an argument.  A noun with more methods
than create, read, list, patch and delete calls their functions from modules of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import FieldTable, patchable
from bloomery.model.rules import attributes
from bloomery.model.rules.patches import Patch

Json = dict[str, Any]
Fault = Callable[[Any], errors.Failure]
INSPECTION: Final = "inspection"  # the late rule that a node in inspection is not changed


def _accept(*_args: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Noun:
    """One kind of record.

    ``plural``: key of a list in its document.  ``path``: the collection below /v1, ``policy``: the
    word in the names of its policies; by default the plural, and the name. ``link``: the path in
    links, where Ironic has another one.

    ``value``: dataclass of a row; its defaults replace values that a client leaves out or removes.
    ``since``: microversion of the collection.  ``listed``: fields of a short list; (): all.

    ``has_names``: an ident is a UUID or a name, else a UUID.  ``node_arguments``, with their
    microversions: a row belongs to a node, whose lock guards changes, and a body names that node by
    exactly one of these.  None: it belongs to no node.

    ``filters``: arguments of lists and their microversions; ``operations.records`` implements them.
    ``check_filters`` refuses combinations: ``exclusive`` are groups of which one may be given.

    ``required`` by POST; ``form``: the JSON schema of what is checked of a body as a whole, for the
    OpenAPI document.  ``kept``: PATCH cannot remove it, ``pinned``: PATCH cannot change it.
    ``rules``: validation beyond the type; a rule returns the value as it is stored.
    ``check_patch(row, patch, waived)`` is called before the lock. ``left_alone``: verbs that are
    refused during inspection.  ``late_rules``: rules with a microversion, waived for older clients.

    ``missing``: error of an unknown ident; ``taken``: of unique columns; ``parents``: of foreign
    keys; ``not_empty``: of the deletion of a record with children.

    ``links``: sub-collections that a document links to, and in how many lists Ironic wraps the
    links.  ``details_ignore_version``: Ironic's detailed lists show every field to any version.
    ``shown_when_asked``: defaults in the start notification of a creation. ``null_when_empty``:
    lists that notifications of a creation show as null, not as [].
    """

    name: str
    plural: str
    value: type
    table: str
    fields: FieldTable
    listed: tuple[str, ...]
    missing: Fault
    taken: Mapping[str, Fault]
    path: str = ""
    policy: str = ""
    link: str = ""
    since: int = 1
    has_names: bool = True
    node_arguments: Mapping[str, int] = field(default_factory=dict)
    filters: Mapping[str, int] = field(default_factory=dict)
    exclusive: tuple[tuple[str, ...], ...] = ()
    check_filters: Callable[[Mapping[str, Any]], None] = _accept
    required: tuple[str, ...] = ()
    form: Mapping[str, Any] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    rules: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    check_patch: Callable[[Any, Patch, Collection[str]], None] = _accept
    left_alone: frozenset[str] = frozenset()
    late_rules: Mapping[str, int] = field(default_factory=dict)
    parents: Mapping[str, Fault] = field(default_factory=dict)
    not_empty: Fault | None = None
    links: Mapping[str, int] = field(default_factory=dict)
    details_ignore_version: bool = False
    shown_when_asked: frozenset[str] = frozenset()
    null_when_empty: frozenset[str] = frozenset()

    of_node: bool = field(init=False)
    columns: tuple[str, ...] = field(init=False)
    objects: frozenset[str] = field(init=False)
    secrets: frozenset[str] = field(init=False)
    hidden: Mapping[str, str] = field(init=False)
    read_rules: Mapping[str, str] = field(init=False)
    patchable: frozenset[str] = field(init=False)
    checker: attributes.Checker = field(init=False)

    def __post_init__(self) -> None:
        derived = {
            "path": self.path or self.plural,
            "policy": self.policy or self.name,
            "link": self.link or self.path or self.plural,
            "of_node": bool(self.node_arguments),
            "columns": tuple(f.name for f in dataclasses.fields(self.value)),
            "objects": frozenset(
                f.name for f in self.fields.values() if f.kind in ("object", "list")
            ),
            "secrets": frozenset(f.name for f in self.fields.values() if f.secret),
            "hidden": {f.name: f.hidden_by for f in self.fields.values() if f.hidden_by},
            "read_rules": {f.name: f.read_rule for f in self.fields.values() if f.read_rule},
            "patchable": patchable(self.fields) | self.pinned,
            "checker": attributes.Checker(self.name, self.fields),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)


def pinned_change(noun: Noun, uuid: str, name: str, value: Any) -> errors.Failure:
    """Return the error for a patch that changes a pinned attribute."""
    return errors.InvalidParameterValue(
        reason=f"cannot change {name} of {noun.name} {uuid} to {value}: delete it and "
        "create it anew",
    )


def checked(noun: Noun, name: str, value: Any) -> Any:
    """Return an attribute's value as it is stored.  Raises Invalid, naming the attribute."""
    value = noun.checker.cleaned(name, value)
    rule = noun.rules.get(name)
    return value if rule is None or value is None else rule(value)
