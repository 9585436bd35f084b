"""A client whose command is killed at one of its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bloomery.cli.client import Client


class Cut(Exception):
    """The command was killed."""


@dataclass(slots=True)
class Changes:
    left: int  # that are let through, of all clients of a command together


class Fragile(Client):
    """Lets so many changes through, and then none."""

    def __init__(self, client: Client, changes: Changes) -> None:
        super().__init__(client.url)
        self.changes = changes

    def latest(self) -> Client:
        return self

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        if method != "GET":
            if self.changes.left == 0:
                raise Cut
            self.changes.left -= 1
        return super()._ask(method, path, body)
