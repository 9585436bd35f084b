"""What a roll-out waits for: its window, and what is said of it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.functional.orchestration.test_machine_groups import group_of, images
from tests.functional.orchestration.test_machine_plans import planned
from tests.functional.orchestration.test_machines import enrol, why_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

OLD, NEW = "http://images/a.img", "http://images/b.img"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    with Orchestration(tmp_path / "state") as running:
        for number in (1, 2):
            enrol(running, f"n{number}", ports=[{"address": f"52:54:00:00:01:0{number}"}])
        yield running


def windowed(image: str, window: dict[str, Any]) -> dict[str, Any]:
    document = group_of(image)
    document["resources"]["workers"]["update_policy"]["rolling_update"]["window"] = window
    return document


def test_a_roll_out_waits_for_its_window_and_a_signal_lets_it_go(site: Orchestration) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=12)).replace(second=0, microsecond=0)
    window = {"cron": f"{opens:%M %H} * * *", "length": 3600, "time_zone": "Etc/UTC"}
    path = site.create("workers", windowed(OLD, window))
    site.wait_for(path, "CREATE_COMPLETE")

    new = windowed(NEW, window)
    assert planned(site, path, new)["begins_at"] == opens.isoformat(timespec="minutes")

    assert site.ask("PUT", path, {"template": new})[0] == 202
    wait_for(lambda: why_of(site, path)["cause_code"] == "window_closed", "the window")
    why = why_of(site, path)
    [wait] = why["waiting"]
    moment = f"{opens:%a %Y-%m-%d %H:%M UTC}"
    assert wait["due_at"] == opens.isoformat()
    assert wait["for"].startswith(f"roll-out waits for its window, which opens {moment}")
    assert """--data '{"rollout": "continue"}' lets it go on at any time""" in why["next_action"]
    assert datetime.fromisoformat(why["timeout_at"]) > opens  # the wait does not count
    assert moment in run(site, "stack", "why", "workers").output
    assert images(site) == [OLD, OLD]

    assert site.ask("POST", f"{path}/resources/workers/signal", {"rollout": "continue"})[0] == 200
    site.wait_for(path, "UPDATE_COMPLETE")
    assert images(site) == [NEW, NEW]


def test_another_order_ends_the_wait_for_a_window(site: Orchestration) -> None:
    opens = datetime.now(UTC) + timedelta(hours=12)
    window = {"begin": f"{opens:%H:%M}", "end": f"{opens + timedelta(hours=1):%H:%M}"}
    path = site.create("workers", windowed(OLD, window))
    site.wait_for(path, "CREATE_COMPLETE")
    assert site.ask("PUT", path, {"template": windowed(NEW, window)})[0] == 202
    wait_for(lambda: why_of(site, path)["cause_code"] == "window_closed", "the window")
    assert site.ask("PUT", path, {"template": group_of(NEW)})[0] == 202
    site.wait_for(path, "UPDATE_COMPLETE")
    assert images(site) == [NEW, NEW]


def test_a_window_that_never_opens_is_refused(site: Orchestration) -> None:
    window = {"cron": "0 0 30 2 *", "length": 3600}
    body = {"stack_name": "workers", "template": windowed(OLD, window)}
    status, answer = site.ask("POST", "/stacks", body)
    assert status == 400
    assert "cannot use the window of rolling_update: it never opens" in str(answer)
