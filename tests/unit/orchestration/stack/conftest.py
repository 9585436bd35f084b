"""A simulation as that of ``bloomery template run``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.cmd.simulated_site import SimulatedSite
from bloomery.orchestration.simulation import Simulation


@pytest.fixture
def on_service(tmp_path: Path) -> Iterator[Simulation]:
    """The machines of its stacks are nodes of a conductor in this process."""
    simulation = Simulation()
    site = SimulatedSite(tmp_path, simulation.clock.now, simulation.is_live)
    with contextlib.closing(site):
        simulation.site = site
        yield simulation
