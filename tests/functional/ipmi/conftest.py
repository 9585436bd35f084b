"""Real BMCs on loopback, asked by the real ipmitool."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.ipmi import Ipmi
from bloomery.drivers import registry
from bloomery.lab.ipmi import IpmiMachine, IpmiRack
from tests.kit.servers.stories import Stage

PACKAGES = {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"}


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    """Skip where they are missing, but not where continuous integration counts on them."""
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if missing:
        told = f"needs the Debian packages {', '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)


@pytest.fixture
def machine(programs, tmp_path) -> Iterator[IpmiMachine]:
    with IpmiRack(tmp_path / "rack", nodes=1) as rack:
        yield rack.machines[0]


def conf(**ipmi: object) -> Conf:
    """Only IPMI, without gaps; a BMC that is mute is given up soon."""
    said = {"min_command_interval": 0, "command_retry_timeout": 3} | ipmi
    return dataclasses.replace(
        Conf(),
        default=Default(enabled_hardware_types=("ipmi",)),
        conductor=Conductor(power_state_change_timeout=3),
        ipmi=Ipmi(**said),
    )


@pytest.fixture
def make_stage(make_site) -> Iterator[Callable[..., Stage]]:
    """Make stages that serve IPMI; options of [ipmi] are given."""
    made: list[Stage] = []

    def make(**ipmi: object) -> Stage:
        stage = Stage(make_site(registry=registry.load(conf(**ipmi))))
        made.append(stage)
        return stage

    yield make
    for stage in made:
        assert stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def stage(make_stage) -> Stage:
    return make_stage()


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path
