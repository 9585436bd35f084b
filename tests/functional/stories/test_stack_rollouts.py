"""What a roll-out waits for: its window and its drains, and what is said of it meanwhile."""

from __future__ import annotations

import http.client
import http.server
import re
import threading
import urllib.parse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bloomery.conf.notifications import Events
from tests.functional.orchestration.test_machine_groups import group_of, images
from tests.functional.orchestration.test_machine_plans import planned
from tests.functional.orchestration.test_machines import enrol, ironic, why_of
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration
from tests.kit.waiting import wait_for

PAGE = Path(__file__).parents[3] / "doc/guides/drains.md"
OLD, NEW = "http://images/a.img", "http://images/b.img"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Orchestration]:
    events = Events(webhook_allow_local=True)
    with Orchestration(tmp_path / "state", events=events) as running:
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
    assert wait["for"].startswith(f"its window, which opens {moment}")
    assert """--data '{"rollout": "continue"}' lets it go on at any time""" in why["next_action"]
    assert datetime.fromisoformat(why["timeout_at"]) > opens  # the wait does not count
    assert moment in run(site, "stack", "why", "workers").output
    _, preview = site.ask("PUT", f"{path}/preview", {"template": new})
    assert preview["plan"]["paused"] == [
        {"resource": "workers", "reason": f"roll-out waits for {wait['for']}"}
    ]
    assert images(site) == [OLD, OLD]

    assert site.ask("POST", f"{path}/resources/workers/signal", {"rollout": "continue"})[0] == 200
    site.wait_for(path, "UPDATE_COMPLETE")
    assert images(site) == [NEW, NEW]


def test_what_a_converging_update_repairs_waits_as_its_plan_says(site: Orchestration) -> None:
    opens = (datetime.now(UTC) + timedelta(hours=12)).replace(second=0, microsecond=0)
    window = {"cron": f"{opens:%M %H} * * *", "length": 3600}
    path = site.create("workers", windowed(OLD, window))
    site.wait_for(path, "CREATE_COMPLETE")
    assert ironic(site, "PUT", "/v1/nodes/n1/states/power", {"target": "power off"})[0] == 202
    off = lambda: ironic(site, "GET", "/v1/nodes/n1")[1]["power_state"] == "power off"  # noqa: E731
    wait_for(off, "the power to be off")
    body = {"template": windowed(OLD, window), "converge": True}
    _, preview = site.ask("PUT", f"{path}/preview", body)
    plan = preview["plan"]
    assert plan["begins_at"] == opens.isoformat(timespec="minutes")
    assert [step["resource"] for step in plan["steps"] if "its window" in step["reason"]] != []
    assert site.ask("PUT", path, body)[0] == 202
    wait_for(lambda: why_of(site, path)["cause_code"] == "window_closed", "the window")
    assert off()
    assert site.ask("POST", f"{path}/resources/workers/signal", {"rollout": "continue"})[0] == 200
    site.wait_for(path, "UPDATE_COMPLETE")
    assert not off()


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


class Balancer:
    """The server of the guide, which drains machines; ``answers`` come before its own."""

    def __init__(self) -> None:
        [text] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
        names: dict[str, Any] = {"__name__": "balancer"}
        exec(compile(text, str(PAGE), "exec"), names)
        self.secret = names["SECRET"]
        self.answers: list[int] = []
        self.drains: list[dict[str, Any]] = []
        self.ids: list[str] = []
        balancer, verify = self, names["standardwebhooks"].Webhook(self.secret).verify

        class Handler(names["Balancer"]):  # type: ignore[misc]
            def do_POST(self) -> None:  # noqa: N802  of http.server
                peek = self.rfile.peek()[: int(self.headers["Content-Length"])]
                call = verify(peek, dict(self.headers))
                balancer.drains.append(call["data"])
                balancer.ids.append(self.headers["webhook-id"])
                if not balancer.answers:
                    return super().do_POST()
                self.send_response(balancer.answers.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()

    def drain(self, **more: Any) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.server.server_address[1]}/drain"
        return {"url": url, "secret": self.secret, "timeout": 3600, **more}


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    balancer = Balancer()
    yield balancer
    balancer.server.shutdown()
    balancer.server.server_close()


def drained(image: str, drain: dict[str, Any]) -> dict[str, Any]:
    document = group_of(image)
    document["resources"]["workers"]["properties"]["drain"] = drain
    return document


def test_members_are_drained_one_after_the_other(site: Orchestration, balancer: Balancer) -> None:
    drain = balancer.drain()
    path = site.create("workers", drained(OLD, drain))
    site.wait_for(path, "CREATE_COMPLETE")
    assert balancer.drains == []

    plan = planned(site, path, drained(NEW, drain))
    members = [step for step in plan["steps"] if step["action"] == "rebuild"]
    assert len(members) == 2
    assert all("its drain comes first, and pauses after 3600 s" in m["reason"] for m in members)
    assert drain["secret"] not in str(plan)

    balancer.answers = [503, 202]  # busy, then taken: it is cleared by its URL
    assert site.ask("PUT", path, {"template": drained(NEW, drain)})[0] == 202
    wait_for(lambda: "has accepted it" in why_of(site, path)["cause"], "the first drain")
    why = why_of(site, path)
    assert why["cause_code"] == "drain"
    assert """--data '{"drain": "clear"}' lets it go on""" in why["next_action"]
    assert len(set(balancer.ids)) == 1 < len(balancer.ids)
    _, preview = site.ask("PUT", f"{path}/preview", {"template": drained(NEW, drain)})
    assert [each["resource"] for each in preview["plan"]["paused"]] == ["1"]
    assert images(site) == [OLD, OLD]
    first = balancer.drains[-1]
    assert (first["comes"], first["loses_data"], first["instance_name"]) == (
        "rebuild", True, "worker-1",
    )  # fmt: skip
    clear(first["clear_url"], 200)
    site.wait_for(path, "UPDATE_COMPLETE")  # the server of the guide clears the second one itself
    assert images(site) == [NEW, NEW]
    assert [each["instance_name"] for each in balancer.drains] == ["worker-1"] * 2 + ["worker-0"]
    clear(first["clear_url"], 400)
    assert drain["secret"] not in str(site.resources(path))

    balancer.drains.clear()
    assert site.ask("DELETE", path)[0] == 204
    site.wait_for(path, "DELETE_COMPLETE")
    assert sorted((each["comes"], each["instance_name"]) for each in balancer.drains) == [
        ("delete", "worker-0"), ("delete", "worker-1"),
    ]  # fmt: skip


def clear(url: str, status: int) -> None:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("POST", f"{parts.path}?{parts.query}", b"")
    answer = connection.getresponse()
    assert answer.status == status, answer.read()
    connection.close()
