"""What the redfish driver makes of each make of BMC: a golden table, reviewed by eye.

    GOLDEN=write .venv/bin/python -m pytest tests/unit/drivers/redfish/test_models.py

writes the table anew, so that a change is a diff to be looked at.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.drivers.idrac import oem
from bloomery.drivers.idrac.hardware import IdracBios, IdracManagement, IdracVirtualMedia
from bloomery.drivers.network_boot import HttpBoot, HttpIpxeBoot, IpxeBoot, PxeBoot
from bloomery.drivers.redfish import boot_device, inspect, media, reading, reset
from bloomery.drivers.redfish.bios import RedfishBios
from bloomery.drivers.redfish.boot import RedfishHttps, RedfishVirtualMedia
from bloomery.drivers.redfish.firmware import RedfishFirmware
from bloomery.drivers.redfish.inspect import RedfishInspect
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.lab import models
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine, Rack
from bloomery.model.port import Port
from tests.kit.machines.driver_task import FakeTask, walk
from tests.kit.waiting import wait_for

TABLE = Path(__file__).with_name("models.txt")
BY_OPERATOR = {"memory_mb": 1024, "cpus": 1, "cpu_arch": "x86_64", "local_gb": 9}
ISO = "http://images.test/a.iso"
BOOTS = {
    "redfish-virtual-media": RedfishVirtualMedia, "redfish-https": RedfishHttps, "ipxe": IpxeBoot,
    "pxe": PxeBoot, "http-ipxe": HttpIpxeBoot, "http": HttpBoot,
}  # fmt: skip

IDRAC = "dell-idrac by the driver idrac"
SECTIONS = {model: model for model in models.ALL} | {IDRAC: "dell-idrac"}


class Bench:
    """One machine of a make, and the driver's interfaces."""

    def __init__(self, machine: Machine, conf: Any, *, idrac: bool = False) -> None:
        self.machine, self.system = machine, machine.system
        self.task = FakeTask(machine.driver_info)
        self.task.node.driver, self.conf = "redfish", conf
        self.task.driver_info["deploy_iso"] = ISO
        self.task.ports = (Port(uuid="p", address=machine.mac, node_uuid="n", pxe_enabled=True),)
        self.power = RedfishPower(conf)
        self.management = (IdracManagement if idrac else RedfishManagement)(conf)
        self.inspect, self.bios = RedfishInspect(conf), (IdracBios if idrac else RedfishBios)(conf)
        self.boot = IdracVirtualMedia(conf)
        self.task.driver = self
        self.firmware = RedfishFirmware(conf)

    def tell(self, work: Callable[[], Any]) -> str:
        """Return the outcome of ``work`` as text that is the same at every run."""
        try:
            outcome = work()
        except errors.Failure as no:
            outcome = f"{type(no).__name__}: {no}"
        text = outcome if isinstance(outcome, str) else json.dumps(outcome, sort_keys=True)
        for volatile, name in (
            (self.task.node.uuid, "NODE"), (self.machine.uuid, "UUID"),
            (self.machine.address, "BMC"),
        ):  # fmt: skip
            text = text.replace(volatile, name)
        return text

    def orders(self, target: str, *, was_on: bool) -> str:
        """Ask for a power state; return the resets that it took, and what power is then."""
        wait_for(lambda: not self.system._orders, "the machine to have settled")
        self.system._on = was_on
        self.system.history.clear()
        self.task.node.driver_internal_info.pop("redfish_power", None)
        self.task.turn = 0
        try:
            walk(self.task, lambda: self.power.set_power_state(self.task, target), most=1000)
        finally:
            wait_for(lambda: not self.system._orders, "the machine to have settled")
        resets = [what for what in self.system.happened if what.startswith("reset")]
        return f"{', '.join(resets) or 'nothing asked'}; power is {self.system.power}"

    def boots_from(self, device: str, *, persistent: bool) -> str:
        self.management.set_boot_device(self.task, device, persistent)
        shown = self.management.get_boot_device(self.task)
        boot = self.system.boot
        return f"{boot['target']}, {boot['enabled']}; reads {json.dumps(shown, sort_keys=True)}"

    def boots_url(self) -> Any:
        """Choose the URL of an ISO for each boot; return what the machine boots."""
        self.inspect.access.read(self.task, boot_device.check_uri)
        boot_device.choose(
            self.inspect.access, self.task, "uefihttp", persistent=True, address=ISO
        ).apply_now()
        self.orders("power on", was_on=False)
        booted, kept = self.system.booted, self.system.boot["enabled"]
        boot_device.choose(self.inspect.access, self.task, "disk", persistent=False).apply_now()
        return f"{booted['target']} of {booted['image']}, {kept}; then {self.system.http_uri!r}"

    def agent_by(self, name: str) -> str:
        """Boot an agent, then the disk; return what the machine has booted."""
        self.system.mode_next = "UEFI"
        boot = BOOTS[name](self.conf)
        boot.name, booted = name, []
        for prepare in (
            lambda: boot.prepare_ramdisk(self.task, {}), lambda: boot.prepare_instance(self.task),
        ):  # fmt: skip
            walk(self.task, prepare)
            self.orders("rebooting", was_on=True)
            booted.append(self.system.booted)
        agent, instance = booted
        image = f" of {agent['image']}" if agent["image"] else ""
        return f"{agent['target']}{image}; then {instance['target']}"

    def inspected(self, **properties: Any) -> Any:
        self.task.node.properties = properties
        return self.inspect.inspect_hardware(self.task).result["node"]["properties"]

    def inserted(self) -> Any:
        self.inspect.access.change(self.task, lambda system: media.insert(system, ISO))
        inserted = dict(self.system.media)
        self.inspect.access.change(self.task, media.eject)
        return {"inserted": inserted, "ejected": self.system.media}

    def settings(self) -> Any:
        done = self.bios.cache_bios_settings(self.task)
        if done is None:
            return "none"
        found = {s["name"]: s for s in done.result["bios_settings"]}
        return {"settings": len(found), "NumCores": found["NumCores"]}

    def versions(self) -> Any:
        done = self.firmware.cache_firmware_components(self.task)
        return None if done is None else done.result["firmware"]

    def mode_set(self, mode: str) -> Any:
        self.inspect.access.change(self.task, lambda system: boot_device.set_mode(system, mode))
        return self.system.mode_next

    def virtual_cd(self, *, persistent: bool) -> Any:
        """Boot twice after the virtual CD was chosen; return both devices."""
        self.boot.choose_device(self.task, "cdrom", persistent=persistent)
        booted = []
        for _ in range(2):
            self.orders("power on", was_on=False)
            booted.append(self.system.booted["target"])
        return booted

    def disk_after_cd(self) -> Any:
        self.boot.choose_device(self.task, "cdrom", persistent=True)
        self.boot.choose_device(self.task, "disk", persistent=True)
        self.orders("power on", was_on=False)
        return self.system.booted["target"]

    def settings_after_a_pending_job(self) -> Any:
        self.system.jobs, self.system.bios_next = {"BIOS"}, {"NumCores": 8}
        self.system.history.clear()
        self.task.turn = 0
        values = [{"name": "ProcTurboMode", "value": "Disabled"}]
        walk(self.task, lambda: self.bios.apply_configuration(self.task, values), most=1000)
        cleared = [what for what in self.system.happened if "job" in what]
        return [*cleared, self.system.bios["ProcTurboMode"], self.system.bios["NumCores"]]

    def inventory(self) -> Any:
        found = self.inspect.access.read(self.task, inspect.look)
        cpu = found["cpu"]
        lines = [
            f"inventory: {json.dumps(found['system_vendor'], sort_keys=True)}",
            f"  cpu: {cpu['count']} of {cpu['architecture']}",
            f"  memory: {found['memory']['physical_mb']}",
            *(f"  nic {n['name']}: {n['mac_address']}" for n in found["interfaces"]),
            *(
                f"  disk {d['name']}: {d['size']}, {d['vendor']} {d['model']}"
                for d in found["disks"]
            ),
        ]
        return "\n".join(lines)


