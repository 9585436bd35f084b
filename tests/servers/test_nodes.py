"""What holds of nodes and of their locks on SQLite holds on a server, too."""

from __future__ import annotations

from tests.unit.db.test_json_members import (  # noqa: F401  run here again
    test_a_printed_node_is_what_orjson_makes_of_its_row,
    test_no_fields_are_an_empty_text,
    test_numbers_are_printed_as_numbers,
)
from tests.unit.db.test_locks import (  # noqa: F401  run here again
    node,
    test_a_lost_lock_undoes_the_whole_transaction,
    test_a_released_node_is_free_and_can_be_taken_again,
    test_a_second_holder_is_told_who_holds_and_what_for,
    test_after_all_reservations_are_void_the_old_holder_cannot_write,
    test_the_holder_passes_the_guard_and_writes,
)
from tests.unit.db.test_nodes import (  # noqa: F401
    test_a_chassis_that_is_not_there_is_named,
    test_a_node_comes_back_as_it_was_stored,
    test_traits_come_sorted_with_their_node_and_go_with_it,
    test_what_must_be_unique_is_named,
)
