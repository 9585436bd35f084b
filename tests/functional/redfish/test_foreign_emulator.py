"""A BMC that others wrote: sushy-tools' emulator with its fake machines.

Its machines take up to eleven seconds, by chance, to change power; here they take none.
"""

from __future__ import annotations

import functools
import http.server
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.drivers import Redfish
from bloomery.drivers import registry
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

PROGRAM = (
    "import random; random.randint = lambda least, most: 0\n"
    "from sushy_tools.emulator.main import main; main()"
)
WITH_BIOS = """
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver
bios, versions = {"Turbo": "on", "Cores": "2"}, {"BiosVersion": "1.0.0"}
FakeDriver.get_bios = lambda self, identity: bios
FakeDriver.set_bios = lambda self, identity, attributes: bios.update(attributes)
FakeDriver.reset_bios = lambda self, identity: bios.update(Turbo="on", Cores="2")
FakeDriver.get_versions = lambda self, identity: versions
FakeDriver.set_versions = lambda self, identity, values: versions.update(values)
"""  # its fake machines have none of it, though its paths and documents do
CD = "VirtualMedia/Cd"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def iso(tmp_path) -> Iterator[str]:
    """The URL of an image that can really be fetched."""
    (tmp_path / "rescue.iso").write_bytes(bytes(1 << 16))
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/rescue.iso"
        server.shutdown()


@pytest.fixture
def address(tmp_path, request) -> Iterator[str]:
    """Where the emulator answers; a parameter is run before it."""
    pytest.importorskip("sushy_tools")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = tmp_path / "emulator.conf"
    settings.write_text(f"SUSHY_EMULATOR_STATE_DIR = {str(tmp_path)!r}\n")
    words = [
        sys.executable,
        "-c",
        getattr(request, "param", "") + PROGRAM,
        "--fake",
        "-i",
        "127.0.0.1",
        "-p",
        str(port),
        "--config",
        str(settings),
    ]
    with (tmp_path / "emulator.log").open("w") as log, subprocess.Popen(
        words, stdout=log, stderr=log,
    ) as emulator:  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: _answers(url), "the emulator to answer", timeout_s=20)
        yield url
        emulator.terminate()


def _answers(url: str) -> bool:
    try:
        return bool(get(url, "/redfish/v1/"))
    except OSError:
        return False


def get(address: str, path: str) -> Any:
    with urllib.request.urlopen(address + path, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def stage(make_site) -> Stage:
    waits = Redfish(
        boot_device_timeout=1, firmware_update_validation_interval=0, vmedia_insert_poll_interval=1
    )
    conf = Conf(default=Default(enabled_hardware_types=("redfish",)), redfish=waits)
    return Stage(make_site(registry=registry.load(conf)))


@pytest.fixture
def system(address) -> str:
    return str(get(address, "/redfish/v1/Systems")["Members"][0]["@odata.id"])


@pytest.fixture
def node(stage, address, system) -> str:
    """A node in ``manageable``."""
    info = {"redfish_address": address, "redfish_system_id": system}
    made = stage.enrol(driver="redfish", driver_info=info)
    stage.ask(made, "manage")
    stage.wait_for(made, "manageable")
    return made


def test_power_goes_every_way(stage, node) -> None:
    for target, ends in (
        ("power on", "power on"), ("rebooting", "power on"), ("soft rebooting", "power on"),
        ("soft power off", "power off"), ("power on", "power on"), ("power off", "power off"),
    ):  # fmt: skip
        shown = stage.power(node, target)
        assert (target, shown["last_error"], shown["power_state"]) == (target, None, ends)


def test_each_boot_device_is_set_or_refused_in_plain_words(stage, node, address, system) -> None:
    path = f"/v1/nodes/{node}/management/boot_device"
    supported = stage.api.get(f"{path}/supported").json["supported_boot_devices"]
    assert supported == ["pxe", "disk", "cdrom", "uefihttp"]
    for device, word in (("pxe", "Pxe"), ("disk", "Hdd"), ("cdrom", "Cd")):
        for persistent in (True, False):
            asked = {"boot_device": device, "persistent": persistent}
            answer = stage.api.put(path, asked)
            assert answer.status == 204, answer.body
            assert get(address, system)["Boot"]["BootSourceOverrideTarget"] == word
            assert stage.api.get(path).json["boot_device"] == device
    taken_for_pxe = stage.api.put(path, {"boot_device": "uefihttp", "persistent": True})
    assert taken_for_pxe.status in (400, 409)  # without an address the emulator takes it for Pxe
    assert b"does not show it as done" in taken_for_pxe.body
    refused = stage.api.put(path, {"boot_device": "bios"})
    assert refused.status == 400
    assert b"cannot boot from bios: its BMC offers pxe, disk, cdrom, uefihttp" in refused.body


def test_modes_of_booting_are_changed_and_brought_back(stage, node) -> None:
    path = f"/v1/nodes/{node}/states"
    for what, targets in (("boot_mode", ("bios", "uefi")), ("secure_boot", (True, False))):
        for target in targets:
            assert stage.api.put(f"{path}/{what}", {"target": target}).status == 202
            stage.wait_until_free(node)
            shown = stage.api.get(path).json
            assert (shown[what], shown["last_error"]) == (target, None)


def test_what_a_machine_is_made_of_is_read_as_far_as_it_is_told(stage, node) -> None:
    stage.ask(node, "inspect")
    told = stage.wait_for(node, "inspect failed")["last_error"]
    assert "does not tell memory_mb, cpu_arch: set properties/memory_mb" in told
    own = {"memory_mb": 4096, "cpu_arch": "x86_64"}
    stage.patch(node, **{f"properties.{name}": value for name, value in own.items()})
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "manageable")
    assert shown["last_error"] is None
    assert (own | {"local_gb": 0}).items() <= shown["properties"].items()
    assert shown["properties"]["capabilities"] == "boot_mode:uefi"
    ports = stage.api.get(f"/v1/ports?node={node}").json["ports"]
    assert [port["address"] for port in ports] == ["00:5c:52:31:3a:9c"]
    assert stage.api.get(f"/v1/nodes/{node}/bios").json["bios"] == []
    parts = stage.api.get(f"/v1/nodes/{node}/firmware").json["firmware"]
    assert [part["component"] for part in parts] == ["bmc"]


