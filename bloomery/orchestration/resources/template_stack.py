"""OS::Heat::Stack: a child stack whose template is the value of a property.

The child is in the project of its parent, and ``show_nested`` lists it.  The engine changes both in
the same transactions.  (Heat creates an independent stack through the API of a region.  Here there
is one region.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties.presence import Pending
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import composite, groups
from bloomery.orchestration.resources.children import Blueprint
from bloomery.orchestration.template import parse, versions

ELSEWHERE: Final = ("region_name", "credential_secret_id", "ca_cert")


class TemplateStack(composite.Composite):
    """A child stack of a template; its ID is the reference ID."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "context": Schema(
            Type.MAP, "The location of the stack; other regions and clouds are not supported.",
            update_allowed=True, schema={
                "region_name": Schema(Type.STRING, "The region of the stack."),
                "credential_secret_id": Schema(
                    Type.STRING, "The secret with credentials of another cloud.",
                    update_allowed=True,
                ),
                "ca_cert": Schema(
                    Type.STRING, "The CA certificate of another cloud.", update_allowed=True
                ),
                "insecure": Schema(
                    Type.BOOLEAN, "Whether to skip certificate checks.", default=False,
                    update_allowed=True,
                ),
            },
        ),
        "template": Schema(
            Type.STRING, "The template of the stack, as text.", required=True, update_allowed=True
        ),
        "timeout": Schema(
            Type.INTEGER, "The timeout of an action, in minutes.", update_allowed=True
        ),
        "parameters": Schema(
            Type.MAP, "The parameters of the stack.", default={}, update_allowed=True
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "stack_name": Attribute("The name of the stack.", Type.STRING),
        "outputs": Attribute("The outputs of the stack by name.", Type.MAP),
    }

    def validate(self) -> None:
        context = self.properties["context"] or {}
        for key in ELSEWHERE:
            if context.get(key):
                raise errors.StackValidationFailed(
                    reason=f"cannot make a stack with {key} {context[key]!r}: stacks of other "
                    f"regions and clouds are not supported; leave {key} out",
                    path=["context", key],
                )

    def is_known(self, pending: Pending) -> bool:
        values = (self.properties["parameters"] or {}).values()
        return bool(self.properties["template"]) and not pending and None not in values

    def child_document(self) -> Mapping[str, Any]:
        text = self.properties["template"]
        if not text and self.context.children is None:
            return groups.document({})  # validation: the value is not known yet
        try:
            document = parse.document(text or "", self.context.limits, "the template of the stack")
        except errors.TemplateUnreadable as exc:
            raise errors.StackValidationFailed(reason=str(exc), path=["template"]) from exc
        if not versions.has_version(document):
            reason = f"Template format version not found: {versions.ADVICE}"
            raise errors.StackValidationFailed(reason=reason, path=["template"])
        return document

    def child_parameters(self) -> Mapping[str, Any]:
        values = self.properties["parameters"] or {} if self.properties["template"] else {}
        return {name: value for name, value in values.items() if value is not None}

    def blueprint(
        self, document: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Blueprint:
        minutes = self.properties["timeout"]
        own_s = timeout_s if minutes is None else float(minutes) * 60
        return super().blueprint(document, timeout_s=own_s)

    def get_reference_id(self) -> Any:
        return self.record.physical_id or self.record.name

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(composite.MEMBER):
            return self.member_attribute(name, path)
        child = self.child()
        if child is None:
            return None
        if name == "stack_name":
            return composite.value_at(self.physical_resource_name(), path)
        return composite.value_at(child.outputs(), path)
