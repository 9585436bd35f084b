"""Machines that run become a stack, and nothing on them is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from bloomery.conf.drivers import Redfish
from bloomery.lab.rack import Rack
from tests.functional.orchestration.test_machines import IMAGE, ironic, node_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

OTHER = {"source": "http://images/b.img", "os_hash_algo": "sha256", "os_hash_value": "1" * 64}
INFO = {
    "image_source": IMAGE["source"], "image_os_hash_algo": "sha256",
    "image_os_hash_value": IMAGE["os_hash_value"],
}  # fmt: skip
Json = dict[str, Any]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    conf = Redfish(firmware_update_validation_interval=0)
    state = tmp_path / "state"
    with Orchestration(state, redfish=conf, enable_stack_adopt=True) as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the commands in a folder of their own."""
    folder = tmp_path / "files"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def begin(site: Orchestration, name: str, info: Json | None = None, **more: Any) -> None:
    """Bring a node that runs: enrolled, and taken over by the verb adopt."""
    node = {
        "name": name, "driver": "fake-hardware", "resource_class": "bm.test",
        "instance_info": INFO | (info or {}), "automated_clean": False, **more,
    }  # fmt: skip
    assert ironic(site, "POST", "/v1/nodes", node)[0] == 201
    for verb, state in (("manage", "manageable"), ("adopt", "active")):
        ironic(site, "PUT", f"/v1/nodes/{name}/states/provision", {"target": verb})
        wait_for(lambda state=state: node_of(site, name)["provision_state"] == state, name)
    ironic(site, "PUT", f"/v1/nodes/{name}/states/power", {"target": "power on"})
    wait_for(lambda: node_of(site, name)["reservation"] is None, f"{name} to be on")


def is_explained(site: Orchestration, name: str) -> bool:
    """Has the conductor read the registry of BIOS settings, which it does after manage?"""
    settings = ironic(site, "GET", f"/v1/nodes/{name}/bios?detail=True")[1]["bios"]
    return bool(settings) and all(each["attribute_type"] for each in settings)


def adopt(site: Orchestration, *words: str) -> Result:
    done = run(site, "stack", "import", *words, "--as", "web", "--yes")
    assert done.exit_code == 0, done.output
    return done


def planned(site: Orchestration) -> str:
    words = ("stack", "plan", "web.yaml", "web", "-e", "web-environment.yaml")
    return run(site, *words, "--converge").output


def test_machines_that_run_become_a_stack_and_their_bmcs_get_no_request(
    site: Orchestration, folder: Path
) -> None:
    rack = Rack(2, apart=True, prefix="run")
    rack.start()
    try:
        for machine in rack.machines:
            fields = {key: value for key, value in machine.node.items() if key != "ports"}
            begin(site, **fields)
            wait_for(lambda name=machine.name: is_explained(site, name), "what manage reads later")
        names = [machine.name for machine in rack.machines]
        before = {name: node_of(site, name) for name in names}
        asked = [machine.bmc.requests for machine in rack.machines]
        done = adopt(site, *names)
        assert all(asked), "the BMCs were asked before"
        for name in names:
            assert f"{name}: ADOPT_COMPLETE" in done.output, done.output
        assert run(site, "stack", "check", "web").exit_code == 0
        assert "Nothing changes." in planned(site)
        assert [machine.bmc.requests for machine in rack.machines] == asked
    finally:
        rack.stop()
    for name, node in before.items():
        after = node_of(site, name)
        mark = after["instance_info"].pop("stack")
        assert (mark["resource"], after.pop("instance_name")) == (name, name)
        assert node.pop("instance_name") is None
        for each in (node, after):
            each.pop("updated_at")
        assert after == node


