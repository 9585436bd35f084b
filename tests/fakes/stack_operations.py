"""An engine that notes what it is asked, and answers what a test has laid ready.

engine = FakeStackOperations(show_stack=errors.EntityNotFound(...))
engine.asked                        # [("show_stack", (identity,), {"resolve_outputs": True})]
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bloomery.model.conductor import Engine
from bloomery.model.stack_views import (
    EngineDetails,
    EventDetails,
    Output,
    PreviewedStack,
    ResourceDetails,
    StackDetails,
    StackIdentity,
    UpdatePreview,
)
from bloomery.model.stacks import RESOURCE_FIELDS, Action, Event, Snapshot, Stack, StoredResource
from bloomery.orchestration.operations import OPERATIONS

AT = datetime(2026, 11, 20, 9, 42, 0, 123456, UTC)
STACK = StackIdentity(project="p1", name="web", uuid="0a7f2c1d-6a57-4f0e-8a0f-0e1a7d1f2b33")
CHILD = StackIdentity(project="p1", name="web-in-k3v5x2m4q7ab", uuid="b6c0")


def stored_stack(**values: Any) -> Stack:
    identity = values.pop("identity", STACK)
    return Stack(
        **{
            "uuid": identity.uuid, "name": identity.name, "project": identity.project,
            "root_uuid": identity.uuid, "template_uuid": "t", "action": "CREATE",
            "status": "COMPLETE", "reason": "Stack CREATE completed successfully", "user": "ann",
            "created_at": AT,
        } | values
    )  # fmt: skip


def details(**values: Any) -> StackDetails:
    return StackDetails(
        **{
            "stack": stored_stack(), "description": "No description", "parameters": {"n": "1"},
            "outputs": (),
        } | values
    )  # fmt: skip


def previewed(**values: Any) -> PreviewedStack:
    return PreviewedStack(
        **{
            "identity": STACK, "description": "d", "parameters": {"n": "1"},
            "disable_rollback": True, "timeout_mins": None, "user": "ann", "tags": (),
            "resources": (),
        } | values
    )  # fmt: skip


def resource(**values: Any) -> ResourceDetails:
    columns = {name: values.pop(name) for name in RESOURCE_FIELDS[:-1] if name in values}
    stored = {
        "name": "a", "type": "OS::Heat::Value", "uuid": "u-a", "action": Action.CREATE,
        "reason": "state changed", "created_at": AT,
    }  # fmt: skip
    return ResourceDetails(
        **{"resource": StoredResource(**stored | columns), "stack": STACK} | values
    )


def event(**values: Any) -> EventDetails:
    stored = Event(
        uuid="5f0c6d1e", stack_uuid=STACK.uuid, root_uuid=STACK.uuid, created_at=AT, name="a",
        type="OS::Heat::Value", physical_id="web-a", action="CREATE", status="IN_PROGRESS",
        reason="state changed",
    )  # fmt: skip
    return EventDetails(**{"event": stored, "stack": STACK} | values)


def snapshot(**values: Any) -> Snapshot:
    return Snapshot(
        **{
            "uuid": "s-1", "stack_uuid": STACK.uuid, "name": "before", "action": "CREATE",
            "status": "IN_PROGRESS", "reason": "", "data": {"status": "IN_PROGRESS"},
            "created_at": AT,
        } | values
    )  # fmt: skip


def process(*, up: bool = True) -> EngineDetails:
    engine = Engine(
        id=1, engine_id="e-1", binary="bloomery-engine", host="h", hostname="h", topic="engine",
        report_interval=60, heartbeat=1, created_at=AT, updated_at=AT, deleted_at=None,
    )  # fmt: skip
    return EngineDetails(engine=engine, up=up)


class FakeStackOperations:
    """``answers``: by method, a value or an error; methods without one return None."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "identify_stack": STACK,
            "list_stacks": [stored_stack()],
            "list_stacks_in_detail": [stored_stack()],
            "count_stacks": 7,
            "show_stack": details(),
            "create_stack": STACK,
            "preview_stack": previewed(),
            "preview_update_stack": UpdatePreview(),
            "list_outputs": [Output(key="o", description="No description given")],
            "show_output": Output(key="o", description="No description given", value=5),
            "stack_snapshot": snapshot(),
            "stack_list_snapshots": [snapshot()],
            "show_snapshot": snapshot(status="COMPLETE"),
            "list_stack_resources": [resource()],
            "describe_stack_resource": resource(description="", attributes={"value": 1}),
            "get_resource_metadata": {"k": "v"},
            "list_events": [event()],
            "show_event": event(properties={"value": 1}),
            "list_services": [process()],
        } | answers
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.requests: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(name)

        def method(request: Any, *arguments: Any, **named: Any) -> Any:
            self.asked.append((name, arguments, named))
            self.requests.append(request)
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return method

    def last(self, method: str) -> Any:
        """Return the last argument of the last call of a method."""
        return next(args[-1] for name, args, _ in reversed(self.asked) if name == method)
