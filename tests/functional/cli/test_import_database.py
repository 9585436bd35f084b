"""``bloomery import ironic --from-config``: the database of an Ironic that no longer runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner, Result

from bloomery.cli.client import Client
from bloomery.cli.main import main
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.state_dir import StateDir
from tests.kit.servers import ironic_tables
from tests.kit.servers.orchestration import QUIET

Import = Callable[..., Result]


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Client]:
    conf = Conf(api=Api(port=0), conductor=QUIET)
    with StateDir(tmp_path / "new") as home, Service(conf, home) as running:
        yield Client(running.url)


@pytest.fixture
def imports(tmp_path: Path, new: Client) -> Import:
    cloud = {"auth_type": "none", "baremetal_endpoint_override": new.url}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"new": cloud}}))
    env = {"OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"), "OS_CLOUD": "new"}

    def run(*words: str) -> Result:
        config = ["--from-config", str(tmp_path / "ironic.conf")]
        return CliRunner(env=env).invoke(main, ["import", "ironic", *config, *words])

    return run


def make(folder: Path, **conductor: bool) -> None:
    url = sa.make_url(f"sqlite:///{folder}/ironic.sqlite")
    engine = sa.create_engine(url)
    ironic_tables.make(engine, **conductor)
    engine.dispose()
    ironic_tables.write_config(folder / "ironic.conf", url)


def test_a_machine_of_a_stopped_ironic_comes_over_with_its_password(imports, new, tmp_path):
    make(tmp_path)
    result = imports()
    assert result.exit_code == 0, result.output
    assert ironic_tables.SECRET not in result.output
    node = new.get(f"/v1/nodes/{ironic_tables.NODE}")
    assert (node["provision_state"], node["maintenance"], node["traits"]) == (
        "active", True, ["CUSTOM_FAST"],
    )  # fmt: skip
    assert "create" not in imports().output
    taken = imports("--take-over")
    assert taken.exit_code == 0, taken.output
    node = new.get(f"/v1/nodes/{ironic_tables.NODE}")
    assert (node["maintenance"], node["protected"]) == (False, True)
    history = new.get("/v1/nodes/web-1/history?detail=True")["history"]
    assert "deploy failed: the disk is gone" in [entry["event"] for entry in history]
    assert new.get("/v1/nodes/web-1/inventory")["inventory"] == {"disks": []}


def test_nothing_is_taken_over_while_a_conductor_is_online(imports, new, tmp_path):
    """Ironic sends no heartbeats to SQLite: their age says nothing."""
    make(tmp_path, is_online=True)
    assert imports().exit_code == 0
    result = imports("--take-over")
    assert (result.exit_code, "still runs, or was killed, on old-1" in result.output) == (1, True)
    assert new.get("/v1/nodes/web-1")["maintenance"] is True


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("[database]\nconnection = sqlite:///{folder}/none.sqlite", "unable to open database"),
        ("[database]\nconnection = sqlite:///{folder}/empty.sqlite", "is not Ironic's"),
        ("[database]\nconnection = mysql://root:hunter2hunter2@", "cannot read the database"),
        ("[database]\nconnection = hunter2hunter2", "cannot read"),
        ("[DEFAULT]\ndebug = true", "has no [database]connection"),
    ],
)
def test_what_cannot_be_read_is_named_without_its_password(imports, tmp_path, text, refusal):
    (tmp_path / "empty.sqlite").touch()
    (tmp_path / "ironic.conf").write_text(text.replace("{folder}", str(tmp_path)))
    result = imports()
    assert (result.exit_code, refusal in result.output) == (1, True), result.output
    assert ironic_tables.SECRET not in result.output


def test_a_source_must_be_given():
    result = CliRunner().invoke(main, ["import", "ironic"])
    assert (result.exit_code, "--from-config FILE" in result.output) == (2, True)
