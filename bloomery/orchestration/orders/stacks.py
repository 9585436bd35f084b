"""Stacks: create, update, and the stored template, environment and files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import resources
from bloomery.db import stacks as db
from bloomery.model.stack_views import Json, StackArguments, StackIdentity
from bloomery.model.stacks import OrderKind, Stack, Template
from bloomery.orchestration import stack as definition
from bloomery.orchestration.engine.definitions import identity_of
from bloomery.orchestration.orders import (
    acceptance,
    adoption,
    checks,
    machine_orders,
    plan_basis,
    plan_checks,
    planning,
)
from bloomery.orchestration.orders import inputs as readings
from bloomery.orchestration.orders.acceptance import Change
from bloomery.orchestration.orders.inputs import Inputs
from bloomery.orchestration.queries import access, revisions
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template import environment, merging, versions, write
from bloomery.orchestration.template.dialect import Identity, Section

_NO_CHANGES: Final = StackArguments(existing=True)


# ---------------------------------------------------------------------------------------- create


def create_stack(ctx: StackContext, name: object, arguments: StackArguments) -> StackIdentity:
    """Accept a new stack, or with ``adopt_data`` the adoption of one."""
    data, runtime = arguments.adopt_data, ctx.runtime
    new = read_new(ctx, name, arguments)
    uuid, action = runtime.new_id(), Action.CREATE if data is None else Action.ADOPT
    timeout_mins = arguments.timeout_mins or default_timeout_mins(ctx, new.stack)
    row = Stack(
        uuid=uuid,
        name=new.name,
        project=ctx.project,
        user=ctx.request.user_name or ctx.request.user,
        root_uuid=uuid,
        template_uuid=runtime.new_id(),
        credentials_uuid=runtime.new_id(),
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        disable_rollback=arguments.disable_rollback is not False,
        timeout_mins=timeout_mins,
        open=True,
        tags=checks.tags(arguments.tags),
        created_at=runtime.utc(),
        **acceptance.deadline_columns(ctx, timeout_mins),
    )
    template = new.inputs.stored(row.template_uuid)
    kind = OrderKind.CREATE if data is None else OrderKind.ADOPT
    order = acceptance.order_of(ctx, row, kind, {} if data is None else {"data": data})
    acceptance.create(ctx, row, template, order, most_stacks(ctx))
    return StackIdentity.of(row)


@dataclasses.dataclass(frozen=True, slots=True)
class New:
    """A stack that passed all checks and is not stored."""

    name: str
    inputs: Inputs
    stack: definition.Stack


def read_new(ctx: StackContext, name: object, arguments: StackArguments) -> New:
    if arguments.adopt_data is not None:
        arguments = adoption.arguments_of(ctx, arguments)
    if arguments.template is not None:
        versions.template_class(arguments.template)
    inputs = readings.of(ctx, arguments)
    with ctx.services.db.read() as conn:
        is_valid = isinstance(name, str) and checks.NAME.fullmatch(name)
        if is_valid and db.is_taken(conn, ctx.project, str(name)):
            raise errors.StackExists(stack_name=str(name))
        acceptance.check_count(conn, ctx.project, most_stacks(ctx))
    name = checks.name(name)
    stack = inputs.stack(ctx, Identity(name=name, project_id=ctx.project))
    checks.definition(ctx, stack)
    return New(name, inputs, stack)


def most_stacks(ctx: StackContext) -> int:
    return -1 if access.is_admin(ctx) else ctx.services.conf.engine.max_stacks_per_tenant


def default_timeout_mins(ctx: StackContext, stack: definition.Stack) -> int | None:
    """Return the time-out of a stack without one; None: ``[engine]stack_action_timeout``."""
    minutes = stack.tree.timeout_mins
    return minutes if minutes * 60 > ctx.services.conf.engine.stack_action_timeout else None


# ---------------------------------------------------------------------------------------- update


def update_stack(ctx: StackContext, identity: StackIdentity, arguments: StackArguments) -> None:
    """Accept an update."""
    access.authorize(ctx, update_rule(arguments))
    basis = arguments.plan_basis  # None: the update has no plan that must still hold

    def attempt() -> None:
        row = access.living(ctx, identity)
        checks.may_update(ctx, row)
        if arguments.existing:
            checks.may_patch(ctx, row)
        stored = with_orders(StoredStack(ctx, row), arguments)
        inputs, new = read_update(stored, arguments)
        checks.definition(ctx, new)
        checks.immutable(stored.definition, new)
        plan_checks.check(
            stored, new, converges=converges(ctx, arguments),
            is_overridden=arguments.override_checks,
        )  # fmt: skip
        if basis is not None:
            plan_basis.check_nodes(ctx, row, basis)
            if basis.get(plan_basis.VALUES):
                with ctx.services.heavy_jobs.enter():
                    *_, reads = planning.plan(stored, new, converges=converges(ctx, arguments))
                plan_basis.check_values(row, basis, reads.basis()[plan_basis.VALUES])
        template = inputs.stored(ctx.runtime.new_id())
        keeps_tags = arguments.existing and arguments.tags is None
        flags: dict[str, Any] = {
            "disable_rollback": row.disable_rollback,
            "timeout_mins": row.timeout_mins,
        }
        if arguments.disable_rollback is not None:
            flags["disable_rollback"] = arguments.disable_rollback
        if arguments.timeout_mins is not None:
            flags["timeout_mins"] = arguments.timeout_mins
        flags["timeout_mins"] = flags["timeout_mins"] or default_timeout_mins(ctx, new)
        mark = machine_orders.marking(stored, list(stored.orders.values()))

        def check(conn: sa.Connection) -> None:
            if basis is not None:
                rows = resources.list_of_tree(conn, row.root_uuid, ctx.sealer)
                plan_basis.check(row, basis, plan_basis.read(conn, row, rows))
            mark(conn)

        change = Change(
            stack=dataclasses.replace(row, **flags),
            kind=OrderKind.UPDATE,
            payload={"converge": converges(ctx, arguments)}
            | (
                {"resources": [each.document() for each in stored.orders.values()]}
                if stored.orders
                else {}
            ),
            action=Action.UPDATE,
            columns={
                "template_uuid": template.uuid,
                "previous_template_uuid": row.template_uuid,
                "updated_at": ctx.runtime.utc(),
                **flags,
            },
            template=template,
            tags=row.tags if keeps_tags else checks.tags(arguments.tags),
            check=check,
        )
        acceptance.accept(ctx, change)

    acceptance.retried(attempt, identity.name)


def update_rule(arguments: StackArguments) -> str:
    """Return the policy of an update; a PATCH without changes has a policy of its own."""
    if not arguments.existing:
        return "stacks:update"
    changes = dataclasses.replace(arguments, converge=False, plan_basis=None, override_checks=False)
    return "stacks:update_no_change" if changes == _NO_CHANGES else "stacks:update_patch"


def with_orders(stored: StoredStack, arguments: StackArguments) -> StoredStack:
    """Return the stack as an update with orders for single resources finds it."""
    if not arguments.resource_orders:
        return stored
    orders = machine_orders.read(stored, arguments.resource_orders)
    return StoredStack(stored.ctx, stored.row, {each.resource: each for each in orders})


def converges(ctx: StackContext, arguments: StackArguments) -> bool:
    return arguments.converge or ctx.services.conf.engine.observe_on_update


def read_update(stored: StoredStack, arguments: StackArguments) -> tuple[Inputs, definition.Stack]:
    ctx, row = stored.ctx, stored.row
    if arguments.revision is not None:
        _, template = revisions.read(stored, arguments.revision)
        arguments = dataclasses.replace(
            arguments, template=template.template, template_text=template.text,
            environment=template.environment, files=template.files,
        )  # fmt: skip
        inputs = readings.of(ctx, arguments)
        secret = dataclasses.replace(inputs.template, has_secret=template.has_secret)
        return inputs._replace(template=secret), inputs.stack(
            ctx, identity_of(row.name, row.uuid, row.project)
        )
    is_patch = arguments.existing
    inputs = _over(ctx, stored.template, arguments) if is_patch else readings.of(ctx, arguments)
    if row.owner_uuid is not None:
        return inputs, stored.defined_by(inputs.template)
    return inputs, inputs.stack(ctx, identity_of(row.name, row.uuid, row.project))


def _over(ctx: StackContext, stored: Template, arguments: StackArguments) -> Inputs:
    files = {**stored.files, **readings.checked_files(ctx, arguments)}
    template, text = stored.template, stored.text
    if arguments.template is not None:
        template, text = arguments.template, arguments.template_text
    merged = readings.environment_of(ctx, arguments, template, files)
    cleared, parameters = arguments.clear_parameters, environment.PARAMETERS
    values = stored.environment.get(parameters, {})
    kept = {name: value for name, value in values.items() if name not in cleared}
    laid = merging.over({**stored.environment, parameters: kept}, merged)
    declared = versions.template_class(template)(template).section(Section.PARAMETERS)
    names = {*(declared if isinstance(declared, Mapping) else ()), *merged[parameters]}
    laid[parameters] = {name: laid[parameters][name] for name in laid[parameters] if name in names}
    return readings.join(ctx, template, laid, readings.kept_files(arguments, files), text)


# ------------------------------------------------------------------------------- what was given


def get_template(ctx: StackContext, identity: StackIdentity) -> Json:
    stored = StoredStack(ctx, access.stack(ctx, identity))
    template = stored.template
    if stored.row.owner_uuid is None or not template.has_secret:
        return dict(template.template)
    version_key = stored.definition.definition.template.features.version_key
    return stored.secrecy.serialized_template(template.template, version_key)


def get_template_text(ctx: StackContext, identity: StackIdentity) -> Json:
    """Return the template as its user sent it, or, where it came as a document, as YAML.

    ``is_as_sent``: with the comments and the order of the user.
    """
    stored = StoredStack(ctx, access.stack(ctx, identity)).template
    text = None if stored.has_secret else stored.text
    if text is not None:
        return {"template_text": text, "is_as_sent": True}
    document = get_template(ctx, identity)
    return {"template_text": write.text(document), "is_as_sent": False}


def get_environment(ctx: StackContext, identity: StackIdentity) -> Json:
    stored = StoredStack(ctx, access.stack(ctx, identity))
    public = stored.secrecy.public_parameters()
    return stored.definition.definition.environment.document(public)


def get_files(ctx: StackContext, identity: StackIdentity) -> dict[str, str]:
    return dict(StoredStack(ctx, access.stack(ctx, identity)).template.files)
