"""A disk that takes nothing: who asks is told of the disk, not of what stands still with it."""

from __future__ import annotations

import pytest

from bloomery.cmd import gauges
from bloomery.conductor import task_manager
from bloomery.conductor.periodics import looking
from tests.kit import disks
from tests.kit.waiting import wait_for

pytestmark = pytest.mark.sqlite


@pytest.fixture
def db(stage):
    """The database of the stage, which can be written again when the test ends."""
    yield stage.site.db
    disks.make_writable(stage.site.db)


def is_refused(db):
    read = {gauge.name: gauge.read for gauge in gauges.of_site(db)}
    return read["database_refuses_writes"]() == {(): 1}


def test_why_readiness_and_a_metric_name_the_disk(stage, db):
    node = stage.bring_to("active")
    disks.make_readonly(db)
    assert not is_refused(db)
    assert stage.api.put(f"/v1/nodes/{node}/maintenance", {}).status == 503
    told, ready = stage.why(node), stage.api.get("/readyz")
    assert told["cause"].startswith("nothing can be written since ")
    assert "UTC: the file is not writable" in told["cause"]
    assert told["next_action"].startswith("make room on the disk")
    assert told["since"] is not None
    assert (ready.status, ready.json["missing"]) == (503, [told["cause"]])
    assert is_refused(db)
    disks.make_writable(db)
    stage.patch(node, name="web-1")
    assert stage.why(node)["cause"] == "it is in active"
    assert stage.api.get("/readyz").status == 200
    assert not is_refused(db)


def test_the_log_tells_of_the_disk_once_and_not_of_what_it_refuses(stage, db, caplog):
    node, runtime = stage.enrol(), stage.site.runtime
    with task_manager.acquire(looking.context_of(runtime), node, purpose="test"):
        disks.make_readonly(db)
    for _ in range(3):
        stage.site.service._beat()
    [line] = caplog.messages
    assert "the file is not writable" in line
    disks.make_writable(db)
    wait_for(lambda: stage.why(node)["lock"] is None, "the node to be released")
    assert len(caplog.messages) == 2
