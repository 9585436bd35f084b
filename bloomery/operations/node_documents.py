"""A node as clients see it: what its version knows, with links, the conductor and old names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from bloomery.conductor.states import State
from bloomery.model import node as model
from bloomery.operations import documents, links
from bloomery.operations.context import Context

AVAILABLE_SINCE: Final = 2  # before, a node that waits for a user had no state
INSPECT_WAIT_SINCE: Final = 39
PARTS: Final = (
    ("ports", 1),
    ("states", 14),
)  # what is below a node and linked, since which version
NEVER_ASKED: Final = frozenset({"created_at", "updated_at"})  # not to be named in ``fields``
DEFAULT: Final = (
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
    "uuid",
    "name",
)

PLACE: Final = ("uuid", "driver", "conductor_group")  # what tells a node's conductor
_SHAPES: Final = documents.Projections(model.FIELDS, "uuid")
_PLACED: Final = documents.Projections(model.FIELDS, *PLACE)


class Serializer:
    """Turns rows of one answer into documents; read by ``columns``.

    ``placed``: the columns hold what tells a node's conductor, whether it is shown or not.
    """

    def __init__(
        self,
        ctx: Context,
        asked: Iterable[str] | None,
        *,
        parts: bool = False,
        placed: bool = False,
    ) -> None:
        shows_conductor = asked is None or "conductor" in asked
        shapes = _PLACED if placed or shows_conductor else _SHAPES
        self._shape = shapes.of(ctx.version, asked)
        names = self._shape.names
        self._translates_states = "provision_state" in names and ctx.version < INSPECT_WAIT_SINCE
        self._shows_traits, self._shows_conductor = "traits" in names, "conductor" in names
        self._version = ctx.version
        self._ring = ctx.services.rpc.ring
        self._link = links.Maker(ctx.url, "nodes")
        self._parts = _parts(ctx) if parts else ()
        self.columns = self._shape.columns

    def write(self, row: Sequence[Any]) -> dict[str, Any]:
        """Return the document of one row."""
        found = self._shape.values(row)
        uuid = found["uuid"]
        if self._translates_states:
            found["provision_state"] = shown_state(found["provision_state"], self._version)
        if self._shows_traits:
            joined = found["traits"]
            found["traits"] = sorted(joined.split(",")) if joined else []
        if self._shows_conductor:
            found["conductor"] = self._ring.find_host(
                driver=found["driver"],
                group=found["conductor_group"],
                uuid=uuid,
            )
        found["links"] = self._link(uuid)
        for name, link in self._parts:
            found[name] = link(uuid)
        return self._shape.finish(found)


def _parts(ctx: Context) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple(
        (name, links.Maker(ctx.url, "nodes", f"/{name}"))
        for name, since in PARTS
        if ctx.version >= since
    )


def shown_state(state: str | None, version: int) -> str | None:
    """Return a provision state as a client of ``version`` knows it."""
    if state == State.AVAILABLE and version < AVAILABLE_SINCE:
        return None
    if state == State.INSPECTWAIT and version < INSPECT_WAIT_SINCE:
        return State.INSPECTING.value
    return state


def check_fields(ctx: Context, asked: Iterable[str]) -> None:
    """Refuse fields that a client may not name, or not yet."""
    documents.check_fields(asked, model.FIELDS, ctx.version, never=NEVER_ASKED)
