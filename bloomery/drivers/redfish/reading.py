"""Reads of optional documents: a missing one does not lose the others.

BMCs link to documents that they answer with 404, 405, 500 or 501, and omit or garble properties.
These functions skip such parts.  Silence, a refused login and 503 are raised, as they say nothing
of the document.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from bloomery.conductor.states import Power as PowerState

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
# What yields the path of each document that it needs, gets it (None: the BMC does not offer it),
# and returns what it read.  A task or a look fetches the documents.
Read: TypeAlias = Generator[str, Json | None, T]

LOG = logging.getLogger(__name__)

ABSENT: Final = (404, 405, 410)
NOT_OFFERED: Final = (400, *ABSENT, 500, 501)
_ODD: Final = (AttributeError, KeyError, TypeError, ValueError)
_POWER: Final = {
    "On": PowerState.ON, "PoweringOn": PowerState.ON,
    "Off": PowerState.OFF, "PoweringOff": PowerState.OFF,
}  # fmt: skip
NEXT_PAGE: Final = "Members@odata.nextLink"
_MOST_PAGES: Final = 200
_HEALTHS: Final = ("OK", "Warning", "Critical")


def power_state(system: Mapping[str, Any]) -> str | None:
    state = system.get("PowerState")
    return _POWER.get(state) if isinstance(state, str) else None


def health(system: Mapping[str, Any]) -> str | None:
    status = system.get("Status")
    told = status.get("Health") if isinstance(status, dict) else None
    return told if told in _HEALTHS else None


def optional(
    read: Callable[..., T], *source: Any, missing: tuple[int, ...] = NOT_OFFERED
) -> T | None:
    """Return what ``read`` makes of ``source``; None for what the BMC cannot show.

    ``missing``: the statuses that mean that; a 500 must come twice.  Malformed documents are
    skipped too, unless ``missing`` is ``ABSENT``.
    """
    import sushy

    for is_last in (False, True):
        try:
            return read(*source)
        except sushy.exceptions.MissingAttributeError as no:
            LOG.debug("BMC document skipped: %s", no)
            return None
        except sushy.exceptions.HTTPError as no:
            if no.status_code not in missing:
                raise
            LOG.debug("BMC document skipped: HTTP %s", no.status_code)
            if is_last or no.status_code != 500:
                return None
        except (sushy.exceptions.MalformedAttributeError, *_ODD) as odd:
            if missing == ABSENT or isinstance(odd, json.JSONDecodeError):
                raise  # an answer without JSON: a retry may help
            LOG.info("malformed BMC document skipped: %s: %s", type(odd).__name__, odd)
            return None
    return None


def each(collection: Any, missing: tuple[int, ...] = NOT_OFFERED) -> Iterator[Any]:
    """Yield the readable members of a sushy collection."""
    for path in collection.members_identities:
        member = optional(collection.get_member, path, missing=missing)
        if member is not None:
            yield member


def drives(controllers: Iterable[Any]) -> Iterator[Any]:
    """Yield the readable drives of Storage controllers."""
    for controller in controllers:
        for path in controller.drives_identities or ():
            drive = optional(controller.get_drive, path)
            if drive is not None:
                yield drive


def chassis(system: Any) -> Iterator[Any]:
    return _linked(system, "Chassis", system.root.get_chassis)


def managers(system: Any, missing: tuple[int, ...] = NOT_OFFERED) -> Iterator[Any]:
    names = ("ManagedBy", "Managers")  # some HPE BMCs have only the second
    links = system.json.get("Links") or {}
    name = next((name for name in names if links.get(name)), names[0])
    return _linked(system, name, system.root.get_manager, missing)


def _linked(
    system: Any,
    name: str,
    get: Callable[[str], Any],
    missing: tuple[int, ...] = NOT_OFFERED,
) -> Iterator[Any]:
    for link in (system.json.get("Links") or {}).get(name) or ():
        resource = optional(lambda link=link: get(link["@odata.id"]), missing=missing)
        if resource is not None:
            yield resource


# ------------------------------------------------------------ documents that sushy has no class for


def fetch(system: Any, path: str) -> Json:
    root = system.root or system  # the service root has none
    document: Json = root._conn.get_page(path).json()  # noqa: SLF001  sushy offers no other way
    return document


def run(system: Any, read: Read[T]) -> T:
    """Return what ``read`` makes of the documents of a sushy system's BMC."""
    return drive(read, lambda path: optional(fetch, system, path))


def drive(read: Read[T], get: Callable[[str], Json | None]) -> T:
    """Return what ``read`` makes of the documents that ``get`` fetches."""
    try:
        path = next(read)
        while True:
            path = read.send(get(path))
    except StopIteration as end:
        result: T = end.value
        return result


def follow(system: Any, document: Mapping[str, Any], name: str) -> Json:
    """Return the document that property ``name`` links to, whole, or {}."""
    return run(system, linked(document, name))


def members(system: Any, document: Mapping[str, Any], name: str) -> Iterator[Json]:
    """Yield the documents of the collection that property ``name`` links to."""
    for member in follow(system, document, name).get("Members") or ():
        if not isinstance(member, dict):
            continue
        is_link = set(member) == {"@odata.id"}
        content = optional(fetch, system, member["@odata.id"]) if is_link else member
        if content:
            yield content


def links(document: Any, name: str) -> list[str]:
    """Return the paths in a list of links, without what is no link."""
    values = document.get(name) if isinstance(document, dict) else None
    paths = [link.get("@odata.id") for link in values or () if isinstance(link, dict)]
    return [path for path in paths if isinstance(path, str)]


def linked(document: Mapping[str, Any], name: str) -> Read[Json]:
    """Return the document that property ``name`` links to, whole, or {}."""
    for path in links({name: [document.get(name)]}, name):
        return (yield from whole((yield path) or {}))
    return {}


def whole(document: Json) -> Read[Json]:
    """Return a collection with the members of all its pages, and any other document as it is.

    Source: DSP0266, resource collections in pages.
    """
    pages, path = [document], document.get(NEXT_PAGE)
    seen = set[object]()
    while isinstance(path, str) and path not in seen and len(pages) < _MOST_PAGES:
        seen.add(path)
        pages.append((yield path) or {})
        path = pages[-1].get(NEXT_PAGE)
    if len(pages) == 1:
        return document
    if path is not None:
        LOG.warning("the BMC's collection %s has more than %d pages, or pages in a circle: the "
                    "rest is left out", document.get("@odata.id"), len(pages))  # fmt: skip
    members = [each for page in pages for each in page.get("Members") or ()]
    return document | {"Members": members}


class Documents:
    """Cached documents that many machines share; the least recently used is dropped."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._mutex = threading.Lock()
        self._kept: OrderedDict[tuple[str | None, ...], Any] = OrderedDict()

    def get(self, key: tuple[str | None, ...], read: Callable[[], T]) -> T:
        """Return the document of ``key``, read unless cached.

        Empty documents are not cached, nor incomplete keys, which might match other machines.
        """
        kept: T | None = self.find(key)
        if kept is not None:
            return kept
        document = read()
        with self._mutex:
            if document and all(key):
                self._kept[key] = document
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return document

    def find(self, key: tuple[str | None, ...]) -> Any:
        with self._mutex:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)
