"""What is printed for people: all of an output, and nothing that a terminal would obey."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.template import commands, tables
from bloomery.orchestration import simulation
from bloomery.orchestration.resources.states import Action, Status
from tests.kit.clients.templates import Command, written

HEAD = "heat_template_version: 2021-04-16\n"
RED = "\x1b[31mred"


def test_an_output_is_printed_in_full(here: Path, typed: Command) -> None:
    long = "x" * 300
    written(here, t__yaml=HEAD + f"outputs: {{o: {{value: {long}}}, p: {{value: [{long}]}}}}\n")
    lines = typed("run", "t.yaml").stdout.splitlines()
    assert f"  o  {long}" in lines
    assert f'        "{long}"' in lines


def test_an_output_of_many_lines_keeps_them(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + 'outputs: {o: {value: "#!/bin/sh\\n  exit 0\\n"}}\n')
    assert "  o:\n      #!/bin/sh\n        exit 0\n\n" in typed("run", "t.yaml").stdout


@pytest.mark.parametrize(
    ("depth", "name", "shown"),
    [
        (0, "a-stack-of-a-usual-name1", "a-stack-of-a-usual-name1"),
        (0, "a-stack-of-a-usual-name12", "a-stack-of-...ual-name12"),
        (1, "web-racks-abcdefghijkl-0-mnopqrstuvwx", "  web-racks-...pqrstuvwx"),
        (9, "web-racks-abcdefghijkl-0-mnopqrstuvwx", " " * 18 + "web-r...uvwx"),
    ],
)
def test_the_middle_of_a_long_name_of_a_stack_is_not_printed(
    depth: int, name: str, shown: str
) -> None:
    said: list[str] = []
    event = simulation.Event(
        at_s=1,
        stack=name,
        stack_id="",
        depth=depth,
        resource=name,
        type="OS::Heat::Stack",
        physical_id=None,
        action=Action.CREATE,
        status=Status.COMPLETE,
        reason="why",
    )
    events = tables.Events(said.append, 0)
    events(event)
    events(dataclasses.replace(event, type="OS::Heat::None"))
    names = [line.split("CREATE_COMPLETE       ")[1].split("  why")[0].rstrip() for line in said]
    assert names == [shown, "  " * depth + name]


def test_a_terminal_obeys_no_value(here: Path, typed: Command) -> None:
    said = json.dumps(RED)
    text = (
        f"description: {said}\nparameters: {{p: {{type: string, default: {said}}}}}\n"
        f"resources: {{{said}: {{type: OS::Heat::Value, properties: {{value: {said}}}}}}}\n"
        f"outputs: {{o: {{value: {said}}}, p: {{value: [{said}]}}}}\n"
    )
    written(here, t__yaml=HEAD + text)
    for command in ("show", "run"):
        said = typed(command, "t.yaml").output
        assert "\\x1b[31mred" in said
        assert "\x1b" not in said
    assert "\x1b" not in typed("validate", "t.yaml", "-P", f"{RED}=1").stderr


def test_what_waits_for_a_resource_is_shown_as_the_template_has_it(
    here: Path, document: Callable[..., Any]
) -> None:
    call = {"list_join": ["-", [{"get_attr": ["a", "value"]}, {"get_param": "OS::stack_name"}]]}
    resources = {
        "a": {"type": "OS::Heat::Value", "properties": {"value": 1}},
        "b": {"type": "OS::Heat::Value", "properties": {"value": call}},
    }
    written(here, t__yaml=HEAD + f"resources: {json.dumps(resources)}\n")
    assert document("show", "t.yaml")["resources"][1]["properties"] == {"value": call}


def test_nothing_is_said_in_place_of_a_description(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + "outputs: {o: {value: 1}}\n")
    assert typed("show", "t.yaml").stdout == "t\n\noutputs:\n  o\n"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_a_document_is_one_in_every_encoding(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    stream.write(commands.json_text({"o": "\u00fc \U0001f600"}))
    stream.flush()
    assert json.loads(raw.getvalue()) == {"o": "\u00fc \U0001f600"}
