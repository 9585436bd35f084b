"""Real BMCs on loopback, asked by the real ipmitool."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomery.api import app
from bloomery.conf import Conf
from bloomery.conf.agent import Agent as AgentOptions
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import Ipmi
from bloomery.drivers import registry
from bloomery.lab.ipmi import IpmiMachine, IpmiRack
from tests.kit.clients.documented import Client
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage

API = "http://192.0.2.1:6385"
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


@pytest.fixture
def options(tmp_path: Path) -> Conf:
    """Machines boot agents from the network."""
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).write_text(f"the {name}")
    plain = conf()
    return dataclasses.replace(
        plain,
        agent=AgentOptions(
            certificates_path=str(tmp_path / "certificates"), command_timeout=3,
            post_deploy_get_power_state_retry_interval=0,
        ),
        api=Api(public_endpoint=API, agent_networks=("127.0.0.0/8",)),
        conductor=dataclasses.replace(
            plain.conductor, deploy_kernel=f"file://{tmp_path}/kernel",
            deploy_ramdisk=f"file://{tmp_path}/ramdisk", file_url_allowed_paths=(str(tmp_path),),
        ),
        deploy=Deploy(erase_devices_priority=0, http_root=str(tmp_path / "http")),
    )  # fmt: skip


@pytest.fixture
def network_stage(make_site: Callable[..., Site], options: Conf) -> Iterator[Stage]:
    stage = Stage(make_site(registry=registry.load(options)))
    for group in ("agent", "api", "deploy"):
        stage.configure(group, **dataclasses.asdict(getattr(options, group)))
    stage.api = Client(app.make_app(stage.services))
    yield stage
    assert stage.nothing_is_left(), "a reservation is left"
