"""Sides of a plan made of dictionaries, with three functions and three kinds of their own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.cli import plan_text
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.foresight import document
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.plans import Key, Plan
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources.base import Action, Resource, Status
from bloomery.orchestration.template.entries import (
    DeletionPolicy,
    OutputDefinition,
    ResourceDefinition,
)
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function, Reference
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import Plain, StackView


def shown(plan: Plan, *, unchanged: bool = False) -> str:
    """Return a plan as an operator reads it."""
    return plan_text.text(document.of_templates(plan), unchanged=unchanged)


class Ref(Function):
    def resolve(self, view: StackView) -> Any:
        return view.resource(self.args).reference_id()

    def references(self, view: StackView) -> Iterator[Reference]:
        yield Reference(self.args, None)


class Attr(Function):
    def resolve(self, view: StackView) -> Any:
        return view.resource(self.args[0]).attribute(self.args[1])

    def references(self, view: StackView) -> Iterator[Reference]:
        yield Reference(self.args[0], self.args[1])


class Param(Function):
    """``args``: a name, or a name and a path that may hold calls."""

    def resolve(self, view: StackView) -> Any:
        args = base.resolve(self.args, view)
        name, *path = args if isinstance(args, list) else [args]
        value = view.parameter(name)
        for step in path:
            value = value[step]
        return value


class Join(Function):
    def resolve(self, view: StackView) -> Any:
        return "".join(str(part) for part in base.resolve(self.args, view))


def ref(name: str) -> Ref:
    return Ref("get_resource", name)


def attr(name: str, attribute: str = "value") -> Attr:
    return Attr("get_attr", [name, attribute])


def param(*args: Any) -> Param:
    return Param("get_param", args[0] if len(args) == 1 else list(args))


def join(*parts: Any) -> Join:
    return Join("join", list(parts))


class Thing(Resource):
    properties_schema: Mapping[str, Schema] = {
        "value": Schema(Type.ANY, update_allowed=True),
        "other": Schema(Type.ANY, update_allowed=True),
        "size": Schema(Type.INTEGER, default=1),
        "fixed": Schema(Type.STRING, immutable=True),
    }


class Stable(Thing):
    """Neither a failure nor a bad check is a reason to make it anew."""

    always_replace_on_check_failed = False

    @classmethod
    def needs_replace_failed(cls) -> bool:
        return False


class Choosy(Thing):
    @classmethod
    def needs_replace(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> bool:
        return after.get("value") == "too much" and "value" in prop_diff


class Restless(Thing):
    """Made anew by every update, whatever it says."""

    @classmethod
    def needs_replace(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> bool:
        return True


class Nought(Thing):
    ignores_properties = True


class Busy(Thing):
    always_updated = True


KINDS: Mapping[str, type[Resource]] = {
    "Thing": Thing,
    "Stable": Stable,
    "Choosy": Choosy,
    "Nought": Nought,
    "Restless": Restless,
    "Busy": Busy,
    "Alias": Thing,
}


def thing(kind: str = "Thing", /, **parts: Any) -> dict[str, Any]:
    """A resource: its type, properties by name, and other parts of a definition by name."""
    others = set(ResourceDefinition.__slots__) & set(parts)
    made = {key: parts.pop(key) for key in others}
    return {"type": kind, "properties": parts.pop("tree", parts), **made}


@dataclass
class Template:
    """A side: ``Template({"a": thing(value=1)}, parameters={"p": 2})``."""

    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    hidden: Collection[str] = ()
    restrictions: Mapping[str, Collection[str]] = field(default_factory=dict)
    kinds: Mapping[str, type[Resource]] = field(default_factory=lambda: KINDS)
    outputs: Mapping[str, OutputDefinition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.definitions = {
            name: ResourceDefinition(name=name, **parts) for name, parts in self.resources.items()
        }
        self.view = Plain(parameters=self.parameters)
        self.context = self.parameters
        self.content = self.resources, self.parameters, self.outputs
        self.redaction = Redaction(self.parameters[name] for name in self.hidden)

    def written_conditions(self) -> Mapping[str, Any]:
        return {}

    def written(self, name: str, part: str) -> Any:
        return None

    def kind(self, name: str) -> type[Resource]:
        return self.kinds[self.definitions[name].type]

    def required(self, name: str) -> Iterable[str]:
        each = self.definitions[name]
        others = (*each.depends_on, *(one.resource for one in each.references(self.view)))
        return others if each.external_id is None else ()

    def properties(
        self, name: str, view: StackView, without: Collection[str] = ()
    ) -> Mapping[str, Any]:
        tree = self.definitions[name].properties
        if isinstance(tree, Function):
            tree = {} if without else base.resolve(tree, view)
        schema = self.kind(name).properties_schema
        defaults = {key: one.default for key, one in schema.items() if key not in without}
        kept = {key: value for key, value in tree.items() if key not in without}
        return defaults | base.resolve(kept, view)

    def restricted(self, name: str) -> Collection[str]:
        return self.restrictions.get(name, ())


def template(**resources: Mapping[str, Any]) -> Template:
    return Template(resources)


def row(
    name: str, kind: str = "Thing", state: str = "CREATE_COMPLETE", **values: Any
) -> StoredResource:
    action, _, status = state.rpartition("_")
    if state.endswith("IN_PROGRESS"):
        action, status = state.removesuffix("_IN_PROGRESS"), "IN_PROGRESS"
    return StoredResource(
        name=name,
        type=kind,
        uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}{kind}{state}{values}")),
        action=Action(action),
        status=Status(status),
        physical_id=f"id-{name}",
        properties={"value": None, "other": None, "size": 1, "fixed": None} | values,
    )


def rows(*made: StoredResource) -> dict[str, StoredResource]:
    return {each.name: each for each in made}


def told(plan: Plan) -> list[str]:
    """The plan in order, as ``make a: update`` lines."""
    return [f"{key.phase} {key.name}: {action.verb}" for key, action in plan]


def retain(**parts: Any) -> dict[str, Any]:
    return thing(**parts) | {"deletion_policy": DeletionPolicy.RETAIN}


def named(graph: Graph[Key], name: Callable[[Key], str] = lambda key: key.name) -> Graph[str]:
    """Return a graph with a name in place of each key."""
    return Graph((name(key), other and name(other)) for key, other in graph.edges())
