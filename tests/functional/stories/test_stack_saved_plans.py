"""A plan that was saved is what is carried out, or is refused with what has changed since."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machines import IMAGE, SLOT, WEB, enrol, ironic, node_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template

NEW = "http://images/b.img"
IMAGE_PARAMETER = {"image": {"type": "string", "default": "http://images/a.img"}}
HARDWARE = {
    "type": "OS::Ironic::HardwareConfiguration",
    "properties": {"node": "spare", "bios": {"settings": {"ProcTurboMode": "Enabled"}}},
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def document(*names: str, **more: Any) -> dict[str, Any]:
    """A template of machines, each with a reservation."""
    resources: dict[str, Any] = {}
    for name in names:
        image = IMAGE | {"source": {"get_param": "image"}}
        allocation = {"get_resource": f"slot-{name}"}
        properties = {"image": image, "name": name, "allocation": allocation}
        resources |= {f"slot-{name}": SLOT, name: WEB | {"properties": properties}}
    return template(resources | more, parameters=IMAGE_PARAMETER)


def write(folder: Path, contents: dict[str, Any]) -> str:
    path = folder / "web.json"
    path.write_text(json.dumps(contents), encoding="utf-8")
    return str(path)


def make(site: Orchestration, folder: Path, *names: str) -> tuple[str, str]:
    """Deploy a machine for each name; return the template's file and the path of the stack."""
    for name in names:
        enrol(site, f"n-{name}", ports=[])
    file = write(folder, document(*names))
    made = run(site, "stack", "up", file, "web", "--yes")
    assert made.exit_code == 0, made.output
    return (
        file,
        f"/stacks/web/{json.loads(run(site, 'stack', 'show', 'web', '--json').stdout)['id']}",
    )


def image_of(site: Orchestration, node: str) -> str:
    return str(node_of(site, node)["instance_info"]["image_source"])


def test_a_saved_plan_is_carried_out_as_it_was_saved(site: Orchestration, tmp_path: Path) -> None:
    file, _ = make(site, tmp_path, "web")
    plan = tmp_path / "plan.json"
    saved = run(site, "stack", "plan", file, "web", "-P", f"image={NEW}", "--out", str(plan))
    assert saved.exit_code == 0, saved.output
    assert plan.stat().st_mode & 0o777 == 0o600
    Path(file).write_text("what a colleague typed since", encoding="utf-8")
    done = run(site, "stack", "up", "--plan", str(plan), "--yes")
    assert done.exit_code == 0, done.output
    assert "1 to rebuild (data lost)" in done.output
    assert image_of(site, "n-web") == NEW
    again = run(site, "stack", "up", "--plan", str(plan), "--yes")
    assert again.exit_code == 1
    assert "stack web: order 2 (was order 1)" in again.output


def test_the_plan_of_a_new_stack_makes_it_once(site: Orchestration, tmp_path: Path) -> None:
    enrol(site, "n-web")
    file, plan = write(tmp_path, document("web")), str(tmp_path / "plan.json")
    assert run(site, "stack", "plan", file, "web", "--out", plan).exit_code == 0
    done = run(site, "stack", "up", "--plan", plan, "--yes")
    assert done.exit_code == 0, done.output
    again = run(site, "stack", "up", "--plan", plan, "--yes")
    assert "a stack of this name is there by now" in again.output
    assert run(site, "stack", "down", "web", "--yes").exit_code == 0
    taken = {"type": "OS::Ironic::Allocation", "properties": {"resource_class": "bm.test"}}
    other = site.create("other", template({"slot": taken}))
    site.wait_for(other, "CREATE_COMPLETE")
    refused = run(site, "stack", "up", "--plan", plan, "--yes")
    assert refused.exit_code == 1
    assert "it would do something else now: slot-web: refuse (new)" in refused.output


