"""Doors stand open, or shut, that must not; the probes of doors notice."""

from __future__ import annotations

import re

import pytest

from bloomery.api import auth, browsers, declare
from tests.kit.probes import door_probes

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


OPEN = {
    "pages of strangers": lambda patch: patch.setattr(
        browsers.Guard, "_may_ask", lambda self, origin, own: True
    ),
    "names of strangers": lambda patch: patch.setattr(
        browsers.Guard, "_may_be_called", lambda self, host: True
    ),
    "any type of body": lambda patch: patch.setattr(declare, "JSON_TYPES", re.compile(".*")),
    "no page at all": lambda patch: patch.setattr(
        browsers.Guard, "_may_ask", lambda self, origin, own: False
    ),
}


def test_the_probe_of_strangers_is_green_while_they_stay_outside(tmp_path):
    with door_probes.open_to_all(tmp_path) as client:
        door_probes.strangers_are_not_served(client)


@pytest.mark.parametrize("off", OPEN.values(), ids=OPEN)
def test_a_stranger_who_is_let_in_is_noticed(tmp_path, monkeypatch, off):
    off(monkeypatch)
    with door_probes.open_to_all(tmp_path) as client, pytest.raises(AssertionError):
        door_probes.strangers_are_not_served(client)