def test_without_yes_files_are_written_and_nothing_is_adopted(
    site: Orchestration, folder: Path
) -> None:
    begin(site, "one")
    begin(site, "two", {"image_source": OTHER["source"], "image_os_hash_value": "1" * 64})
    before = [node_of(site, name) for name in ("one", "two")]
    written = run(site, "stack", "import", "one", "two", "--as", "web", "--out", "review")
    assert written.exit_code == 0, written.output
    command = "bloomery stack adopt web --adopt-file review/web-adopt.json"
    assert command in written.output
    assert run(site, "stack", "show", "web").exit_code == 1
    assert [node_of(site, name) for name in ("one", "two")] == before
    files = sorted((folder / "review").iterdir())
    assert [each.name for each in files] == [
        "web-adopt.json", "web-environment.yaml", "web.yaml",
    ]  # fmt: skip
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    environment = yaml.safe_load((folder / "review/web-environment.yaml").read_text())
    assert environment == {"parameters": {"image_1": IMAGE, "image_2": OTHER}}
    template = yaml.safe_load((folder / "review/web.yaml").read_text())
    assert template["resources"]["two"]["properties"] == {
        "selector": {"resource_class": "bm.test"}, "name": "two",
        "image": {"get_param": "image_2"},
    }  # fmt: skip
    # the same command again, then with an edited file, then what the output says
    again = ("stack", "import", "one", "two", "--as", "web", "--out", "review")
    assert run(site, *again).exit_code == 0
    (folder / "review/web.yaml").write_text("edited")
    edited = run(site, *again, "--yes")
    assert (edited.exit_code, "cannot write review/web.yaml" in edited.output) == (1, True)
    assert run(site, *command.split()[1:]).exit_code == 0
    assert node_of(site, "two")["instance_info"]["stack"]["resource"] == "two"


def test_all_of_an_instance_is_in_the_template_or_named(site: Orchestration, folder: Path) -> None:
    """A refused or forgotten property would be a difference, or a rebuild by the next update."""
    info = {
        "root_gb": 20, "swap_mb": 512, "traits": ["CUSTOM_A"], "tags": ["a"], "extra": {"k": 1},
        "root_device": {"size": ">= 20"}, "configdrive": "c2VjcmV0", "display_name": "mine",
        "capabilities": {"boot_mode": "uefi", "secure_boot": "true", "other": "x"},
    }  # fmt: skip
    begin(site, "one", info)
    assert ironic(site, "PATCH", "/v1/nodes/one", [
        {"op": "add", "path": "/instance_name", "value": "shop"},
        {"op": "add", "path": "/protected", "value": True},
    ])[0] == 200  # fmt: skip
    ironic(site, "PUT", "/v1/nodes/one/states/power", {"target": "power off"})
    wait_for(lambda: node_of(site, "one")["power_state"] == "power off", "off")
    done = adopt(site, "one")
    assert "one: the template leaves out configdrive, display_name" in done.output
    template = yaml.safe_load((folder / "web.yaml").read_text())
    properties = template["resources"]["one"]["properties"]
    assert properties == {
        "selector": {"resource_class": "bm.test", "traits": ["CUSTOM_A"]}, "name": "shop",
        "image": {"get_param": "image"}, "root_gb": 20, "swap_mb": 512, "traits": ["CUSTOM_A"],
        "tags": ["a"], "extra": {"k": 1}, "root_device": {"size": ">= 20"}, "boot_mode": "uefi",
        "secure_boot": True, "capabilities": {"other": "x"}, "power": "off", "protected": True,
    }  # fmt: skip
    assert "Nothing changes." in planned(site)
    assert run(site, "stack", "check", "web").exit_code == 0


def test_the_stack_is_one_like_any_other(site: Orchestration, folder: Path) -> None:
    begin(site, "one")
    begin(site, "two")
    adopt(site, "one", "two")
    assert run(site, "stack", "act", "web", "reboot", "--yes").exit_code == 0
    environment = folder / "web-environment.yaml"
    environment.write_text(yaml.safe_dump({"parameters": {"image": OTHER}}))
    words = ("web.yaml", "web", "-e", str(environment))
    done = run(site, "stack", "up", *words, "--yes")
    assert done.exit_code == 0, done.output
    assert "2 to rebuild (data lost)" in done.output
    assert {node_of(site, each)["instance_info"]["image_source"] for each in ("one", "two")} == {
        OTHER["source"]
    }
    gone = run(site, "stack", "down", "web", "--yes")
    assert gone.exit_code == 0, gone.output
    for name in ("one", "two"):
        wait_for(lambda name=name: node_of(site, name)["provision_state"] == "available", name)


