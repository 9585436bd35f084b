"""An update of a part of a stack, and what it leaves open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import IMAGE, enrol, node_of
from tests.functional.stories.test_stack_machine_orders import instance, machine
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template

NEW = {"source": "http://images/b.img", "os_hash_algo": "sha256", "os_hash_value": "2" * 64}
PARAMETERS = {"image": {"type": "json", "default": IMAGE}, "size": {"type": "number", "default": 1}}
Json = dict[str, Any]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        for name in ("n1", "n2"):
            enrol(running, name, ports=[])
        yield running


def value(text: Any) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": text}}


def document(image: Any, **more: Json | None) -> Json:
    resources: Json = {name: instance(name, image=image) for name in ("web", "db")}
    resources |= {"note": value({"get_param": "size"}), **more}
    resources = {name: each for name, each in resources.items() if each is not None}
    return template(resources, parameters=PARAMETERS)


@pytest.fixture
def path(site: Orchestration, file: str) -> str:
    made = run(site, "stack", "up", write(file, document(IMAGE)), "web", "-P", "size=2", "--yes")
    assert made.exit_code == 0, made.output
    return "/stacks/web"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "web.json")


def write(file: str, body: Json) -> str:
    Path(file).write_text(json.dumps(body), encoding="utf-8")
    return file


def images(site: Orchestration, path: str) -> dict[str, str]:
    return {
        name: machine(site, path, name)["instance_info"]["image_source"] for name in ("web", "db")
    }


def test_one_resource_is_updated_and_the_rest_is_named(
    site: Orchestration, path: str, file: str
) -> None:
    changed = document(NEW, note=None, more=value("new"))
    write(file, changed | {"outputs": {"url": {"value": "u"}}})
    words = ("stack", "plan", file, "web", "--target", "web")
    planned = run(site, *words)
    assert planned.exit_code == 0, planned.output
    assert "1 to rebuild (data lost)" in planned.output
    left = [line for line in planned.output.splitlines() if line.startswith("left open: ")]
    node = machine(site, path, "db")["name"]
    assert sorted(left) == [
        f"left open: db: rebuild on node {node}, data lost", "left open: more: create",
        "left open: note: delete", "left open: output url: create",
    ]  # fmt: skip
    open_steps = json.loads(run(site, *words, "--json").stdout)["plan"]["left_open"]["steps"]
    assert {each["resource"] for each in open_steps} == {"db", "more", "note"}
    done = run(site, "stack", "up", *words[2:], "--yes")
    assert done.exit_code == 0, done.output
    assert images(site, path) == {"web": NEW["source"], "db": IMAGE["source"]}
    assert {*site.resources(path)} == {"web", "db", "note"}

    # then a new one and one that goes; a parameter that is not said again keeps its value
    done = run(site, "stack", "up", file, "web", "--target", "more", "--target", "note", "--yes")
    assert done.exit_code == 0, done.output
    assert {*site.resources(path)} == {"web", "db", "more"}
    again = run(site, "stack", "up", file, "web", "--target", "web", "--yes")
    assert (again.exit_code, "Nothing changes." in again.output) == (0, True)
    assert "left open: db: rebuild" in again.output
    assert images(site, path)["db"] == IMAGE["source"]
    rest = run(site, "stack", "up", file, "web", "--yes")
    assert rest.exit_code == 0, rest.output
    assert set(images(site, path).values()) == {NEW["source"]}


def test_a_part_that_changes_others_is_refused_with_their_names(
    site: Orchestration, path: str, file: str
) -> None:
    before = site.stack(path)
    shared = {"get_param": "image"}
    write(file, document(shared))
    for words, sentence in (
        (("--target", "nothing"), "neither the file nor stack web has a resource nothing"),
        (("--target", "web/0"), "neither the file nor stack web has a resource web/0"),
        (("--target", "web", "-P", "size=3"), "cannot update web alone: note: patch"),
    ):
        refused = run(site, "stack", "up", file, "web", *words, "--yes")
        assert refused.exit_code == 1, refused.output
        assert sentence in refused.output, refused.output
    other = run(site, "stack", "up", file, "other", "--target", "web", "--yes")
    assert "cannot find a stack called other" in other.output
    for words in (("web", "--revision", "1"), ("--plan", file)):
        refused = run(site, "stack", "up", *words, "--target", "web", "--yes")
        assert refused.exit_code == 2, refused.output
    assert site.stack(path) == before
    assert node_of(site, "n1")["provision_state"] == "active"


def test_a_part_is_saved_and_carried_out(
    site: Orchestration, path: str, file: str, tmp_path: Path
) -> None:
    plan = str(tmp_path / "plan.json")
    write(file, document(NEW))
    saved = run(site, "stack", "plan", file, "web", "--target", "db", "--out", plan)
    assert saved.exit_code == 0, saved.output
    done = run(site, "stack", "up", "--plan", plan, "--yes")
    assert done.exit_code == 0, done.output
    assert images(site, path) == {"web": IMAGE["source"], "db": NEW["source"]}
