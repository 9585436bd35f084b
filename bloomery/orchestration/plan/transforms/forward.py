"""Order the new template: who requires another is made after it."""

from __future__ import annotations

from bloomery.orchestration.plan.actions import MAKE, Key
from bloomery.orchestration.plan.builder import PlanBuilder


def apply(builder: PlanBuilder) -> None:
    definitions = builder.new.definitions
    for name in definitions:
        key = Key(name, MAKE)
        for required in builder.new.required(name):
            if required in definitions:  # depends_on may name what a condition has switched off
                builder.graph.add(key, Key(required, MAKE))
