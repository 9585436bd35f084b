"""Secrets of a stack: the flow of values of hidden parameters, and the masks in their place.

    secrecy = Secrecy(stack)
    secrecy.reasons("web", "user_data")  # {("user_data", "word"): "parameter key is hidden"}
    secrecy.serialized("web", properties)  # {"user_data": "******", "size": "big"}

A part of a resource is secret if it refers to a hidden parameter, to a condition that depends on
one, or to a resource with a secret property, and so on.  A nested stack inherits the secrets of the
resource that owns it: the parameters that get a secret, or in a group all of its members.  Messages
are masked by ``template/redaction.py``, which looks for the values themselves.
"""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from bloomery import errors
from bloomery.orchestration.resources import groups
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.resources.composite import Composite, Membered
from bloomery.orchestration.resources.nested import NestedStack
from bloomery.orchestration.resources.template_stack import TemplateStack
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.dialect import Key
from bloomery.orchestration.template.entries import ResourceDefinition
from bloomery.orchestration.template.functions import base as functions
from bloomery.orchestration.template.functions.base import Function
from bloomery.orchestration.template.parameters import Parameters
from bloomery.orchestration.template.redaction import MASK, Redaction

Path: TypeAlias = tuple[str | int, ...]
Reasons: TypeAlias = Mapping[Path, str]  # why the value at a path is not shown

PROPERTIES: Final = "properties"
IN_GROUP: Final = "its group is given a secret"

# The paths of member properties in groups and chains.
OF_MEMBERS: Final = (
    ("member",), ("resource_def", "properties"), ("resource", "properties"),
    ("resource_properties",),
)  # fmt: skip
FOR_MEMBERS: Final = ("drain",)  # properties of a group that its members get by the same name


class _Tree(NamedTuple):
    """A part of a resource on one side: parsed, and as the document has it."""

    side: TemplateSide
    parsed: Any
    written: Any

    def is_map(self) -> bool:
        """Return whether both are maps and the document has every parsed key."""
        if not isinstance(self.parsed, dict) or self.written is None:
            return isinstance(self.parsed, dict)
        return isinstance(self.written, dict) and self.parsed.keys() <= self.written.keys()

    def inner(self, key: Any) -> _Tree:
        parts = (self.parsed, self.written)
        inner = (part.get(key) if isinstance(part, Mapping) else None for part in parts)
        return _Tree(self.side, *inner)


