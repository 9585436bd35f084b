"""The differences of a make of BMC from the lab's own: paths, documents, accepted values.

A request for one of its paths is mapped to the generic tree.  The answer gets its paths, and then
the model's document for the path as a JSON merge patch (RFC 7396: null removes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from bloomery.lab.refusal import missing

Json: TypeAlias = dict[str, Any]
ROOT: Final = "/redfish/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A make of BMC; ``about`` is one line for users.

    ``machine``: other values of ``Spec``.  ``per_bmc``: the machines behind one BMC.
    ``no_hosts``: systems that are no machines, first in the collection.  ``places``: generic path
    ("@" is the machine's id) to the path here.  ``documents`` by path here: patches of the generic
    ones, or whole documents.  In both, "#" is the machine's number behind its BMC.
    ``gone``: linked paths that are a 404, with all below.  ``slash``: links end in one.
    ``folds_case``: paths are case-insensitive. ``weak_etags``: ETags are W/"...", and must be sent
    without the W/.
    """

    name: str
    about: str
    machine: Mapping[str, Any] = field(default_factory=dict)
    per_bmc: int = 1
    no_hosts: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, Json] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    slash: bool = False
    folds_case: bool = False
    weak_etags: bool = False
    expands: bool = True


GENERIC: Final = Model(name="generic", about="The lab's own: everything where one expects it.")


class View:
    """A model's view of the BMC of the machines with the generic ids ``idents``."""

    def __init__(self, model: Model, idents: Sequence[str]) -> None:
        self.model = model
        self._idents = frozenset(idents)
        pairs = [
            (generic.replace("@", ident), own.replace("#", str(number)))
            for number, ident in enumerate(idents)
            for generic, own in model.places.items()
        ]
        self._documents = {
            path: document
            for number in range(len(idents))
            for path, document in _numbered(model.documents, number).items()
        }
        self._out = sorted(pairs, key=lambda pair: -len(pair[0]))
        self._in = sorted(((own, g) for g, own in pairs), key=lambda pair: -len(pair[0]))

    def generic(self, path: str) -> str:
        """Return the generic path for one of this BMC.  Raises Refusal for a missing one."""
        rest = path.removeprefix(ROOT).rstrip("/")
        if any(rest == gone or rest.startswith(f"{gone}/") for gone in self.model.gone):
            raise missing(path)
        return ROOT + _moved(rest, self._in, re.IGNORECASE if self.model.folds_case else 0)

    def own(self, path: str) -> str:
        """Return this BMC's path for a generic one."""
        moved = ROOT + _moved(path.removeprefix(ROOT), self._out)
        return f"{moved.rstrip('/')}/" if self.model.slash else moved

    def document(self, path: str, generic: Json) -> Json:
        """Return this BMC's document at ``path`` for a generic one, which is {} for none."""
        own: Json = self._linked(generic)
        if own.get("Id") in self._idents:
            own["Id"] = (ROOT + path.removeprefix(ROOT).rstrip("/")).rpartition("/")[2]
        if self.model.no_hosts and path.removeprefix(ROOT).rstrip("/") == "/Systems":
            first = [{"@odata.id": f"{ROOT}/Systems/{name}"} for name in self.model.no_hosts]
            own["Members"] = [*first, *own["Members"]]
            own["Members@odata.count"] = len(own["Members"])
        return merged(own, self.overlay(path))

    def overlay(self, path: str) -> Json:
        rest = path.removeprefix(ROOT).rstrip("/")
        if not self.model.folds_case:
            return self._documents.get(rest, {})
        patches = {where.lower(): patch for where, patch in self._documents.items()}
        return patches.get(rest.lower(), {})

    def _linked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._linked(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._linked(member) for member in value]
        is_path = isinstance(value, str) and value.startswith(f"{ROOT}/")
        return self.own(value) if is_path else value


def _numbered(value: Any, number: int) -> Any:
    """Return a value with the number in place of "#"; types and actions, which begin with it, stay.

    Names of members count as well.
    """
    if isinstance(value, Mapping):
        return {_numbered(name, number): _numbered(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbered(each, number) for each in value]
    is_numbered = isinstance(value, str) and not value.startswith("#")
    return value.replace("#", str(number)) if is_numbered else value


def _moved(path: str, places: list[tuple[str, str]], flags: int = 0) -> str:
    """Replace the longest prefix of ``path`` that is in ``places``."""
    for here, there in places:
        if re.match(f"{re.escape(here)}(?=/|$)", path, flags):
            return there + path[len(here) :]
    return path


def merged(document: Json, patch: Mapping[str, Any]) -> Json:
    """Return ``document`` with a JSON merge patch applied."""
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name, {}), dict):
            result[name] = merged(result.get(name, {}), value)
        else:
            result[name] = value
    return result
