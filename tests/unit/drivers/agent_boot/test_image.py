"""What stands on a boot CD, read back from it."""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
from pathlib import Path
from typing import Any

import pycdlib
import pytest

from bloomery.conf.default import Default
from bloomery.drivers.agent_boot import image

MIB = 1 << 20
LINE = 'console=ttyS0 nics="eth0 eth1" ipa-api-url=http://192.0.2.1/?a=1&b=2'


@pytest.fixture
def isolinux(tmp_path: Path) -> image.Isolinux:
    """What is installed: any bytes will do, as nothing here starts them."""
    for name in ("isolinux.bin", "ldlinux.c32"):
        (tmp_path / name).write_bytes(name.encode() * 300)
    return image.Isolinux(loader=tmp_path / "isolinux.bin", module=tmp_path / "ldlinux.c32")


@pytest.fixture
def contents(isolinux: image.Isolinux) -> image.Contents:
    return image.Contents(
        kernel=io.BytesIO(b"kernel" * 9999), ramdisk=io.BytesIO(os.urandom(3 * MIB)),
        bootloader=io.BytesIO(b"esp!" * 30_000), isolinux=isolinux,
        grub_config="EFI/BOOT/grub.cfg", command_line=LINE, files={},
    )  # fmt: skip


def written(contents: image.Contents, **changes: Any) -> pycdlib.PyCdlib:
    out = io.BytesIO()
    image.write(dataclasses.replace(contents, **changes), out)
    iso = pycdlib.PyCdlib()
    iso.open_fp(out)
    return iso


def content(iso: pycdlib.PyCdlib, path: str) -> bytes:
    into = io.BytesIO()
    iso.get_file_from_iso_fp(into, rr_path=path)
    return into.getvalue()


def catalog(iso: pycdlib.PyCdlib) -> list[tuple[int, int]]:
    """Return platform and sectors of each entry of the boot catalog."""
    found = iso.eltorito_boot_catalog
    first = (found.validation_entry.platform_id, found.initial_entry.sector_count)
    return [
        first,
        *((each.platform_id, each.section_entries[0].sector_count) for each in found.sections),
    ]


def test_both_firmwares_find_their_boot_loader_and_the_same_files(contents) -> None:
    iso = written(contents)
    esp_sectors = -(-len(contents.bootloader.getvalue()) // 512)
    assert catalog(iso) == [(0, 4), (0xEF, esp_sectors)]
    for path, file in (
        ("/vmlinuz", contents.kernel), ("/initrd", contents.ramdisk),
        ("/efiboot.img", contents.bootloader),
    ):  # fmt: skip
        assert content(iso, path) == file.getvalue()
    assert content(iso, "/isolinux/ldlinux.c32") == contents.isolinux.module.read_bytes()


def test_both_boot_loaders_are_told_the_parameters(contents) -> None:
    iso = written(contents)
    bios = content(iso, "/isolinux/isolinux.cfg").decode().splitlines()
    assert "  kernel /vmlinuz" in bios
    assert f"  append initrd=/initrd {LINE}" in bios
    uefi = content(iso, "/EFI/BOOT/grub.cfg").decode().splitlines()
    words = "'console=ttyS0' 'nics=eth0 eth1' 'ipa-api-url=http://192.0.2.1/?a=1&b=2'"
    assert f"  linux /vmlinuz {words}" in uefi
    assert "  initrd /initrd" in uefi


def test_isolinux_is_told_where_it_stands_on_the_cd(contents) -> None:
    """Without the table it finds nothing: 8 bytes in, where the volume and its own file begin."""
    iso = written(contents)
    loader = content(iso, "/isolinux/isolinux.bin")
    at = iso.get_record(rr_path="/isolinux/isolinux.bin").extent_location()
    numbers = [int.from_bytes(loader[n : n + 4], "little") for n in (8, 12, 16)]
    assert numbers == [16, at, len(loader)]


@pytest.mark.parametrize(
    ("lacks", "platforms"), [("bootloader", [0]), ("isolinux", [0xEF])], ids=str
)
def test_one_firmware_is_enough(contents, lacks: str, platforms: list[int]) -> None:
    iso = written(contents, **{lacks: None})
    assert [platform for platform, _ in catalog(iso)] == platforms


@pytest.mark.parametrize("path", ["boot/grub2.d/grub-x.cfg", "/EFI/centos/grub.cfg", "grub"])
def test_grubs_configuration_stands_where_the_grub_looks(contents, path: str) -> None:
    iso = written(contents, grub_config=path)
    assert b"linux /vmlinuz" in content(iso, "/" + path.strip("/"))


def test_a_large_system_partition_reaches_to_the_end(contents) -> None:
    large = io.BytesIO(bytes(33 * MIB))
    assert catalog(written(contents, bootloader=large))[1] == (0xEF, 0)


class Watched(io.BytesIO):
    most = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.most = max(self.most, len(data))
        return data


def test_a_ramdisk_is_never_in_memory_as_a_whole(contents) -> None:
    ramdisk = Watched(contents.ramdisk.getvalue())
    written(contents, ramdisk=ramdisk)
    assert 0 < ramdisk.most <= MIB


@pytest.mark.parametrize(
    ("loader", "module"),
    [*itertools.product(("isolinux.bin", "gone"), ("ldlinux.c32", "gone"))],
)
def test_what_is_configured_is_used_or_nothing(isolinux, loader: str, module: str) -> None:
    folder = isolinux.loader.parent
    conf = Default(isolinux_bin=str(folder / loader), ldlinux_c32=str(folder / module))
    found = image.find_isolinux(conf)
    assert (found is None) == (loader == "gone")
    if found is not None:
        assert found.loader == isolinux.loader
        assert found.module == (None if module == "gone" else isolinux.module)
