"""Every noun whose records need no code of their own beyond their rules: a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.model import chassis, deploy_template, port, portgroup, runbook, volume
from bloomery.model.noun import Noun

CHASSIS: Final = chassis.NOUN
DEPLOY_TEMPLATE: Final = deploy_template.NOUN
PORT: Final = port.NOUN
PORTGROUP: Final = portgroup.NOUN
RUNBOOK: Final = runbook.NOUN
VOLUME_CONNECTOR: Final = volume.CONNECTOR
VOLUME_TARGET: Final = volume.TARGET

BY_NAME: Final[Mapping[str, Noun]] = {
    noun.name: noun
    for noun in (
        CHASSIS,
        DEPLOY_TEMPLATE,
        PORT,
        PORTGROUP,
        RUNBOOK,
        VOLUME_CONNECTOR,
        VOLUME_TARGET,
    )
}
