"""Clients that log in at an identity service, as in a cloud: they find both APIs in its catalog."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner
from openstack import exceptions

from bloomery import conf as settings
from bloomery.cli.main import main
from bloomery.cli.service import options
from bloomery.cmd.service import Service
from bloomery.db import tables
from bloomery.state_dir import StateDir
from tests.kit.clients.openstack_command import OpenStackCommand
from tests.kit.servers import databases
from tests.kit.servers.identity import SYSTEM, Identity

pytestmark = [
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning"),
]
CONFIGS = ("OS_CLIENT_CONFIG_FILE", "OS_CLOUD", "OS_ENDPOINT", "XDG_STATE_HOME")
TEMPLATE = "heat_template_version: '2021-04-16'\nresources: {r: {type: OS::Heat::RandomString}}\n"


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Identity]:
    """An identity service, and a Bloomery whose callers come with its tokens."""
    folder = tmp_path_factory.mktemp("cloud")
    with Identity() as made:
        made.grant("root", SYSTEM, "admin")
        made.grant("ann", "web", "admin")
        made.grant("bob", "db", "member")
        file = made.write_options(folder / "bloomery.conf")
        conf = dataclasses.replace(
            options.listening_on(settings.load([file]), None, 0),
            database=databases.settings(folder),
        )
        with StateDir(folder / "state") as home, Service(conf, home, [file]) as service:
            made.serve("baremetal", service.url)
            made.serve("orchestration", service.orchestration_url + "/v1/{project}")
            assert f"auth_url: {made.url}" in home.clouds.read_text()
            made.db = service.db  # type: ignore[attr-defined]
            yield made


def connect(identity: Identity, user: str, project: str) -> Any:
    login = identity.login(user, project)
    names = {key.removeprefix("OS_").lower(): value for key, value in login.items()}
    return openstack.connect(load_yaml_config=False, load_envvars=False, **names)


def test_openstacksdk_sees_what_its_project_may_see(identity: Identity) -> None:
    ann, bob = connect(identity, "ann", "web"), connect(identity, "bob", "db")
    node = ann.baremetal.create_node(driver="fake-hardware", name="web-1")
    assert node.owner == "web-id"
    assert [each.id for each in ann.baremetal.nodes()] == [node.id]
    assert list(bob.baremetal.nodes()) == []
    with pytest.raises(exceptions.NotFoundException):
        bob.baremetal.get_node(node.id)
    with pytest.raises(exceptions.ForbiddenException):
        bob.baremetal.create_node(driver="fake-hardware")
    root = connect(identity, "root", SYSTEM)
    assert [each.id for each in root.baremetal.nodes()] == [node.id]
    ann.baremetal.delete_node(node)
    for connection in (ann, bob, root):
        connection.close()


def test_openstacksdk_has_stacks_of_its_project(identity: Identity) -> None:
    ann, bob = connect(identity, "ann", "web"), connect(identity, "bob", "db")
    stack = ann.orchestration.create_stack(name="one", template=yaml.safe_load(TEMPLATE))
    ann.orchestration.wait_for_status(stack, status="CREATE_COMPLETE", wait=30, interval=0.1)
    assert [each.name for each in ann.orchestration.stacks()] == ["one"]
    with identity.db.read() as conn:  # type: ignore[attr-defined]
        (row,) = conn.execute(sa.select(tables.CREDENTIALS)).all()
    assert (row.user, row.project) == ("ann-id", "web-id")
    assert set(json.loads(row.roles)) == {"admin", "manager", "member", "reader"}
    assert list(bob.orchestration.stacks()) == []
    for connection in (ann, bob):
        connection.close()


def test_our_own_commands_log_in(identity: Identity, tmp_path: Path) -> None:
    runner = CliRunner(env={**dict.fromkeys(CONFIGS), **identity.login("ann", "web")})
    template = tmp_path / "ours.yaml"
    template.write_text(TEMPLATE)
    made = runner.invoke(main, ["stack", "up", str(template), "--yes"])
    assert made.exit_code == 0, made.output
    assert "ours  CREATE_COMPLETE" in runner.invoke(main, ["stack", "list"]).output
    wrong = runner.invoke(main, ["stack", "list"], env={"OS_PASSWORD": "guessed"})
    assert (wrong.exit_code, "cannot log in" in wrong.output) == (2, True)
    assert "guessed" not in wrong.output


def test_commands_log_in(identity: Identity, tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(TEMPLATE)
    command = OpenStackCommand(identity.login("ann", "web"))
    try:
        node = command.json("baremetal", "node", "create", "--driver", "fake-hardware")
        assert node["owner"] == "web-id"
        assert command.run("stack", "create", "-t", str(template), "two", "--wait").code == 0
        stack = command.json("stack", "show", "two")
        assert (stack["stack_status"], stack["stack_owner"]) == ("CREATE_COMPLETE", "ann")
        assert command.run("stack", "list", "--all-projects").code == 1
    finally:
        command.close()
    command = OpenStackCommand(identity.login("root", SYSTEM))
    try:
        assert node["uuid"] in [each["uuid"] for each in command.json("baremetal", "node", "list")]
    finally:
        command.close()
