"""What a template names beside itself is found, carried and called by a name that can be opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery.cli.service.template import template
from bloomery.cli.template.files import FileBundle, beside
from tests.kit.clients.templates import Command, written

HEAD = "heat_template_version: 2021-04-16\n"
CHILD = (
    HEAD + "resources:\n  v: {type: OS::Heat::Value, properties: {value: {get_file: note.txt}}}\n"
    "outputs:\n  o: {value: {get_attr: [v, value]}}\n"
)
ROOT = (
    HEAD + "resources:\n  n: {type: deep/child.yaml}\noutputs:\n  o: {value: {get_attr: [n, o]}}\n"
)


def test_files_are_found_beside_the_document_that_names_them(
    here: Path, document: Callable[..., Any]
) -> None:
    deep = here / "deep"
    deep.mkdir()
    written(here, t__yaml=ROOT, note__txt="beside the root")
    written(deep, child__yaml=CHILD, note__txt="beside the child")
    assert document("run", "t.yaml")["outputs"]["o"] == {"value": "beside the child"}


def test_the_registry_names_templates_beside_its_environment(
    here: Path, document: Callable[..., Any]
) -> None:
    site = here / "site"
    site.mkdir()
    written(here, t__yaml=ROOT.replace("deep/child.yaml", "My::Child"))
    written(
        site,
        child__yaml=CHILD,
        note__txt="of the site",
        env__yaml="resource_registry:\n  resources:\n    n: {My::Child: child.yaml}\n",
    )
    told = document("run", "t.yaml", "-e", "site/env.yaml")
    assert told["outputs"]["o"] == {"value": "of the site"}


def test_a_later_environment_wins(here: Path, document: Callable[..., Any]) -> None:
    text = HEAD + "parameters:\n  a: {type: string}\noutputs:\n  o: {value: {get_param: a}}\n"
    written(
        here, t__yaml=text, e1__yaml="parameters: {a: one}\n", e2__yaml="parameters: {a: two}\n"
    )
    both = ("run", "t.yaml", "-e", "e1.yaml", "-e", "e2.yaml")
    assert document(*both)["outputs"]["o"] == {"value": "two"}
    assert document(*both, "-P", "a=three")["outputs"]["o"] == {"value": "three"}


def test_environments_may_be_merged(here: Path, document: Callable[..., Any]) -> None:
    text = HEAD + "parameters:\n  a: {type: json}\noutputs:\n  o: {value: {get_param: a}}\n"
    strategy = "parameter_merge_strategies: {default: merge}\n"
    written(
        here,
        t__yaml=text,
        e1__yaml=f"{strategy}parameters: {{a: {{x: 1}}}}\n",
        e2__yaml=f"{strategy}parameters: {{a: {{y: 2}}}}\n",
    )
    told = document("run", "t.yaml", "-e", "e1.yaml", "-e", "e2.yaml")
    assert told["outputs"]["o"] == {"value": {"x": 1, "y": 2}}


def test_a_missing_file_matters_only_where_it_is_used(
    here: Path, document: Callable[..., Any]
) -> None:
    written(here, t__yaml=HEAD + "outputs:\n  a: {value: {get_file: gone}}\n  b: {value: 1}\n")
    told = document("run", "t.yaml")
    assert (told["status"], told["error"]) == ("CREATE_COMPLETE", None)
    assert "gone" in str(told["outputs"]["a"]["error"])
    assert told["outputs"]["b"] == {"value": 1}


def test_what_is_no_file_is_not_read(here: Path, document: Callable[..., Any]) -> None:
    written(here, t__yaml=HEAD + "outputs:\n  a: {value: {get_file: /dev/zero}}\n")
    assert "error" in document("run", "t.yaml")["outputs"]["a"]


def test_a_template_that_contains_itself_is_gathered_once(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + "resources:\n  a: {type: t.yaml}\n")
    done = typed("validate", "t.yaml")
    assert done.exit_code == 1
    assert "deep" in done.stderr


def test_data_called_get_file_or_type_is_left_alone(here: Path) -> None:
    text = HEAD + "outputs:\n  a: {value: {type: x.yaml, get_file: y}}\n"
    written(here, t__yaml=text)
    bundle = FileBundle()
    assert bundle.template("t.yaml")["outputs"]["a"]["value"] == {"type": "x.yaml", "get_file": "y"}
    assert bundle.files == {}


def test_names_are_made_as_people_would_type_them(here: Path) -> None:
    assert beside("b.yaml", "a.yaml") == "b.yaml"
    assert beside("../b.yaml", "deep/a.yaml") == "b.yaml"
    assert beside("/etc/b.yaml", "a.yaml") == "/etc/b.yaml"
    assert beside("b.yaml", "http://h/x/a.yaml") == "http://h/x/b.yaml"
    assert beside("https://h/b.yaml", "a.yaml") == "https://h/b.yaml"
    assert beside(f"file://{here}/b%20c.yaml", "a.yaml") == "b c.yaml"


def test_a_file_that_cannot_be_read_is_hinted_at(here: Path, typed: Command) -> None:
    here.joinpath("old.txt").write_bytes(b"\xff")
    here.joinpath("folder").mkdir()
    named = ", ".join(f"{{get_file: {name}}}" for name in ("gone.txt", "old.txt", "folder"))
    written(here, t__yaml=HEAD + f"outputs: {{o: {{value: [{named}]}}}}\n")
    done = typed("validate", "t.yaml")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "t.yaml: hint: cannot read gone.txt: No such file or directory",
        "t.yaml: hint: cannot read old.txt: it is not UTF-8; save it as UTF-8",
        "t.yaml: hint: cannot read folder: it is no file",
    ]


def test_a_template_may_come_from_standard_input(here: Path) -> None:
    written(here, note__txt="beside")
    text = HEAD + "outputs: {o: {value: {get_file: note.txt}}}\n"
    done = CliRunner().invoke(template, ["run", "-", "--json"], input=text)
    assert json.loads(done.stdout)["outputs"]["o"] == {"value": "beside"}


def test_a_template_may_be_named_by_a_url_of_a_file(here: Path, typed: Command) -> None:
    (here / "deep").mkdir()
    written(here / "deep", child__yaml=CHILD, note__txt="x")
    written(here, t__yaml=ROOT)
    assert typed("validate", f"file://{here}/t.yaml").exit_code == 0


@pytest.mark.parametrize(
    "url", ["http://a b/t.yaml", "http://a:port/t.yaml", "http://ä/ä", "http:///"]
)
def test_a_url_that_is_none_is_a_file_that_cannot_be_read(
    url: str, here: Path, typed: Command
) -> None:
    done = typed("validate", url)
    assert (done.exit_code, f"cannot read {url}: " in done.stderr) == (1, True)
    written(here, t__yaml=HEAD + f"resources: {{a: {{type: '{url}.yaml'}}}}\n")
    assert typed("validate", "t.yaml").exit_code == 1
