"""Clients that are generated from the OpenAPI documents deploy a node, and create a stack.

    make test-long, or: pytest -m long tests/conformance/openapi

A generator of clients lives in an environment of its own (``make build/openapi/made.stamp``).
"""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers.orchestration import Orchestration

ROOT = Path(__file__).resolve().parents[3]
GENERATOR = ROOT / "build" / "openapi" / "bin" / "openapi-python-client"
STORIES = Path(__file__).with_name("stories.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("story", "printed"),
    [("deploy", "('g-1', 'active')"), ("create", "('g-1', 'CREATE_COMPLETE')")],
)
def test_generated_client_works(
    site: Orchestration, tmp_path: Path, story: str, printed: str
) -> None:
    if not GENERATOR.exists():
        pytest.skip("make build/openapi/made.stamp installs the generator")
    service = site.service
    url = service.url if story == "deploy" else service.orchestration_url
    document = tmp_path / "document.json"
    urllib.request.urlretrieve(f"{url}/ext/v1/openapi.json", document)
    told = subprocess.run(
        [GENERATOR, "generate", "--path", document, "--output-path", tmp_path / "generated",
         "--meta", "none"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "WARNING" not in told, told
    done = subprocess.run(
        [GENERATOR.with_name("python"), STORIES, story, tmp_path, url],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert printed in done.stdout, done.stdout + done.stderr
