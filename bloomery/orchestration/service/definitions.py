"""Definitions of stored stacks and their parent stacks; each part is parsed on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import raw_templates, stacks
from bloomery.model import stacks as model
from bloomery.orchestration import stack as definition
from bloomery.orchestration.engine import definitions
from bloomery.orchestration.service.acceptance import sealer_of
from bloomery.orchestration.service.access import StackContext
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template.dialect import Key, Section, Template
from bloomery.orchestration.template.functions import base as functions

_MINUTE_S: Final = 60


def template_of(ctx: StackContext, row: model.Stack) -> model.Template:
    with ctx.services.db.read() as conn:
        return raw_templates.get(conn, row.template_uuid, sealer_of(ctx))


def of(
    ctx: StackContext, row: model.Stack, template: model.Template | None = None
) -> definition.Stack:
    with ctx.services.db.read() as conn:
        return read(ctx, conn, row, template)


def read(
    ctx: StackContext,
    conn: sa.Connection,
    row: model.Stack,
    template: model.Template | None = None,
) -> definition.Stack:
    owner = None if row.owner_uuid is None else stacks.find(conn, row.owner_uuid)
    parent = None if owner is None else read(ctx, conn, owner)
    if template is None:
        template = raw_templates.get(conn, row.template_uuid, sealer_of(ctx))
    return definitions.stack_of(
        template,
        name=row.name,
        id=row.uuid,
        project=row.project,
        runtime=ctx.runtime,
        timeout_s=timeout_s(ctx, row.timeout_mins),
        depth=row.depth,
        parent=parent,
        facade=None if parent is None else _OwnerFacade(parent, str(row.owner_resource)),
    )


def secrecy_of(
    ctx: StackContext, row: model.Stack, stack: definition.Stack | None = None
) -> Secrecy:
    """Return the secrets of a stored stack; ``stack``: its definition, if already read."""
    parent = None
    if row.owner_uuid is not None:
        with ctx.services.db.read() as conn:
            owner = stacks.find(conn, row.owner_uuid)
        parent = None if owner is None else (secrecy_of(ctx, owner), str(row.owner_resource))
    return Secrecy(stack or of(ctx, row), parent=parent)


def timeout_s(ctx: StackContext, timeout_mins: int | None) -> float:
    if timeout_mins:
        return timeout_mins * _MINUTE_S
    return ctx.services.conf.engine.stack_action_timeout


def description_of(template: Template, name: str) -> str:
    body = template.section(Section.RESOURCES)
    body = body.get(name) if isinstance(body, Mapping) else None
    word = template.features.resource_keys.get(Key.DESCRIPTION)
    text = body.get(word) if isinstance(body, Mapping) and word else None
    return text if isinstance(text, str) else ""


class _OwnerFacade:
    """The parent resource of a nested stack, as the parent's template defines it (a ``Facade``)."""

    __slots__ = ("_name", "_parent")

    def __init__(self, parent: definition.Stack, name: str) -> None:
        self._parent = parent
        self._name = name

    def metadata(self) -> Any:
        return self._resolved("metadata")

    def update_policy(self) -> Any:
        return self._resolved("update_policy")

    def deletion_policy(self) -> str:
        resource = self._parent.definitions.get(self._name)
        return "Delete" if resource is None else str(resource.deletion_policy)

    def _resolved(self, part: str) -> Any:
        resource = self._parent.definitions.get(self._name)
        if resource is None:
            return {}
        try:
            return functions.resolve(getattr(resource, part), self._parent.view)
        except errors.Failure:
            return {}