class Secrecy:
    """The secrets of one stack, or of both sides of a plan for it.

    ``parent``   secrets of the parent stack, and the resource that owns this stack
    ``sealed``   resources that keep a secret of their own, which their IDs may reveal
    ``is_plan``  judge single properties of members, and ids, as plans show them
    """

    def __init__(
        self,
        *sides: TemplateSide,
        parent: tuple[Secrecy, str] | None = None,
        sealed: Collection[str] = (),
        is_plan: bool = False,
    ) -> None:
        self._sides = sides
        self._parent = parent
        self._sealed = sealed
        self._is_plan = is_plan

    # ---------------------------------------------------------------------------- what is secret

    def reasons(self, name: str, key: str, part: str = PROPERTIES) -> Reasons:
        """Return why parts of a value are secret, by path; ``(key,)`` is all of it."""
        if self._whole:
            return {(key,): IN_GROUP}
        if part == PROPERTIES and any(key in kind.secret_properties for kind in self.kinds(name)):
            return {(key,): f"{key} is a secret"}
        if part == PROPERTIES and key in self._secret_of_members:
            return {(key,): IN_GROUP}
        return self._flows(name, key, part)

    def is_secret(self, name: str, key: str) -> bool:
        """Tell whether a property, or a part of it, is secret."""
        return bool(self.reasons(name, key))

    def hides_output(self, name: str, written: Any) -> bool:
        """Tell whether an output may reveal a secret; ``written``: as the document has it."""
        return any(
            self._reason(_Tree(side, side.outputs[name].value, written)) is not None
            for side in self._sides
            if name in side.outputs
        )

    def parameters(self) -> Collection[str]:
        """Return the parameters that are secret, and the conditions that depend on them."""
        if not self._whole:
            return self._names
        return {*self._names, *(name for side in self._sides for name in side.parameters)}

    def serialized_parameters(self, parameters: Parameters) -> dict[str, str]:
        """Return every parameter as text, for readers."""
        secret = self.parameters()
        return {name: MASK if name in secret else text for name, text in parameters.texts().items()}

    def public_parameters(self) -> Collection[str]:
        """Return the declared parameters that are not secret; of others nothing is known."""
        return self._declared.difference(self.parameters())

    def secret_names_in(self, *trees: Any) -> set[str]:
        """Return the hidden parameters and their conditions that trees may name."""
        if not self._names:
            return set()
        texts = {text for tree in trees for text in _texts(tree, self._declared)}
        return {*self._hidden} if None in texts else {*self._names}.intersection(texts)

    def _flows(self, name: str, key: str, part: str) -> Reasons:
        """Return where values of hidden parameters are in a part of a resource."""
        trees = []
        for side in self._sides:
            definitions = _definitions(side)
            definition = definitions.get(name)
            tree = _Tree(side, getattr(definition, part, None), side.written(name, part))
            if part == PROPERTIES:
                # A call in place of the whole map, or a translation rule of the kind, may put any
                # key anywhere.
                is_key_by_key = bool(definitions)
                if definition is not None:
                    kind = _kind(side, name)
                    is_map = isinstance(definition.properties, dict)
                    is_key_by_key = is_map and kind is not None and not kind.translation_rules
                whole = _Tree(side, [tree.parsed], [tree.written])
                tree = tree.inner(key) if is_key_by_key else whole
            trees.append(tree)
        return dict(self._reasons(trees, (key,)))

    def _reasons(self, trees: Sequence[_Tree], path: Path) -> Iterator[tuple[Path, str]]:
        """Yield path and reason of secrets below ``path``, as deep as all trees are plain maps."""
        trees = [each for each in trees if each.parsed is not None or each.written is not None]
        why = next(filter(None, map(self._reason, trees)), None)
        if why is None:
            return
        inside: list[tuple[Path, str]] = []
        if all(each.is_map() for each in trees):
            for key in dict.fromkeys(key for each in trees for key in each.parsed):
                inside += self._reasons([each.inner(key) for each in trees], (*path, key))
        yield from inside or [(path, why)]

    def _reason(self, tree: _Tree) -> str | None:
        """Return the reason why a tree is secret; None: it is not."""
        names = self.secret_names_in(tree.parsed, tree.written)
        if parameters := names.intersection(self._hidden):
            return f"parameter {', '.join(sorted(parameters))} is hidden"
        if names:
            return f"condition {', '.join(sorted(names))} depends on a hidden parameter"
        if not self._reached:
            return None
        resources = (each.resource for each in self._references(tree.side, tree.parsed))
        resource = next(filter(self._reached.__contains__, resources), None)
        return None if resource is None else f"resource {resource} has a secret"

    # ---------------------------------------------------------------------------------- its names

    @functools.cached_property
    def _hidden(self) -> Collection[str]:
        """Hidden parameters, and those that get a secret from the parent."""
        hidden = {name for side in self._sides for name in side.hidden}
        if self._parent is None:
            return hidden
        secrecy, owner = self._parent
        others = self._declared - hidden
        return hidden | {name for name in others if secrecy.is_secret(owner, name)}

    @functools.cached_property
    def _declared(self) -> frozenset[str]:
        declared: set[str] = set()
        for side in self._sides:
            with contextlib.suppress(errors.Failure):  # then all that were given are hidden
                declared.update(side.parameters)
        return frozenset(declared)

    @functools.cached_property
    def _names(self) -> Collection[str]:
        """Hidden parameters, and the conditions that depend on them."""
        if not self._hidden:
            return ()
        names = {*self._hidden}
        conditions = [each for side in self._sides for each in side.written_conditions().items()]
        # A condition may be named without any call.
        waiting = [(name, {*_texts({"if": body}, self._declared)}) for name, body in conditions]
        while reached := [name for name, texts in waiting if None in texts or names & texts]:
            names.update(reached)
            waiting = [each for each in waiting if each[0] not in names]
        return names

    @functools.cached_property
    def _reached(self) -> set[str]:
        """The resources that got a secret, which their attributes may reveal."""
        reached = {*self._sealed}
        users = defaultdict[str, set[str]](set)
        for side in self._sides if reached or self._names else ():
            for name, definition in _definitions(side).items():
                if self.secret_names_in(definition.properties, side.written(name, PROPERTIES)):
                    reached.add(name)
                for reference in self._references(side, definition.properties):
                    users[reference.resource].add(name)
        waiting = list(reached)
        while waiting:
            new = users[waiting.pop()] - reached
            reached |= new
            waiting += new
        return reached

    def _references(self, side: TemplateSide, tree: Any) -> Iterator[functions.Reference]:
        """Yield references that may reveal secrets.  IDs do so only in plans and nested stacks."""
        for each in functions.references(tree, side.view):
            kinds = [] if each.attribute is not None or self._is_plan else self.kinds(each.resource)
            if not kinds or any(issubclass(kind, NestedStack) for kind in kinds):
                yield each

    def kinds(self, name: str) -> list[type[Resource]]:
        """Return the kinds of a resource, without those that are no longer offered."""
        return [kind for side in self._sides if (kind := _kind(side, name)) is not None]

    # ------------------------------------------------------------------------------- nested stacks

    @functools.cached_property
    def _whole(self) -> bool:
        """Tell whether the whole stack is secret."""
        return self._parent is not None and self._parent[0].hides_child(self._parent[1])

    def hides_child(self, owner: str) -> bool:
        """Tell whether the whole stack that a resource owns is secret."""
        if self._whole or not any(owner in _definitions(side) for side in self._sides):
            return True
        kinds = self.kinds(owner)
        if kinds and all(issubclass(kind, NestedStack) for kind in kinds):
            return False
        return (
            None in self.secret_member_properties(owner)
            if self._is_plan
            else owner in self._reached
        )

    @functools.cached_property
    def _secret_of_members(self) -> Collection[str | None]:
        """The member properties that get a secret from the owner, a group."""
        if self._parent is None or not self._is_plan:
            return ()
        secrecy, owner = self._parent
        return secrecy.secret_member_properties(owner)

    def secret_member_properties(self, owner: str) -> set[str | None]:
        """Return the member properties that get a secret from a group; None stands for all.

        A nested template declares parameters, and has no such members.
        """
        kinds = [kind for kind in self.kinds(owner) if not issubclass(kind, NestedStack)]
        keys = dict.fromkeys(key for kind in kinds for key in kind.properties_schema)
        return {_property_of_member(path) for key in keys for path in self.reasons(owner, key)}

    # ----------------------------------------------------------------------------- what is shown

    def serialized(self, name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return properties of a resource for readers.

        Stars replace secret properties, and values of hidden parameters in all others.
        """
        paths = {path for kind in self.kinds(name) for path in kind.secrets_in(properties)}
        return {
            key: MASK
            if self.is_secret(name, key)
            else _starred(self._redaction.document(value), paths, (key,))
            for key, value in properties.items()
        }

    def serialized_attributes(
        self, name: str, attributes: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return attributes of a resource for readers.

        Stars replace attributes with the name of a secret property, the values of such properties
        in other attributes, and all attributes of a child stack that got a secret.
        """
        kinds = self.kinds(name)
        has_stack = not kinds or any(issubclass(kind, Composite) for kind in kinds)
        if self._whole or (has_stack and name in self._reached):
            return {key: _star(value) for key, value in attributes.items()}
        secret = {key for key in properties if self._flows(name, key, PROPERTIES)}
        redaction = self._redaction | Redaction([properties[key] for key in secret])
        return {
            key: _star(value) if key in secret else redaction.document(value)
            for key, value in attributes.items()
        }

    def serialized_template(self, document: Mapping[str, Any], version_key: str) -> dict[str, Any]:
        """Return the template of the stack for readers.

        The template of a group has the values of its members, and that of OS::Heat::Stack is a
        value itself; others are shown as they were written.
        """
        if self._parent is None:
            return dict(document)
        secrecy, owner = self._parent
        kinds = secrecy.kinds(owner)
        if any(issubclass(kind, TemplateStack) for kind in kinds):
            is_secret = secrecy.is_secret(owner, "template")
            return _masked(document, version_key) if is_secret else dict(document)
        if not any(issubclass(kind, Membered) for kind in kinds):
            return dict(document)
        members = {
            name: {**body, PROPERTIES: self.serialized(name, body[PROPERTIES])}
            if body.get(PROPERTIES)
            else body
            for name, body in groups.members_of(document).items()
        }
        return {**document, **groups.document(members)}

    def has_hidden(self, value: Any) -> bool:
        """Tell whether a value contains the value of a hidden parameter, unchanged."""
        return bool(self._redaction.document(value) != value)

    @functools.cached_property
    def _redaction(self) -> Redaction:
        return functools.reduce(Redaction.__or__, (side.redaction for side in self._sides))


# ------------------------------------------------------------------------------------- templates


def _definitions(side: TemplateSide) -> Mapping[str, ResourceDefinition]:
    try:
        return side.definitions
    except errors.Failure:  # an accepted template may not be readable any more
        return {}


def _kind(side: TemplateSide, name: str) -> type[Resource] | None:
    try:
        return side.kind(name) if name in _definitions(side) else None
    except errors.Failure:
        return None


def _texts(tree: Any, declared: Collection[str]) -> Iterator[str | None]:
    """Yield the texts in calls, which may name parameters; None: any may be meant.

    A map of one key may be a call.
    """
    waiting = [(tree, False)]
    while waiting:
        part, in_call = waiting.pop()
        if isinstance(part, Function):
            part = {part.name: part.args}
        if isinstance(part, Mapping):
            if "get_param" in part:
                args = part["get_param"]
                name = args[0] if isinstance(args, list) and args else args
                if not isinstance(name, str) or name not in declared:
                    yield None  # another call makes the name, or the call is invalid
            in_call = in_call or len(part) == 1
            waiting += [(inner, in_call) for inner in part.values()]
        elif isinstance(part, list | tuple):
            waiting += [(inner, in_call) for inner in part]
        elif in_call and isinstance(part, str):
            yield part


def _property_of_member(path: Path) -> str | None:
    """Return the member property at a path of a group; None: the path concerns all of them."""
    if path[0] in FOR_MEMBERS:
        return str(path[0])
    for prefix in OF_MEMBERS:
        if path[: len(prefix)] == prefix and len(path) > len(prefix):
            return str(path[len(prefix)])
    return None


# ----------------------------------------------------------------------------------------- values


def _star(value: Any) -> str | None:
    return None if value is None else MASK


def _starred(value: Any, paths: Collection[Path], path: Path) -> Any:
    """Return a value, which is at ``path``, with stars at those paths."""
    if path in paths:
        return MASK
    if paths and isinstance(value, dict):
        return {key: _starred(inner, paths, (*path, key)) for key, inner in value.items()}
    if paths and isinstance(value, list):
        return [_starred(inner, paths, (*path, key)) for key, inner in enumerate(value)]
    return value


def _masked(document: Mapping[str, Any], version_key: str) -> dict[str, Any]:
    """Return a template with stars for everything but names, types and the version."""
    masked: dict[str, Any] = {}
    for key, section in document.items():
        masked[key] = section if key == version_key else MASK
        if isinstance(section, Mapping):
            entries: dict[str, Any] = {}
            masked[key] = entries
            for name, body in section.items():
                entries[name] = MASK
                if isinstance(body, Mapping):
                    entries[name] = dict.fromkeys(body, MASK) | {
                        part: value for part, value in body.items() if part.lower() == Key.TYPE
                    }
    return masked
