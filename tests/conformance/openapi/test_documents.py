"""A client that is generated from the OpenAPI document deploys a node.

    make test-long, or: pytest -m long tests/conformance/openapi

A generator of clients lives in an environment of its own (``make build/openapi/made.stamp``).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.api import openapi, routes
from tests.kit.servers.orchestration import Orchestration

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "build" / "openapi" / "bin" / "openapi-python-client"
DEPLOY = Path(__file__).with_name("deploy.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(300)
def test_generated_client_deploys_a_node(site: Orchestration, tmp_path: Path) -> None:
    if not GENERATOR.exists():
        pytest.skip("make build/openapi/made.stamp installs the generator")
    document = tmp_path / "document.json"
    document.write_text(json.dumps(openapi.document(routes.ENDPOINTS)))
    told = subprocess.run(
        [GENERATOR, "generate", "--path", document, "--output-path", tmp_path / "generated",
         "--meta", "none"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "WARNING" not in told, told
    deployed = subprocess.run(
        [GENERATOR.with_name("python"), DEPLOY, tmp_path, site.service.url],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "('g-1', 'active')" in deployed.stdout, deployed.stdout + deployed.stderr
