"""``bloomery stack``: planned, made, looked at, changed and deleted from a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli import client, groups, stacks
from tests.functional.cli.conftest import Run, write
from tests.functional.orchestration.test_machines import ironic
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

PARAMETERS = {"text": {"type": "string", "default": "first"}}


def web(**more: Any) -> dict[str, Any]:
    resources = {
        "content": {
            "type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "text"}},
        },
        "copy": {
            "type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["content", "output"]}},
        },
    } | more  # fmt: skip
    outputs = {"out": {"value": {"get_attr": ["copy", "value"]}}}
    return template(resources, parameters=PARAMETERS, outputs=outputs)


def test_a_stack_is_planned_made_changed_and_deleted(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, "web.yaml", web())
    planned = run(f"stack plan {file}")
    assert (planned.exit_code, "2 to create." in planned.output) == (0, True), planned.output
    empty = run("stack list")
    assert (empty.stdout, empty.stderr.startswith("no stacks in this project; ")) == ("", True)
    assert run("stack list --json").output == "[]\n"

    made = run(f"stack up {file} -P text=hello --yes")
    assert made.exit_code == 0, made.output
    assert "copy: CREATE_COMPLETE" in made.output
    assert "web  CREATE_COMPLETE" in made.output
    assert "out: hello" in made.output
    header, line = run("stack list").output.splitlines()
    assert header.split() == ["NAME", "STATUS", "CHANGED", "ID"]
    assert line.startswith("web   CREATE_COMPLETE")
    assert header.index("ID") == line.rindex(" ") + 1

    changed = run(f"stack up {file} web -P text=bye --yes")
    assert changed.exit_code == 0, changed.output
    content = "~   content  OS::Heat::TestResource  update in place\n     value: hello -> bye"
    assert content in changed.output
    assert "content: UPDATE_COMPLETE" in changed.output
    assert "copy: CREATE_COMPLETE" not in changed.output  # an event of before
    assert "out: bye" in run("stack show web").output

    document = json.loads(run(f"stack up {file} web -P text=now --json -y").stdout)
    assert document["stack_status"] == "UPDATE_COMPLETE"
    assert document["outputs"][0]["output_value"] == "now"
    assert {each["resource_name"] for each in document["resources"]} == {"content", "copy"}
    same = json.loads(run(f"stack up {file} web -P text=now --json").stdout)
    assert same["id"] == document["id"]
    gone = run("stack down web --yes")
    assert gone.exit_code == 0, gone.output
    assert "web  DELETE_COMPLETE" in gone.output
    assert "cannot find a stack called web" in run("stack show web").output


def test_an_update_by_a_plan_that_a_colleague_has_overtaken_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "web.yaml", web())
    theirs = write(tmp_path, "theirs.yaml", web(theirs={"type": "OS::Heat::None"}))
    assert run(f"stack up {file} -P text=hello --yes").exit_code == 0
    ask = groups.confirm

    def confirm_late(question: str, *, yes: bool) -> None:
        monkeypatch.setattr(groups, "confirm", ask)
        assert run(f"stack up {theirs} web --existing --yes").exit_code == 0

    monkeypatch.setattr(groups, "confirm", confirm_late)
    refused = run(f"stack up {file} web -P text=bye")
    assert refused.exit_code == 1
    assert "resource theirs: CREATE_COMPLETE (new)" in refused.output
    assert "Make the plan again." in refused.output
    assert "theirs" in run("stack show web").output
    assert run("stack down web --yes").exit_code == 0


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        ({"template": template({})}, "enable_stack_adopt"),
        ({"resources": {}}, "Invalid adopt data: it has no template"),
        ([], "abandoned.json is a list"),
    ],
)
def test_what_cannot_be_adopted_is_refused(run: Run, tmp_path: Path, document, refusal) -> None:
    file = write(tmp_path, "abandoned.json", document)
    result = run(f"stack adopt web --adopt-file {file}")
    assert (result.exit_code, refusal in result.output) == (1, True), result.output


UNREADABLE = "a: 1\nb: [\nc: }\n"


@pytest.mark.parametrize(
    "line",
    [
        "stack plan {bad}",
        "stack up {bad} --yes",
        "stack up {good} -e {bad} --yes",
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_line(
    run: Run, tmp_path: Path, line: str
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(UNREADABLE, encoding="utf-8")
    result = run(line.format(good=write(tmp_path, "good.yaml", web()), bad=bad))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Error: cannot read {bad}: line 3, column 4: " in result.stderr
    assert result.stderr.count("bad.yaml") == 1


def test_a_file_that_is_not_there_is_named_once(run: Run, tmp_path: Path) -> None:
    result = run(f"stack plan {tmp_path / 'none.yaml'}")
    assert result.exit_code == 2
    assert result.stderr.count("none.yaml") == 1


JOINED = {"list_join": ["/", [{"get_param": "bmc"}, {"get_param": "turbo"}]]}
TWO_PARAMETERS = template(
    {"content": {"type": "OS::Heat::TestResource", "properties": {"value": JOINED}}},
    parameters={
        "bmc": {"type": "string", "default": "none", "hidden": True},
        "turbo": {"type": "string", "default": "Disabled"},
    },
    outputs={"out": {"value": {"get_attr": ["content", "output"]}}},
)
FALLS_BACK = "bmc goes back to its default (keep it with --existing)"


@pytest.mark.parametrize("keeps", ["--parameter bmc=b1", "-e {env}"])
def test_a_parameter_that_falls_back_is_named_unless_it_is_kept(
    run: Run, tmp_path: Path, keeps: str
) -> None:
    file = write(tmp_path, "two.yaml", TWO_PARAMETERS)
    said = keeps.format(env=write(tmp_path, "env.yaml", {"parameters": {"bmc": "b1"}}))
    made = run(f"stack up {file} {said} --yes")
    assert (made.exit_code, "out: b1/Disabled" in made.output) == (0, True), made.output

    assert FALLS_BACK not in run(f"stack plan {file} {said}").output
    kept = run(f"stack plan {file} -P turbo=Enabled --existing")
    assert kept.exit_code == 0, kept.output
    assert FALLS_BACK not in kept.output
    changed = run(f"stack up {file} -P turbo=Enabled --existing --yes")
    assert "out: b1/Enabled" in changed.output, changed.output

    assert FALLS_BACK in run(f"stack plan {file} -P turbo=Enabled").output
    reset = run(f"stack up {file} -P turbo=Enabled --yes")
    assert FALLS_BACK in reset.output
    assert "turbo goes back" not in reset.output
    assert "out: none/Enabled" in reset.output, reset.output
    assert FALLS_BACK not in run(f"stack plan {file} -P turbo=Enabled").output
    assert run("stack down two --yes").exit_code == 0


def test_a_stack_that_is_as_wanted_is_left_alone(
    run: Run, site: Orchestration, tmp_path: Path
) -> None:
    file = write(tmp_path, "same.yaml", web())
    assert run(f"stack up {file} --yes").exit_code == 0
    again = run(f"stack up {file}")  # nothing is asked, because nothing is ordered
    assert (again.exit_code, again.output.splitlines()[-1]) == (0, "Nothing changes.")
    [stack] = site.ask("GET", "/stacks")[1]["stacks"]
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert run("stack down same --yes").exit_code == 0


@pytest.mark.parametrize("line", ["stack up {file} unasked", "stack down kept"])
def test_nothing_is_done_unasked_where_nobody_can_be_asked(
    run: Run, site: Orchestration, tmp_path: Path, line: str
) -> None:
    path = site.create("kept", template({}))
    site.wait_for(path, "CREATE_COMPLETE")
    result = run(line.format(file=write(tmp_path, "web.yaml", web())))
    assert result.exit_code == 2
    assert "--yes goes on without asking" in result.output
    assert [each["stack_name"] for each in site.ask("GET", "/stacks")[1]["stacks"]] == ["kept"]
    assert run("stack down kept --yes").exit_code == 0


def test_a_stack_that_fails_ends_the_command_with_its_reason(run: Run, tmp_path: Path) -> None:
    broken = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    file = write(tmp_path, "broken.yaml", web(broken=broken))
    result = run(f"stack up {file} --yes")
    assert result.exit_code == 1
    assert "stack broken is CREATE_FAILED" in result.output
    why = run("stack why broken").output
    assert "broken is CREATE_FAILED" in why
    assert "next: read the reasons" in why
    assert run("stack down broken --yes").exit_code == 0


@pytest.mark.parametrize("command", ["plan", "up --yes"])
def test_a_stack_that_could_not_be_deleted_is_refused_before_a_plan(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    file = write(tmp_path, "halfway.yaml", web())
    state = {"stack_name": "halfway", "id": "S", "stack_status": "DELETE_FAILED"}
    monkeypatch.setattr(stacks, "find", lambda client, name: state)
    result = run(f"stack {command} {file}")
    assert result.exit_code == 1
    assert result.output == (
        "Error: cannot update stack halfway: it is DELETE_FAILED; delete it again: "
        "bloomery stack down halfway\n"
    )


def test_ctrl_c_leaves_the_stack_running_and_says_how_to_look_on(
    run: Run, site: Orchestration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: stacks.StackRun) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stacks.StackRun, "watch_to_end", interrupt)
    result = run(f"stack up {write(tmp_path, 'left.yaml', web())} --yes")
    assert result.exit_code == 130
    assert "look on with: bloomery stack events left --follow" in result.output
    monkeypatch.undo()
    [stack] = site.ask("GET", "/stacks")[1]["stacks"]
    path = f"/stacks/left/{stack['id']}"
    site.wait_for(path, "CREATE_COMPLETE")
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def test_environments_and_nested_templates_are_sent_along(run: Run, tmp_path: Path) -> None:
    write(tmp_path, "inner.yaml", web())
    environment = {
        "parameters": {"text": "from a file"},
        "resource_registry": {"My::Web": "inner.yaml"},
    }
    outer = web(inner={"type": "My::Web", "properties": {"text": {"get_param": "text"}}})
    file, env = write(tmp_path, "outer.yaml", outer), write(tmp_path, "env.yaml", environment)
    made = run(f"stack up {file} -e {env} --yes")
    assert made.exit_code == 0, made.output
    assert "out: from a file" in made.output
    shown = json.loads(run("stack show outer --json").output)
    assert len(shown["resources"]) == 5  # those of the stack below it, too
    told = run("stack events outer").output
    assert told.index("Stack CREATE started") < told.index("copy")
    assert run("stack down outer --yes").exit_code == 0


def test_the_machines_that_lose_their_data_are_named(
    run: Run, site: Orchestration, tmp_path: Path
) -> None:
    node = {
        "type": "OS::Ironic::Node",
        "properties": {"name": "n1", "driver": "fake-hardware", "resource_class": "bm"},
    }
    machine = {
        "type": "OS::Ironic::Instance",
        "properties": {"node": {"get_resource": "node"}, "image": {"boot_iso": "http://a.iso"}},
    }
    file = write(tmp_path, "rack.yaml", web(node=node, machine=machine))
    made = run(f"stack up {file} --yes")
    assert made.exit_code == 0, made.output
    gone = run("stack down rack --yes")
    assert gone.exit_code == 0, gone.output
    assert gone.output.startswith("node n1: undeployed, and its data is lost (machine)\n")


def test_a_machine_that_is_reset_or_protected_is_not_called_undeployed(
    run: Run, tmp_path: Path
) -> None:
    rack = one_machine({})["resources"]
    raid = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}
    config = {
        "type": "OS::Ironic::HardwareConfiguration",
        "properties": {
            "node": {"get_resource": "node"}, "raid": raid, "allow_destructive": True,
            "on_delete": "reset",
        },
    }  # fmt: skip
    rack["node"]["properties"]["target_state"] = "manageable"
    file = write(tmp_path, "disks.yaml", template({"node": rack["node"], "config": config}))
    made = run(f"stack up {file} --yes")
    assert made.exit_code == 0, made.output
    asked = run("stack down disks").output
    reset = "raid of the machine: reset (clean), if it was applied"
    assert asked.startswith(f"node n2: may lose its data (config: {reset})\n"), asked
    assert run("stack down disks --yes").exit_code == 0

    file = write(tmp_path, "pets.yaml", one_machine({}, protected=True))
    made = run(f"stack up {file} --yes")
    assert made.exit_code == 0, made.output
    asked = run("stack down pets").output
    refusal = "deleted is refused until that ends (baremetal node unset --protected n2)"
    assert asked.startswith(
        f"node n2: may be undeployed, and lose its data (machine: node n2 is protected: {refusal})"
    ), asked
    file = write(tmp_path, "pets.yaml", one_machine({}, protected=False))
    assert run(f"stack up {file} pets --yes").exit_code == 0
    assert run("stack down pets --yes").exit_code == 0


def one_machine(driver_info: dict[str, Any], **more: Any) -> dict[str, Any]:
    node = {
        "type": "OS::Ironic::Node",
        "properties": {
            "name": "n2", "driver": "fake-hardware", "resource_class": "bm",
            "driver_info": {"fake": driver_info},
        },
    }  # fmt: skip
    machine = {
        "type": "OS::Ironic::Instance",
        "properties": {
            "node": {"get_resource": "node"}, "image": {"boot_iso": "http://a.iso"}, **more,
        },
    }  # fmt: skip
    return template({"node": node, "machine": machine})


def test_why_names_the_node_that_is_waited_for_and_what_it_does(
    run: Run, site: Orchestration
) -> None:
    path = site.create("slow", one_machine({"wait": {"deploy.deploy": -1}}))
    wait_for(lambda: "deploy.deploy" in run("stack why slow").output, "the deployment")
    assert (
        "  machine waits for node n2: step deploy.deploy of deploy waits for a call of the agent"
    ) in run("stack why slow").output
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")


def test_why_names_the_node_of_what_failed_and_its_way_out(run: Run, tmp_path: Path) -> None:
    broken = one_machine({"fail": ["deploy.deploy"]}, retry={"attempts": 1})
    assert run(f"stack up {write(tmp_path, 'unlucky.yaml', broken)} --yes").exit_code == 1
    lines = run("stack why unlucky").output.splitlines()
    assert (
        "    node n2 is deploy failed; correct the cause of the error, and deploy it again, or "
        in (lines[2])
    )
    assert run("stack down unlucky --yes").exit_code == 0


def test_events_of_the_service_are_followed(
    run: Run, site: Orchestration, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []

    def first_one(line: str) -> None:
        printed.append(line)
        raise KeyboardInterrupt

    path = site.create("told", template({}))
    monkeypatch.setattr("bloomery.cli.service.events.click.echo", first_one)
    result = run(f"events --follow --since 0 --stack {path.rpartition('/')[2]}")
    monkeypatch.undo()
    assert result.exit_code == 0
    assert "orchestration.stack.create.start" in printed[0]
    site.wait_for(path, "CREATE_COMPLETE")
    assert run("stack down told --yes").exit_code == 0


def test_each_failure_below_is_told_once_with_the_path_of_who_failed(
    run: Run, tmp_path: Path
) -> None:
    member = {"type": "OS::Heat::TestResource", "properties": {"fail": True}}
    group = {
        "type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": member},
    }  # fmt: skip
    made = run(f"stack up {write(tmp_path, 'group.yaml', template({'g': group}))} --yes")
    assert made.exit_code == 1
    plan = made.output.splitlines()
    assert [line.split()[1] for line in plan[:2]] == ["g", "g/0"]
    lines = [line for line in plan if "CREATE_FAILED: " in line]
    assert len(lines) == 1
    assert "] g/0: CREATE_FAILED: " in lines[0]
    assert "group-g-" not in made.output.split("group  CREATE_FAILED")[0]  # the stack below
    assert "g/0" in run("stack show group").output
    assert run("stack down group --yes").exit_code == 0


def test_why_of_an_older_service_names_resources_without_their_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": True}}
    file = write(tmp_path, "old.yaml", template({"broken": broken}))
    assert run(f"stack up {file} --yes").exit_code == 1
    get = client.Client.get

    def get_older(self: client.Client, path: str) -> Any:
        document = get(self, path)
        if path.endswith("/why"):
            del document["leaving"]
            for each in document["failed"]:
                del each["path"], each["node"]
        return document

    monkeypatch.setattr(client.Client, "get", get_older)
    why = run("stack why old")
    assert (why.exit_code, "broken is CREATE_FAILED" in why.output) == (0, True), why.output


def test_members_that_wait_for_their_deletion_are_marked(
    site: Orchestration, run: Run, tmp_path: Path
) -> None:
    registry = {"resource_registry": {"OS::Ironic::Instance": "OS::Heat::Value"}}
    env = write(tmp_path, "env.yaml", registry)

    def pool(count: int, value: str, **canary: Any) -> dict[str, Any]:
        gate = {"check": False, "settle_seconds": 1}
        group = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {"count": count, "member": {"value": value}},
            "update_policy": {"rolling_update": {"health_gate": gate}, "canary": canary},
        }
        return template({"pool": group})

    made = run(f"stack up {write(tmp_path, 'pool.yaml', pool(3, 'a'))} -e {env} --yes")
    assert made.exit_code == 0, made.output
    changed = run(f"stack up {write(tmp_path, 'pool.yaml', pool(2, 'b'))} -e {env} --yes")
    assert changed.exit_code == 0, changed.output
    lines = [line for line in changed.output.splitlines() if stacks.LEAVING in line]
    assert [line.partition("] ")[2] for line in lines] == [f"pool/2: {stacks.LEAVING}"]

    stack = site.ask("GET", "/stacks/pool")[1]["stack"]
    path = f"/stacks/pool/{stack['id']}"
    paused = pool(1, "c", size=1, require_signal=True)
    body = {"template": paused, "environment": registry}
    assert site.ask("PUT", path, body)[0] == 202
    wait_for(lambda: "paused" in run("stack why pool").output, "the pause")
    shown = run("stack show pool").output.splitlines()
    assert [line.split()[0] for line in shown if line.endswith(stacks.LEAVING)] == ["pool/1"]
    assert [line.split()[0] for line in shown if "signal one of continue" in line] == ["pool"]
    assert f"  pool/1 {stacks.LEAVING}" in run("stack why pool").output.splitlines()
    assert site.ask("POST", f"{path}/resources/pool/signal", {"rollout": "continue"})[0] == 200
    site.wait_for(path, "UPDATE_COMPLETE")
    assert stacks.LEAVING not in run("stack show pool").output


HARDWARE = "OS::Ironic::HardwareConfiguration"


def test_a_plan_marks_what_a_machine_would_refuse(run: Run, tmp_path: Path) -> None:
    node = {"name": "refuses", "driver": "fake-hardware"}
    hardware = {"node": {"get_resource": "node"}, "bios": {"settings": {"a": "b"}}}
    resources = {
        "node": {"type": "OS::Ironic::Node", "properties": node},
        "hardware": {"type": HARDWARE, "properties": hardware},
    }
    planned = run(f"stack plan {write(tmp_path, 'refuses.yaml', template(resources))}").output
    line = next(line for line in planned.splitlines() if "hardware " in line)
    assert line.split()[:5] == ["x", "hardware", HARDWARE, "would", "fail"]
    assert line.endswith("or this as its hardware_configuration")
    assert "1 to create, it would fail at hardware; " in planned


POOL = {"type": "OS::Ironic::Node", "properties": {"driver": "fake-hardware"}}
SELECTOR = {"selector": {"resource_class": "lost"}, "image": {"boot_iso": "http://a.iso"}}


def lost(kind: str, machine: dict[str, Any]) -> dict[str, Any]:
    """A node, and what is deployed on it."""
    node = {"type": POOL["type"], "properties": {
        **POOL["properties"], "name": "l1", "resource_class": "lost"}}  # fmt: skip
    return template({"node": node, "machine": {"type": kind, **machine, "depends_on": "node"}})


def take_away(site: Orchestration, node: str) -> str:
    """Undeploy a machine behind the back of its stack; return the image that it had."""
    url = f"/v1/nodes/{node}"
    image = str(ironic(site, "GET", url)[1]["instance_info"]["boot_iso"])
    assert ironic(site, "PUT", f"{url}/states/provision", {"target": "deleted"})[0] == 202
    wait_for(lambda: ironic(site, "GET", url)[1]["provision_state"] == "available", "its end")
    return image


@pytest.mark.parametrize(
    ("kind", "machine"),
    [
        ("OS::Ironic::Instance", {"properties": SELECTOR}),
        (
            "OS::Ironic::InstanceGroup",
            {
                "properties": {"count": 1, "member": SELECTOR},
                "update_policy": {"rolling_update": {"health_gate": {"settle_seconds": 0}}},
            },
        ),
    ],
)
def test_an_instance_that_is_gone_is_named_and_brought_back(
    run: Run, site: Orchestration, tmp_path: Path, kind: str, machine: dict[str, Any]
) -> None:
    file = write(tmp_path, "lost.yaml", lost(kind, machine))
    assert run(f"stack up {file} --yes").exit_code == 0
    assert run("stack check lost").exit_code == 0
    image = take_away(site, "l1")
    same = run(f"stack plan {file}")
    assert (same.stdout, same.stderr) == ("Nothing changes.\n", "")  # nothing has looked yet
    drift = site.service.stacks.engine.drift
    assert drift is not None
    drift.look()

    member = "machine" if kind.endswith("Instance") else "machine/0"
    for command in (f"stack plan {file}", f"stack up {file} --yes"):
        named = run(command)
        assert named.stdout == "Nothing changes.\n"
        first, second = named.stderr.splitlines()
        assert first.startswith(f"{member} differs since ")
        assert "the instance was taken away from the node" in first
        assert second.endswith(f"unless: bloomery stack up {file} lost --converge")

    planned = run(f"stack plan {file} --converge")
    assert ["±", member] in [line.split()[:2] for line in planned.stdout.splitlines()]
    assert "data is lost" not in planned.stdout
    assert planned.stderr == ""
    made = run(f"stack up {file} --converge --yes")
    assert made.exit_code == 0, made.output
    assert ironic(site, "GET", "/v1/nodes/l1")[1]["instance_info"]["boot_iso"] == image

    take_away(site, "l1")
    checked = run("stack check lost")
    assert checked.exit_code == 1
    assert "the instance was taken away from the node" in checked.output
    drift.look()
    planned = run(f"stack plan {file}")  # the check has failed: an update makes it anew
    assert ["±", member] in [line.split()[:2] for line in planned.stdout.splitlines()]
    assert planned.stderr == ""
    assert run(f"stack up {file} --yes").exit_code == 0
    assert run("stack check lost").exit_code == 0
    assert run("stack down lost --yes").exit_code == 0