def rows(bench: Bench) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every operation in the order of the table; "" names itself."""
    task, management = bench.task, bench.management
    yield "system id", lambda: bench.machine.system_id
    yield "vendor", lambda: management.detect_vendor(task)
    yield "health", lambda: management.get_node_health(task)
    yield "power on", lambda: bench.orders("power on", was_on=False)
    yield "power off", lambda: bench.orders("power off", was_on=True)
    yield "soft power off", lambda: bench.orders("soft power off", was_on=True)
    yield "restart", lambda: bench.orders("rebooting", was_on=True)
    yield "soft reboot", lambda: bench.orders("soft rebooting", was_on=True)
    yield "power states known then", lambda: list(bench.power.get_supported_power_states(task))
    yield "boot devices", lambda: list(management.get_supported_boot_devices(task))
    for device in boot_device.TARGETS:
        yield f"boot {device} once", lambda d=device: bench.boots_from(d, persistent=False)
    yield "boot pxe for good", lambda: bench.boots_from("pxe", persistent=True)
    yield "boot from a URL for good", bench.boots_url
    yield "boot mode", lambda: management.get_boot_mode(task)
    yield "boot modes", lambda: list(management.get_supported_boot_modes(task))
    yield "boot mode bios", lambda: bench.mode_set("bios")
    yield "secure boot", lambda: management.get_secure_boot_state(task)
    yield "", bench.inventory
    yield "inspected", bench.inspected
    yield "inspected where the operator has set all", lambda: bench.inspected(**BY_OPERATOR)
    yield "virtual media", bench.inserted
    yield "bios", bench.settings
    yield "firmware", bench.versions


def idrac_rows(bench: Bench) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What the driver idrac does otherwise, and before it all that redfish does."""
    yield from rows(bench)
    yield "virtual CD once, two boots", lambda: bench.virtual_cd(persistent=False)
    yield "virtual CD for good, two boots", lambda: bench.virtual_cd(persistent=True)
    yield "disk after a virtual CD for good", bench.disk_after_cd
    yield "BIOS settings after a pending job", bench.settings_after_a_pending_job
    yield "clear steps", lambda: [step.name for step in bench.management.steps("clean")]
    yield "verify steps", lambda: [step.name for step in bench.management.steps("verify")]