def test_machines_that_are_alike_become_a_group_with_roll_outs(
    site: Orchestration, folder: Path
) -> None:
    for name in ("a", "b", "c"):
        begin(site, name, {"root_gb": 20})
    path = [{"op": "add", "path": "/instance_name", "value": "shop"}]
    assert ironic(site, "PATCH", "/v1/nodes/c", path)[0] == 200
    done = adopt(site, "a", "b", "c", "--group", "workers")
    assert (
        "c: its instance is called shop, and is to be workers-2 by the next update" in done.output
    )
    template = yaml.safe_load((folder / "web.yaml").read_text())
    assert template["resources"] == {"workers": {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {"count": 3, "member": {
            "name": "workers-%index%", "selector": {"resource_class": "bm.test"},
            "image": {"get_param": "image"}, "root_gb": 20,
        }},
    }}  # fmt: skip
    names = [node_of(site, name)["instance_name"] for name in ("a", "b", "c")]
    assert names == ["workers-0", "workers-1", "shop"]
    assert (
        "Nothing changes."
        in run(site, "stack", "plan", "web.yaml", "web", "-e", "web-environment.yaml").output
    )
    environment = folder / "new.yaml"
    environment.write_text(yaml.safe_dump({"parameters": {"image": OTHER}}))
    planned = run(site, "stack", "plan", "web.yaml", "web", "-e", str(environment))
    assert "3 to rebuild (data lost); 3 machines, at most 1 at once" in planned.output
    rebooted = run(site, "stack", "act", "web", "reboot", "--resource", "workers/1", "--yes")
    assert (rebooted.exit_code, "workers/1 (node b): done" in rebooted.output) == (0, True)


def test_machines_that_cannot_be_imported_are_refused_before_a_file_is_written(
    site: Orchestration, folder: Path
) -> None:
    begin(site, "good")
    begin(site, "taken")
    adopt(site, "taken")
    for file in folder.iterdir():
        file.unlink()
    begin(site, "bare", {"image_source": ""})
    begin(site, "keyed", {"stack": "of books"})
    begin(site, "masked", {"image_source": "http://ann:s3cret@images/a.img"})
    assert ironic(site, "POST", "/v1/nodes", {"name": "new", "driver": "fake-hardware"})[0] == 201
    for node, name, sentence in (
        ("nothing", "new", "cannot find a node called nothing"),
        ("new", "new", "new: it is enroll, not active"),
        ("taken", "new", "taken: stack web has it, as taken"),
        (
            "bare",
            "new",
            "bare: its instance_info has no image_source, boot_iso or deploy_interface",
        ),
        ("keyed", "new", "keyed: its instance_info has a key stack of another purpose"),
        ("masked", "new", "masked: the API hides a part of image"),
        ("good", "1bad", "1bad"),
        ("good", "web", "a stack called web is there"),
    ):
        refused = run(site, "stack", "import", "good", node, "--as", name, "--yes")
        assert refused.exit_code == 1, refused.output
        assert sentence in refused.output, refused.output
        assert "s3cret" not in refused.output
        assert not [*folder.iterdir()]
    assert "stack" not in node_of(site, "good")["instance_info"]


def test_a_machine_that_went_meanwhile_fails_alone(site: Orchestration, folder: Path) -> None:
    begin(site, "one")
    begin(site, "two")
    assert run(site, "stack", "import", "one", "two", "--as", "web").exit_code == 0
    assert ironic(site, "PUT", "/ext/v1/nodes/two/forget?force=true", None)[0] == 202
    wait_for(lambda: "uuid" not in node_of(site, "two"), "the node to be gone")
    failed = run(site, "stack", "adopt", "web", "--adopt-file", "web-adopt.json")
    assert failed.exit_code == 1, failed.output
    assert "stack web is ADOPT_FAILED" in failed.output
    assert "openstack stack abandon web leaves what was adopted as it is" in failed.output
    assert node_of(site, "one")["provision_state"] == "active"
    assert node_of(site, "one")["instance_info"]["stack"]["resource"] == "one"


def test_adoption_that_the_operator_has_off_is_refused_with_its_option(
    tmp_path: Path, folder: Path
) -> None:
    with Orchestration(tmp_path / "other") as site:
        begin(site, "one")
        refused = run(site, "stack", "import", "one", "--as", "web", "--yes")
        assert (refused.exit_code, "enable_stack_adopt" in refused.output) == (1, True)
        assert "stack" not in node_of(site, "one")["instance_info"]
        assert json.loads((folder / "web-adopt.json").read_text())["resources"]["one"]
