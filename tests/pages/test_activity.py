"""The page of what happened on the site."""

from __future__ import annotations

from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for


def test_flows_failures_and_slow_steps_of_a_time_are_shown(window: Window, service, make) -> None:
    broken = make("broken-1", driver_info={"fake": {"fail": ["deploy.deploy"]}})
    for verb, state in (
        ("manage", "manageable"),
        ("provide", "available"),
        ("active", "deploy failed"),
    ):
        service.api("PUT", f"/v1/nodes/{broken}/states/provision", {"target": verb})
        wait_for(
            lambda state=state: (
                service.api("GET", f"/v1/nodes/{broken}")["provision_state"] == state
            ),
            state,
        )
    window.open("/activity")
    window.see("Activity", "h1")
    window.see("deploy: ", "table")
    assert "0 failed" in window.text(".lane small")
    window.click("Last hour")
    window.see("deploy", ".card")
    window.click("broken-1")
    window.see("broken-1", "h1")


def test_a_phase_is_chosen_and_shared_by_url(window: Window) -> None:
    window.open("/activity?hours=168&phase=deploy")
    window.see("deploy: ", "table")
    assert "clean: " not in window.main()
    assert "phase=deploy" in window.driver.current_url


def test_the_slowest_step_stands_first(window: Window, service: Served) -> None:
    steps = service.api("GET", "/ext/v1/activity?hours=168")["steps"]
    slowest = max((each for each in steps if each["phase"] == "clean" and each["runs"]),
                  key=lambda each: each["median_s"])  # fmt: skip
    window.open("/activity?hours=168")
    window.fill("Phase", "clean")
    window.see(
        f"Class clean: {slowest['interface']}.{slowest['step']}", "section:last-of-type table"
    )
