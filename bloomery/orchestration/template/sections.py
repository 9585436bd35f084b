"""Check the shape of a template's sections, without looking into values.

Each error carries its path and advice.  The functions are independent; a stack calls them in the
order of heat-hot.md, section 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template.dialect import Key, Section, Template
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.parse import kind_of

MAP_SECTIONS: Final = (
    Section.PARAMETERS,
    Section.MAPPINGS,
    Section.CONDITIONS,
    Section.RESOURCES,
    Section.OUTPUTS,
)
_ADVICE: Final = {  # an example of each section, for messages
    Section.PARAMETERS: "name: {type: string}",
    Section.MAPPINGS: "name: {key: {key: value}}",
    Section.CONDITIONS: "name: condition",
    Section.RESOURCES: "name: {type: ...}",
    Section.OUTPUTS: "name: {value: ...}",
}
_COMPARED: Final = 100  # keys of one map that are compared with a missing one


def fault(reason: str, *path: str | int, error: str = "") -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=reason, path=path, error=error)


# ------------------------------------------------------------------------------ the whole template


def check(template: Template) -> None:
    """Refuse sections that the version does not have, and those that are no maps."""
    names = {template.features.version_key, *template.features.sections.values()}
    version = template.features.version
    for name in template.document:
        if name in names:
            continue
        if name == "conditions" and template.features.type == "hot":
            raise fault(
                f"The template section is invalid: {name}; version {version} does not have it yet,"
                " 2016-10-14 and later ones do"
            )
        listed = ", ".join(sorted(names))
        raise fault(
            f"The template section is invalid: {name}. Version {version} has {listed}."
            f"{errors.nearest(name, names)}"
        )
    for section in MAP_SECTIONS:
        if section not in template.features.sections:
            continue
        key, body = template.section_name(section), template.section(section)
        if section is Section.CONDITIONS:  # as in Heat, any empty value passes elsewhere
            body = template.document.get(key)
            body = {} if body is None else body
        if not isinstance(body, dict):
            raise fault(f"must be a map, such as {_ADVICE[section]}, not {kind_of(body)}", key)
        for name in body:
            if not isinstance(name, str):
                raise fault(f"a name must be text, and {name!r} is {kind_of(name)}: quote it", key)


# ---------------------------------------------------------------------------------------- resources


def check_resources(template: Template) -> None:
    """Refuse resources that are no maps, or whose type or name is invalid."""
    section = template.section_name(Section.RESOURCES)
    key = template.features.resource_keys[Key.TYPE]
    for name, body in template.section(Section.RESOURCES).items():
        reason = ""
        if not isinstance(body, dict):
            reason = f"a resource must be a map with a {key}, not {kind_of(body)}"
        elif key not in body:
            near = _misspelt(key, body, "a resource")
            reason = f"Each resource must contain a {key} key, such as {key}: OS::Heat::Value{near}"
        elif not isinstance(body[key], str) or not body[key]:
            kind = "empty" if body[key] == "" else kind_of(body[key])
            reason = f"{key} must be the name of a type, such as OS::Heat::Value, and is {kind}"
        elif "/" in name:
            reason = 'Resource name may not contain "/"; use - or _ instead'
        if reason:
            raise fault(reason, section, name)


def _misspelt(key: str, body: Mapping[Any, Any], of: str) -> str:
    """Return advice on the key of ``body`` that is a misspelt ``key``, or ""."""
    for name in itertools.islice(body, _COMPARED):
        if isinstance(name, str) and errors.nearest(name.lower(), [key.lower()]):
            return f"; {shapes.shortened(name)!r} is no key of {of}. Did you mean {key!r}?"
    return ""


_SHAPES: Final[Mapping[Key, tuple[tuple[type, ...], str]]] = {
    Key.PROPERTIES: ((dict,), "a map"),
    Key.METADATA: ((dict,), "a map"),
    Key.UPDATE_POLICY: ((dict,), "a map"),
    Key.DEPENDS_ON: ((str, list), "the name of a resource or a list of names"),
    Key.DELETION_POLICY: ((str, dict), "text"),
    Key.EXTERNAL_ID: ((str, dict), "text"),
    Key.CONDITION: ((str, bool, dict), "the name of a condition, a boolean or a condition"),
    Key.DESCRIPTION: ((str,), "text"),
}


class Bodies:
    """Checks the bodies of one version's resources: keys, and the kind of value under each."""

    __slots__ = ("_depends_on", "_is_hot", "_keys", "_section", "_shapes", "_takes_unknown")

    def __init__(self, template: Template) -> None:
        keys = template.features.resource_keys
        self._section = template.section_name(Section.RESOURCES)
        self._keys = dict.fromkeys(keys.values())
        self._depends_on = keys[Key.DEPENDS_ON]
        self._shapes = {name: _SHAPES[key] for key, name in keys.items() if key in _SHAPES}
        self._takes_unknown = template.features.takes_unknown_keys
        self._is_hot = template.features.type == "hot"

    def check(self, name: str, body: Mapping[str, Any]) -> None:
        for key, value in body.items():
            if key not in self._keys:
                if self._takes_unknown:
                    continue
                reason = f'"{key}" is not a valid key of a resource'
                if self._is_hot and key in {Key.CONDITION, Key.EXTERNAL_ID}:
                    reason += " in this version; 2016-10-14 has it"
                else:
                    near = errors.nearest(key, self._keys)
                    reason += f"; valid are {', '.join(self._keys)}.{near}"
                raise fault(reason, self._section, name)
            shape = self._shapes.get(key)
            if shape is not None and not isinstance(value, shape[0]):
                raise fault(f"must be {shape[1]}, not {kind_of(value)}", self._section, name, key)
        depends_on = body.get(self._depends_on)
        if type(depends_on) is list and not all(isinstance(name, str) for name in depends_on):
            raise fault("must be a list of names", self._section, name, self._depends_on)


# ------------------------------------------------------------------------------------------ outputs


def check_output(template: Template, name: str, body: Any) -> None:
    """Refuse an output that is no map or has no value; unknown keys are ignored."""
    value_key, reason = template.features.output_keys[Key.VALUE], ""
    if not isinstance(body, dict):
        reason = f"Output definitions must be a map with a {value_key}, not {kind_of(body)}"
    elif value_key not in body:
        near = _misspelt(value_key, body, "an output")
        reason = f"Each output definition must contain a {value_key} key{near}"
    if reason:
        section = template.section_name(Section.OUTPUTS)
        raise fault(reason, section, name, error="Output validation error")
