"""The process dies after any commit of a machine's life with an agent, which lives on.

What was ordered is done, and no order reaches the agent twice: it is asked what it does first.
Questions to its TPM may come twice: each has a challenge of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bloomery import boot_files, errors
from bloomery.conductor import states
from bloomery.conductor.periodics import boot_retries, timeouts
from bloomery.conf import Conf
from bloomery.conf.agent import Agent as AgentOptions
from bloomery.conf.agent import Deploy
from bloomery.db import hardware, rows
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import ramdisk
from bloomery.drivers.agent.bootc import BootcDeploy
from bloomery.drivers.agent.deploy import AgentDeploy, CustomAgentDeploy
from bloomery.drivers.agent.raid import AgentRaid
from bloomery.drivers.agent.rescue import AgentRescue
from bloomery.drivers.fake.hardware import FakeBoot
from bloomery.drivers.network_boot import IpxeBoot, PxeBoot
from bloomery.drivers.redfish.boot import RedfishHttps
from bloomery.drivers.registry import Registry
from bloomery.lab.rack import Rack
from bloomery.lab.tpm import SoftwareTpm
from bloomery.model.node import Node
from bloomery.model.rules import agents
from bloomery.outcome import Again, Outcome
from tests.invariants.test_crashes import (
    LIFE,
    OTHER_VERBS,
    Life,
    Order,
    assert_clean,
    crash_and_recover,
)
from tests.kit.machines import images
from tests.kit.machines.agent_server import AgentServer, step
from tests.kit.machines.scripted import Script
from tests.kit.sampling import some
from tests.kit.servers import site, web
from tests.kit.servers.dying import Mortal
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage

CREATE = [{"interface": "raid", "step": "create_configuration"}]
ORDERS = (
    OTHER_VERBS[1]._replace(args=("clean", {"steps": CREATE})),
    LIFE[1], LIFE[2],  # provide, active
)  # fmt: skip
PROOF = ["attest.identify", "attest.quote"]
RESCUED = OTHER_VERBS[4:6]  # rescue, unrescue
BURN = [{"interface": "deploy", "step": "burnin_cpu"}]
RUNNING = (
    OTHER_VERBS[3]._replace(args=("service", {"steps": BURN})),
    LIFE[4], LIFE[5],  # rebuild, deleted
)  # fmt: skip
BUILT = ["boot", "clean.get_clean_steps", "clean.execute_clean_step"]
TOLD = [
    *BUILT, "boot", "clean.get_clean_steps", "clean.execute_clean_step", "poll.get_hardware_info",
    "boot", "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
    "standby.power_off",
]  # fmt: skip
TOLD_IN_RESCUE = ["boot", "rescue.finalize_rescue"]
FAST = [*TOLD[:3], *TOLD[4:7], *TOLD[8:]]  # the agent that has built RAID cleans and deploys
TOLD_RUNNING = [
    "boot", "service.get_service_steps", "service.execute_service_step", *TOLD[7:], *TOLD[3:7],
]  # fmt: skip
TOLD_PROVED = [*TOLD[3:5], *PROOF, *TOLD[5:9], *PROOF, *TOLD[9:]]
TOLD_CONTAINER = [*TOLD[3:9], "standby.execute_bootc_install", TOLD[-1]]
ONCE = (
    "clean.execute_clean_step", "service.execute_service_step", "standby.prepare_image",
    "standby.execute_bootc_install", "image.install_bootloader", TOLD_IN_RESCUE[1],
)  # fmt: skip


class Kind(NamedTuple):
    """A life: what is ordered, by fast track or not, and what the agent is told."""

    orders: tuple[Order, ...]
    fast: bool
    told: list[str]
    lost_boots: int = 0  # each boot is lost once
    deploy: type[CustomAgentDeploy] = AgentDeploy
    proves: bool = False  # by a TPM what it has booted

    @property
    def builds_raid(self) -> bool:
        return self.orders[0] is ORDERS[0]


KINDS = {
    "booted": Kind(ORDERS + RESCUED, False, TOLD + TOLD_IN_RESCUE),
    "fast track": Kind(ORDERS, True, FAST),
    "running": Kind(RUNNING, False, TOLD_RUNNING),
    "lost boots": Kind(
        (RUNNING[0], *RESCUED, LIFE[5]), False, [*TOLD_RUNNING[:3], *TOLD_IN_RESCUE, *TOLD[3:7]], 3
    ),
    "container": Kind(ORDERS[1:], False, TOLD_CONTAINER, deploy=BootcDeploy),
    "proved": Kind(ORDERS[1:], False, TOLD_PROVED, proves=True),
}
BOOTS = {"ipxe": IpxeBoot, "pxe": PxeBoot, "redfish-https": RedfishHttps}
CELLS = (
    ("slow", "booted"), ("slow", "fast track"), ("ipxe", "booted"), ("pxe", "fast track"),
    ("redfish-https", "running"), ("ipxe", "lost boots"), ("slow", "container"),
    ("redfish-https", "proved"),
)  # fmt: skip
MAC = "52:54:00:00:00:77"
MIRROR = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]}
CONTAINER = {"image_source": "oci://images.test/os:1", "image_pull_secret": "puller:hush"}
INSTANCE = {"image_source": "http://images.test/os.raw", "image_checksum": "ab" * 32}


class SlowBoot(FakeBoot):
    """Takes two turns for everything, whichever turn it begins in."""

    def act(
        self, task: base.DriverTask, method: str, limit_s: float | None = None
    ) -> Outcome | None:
        memory = task.node.driver_internal_info
        if memory.pop("slow_boot", None) == method:
            return None
        memory["slow_boot"] = method
        return Again(after_s=0.001, reason=f"{method} takes its time")


class Directed(Script):
    """Fake hardware whose deploy interface is ``direct``, and which boots by ``boots_by``."""

    def __init__(
        self, folder: Path, boots_by: str, deploy: type[CustomAgentDeploy] = AgentDeploy
    ) -> None:
        super().__init__()
        self.folder, self.boots_by, self.deploy = folder, boots_by, deploy

    def registry(self, conf: Any = None) -> Registry:
        options = AgentOptions(
            verify_ca="False", post_deploy_get_power_state_retries=0, command_timeout=3,
            attestation_digests=str(self.folder / "digests"),
        )  # fmt: skip
        conf = dataclasses.replace(
            site.conf(), agent=options, deploy=Deploy(erase_devices_priority=0)
        )
        found = super().registry(conf)
        interface = BOOTS.get(self.boots_by)
        boot = interface(with_boot_files(conf, self.folder)) if interface else SlowBoot(conf)
        interfaces = found.interfaces | {
            "boot": {"fake": boot}, "deploy": {"fake": self.deploy(boot.conf)},
            "raid": {"fake": AgentRaid(conf)}, "rescue": {"fake": AgentRescue(conf)},
        }  # fmt: skip
        return Registry(found.types, interfaces, dict.fromkeys(interfaces))


def with_boot_files(conf: Conf, folder: Path) -> Conf:
    (folder / "file").touch()
    names = ("deploy_kernel", "deploy_ramdisk", "bootloader")
    conductor = dataclasses.replace(
        conf.conductor, file_url_allowed_paths=(str(folder),),
        **dict.fromkeys(names, f"file://{folder}/file"),
    )  # fmt: skip
    deploy = dataclasses.replace(
        conf.deploy, http_root=str(folder / "http"), http_url="http://web.test"
    )
    pxe = dataclasses.replace(conf.pxe, instance_master_path=str(folder / "images"))
    return dataclasses.replace(conf, conductor=conductor, deploy=deploy, pxe=pxe)


class AgentLife(Life):
    hardware = Directed

    def __init__(
        self, path: Path, server: AgentServer, boots_by: str, kind: Kind, bmc: Any,
        instance: dict[str, Any],
    ) -> None:  # fmt: skip
        self.server, self.http = server, str(path.parent / "http")
        self.has_files, self.lost_boots = boots_by in BOOTS, kind.lost_boots
        self.lost_token: Any = None
        proof = {} if server.tpm is None else {"attestation_ek": server.tpm.endorsement_key}
        super().__init__(path, self.hardware(path.parent, boots_by, kind.deploy), kind.orders)
        self.site.set(
            self.node, instance_info=rows.dump(instance), target_raid_config=rows.dump(MIRROR),
            driver_info=rows.dump(bmc.driver_info | {"fast_track": kind.fast} | proof),
        )  # fmt: skip
        Stage(self.site).api.post("/v1/ports", {"node_uuid": self.node, "address": MAC})

    def _begin(self, db: Any) -> Site:
        begun = super()._begin(db)
        Stage(begun).configure("pxe", boot_retry_timeout=60)
        return begun

    def loses(self, node: Node) -> bool:
        """Lose each boot once; return whether the one that the node waits for is lost."""
        info = node.driver_internal_info
        token = info.get("agent_secret_token")
        if not (agents.has_called(info) or agents.BOOT_RETRIES in info):
            self.lost_token = token
        if not self.lost_boots or token != self.lost_token:
            return False
        if ramdisk.BOOT in info.get(substeps.POSITIONS, {}):
            self.site.set(self.node, provision_updated_at=rows.now() - timedelta(seconds=90))
            boot_retries.run(self.site.runtime, timeouts.Watch())
        return True

    def token(self, node: Node) -> str | None:
        """Return the token of the agent that runs: of its boot files, or given by a lookup."""
        if not self.has_files and "agent_secret_token" in node.driver_internal_info:
            return self.server.token
        document = self.site.service.manager.get_node_with_token(self.site.request(), self.node)
        if not self.has_files:
            return str(document["agent_token"])
        assert document["agent_token"] == "******", "a lookup gave another token"
        files = (path.read_bytes() for path in boot_files.list_files(self.http))
        found = {
            match for file in files for match in re.findall(rb"ipa-agent-token=([\w-]+)", file)
        }
        [token] = found
        return str(token, "ascii")

    def call_back(self, node: Node) -> None:
        """A machine with another token has booted its agent anew."""
        if node.provision_state not in states.WAIT_STATES or node.reservation is not None:
            return
        if self.loses(node):
            return
        token = self.token(node)
        if token != self.server.token:
            self.server.boot()
            self.server.token = token
            if self.server.tpm is not None:
                [cd] = boot_files.list_files(self.http)
                self.server.tpm.boot_cd(cd.read_bytes())
        self.server.finish()
        with contextlib.suppress(errors.NodeLocked):
            self.site.agent_calls(self.node, callback_url=self.server.url)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    with AgentServer(tmp_path) as made:
        made.steps["clean"].append(step("create_configuration", interface="raid"))
        made.results["create_configuration"] = MIRROR
        yield made


@pytest.fixture
def fetched() -> Iterator[dict[str, Any]]:
    """An image that the conductor fetches and hands out."""
    with web.serving({"/os.raw": web.text(images.RAW, ETag='"1"')}) as server:
        yield {
            "image_source": server.url("/os.raw"), "image_download_source": "local",
            "image_disk_format": "raw", "image_checksum": hashlib.sha256(images.RAW).hexdigest(),
        }  # fmt: skip


def whole(life: AgentLife, kind: Kind) -> int:
    """How many commits a life without a crash takes."""
    db = life.site.db
    assert isinstance(db, Mortal)
    began = db.commits
    for order in life.orders:
        life.obey(order)
    life.die()
    assert life.server.told == kind.told
    assert count_retries(life) == kind.lost_boots
    return db.commits - began


def count_retries(life: AgentLife) -> int:
    return sum("is restarted" in entry["event"] for entry in life.site.history(life.node))


@pytest.mark.timeout(400)  # some sixty lives, one after the other
@pytest.mark.sampled
@pytest.mark.parametrize(("boots_by", "name"), CELLS)
def test_a_life_with_an_agent_goes_on_after_a_crash_at_any_commit(
    tmp_path: Path, server: AgentServer, fetched: dict[str, Any], boots_by: str, name: str
) -> None:
    kind, instance = KINDS[name], fetched if boots_by == "ipxe" else INSTANCE
    instance = CONTAINER if kind.deploy is BootcDeploy else instance
    if kind.proves:
        server.tpm = SoftwareTpm()
        (tmp_path / "digests").write_text(server.tpm.loader.hex())
    with Rack(1) as rack:
        bmc = rack.machines[0]
        more = (server, boots_by, kind, bmc, instance)
        commits = whole(AgentLife(tmp_path / "whole.sqlite", *more), kind)
        for lives in some(range(commits + 1)):
            server.told.clear()
            server.commands.clear()
            life = AgentLife(tmp_path / f"{lives}.sqlite", *more)
            try:
                assert_clean(crash_and_recover(life, lives))
                built = life.site.node(life.node).raid_config.get("logical_disks")
                assert built == (MIRROR["logical_disks"] if kind.builds_raid else None)
                with life.site.db.read() as conn:
                    assert len(hardware.list_erasures(conn, life.node)) == 1
                for order in ONCE:
                    assert server.told.count(order) == kind.told.count(order), server.told
                assert boot_files.list_files(life.http) == []
                assert count_retries(life) - kind.lost_boots in (0, 1)  # died before the retry
                assert bmc.system.http_uri == ""
            except AssertionError as exc:
                exc.add_note(f"the process died after commit {lives}; the agent: {server.told}")
                raise
            finally:
                life.die()
