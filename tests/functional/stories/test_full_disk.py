"""A disk that takes nothing: who asks is told of the disk, not of what stands still with it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery.cmd import gauges
from bloomery.conductor import task_manager, tasks
from bloomery.rpc.liveness import Liveness
from bloomery.rpc.ring import Ring
from tests.kit.servers import disks
from tests.kit.waiting import wait_for

pytestmark = pytest.mark.sqlite


@pytest.fixture
def db(stage):
    """The database of the stage, which can be written again when the test ends."""
    yield stage.site.db
    disks.make_writable(stage.site.db)


def is_refused(db):
    read = {gauge.name: gauge.read for gauge in gauges.of_site(db, Ring(db))}
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
    assert stage.why(node)["cause"] == "nothing is wrong: it is active"
    assert stage.api.get("/readyz").status == 200
    assert not is_refused(db)


def test_who_cannot_give_a_sign_of_life_for_want_of_a_disk_is_not_called_dead(
    stage, db, monkeypatch
):
    site, conf, now, pauses_s = stage.site, stage.site.runtime.conf, [0.0], []
    disks.make_readonly(db)
    heart = SimpleNamespace(after=lambda delay_s, call: pauses_s.append(delay_s))
    monkeypatch.setattr(site.service, "_heart", heart)
    site.service._beat()
    disks.make_writable(db)
    site.service._beat()
    assert pauses_s == [1.0, conf.conductor.heartbeat_interval]
    disks.make_readonly(db)
    site.service._beat()
    ring = stage.services.rpc.ring
    ring._clock = lambda: now[0]
    ring.liveness = Liveness.of(conf, ring._clock)
    while any(conductor.alive for conductor in ring.list_conductors()):
        now[0] += 10
        ring.refresh()
    refused = stage.api.post("/v1/nodes", {"driver": "fake-hardware"})
    assert refused.status == 503
    assert "the file is not writable" in refused.said


def test_the_log_tells_of_the_disk_once_and_not_of_what_it_refuses(stage, db, caplog):
    node, runtime = stage.enrol(), stage.site.runtime
    with task_manager.acquire(tasks.background_context(runtime), node, purpose="test"):
        disks.make_readonly(db)
    for _ in range(3):
        stage.site.service._beat()
    [line] = caplog.messages
    assert "the file is not writable" in line
    disks.make_writable(db)
    wait_for(lambda: stage.why(node)["lock"] is None, "the node to be released")
    assert len(caplog.messages) == 2
