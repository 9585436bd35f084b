"""Stories: requests that a client sends one after the other, the same to Ironic and to Bloomery.

A script gives each object the UUID that it asks for, so that most requests need nothing of the
answers before them.  Where the server chooses an id, ``bind`` names it, and ``{name}`` in a later
path or body stands for it.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Version: TypeAlias = int | str | None
NEWEST: Final = 115
CREATIONS: Final = frozenset({
    "/nodes", "/ports", "/portgroups", "/chassis", "/volume/connectors", "/volume/targets",
    "/deploy_templates", "/runbooks", "/inspection_rules", "/allocations",
})  # fmt: skip
MISSING: Final = object()  # no body at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``version``: the text of the version header, None for none.  ``raw``: the body as it is."""

    method: str
    path: str
    body: Any = MISSING
    raw: bytes | None = None
    version: str | None = f"1.{NEWEST}"
    headers: Mapping[str, str] = field(default_factory=dict)
    bind: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    name: str
    calls: Sequence[Call]


class Script:
    """Collects the calls of one story; its lots come from the seed and its name alone."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.lots = random.Random(f"{seed} {name}")
        self.calls: list[Call] = []

    def story(self) -> Story:
        return Story(self.name, tuple(self.calls))

    # -- what is asked -----------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        path: str,
        body: Any = MISSING,
        at: Version = NEWEST,
        **more: Any,
    ) -> None:
        """``at``: the minor version, or the text of the header, or None for no header.

        ``path`` is that below /v1, or with two slashes more the whole path.
        """
        version = f"1.{at}" if isinstance(at, int) else at
        path = path.removeprefix("//") if path.startswith("///") else f"/v1{path}"
        self.calls.append(Call(method=method, path=path, body=body, version=version, **more))

    def get(self, path: str, at: Version = NEWEST, **more: Any) -> None:
        self.ask("GET", path, at=at, **more)

    def post(self, path: str, body: Any = MISSING, at: Version = NEWEST, **m: Any) -> None:
        """A creation asks for an id, so that one that is refused does not shift those after it."""
        if isinstance(body, dict) and path in CREATIONS and "uuid" not in body:
            body = {"uuid": self.uuid()} | body
        self.ask("POST", path, body, at, **m)

    def put(self, path: str, body: Any = MISSING, at: Version = NEWEST, **m: Any) -> None:
        self.ask("PUT", path, body, at, **m)

    def patch(self, path: str, body: Any = MISSING, at: Version = NEWEST) -> None:
        self.ask("PATCH", path, body, at)

    def delete(self, path: str, at: Version = NEWEST) -> None:
        self.ask("DELETE", path, at=at)

    # -- what stories begin with -------------------------------------------------------------------

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.lots.getrandbits(128), version=4))

    def mac(self) -> str:
        return "52:54:00:" + ":".join(f"{self.lots.getrandbits(8):02x}" for _ in range(3))

    def node(self, state: str = "enroll", **values: Any) -> str:
        """Enrol a node and lead it to ``state``; return its UUID."""
        ident = values.pop("uuid", None) or self.uuid()
        self.post("/nodes", {"driver": "fake-hardware", "uuid": ident} | values)
        for target in WAYS[state]:
            self.provision(ident, target)
        return ident

    def provision(self, node: str, target: Any, at: Version = NEWEST, **arguments: Any) -> None:
        self.put(f"/nodes/{node}/states/provision", {"target": target} | arguments, at)

    def change(self, path: str, operation: str, member: str, *value: Any, at: int = NEWEST) -> None:
        """Send a patch of one operation."""
        patch = {"op": operation, "path": member}
        if value:
            patch["value"] = value[0]
        self.patch(path, [patch], at)


WAYS: Final[Mapping[str, Sequence[str]]] = {
    "enroll": (),
    "manageable": ("manage",),
    "available": ("manage", "provide"),
    "active": ("manage", "provide", "active"),
    "adopted": ("manage", "adopt"),
}
