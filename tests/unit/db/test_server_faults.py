from __future__ import annotations

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import server_faults

URL = sa.make_url("postgresql+psycopg://ann@db.example/bloomery")


@pytest.mark.parametrize(
    "message",
    [
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  sorry, too many clients already",
        'FATAL:  too many connections for role "ann"',
    ],
)
def test_server_that_is_full_need_not_be_started(message: str):
    """psycopg names no SQLSTATE where a connection can't be opened."""
    fault = sa.exc.OperationalError("", {}, Exception(f"connection failed: {message}"))
    failure = server_faults.away(fault, URL)
    assert type(failure) is errors.DatabaseBusy
    assert "no connection left: raise its max_connections" in str(failure)


def test_server_that_does_not_answer_is_to_be_started():
    fault = sa.exc.OperationalError("", {}, Exception("connection refused"))
    assert "start the server" in str(server_faults.away(fault, URL))
