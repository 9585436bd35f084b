"""Template resources, groups and chains: resources whose work a child stack does.

A kind returns the template of its child (``child_document``) and its parameters.  The handlers here
create, update, follow and delete the child.  ``resource.<name>`` gives attributes of members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties.presence import Pending
from bloomery.orchestration.properties.schema import Attribute, OnChange, Type
from bloomery.orchestration.resources import base, groups, states
from bloomery.orchestration.resources.children import Blueprint, Child, Children
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.functions import references
from bloomery.orchestration.template.view import ResourceView, Walked
from bloomery.outcome import DONE, Outcome

MEMBER: Final = "resource."
REFS: Final = "refs"
ATTRIBUTES: Final = "attributes"
PREEMPTED: Final = frozenset({Action.CREATE, Action.UPDATE})
MAKING: Final = frozenset({Action.CREATE, Action.ADOPT})


class Composite(base.Resource):
    """A resource with a child stack, whose ID is the physical resource ID."""

    on_change: ClassVar[OnChange | None] = OnChange.MEMBERS
    always_updated: ClassVar[bool] = True
    preemptible: ClassVar[bool] = True
    counts_children: ClassVar[bool] = True  # resources of the child count for the limit of the tree

    def child_document(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def child_parameters(self) -> Mapping[str, Any]:
        return {}

    def is_known(self, pending: Pending) -> bool:
        """Tell whether the validation of the parent knows the values of the child."""
        return False

    def handle_create(self) -> Any:
        self.begin_child(self.blueprint(self.child_document()))
        return None

    def check_create_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.CREATE)

    def handle_create_cancel(self, token: Any) -> None:
        self.cancel_child()

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        return self.change_child(self.blueprint(self.child_document()))

    def check_update_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action(token))

    def handle_update_cancel(self, token: Any) -> None:
        self.cancel_child()

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        """Tell whether a property changes: then the running action ends and members update."""
        return bool(names)

    def handle_preempt(self) -> None:
        """End the traversal of the child; the update that follows decides about its members."""
        if self.record.physical_id is not None and self.record.action in PREEMPTED:
            self.children().preempt(self.record.physical_id)

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """Return False: the update of the child decides which members are replaced."""
        return False

    def handle_delete(self) -> Any:
        if self.record.physical_id is not None:
            self.children().delete(self.record.physical_id)

    def check_delete_complete(self, token: Any) -> Outcome:
        return DONE if self.child() is None else self.follow_child(Action.DELETE)

    def handle_suspend(self) -> Any:
        self.children().suspend(self.child_id())

    def check_suspend_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.SUSPEND)

    def handle_resume(self) -> Any:
        self.children().resume(self.child_id())

    def check_resume_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.RESUME)

    def handle_check(self) -> Any:
        self.children().check(self.child_id())

    def check_check_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.CHECK)

    def handle_snapshot(self) -> Any:
        self.children().snapshot(self.child_id())

    def check_snapshot_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.SNAPSHOT)

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        self.record.data = dict(data.get("resource_data") or {})
        blueprint = self.blueprint(self.child_document())
        self.begin_child(dataclasses.replace(blueprint, adopt=data))

    def check_adopt_complete(self, token: Any) -> Outcome:
        return self.follow_child(Action.ADOPT)

    def get_live_resource_data(self) -> Any:
        """Return None.  Raises EntityNotFound if the child is gone: users can delete it alone."""
        if self.child() is None:
            raise errors.EntityNotFound(entity="Resource", name=self.record.name)
        return None

    # --------------------------------------------------------------------------------- the child

    def child_id(self) -> str:
        """Return the ID of the child.  Raises ChildFailed if it is gone."""
        child = self.child()
        if child is None:
            raise states.ChildFailed("its stack is gone")
        return child.id

    def children(self) -> Children:
        if self.context.children is None:
            raise errors.NotSupported(feature=f"A stack below {self.record.name}")
        return self.context.children

    def child(self) -> Child | None:
        if self.record.physical_id is None or self.context.children is None:
            return None
        return self.context.children.find(self.record.physical_id)

    def blueprint(
        self, document: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Blueprint:
        return Blueprint(
            owner=self.record.name,
            document=document,
            parameters=self.child_parameters(),
            timeout_s=timeout_s,
        )

    def begin_child(self, blueprint: Blueprint) -> None:
        """Create a child; the IDs of the resource and of the previous child give its ID."""
        stack_id = self.derived_id(self.record.physical_id or "")
        self.children().create(stack_id, self.physical_resource_name(), blueprint)
        self.resource_id_set(stack_id)

    def change_child(self, blueprint: Blueprint) -> Action:
        if self.child() is None:
            self.begin_child(blueprint)
            return Action.CREATE
        self.children().update(str(self.record.physical_id), blueprint)
        return Action.UPDATE

    def cancel_child(self) -> None:
        if self.record.physical_id is not None:
            self.children().cancel(self.record.physical_id)

    def follow_child(self, action: Action) -> Outcome:
        """Wait until the child has ended ``action``.  Raises ChildFailed with the child's reason.

        A user may update the child directly while this resource creates or updates it.  Then the
        end of the user's update counts.
        """
        child = self.child()
        if child is None:
            raise states.ChildFailed("its stack is gone")
        superseded = action in MAKING and child.action is Action.UPDATE
        if child.status is Status.IN_PROGRESS or not (child.action is action or superseded):
            return base.wait_for(child.id)
        if child.status is Status.FAILED:
            raise states.ChildFailed(child.reason)
        return DONE

    def get_reference_id(self) -> Any:
        child = self.child()
        return self.record.name if child is None else child.arn

    def members(self) -> Mapping[str, ResourceView]:
        child = self.child()
        return {} if child is None else child.resources()

    @classmethod
    def offers_attribute(cls, name: str) -> bool:
        return name.startswith(MEMBER) or super().offers_attribute(name)

    def member_attribute(self, name: str, path: Sequence[Any]) -> Walked:
        """Return ``resource.<member>`` (its reference ID) or ``resource.<member>.<attribute>``."""
        steps: list[Any] = [*name.removeprefix(MEMBER).split(".", 1), *path]
        member, rest = steps[0], steps[1:]
        members = self.members()
        if member not in members:
            raise errors.NotFound(
                reason=f"cannot find member {member!r} of {self.record.name}; "
                f"it has {', '.join(members) or 'none'}"
            )
        if not rest:
            return Walked(members[member].reference_id())
        return Walked(attribute_of(members[member], str(rest[0]), rest[1:]))


def attribute_of(member: ResourceView, attribute: str, path: Sequence[Any]) -> Any:
    if not member.has_attribute(attribute):
        raise unknown(attribute)
    value = member.attribute(attribute, path)
    return value.value if isinstance(value, Walked) else references.select(value, path)


def unknown(attribute: str) -> errors.InvalidTemplateAttribute:
    reason = f"The Referenced Attribute ({attribute}) is incorrect: nothing below has it"
    return errors.InvalidTemplateAttribute(reason=reason)


def value_at(value: Any, path: Sequence[Any]) -> Walked:
    return Walked(references.select(value, path))


# ------------------------------------------------------------------------- groups and chains


class Membered(Composite):
    """A group or chain: the resources of its child are its members.

    An attribute that is not in the schema returns a list of the members' values.
    """

    dynamic_attributes: ClassVar[bool] = True
    secret_paths: ClassVar[frozenset[tuple[str, ...]]] = groups.SECRETS
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        REFS: Attribute("The reference id of each member.", Type.LIST),
        ATTRIBUTES: Attribute(
            "The value of one attribute by member name; the path begins with the attribute.",
            Type.MAP,
        ),
    }

    def current_members(self) -> groups.Members:
        """Return the members in the template of the child."""
        child = self.child()
        return {} if child is None else groups.members_of(child.document)

    def most_members(self) -> tuple[int, str]:
        """Return the limit of members, -1 for no limit, and the option that sets it."""
        return self.context.limits.resources, "max_resources_per_stack"

    def check_count(self, count: int, what: str = "a group") -> None:
        """Raise RequestLimitExceeded for more members than the limit."""
        limit, option = self.most_members()
        if 0 <= limit < count:
            raise errors.RequestLimitExceeded(
                what=f"{what} of {count} members", limit=limit, unit="resources", option=option
            )

    def get_reference_id(self) -> Any:
        return self.record.physical_id or self.record.name

    def members(self) -> dict[str, ResourceView]:
        return dict(sorted(super().members().items(), key=lambda item: groups.in_order(item[0])))

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(MEMBER):
            return self.member_attribute(name, path)
        members = self.members()
        if name == REFS:
            return value_at([each.reference_id() for each in members.values()], path)
        if name == ATTRIBUTES:
            attribute, rest = self.attribute_at(ATTRIBUTES, path)
            return Walked({n: attribute_of(m, attribute, rest) for n, m in members.items()})
        return Walked([attribute_of(each, name, path) for each in members.values()])

    @classmethod
    def listed_attributes(cls) -> Iterable[str]:
        return (name for name in cls.attributes_schema if name != ATTRIBUTES)  # it needs a path

    def attribute_at(self, key: str, path: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return the attribute at the head of a path, and the rest of the path."""
        if not path:
            raise errors.StackValidationFailed(
                reason=f"cannot tell all attributes of the members of {self.record.name} at once; "
                f"name one after it, as in [group, {key}, name]"
            )
        return str(path[0]), path[1:]
