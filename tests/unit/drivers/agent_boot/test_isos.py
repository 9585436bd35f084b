"""Boot CDs in their folder: what each firmware needs, and what is there of which node."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import pycdlib
import pytest

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.drivers.agent_boot.cache import BeingFetched
from bloomery.drivers.agent_boot.isos import AgentIsos
from bloomery.outcome import Again
from tests.kit.machines import programs
from tests.kit.machines.driver_task import FakeTask


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    for name in ("isolinux.bin", "kernel", "ramdisk", "esp"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    return Conf(
        default=Default(isolinux_bin=str(tmp_path / "isolinux.bin")),
        conductor=Conductor(
            deploy_kernel=f"file://{tmp_path}/kernel", deploy_ramdisk=f"file://{tmp_path}/ramdisk",
            bootloader=f"file://{tmp_path}/esp", file_url_allowed_paths=(str(tmp_path),),
        ),
        deploy=Deploy(http_root=str(tmp_path / "http"), http_url="http://web.test"),
    )  # fmt: skip


def changed(conf: Conf, group: str, **options: Any) -> Conf:
    return dataclasses.replace(
        conf, **{group: dataclasses.replace(getattr(conf, group), **options)}
    )


@pytest.mark.parametrize("mode", ["uefi", "bios", None])
@pytest.mark.parametrize("has_esp", [True, False])
@pytest.mark.parametrize("has_isolinux", [True, False])
def test_each_firmware_needs_its_boot_loader(
    conf: Conf, mode: str | None, has_esp: bool, has_isolinux: bool
) -> None:
    if not has_esp:
        conf = changed(conf, "conductor", bootloader=None)
    if not has_isolinux:
        conf = changed(conf, "default", isolinux_bin="/nowhere")
    boots = {"uefi": has_esp, "bios": has_isolinux, None: has_esp or has_isolinux}[mode]
    isos = AgentIsos(conf)
    if boots:
        isos.validate(FakeTask({}), mode)
        return
    with pytest.raises(errors.MissingParameterValue, match=r"bootloader|ISOLINUX"):
        isos.validate(FakeTask({}), mode)


@pytest.mark.parametrize("mode", ["uefi", None])
@pytest.mark.parametrize("has_esp", [True, False])
def test_a_machine_of_arm_needs_a_boot_loader_for_uefi(
    conf: Conf, mode: str | None, has_esp: bool
) -> None:
    task = FakeTask({}, properties={"cpu_arch": "arm64"})
    if has_esp:
        return AgentIsos(conf).validate(task, mode)
    with pytest.raises(errors.MissingParameterValue, match="lacks bootloader"):
        AgentIsos(changed(conf, "conductor", bootloader=None)).validate(task, mode)
    return None


def test_a_cd_of_arm_has_its_own_files_and_no_isolinux(conf: Conf, tmp_path: Path) -> None:
    kernel = programs.efi_program("aarch64")
    (tmp_path / "arm").write_bytes(kernel)
    by_arch = {
        f"{key}_by_arch": {"aarch64": f"file://{tmp_path}/arm"}
        for key in ("deploy_kernel", "bootloader")
    }
    conf, task = changed(conf, "conductor", **by_arch), FakeTask({})
    for arch, platforms in (("aarch64", [0xEF]), ("x86_64", [0, 0xEF]), (None, [0, 0xEF])):
        task.node.properties = {"cpu_arch": arch}
        isos = AgentIsos(conf)
        assert isos.build(task, None, {}) is None
        [path] = folder(conf)
        iso = pycdlib.PyCdlib()
        iso.open(str(path))
        found = iso.eltorito_boot_catalog
        entries = [each.platform_id for each in found.sections]
        assert [found.validation_entry.platform_id, *entries] == platforms
        into = io.BytesIO()
        iso.get_file_from_iso_fp(into, rr_path="/efiboot.img")
        iso.close()
        assert (into.getvalue() == kernel) == (arch == "aarch64")
        isos.remove(task)


@pytest.mark.parametrize(
    ("cpu_arch", "bootloader", "reason"),
    [
        ("x86_64", True, "kernel file:///.*/kernel is for aarch64, and properties/cpu_arch is x86"),
        (None, False, "its kernel is for aarch64, which ISOLINUX does not boot; name a bootloader"),
    ],
)
def test_a_cd_that_the_machine_could_not_boot_is_not_built(
    conf: Conf, tmp_path: Path, cpu_arch: str | None, bootloader: bool, reason: str
) -> None:
    (tmp_path / "kernel").write_bytes(programs.efi_program("aarch64"))
    if not bootloader:
        conf = changed(conf, "conductor", bootloader=None)
    task = FakeTask({}, properties={"cpu_arch": cpu_arch})
    with pytest.raises(errors.StepFailure, match=reason):
        AgentIsos(conf).build(task, None, {})
    assert not boot_files.list_files(conf.deploy.http_root)


def test_a_node_has_its_own_cd_and_loses_no_other(conf: Conf) -> None:
    isos, one, other = AgentIsos(conf), FakeTask({}), FakeTask({})
    for task in (one, other):
        assert isos.url(task) is None
        assert isos.build(task, None, {}) is None
    assert isos.url(one) != isos.url(other)
    assert str(isos.url(one)).startswith(f"http://web.test/boot-files/{one.node.uuid}-")
    isos.remove(one)
    assert (isos.url(one), isos.url(other) is None) == (None, False)


def test_one_that_is_not_complete_is_not_named_and_goes_with_the_others(conf: Conf) -> None:
    isos, task = AgentIsos(conf), FakeTask({})
    folder = Path(str(conf.deploy.http_root)) / boot_files.FOLDER
    folder.mkdir(parents=True)
    (folder / (boot_files.new_name(task.node.uuid, boot_files.ISO) + boot_files.PART)).touch()
    assert isos.url(task) is None
    isos.remove(task)
    assert list(folder.iterdir()) == []


def test_who_comes_while_the_files_are_fetched_comes_again(
    conf: Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    isos, task = AgentIsos(conf), FakeTask({})

    def busy(_url: str) -> None:
        raise BeingFetched

    monkeypatch.setattr(isos._files, "open", busy)
    assert isinstance(isos.build(task, None, {}), Again)
    assert isos.url(task) is None


def test_a_folder_that_cannot_be_written_is_named(conf: Conf, tmp_path: Path) -> None:
    (tmp_path / "http").write_text("a file in the way")
    with pytest.raises(errors.StepFailure, match="http: Not a directory"):
        AgentIsos(conf).build(FakeTask({}), None, {})


def test_a_bmc_and_its_agent_may_reach_other_addresses_than_machines(conf: Conf) -> None:
    conf = changed(
        conf, "deploy", external_http_url="http://outside.test/",
        external_callback_url="https://outside.test/api/",
    )  # fmt: skip
    isos, task = AgentIsos(conf), FakeTask({})
    params = {
        "ipa-api-url": "http://inside.test",
        "ipa-inspection-callback-url": "http://inside.test/v1/continue_inspection",
    }
    assert isos.build(task, None, params) is None
    assert str(isos.url(task)).startswith("http://outside.test/boot-files/")
    own = FakeTask({"external_http_url": "http://own.test"})
    assert isos.build(own, None, params) is None
    assert str(isos.url(own)).startswith("http://own.test/boot-files/")
    [iso] = [path for path in folder(conf) if task.node.uuid in path.name]
    line = iso.read_bytes()
    assert b"'ipa-api-url=https://outside.test/api' " in line
    assert b"'ipa-inspection-callback-url=https://outside.test/api/v1/continue_inspection'" in line
    assert b"inside.test" not in line


@pytest.mark.parametrize("url", ["ftp://x", "outside.test", 7])
def test_an_address_for_a_bmc_that_is_none_is_refused_by_name(conf: Conf, url: Any) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="driver_info/external_http_url takes"):
        AgentIsos(conf).validate(FakeTask({"external_http_url": url}), None)


def folder(conf: Conf) -> list[Path]:
    return list((Path(str(conf.deploy.http_root)) / boot_files.FOLDER).iterdir())
