"""The table of a stack's resources: the current row of each name, and rows that were replaced."""

from __future__ import annotations

from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stacks import EngineStack, TemplatePart
from bloomery.orchestration.plan.template_side import Nothing
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.stack import Stack


def target(stack: EngineStack) -> tuple[Stack, str]:
    """Return the stack, and its template's UUID, that new and updated resources belong to."""
    if stack.part is not None:
        return stack.part.stack, stack.part.template_uuid
    return stack.live_template, stack.row.template_uuid


def turn_to(
    stack: EngineStack, template: Stack | Nothing, part: TemplatePart | None = None
) -> None:
    """Switch to another template, and add the missing rows of its resources."""
    stack.set_template(template, part)
    for name in template.definitions:
        if name not in stack.rows:
            add(stack, new(stack, name))
    stack.current_rows = {name: stack.rows[name] for name in template.definitions}


def keep_template(stack: EngineStack) -> None:
    """Keep the template whose deletion failed, so that the loaded stack matches its rows."""
    stack.template, stack.part = stack.first, None
    names = stack.first.definitions
    stack.current_rows = {name: stack.rows[name] for name in names if name in stack.rows}


def new(stack: EngineStack, name: str, replaces_uuid: str | None = None) -> EngineResource:
    definitions, template_uuid = target(stack)
    runtime, definition = stack.runtime, definitions.definitions[name]
    row = EngineResource(
        uuid=runtime.new_id(),
        name=name,
        type=definition.type,
        context=stack.context(),
        definitions=definitions,
        template_uuid=template_uuid,
        stack_uuid=stack.id,
        root_uuid=stack.row.root_uuid,
        created_at=runtime.utc(),
        replaces_uuid=replaces_uuid,
        requires=required(stack, name),
        has_secret=stack.hides,
    )
    stack.changes.change_row(row)
    return row


def required(stack: EngineStack, name: str) -> tuple[str, ...]:
    if name not in stack.template.definitions:
        return ()
    return tuple(dict.fromkeys(stack.template.required(name)))


def add(stack: EngineStack, row: EngineResource) -> None:
    """Make a row the current one of its name."""
    row.is_current = True
    stack.rows[row.name] = row
    if row.name in stack.template.definitions:
        stack.current_rows[row.name] = row


def leave(stack: EngineStack, row: EngineResource) -> None:
    """Move a row that is no longer current to the leftovers of its name."""
    row.is_current = False
    stack.leftovers.setdefault(row.name, []).append(row)
    stack.changes.change_row(row)


def list_all(stack: EngineStack) -> list[EngineResource]:
    return [*stack.rows.values(), *(row for rows in stack.leftovers.values() for row in rows)]


def find(stack: EngineStack, uuid: str | None, name: str) -> EngineResource | None:
    """Return the row ``uuid`` of a name, if it still exists."""
    rows = [stack.rows.get(name), *stack.leftovers.get(name, ())]
    return next((row for row in rows if row is not None and row.uuid == uuid), None)


def replace(stack: EngineStack, row: EngineResource) -> EngineResource:
    """Make a new row the current one; the old one is left over."""
    leave(stack, row)
    successor = new(stack, row.name, replaces_uuid=row.uuid)
    add(stack, successor)
    return successor


def replace_deleted(stack: EngineStack, row: EngineResource) -> EngineResource:
    """Make a new row the current one, after the old one was deleted.

    ``returns``: a rollback replaces a row that the failed template made.
    """
    failed = stack.row.previous_template_uuid if stack.action is Action.ROLLBACK else None
    data = row.resource().data_for_replacement(returns=row.template_uuid == failed)
    drop(stack, row)
    successor = new(stack, row.name)
    successor.data.update(data)
    add(stack, successor)
    return successor


def take_back(stack: EngineStack, row: EngineResource) -> None:
    """Make a left-over row the current one again."""
    stack.leftovers[row.name].remove(row)
    if row.name in stack.rows:
        leave(stack, stack.rows[row.name])
    add(stack, row)
    stack.changes.change_row(row)


def drop(stack: EngineStack, row: EngineResource) -> None:
    """Remove the row of a resource that is gone."""
    kept = stack.leftovers.get(row.name, [])
    if row in kept:
        kept.remove(row)
    if not kept:
        stack.leftovers.pop(row.name, None)
    for table in (stack.rows, stack.current_rows):
        if table.get(row.name) is row:
            del table[row.name]
    stack.schedule.forget(row)
    stack.changes.remove_row(row)
