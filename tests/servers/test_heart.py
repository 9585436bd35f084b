"""A conductor lives while its work uses up all connections."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from bloomery import errors
from bloomery.conductor import lifecycle
from bloomery.conductor.registration import Registration
from bloomery.conf.default import Database as Settings
from bloomery.db import conductors, engine
from bloomery.secrets import Sealer
from tests.kit.servers import site as kit


def test_a_sign_of_life_waits_for_no_connection(db: engine.Database):
    narrow = engine.Database(db.url, Settings(max_pool_size=2, max_overflow=0, pool_timeout=0))
    registration = Registration(lifecycle.build(kit.conf("a"), narrow, Sealer(kit.KEY)))
    registration.begin(alone=False)
    with db.read() as conn:
        before = conductors.get(conn, "a").heartbeat
    with ExitStack() as busy:
        for _ in range(2):
            busy.enter_context(narrow.read())
        with pytest.raises(errors.DatabaseBusy):
            narrow.read().__enter__()
        assert registration.beat(online=True)
        with db.read() as conn:
            assert conductors.get(conn, "a").heartbeat == before + 1
    registration.end()
    registration.close()
    narrow.close()
