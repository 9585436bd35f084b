"""Who may write to a node, whatever hypothesis makes of conductors; see ``lock_model``."""

from __future__ import annotations

import pytest
from hypothesis import settings, stateful

from tests.cluster.lock_model import LockModel

_SEARCH = settings(max_examples=30, stateful_step_count=50, deadline=None)


class TestLocks(LockModel.TestCase):
    settings = _SEARCH


@pytest.mark.long
def test_locks_at_length() -> None:
    stateful.run_state_machine_as_test(
        LockModel, settings=settings(_SEARCH, max_examples=3000, stateful_step_count=80)
    )
