"""A stack of a machine through its revisions: what each did, what differs, and the way back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bloomery.cli.main import main
from tests.functional.orchestration.test_machines import (
    IMAGE,
    SLOT,
    WEB,
    enrol,
    ironic,
    node_of,
    why_of,
)
from tests.kit.servers.orchestration import Orchestration, template

PARAMETERS = {
    "image": {"type": "string", "default": "http://images/a.img"},
    "secret": {"type": "string", "hidden": True, "default": "first-s3cret"},
}
NEW = "http://images/b.img"
SECRET = "other-s3cret"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def document(**more: Any) -> dict[str, Any]:
    image = IMAGE | {"source": {"get_param": "image"}}
    properties = WEB["properties"] | {"image": image, "user_data": {"get_file": "user.sh"}}
    note = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "secret"}}}
    resources = {"slot": SLOT, "web": WEB | {"properties": properties}, "note": note}
    return template(resources, parameters=PARAMETERS) | more


def run(site: Orchestration, *words: str) -> Result:
    clouds = str(site._home.clouds)
    runner = CliRunner(env={"OS_CLOUD": None, "OS_CLIENT_CONFIG_FILE": clouds})
    return runner.invoke(main, [*words])


def revisions(site: Orchestration, path: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = why_of(site, path, "revisions")["revisions"]
    return listed


def counted(revision: dict[str, Any]) -> dict[str, int]:
    return {name: count for name, count in revision["counts"].items() if count}


def image_of(site: Orchestration) -> str:
    return str(node_of(site)["instance_info"]["image_source"])


def test_a_machine_goes_back_to_the_revision_of_yesterday(site: Orchestration) -> None:
    enrol(site)
    path = site.create("web", document(), files={"user.sh": "#!/bin/sh\necho one\n"},
                       parameters={"secret": "chosen-s3cret"})  # fmt: skip
    site.wait_for(path, "CREATE_COMPLETE")
    order = {"template": document(), "files": {"user.sh": "#!/bin/sh\necho two\n"}}
    order["parameters"] = {"image": NEW, "secret": SECRET}
    assert site.ask("PUT", path, order)[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert image_of(site) == NEW

    newest, first = revisions(site, path)
    assert (first["revision"], first["state"], counted(first)) == (
        1, "CREATE_COMPLETE", {"created": 3},
    )  # fmt: skip
    assert (newest["revision"], newest["state"]) == (2, "UPDATE_COMPLETE")
    assert counted(newest) == {"updated": 1, "rebuilt": 1, "data_lost": 1}
    assert (newest["is_current"], first["is_current"]) == (True, False)
    assert newest["ended_at"] >= newest["began_at"] >= first["ended_at"]

    listed = run(site, "stack", "history", "web")
    assert "2*" in listed.output
    assert "1 updated, 1 rebuilt, data of 1 lost" in listed.output
    compared = run(site, "stack", "diff", "web", "1", "2")
    assert f"environment.parameters.image: null -> {NEW}" in compared.output
    assert "+echo two" in compared.output
    assert "secret: differs (it has the value of a hidden parameter)" in compared.output
    shown = json.dumps(why_of(site, path, "revisions/2"))
    for text in (compared.output, shown):
        assert SECRET not in text
        assert "chosen-s3cret" not in text
    assert "echo two" in shown

    planned = run(site, "stack", "plan", "web", "--revision", "1")
    assert "1 to rebuild (data lost)" in planned.output, planned.output
    assert "warning: web: cannot see whether http://images/a.img is there" in planned.output
    assert image_of(site) == NEW
    back = run(site, "stack", "up", "web", "--revision", "1", "--yes")
    assert back.exit_code == 0, back.output
    assert image_of(site) == "http://images/a.img"
    assert [each["revision"] for each in revisions(site, path)] == [3, 2, 1]
    same = run(site, "stack", "diff", "web", "1", "3", "--json")
    assert json.loads(same.stdout)["differences"] == []
    assert run(site, "stack", "down", "web", "--yes").exit_code == 0


def test_what_failed_or_was_superseded_is_a_revision_that_says_so(site: Orchestration) -> None:
    def stack(value: object, **more: Any) -> dict[str, Any]:
        properties = {"value": value, "wait_secs": 0, **more}
        return template({"a": {"type": "OS::Heat::TestResource", "properties": properties}})

    path = site.create("web", stack(1))
    site.wait_for(path, "CREATE_COMPLETE")
    site.ask("PUT", path, {"template": stack(2, fail=True)})
    site.wait_for(path, "UPDATE_FAILED")
    site.ask("PUT", path, {"template": stack(3, fail=True), "disable_rollback": False})
    site.wait_for(path, "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
    paused = {"resource_registry": {"resources": {"a": {"hooks": "pre-update"}}}}
    site.ask("PUT", path, {"template": stack(4), "environment": paused})
    site.wait_for(path, "UPDATE_IN_PROGRESS")
    site.ask("PUT", path, {"template": stack(5)})
    site.wait_for(path, "UPDATE_COMPLETE")
    ended = revisions(site, path)
    states = {each["revision"]: (each["state"], each["state_reason"]) for each in ended}
    assert states[2][0] == "UPDATE_FAILED"
    assert states[3][0].startswith("ROLLBACK_")
    assert states[4] == ("UPDATE_FAILED", "superseded by UPDATE")
    assert states[5] == ("UPDATE_COMPLETE", "Stack UPDATE completed successfully")
    assert [each["revision"] for each in ended if each["is_current"]] == [5]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("up", "web", "--revision", "9", "--yes"),
            "cannot find revision 9 of stack web; bloomery",
        ),
        (("diff", "web", "1", "9"), "cannot find revision 9 of stack web; bloomery stack history"),
        (("up", "other", "--revision", "1", "--yes"), "cannot find a stack called other"),
        (("up", "web", "x", "--revision", "1"), "--revision takes the name of the stack alone"),
    ],
)
def test_a_revision_that_is_not_there_is_refused_by_name(
    site: Orchestration, words: tuple[str, ...], sentence: str
) -> None:
    path = site.create("web", template({"a": {"type": "OS::Heat::None"}}))
    site.wait_for(path, "CREATE_COMPLETE")
    refused = run(site, "stack", *words)
    assert refused.exit_code != 0
    assert sentence in refused.output
    assert len(revisions(site, path)) == 1


def test_a_body_with_a_revision_and_a_template_is_refused(site: Orchestration) -> None:
    path = site.create("web", template({"a": {"type": "OS::Heat::None"}}))
    site.wait_for(path, "CREATE_COMPLETE")
    for method, order in (
        ("PUT", {"revision": 1, "template": template({})}), ("PATCH", {"revision": 1}),
        ("PUT", {"revision": "one"}),
    ):  # fmt: skip
        status, answer = site.ask(method, path, order)
        assert (status, "revision" in answer["error"]["message"]) == (400, True), answer


def test_a_revision_survives_a_restart_of_the_engine(site: Orchestration) -> None:
    properties = {"value": 1, "wait_secs": 0}
    held = {"type": "OS::Heat::WaitConditionHandle"}
    wait = {
        "type": "OS::Heat::WaitCondition", "depends_on": "a",
        "properties": {"handle": {"get_resource": "handle"}, "timeout": 600},
    }  # fmt: skip
    a = {"type": "OS::Heat::TestResource", "properties": properties}
    path = site.create("web", template({"a": a, "handle": held, "wait": wait}))
    site.wait_for(path, "CREATE_IN_PROGRESS")
    site.restart()
    assert site.ask("POST", f"{path}/resources/handle/signal", {"status": "SUCCESS"})[0] == 200
    site.wait_for(path, "CREATE_COMPLETE")
    (only,) = revisions(site, path)
    assert (only["state"], counted(only)) == ("CREATE_COMPLETE", {"created": 3})
    assert ironic(site, "GET", "/v1/nodes")[0] == 200
