"""Paths are let past the login, or sent to it, that must not be; the probe of doors notices."""

from __future__ import annotations

import re

import pytest

from bloomery.api import auth
from tests.kit import door_probes

DOCUMENTS, AGENT_CALLS = auth.DOCUMENTS.pattern, auth.AGENT_CALLS.pattern
MUTANTS = {
    "one more path": rf"{auth.PUBLIC.pattern}|/v1/drivers/x/properties",
    "every collection with a suffix": rf"{auth.PUBLIC.pattern}|/v1/\w+\.json",
    "what has more than one ident": rf"{auth.PUBLIC.pattern}|/v1/nodes/x/vifs/x",
    "agents need a login": DOCUMENTS,
    "agents need a login with a suffix": (
        rf"{DOCUMENTS}|/v1/(lookup|heartbeat/[a-z0-9-]+|continue_inspection)/?"
    ),
    "documents need a login": AGENT_CALLS,
}


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    with door_probes.open_doors(tmp_path_factory.mktemp("doors")) as opened:
        yield opened


def test_a_probe_is_green_while_the_paths_are_right(doors):
    door_probes.only_the_public_is_heard(doors)


@pytest.mark.parametrize("pattern", MUTANTS.values(), ids=MUTANTS)
def test_a_door_that_is_wrong_is_noticed(doors, monkeypatch, pattern):
    monkeypatch.setattr(auth, "PUBLIC", re.compile(pattern))
    with pytest.raises(AssertionError):
        door_probes.only_the_public_is_heard(doors)
