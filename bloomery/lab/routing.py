"""The routes of the Redfish tree.

    @route("GET", "/Systems/*")
    def system(bmc: Bmc, ask: Ask, ident: str) -> Answer: ...

Each ``*`` is an argument.  An answer is a document, or a Reply with its own status.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.model import View
from bloomery.lab.refusal import Refusal, missing

Json: TypeAlias = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])
HEALTHY: Final = {"State": "Enabled", "Health": "OK"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request; ``stuck``: power requests have no effect.  ``query``: its last values."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    stuck: bool = False


class Reply(NamedTuple):
    status: int
    document: Json | None = None
    headers: Mapping[str, str] = {}


Answer: TypeAlias = "Json | Reply"
NO_CONTENT: Final = Reply(204)


class _Route(NamedTuple):
    methods: frozenset[str]
    pattern: re.Pattern[str]
    folded: re.Pattern[str]  # case-insensitive
    serve: Callable[..., Answer]


_ROUTES: dict[int, list[_Route]] = {}  # by the number of slashes in their paths


def route(methods: str, pattern: str) -> Callable[[F], F]:
    """Serve ``pattern`` by the decorated function; ``methods`` is "GET|POST"."""
    text = f"{pattern.replace('*', '([^/]+)')}/?"
    compiled = re.compile(text), re.compile(text, re.IGNORECASE)

    def take(serve: F) -> F:
        new = _Route(frozenset(methods.split("|")), *compiled, serve)
        _ROUTES.setdefault(pattern.count("/"), []).append(new)
        return serve

    return take


def route_lists(*rows: tuple[str, str, Callable[[Any], Iterable[str]]]) -> None:
    """Serve lists, each by its pattern, the kind of its members, and a function of their names.

    The function gets the machine that the pattern's ``*`` names, or the BMC without one.
    """
    for pattern, kind, names in rows:
        route("GET", pattern)(functools.partial(_list, pattern, kind, names))


def _list(
    pattern: str, kind: str, names: Callable[[Any], Iterable[str]], bmc: SimulatedBmc, ask: Ask,
    *idents: str,
) -> Answer:  # fmt: skip
    members = names(bmc.system(idents[0]) if idents else bmc)
    return collection(pattern.replace("*", "".join(idents)), kind, list(members))


def serve(bmc: SimulatedBmc, ask: Ask) -> Reply:
    """Answer one request as this make of BMC.

    Raises Refusal: 404, 405, or the resource's own.
    """
    reply = _serve_generic(bmc, ask) if bmc.view is None else _serve_as_made(bmc, bmc.view, ask)
    return _page(reply, ask, bmc.rules.page_size) if bmc.rules.page_size else reply


def _serve_as_made(bmc: SimulatedBmc, view: View, ask: Ask) -> Reply:
    if not ask.path.startswith(ROOT):
        raise missing(ask.path)
    overlay = view.overlay(ask.path)
    generic = dataclasses.replace(ask, path=view.generic(ask.path))
    try:
        reply = _serve_generic(bmc, generic)
    except Refusal as no:
        if no.status != 404 or not overlay or ask.method not in ("GET", "HEAD"):
            raise
        reply = Reply(200, {"@odata.id": ask.path})
    if reply.document is None:
        return reply
    return reply._replace(document=view.document(ask.path, reply.document))


def _page(reply: Reply, ask: Ask, size: int) -> Reply:
    """Show ``size`` links of a collection, from ``$skip`` on, and where the next page is."""
    document = reply.document or {}
    links = document.get("Members")
    if not isinstance(links, list) or any(set(link) != {"@odata.id"} for link in links):
        return reply
    end = (start := int(ask.query.get("$skip", 0))) + size
    following = {"Members@odata.nextLink": f"{ask.path}?$skip={end}"} if end < len(links) else {}
    return reply._replace(document=document | {"Members": links[start:end]} | following)


def _serve_generic(bmc: SimulatedBmc, ask: Ask) -> Reply:
    method = "GET" if ask.method == "HEAD" else ask.method
    rest = ask.path.removeprefix(ROOT)
    folds = bmc.view is not None and bmc.view.model.folds_case
    routes = _ROUTES.get(rest.rstrip("/").count("/"), ())
    here = [(r, m) for r in routes if (m := (r.folded if folds else r.pattern).fullmatch(rest))]
    if not here or not ask.path.startswith(ROOT):
        raise missing(ask.path)
    for route_, match in here:
        if method in route_.methods:
            answer = route_.serve(bmc, ask, *map(urllib.parse.unquote, match.groups()))
            if isinstance(answer, Reply):
                return answer
            return Reply(200, {"@odata.id": ask.path} | answer)
    allowed = ", ".join(sorted(set().union(*(route_.methods for route_, _ in here))))
    raise Refusal(
        405, f"{method} is not supported at {ask.path}", "OperationNotAllowed", {"Allow": allowed},
    )  # fmt: skip


def expanded(bmc: SimulatedBmc, reply: Reply) -> Reply:
    """Replace the references in a document by their documents, one level deep.

    Links and unreadable references stay.  Source: DSP0266, $expand=.($levels=1).
    """
    document = {
        name: value if name == "Links" or "@" in name else _fetched(bmc, value)
        for name, value in (reply.document or {}).items()
    }
    return reply._replace(document=document)


def _fetched(bmc: SimulatedBmc, value: Any) -> Any:
    if isinstance(value, list):
        return [_fetched(bmc, item) for item in value]
    if not isinstance(value, dict) or list(value) != ["@odata.id"]:
        return value
    try:
        return serve(bmc, Ask(method="GET", path=value["@odata.id"])).document
    except Refusal:
        return value


# ----------------------------------------------------------------------- parts of documents


def ref(path: str) -> Json:
    return {"@odata.id": ROOT + path}


def collection(path: str, kind: str, members: Sequence[str]) -> Json:
    return {
        "@odata.id": ROOT + path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members@odata.count": len(members),
        "Members": [ref(f"{path}/{member}") for member in members],
    }


def actions(path: str, **offered: Json) -> Json:
    """Return the Actions of a resource: {"ComputerSystem_Reset": {more}} names its target."""
    return {
        f"#{name.replace('_', '.')}": {
            "target": f"{ROOT}{path}/Actions/{name.replace('_', '.')}",
            **more,
        }
        for name, more in offered.items()
    }


def stamp(seconds: float, offset: str = "+00:00") -> str:
    """Return a time to the second, in the zone of this offset."""
    zone = datetime.fromisoformat(f"2000-01-01T00:00:00{offset}").tzinfo
    return datetime.fromtimestamp(int(seconds), zone).isoformat()


def item(items: Sequence[Any], index: str) -> Any:
    """Return the item with this index, a string from a path."""
    if not re.fullmatch("[0-9]{1,4}", index) or int(index) >= len(items):
        raise missing(index)
    return items[int(index)]
