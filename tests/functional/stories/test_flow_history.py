"""The history tells of flows: when they began, with which steps, and that they ended well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from tests.kit.servers.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "site.sqlite", disallowed_deployment_boot_modes=("bios",))
    yield found
    found.close()


def _told(site: Site, node: str) -> list[str]:
    return [e["event_type"] for e in site.history(node) if e["event_type"] != "transition"]


def _available(site: Site) -> str:
    node = site.enrol()
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")
    site.provision(node, "provide")
    site.wait_for_state(node, "available")
    return node


def test_cleaning_and_deploying_are_told_with_start_and_end(site: Site) -> None:
    node = _available(site)
    site.provision(node, "active")
    site.wait_for_state(node, "active")
    assert _told(site, node) == [
        "automated_cleaning_start",
        "automated_cleaning_end",
        "deployment_start",
        "deployment_end",
    ]
    assert any("deploy.deploy" in entry["event"] for entry in site.history(node))


FLOWS = {
    "clean": ("manageable", "manual_cleaning", "Starting manual cleaning", "Manual Cleaning"),
    "service": ("active", "servicing", "Starting servicing", "Servicing"),
}


@pytest.mark.parametrize("verb", FLOWS)
def test_a_flow_on_request_is_told_with_its_steps(site: Site, verb: str) -> None:
    state, name, begins, ends = FLOWS[verb]
    node = site.enrol(provision_state=state)
    step = {"interface": "bios", "step": "factory_reset"}
    site.provision(node, verb, steps=[step])
    site.wait_for_state(node, state)
    assert _told(site, node) == [f"{name}_start", f"{name}_end"]
    start, end = (e for e in site.history(node) if e["event_type"] != "transition")
    assert start["event"].startswith(f"{begins} with the steps bios.factory_reset")
    assert end["event"].startswith(f"{ends} completed successfully with the steps bios.")
    for entry in (start, end):
        assert (entry["severity"], entry["conductor"]) == ("INFO", site.runtime.host)
        assert entry["duration_seconds"] is None or entry["duration_seconds"] >= 0


def test_a_flow_that_fails_is_told_as_an_error_in_place_of_its_end(site: Site) -> None:
    node = site.enrol(provision_state="manageable")
    step = {"interface": "raid", "step": "create_configuration"}
    site.provision(node, "clean", steps=[step])
    site.wait_for_state(node, "clean failed")
    assert "manual_cleaning_start" in _told(site, node)
    assert "manual_cleaning_end" not in _told(site, node)
    failed = [e for e in site.history(node) if e["severity"] == "ERROR"]
    assert [e["event"] for e in failed] == [site.node(node).last_error]


def test_a_cleaning_that_is_skipped_is_not_told(site: Site) -> None:
    node = site.enrol(provision_state="manageable", automated_clean=False)
    site.provision(node, "provide")
    site.wait_for_state(node, "available")
    assert _told(site, node) == []


def test_the_log_tells_it_too_where_the_operator_says_so(make_site, caplog) -> None:
    site = make_site(log_step_flows_to_syslog=True)
    node = site.enrol(provision_state="available")
    with caplog.at_level("INFO"):
        site.provision(node, "active")
        site.wait_for_state(node, "active")
    lines = [record.getMessage() for record in caplog.records]
    assert any(f"node {node}: Starting deployment with the steps deploy." in line for line in lines)
    assert any(f"node {node}: Deployment completed successfully" in line for line in lines)


def test_a_boot_mode_that_the_operator_forbids_is_not_deployed(site: Site) -> None:
    node = _available(site)
    patch = [{"op": "add", "path": "/properties/capabilities", "value": "a:b,boot_mode:bios"}]
    site.order("update_node", node, patch, False)
    with pytest.raises(errors.BootModeNotAllowed):
        site.provision(node, "active")
