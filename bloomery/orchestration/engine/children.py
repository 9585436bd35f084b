"""The child stacks of a stack, as composite kinds see them.

Children are rows of the same tree, written in its transactions.  The end of a child wakes the
resource of the parent stack.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.orchestration.engine import definitions
from bloomery.orchestration.engine.stack_actions import StackActions
from bloomery.orchestration.engine.stack_values import RowFacade
from bloomery.orchestration.engine.stacks import EngineStack, TemplatePart
from bloomery.orchestration.resources import composite, groups, states
from bloomery.orchestration.resources.base import ending
from bloomery.orchestration.resources.children import Blueprint
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.stack.nesting import Tree
from bloomery.orchestration.template import versions


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
        minutes, owner = parent.row.timeout_mins, parent.row
        if blueprint.timeout_s is not None:
            minutes = max(1, round(blueprint.timeout_s / 60))
        row = replace(
            owner,
            uuid=stack_id,
            name=name,
            owner_uuid=owner.uuid,
            owner_resource=blueprint.owner,
            depth=owner.depth + 1,
            template_uuid=template.uuid,
            previous_template_uuid=None,
            disable_rollback=True,
            timeout_mins=minutes,
            traversal=1,
            graph=None,
            open=False,
            tags=(),
            created_at=parent.runtime.utc(),
            updated_at=None,
            deleted_at=None,
        )
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

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        """Update a child; if only a part of its resources differs, only the part is parsed again.

        The template that the last partial update replaced is dropped, if no resource uses it.
        """
        parent, library = self._parent, self._actions.library
        child = parent.stacks[stack_id]
        before = child.row.template_uuid
        current = library.templates[before]
        part = self._part(child, current, blueprint)
        if part is None:
            stack, template = self._defined(stack_id, child.name, blueprint)
        else:
            template = library.templates[part.template_uuid]
            template = replace(
                template,
                uuid=parent.runtime.new_id(),
                template=blueprint.document,
                has_secret=template.has_secret or current.has_secret,
            )
            parsed = part.stack.tree.template_of(blueprint.document)
            stack = child.definition.amended(parsed, part.stack)
        if template != replace(current, uuid=template.uuid):
            self._keep(template, stack)
            child.change(template_uuid=template.uuid)
        child.timeout_s = stack.timeout_s
        child.change(previous_template_uuid=before, updated_at=parent.runtime.utc())
        replaced = child.replaced_template_uuid
        in_use = {child.row.template_uuid, before}
        in_use |= {row.template_uuid for row in child.list_rows()}
        if replaced is not None and replaced not in in_use:
            parent.changes.drop_template(replaced)
            library.forget(replaced)
        child.replaced_template_uuid = None if part is None else before
        child.begin(Action.UPDATE)
        self._actions.update(child, part, converge=parent.converges)

    def _part(
        self, child: EngineStack, current: model.Template, blueprint: Blueprint
    ) -> TemplatePart | None:
        """Return the resources that an update concerns, or None for every resource of the child.

        An update concerns all of them if the environment or the files have changed, if resources
        require each other, or if the parent's update compares resources with their real state.
        """
        if blueprint.changed is None or self._parent.converges:
            return None
        if any(row.requires for row in child.list_rows()):
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
            self._actions.stop(child, states.CANCELLED_BY_USER)
            self.preempt(stack_id)

    def preempt(self, stack_id: str) -> None:
        child = self._parent.stacks.get(stack_id)
        if child is not None and child.status is Status.IN_PROGRESS:
            child.change(traversal=child.row.traversal + 1)
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

    def put_off(self, seconds: float) -> None:
        stack: EngineStack | None = self._parent
        while stack is not None:
            if stack.row.deadline_at is not None:
                later = stack.row.deadline_at + timedelta(seconds=seconds)
                stack.change(deadline_at=later)
            stack = stack.stacks.get(stack.row.owner_uuid or "")

    def find(self, stack_id: str) -> EngineStack | None:
        return self._parent.stacks.get(stack_id)

    def _defined(
        self, stack_id: str, name: str, blueprint: Blueprint, *, beside: int = 0
    ) -> tuple[Stack, model.Template]:
        """Return the validated stack of a blueprint, and its stored template.

        ``beside``: how many resources the stack has that are not in the blueprint.  Raises
        Forbidden unless the tree's last caller may use the types of the child.
        """
        parent, runtime = self._parent, self._parent.runtime
        parent_definition = parent.definition.definition
        limits, document = parent_definition.limits, dict(blueprint.document)
        files = parent_definition.template.files
        child = parent.stacks.get(stack_id)
        if child is not None:  # the type of a member may be in the child's files
            before = self._actions.library.templates[child.row.template_uuid].files
            types = {body.get("type") for body in groups.members_of(document).values()}
            if not types.isdisjoint(before.keys() - files.keys()):
                files = {**before, **files}
        owner_row = parent.rows[blueprint.owner]
        owner = parent_definition.resolved_type(blueprint.owner)
        definition = parent_definition.child(
            versions.template_class(document)(document, files, limits=limits),
            parent_definition.environment.child(blueprint.owner, resolved=owner),
            identity=definitions.identity_of(name, stack_id, parent_definition.identity.project_id),
            facade=RowFacade(lambda: owner_row),
            user_parameters=blueprint.parameters,
        )
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
        if runtime.authorize is not None:  # the tree's last caller, for the types of the child
            runtime.authorize(parent.row, {each.type for each in stack.definitions.values()})
        template = model.Template(
            uuid=runtime.new_id(),
            template=dict(blueprint.document),
            environment=definition.environment.document()
            | {"parameters": dict(blueprint.parameters)},
            files=definition.template.files,
            # The template of a group may contain a secret property of its members.
            has_secret=parent.hides or any(ending(owner_row.kind.secret_paths, blueprint.document)),
        )
        return stack, template

    def _is_counted(self, stack: EngineStack) -> bool:
        """Tell whether the resources of a stack count for the limit of the tree."""
        parent = self._parent.stacks.get(stack.row.owner_uuid or "")
        return parent is None or self._counts_children(parent, stack.row.owner_resource or "")

    def _counts_children(self, stack: EngineStack, name: str) -> bool:
        row = stack.rows.get(name)
        kind = composite.Composite if row is None else row.kind
        return self._is_counted(stack) and getattr(kind, "counts_children", True)
