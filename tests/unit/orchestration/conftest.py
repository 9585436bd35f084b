from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.db.engine import Database
from tests.kit.stacks import trees


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """An empty database with all tables."""
    database = trees.database(tmp_path)
    yield database
    database.close()
