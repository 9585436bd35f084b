"""The template of a stack is shown in the form in which its user sent it, through all updates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery.cli.main import main
from bloomery.orchestration.template import parse
from tests.functional.orchestration.test_machines import why_of
from tests.kit.servers.orchestration import Orchestration

TEXT = """\
heat_template_version: 2021-04-16
# the size is agreed with the owners of the rack
parameters:
  size: {type: number, default: 1}
resources:
  a:
    type: OS::Heat::Value
    properties: {value: {get_param: size}}
"""
OTHER = TEXT.replace("agreed", "fixed")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        yield running


def shown(site: Orchestration, path: str) -> tuple[str, bool]:
    answer = why_of(site, path, "template_text")
    return answer["template_text"], answer["is_as_sent"]


def update(site: Orchestration, method: str, path: str, **body: Any) -> None:
    code, answer = site.ask(method, path, body)
    assert code == 202, answer
    site.wait_for(path, "UPDATE_COMPLETE")


def test_a_text_stays_until_another_template_comes(site: Orchestration) -> None:
    path = site.create("web", TEXT)
    site.wait_for(path, "CREATE_COMPLETE")
    assert shown(site, path) == (TEXT, True)
    update(site, "PATCH", path, parameters={"size": 2})
    assert shown(site, path) == (TEXT, True)
    update(site, "PUT", path, template=OTHER)
    assert shown(site, path) == (OTHER, True)
    document = parse.document(TEXT)
    update(site, "PUT", path, template=document)
    text, is_as_sent = shown(site, path)
    assert (parse.document(text), is_as_sent) == (document, False)
    assert text.startswith("heat_template_version: '2021-04-16'\nparameters:\n")
    update(site, "PUT", path, revision=3)
    assert shown(site, path) == (OTHER, True)
    assert site.ask("GET", f"{path}/template")[1] == document


def path_of(site: Orchestration) -> str:
    stack = site.ask("GET", "/stacks/web")[1]["stack"]
    return f"/stacks/web/{stack['id']}"


def run(site: Orchestration, *words: str) -> str:
    clouds = str(site._home.clouds)
    runner = CliRunner(env={"OS_CLOUD": None, "OS_CLIENT_CONFIG_FILE": clouds})
    result = runner.invoke(main, [*words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_command_sends_what_the_file_has(
    site: Orchestration, tmp_path: Path, is_saved: bool
) -> None:
    file, plan = tmp_path / "web.yaml", str(tmp_path / "plan")
    file.write_text(TEXT)
    if is_saved:
        run(site, "stack", "plan", str(file), "web", "--out", plan)
        run(site, "stack", "up", "--plan", plan, "--yes")
    else:
        run(site, "stack", "up", str(file), "web", "--yes")
    path = path_of(site)
    assert shown(site, path) == (TEXT, True)


def test_a_template_whose_files_get_other_names_is_written_anew(
    site: Orchestration, tmp_path: Path
) -> None:
    """The command sends the names of files as it finds them, so that the text has another."""
    file = tmp_path / "web.yaml"
    (tmp_path / "note").write_text("hello")
    file.write_text(TEXT.replace("{get_param: size}", "{get_file: note}"))
    run(site, "stack", "up", str(file), "web", "--yes")
    text, is_as_sent = shown(site, path_of(site))
    assert not is_as_sent
    assert f"get_file: {tmp_path}/note" in text


def test_one_resource_of_a_file_is_no_text(site: Orchestration, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(TEXT)
    run(site, "stack", "up", str(file), "web", "--yes")
    file.write_text(OTHER.replace("value: {get_param: size}", "value: 7"))
    run(site, "stack", "up", str(file), "web", "--target", "a", "--yes")
    text, is_as_sent = shown(site, path_of(site))
    assert not is_as_sent
    assert "value: 7" in text
