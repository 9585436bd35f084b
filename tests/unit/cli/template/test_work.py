"""How often a command does what takes its time: every template is validated once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery.orchestration.template import sections
from bloomery.orchestration.template.dialect import Template
from tests.kit.clients.templates import Command, written

TEMPLATE = "heat_template_version: 2021-04-16\nresources: {a: {type: OS::Heat::RandomString}}\n"


@pytest.mark.parametrize(
    ("words", "templates"),
    [
        (["validate", "t.yaml"], 1),
        (["show", "t.yaml"], 1),
        (["run", "t.yaml"], 1),
        (["graph", "t.yaml"], 1),
        (["plan", "t.yaml", "u.yaml"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_template_is_validated_once(
    here: Path, typed: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], templates: int
) -> None:
    validated: list[Template] = []
    check = sections.check

    def counted(document: Template) -> None:
        validated.append(document)
        check(document)

    monkeypatch.setattr(sections, "check", counted)
    written(here, t__yaml=TEMPLATE, u__yaml=TEMPLATE)
    assert typed(*words).exit_code == 0
    assert len(validated) == templates
