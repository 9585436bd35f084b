"""What tests of kinds need: a resource with its defaults, a clock by hand, children in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.model.stacks import StoredResource
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.children import Blueprint
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template import view
from bloomery.outcome import DONE, Outcome

UUID = "0d5a9a63-6d4f-4b43-9c4a-2a8a6f1d1c11"


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Child:
    """A child stack that ends what it does when it is told to."""

    id: str
    blueprint: Blueprint
    action: Action = Action.CREATE
    status: Status = Status.IN_PROGRESS
    reason: str = ""
    said: dict[str, Any] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        return f"arn:{self.id}"

    @property
    def document(self) -> Mapping[str, Any]:
        return self.blueprint.document

    def outputs(self) -> Mapping[str, Any]:
        return self.said

    def output(self, name: str) -> Any:
        return self.said[name]

    def resources(self) -> dict[str, view.PlainResource]:
        return {
            name: view.PlainResource(
                name=name, id=f"id-{name}", values=member.get("properties") or {}
            )
            for name, member in self.document["resources"].items()
        }


class Children:
    """Child stacks in a dictionary; ``end`` ends what the last one does."""

    converges = False

    def __init__(self) -> None:
        self.stacks: dict[str, Child] = {}
        self.names: list[str] = []
        self.cancelled: list[str] = []

    def create(self, stack_id: str, name: str, blueprint: Blueprint) -> None:
        if stack_id not in self.stacks:
            self.names.append(name)
            action = Action.CREATE if blueprint.adopt is None else Action.ADOPT
            self.stacks[stack_id] = Child(stack_id, blueprint, action)

    def update(self, stack_id: str, blueprint: Blueprint) -> None:
        child = self.stacks[stack_id]
        child.blueprint, child.action = blueprint, Action.UPDATE
        child.status = Status.IN_PROGRESS

    def delete(self, stack_id: str) -> None:
        if stack_id in self.stacks:
            child = self.stacks[stack_id]
            child.action, child.status = Action.DELETE, Status.IN_PROGRESS

    def suspend(self, stack_id: str) -> None:
        self.begin(stack_id, Action.SUSPEND)

    def resume(self, stack_id: str) -> None:
        self.begin(stack_id, Action.RESUME)

    def check(self, stack_id: str) -> None:
        self.begin(stack_id, Action.CHECK)

    def snapshot(self, stack_id: str) -> None:
        self.begin(stack_id, Action.SNAPSHOT)

    def begin(self, stack_id: str, action: Action) -> None:
        child = self.stacks[stack_id]
        child.action, child.status = action, Status.IN_PROGRESS

    def cancel(self, stack_id: str) -> None:
        self.cancelled.append(stack_id)

    def find(self, stack_id: str) -> Child | None:
        return self.stacks.get(stack_id)

    @property
    def only(self) -> Child:
        (child,) = self.stacks.values()
        return child

    def end(self, status: Status = Status.COMPLETE, reason: str = "") -> None:
        self.only.status, self.only.reason = status, reason


class Siblings:
    """The other resources of a stack, by what get_resource gives for them."""

    def __init__(self, *resources: base.Resource) -> None:
        self.resources = resources

    def find(self, reference_id: Any) -> base.Resource | None:
        named = (one for one in self.resources if one.get_reference_id() == reference_id)
        return next(named, None)

    def list(self, kind: type[base.R], physical_id: str) -> list[base.R]:
        return [
            one for one in self.resources
            if isinstance(one, kind) and one.record.physical_id == physical_id
        ]  # fmt: skip


def is_complete(check: Callable[[Any], Outcome], token: Any) -> bool:
    return check(token) == DONE


def made(
    kind: type[base.Resource],
    properties: Mapping[str, Any] | None = None,
    *,
    name: str = "a",
    uuid: str = UUID,
    clock: Callable[[], float] | None = None,
    random: Callable[[], float] = lambda: 0.5,
    policy: Mapping[str, Any] | None = None,
    **context: Any,
) -> Any:
    """One resource of ``kind``; properties not given take the defaults of the schema."""
    defaults = {key: schema.default for key, schema in kind.properties_schema.items()}
    return kind(
        StoredResource(name=name, type=kind.__name__, uuid=uuid),
        {**defaults, **(properties or {})},
        base.ResourceContext(
            stack_name="s",
            stack_id="1",
            project_id="p",
            utc=clock or Clock(),
            random=random,
            **context,
        ),
        update_policy=policy,
    )
