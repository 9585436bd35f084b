"""Order the new template: who requires another is made after it."""

from __future__ import annotations

from bloomery.orchestration.plan.actions import MAKE, Key
from bloomery.orchestration.plan.draft import Draft


def apply(draft: Draft) -> None:
    definitions = draft.new.definitions
    for name in definitions:
        key = Key(name, MAKE)
        for required in draft.new.required(name):
            if required in definitions:  # depends_on may name what a condition has switched off
                draft.graph.add(key, Key(required, MAKE))
