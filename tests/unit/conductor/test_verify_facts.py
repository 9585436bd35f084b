"""What verifying notes of a machine beside its power state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.drivers.fake.hardware import FakeManagement
from tests.kit.servers.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "site.sqlite")
    yield found
    found.close()


def _verified(site: Site) -> str:
    node = site.enrol()
    site.provision(node, "manage")
    site.wait_for_state(node, "manageable")
    return node


def test_vendor_and_boot_mode_are_noted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeManagement, "detect_vendor", lambda *_: "acme", raising=False)
    monkeypatch.setattr(FakeManagement, "get_boot_mode", lambda *_: "uefi", raising=False)
    found = site.node(_verified(site))
    assert (found.properties["vendor"], found.boot_mode) == ("acme", "uefi")


def test_a_bmc_that_does_not_tell_its_vendor_is_manageable_all_the_same(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_self: FakeManagement, task: object) -> str:
        raise errors.BmcRefused(node="n", address="a", reason="no")

    monkeypatch.setattr(FakeManagement, "detect_vendor", refuse, raising=False)
    assert "vendor" not in site.node(_verified(site)).properties


@pytest.mark.parametrize(("health", "severity"), [("OK", "INFO"), ("Critical", "ERROR")])
def test_health_is_noted_and_told(
    site: Site, monkeypatch: pytest.MonkeyPatch, health: str, severity: str
) -> None:
    monkeypatch.setattr(FakeManagement, "get_node_health", lambda *_: health)
    node = _verified(site)
    assert site.node(node).health == health
    entries = [e for e in site.history(node) if e["event_type"] == "monitoring"]
    (entry,) = [e for e in entries if "health" in e["event"]]
    assert (entry["severity"], entry["event"]) == (
        severity, f"health of the machine: unknown -> {health}"
    )  # fmt: skip
