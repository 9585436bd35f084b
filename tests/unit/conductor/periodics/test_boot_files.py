"""Boot CDs that nobody needs go; those that a machine may be reading stay."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

import pytest

from bloomery import boot_files
from bloomery.conductor.periodics import housekeeping
from bloomery.conductor.states import State
from bloomery.conf.agent import Deploy

NEEDED = {
    "deploying", "wait call-back", "deploy hold", "cleaning", "clean wait", "clean hold",
    "inspecting", "inspect wait", "rescuing", "rescue wait", "servicing", "service wait",
    "service hold", "unrescuing", "verifying", "deleting", "adopting",
}  # fmt: skip


@pytest.fixture
def site(make_site, tmp_path: Path):
    site = make_site()
    deploy = Deploy(http_root=str(tmp_path / "http"))
    conf = dataclasses.replace(site.runtime.conf, deploy=deploy)
    object.__setattr__(site.runtime, "conf", conf)
    (tmp_path / "http" / boot_files.FOLDER).mkdir(parents=True)
    return site


def cd_of(site, node: str, end: str = "") -> Path:
    folder = Path(site.runtime.conf.deploy.http_root, boot_files.FOLDER)
    path = folder / (boot_files.new_name(node, boot_files.ISO) + end)
    path.touch()
    return path


def test_a_node_on_its_way_keeps_its_cd(site) -> None:
    cds = {}
    for state in State:
        node = site.enrol()
        site.set(node, provision_state=state.value)
        cds[state.value] = [cd_of(site, node), cd_of(site, node, boot_files.PART)]
    housekeeping.remove_boot_files(site.runtime)
    assert {state for state, paths in cds.items() if any(p.exists() for p in paths)} == NEEDED
    assert all(path.exists() for state in NEEDED for path in cds[state])


def test_a_node_that_is_gone_needs_none_and_files_of_others_stay(site) -> None:
    gone = cd_of(site, str(uuid.uuid4()))
    other = gone.with_name("readme.txt")
    other.touch()
    housekeeping.remove_boot_files(site.runtime)
    assert (gone.exists(), other.exists()) == (False, True)


def test_a_host_that_never_built_one_has_nothing_to_do(make_site) -> None:
    housekeeping.remove_boot_files(make_site().runtime)
