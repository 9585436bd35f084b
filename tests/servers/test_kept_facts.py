"""What rows tell of a node long after is told on a server, too."""

from __future__ import annotations

from tests.unit.db.test_kept_facts import (  # noqa: F401  run here again
    test_nodes_with_leaks_are_listed_in_whatever_state,
    test_the_latest_flow_that_ended_well_is_the_last_cleaning,
)
