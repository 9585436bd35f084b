"""Adopt data: abandon and export return them, and adopt takes them.

The data are a document: the template with environment and files, and each resource with its
physical resource ID.  It has the values of all parameters, also of hidden ones, because adoption
needs them.  So only callers who may change the stack get it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.db import resources, stacks, trees
from bloomery.model.stack_views import Json, StackArguments, StackIdentity
from bloomery.model.stacks import Stack, StoredResource, Template
from bloomery.orchestration.engine import stack_values
from bloomery.orchestration.orders import checks
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.template import environment

_NO_ENVIRONMENT: Final[Json] = {
    environment.PARAMETERS: {},
    environment.DEFAULTS: {},
    environment.REGISTRY: {"resources": {}},
    environment.SINKS: [],
    environment.ENCRYPTED: [],
}


# ----------------------------------------------------------------------------------------- adopt


def arguments_of(ctx: StackContext, arguments: StackArguments) -> StackArguments:
    """Return ``arguments`` with the template, environment and files of the adopt data.

    Files of the request override files of the data.  Raises NotSupported if adoption is off,
    TemplateUnreadable, EntityNotFound for an ID of another project's stack or resource.
    """
    if not ctx.services.conf.engine.enable_stack_adopt:
        raise errors.NotSupported(
            feature="Stack Adopt (the operator turns it on by [engine]enable_stack_adopt)"
        )
    data = arguments.adopt_data or {}
    template = data.get("template")
    if not isinstance(template, Mapping):
        raise errors.TemplateUnreadable(reason="Invalid adopt data: it has no template")
    merged = environment.checked(dict(_map(data, "environment")))
    checks.own(ctx, dict(_ids(_map(data, "resources"))))
    return dataclasses.replace(
        arguments,
        template=template,
        environment=merged,
        environment_files=(),
        files={**_map(data, "files"), **arguments.files},
    )


def _map(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise errors.TemplateUnreadable(reason=f"Invalid adopt data: {key} must be a map")
    return value


def _ids(entries: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, entry in entries.items():
        if not isinstance(entry, Mapping):
            raise errors.TemplateUnreadable(
                reason=f"Invalid adopt data: resource {str(name)[:100]} must be a map"
            )
        for key in ("resource_id", "id"):
            if isinstance(entry.get(key), str):
                yield entry[key], str(name)
        yield from _ids(_map(entry, "resources"))


# ------------------------------------------------------------------------------- abandon, export


def export_stack(ctx: StackContext, identity: StackIdentity) -> Json:
    check_abandon(ctx)
    return data_of(ctx, access.living(ctx, identity))


def check_abandon(ctx: StackContext) -> None:
    if not ctx.services.conf.engine.enable_stack_abandon:
        raise errors.NotSupported(
            feature="Stack Abandon (the operator turns it on by [engine]enable_stack_abandon)"
        )


def data_of(ctx: StackContext, row: Stack) -> Json:
    sealer = ctx.sealer
    with ctx.services.db.read() as conn:
        rows = stacks.list_of_tree(conn, row.root_uuid)
        templates = {
            each.uuid: trees.get_template(conn, each.template_uuid, sealer) for each in rows
        }
        rows_of_tree = resources.list_of_tree(conn, row.root_uuid, sealer)
    return _Tree(rows, templates, rows_of_tree).data(row)


class _Tree:
    """The rows of a tree, from which the adopt data of each stack are made."""

    def __init__(
        self,
        rows: Sequence[Stack],
        templates: Mapping[str, Template],
        tree_resources: Sequence[StoredResource],
    ) -> None:
        self._templates = templates
        self._resources: dict[str, list[StoredResource]] = {}
        for each in tree_resources:
            self._resources.setdefault(each.stack_uuid, []).append(each)
        self._children = {(each.owner_uuid, each.uuid): each for each in rows if each.owner_uuid}

    def data(self, row: Stack) -> Json:
        template = self._templates[row.uuid]
        environment = _NO_ENVIRONMENT | dict(template.environment)
        entries = {each.name: self._entry(each) for each in self._resources.get(row.uuid, ())}
        template = dataclasses.replace(template, environment=environment)
        return stack_values.stack_adopt_data(row, template, entries)

    def _entry(self, resource: StoredResource) -> Json:
        child = self._children.get((resource.stack_uuid, str(resource.physical_id)))
        return stack_values.resource_adopt_data(resource, {} if child is None else self.data(child))