def of_a_colleague(site: Orchestration, path: str) -> None:
    order = {"template": document("web", note={"type": "OS::Heat::None"})}
    assert site.ask("PUT", path, order)[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")


def in_maintenance(site: Orchestration, _path: str) -> None:
    assert ironic(site, "PUT", "/v1/nodes/n-web/maintenance", {"reason": "r"})[0] == 202


def named_node_in_maintenance(site: Orchestration, _path: str) -> None:
    assert ironic(site, "PUT", "/v1/nodes/spare/maintenance", {"reason": "r"})[0] == 202


def stack_gone(site: Orchestration, _path: str) -> None:
    assert run(site, "stack", "down", "web", "--yes").exit_code == 0


CHANGES: dict[str, tuple[Callable[[Orchestration, str], None], str]] = {
    "an update": (of_a_colleague, "resource note: CREATE_COMPLETE (new)"),
    "a machine": (in_maintenance, "machine of web: active, in maintenance (was active)"),
    "a node that the template names": (
        named_node_in_maintenance, "node spare: available, in maintenance (was available)",
    ),
    "no stack": (stack_gone, "cannot carry out the plan for stack web: it is gone"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), [*CHANGES.values()], ids=[*CHANGES])
def test_a_plan_is_refused_with_what_has_changed_since(
    site: Orchestration, tmp_path: Path, change: Any, sentence: str
) -> None:
    _, path = make(site, tmp_path, "web")
    enrol(site, "spare", resource_class="bm.spare", ports=[])
    file, plan = write(tmp_path, document("web", spare=HARDWARE)), str(tmp_path / "plan.json")
    saved = run(site, "stack", "plan", file, "web", "-P", f"image={NEW}", "--out", plan)
    assert saved.exit_code == 0, saved.output
    change(site, path)
    refused = run(site, "stack", "up", "--plan", plan, "--yes")
    assert refused.exit_code == 1, refused.output
    assert sentence in refused.output
    if change is not stack_gone:
        assert image_of(site, "n-web") == "http://images/a.img"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot read {file}: No such file or directory"),
        ("{", "cannot read {file}: it is no JSON"),
        ('{"plan": {}}', "cannot read {file}: it is no plan that bloomery stack plan --out has"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_name(
    site: Orchestration, tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "plan.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    refused = run(site, "stack", "up", "--plan", str(file), "--yes")
    assert refused.exit_code == 1
    assert sentence.format(file=file) in refused.output
    both = run(site, "stack", "up", "web.yaml", "--plan", str(file))
    assert "--plan has the stack and all of its options" in both.output


LIMITS = {
    "percent": (
        {"max_data_loss_percent": 50},
        "2 of 2 machines would lose their data, and [engine]max_data_loss_percent allows 50 % in",
    ),
    "class": (
        {"protected_resource_classes": ("bm.test",)},
        "would lose data, which [engine]protected_resource_classes forbids for bm.test",
    ),
}


@pytest.mark.parametrize(("options", "sentence"), [*LIMITS.values()], ids=[*LIMITS])
def test_the_operators_checks_refuse_an_update_by_name(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    with Orchestration(tmp_path / "state", **options) as site:
        file, path = make(site, tmp_path, "web", "db")
        planned = run(site, "stack", "plan", file, "web", "-P", f"image={NEW}")
        assert "refused by the operator's checks: " in planned.output
        assert sentence in planned.output
        refused = run(site, "stack", "up", file, "web", "-P", f"image={NEW}", "--yes")
        assert refused.exit_code == 1
        assert sentence in refused.output
        assert "stacks:override_plan_checks" in refused.output
        assert {image_of(site, name) for name in ("n-web", "n-db")} == {"http://images/a.img"}
        harmless = run(site, "stack", "up", file, "web", "--yes")
        assert harmless.exit_code == 0, harmless.output
        assert site.ask("PATCH", path, {"parameters": {"image": NEW}})[0] == 409
        order = ("stack", "up", file, "web", "-P", f"image={NEW}", "--override-checks", "--yes")
        done = run(site, *order)
        assert done.exit_code == 0, done.output
        assert {image_of(site, name) for name in ("n-web", "n-db")} == {NEW}
