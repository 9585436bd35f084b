"""Answer a case as Bloomery does: a stack simulated in memory."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.orchestration import simulation
from bloomery.orchestration.resources import states
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import environment, parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from tests.kit.stacks.simulations import MemorySite


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Return status, error and outputs in the form of the oracle's answers."""
    try:
        result = simulation.run(_stack(case), simulation=simulation.Simulation(site=MemorySite()))
    except errors.Failure as exc:
        told = {"type": states.error_type(exc), "message": str(exc)}
        return {"id": case["id"], "status": None, "error": told, "outputs": {}}
    return {"id": case["id"], **result.document()}


def _stack(case: dict[str, Any]) -> Stack:
    document = parse.check(case["template"])
    template = versions.template_class(document)(document, case["files"])
    definition = Definition(
        template=template,
        environment=environment.Environment.of(case["environment"]),
        identity=Identity(name="c", project_id="p" * 32),
    )
    return Stack(definition)
