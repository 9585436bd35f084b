"""Replace the key that seals secrets while services run.

| Stage | Key file | Setting key_id, former_key_id |
|---|---|---|
| IDLE | old | old, - |
| PREPARED: all processes can open both | old, new | old, - |
| SEALING: the new key seals, rows are re-sealed | new, old | new, old |
| IDLE | new | new, - |

File and settings tell the stage, so that a rotation goes on after a kill at any point.  The setting
changes before the file when the new key begins to seal, and after it at the end.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from bloomery import errors, key_file
from bloomery.db import sealed_values, settings
from bloomery.db.engine import Database
from bloomery.key_file import KeyFile
from bloomery.secrets import Sealer

_POLL_S: Final = 1.0


class Stage(enum.Enum):
    IDLE = enum.auto()
    PREPARED = enum.auto()
    SEALING = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """``wait`` waits a number of seconds; ``say`` takes a line for the operator."""

    db: Database
    file: KeyFile
    sealer: Sealer
    wait: Callable[[float], object]
    say: Callable[[str], None]
    on_batch: Callable[[sa.Table, int], None] = lambda table, rows: None
    batch: int = sealed_values.BATCH

    def stage(self) -> Stage:
        """Return the stage.  Raises KeyMissing if the file lacks the key that seals."""
        key_id, former = self._settings()
        self.sealer.refresh()
        ids = self.sealer.key_ids
        if key_id not in ids:
            raise errors.KeyMissing(
                key_id=key_id, path=str(self.file.path), problem=f"holds key {', '.join(ids)}"
            )
        if former:
            return Stage.SEALING if ids[0] == key_id else Stage.PREPARED
        return Stage.PREPARED if len(ids) > 1 else Stage.IDLE

    def _settings(self) -> tuple[str, str]:
        with self.db.read() as conn:
            key_id = settings.find(conn, settings.KEY_ID)
            return str(key_id), settings.find(conn, settings.FORMER_KEY_ID) or ""

    def prepare(self) -> None:
        """Append a new key to the file; processes can open with it, and seal with the old one."""
        key_file.replace(self.file.path, [*self.file.read(), key_file.new_key()])

    def begin(self) -> None:
        """Make the new key seal, in processes that start from now on and then in running ones."""
        old, new = self.file.read()[:2]
        ids = [Sealer(key).key_id for key in (old, new)]
        self.db.transact(lambda conn: _name_keys(conn, *ids))
        key_file.replace(self.file.path, [new, old])

    def finish(self, settle_s: float) -> None:
        """Seal all values anew, then remove the former key.

        ``settle_s``: the longest request, which may still write what it has sealed before.
        """
        key_id, former = self._settings()
        self.say(f"key {key_id} seals; values of key {former} are sealed anew")
        self.wait(settle_s)
        rows = self._pass(former)
        while True:  # until the flows of a pass have left nothing to the next one
            self._wait_for_flows()
            count = self._pass(former)
            rows += count
            if not count:
                break
        self.say(f"{rows} rows were sealed anew")
        key_file.replace(self.file.path, self.file.read()[:1])
        self.db.transact(_forget)
        self.say(f"key {former} is gone from {self.file.path}")

    def _pass(self, former: str) -> int:
        return sealed_values.reseal(
            self.db, self.sealer, former, on_batch=self.on_batch, batch=self.batch
        )

    def _wait_for_flows(self) -> None:
        """Wait for the flows of now: they may write values that they have read before the pass."""
        flows = self._flows()
        if flows:
            nodes = ", ".join(sorted(node for node, _ in flows)[:5])
            self.say(f"waiting for the flows of {len(flows)} locked nodes to end, such as {nodes}")
        while flows:
            self.wait(_POLL_S)
            flows &= self._flows()

    def _flows(self) -> set[tuple[str, int]]:
        with self.db.read() as conn:
            return sealed_values.flows(conn)


def _name_keys(conn: sa.Connection, former: str, new: str) -> None:
    """Store the ids of both keys, unless they are stored.  Raises RotationElsewhere."""
    stored = settings.find(conn, settings.KEY_ID), settings.find(conn, settings.FORMER_KEY_ID) or ""
    if stored not in {(former, ""), (new, former)}:
        raise errors.RotationElsewhere(key_id=stored[0])
    settings.put(conn, settings.FORMER_KEY_ID, former)
    settings.put(conn, settings.KEY_ID, new)


def _forget(conn: sa.Connection) -> None:
    """Let the settings name no former key."""
    settings.put(conn, settings.FORMER_KEY_ID, "")
