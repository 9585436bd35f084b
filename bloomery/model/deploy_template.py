"""A deploy template: steps for deployments of instances with its trait."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery import errors
from bloomery.model.fields import Field, FieldTable, table
from bloomery.model.noun import Noun
from bloomery.model.rules import nodes, steps

Json = dict[str, Any]
SINCE: Final = 55


@dataclass(slots=True, kw_only=True)
class DeployTemplate:
    """``name``: the trait; ``steps``: {interface, step, args, priority}, secrets of args sealed."""

    uuid: str
    name: str
    steps: list[Json]
    id: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


_STEPS: Final = steps.some(steps.DEPLOY_SCHEMA)
FIELDS: Final[FieldTable] = table(
    Field("uuid", "uuid", access="C", nullable=False),
    Field("name", "text", access="RW", limit=255, least=1, nullable=False, form=nodes.TRAIT),
    Field("steps", "list", access="RW", secret=True, nullable=False, form=_STEPS),
    Field("extra", "object", access="RW"),
    Field("created_at", "time"),
    Field("updated_at", "time"),
)


def name(text: str) -> str:
    nodes.check_trait(text)
    return text


NOUN: Final = Noun(
    name="deploytemplate",
    plural="deploy_templates",
    policy="deploy_template",
    value=DeployTemplate,
    table="deploy_templates",
    fields=FIELDS,
    listed=("uuid", "name"),
    since=SINCE,
    missing=lambda ident: errors.DeployTemplateNotFound(template=ident),
    taken={
        "uuid": lambda uuid: errors.DeployTemplateAlreadyExists(uuid=uuid),
        "name": lambda name: errors.DeployTemplateDuplicateName(name=name),
    },
    required=("name", "steps"),
    kept=frozenset({"name", "steps"}),
    rules={
        "name": name,
        "steps": lambda raw_steps: steps.stored(steps.DEPLOY, raw_steps, "priority"),
    },
)
