"""Template resources: a resource whose type is a template, and whose work a child stack does.

``kind_of`` makes a class for each template: its parameters are the properties, its outputs the
attributes.  get_resource returns the output ``OS::stack_id``, if the template has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties.presence import Pending
from bloomery.orchestration.properties.schema import Attribute, Type
from bloomery.orchestration.resources import base, composite
from bloomery.orchestration.template import parameter_schemas
from bloomery.orchestration.template.dialect import Key, Section, Template

REFERENCE: Final = "OS::stack_id"  # the output that replaces the reference ID
_WIDE: Final = {Type.INTEGER: Type.NUMBER}  # parameters have no integer type


class NestedStack(composite.Composite):
    """The base class of template resources."""

    template: ClassVar[Template]
    source: ClassVar[str]  # the key (path or URL) of the template in the files
    facade: ClassVar[tuple[str, type[base.Resource]] | None] = None  # the type that it provides
    dynamic_attributes: ClassVar[bool] = True  # as in Heat, validation accepts unknown ones

    def validate(self) -> None:
        """Refuse a template that does not fit the type that it provides."""
        if self.facade is None:
            return
        name, facade = self.facade
        for key, expected in facade.properties_schema.items():
            if (declared := self.properties_schema.get(key)) is None:
                if expected.required:
                    raise _misfit(f"Required property {key} for facade {name} missing in provider")
                continue
            types = {_WIDE.get(each, each) for each in (expected.type, declared.type)}
            if Type.ANY not in types and len(types) > 1:
                raise _misfit(
                    f"Property {key} type mismatch between facade {name} ({expected.type}) and "
                    f"provider ({declared.type})"
                )
        for key, declared in self.properties_schema.items():
            if declared.required and key not in facade.properties_schema:
                raise _misfit(
                    f"Provider requires property {key} unknown in facade {name}: give the parameter"
                    " a default"
                )
        for attribute in facade.attributes_schema:
            if attribute not in self.attributes_schema:
                raise _misfit(
                    f"Attribute {attribute} for facade {name} missing in provider: add an output"
                )

    def is_known(self, pending: Pending) -> bool:
        return not pending

    def child_document(self) -> Mapping[str, Any]:
        return self.template.document

    def child_parameters(self) -> Mapping[str, Any]:
        values = self.properties.items()
        return {name: as_parameter(value) for name, value in values if value is not None}

    def get_reference_id(self) -> Any:
        child = self.child()
        if child is not None and REFERENCE in child.outputs():
            return child.output(REFERENCE)
        return super().get_reference_id()

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(composite.MEMBER):
            return self.member_attribute(name, path)
        child = self.child()
        if child is None:
            return None
        if name not in child.outputs():
            raise composite.unknown(name)
        return composite.value_at(child.output(name), path)


def as_parameter(value: Any) -> Any:
    if isinstance(value, Mapping):
        return json.dumps(value)
    if not isinstance(value, list):
        return value
    texts: list[str] = []
    for index, item in enumerate(value):
        if isinstance(item, Mapping):
            texts += [f".member.{index}.{key}={inner}" for key, inner in item.items()]
        else:
            texts.append("" if item is None else str(item))
    return ",".join(texts)


def kind_of(
    template: Template,
    source: str,
    *,
    facade: tuple[str, type[base.Resource]] | None = None,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> type[NestedStack]:
    """Return the resource class of ``template``, whose key in the files is ``source``.

    ``defaults``: of the environment; null removes the default of the template, as in Heat.
    """
    section, properties = template.section(Section.PARAMETERS), {}
    # the validation of the template raises the error of a section that is no map
    for name, body in section.items() if isinstance(section, dict) else ():
        try:
            read = template.parameter_schema
            declared = parameter_schemas.unused_default(read, name, body).as_property()
        except errors.Misplaced as exc:
            raise exc.under(template.section_name(Section.PARAMETERS), name) from exc
        required = defaults[name] is None if name in defaults else declared.required
        properties[name] = replace(declared, required=required)
    outputs, key = template.section(Section.OUTPUTS), template.features.output_keys[Key.DESCRIPTION]
    attributes = {
        name: Attribute(str((body.get(key) if isinstance(body, dict) else "") or ""))
        for name, body in (outputs.items() if isinstance(outputs, dict) else ())
    }
    return type(
        "NestedStack",
        (NestedStack,),
        {
            "template": template,
            "source": source,
            "facade": facade,
            "properties_schema": properties,
            "attributes_schema": attributes,
            "__module__": __name__,
        },
    )


def _misfit(reason: str) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=reason)