def section(name: str, conf: Any, rules: Rules | None = None) -> str:
    with Rack(1, model=SECTIONS[name], rules=rules) as rack:
        bench = Bench(rack.machines[0], conf, idrac=name == IDRAC)
        asked = idrac_rows(bench) if name == IDRAC else rows(bench)
        agents = ((f"agent by {name}", functools.partial(bench.agent_by, name)) for name in BOOTS)
        lines = [
            f"{name}{': ' if name else ''}{bench.tell(work)}"
            for name, work in itertools.chain(asked, agents)
        ]
    return "\n".join([f"== {name}", *lines, ""])


def sections(text: str) -> dict[str, str]:
    return {part.partition("\n")[0]: f"== {part}" for part in text.split("== ")[1:]}


@pytest.fixture
def conf(conf: Conf, tmp_path: Path) -> Conf:
    """With an agent's kernel and ramdisk for boots from the network."""
    (tmp_path / "file").touch()
    url = f"file://{tmp_path}/file"
    conductor = Conductor(
        deploy_kernel=url, deploy_ramdisk=url, file_url_allowed_paths=(str(tmp_path),)
    )
    return dataclasses.replace(
        conf, api=Api(public_endpoint="http://192.0.2.1:6385"), conductor=conductor,
        deploy=Deploy(http_root=str(tmp_path / "http")),
    )  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("model", SECTIONS)
def test_what_comes_out_of_each_make_is_as_in_the_table(model, conf):
    told = section(model, conf)
    before = sections(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("GOLDEN") == "write":
        before[model] = told
        TABLE.write_text("".join(before[name] for name in SECTIONS if name in before))
    assert told.splitlines() == before[model].splitlines()


@pytest.mark.sampled
@pytest.mark.parametrize("model", SECTIONS)
def test_collections_in_pages_of_one_link_change_nothing(model, conf):
    shown = section(model, conf, Rules(page_size=1))
    assert shown.splitlines() == sections(TABLE.read_text())[model].splitlines()


def test_every_make_is_in_the_table():
    assert list(sections(TABLE.read_text())) == list(SECTIONS)


def strict(read: Callable[..., Any], *source: Any, missing: Any = ()) -> Any:
    return read(*source)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("model", "module", "name", "broken"),
    [
        ("hpe-ilo6", reading, "optional", strict),
        ("dell-idrac", reading, "optional", strict),
        ("supermicro-x10", boot_device, "target_for", lambda system, device: "Cd"),
        ("openbmc-gb300", reset, "allowed_types", lambda system: None),
        ("dmtf-rackmount1", inspect, "_simple_storage", lambda system: []),
        ("hpe-ilo5", inspect, "_smart_storage", lambda system: []),
        ("dmtf-rackmount1", media, "_send_insert", lambda dev, url: dev.insert_media(url)),
        (IDRAC, oem, "attributes_path", lambda system: None),
        (IDRAC, oem, "_PENDING", ()),
    ],
)
def test_the_table_notices_a_reading_that_breaks(conf, monkeypatch, model, module, name, broken):
    monkeypatch.setattr(module, name, broken)
    assert section(model, conf) != sections(TABLE.read_text())[model]
