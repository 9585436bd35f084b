"""schemathesis finds nothing in the OpenAPI documents of both APIs, with all its checks.

    make test-long, or: pytest -m long tests/conformance/openapi/test_schemathesis.py

``schemathesis.toml`` holds what a schema cannot say, with reasons; ``hooks.py`` leaves out requests
that only the text of a document calls wrong.  A failure is schemathesis' own report.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.api import versions
from tests.kit.servers.served import Served

HERE = Path(__file__).parent
EXAMPLES = "15"
OPTIONS = {
    "DEFAULT": {"enabled_hardware_types": "fake-hardware,redfish,ipmi"},
    "conductor": {"preflight_timeout": 0},
    "events": {"max_webhooks": 0},  # none is called
    "orchestration": {"template_fetch_timeout": 1},
}
VERSION = ("--header", f"{versions.NAME}: 1.{versions.MAX}")

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    state = tmp_path_factory.mktemp("site") / "state"
    with Served(state, more=["--orchestration-port", "0"], **OPTIONS) as running:
        running.wait_until_it_answers()
        yield running


def run(url: str, seed: int, *more: str) -> str:
    """Return the report of schemathesis, which has found nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml",
         "run", f"{url}/ext/v1/openapi.json", "--phases", "coverage,fuzzing",
         "--continue-on-failure", "--max-examples", EXAMPLES, "--seed", str(seed),
         "--suppress-health-check", "all", "--no-color", *more],
        cwd=HERE, env=os.environ | {"SCHEMATHESIS_HOOKS": str(HERE / "hooks.py")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_bare_metal_is_as_its_document_says(served: Served, seed: int) -> None:
    report = run(str(served.url), seed, *VERSION)
    assert re.search(r"(\d+) generated, \1 passed", report), report
    assert not served.ended


def test_orchestration_is_as_its_document_says(served: Served, seed: int) -> None:
    report = run(served.orchestration_url, seed)
    assert re.search(r"(\d+) generated, \1 passed", report), report
    assert not served.ended
