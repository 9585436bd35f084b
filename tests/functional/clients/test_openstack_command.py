"""Every command of ``openstack stack``, ``software`` and ``orchestration``, as one types them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tests.kit.clients.openstack_command import OpenStackCommand, Result
from tests.kit.waiting import wait_for

WEB = """
heat_template_version: 2021-04-16
parameters:
  text: {type: string, default: first}
resources:
  content: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
  copy: {type: OS::Heat::Value, properties: {value: {get_attr: [content, output]}}}
outputs:
  text: {description: What was copied., value: {get_attr: [copy, value]}}
"""
FAILING = """
heat_template_version: 2021-04-16
resources:
  broken: {type: OS::Heat::TestResource, properties: {fail: true}}
"""
SLOW = """
heat_template_version: 2021-04-16
parameters:
  secs: {type: number, default: 0}
resources:
  slow:
    type: OS::Heat::TestResource
    properties: {value: {get_param: secs}, action_wait_secs: {update: {get_param: secs}}}
"""
SIGNALLED = """
heat_template_version: 2021-04-16
resources:
  handle: {type: OS::Heat::WaitConditionHandle}
outputs:
  signals: {value: {get_attr: [handle, endpoint]}}
"""
LOGIN = "http_basic"
GROUPS = ("stack_", "software_", "orchestration_")


class Shell:
    """The command, and files in a directory that its words may name."""

    def __init__(self, command: OpenStackCommand, directory: Path) -> None:
        self.command = command
        self.directory = directory

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run(self, line: str, *words: str) -> Result:
        return self.command.run(*line.split(), *words)

    def ok(self, line: str, *words: str) -> str:
        result = self.run(line, *words)
        assert result.code == 0, (line, result)
        return result.out

    def json(self, line: str, *words: str) -> object:
        return self.command.json(*line.split(), *words)

    def create(self, name: str, template: str, *words: str) -> dict:
        path = self.file(f"{name}.yaml", template)
        line = f"stack create {name} -t {path} --wait --poll 1"
        assert self.run(line, *words).code == 0
        return self.json(f"stack show {name}")

    def status(self, stack: str) -> str:
        return self.json(f"stack show {stack}")["stack_status"]

    def settle(self, stack: str, status: str) -> None:
        wait_for(lambda: self.status(stack) == status, f"{stack} to be {status}", timeout_s=60)

    def rows(self, line: str, column: str) -> list[object]:
        return [row[column] for row in self.json(line)]


@pytest.fixture(scope="module")
def command(orchestration_env: dict[str, str]) -> Iterator[OpenStackCommand]:
    command = OpenStackCommand(orchestration_env)
    yield command
    command.close()


@pytest.fixture
def shell(command: OpenStackCommand, tmp_path: Path) -> Shell:
    return Shell(command, tmp_path)


def test_a_stack_is_created_shown_updated_and_deleted(shell: Shell) -> None:
    web = shell.create("web", WEB, "--parameter", "text=hello", "--tags", "blue,green")
    assert (web["stack_status"], web["tags"]) == ("CREATE_COMPLETE", ["blue", "green"])
    assert shell.rows("stack list", "Stack Name") == ["web"]
    assert shell.rows("stack list --tags blue --nested --sort stack_name:asc", "ID") == [web["id"]]
    assert shell.rows("stack list --property name=other", "ID") == []
    path = shell.file("web2.yaml", WEB.replace("first", "second"))
    shell.ok(f"stack update web -t {path} --existing --clear-parameter text --wait")
    assert shell.json("stack output show web text")["output_value"] == "second"
    shell.ok("stack update web --existing --parameter text=third --tags red --wait")
    assert shell.json(f"stack show {web['id']}")["parameters"]["text"] == "third"
    shell.ok("stack update web --existing --converge --rollback enabled --timeout 5 --wait")
    shown = shell.json("stack show web --no-resolve-outputs")
    assert (shown["timeout_mins"], shown["disable_rollback"]) == (5, False)
    shell.ok("stack delete web --yes --wait")
    assert shell.rows("stack list", "ID") == []
    assert shell.rows("stack list --deleted", "Stack Status") == ["DELETE_COMPLETE"]
    gone = shell.run("stack show web")
    assert (gone.code, "web" in gone.err) == (1, True)


def test_a_dry_run_makes_and_changes_nothing(shell: Shell) -> None:
    path = shell.file("dry.yaml", WEB)
    preview = shell.json(f"stack create dry -t {path} --dry-run")
    assert {each["resource_name"] for each in preview["resources"]} == {"content", "copy"}
    assert "dry" not in shell.rows("stack list", "Stack Name")
    shell.create("dry", WEB)
    changes = shell.json("stack update dry --existing --parameter text=new --dry-run")
    assert "content" in {each["resource_name"] for each in changes["updated"]}
    assert shell.json("stack output show dry text")["output_value"] == "first"
    shell.ok("stack delete dry --yes --wait")


def test_what_a_stack_was_made_of_can_be_read(shell: Shell) -> None:
    shell.create("made", WEB, "--parameter", "text=hello")
    assert "content" in shell.json("stack template show made")["resources"]
    assert shell.json("stack environment show made")["parameters"] == {"text": "hello"}
    assert shell.json("stack file list made") == {"files": {}}
    [output] = shell.json("stack output list made")
    assert output["output_key"] == "text"
    assert "hello" in shell.ok("stack output show made --all")
    shell.ok("stack delete made --yes --wait")


def test_resources_and_events_are_listed_and_shown(shell: Shell) -> None:
    shell.create("res", WEB)
    rows = shell.json("stack resource list res --long --nested-depth 2")
    assert {row["resource_name"]: row["resource_status"] for row in rows} == {
        "content": "CREATE_COMPLETE",
        "copy": "CREATE_COMPLETE",
    }
    assert shell.rows("stack resource list res --filter type=Value", "resource_name") == ["copy"]
    shown = shell.json("stack resource show res content --with-attr output")
    assert shown["attributes"]["output"] == "first"
    assert shell.json("stack resource metadata res content") == {}
    shell.ok("stack resource mark unhealthy res content tired")
    assert shell.json("stack resource show res content")["resource_status"] == "CHECK_FAILED"
    shell.ok("stack resource mark unhealthy res content --reset")
    events = shell.json("stack event list res")
    assert events[0]["resource_status_reason"] == "Stack CREATE started"
    [first, *_] = shell.json("stack event list res --resource copy --limit 1")
    shown = shell.json("stack event show res copy", first["id"])
    assert shown["resource_type"] == "OS::Heat::Value"
    assert shell.json("stack event list res --nested-depth 1 --sort event_time:desc")
    shell.ok("stack delete res --yes --wait")


def test_a_wait_handle_takes_signals(shell: Shell) -> None:
    shell.create("sig", SIGNALLED)
    data = json.dumps({"status": "SUCCESS", "data": "ready", "id": "1", "reason": "up"})
    shell.ok("stack resource signal sig handle --data", data)
    path = shell.file("signal.json", data)
    shell.ok(f"stack resource signal sig handle --data-file {path}")
    wait_for(
        lambda: "SIGNAL_COMPLETE" in shell.rows("stack event list sig", "resource_status"),
        "the signal's event",
        timeout_s=60,
    )
    shell.ok("stack delete sig --yes --wait")


def test_a_stack_is_suspended_resumed_and_checked(shell: Shell) -> None:
    shell.create("life", WEB)
    for verb in ("suspend", "resume", "check"):
        shell.ok(f"stack {verb} life --wait")
        assert shell.status("life") == f"{verb.upper()}_COMPLETE"
    shell.ok("stack delete life --yes --wait")


def test_an_update_is_cancelled_with_and_without_rollback(shell: Shell) -> None:
    shell.create("slow", SLOW)
    shell.ok("stack update slow --existing --parameter secs=5")
    assert shell.run("stack cancel slow --wait").code == 0
    assert shell.status("slow") == "ROLLBACK_COMPLETE"
    shell.ok("stack update slow --existing --parameter secs=6")
    assert shell.run("stack cancel slow --no-rollback --wait").code == 1
    assert shell.status("slow") == "UPDATE_FAILED"
    shell.ok("stack delete slow --yes --wait")


def test_failures_are_listed_with_what_failed(shell: Shell) -> None:
    path = shell.file("bad.yaml", FAILING)
    result = shell.run(f"stack create bad -t {path} --wait --poll 1")
    assert (result.code, "CREATE_FAILED" in result.out + result.err) == (1, True)
    failures = shell.ok("stack failures list bad --long")
    assert "bad.broken" in failures
    assert "CREATE_FAILED" in failures
    result = shell.run(f"stack create back -t {path} --enable-rollback --wait --poll 1")
    assert result.code == 1
    shell.settle("back", "ROLLBACK_COMPLETE")
    shell.ok("stack delete bad back --yes --wait")


def test_a_hook_is_polled_and_cleared(shell: Shell) -> None:
    path = shell.file("hook.yaml", WEB)
    shell.ok(f"stack create hook -t {path} --pre-create copy")
    [hook] = wait_for(lambda: shell.json("stack hook poll hook"), "the hook", timeout_s=60)
    assert hook["Resource Name"] == "copy"
    shell.ok("stack hook clear hook copy --pre-create")
    shell.settle("hook", "CREATE_COMPLETE")
    shell.ok("stack delete hook --yes --wait")


def test_a_snapshot_is_taken_and_restored(shell: Shell) -> None:
    shell.create("snap", WEB)
    taken = shell.json("stack snapshot create snap --name before")["ID"]
    shell.settle("snap", "SNAPSHOT_COMPLETE")
    assert shell.rows("stack snapshot list snap", "name") == ["before"]
    shown = shell.json(f"stack snapshot show snap {taken}")["snapshot"]
    assert (shown["name"], shown["status"]) == ("before", "COMPLETE")
    shell.ok("stack update snap --existing --parameter text=after --wait")
    shell.ok(f"stack snapshot restore snap {taken}")
    shell.settle("snap", "RESTORE_COMPLETE")
    assert shell.json("stack output show snap text")["output_value"] == "first"
    shell.ok(f"stack snapshot delete snap {taken}", "--yes")
    wait_for(lambda: not shell.json("stack snapshot list snap"), "its end", timeout_s=60)
    shell.ok("stack delete snap --yes --wait")


def test_a_stack_is_exported_abandoned_and_adopted(shell: Shell) -> None:
    shell.create("old", WEB)
    exported = json.loads(shell.ok("stack export old"))
    assert set(exported["resources"]) == {"content", "copy"}
    path = str(shell.directory / "abandoned.json")
    shell.ok(f"stack abandon old --output-file {path}")
    wait_for(
        lambda: "old" not in shell.rows("stack list", "Stack Name"),
        "the stack to be forgotten",
        timeout_s=60,
    )
    shell.ok(f"stack adopt new --adopt-file {path} --wait")
    assert shell.status("new") == "ADOPT_COMPLETE"
    shown = shell.json("stack resource show new content")
    assert shown["physical_resource_id"] == exported["resources"]["content"]["resource_id"]
    shell.ok("stack delete new --yes --wait")


def test_software_configs_are_made_and_deleted(shell: Shell) -> None:
    path = shell.file("run.sh", "echo hello")
    made = shell.json(f"software config create hello --config-file {path} --group script")
    assert shell.rows("software config list", "id") == [made["id"]]
    shown = shell.json(f"software config show {made['id']}")
    assert (shown["name"], shown["config"]) == ("hello", "echo hello")
    assert shell.ok(f"software config show {made['id']} --config-only").strip() == "echo hello"
    shell.ok(f"software config delete {made['id']}")
    assert shell.json("software config list") == []


def test_software_deployments_are_made_and_deleted(shell: Shell) -> None:
    path = shell.file("run.sh", "echo hello")
    config = shell.json(f"software config create hello --config-file {path}")["id"]
    words = f"software deployment create first --config {config} --server server-1"
    made = shell.json(f"{words} --signal-transport NO_SIGNAL --input-value rack=4")
    assert shell.rows("software deployment list --server server-1", "id") == [made["id"]]
    assert shell.json(f"software deployment show {made['id']}")["server_id"] == "server-1"
    [metadata] = json.loads(shell.ok("software deployment metadata show server-1"))
    assert metadata["name"] == "first"
    assert shell.ok(f"software deployment output show {made['id']} --all") == ""
    shell.ok(f"software deployment delete {made['id']}")
    assert shell.json("software deployment list") == []


def test_the_service_tells_what_it_is_and_what_it_can(shell: Shell) -> None:
    assert set(shell.json("orchestration build info")) == {"api", "engine"}
    assert "OS::Heat::Value" in shell.rows("orchestration resource type list", "Resource Type")
    value = shell.json("orchestration resource type show OS::Heat::Value")
    assert value["properties"]["value"]["required"] is True
    words = "orchestration resource type show OS::Heat::Value --template-type hot"
    assert "OS::Heat::Value" in shell.ok(words)
    versions = shell.rows("orchestration template version list", "Version")
    assert "heat_template_version.2021-04-16" in versions
    words = "orchestration template function list heat_template_version.2021-04-16"
    assert "get_attr" in shell.rows(words, "Functions")
    path = shell.file("valid.yaml", WEB)
    validated = shell.json(f"orchestration template validate -t {path} --parameter text=x")
    assert validated["Parameters"]["text"]["Value"] == "x"


def test_only_the_operator_sees_the_services(shell: Shell) -> None:
    result = shell.run("orchestration service list")
    assert result.code == 0 or "service:index" in result.err


def test_every_command_of_the_help_is_run() -> None:
    """The commands that the client offers are those that the lines of this file begin with."""
    offered = {
        point.name.replace("_", " ")
        for point in metadata.distribution("python-heatclient").entry_points
        if point.name.startswith(GROUPS)
    }
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    lines = " ".join(text for text in texts if isinstance(text, str)) + " "
    verbs = {f"stack {verb}" for verb in ("suspend", "resume", "check")}  # run in a loop
    assert {name for name in offered if f"{name} " not in lines} - verbs == set()
