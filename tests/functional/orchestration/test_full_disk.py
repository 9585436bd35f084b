"""A disk that is full while stacks are worked on: nothing runs unwritten, and all ends later."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.kit.servers import disks
from tests.kit.servers.orchestration import Orchestration, template
from tests.kit.waiting import wait_for

pytestmark = pytest.mark.sqlite
LARGE = "x" * 100_000  # more than what is free in pages that are there


def test_a_full_disk_stops_handlers_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 1}}
    large = {"type": "OS::Heat::Value", "properties": {"value": LARGE}}
    first = template({"a": slow, "b": large | {"depends_on": "a"}})
    with Orchestration(tmp_path / "state") as site, caplog.at_level(logging.WARNING):
        path = site.create("web", first)
        wait_for(lambda: ("a", "CREATE_IN_PROGRESS") in site.events(path), "a to begin")
        disks.fill(site.service.db)
        wait_for(lambda: "waits for the database" in caplog.text, "the turn to be refused")
        assert site.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
        assert site.resources(path)["b"]["resource_status"] == "INIT_COMPLETE"
        body = {"stack_name": "new", "template": template({"b": large})}
        status, refusal = site.ask("POST", "/stacks", body)
        assert status == 503
        assert "the disk is full" in refusal["error"]["message"]
        assert site.ask("GET", "/stacks/new")[0] == 404
        disks.make_room(site.service.db)
        site.wait_for(path, "CREATE_COMPLETE")
        seen = [event for event in reversed(site.events(path)) if event[0] in "ab"]
        assert seen == [
            ("a", "CREATE_IN_PROGRESS"),
            ("a", "CREATE_COMPLETE"),
            ("b", "CREATE_IN_PROGRESS"),
            ("b", "CREATE_COMPLETE"),
        ]
        site.wait_for(site.create("new", template({"b": large})), "CREATE_COMPLETE")
