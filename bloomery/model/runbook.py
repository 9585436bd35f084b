"""A runbook: named steps for clean and service, on nodes of its traits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import NAME, Field, FieldTable, table
from bloomery.model.noun import Noun
from bloomery.model.rules import idents, patches, steps

Json = dict[str, Any]
SINCE: Final = 92
TRAITS_SINCE: Final = 112  # also of descriptions, and of names that are no traits


@dataclass(slots=True, kw_only=True)
class Runbook:
    """``steps``: {interface, step, order, args}, secrets of args sealed.

    ``owner``: a project; a ``public`` runbook has none, and every project may read and use it.
    """

    uuid: str
    name: str
    steps: list[Json]
    id: int = 0
    description: str | None = None
    disable_ramdisk: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    public: bool = False
    owner: str | None = None
    traits: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    updated_at: datetime | None = None


_STEPS: Final = steps.some(steps.RUNBOOK_SCHEMA)
FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("name", "text", access="RW", limit=255, least=1, nullable=False, form=NAME),
    Field("description", "text", since=TRAITS_SINCE, access="RW", limit=255),
    Field("steps", "list", access="RW", secret=True, nullable=False, form=_STEPS),
    Field("disable_ramdisk", "bool", access="RW", strict=True),
    Field("extra", "object", access="RW"),
    Field("public", "bool", access="RW", strict=True),
    Field("owner", "text", access="RW", limit=255),
    Field("traits", "list", since=TRAITS_SINCE, access="P"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


def name(text: str) -> str:
    if not idents.is_logical_name(text):
        raise errors.InvalidName(
            reason=f"cannot name a runbook {text!r}: a name has letters, digits or -._~",
        )
    return text


def _steps(raw_steps: list[Json]) -> list[Json]:
    stored = steps.stored(steps.RUNBOOK, raw_steps, "order")
    return [{"args": {}} | step for step in stored]


def check_patch(_row: Any, patch: patches.Patch, _waived: Collection[str]) -> None:
    """Refuse traits, which have a resource of their own."""
    for each in patch:
        if patches.root_of(each) == "traits":
            raise errors.PatchError(
                patch=each["path"], reason="traits are set at /v1/runbooks/<ident>/traits"
            )


NOUN: Final = Noun(
    name="runbook",
    plural="runbooks",
    value=Runbook,
    table="runbooks",
    fields=FIELDS,
    listed=("uuid", "name"),
    since=SINCE,
    missing=lambda ident: errors.RunbookNotFound(runbook=ident),
    taken={
        "uuid": lambda uuid: errors.RunbookAlreadyExists(uuid=uuid),
        "name": lambda name: errors.RunbookDuplicateName(name=name),
    },
    required=("name", "steps"),
    kept=frozenset({"name", "steps"}),
    rules={"name": name, "steps": _steps},
    check_patch=check_patch,
)
