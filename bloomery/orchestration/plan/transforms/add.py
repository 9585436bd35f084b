"""Give every resource of the new template its vertex; until compared, it is one to create."""

from __future__ import annotations

from bloomery.orchestration.plan.actions import MAKE, Action, Key, Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.template.definitions import ResourceDefinition


def apply(builder: PlanBuilder) -> None:
    for name, definition in builder.new.definitions.items():
        verb, reason = _verb(builder, definition)
        builder.put(
            Key(name, MAKE),
            Action(verb=verb, type=definition.type, reason=reason, definition=definition),
        )


def _verb(builder: PlanBuilder, definition: ResourceDefinition) -> tuple[Verb, str]:
    if definition.external_id is not None:
        return Verb.ADOPT, "external_id: it is there already and stays another's"
    if builder.rollback:
        return Verb.RECREATE, "it is gone"
    return Verb.CREATE, ""
