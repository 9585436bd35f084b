"""A running service, and the commands as one types them, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bloomery.cli.main import main
from tests.kit.servers.orchestration import Orchestration

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


@pytest.fixture
def run(site: Orchestration) -> Run:
    """Run ``bloomery WORDS``; clouds.yaml is the one that the service wrote."""
    unset = dict.fromkeys(("OS_CLOUD", "OS_AUTH_TYPE", "OS_ENDPOINT"))
    runner = CliRunner(env={**unset, "OS_CLIENT_CONFIG_FILE": str(site._home.clouds)})
    return lambda line, **more: runner.invoke(main, line.split(), **more)


def write(folder: Path, name: str, document: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)
