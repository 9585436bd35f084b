"""What may be asked of stacks, asked over a server: what holds on SQLite holds there, too."""

from __future__ import annotations

import pytest

from tests.functional.orchestration.test_lives import (  # noqa: F401  run here again
    test_a_cancelled_update_goes_back,
    test_a_failed_create_is_told_and_taken_back_where_it_was_asked,
    test_a_stack_is_made_changed_and_deleted,
    test_what_is_below_is_told_through_its_owner,
)
from tests.kit.clients.stack_calls import StackCalls
from tests.unit.orchestration.orders.test_changes import (  # noqa: F401
    test_a_cancel_goes_back_to_the_template_before,
    test_a_delete_cancels_what_goes_on,
    test_a_nested_stack_is_deleted_by_an_order_to_its_tree,
    test_each_call_renews_whom_engines_act_for,
    test_patch_keeps_what_it_does_not_say,
    test_put_forgets_what_it_does_not_say,
    web,
)
from tests.unit.orchestration.orders.test_create import (  # noqa: F401
    test_a_name_is_taken_by_what_lives,
    test_of_two_that_ask_for_one_name_at_once_one_gets_it,
    test_one_commit_holds_all_that_clients_see,
)
from tests.unit.orchestration.queries.test_lists import (  # noqa: F401
    test_a_list_is_what_was_asked,
    test_hidden_deleted_and_nested_ones_are_shown_when_asked,
    test_pages_make_up_the_whole,
    three,
)
from tests.unit.orchestration.queries.test_show import test_events_are_paged_and_filtered  # noqa: F401


@pytest.fixture
def calls(db, tmp_path):
    return StackCalls(tmp_path, db=db, hidden_stack_tags=("secret",))
