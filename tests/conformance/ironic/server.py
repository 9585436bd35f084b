"""Run the published Ironic as clients meet it: API and conductor in one process, on SQLite."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.servers import free_port

START_S: Final = 60
INTERFACES: Final = {
    "bios": "fake,no-bios", "boot": "fake", "console": "fake,no-console", "deploy": "fake",
    "firmware": "fake,no-firmware", "inspect": "fake,no-inspect", "management": "fake,noop",
    "network": "noop", "power": "fake", "raid": "fake,no-raid", "rescue": "fake,no-rescue",
    "storage": "fake,noop", "vendor": "fake,no-vendor",
}  # fmt: skip
SETTINGS: Final = """
[DEFAULT]
auth_strategy = {login}
host = localhost
rpc_transport = none
enabled_hardware_types = fake-hardware
{interfaces}
state_path = {state}
tempdir = {state}
[api]
host_ip = 127.0.0.1
port = {port}
[database]
connection = sqlite:///{state}/ironic.sqlite
[conductor]
sync_power_state_interval = 0
sync_local_state_interval = 0
power_failure_recovery_interval = 0
check_provision_state_interval = 0
check_rescue_state_interval = 3600
check_allocations_interval = 3600
cache_clean_up_interval = 0
heartbeat_timeout = 36000
[oslo_concurrency]
lock_path = {state}
[keystone_authtoken]
{keystone}
"""


@contextlib.contextmanager
def running(
    binaries: Path, keystone: Mapping[str, str] | None = None, config_name: str = "ironic.conf"
) -> Iterator[tuple[str, int]]:
    """Yield the address of a fresh Ironic; ``binaries``: where its commands are.

    ``keystone``: options with which it checks logins; without, it asks for none.  ``config_name``:
    its configuration, in a folder that is removed at the end unless the name is absolute.
    """
    with tempfile.TemporaryDirectory(prefix="ironic-") as state:
        port = free_port()
        settings = Path(state, config_name)
        lines = [f"enabled_{kind}_interfaces = {names}" for kind, names in INTERFACES.items()]
        text = SETTINGS.format(
            state=state, port=port, interfaces="\n".join(lines),
            login="noauth" if keystone is None else "keystone",
            keystone="\n".join(f"{name} = {value}" for name, value in (keystone or {}).items()),
        )  # fmt: skip
        settings.write_text(text, encoding="utf-8")
        options = ["--config-file", str(settings)]
        log = Path(state, "ironic.log")
        with log.open("wb") as file:
            create = [str(binaries / "ironic-dbsync"), *options, "create_schema"]
            subprocess.run(create, stdout=file, stderr=file, check=True)
            process = subprocess.Popen([binaries / "ironic", *options], stdout=file, stderr=file)
        try:
            _wait(process, port, log)
            yield "127.0.0.1", port
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"Ironic does not serve: {log.read_text()[-2000:]}")
