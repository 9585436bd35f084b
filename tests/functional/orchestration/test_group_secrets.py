"""What is secret of a machine stays so where a group has it: in rows, answers and logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.db import tables
from bloomery.model.stack_views import ResourceQuery, StackIdentity
from tests.functional.orchestration.test_machines import CLASS, IMAGE, NODE
from tests.kit.clients.stack_calls import StackCalls
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import make_site
from tests.kit.stacks.machine_sites import template as machine_template
from tests.kit.stacks.row_engines import Engine

MARK = "correct-horse-battery"
RACK = {
    "type": "OS::Heat::ResourceGroup",
    "properties": {
        "count": 1,
        "resource_def": {
            "type": NODE["type"],
            "properties": {**NODE["properties"], "driver_info": {"fake_password": MARK}},
        },
    },
}  # fmt: skip
WORKERS = {
    "type": "OS::Ironic::InstanceGroup",
    "properties": {
        "count": 1,
        "member": {
            "name": "worker-%index%", "image": IMAGE, "selector": {"resource_class": CLASS},
            "user_data": f"#!{MARK}",
        },
        "member_overrides": {"0": {"user_data": f"#!/bin/sh {MARK}"}},
    },
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def tree(site: Orchestration, path: str) -> list[str]:
    """The paths of a stack and of those below, that owner first."""
    below = [
        link["href"].split("/v1/admin", 1)[1]
        for each in site.resources(path).values()
        for link in each["links"]
        if link["rel"] == "nested"
    ]
    return [path, *(inner for each in below for inner in tree(site, each))]


def answers(site: Orchestration, path: str) -> Iterator[tuple[str, Any]]:
    """Everything that may be read of one stack."""
    pages = ["", "/template", "/environment", "/files", "/outputs", "/resources", "/events"]
    pages += [f"/resources/{name}" for name in site.resources(path)]
    pages += [f"/resources/{name}/metadata" for name in site.resources(path)]
    for each in site.ask("GET", f"{path}/events")[1]["events"]:
        pages.append(f"/resources/{each['resource_name']}/events/{each['id']}")
    for page in pages:
        status, document = site.ask("GET", f"{path}{page}")
        assert status == 200, page
        yield f"{path}{page}", document


def test_secrets_of_members_are_sealed_and_masked(
    site: Orchestration, caplog: pytest.LogCaptureFixture
) -> None:
    rack = site.create("rack", template({"rack": RACK}))
    site.wait_for(rack, "CREATE_COMPLETE")
    web = site.create("web", template({"workers": WORKERS}))
    site.wait_for(web, "CREATE_COMPLETE", timeout_s=60)

    stacks = [*tree(site, rack), *tree(site, web)]
    assert len(stacks) == 4
    told = dict(page for path in stacks for page in answers(site, path))
    own = {f"{rack}/template", f"{web}/template"}  # as their owner wrote them
    assert [page for page, each in told.items() if MARK in json.dumps(each)] == sorted(own)
    shown = next(each for page, each in told.items() if page.endswith("/template") and
                 "worker-0" in json.dumps(each))  # fmt: skip
    values = shown["resources"]["0"]["properties"]
    assert (values["user_data"], values["image"]) == ("******", IMAGE)
    assert MARK not in caplog.text

    db = site.service.db
    owners = {row.template_uuid for row in trees.rows_of(db, tables.STACKS) if not row.owner_uuid}
    rows = [
        (name, row)
        for name, table in tables.METADATA.tables.items()
        for row in trees.rows_of(db, table)
    ]
    plain = [(name, row) for name, row in rows if MARK in str(row)]
    assert {row.uuid for _name, row in plain} == owners


HIDDEN = "{heat_template_version: 2021-04-16, parameters: {word: {type: string, hidden: true}}"
PLAIN = "{heat_template_version: 2021-04-16, parameters: {word: {type: string}}"
VALUE = "resources: {v: {type: OS::Heat::Value, properties: {value: {get_param: word}}}}"
OUTPUT = "outputs: {it: {value: {get_attr: [v, value]}}}}"
INNER = f"{HIDDEN}, {VALUE}, {OUTPUT}"
DEEP = "{heat_template_version: 2021-04-16, resources: {in: {type: inner.yaml}}}"
DECLARED = {"word": {"type": "string"}}


@pytest.mark.parametrize(
    ("kind", "files", "declared"),
    [
        ("inner.yaml", {"inner.yaml": INNER}, {}),
        ("inner.yaml", {"inner.yaml": INNER}, DECLARED),
        ("deep.yaml", {"inner.yaml": INNER, "deep.yaml": DEEP}, {}),
        ("plain.yaml", {"plain.yaml": f"{PLAIN}, {VALUE}, {OUTPUT}", "inner.yaml": INNER}, {}),
    ],
    ids=["nested", "declared-plain-in-the-root", "two-levels", "plain-beside-a-hidden-one"],
)
def test_hidden_defaults_of_nested_templates_are_masked(
    tmp_path: Path, kind: str, files: dict[str, str], declared: dict[str, Any]
) -> None:
    calls = StackCalls(tmp_path)
    resources = {"n": {"type": kind}}
    if kind != "deep.yaml":
        value = {"value": {"get_attr": ["n", "it"]}}
        resources["user"] = {"type": "OS::Heat::Value", "properties": value}
    environment = {"parameter_defaults": {"word": MARK, "unknown": "x"}}
    more = {"resources": resources, "files": files, "environment": environment}
    web = calls.create("web", declared=declared, **more)
    assert calls.work(web).status == "COMPLETE"
    arguments = calls.arguments(declared=declared, **more)
    readings = [
        calls.operations.preview_stack(calls.member, "new", arguments),
        calls.operations.preview_update_stack(calls.member, web, arguments, show_nested=True),
    ]
    for row in calls.rows(tables.STACKS):
        each = StackIdentity(project=row.project, name=row.name, uuid=row.uuid)
        query = ResourceQuery(with_detail=True)
        readings += [
            calls.operations.get_environment(calls.member, each),
            calls.operations.get_template(calls.member, each),
            calls.operations.show_stack(calls.member, each, resolve_outputs=False).parameters,
            calls.operations.list_stack_resources(calls.member, each, query),
        ]
    calls.db.close()
    assert [each for each in readings if MARK in repr(each)] == []
    masked = {"word": "******", "unknown": "******"}
    assert readings[2]["parameter_defaults"] == masked


def test_a_batch_that_has_no_secret_leaves_those_of_others_sealed(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path))

    def group(name: str) -> dict[str, Any]:
        member = {"image": IMAGE, "selector": {"resource_class": "pool"}, "name": name}
        overrides = {"1": {"user_data": f"#!{MARK}"}}
        properties = {"count": 2, "member": member, "member_overrides": overrides}
        return {"type": WORKERS["type"], "properties": properties}

    site.create(machine_template({"workers": group("a-%index%")}, "first"))
    Engine(site.db, site.runtime()).run(site.root)
    site.update(machine_template({"workers": group("b-%index%")}, "second"))
    Engine(site.db, site.runtime()).run(site.root)
    assert [each.status for each in site.tree().stacks] == ["COMPLETE"] * 2
    below = next(each for each in site.tree().stacks if each.owner_uuid)
    rows = {row.uuid: row for row in trees.rows_of(site.db, tables.RAW_TEMPLATES)}
    assert MARK not in str(rows[below.template_uuid])


def test_what_is_hidden_above_is_told_nowhere_below(site: Orchestration) -> None:
    word = {"word": {"type": "string"}}
    inner = template({"a": {"type": "OS::Heat::RandomString"}}, parameters=word)
    made = {"params": {"KEY": {"get_param": "key"}}, "template": json.dumps(
        {**template({"a": {"type": "OS::Heat::RandomString"}}), "description": "KEY"})}  # fmt: skip
    given = {"word": {"get_param": "key"}}
    above = template(
        {
            "file": {"type": "inner.yaml", "properties": given},
            "text": {"type": "OS::Heat::Stack", "properties": {
                "template": {"str_replace": made}}},
            "both": {"type": "OS::Heat::Stack", "properties": {
                "template": {"get_file": "inner.yaml"}, "parameters": given}},
        },
        parameters={"key": {"type": "string", "hidden": True}},
    )  # fmt: skip
    path = site.create(
        "above", above, parameters={"key": MARK}, files={"inner.yaml": json.dumps(inner)}
    )
    site.wait_for(path, "CREATE_COMPLETE")
    stacks = tree(site, path)
    assert len(stacks) == 4
    told = {
        f"{each}{page}": json.dumps(site.ask("GET", f"{each}{page}")[1])
        for each in stacks for page in ("", "/template", "/environment", "/files")
    }  # fmt: skip
    assert [page for page, text in told.items() if MARK in text] == []
    assert sum('"word": "******"' in text for text in told.values()) == 4  # shown, and as given
    assert any('"a": {"type": "OS::Heat::RandomString"}' in text and '"description": "******"' in
               text for text in told.values())  # fmt: skip
