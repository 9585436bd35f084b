"""Values of each kind of column are sealed anew on each server."""

from __future__ import annotations

import sqlalchemy as sa
from cryptography.fernet import Fernet

from bloomery.db import engine, sealed_values
from bloomery.db.tables import NODES
from bloomery.secrets import Sealer
from tests.kit.servers import filled

OLD, NEW = Fernet.generate_key(), Fernet.generate_key()


def test_values_are_sealed_anew_in_batches(db: engine.Database) -> None:
    filled.fill(db, rows=5)
    text = Sealer(OLD).seal_text("hunter2")
    for table, texts in sealed_values.COLUMNS.items():
        change = sa.update(table).values(dict.fromkeys(texts, text))
        db.transact(lambda conn, change=change: conn.execute(change))
    former = Sealer(OLD).key_id
    batches = []
    rows = sealed_values.reseal(
        db, Sealer(NEW, OLD), former, batch=2, on_batch=lambda table, rows: batches.append(rows)
    )
    assert rows == sum(batches) >= 5 * len(sealed_values.COLUMNS)
    assert max(batches) == 2
    assert sealed_values.reseal(db, Sealer(NEW, OLD), former) == 0
    with db.read() as conn:
        infos = conn.execute(sa.select(NODES.c.driver_info)).scalars().all()
    assert {Sealer(NEW).open_text(info) for info in infos} == {"hunter2"}
