"""``bloomery support-bundle``: what helps is in it, and no secret is."""

from __future__ import annotations

import errno
import json
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from bloomery.cli.client import Client
from bloomery.cli.main import main
from bloomery.cli.service import support
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration

PLANTED = "pl4nted-s3cret-{}"
CONFIGURATION = f"""\
[DEFAULT]
transport_url = rabbit://bloomery:{PLANTED.format("broker")}@mq.example:5672/
[conductor]
workers_pool_size = 41
[database]
connection = postgresql://bloomery:{PLANTED.format("database")}@127.0.0.1:1/none
[deploy]
image_server_password = {PLANTED.format("images")}
[json_rpc]
password = {PLANTED.format("rpc")}
pasword = {PLANTED.format("misspelt")}
[keystone_authtoken]
password = {PLANTED.format("keystone")}
[oslo_messaging_rabbit]
ssl_key_password = {PLANTED.format("rabbit")}
[somewhere]
else = {PLANTED.format("elsewhere")}
"""
LOG = f"""\
WARNING call of https://root:{PLANTED.format("login")}@10.0.0.1/redfish failed
WARNING driver_info {{'redfish_password': '{PLANTED.format("bmc")}'}}
WARNING cannot reach 10.0.0.1 with {PLANTED.format("images")}
ERROR the key is KEY
INFO a line that helps
"""


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


def contents(path: Path) -> dict[str, str]:
    """Return the texts of a bundle by their names."""
    with tarfile.open(path) as bundle:
        texts = {}
        for member in bundle.getmembers():
            file = bundle.extractfile(member)
            assert file is not None
            texts[member.name.removeprefix("bloomery-support/")] = file.read().decode()
        return texts


def plant(api: Client) -> None:
    """Write secrets to all places of the service that take one."""
    secret = PLANTED.format("node")
    api.post("/v1/nodes", {
        "name": "planted", "driver": "fake-hardware",
        "driver_info": {
            "fake_password": secret,
            "redfish_address": f"https://root:{secret}@10.0.0.1",
            "deep": [{"api_key": secret}],
        },
        "extra": {"token": secret, "link": f"https://x.example/a?signature={secret}"},
    })  # fmt: skip
    api.put("/v1/nodes/planted/maintenance", {"reason": f"password={secret} is wrong"})
    api.post("/ext/v1/webhooks", {
        "url": f"http://hooks.example/?token={secret}", "secret": "cGw0bnRlZC1zM2NyZXQt" * 2
    })  # fmt: skip


def test_no_planted_secret_is_in_the_bundle(
    run: Run, api: Client, site: Orchestration, tmp_path: Path
) -> None:
    plant(api)
    key = site._home.key.read_text().strip()
    config, log, output = tmp_path / "site.conf", tmp_path / "site.log", tmp_path / "x.tar.gz"
    config.write_text(CONFIGURATION)
    log.write_text(LOG.replace("KEY", key))
    result = run(
        f"support-bundle --output {output} --log {log} --config-file {config} "
        f"--state-dir {site._home.path}",
        env={"OS_PASSWORD": PLANTED.format("client")},
    )
    assert result.exit_code == 0, result.output
    texts = contents(output)
    everything = "\n".join(texts.values()) + result.output
    assert "pl4nted" not in everything
    assert "cGw0bnRlZC1zM2NyZXQ" not in everything
    assert key not in everything
    assert output.stat().st_mode & 0o777 == 0o600
    assert "workers_pool_size = 41" in texts["configuration.ini"]
    assert "else = (not shown)" in texts["configuration.ini"]
    assert "a line that helps" in texts["logs/0-site.log"]
    assert "@10.0.0.1/redfish failed" in texts["logs/0-site.log"]


def test_it_has_what_helps(run: Run, api: Client, site: Orchestration, tmp_path: Path) -> None:
    sick = api.post("/v1/nodes", {"name": "sick", "driver": "fake-hardware"})
    api.put("/v1/nodes/sick/maintenance", {"reason": "new disks"})
    output = tmp_path / "x.tar.gz"
    result = run(f"support-bundle --output {output} --state-dir {site._home.path}")
    assert (result.exit_code, "missing" in result.output) == (0, False)
    texts = contents(output)
    assert set(texts) == {
        "versions.json", "configuration.ini", "checks.json", "status.json", "nodes.json",
        "events.json", "metrics.txt",
    }  # fmt: skip
    assert "SQLAlchemy" in json.loads(texts["versions.json"])["packages"]
    assert json.loads(texts["status.json"])["database"]["kind"]
    assert {each["name"]: each["cause"] for each in json.loads(texts["nodes.json"])}["sick"] == (
        "new disks"
    )
    assert any(
        each["object_uuid"] == sick["uuid"] for each in json.loads(texts["events.json"])["events"]
    )
    assert "# TYPE bloomery_nodes gauge" in texts["metrics.txt"]
    assert {each["result"] for each in json.loads(texts["checks.json"])} == {"success"}


def test_a_service_that_is_away_leaves_its_error_in_the_bundle(tmp_path: Path) -> None:
    where = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": "http://127.0.0.1:9", "OS_CLOUD": None}
    output = tmp_path / "x.tar.gz"
    line = ["support-bundle", "--output", str(output), "--state-dir", str(tmp_path)]
    result = CliRunner(env=where).invoke(main, line)
    assert result.exit_code == 0
    assert "status.json is missing: cannot reach http://127.0.0.1:9" in result.stderr
    texts = contents(output)
    assert "is the service running?" in texts["status.json.error"]
    assert {"versions.json", "configuration.ini", "checks.json"} <= set(texts)


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "x.tar.gz"
    output.write_text("mine")
    result = CliRunner().invoke(main, ["support-bundle", "--output", str(output)])
    assert result.exit_code == 1
    assert "name another --output" in result.output
    assert output.read_text() == "mine"


def test_a_full_disk_is_named_and_no_half_bundle_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "addfile", no_room)
    output = tmp_path / "x.tar.gz"
    result = CliRunner().invoke(main, ["support-bundle", "--output", str(output)])
    assert result.exit_code == 1
    assert f"cannot write {output}: No space left on device; make room" in result.output
    assert not output.exists()


def test_only_the_end_of_a_long_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support, "MOST_LOG_BYTES", 10)
    log = tmp_path / "long.log"
    log.write_text("x" * 100 + "the end\n")
    sources = support.Sources(state_dir=tmp_path, config_files=(), cloud_name="none", logs=[log])
    support.write(tmp_path / "x.tar.gz", sources)
    assert contents(tmp_path / "x.tar.gz")["logs/0-long.log"] == "xxthe end\n"