def test_lights_are_switched(stage, node) -> None:
    path = f"/v1/nodes/{node}/management/indicators"
    names = [each["name"] for each in stage.api.get(path).json["indicators"]]
    assert {name.rpartition("@")[2] for name in names} >= {"system", "chassis"}
    for name in names:
        for state in ("on", "off", "blinking"):
            answer = stage.api.put(f"{path}/{name}", {"state": state})
            assert answer.status == 204, (name, answer.body)
            assert stage.api.get(f"{path}/{name}").json == {"state": state}


def test_media_are_inserted_shown_and_ejected(stage, node, iso) -> None:
    path = f"/v1/nodes/{node}/vmedia"
    before = stage.api.get(path).json
    assert stage.api.post(path, {"device_type": "cdrom", "image_url": iso}).status == 204
    stage.wait_until_free(node)
    assert stage.show(node)["last_error"] is None
    assert [each["inserted"] for each in stage.api.get(path).json].count(True) == 1
    assert stage.api.delete(path).status == 204
    stage.wait_until_free(node)
    assert stage.api.get(path).json == before


def test_a_machine_is_deployed_and_torn_down(stage, node, address, system, iso) -> None:
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    stage.patch(node, **{"instance_info.boot_iso": iso})
    stage.ask(node, "active")
    stage.site.wait_for_state(node, "active", timeout_s=40)
    assert get(address, system)["PowerState"] == "On"
    assert get(address, system)["Boot"]["BootSourceOverrideTarget"] == "Cd"
    assert get(address, f"{system}/{CD}")["Image"] == iso
    stage.ask(node, "deleted")
    stage.site.wait_for_state(node, "available", timeout_s=40)
    assert get(address, system)["PowerState"] == "Off"
    assert get(address, f"{system}/{CD}")["Inserted"] is False


def clean(stage, node, interface, step, **args) -> Any:
    steps = [{"interface": interface, "step": step, "args": args}]
    stage.ask(node, "clean", clean_steps=steps, disable_ramdisk=True)
    stage.site.wait_for_state(node, "manageable", "clean failed", timeout_s=40)
    stage.wait_until_free(node)
    return stage.show(node)


@pytest.mark.parametrize("address", [WITH_BIOS], indirect=True)
def test_bios_and_firmware_are_changed(stage, node, address, system) -> None:
    settings = [{"name": "Turbo", "value": "off"}, {"name": "Cores", "value": 4}]
    assert (
        clean(stage, node, "bios", "apply_configuration", settings=settings)["last_error"] is None
    )
    assert get(address, f"{system}/BIOS")["Attributes"] == {"Turbo": "off", "Cores": "4"}
    assert clean(stage, node, "bios", "factory_reset")["last_error"] is None
    assert get(address, f"{system}/BIOS")["Attributes"] == {"Turbo": "on", "Cores": "2"}
    image = [{"component": "bios", "url": "http://files.test/bios"}]
    assert clean(stage, node, "firmware", "update", settings=image)["last_error"] is None
    assert get(address, system)["BiosVersion"] == "1.1.0"
    [bios] = [
        each
        for each in stage.api.get(f"/v1/nodes/{node}/firmware").json["firmware"]
        if each["component"] == "bios"
    ]
    assert (bios["initial_version"], bios["last_version_flashed"]) == ("1.0.0", "1.1.0")


def test_a_machine_that_has_no_bios_settings_says_so(stage, node) -> None:
    settings = [{"name": "Turbo", "value": "off"}]
    ended = clean(stage, node, "bios", "apply_configuration", settings=settings)
    assert "its BMC shows no BIOS settings" in ended["last_error"]
