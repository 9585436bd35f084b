"""Warn of input that Heat accepts silently.

A map whose key is no function of the template's version stays a map, so that a misspelt function
ends up in a property as text.  A key that is repeated in a map counts once, with its last value.
An output, and a resource of CloudFormation, may have keys that Heat ignores. None of these is a
fault.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from bloomery import errors
from bloomery.orchestration.template import kinds, versions
from bloomery.orchestration.template.dialect import Section, Template
from bloomery.orchestration.template.functions.parser import Removed

LIKE: Final = 0.8  # similarity of a key and a function's name that marks a misspelling
MERGE: Final = "<<"  # YAML lets it be repeated
UNKNOWN_TYPE: Final = ") could not be found."  # end of a fault without a proposal
# sections where functions are allowed
SECTIONS: Final = ("resources", "outputs", "Resources", "Outputs")


class Hint(NamedTuple):
    path: tuple[str | int, ...]
    sentence: str


def of(template: Template) -> Iterator[Hint]:
    """Yield a warning for each ignored key, and for each map that resembles a function call."""
    yield from _ignored(template, Section.OUTPUTS, "an output")
    if template.features.takes_unknown_keys:  # other versions refuse them
        yield from _ignored(template, Section.RESOURCES, "a resource")
    for section in SECTIONS:
        body = template.document.get(section)
        if isinstance(body, Mapping):
            yield from _inside(template, body, (section,))


def _ignored(template: Template, section: Section, of: str) -> Iterator[Hint]:
    """Yield each key that this version ignores in a resource or output."""
    features, section_key = template.features, template.section_name(section)
    keys = features.output_keys if section is Section.OUTPUTS else features.resource_keys
    keys_by_lower = {key.lower(): key for key in keys.values()}
    bodies = template.section(section)
    for name, body in bodies.items() if isinstance(bodies, Mapping) else ():
        for key in body if isinstance(body, Mapping) else ():
            if key not in keys_by_lower.values():
                near = difflib.get_close_matches(str(key).lower(), keys_by_lower, 1, LIKE)
                meant = f"; {keys_by_lower[near[0]]} is one" if near else ""
                sentence = f"{key} is no key of {of} in {features.version} and is ignored{meant}"
                yield Hint((section_key, name, key), sentence)


def doubles(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and warning for each repeated key of a map."""
    try:
        waiting = [yaml.compose(text, Loader=yaml.CSafeLoader)]
    except yaml.YAMLError:
        return
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, yaml.CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, _value in node.value:
                line, name = key.start_mark.line + 1, str(key.value)
                if name in lines and name != MERGE:
                    sentence = (
                        f"{name} stands in line {lines[name]} already, whose value is dropped"
                    )
                    yield line, sentence
                lines[name] = line
            waiting += [value for _key, value in node.value]
        else:
            waiting += node.value


def way_out(fault: errors.Failure) -> str:
    """Return advice for a missing parameter or an unknown type; "" for other faults."""
    if isinstance(fault, errors.UserParameterMissing):
        return f" Give it with -P {fault.facts['key']}=..., or in an environment with -e"
    if not str(fault).endswith(UNKNOWN_TYPE):
        return ""
    offered = ", ".join(kinds.installed())
    return f" There are {offered}; map others to these or to files in a resource_registry (-e)"


def _inside(template: Template, tree: Any, path: tuple[str | int, ...]) -> Iterator[Hint]:
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _inside(template, item, (*path, index))
    elif isinstance(tree, Mapping):
        if len(tree) == 1 and (sentence := _misspelling(template, str(next(iter(tree))))):
            yield Hint((*path, next(iter(tree))), sentence)
        for key, value in tree.items():
            yield from _inside(template, value, (*path, key))


def _misspelling(template: Template, key: str) -> str | None:
    """Return the warning for a key that is no function, but resembles one of any version."""
    functions, version = template.features.offered.functions, template.features.version
    if key in functions:
        return None
    if since := _since().get(key):
        return f"{key} is a function from {since} on; in {version} it is plain data"
    names = [name for name, value in functions.items() if not isinstance(value, Removed)]
    near = difflib.get_close_matches(key, [*names, *_since()], 1, LIKE)
    if not near:
        return None
    since = "" if near[0] in functions else f", from version {_since()[near[0]]} on"
    return f"{key} is no function and is taken as plain data; {near[0]} is one{since}"


@functools.cache
def _since() -> dict[str, str]:
    """Return the first HOT version of each function."""
    versions_by_name: dict[str, str] = {}
    classes = {each.features.version: each for each in versions.installed().values()}
    for version, each in sorted(classes.items()):
        if each.features.type == "hot":
            for name, value in each.features.offered.functions.items():
                if not isinstance(value, Removed):
                    versions_by_name.setdefault(name, version)
    return versions_by_name
