"""The process dies after any commit of a machine's life with an agent, which lives on.

What was ordered is done, and no order reaches the agent twice: it is asked what it does first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import boot_files, errors
from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.conf.agent import Agent as AgentOptions
from bloomery.conf.agent import Deploy
from bloomery.db import hardware, rows
from bloomery.drivers import base
from bloomery.drivers.agent.deploy import AgentDeploy
from bloomery.drivers.agent.raid import AgentRaid
from bloomery.drivers.agent.rescue import AgentRescue
from bloomery.drivers.fake.hardware import FakeBoot
from bloomery.drivers.network_boot import IpxeBoot
from bloomery.drivers.registry import Registry
from bloomery.model.node import Node
from bloomery.outcome import Again, Outcome
from tests.invariants.test_crashes import LIFE, OTHER_VERBS, Life, assert_clean, crash_and_recover
from tests.kit.machines import images
from tests.kit.machines.agent_server import AgentServer, step
from tests.kit.machines.scripted import Script
from tests.kit.servers import site, web
from tests.kit.servers.dying import Mortal
from tests.kit.servers.stories import Stage

CREATE = [{"interface": "raid", "step": "create_configuration"}]
ORDERS = (
    OTHER_VERBS[1]._replace(args=("clean", {"steps": CREATE})),
    LIFE[1], LIFE[2],  # provide, active
)  # fmt: skip
RESCUED = OTHER_VERBS[4:6]  # rescue, unrescue
BUILT = ["boot", "clean.get_clean_steps", "clean.execute_clean_step"]
TOLD = [
    *BUILT, "boot", "clean.get_clean_steps", "clean.execute_clean_step", "poll.get_hardware_info",
    "boot", "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
    "standby.power_off",
]  # fmt: skip
TOLD_IN_RESCUE = ["boot", "rescue.finalize_rescue"]
FAST = [*TOLD[:3], *TOLD[4:7], *TOLD[8:]]  # the agent that has built RAID cleans and deploys
ONCE = ("standby.prepare_image", "image.install_bootloader")
MAC = "52:54:00:00:00:77"
MIRROR = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]}
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
    """Fake hardware whose deploy interface is ``direct``; with a folder it boots by ``ipxe``."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self.folder = folder

    def registry(self, conf: Any = None) -> Registry:
        options = AgentOptions(
            verify_ca="False", post_deploy_get_power_state_retries=0, command_timeout=3,
        )  # fmt: skip
        conf = dataclasses.replace(
            site.conf(), agent=options, deploy=Deploy(erase_devices_priority=0)
        )
        found = super().registry(conf)
        boot = (
            SlowBoot(conf) if self.folder is None
            else IpxeBoot(with_boot_files(conf, self.folder))
        )  # fmt: skip
        interfaces = found.interfaces | {
            "boot": {"fake": boot}, "deploy": {"fake": AgentDeploy(boot.conf)},
            "raid": {"fake": AgentRaid(conf)}, "rescue": {"fake": AgentRescue(conf)},
        }  # fmt: skip
        return Registry(found.types, interfaces, dict.fromkeys(interfaces))


def with_boot_files(conf: Conf, folder: Path) -> Conf:
    for name in ("kernel", "ramdisk"):
        (folder / name).touch()
    conductor = dataclasses.replace(
        conf.conductor, deploy_kernel=f"file://{folder}/kernel",
        deploy_ramdisk=f"file://{folder}/ramdisk", file_url_allowed_paths=(str(folder),),
    )  # fmt: skip
    deploy = dataclasses.replace(
        conf.deploy, http_root=str(folder / "http"), http_url="http://web.test"
    )
    pxe = dataclasses.replace(conf.pxe, instance_master_path=str(folder / "images"))
    return dataclasses.replace(conf, conductor=conductor, deploy=deploy, pxe=pxe)


class AgentLife(Life):
    def __init__(
        self,
        path: Path,
        server: AgentServer,
        folder: Path | None,
        *,
        fast: bool = False,
        instance: dict[str, Any] = INSTANCE,
    ) -> None:
        self.server, self.folder = server, folder
        super().__init__(path, Directed(folder), ORDERS if fast else ORDERS + RESCUED)
        info = rows.dump({"fast_track": fast})
        target = rows.dump(MIRROR)
        self.site.set(
            self.node, instance_info=rows.dump(instance), driver_info=info,
            target_raid_config=target,
        )  # fmt: skip
        if folder is not None:
            Stage(self.site).api.post("/v1/ports", {"node_uuid": self.node, "address": MAC})

    def token(self, node: Node) -> str | None:
        """Return the token of the agent that runs: of its script, or given by a lookup."""
        if self.folder is None and "agent_secret_token" in node.driver_internal_info:
            return self.server.token
        document = self.site.service.manager.get_node_with_token(self.site.request(), self.node)
        if self.folder is None:
            return str(document["agent_token"])
        assert document["agent_token"] == "******", "a lookup gave another token"
        script = Path(self.folder, "http", boot_files.LINKS, boot_files.ipxe_link(MAC)).read_text()
        return script.partition("ipa-agent-token=")[2].split()[0]

    def call_back(self, node: Node) -> None:
        """A machine with another token has booted its agent anew."""
        if node.provision_state not in states.WAIT_STATES or node.reservation is not None:
            return
        token = self.token(node)
        if token != self.server.token:
            self.server.boot()
            self.server.token = token
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


def whole(tmp_path: Path, server: AgentServer, **more: Any) -> int:
    """How many commits a life without a crash takes."""
    life = AgentLife(tmp_path / "whole.sqlite", server, **more)
    db = life.site.db
    assert isinstance(db, Mortal)
    began = db.commits
    for order in life.orders:
        life.obey(order)
    life.die()
    assert server.told == (FAST if more["fast"] else TOLD + TOLD_IN_RESCUE)
    return db.commits - began


@pytest.mark.timeout(400)  # some sixty lives, one after the other
@pytest.mark.parametrize("fast", [False, True], ids=["booted", "fast track"])
@pytest.mark.parametrize("boots_by", ["slow", "ipxe"])
def test_a_life_with_an_agent_goes_on_after_a_crash_at_any_commit(
    tmp_path: Path, server: AgentServer, fetched: dict[str, Any], boots_by: str, fast: bool
) -> None:
    folder, instance = (tmp_path, fetched) if boots_by == "ipxe" else (None, INSTANCE)
    more: dict[str, Any] = {"folder": folder, "instance": instance, "fast": fast}
    for lives in range(whole(tmp_path, server, **more) + 1):
        server.told.clear()
        server.commands.clear()
        life = AgentLife(tmp_path / f"{lives}.sqlite", server, **more)
        try:
            assert_clean(crash_and_recover(life, lives))
            assert life.site.node(life.node).raid_config["logical_disks"] == MIRROR["logical_disks"]
            assert server.told.count("clean.execute_clean_step") == 2, server.told
            with life.site.db.read() as conn:
                assert len(hardware.list_erasures(conn, life.node)) == 1
            for name in ONCE if fast else (*ONCE, TOLD_IN_RESCUE[1]):
                assert server.told.count(name) == 1, server.told
            assert boot_files.list_files(str(tmp_path / "http")) == []
        except AssertionError as exc:
            exc.add_note(f"the process died after commit {lives}; the agent was told {server.told}")
            raise
        finally:
            life.die()
