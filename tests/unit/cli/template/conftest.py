"""The commands as somebody types them, in a folder of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bloomery.cli.service.template import template
from tests.kit.clients.templates import Command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed() -> Command:
    """Run ``bloomery template`` with these words; an exception that is none of ours is raised."""

    def run(*words: str | Path) -> Result:
        done = CliRunner().invoke(template, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run


@pytest.fixture
def document(typed: Command) -> Callable[..., Any]:
    """The JSON document that a command prints."""
    return lambda *words: json.loads(typed(*words, "--json").stdout)
