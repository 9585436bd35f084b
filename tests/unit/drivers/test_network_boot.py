"""Boot interfaces of the network alone: what they publish, and what they tell the BMC."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy, Pxe
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.drivers.agent_boot.cache import BeingFetched
from bloomery.drivers.network_boot import HttpBoot, HttpIpxeBoot, IpxeBoot, NetworkBoot, PxeBoot
from bloomery.model.port import Port
from bloomery.outcome import Again
from tests.kit.machines import programs
from tests.kit.machines.driver_task import FakeTask, walk

MACS = ["52:54:00:00:00:0A", "52:54:00:00:00:0b"]


class Management:
    """Notes what it is told; ``modes`` None: it cannot set any."""

    def __init__(self, *devices: str, modes: tuple[str, ...] | None = None) -> None:
        self.devices, self.modes, self.told = devices, modes, list[Any]()

    def get_supported_boot_devices(self, _task: Any) -> tuple[str, ...]:
        return self.devices

    def set_boot_device(self, _task: Any, device: str, persistent: bool) -> None:
        self.told.append((device, persistent))

    def get_supported_boot_modes(self, _task: Any) -> tuple[str, ...]:
        if self.modes is None:
            raise errors.UnsupportedDriverExtension(driver="x", extension="y")
        return self.modes

    def set_boot_mode(self, _task: Any, mode: str) -> None:
        self.told.append(mode)

    def get_secure_boot_state(self, _task: Any) -> bool:
        return False

    def set_secure_boot_state(self, _task: Any, on: bool) -> None:
        self.told.append({"secure": on})


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    return Conf(
        api=Api(public_endpoint="http://localhost:6385/v1"),
        pxe=Pxe(kernel_append_params="quiet"),
        conductor=Conductor(
            deploy_kernel=f"file://{tmp_path}/kernel", deploy_ramdisk=f"file://{tmp_path}/ramdisk",
            file_url_allowed_paths=(str(tmp_path),),
        ),
        deploy=Deploy(http_root=str(tmp_path / "http")),
    )  # fmt: skip


def task_of(management: Management, info: Any = None, **values: Any) -> Any:
    task: Any = FakeTask(info or {}, **values)
    task.ports = [Port(uuid=mac, address=mac, node_uuid="x", pxe_enabled=True) for mac in MACS]
    task.ports.append(Port(uuid="z", address="52:54:00:00:00:ff", node_uuid="x", pxe_enabled=False))
    task.driver = SimpleNamespace(management=management)
    return task


def files(conf: Conf) -> dict[str, str]:
    """What is below http_root, by name; links are followed."""
    root = Path(str(conf.deploy.http_root))
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def published(conf: Conf, task: Any) -> str:
    """Prepare the ramdisk; return the script of the first port."""
    walk(task, lambda: IpxeBoot(conf).prepare_ramdisk(task, {"ipa-api-url": "http://api"}))
    return files(conf)["pxelinux.cfg/52-54-00-00-00-0a"]


def test_each_port_that_boots_leads_to_the_same_script(conf: Conf) -> None:
    task = task_of(Management("pxe", "disk"))
    script = published(conf, task)
    below = files(conf)
    assert [name for name in below if name.startswith("pxelinux.cfg")].__len__() == 2
    assert below["pxelinux.cfg/52-54-00-00-00-0b"] == script
    assert "chain" in below["boot.ipxe"]
    kernel, ramdisk = script.splitlines()[1:3]
    words = kernel.split()
    assert words[2:] == [
        "quiet", "ipa-api-url=http://api", "ipa-agent-token=a-token", "initrd=ramdisk",
        "BOOTIF=01-${mac:hexhyp}",
    ]  # fmt: skip
    for url, content in ((words[1], "kernel"), (ramdisk.split()[-1], "ramdisk")):
        assert below[url.removeprefix("http://localhost:6385/")] == content * 1000


@pytest.mark.parametrize("interface", [IpxeBoot, PxeBoot])
def test_a_kernel_of_another_architecture_reaches_no_machine(
    conf: Conf, tmp_path: Path, interface: type[NetworkBoot]
) -> None:
    (tmp_path / "kernel").write_bytes(programs.efi_program("x86_64"))
    task = task_of(Management("pxe"), properties={"cpu_arch": "aarch64"})
    with pytest.raises(errors.StepFailure, match="is for x86_64, and properties/cpu_arch is aarch"):
        walk(task, lambda: interface(conf).prepare_ramdisk(task, {}))
    assert not [name for name in files(conf) if name.startswith(("boot-files", "pxelinux"))]


def test_a_machine_of_arm_has_no_boot_mode_bios(conf: Conf) -> None:
    properties = {"cpu_arch": "arm64", "capabilities": "boot_mode:bios"}
    with pytest.raises(errors.InvalidParameterValue, match="aarch64, whose machines boot in mode"):
        IpxeBoot(conf).validate_ramdisk(task_of(Management("pxe"), properties=properties))
    properties["capabilities"] = "boot_mode:uefi"
    IpxeBoot(conf).validate_ramdisk(task_of(Management("pxe"), properties=properties))


def test_unknown_machines_find_the_fallback_before_any_agent_boots(conf: Conf) -> None:
    IpxeBoot(conf)
    assert files(conf) == {}
    fallback = Pxe(ipxe_fallback_script="http://web.test/discover.ipxe")
    IpxeBoot(dataclasses.replace(conf, pxe=fallback))
    assert "chain --timeout 60000 http://web.test/discover.ipxe" in files(conf)["boot.ipxe"]
    IpxeBoot(conf)
    assert "discover.ipxe" not in files(conf)["boot.ipxe"], "the option is taken back"


def test_a_fallback_that_cannot_be_offered_is_refused_at_start(conf: Conf, tmp_path: Path) -> None:
    for script, reason in (("discover.ipxe", "http_url"), ("http://web.test/x", "cannot write")):
        (tmp_path / "http").touch()
        with pytest.raises(errors.CannotStart, match=reason):
            IpxeBoot(dataclasses.replace(conf, pxe=Pxe(ipxe_fallback_script=script)))
    PxeBoot(dataclasses.replace(conf, pxe=Pxe(ipxe_fallback_script="discover.ipxe")))


def test_a_web_server_of_another_user_may_read_it(conf: Conf) -> None:
    usual = os.umask(0o077)
    try:
        published(conf, task_of(Management("pxe")))
    finally:
        os.umask(usual)
    root = Path(str(conf.deploy.http_root))
    assert {root.joinpath(name).stat().st_mode & 0o777 for name in files(conf)} == {0o644}


def test_the_network_is_booted_once_and_the_disk_for_good(conf: Conf) -> None:
    management = Management("pxe", "disk")
    task = task_of(management)
    published(conf, task)
    assert management.told == [("pxe", False)]
    IpxeBoot(conf).prepare_instance(task)
    assert management.told[1:] == [("disk", True)]


@pytest.mark.parametrize(
    ("modes", "told"), [(None, []), (("bios",), []), (("bios", "uefi"), ["uefi"])]
)
def test_the_boot_mode_is_set_where_that_can_be_done(conf: Conf, modes: Any, told: Any) -> None:
    management = Management("pxe", modes=modes)
    published(conf, task_of(management, properties={"capabilities": "boot_mode:uefi"}))
    assert management.told == [*told, ("pxe", False)]


def test_a_device_that_cannot_be_chosen_is_somebody_elses_business(conf: Conf) -> None:
    management = Management("pxe")
    IpxeBoot(conf).prepare_instance(task_of(management))
    assert management.told == []


@pytest.mark.parametrize("end", ["clean_up_ramdisk", "prepare_instance", "clean_up_instance"])
def test_each_end_takes_away_what_is_the_nodes_alone(conf: Conf, end: str) -> None:
    one, other = (task_of(Management("pxe", "disk")) for _ in range(2))
    other.ports = [Port(uuid="o", address="52:54:00:00:00:0e", node_uuid="y", pxe_enabled=True)]
    for task in (one, other):
        walk(task, lambda task=task: IpxeBoot(conf).prepare_ramdisk(task, {}))
    own = Path(str(conf.deploy.http_root), boot_files.LINKS, "52-54-00-00-00-99")
    own.write_text("an operator's")
    one.ports = []  # deleted meanwhile
    getattr(IpxeBoot(conf), end)(one)
    left = files(conf)
    assert sorted(name for name in left if name.startswith("pxelinux.cfg")) == [
        "pxelinux.cfg/52-54-00-00-00-0e", "pxelinux.cfg/52-54-00-00-00-99",
    ]  # fmt: skip
    assert not any(one.node.uuid in name for name in left)
    assert sum(other.node.uuid in name for name in left) == 3


def test_a_second_boot_replaces_what_the_first_has_left(conf: Conf) -> None:
    task = task_of(Management("pxe"))
    assert published(conf, task) != published(conf, task), "their names differ"
    assert sum(task.node.uuid in name for name in files(conf)) == 3


def test_who_comes_while_the_files_are_fetched_comes_again(
    conf: Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot, task = IpxeBoot(conf), task_of(Management("pxe"))

    def busy(_url: str) -> None:
        raise BeingFetched

    monkeypatch.setattr(boot._files, "open", busy)
    assert isinstance(boot.prepare_ramdisk(task, {}), Again)
    assert task.driver.management.told == []


def test_secure_boot_lasts_as_long_as_the_instance_that_asks(conf: Conf) -> None:
    asks = {"capabilities": {"secure_boot": "true"}}
    boot, task = IpxeBoot(conf), task_of(Management("disk"), instance_info=asks)
    boot.clean_up_instance(task)
    assert task.driver.management.told == []
    walk(task, lambda: boot.prepare_instance(task))
    assert task.driver.management.told == [{"secure": True}, ("disk", True)]
    task.node.instance_info.clear()
    boot.clean_up_instance(task)
    assert task.driver.management.told[2:] == [{"secure": False}]
    assert task.node.driver_internal_info == {}


def test_a_folder_that_cannot_be_written_is_named(conf: Conf, tmp_path: Path) -> None:
    (tmp_path / "http").write_text("a file in the way")
    with pytest.raises(errors.StepFailure, match="http: Not a directory"):
        published(conf, task_of(Management("pxe")))


@pytest.mark.parametrize(
    ("group", "options", "reason"),
    [
        ("conductor", {"deploy_kernel": None}, "lacks deploy_kernel"),
        ("conductor", {"deploy_ramdisk": None}, "lacks deploy_ramdisk"),
        ("api", {"public_endpoint": None}, "public_endpoint"),
        ("default", {"rpc_transport": "json-rpc"}, "http_url"),
        ("pxe", {"kernel_append_params": "a || exit"}, "kernel_append_params"),
    ],
)
def test_what_is_missing_is_named(conf: Conf, group: str, options: Any, reason: str) -> None:
    changed = dataclasses.replace(getattr(conf, group), **options)
    boot = IpxeBoot(dataclasses.replace(conf, **{group: changed}))
    for validate in (boot.validate_ramdisk, boot.validate_inspection):
        with pytest.raises(errors.Invalid, match=reason):
            validate(task_of(Management("pxe")))


def test_a_node_without_a_port_that_boots_is_refused(conf: Conf) -> None:
    task = task_of(Management("pxe"))
    task.ports = [port for port in task.ports if not port.pxe_enabled]
    with pytest.raises(errors.MissingParameterValue, match="no port with pxe_enabled"):
        IpxeBoot(conf).validate(task)


def test_an_own_parameter_takes_the_place_of_the_sites(conf: Conf) -> None:
    script = published(conf, task_of(Management("pxe"), {"kernel_append_params": "%default% x=1"}))
    assert " quiet x=1 ipa-api-url=" in script


@pytest.mark.parametrize(
    ("interface", "link"),
    [(HttpIpxeBoot, "52-54-00-00-00-0a"), (HttpBoot, "52:54:00:00:00:0a")],
)
def test_a_boot_by_http_tells_the_bmc_to_ask_dhcp_for_a_url(
    conf: Conf, interface: type[NetworkBoot], link: str
) -> None:
    management = Management("pxe", "disk", "uefihttp", modes=("uefi", "bios"))
    task = task_of(management, properties={"capabilities": "boot_mode:uefi"})
    boot = interface(conf)
    walk(task, lambda: boot.prepare_ramdisk(task, {}))
    assert management.told == ["uefi", ("uefihttp", False)]
    assert f"pxelinux.cfg/{link}" in files(conf)


@pytest.mark.parametrize("interface", [HttpIpxeBoot, HttpBoot])
def test_a_boot_by_http_refuses_firmware_that_has_no_such_boot(
    conf: Conf, interface: type[NetworkBoot]
) -> None:
    task = task_of(Management("pxe", "disk"))
    with pytest.raises(errors.InvalidParameterValue, match="its BMC offers pxe, disk; boot inter"):
        interface(conf).prepare_ramdisk(task, {})
    assert files(conf) == {}


@pytest.mark.parametrize(
    ("name", "interface"), [("http-ipxe", HttpIpxeBoot), ("http", HttpBoot), ("pxe", PxeBoot)]
)
def test_firmware_in_bios_mode_is_sent_to_ipxe(
    conf: Conf, name: str, interface: type[NetworkBoot]
) -> None:
    boot, task = interface(conf), task_of(Management("pxe"))
    boot.name, task.node.boot_mode = name, "bios"
    words = f"boot interface {name} needs boot mode uefi, .* or take boot interface ipxe"
    with pytest.raises(errors.InvalidParameterValue, match=words):
        boot.validate(task)


def test_pxe_leads_grub_to_a_script_of_paths(conf: Conf) -> None:
    management = Management("pxe", "disk")
    task, boot = task_of(management), PxeBoot(conf)
    task.ports = task.ports[:1]
    walk(task, lambda: boot.prepare_ramdisk(task, {"ipa-api-url": "http://api"}))
    assert management.told == [("pxe", False)]
    below = files(conf)
    assert "/pxelinux.cfg/$net_default_mac" in below["grub.cfg"]
    linux, initrd = below["pxelinux.cfg/52:54:00:00:00:0a"].split("; then")[:2]
    words = linux.split()
    assert words[3:] == [
        "'quiet'", "'ipa-api-url=http://api'", "'ipa-agent-token=a-token'",
        "'BOOTIF=01-52-54-00-00-00-0A'",
    ]  # fmt: skip
    for path, content in ((words[2], "kernel"), (initrd.split()[-1], "ramdisk")):
        assert below[path.removeprefix("/")] == content * 1000
    boot.clean_up_ramdisk(task)
    assert list(files(conf)) == ["grub.cfg"]


def test_grub_has_room_for_its_own_parameter(conf: Conf) -> None:
    task = task_of(Management("pxe"), {"kernel_append_params": "x" * 1790})
    IpxeBoot(conf).validate_ramdisk(task)
    task.driver_info["kernel_append_params"] += "y" * 11
    with pytest.raises(errors.InvalidParameterValue, match="takes 1800 characters"):
        PxeBoot(conf).validate_ramdisk(task)
