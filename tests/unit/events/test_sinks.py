from __future__ import annotations

import json
import logging

import pytest

from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.relay import LogSink


def stored(db: Database, number: int) -> EventRow:
    with db.read() as conn:
        [event] = events.list_after(conn, number - 1, 1)
    return event


@pytest.mark.parametrize(("level", "logged"), [("info", logging.INFO), ("error", logging.ERROR)])
def test_an_event_is_one_line_of_json_at_its_level(db: Database, happen, caplog, level, logged):
    caplog.set_level(logging.DEBUG, "bloomery.events")
    event = stored(db, happen(level=level, facts={"event": "done", "text": "a\nb"}))
    LogSink().send(event)
    [record] = caplog.records
    assert (record.name, record.levelno) == ("bloomery.events", logged)
    assert "\n" not in record.message
    said = json.loads(record.message)
    assert said.pop("at").startswith(f"{event.created_at:%Y-%m-%dT%H:%M:%S}")
    assert said == {
        "id": event.id,
        "event_type": "baremetal.node.provision_set.end",
        "object_uuid": event.object_uuid,
        "level": level,
        "publisher": "ironic-conductor.bm-cond-1",
        "request_id": "req-1",
        "facts": {"event": "done", "text": "a\nb"},
    }


def test_a_level_that_nobody_listens_to_is_not_written(db: Database, happen, caplog):
    caplog.set_level(logging.WARNING, "bloomery.events")
    LogSink().send(stored(db, happen()))
    assert caplog.records == []
