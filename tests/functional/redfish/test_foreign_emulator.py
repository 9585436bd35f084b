"""A BMC that others wrote: sushy-tools' emulator with its fake machines, as a black box.

Its machines take up to eleven seconds to change power, so this is no part of ``make test``.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.drivers import registry
from tests.kit.stories import Stage
from tests.kit.waiting import wait_for

pytestmark = pytest.mark.long

PROGRAM = shutil.which("sushy-emulator") or str(Path(sys.executable).with_name("sushy-emulator"))
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/rescue.iso"
        server.shutdown()


@pytest.fixture
def address(tmp_path) -> Iterator[str]:
    if not Path(PROGRAM).exists():
        pytest.skip("needs the package sushy-tools")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = tmp_path / "emulator.conf"
    settings.write_text(f"SUSHY_EMULATOR_STATE_DIR = {str(tmp_path)!r}\n")
    words = [PROGRAM, "--fake", "-i", "127.0.0.1", "-p", str(port), "--config", str(settings)]
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
    conf = Conf(default=Default(enabled_hardware_types=("redfish",)))
    return Stage(make_site(registry=registry.load(conf)))


def test_a_machine_of_another_emulator_is_deployed_and_torn_down(stage, address, iso) -> None:
    system = get(address, "/redfish/v1/Systems")["Members"][0]["@odata.id"]
    info = {"redfish_address": address, "redfish_system_id": system}
    node = stage.enrol(driver="redfish", driver_info=info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    assert stage.api.put(
        f"/v1/nodes/{node}/management/boot_device", {"boot_device": "pxe"}
    ).status == 204  # fmt: skip
    assert get(address, system)["Boot"]["BootSourceOverrideTarget"] == "Pxe"
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
