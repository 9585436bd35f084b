"""Check the shape of a template's sections, without looking into values.

Each error carries its path and advice.  The functions are independent; a stack calls them in the
order of heat-hot.md, section 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
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
    for name in template.document:
        if name not in names:
            raise fault(_unknown_section(template, name, names))
    for section in MAP_SECTIONS:
        if section in template.features.sections:
            _check_map(template, section)


def _check_map(template: Template, section: Section) -> None:
    """Refuse a section that is no map; as in Heat, any empty value passes, but for conditions."""
    word, body = template.word(section), template.section(section)
    if section is Section.CONDITIONS:
        body = template.document.get(word)
        body = {} if body is None else body
    if not isinstance(body, dict):
        raise fault(f"must be a map, such as {_ADVICE[section]}, not {kind_of(body)}", word)
    for name in body:
        if not isinstance(name, str):
            raise fault(f"a name must be text, and {name!r} is {kind_of(name)}: quote it", word)


def _unknown_section(template: Template, name: str, names: Collection[str]) -> str:
    version = template.features.version
    if name == "conditions" and template.features.type == "hot":
        return (
            f"The template section is invalid: {name}; version {version} does not have it yet,"
            " 2016-10-14 and later ones do"
        )
    listed = ", ".join(sorted(names))
    return (
        f"The template section is invalid: {name}. Version {version} has {listed}."
        f"{errors.nearest(name, names)}"
    )


# ---------------------------------------------------------------------------------------- resources


def check_resources(template: Template) -> None:
    """Refuse resources that are no maps, or whose type or name is invalid."""
    word = template.word(Section.RESOURCES)
    type_key = template.features.resource_keys[Key.TYPE]
    for name, body in template.section(Section.RESOURCES).items():
        if not isinstance(body, dict):
            reason = f"a resource must be a map with a {type_key}, not {kind_of(body)}"
            raise fault(reason, word, name)
        kind = body.get(type_key)
        if not isinstance(kind, str) or not kind:
            raise fault(_bad_type(type_key, body), word, name)
        if "/" in name:
            raise fault('Resource name may not contain "/"; use - or _ instead', word, name)


def _bad_type(key: str, body: Mapping[str, Any]) -> str:
    if key not in body:
        near = _misspelt(key, body, "a resource")
        return f"Each resource must contain a {key} key, such as {key}: OS::Heat::Value{near}"
    value = "empty" if body[key] == "" else kind_of(body[key])
    return f"{key} must be the name of a type, such as OS::Heat::Value, and is {value}"


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

    __slots__ = ("_depends_on", "_is_hot", "_keys", "_shapes", "_takes_unknown", "_word")

    def __init__(self, template: Template) -> None:
        keys = template.features.resource_keys
        self._word = template.word(Section.RESOURCES)
        self._keys = dict.fromkeys(keys.values())
        self._depends_on = keys[Key.DEPENDS_ON]
        self._shapes = {word: _SHAPES[key] for key, word in keys.items() if key in _SHAPES}
        self._takes_unknown = template.features.takes_unknown_keys
        self._is_hot = template.features.type == "hot"

    def check(self, name: str, body: Mapping[str, Any]) -> None:
        for key, value in body.items():
            if key not in self._keys:
                if self._takes_unknown:
                    continue
                raise fault(self._unknown(key), self._word, name)
            shape = self._shapes.get(key)
            if shape is not None and not isinstance(value, shape[0]):
                raise fault(f"must be {shape[1]}, not {kind_of(value)}", self._word, name, key)
        depends_on = body.get(self._depends_on)
        if type(depends_on) is list and not all(isinstance(name, str) for name in depends_on):
            raise fault("must be a list of names", self._word, name, self._depends_on)

    def _unknown(self, key: str) -> str:
        if self._is_hot and key in {Key.CONDITION, Key.EXTERNAL_ID}:
            return f'"{key}" is not a valid key of a resource in this version; 2016-10-14 has it'
        names = ", ".join(self._keys)
        near = errors.nearest(key, self._keys)
        return f'"{key}" is not a valid key of a resource; valid are {names}.{near}'


# ------------------------------------------------------------------------------------------ outputs


def check_output(template: Template, name: str, body: Any) -> None:
    """Refuse an output that is no map or has no value; unknown keys are ignored."""
    word, value_key = template.word(Section.OUTPUTS), template.features.output_keys[Key.VALUE]
    error = "Output validation error"
    if not isinstance(body, dict):
        reason = f"Output definitions must be a map with a {value_key}, not {kind_of(body)}"
        raise fault(reason, word, name, error=error)
    if value_key not in body:
        near = _misspelt(value_key, body, "an output")
        raise fault(
            f"Each output definition must contain a {value_key} key{near}",
            word, name, error=error,
        )  # fmt: skip
