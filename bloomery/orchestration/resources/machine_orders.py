"""Orders for single machines of a stack, which updates carry out: another machine, or a rebuild.

    order = ResourceOrder(resource=uuid, action=REPLACE, reason="fans fail", quarantine=True)
    mark(record, order)  # the next plan replaces the resource

A marked resource is CHECK_FAILED.  Plans and traversals read the marks as those of a client that
found the machine unhealthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from bloomery.model.stacks import MARKED_UNHEALTHY, Action, Status, StoredResource

REPLACE: Final = "replace"
REBUILD: Final = "rebuild"
REBUILT: Final = "rebuild_ordered"  # keys of the data of a resource
ANOTHER: Final = "another_machine"  # its successor must not get the same machine
QUARANTINED: Final = "quarantine"  # the reason for which its node leaves the pool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOrder:
    """``resource``: its UUID.  ``quarantine``: the old machine of a replacement leaves the pool."""

    resource: str
    action: str
    reason: str
    quarantine: bool = False

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def list_of(cls, payload: Mapping[str, Any]) -> list[ResourceOrder]:
        return [cls(**each) for each in payload.get("resources") or ()]

    def flags(self) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values that the order sets in the data of its resource."""
        if self.action == REBUILD:
            yield REBUILT, True
            return
        yield MARKED_UNHEALTHY, True
        yield ANOTHER, True
        if self.quarantine:
            yield QUARANTINED, self.reason


def mark(record: StoredResource, order: ResourceOrder) -> None:
    """Change a resource that is not at work, so that the next update carries out the order."""
    clear(record)
    record.data.update(order.flags())
    record.action, record.status, record.reason = Action.CHECK, Status.FAILED, order.reason


def clear(record: StoredResource) -> None:
    """Forget orders: they were carried out, or the resource stays after all."""
    for key in (MARKED_UNHEALTHY, ANOTHER, REBUILT, QUARANTINED):
        record.data.pop(key, None)
