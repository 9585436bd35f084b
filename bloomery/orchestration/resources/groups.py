"""Members of groups and chains: their names, definitions and template.

These are functions of plain documents, which a resource and a plan share::

    names = groups.names(3, skipped={"1"})  # ["0", "2", "3"]
    members = {name: groups.member(definition, name, "%index%") for name in names}
    groups.document(members)  # the template of the child stack
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from bloomery.orchestration.properties.schema import secret_names
from bloomery.orchestration.resources import instance_schema

VERSION: Final = "2015-04-30"  # of templates that Heat generates
SECRETS: Final = frozenset(
    {
        *((name,) for name in secret_names(instance_schema.PROPERTIES)),
        ("driver_info",),
        ("properties", "properties"), ("resource_properties", "properties"),
    }
)  # fmt: skip  # ends of paths to secrets of members in a group's properties

Members: TypeAlias = dict[str, Mapping[str, Any]]  # by name, in the order of their indices


def names(count: int, skip_list: Collection[str] = ()) -> list[str]:
    kept = (name for name in map(str, itertools.count()) if name not in skip_list)
    return list(itertools.islice(kept, count))


def in_order(name: str) -> tuple[bool, int, str]:
    """Return a sort key: indices as numbers, other names after them."""
    return (False, int(name), "") if name.isdecimal() else (True, 0, name)


def member(definition: Mapping[str, Any], name: str, index_var: str) -> dict[str, Any]:
    """Return a member without its null properties, so that required ones are missed, as in Heat."""
    body = {key: value for key, value in definition.items() if value is not None}
    if "properties" in body:
        properties = substitute(body["properties"], index_var, name)
        body["properties"] = {key: each for key, each in properties.items() if each is not None}
    return body


def substitute(value: Any, placeholder: str, name: str) -> Any:
    if isinstance(value, str):
        return value.replace(placeholder, name)
    if isinstance(value, Mapping):
        return {key: substitute(item, placeholder, name) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, placeholder, name) for item in value]
    return value


def document(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"heat_template_version": VERSION, "resources": dict(members)}


def members_of(document: Mapping[str, Any]) -> Members:
    return dict(document.get("resources") or {})


def resource_lists(policies: Iterable[Mapping[str, Any]] | None) -> list[Any]:
    return [item for policy in policies or () for item in policy.get("resource_list") or ()]


def skip_list(
    remembered: Iterable[str],
    named: Iterable[Any],
    references: Mapping[str, Any] | None,
    *,
    forget: bool,
) -> list[str]:
    """Return the names that are not used again; ``named``: names or reference IDs in policies.

    ``references``: reference IDs of the current members, by name; None before the create, which
    may skip any name.  An update ignores unknown names.  ``forget``: the mode ``update``, which
    drops the ``remembered`` names.
    """
    texts = [str(item) for item in named]
    before = list(remembered)
    if references is not None:
        names = {str(reference): name for name, reference in references.items()}
        names |= {name: name for name in (*before, *references)}
        texts = [names[text] for text in texts if text in names]
    return list(dict.fromkeys(texts if forget else [*before, *texts]))


def chain_document(
    types: Sequence[str], properties: Mapping[str, Any] | None, *, at_once: int
) -> dict[str, Any]:
    members: dict[str, Mapping[str, Any]] = {}
    for index, kind in enumerate(types):
        body: dict[str, Any] = {"type": kind}
        if properties:
            body["properties"] = properties
        if index >= at_once:
            body["depends_on"] = [str(index - at_once)]
        members[str(index)] = body
    return document(members)
