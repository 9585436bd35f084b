"""The child stacks of a stack, as composite kinds see them.

Children are rows of the same tree, written in its transactions.  The end of a child wakes the
resource of the parent stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine import definitions, events
from bloomery.orchestration.engine.stack_actions import StackActions
from bloomery.orchestration.engine.stack_values import RowFacade
from bloomery.orchestration.engine.stacks import EngineStack, TemplatePart
from bloomery.orchestration.resources import composite, groups
from bloomery.orchestration.resources.base import ending
from bloomery.orchestration.resources.children import Blueprint
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack, validate, variants
from bloomery.orchestration.stack.nesting import Tree
from bloomery.orchestration.template import versions
from bloomery.orchestration.template.definition import Definition


class EngineChildren:
    """The children of one stack (``children.Children``)."""

    def __init__(self, parent: EngineStack, actions: StackActions) -> None:
        self._parent = parent
        self._actions = actions

    @property
    def converges(self) -> bool:
        return self._parent.converges

    def create(self, stack_id: str, name: str, blueprint: Blueprint) -> None:
        parent = self._parent
        if stack_id in parent.stacks:
            return
        stack, template = self._defined(stack_id, name, blueprint)
        row = self._row(stack_id, name, blueprint, template.uuid)
        self._keep(template, stack)
        child = EngineStack(row, stack, parent.schedule, parent.stacks, self._children_of)
        if blueprint.adopt is not None:
            child.begin(Action.ADOPT, is_first=True)
            self._actions.adopt(child, blueprint.adopt)
        else:
            child.begin(Action.CREATE, is_first=True)
            self._actions.create(child)

    def _children_of(self, child: EngineStack) -> EngineChildren:
        return EngineChildren(child, self._actions)

    def _row(
        self, stack_id: str, name: str, blueprint: Blueprint, template_uuid: str
    ) -> model.Stack:
        parent_row = self._parent.row
        return replace(
            parent_row,
            uuid=stack_id,
            name=name,
            owner_uuid=parent_row.uuid,
            owner_resource=blueprint.owner,
            depth=parent_row.depth + 1,
            template_uuid=template_uuid,
            previous_template_uuid=None,
            disable_rollback=True,
            timeout_mins=_minutes(blueprint.timeout_s) or parent_row.timeout_mins,
            traversal=1,
            graph=None,
            open=False,
            tags=(),
            created_at=self._parent.runtime.utc(),
            updated_at=None,
            deleted_at=None,
        )

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        child = self._parent.stacks[stack_id]
        before = child.row.template_uuid
        current = self._actions.library.templates[before]
        part = self._part(child, current, blueprint)
        if part is None:
            stack, template = self._defined(stack_id, child.name, blueprint)
        else:
            stack, template = self._amended(child, part, current, blueprint)
        if template != replace(current, uuid=template.uuid):
            self._keep(template, stack)
            child.change(template_uuid=template.uuid)
        child.timeout_s = stack.timeout_s
        child.change(previous_template_uuid=before, updated_at=self._parent.runtime.utc())
        self._forget(child)
        child.replaced_template_uuid = None if part is None else before
        child.begin(Action.UPDATE)
        self._actions.update(child, part, converge=self._parent.converges)

    def _part(
        self, child: EngineStack, current: model.Template, blueprint: Blueprint
    ) -> TemplatePart | None:
        """Return the resources that an update concerns; None: every resource of the child.

        An update concerns all of them if the environment or the files have changed, if resources
        require each other, or if the parent's update compares resources with their real state.
        """
        if blueprint.changed is None or self._parent.converges or _are_joined(child):
            return None
        members = groups.members_of(blueprint.document)
        names = blueprint.changed | (child.rows.keys() ^ members.keys()) | child.leftovers.keys()
        own = {name: members[name] for name in members.keys() & names}
        try:
            stack, template = self._defined(
                child.id,
                child.name,
                replace(blueprint, document=groups.document(own)),
                beside=len(members) - len(own),
            )
        except errors.InvalidTemplateReference:  # to a resource outside of the part
            return None
        if (template.environment, template.files) != (current.environment, current.files):
            return None
        self._keep(template, stack)
        return TemplatePart(stack, template.uuid, names)

    def _amended(
        self, child: EngineStack, part: TemplatePart, current: model.Template, blueprint: Blueprint
    ) -> tuple[Stack, model.Template]:
        """Return the child's new stack and template; only ``part`` is parsed again."""
        uuid, document = self._parent.runtime.new_id(), blueprint.document
        template = self._actions.library.templates[part.template_uuid]
        has_secret = template.has_secret or current.has_secret
        template = replace(template, uuid=uuid, template=document, has_secret=has_secret)
        parsed = part.stack.tree.template_of(document)
        return variants.amended(child.definition, parsed, part.stack), template

    def _forget(self, child: EngineStack) -> None:
        """Drop the template that the last partial update replaced, if no resource uses it."""
        uuid, row = child.replaced_template_uuid, child.row
        in_use = {row.template_uuid, row.previous_template_uuid}
        in_use |= {each.template_uuid for each in child.list_rows()}
        if uuid is not None and uuid not in in_use:
            self._parent.changes.drop_template(uuid)
            self._actions.library.forget(uuid)

    def _keep(self, template: model.Template, stack: Stack) -> None:
        self._parent.changes.add_template(template)
        self._actions.library.add(template, stack)

    def delete(self, stack_id: str) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is not None:
            self.cancel(stack_id)
            child.begin(Action.DELETE)
            self._actions.delete(child)

    def cancel(self, stack_id: str) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is not None and child.status is Status.IN_PROGRESS:
            self._actions.stop(child, events.CANCELLED_BY_USER)
            self.preempt(stack_id)

    def preempt(self, stack_id: str) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is not None and child.status is Status.IN_PROGRESS:
            child.change(traversal=child.traversal + 1)
            self._actions.cancel(child)

    def suspend(self, stack_id: str) -> None:
        self._perform(stack_id, Action.SUSPEND)

    def resume(self, stack_id: str) -> None:
        self._perform(stack_id, Action.RESUME)

    def check(self, stack_id: str) -> None:
        self._perform(stack_id, Action.CHECK)

    def snapshot(self, stack_id: str) -> None:
        self._perform(stack_id, Action.SNAPSHOT)

    def _perform(self, stack_id: str, action: Action) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is None:
            raise errors.NotFound(reason=f"cannot {action.lower()} stack {stack_id}: it is gone")
        done = child.action is action and child.status is Status.COMPLETE
        if not (done and action in {Action.SUSPEND, Action.RESUME}):
            child.begin(action)
            self._actions.stack_task(child)

    def find(self, stack_id: str) -> EngineStack | None:
        return self._parent.stacks.get(stack_id)

    def _defined(
        self, stack_id: str, name: str, blueprint: Blueprint, *, beside: int = 0
    ) -> tuple[Stack, model.Template]:
        """Return the validated stack of a blueprint, and its stored template.

        ``beside``: how many resources the stack has that are not in the blueprint.
        """
        parent = self._parent
        definition = self._definition(stack_id, name, blueprint)
        limits, files = definition.limits, definition.template.files
        others = (
            len(each.current_rows)
            for each in parent.stacks.values()
            if each.id != stack_id and self._is_counted(each)
        )
        tree = Tree(limits, files, resources=sum(others) + beside)
        stack = Stack(
            definition,
            tree=tree,
            depth=tree.deepen(parent.row.depth),
            timeout_s=blueprint.timeout_s or parent.timeout_s,
            is_counted=self._counts_children(parent, blueprint.owner),
        )
        validate(stack)
        self._authorize(stack)
        template = model.Template(
            uuid=parent.runtime.new_id(),
            template=dict(blueprint.document),
            environment=definition.environment.shown() | {"parameters": dict(blueprint.parameters)},
            files=files,
            has_secret=parent.hides or self._is_secret(blueprint),
        )
        return stack, template

    def _is_secret(self, blueprint: Blueprint) -> bool:
        """Tell whether the template of a group contains a secret property of its members."""
        ends = self._parent.rows[blueprint.owner].kind.secret_paths
        return any(ending(ends, blueprint.document))

    def _definition(self, stack_id: str, name: str, blueprint: Blueprint) -> Definition:
        parent = self._parent
        parent_definition = parent.definition.definition
        document = dict(blueprint.document)
        owner = parent.definition.definition.resolved_type(blueprint.owner)
        files, owner_row = self._files(stack_id, document), parent.rows[blueprint.owner]
        return parent_definition.child(
            versions.template_class(document)(document, files, limits=parent_definition.limits),
            parent_definition.environment.child(blueprint.owner, resolved=owner),
            identity=definitions.identity_of(name, stack_id, parent_definition.identity.project_id),
            facade=RowFacade(lambda: owner_row),
            user_parameters=blueprint.parameters,
        )

    def _files(self, stack_id: str, document: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the parent's files, with the child's old ones if a member's type is among them."""
        files = self._parent.definition.definition.template.files
        child = self._parent.stacks.get(stack_id)
        if child is None:
            return files
        before = self._actions.library.templates[child.row.template_uuid].files
        types = {body.get("type") for body in groups.members_of(document).values()}
        return files if types.isdisjoint(before.keys() - files.keys()) else {**before, **files}

    def _is_counted(self, stack: EngineStack) -> bool:
        """Tell whether the resources of a stack count for the limit of the tree."""
        parent = self._parent.stacks.get(stack.row.owner_uuid or "")
        return parent is None or self._counts_children(parent, stack.row.owner_resource or "")

    def _counts_children(self, stack: EngineStack, name: str) -> bool:
        row = stack.rows.get(name)
        kind = composite.Composite if row is None else row.kind
        return self._is_counted(stack) and getattr(kind, "counts_children", True)

    def _authorize(self, stack: Stack) -> None:
        """Raise Forbidden unless the tree's last caller may use the types of a child."""
        authorize = self._parent.runtime.authorize
        if authorize is not None:
            authorize(self._parent.row, {each.type for each in stack.definitions.values()})


def _are_joined(stack: EngineStack) -> bool:
    """Tell whether a resource of a stack requires another one."""
    return any(row.requires for row in stack.list_rows())


def _minutes(timeout_s: float | None) -> int | None:
    return None if timeout_s is None else max(1, round(timeout_s / 60))
