"""Would the tests of the drift watch notice?  Each row takes one of its safeguards away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery.db import stack_drift
from bloomery.model.request import Request
from bloomery.orchestration.queries import access
from tests.unit.orchestration.engine_host import test_drift_watch as tests


def _operator(*_: Any) -> Request:
    return Request(request_id="r", system_scope="all", roles=("admin", "member", "reader"))


MUTANTS: dict[str, tuple[Callable[[Path], None], Any, str, Any]] = {
    "it tells what an operator sees": (
        tests.test_what_the_owner_of_a_stack_may_not_see_is_not_found,
        access, "request_of", _operator,
    ),
    "it acts with roles that were revoked": (
        tests.test_a_caller_whose_roles_were_revoked_is_told_nothing_of_a_machine,
        access, "request_of", _operator,
    ),
    "it does not look at what was told": (
        tests.test_two_engines_that_look_at_once_report_it_once,
        stack_drift, "stored", lambda conn, uuids: {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_tests_of_the_watch_notice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, where, attribute, broken = MUTANTS[name]
    monkeypatch.setattr(where, attribute, broken)
    with pytest.raises(AssertionError):
        test(tmp_path)
