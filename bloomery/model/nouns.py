"""The nouns whose records need no code beyond their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.model import (
    allocation,
    chassis,
    deploy_template,
    inspection_rule,
    port,
    portgroup,
    runbook,
    volume,
)
from bloomery.model.noun import Noun

ALLOCATION: Final = allocation.NOUN
CHASSIS: Final = chassis.NOUN
DEPLOY_TEMPLATE: Final = deploy_template.NOUN
INSPECTION_RULE: Final = inspection_rule.NOUN
PORT: Final = port.NOUN
PORTGROUP: Final = portgroup.NOUN
RUNBOOK: Final = runbook.NOUN
VOLUME_CONNECTOR: Final = volume.CONNECTOR
VOLUME_TARGET: Final = volume.TARGET

BY_NAME: Final[Mapping[str, Noun]] = {
    noun.name: noun
    for noun in (
        ALLOCATION,
        CHASSIS,
        DEPLOY_TEMPLATE,
        INSPECTION_RULE,
        PORT,
        PORTGROUP,
        RUNBOOK,
        VOLUME_CONNECTOR,
        VOLUME_TARGET,
    )
}
