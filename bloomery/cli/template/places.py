"""Locate a fault: from its path in a template to a file and line that editors open.

    located(error, "web.yaml", texts)  # web.yaml:12

The fault's path is followed through the text to the last key that exists.  A key such as
``nest<child.yaml>`` continues in that file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import yaml

from bloomery import errors, parsing
from bloomery.orchestration.stack.validation import GENERATED

IN_FILE: Final = re.compile(r"(?P<name>.+?)<(?P<file>.+)>")
PARAMETER: Final = re.compile(r"Parameter '(?P<name>[^']+)' is invalid")
WORD: Final = re.compile(r"[\w:-]*\w")
LEAST_CHARS: Final = 3  # of a word that may be a name
LINE: Final = re.compile(r"\bline (?P<line>\d+), column \d+: ")  # syntax errors
OTHERWISE: Final[Mapping[str | int, Sequence[str]]] = {  # CloudFormation's key, environments' key
    "parameters": ("Parameters", "parameter_defaults"),
    "resources": ("Resources",),
}
MERGING: Final = (errors.InvalidMergeStrategyForParam, errors.ConflictingMergeStrategyForParam)
OF_REGISTRY: Final = re.compile(r"resource_registry\.[^:]*")
UNPARSED: Final = re.compile(r"Error parsing template (?P<file>.+?): ")  # a nested template


class Place(NamedTuple):
    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


def located(error: errors.Failure, file: str, texts: Mapping[str, str]) -> Place:
    """Return the place of ``error``; ``texts``: by file."""
    if match := LINE.search(str(error)):
        nested = UNPARSED.search(str(error))
        return Place(nested["file"] if nested else file, int(match["line"]))
    path, reason = path_of(error), str(error.facts.get("reason", ""))
    for at, key in enumerate(path):
        nested = IN_FILE.fullmatch(str(key))
        if nested is None:
            continue
        if nested["file"] in texts:
            innermost = _in_nested(path[at:], reason, texts)
            if innermost is not None:
                return innermost
        elif nested["file"] == GENERATED:
            # inside of a group's member, which a file or the definition of members describes
            group = [*path[:at], nested["name"], "properties"]
            rest = list(path[at + 3 :])  # behind "resources" and the member's name
            ways = (
                ["resource_def", *rest], ["resource", *rest], ["member", *rest[1:]],
                ["resource_properties", *rest[1:]],
            )  # fmt: skip
            lines = [line_of(texts.get(file, ""), [*group, *way], reason) for way in ways]
            if line := max(filter(None, lines), default=None):
                return _in_nested(path[at + 1 :], reason, texts) or Place(file, line)
        path = [*path[:at], nested["name"]]
        break
    return place(file, path, texts, reason)


def _in_nested(path: Sequence[str | int], reason: str, texts: Mapping[str, str]) -> Place | None:
    """Return the place of a fault in the first file that its path enters, or None."""
    for at, key in enumerate(path):
        nested = IN_FILE.fullmatch(str(key))
        if nested is not None and nested["file"] in texts:
            inner = errors.StackValidationFailed(reason=reason, path=path[at + 1 :])
            place = located(inner, nested["file"], texts)
            return place if place.line is not None else None
    return None


def place(
    file: str, path: Sequence[str | int], texts: Mapping[str, str], reason: str = ""
) -> Place:
    """Return the line of ``path`` in one file, or of the word that ``reason`` names there."""
    text = texts.get(file)
    return Place(file, None if text is None else line_of(text, path, reason))


def path_of(error: errors.Failure) -> Sequence[str | int]:
    """Return the path of a fault, from the error or from its message."""
    path = list(getattr(error, "path", ()))
    if isinstance(error, errors.UserParameterMissing | errors.UnknownUserParameter):
        return [*path, "parameters", str(error.facts["key"])]
    if isinstance(error, errors.CircularDependencyException):
        return [*path, "resources", str(error.facts["cycle"]).partition(" -> ")[0]]
    if isinstance(error, errors.InvalidTemplateVersion):
        return [*path, "heat_template_version"]
    if isinstance(error, MERGING):
        return [*path, "parameter_merge_strategies", str(error.facts["param"])]
    if path:
        return path
    if match := PARAMETER.search(str(error)):
        return ["parameters", match["name"]]
    if match := OF_REGISTRY.match(str(error)):
        return match[0].split(".")
    return []


def line_of(text: str, path: Sequence[str | int], reason: str = "") -> int | None:
    """Return the line of the deepest key of ``path`` in ``text``, or None.

    A fault of a whole map names an unexpected key or its value: the first word of ``reason`` that
    is in the map is the place.
    """
    try:
        node = parsing.compose_yaml(text)
    except (yaml.YAMLError, ValueError):
        return None
    line = None
    for depth, key in enumerate(path):
        step = _step(node, key)
        if step is None and depth == 0:
            step = next(filter(None, (_step(node, name) for name in OTHERWISE.get(key, ()))), None)
        if step is None:
            break
        line, node = step
    if isinstance(node, yaml.MappingNode):
        lines = {
            str(part.value): part.start_mark.line + 1
            for entry in reversed(node.value)
            for part in entry
            if isinstance(part, yaml.ScalarNode) and len(part.value) >= LEAST_CHARS
        }
        line = next((lines[word] for word in WORD.findall(reason) if word in lines), line)
    return line


def holds(text: str, path: Sequence[str | int]) -> bool:
    """Does ``text`` have all of ``path``?"""
    try:
        node = parsing.compose_yaml(text)
    except (yaml.YAMLError, ValueError):
        return False
    for key in path:
        step = _step(node, key)
        if step is None:
            return False
        _line, node = step
    return True


def parameter_at_fault(error: errors.Failure) -> str | None:
    """Return the parameter of a fault's value, or None."""
    if isinstance(error, errors.UnknownUserParameter):
        return str(error.facts["key"])
    match = None if getattr(error, "path", ()) else PARAMETER.search(str(error))
    return match["name"] if match else None


def _step(node: yaml.Node | None, key: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        if key < len(node.value):
            return node.value[key].start_mark.line + 1, node.value[key]
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    keys = {str(name.value): (name.start_mark.line + 1, value) for name, value in node.value}
    return keys.get(str(key))
