"""What a client writes, and what guards it: each guard is switched off, and a probe goes red."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import patches, tasks
from bloomery.conductor.periodics import agents
from bloomery.drivers.base import DriverTask, Periodic
from tests.kit.servers.site import Site

Patch = pytest.MonkeyPatch


# ------------------------------------------------------------------------- protections, off


def closed_secrets_off(patch: Patch) -> None:
    """A path may lead into a secret."""
    patch.setattr(patches, "_refuse_inside_secret", lambda *_args: None)
    patch.setattr(patches, "_refuse_inside_sealed", lambda *_args: None)


def depth_check_off(patch: Patch) -> None:
    """What a patch makes nests as deep as it likes."""
    patch.setattr(patches, "_check_size", lambda *_args: None)


def skipping_off(patch: Patch) -> None:
    """One row ends the pass of a periodic."""
    patch.setattr(tasks, "skipping", lambda _uuid: contextlib.nullcontext())


# --------------------------------------------------------------------------------- the probes


def a_secret_changes_as_a_whole_or_not_at_all(site: Site) -> None:
    node = site.enrol()
    change(site, node, op="add", path="/driver_info/x_password", value="hunter2")
    for operation in (
        {"op": "remove", "path": "/driver_info/x_password/token"},
        {"op": "add", "path": "/driver_info/x_password/y", "value": "hunter3"},
    ):
        with contextlib.suppress(errors.PatchError):
            change(site, node, **operation)
            pytest.fail(f"{operation['op']} {operation['path']} was taken")
    assert site.runtime.sealer.open(site.node(node).driver_info)["x_password"] == "hunter2"


def a_patch_nests_no_deeper_than_a_body(site: Site) -> None:
    node, most = site.enrol(), site.runtime.conf.api.max_json_body_depth
    for depth in range(1, most + 10):
        try:
            change(site, node, op="add", path="/extra" + "/a" * depth, value={})
        except errors.PatchError:
            assert depth == most - 1  # the node and extra are two levels
            return
    pytest.fail("a patch makes an object as deep as it likes")


def change(site: Site, node: str, **operation: Any) -> None:
    site.order("update_node", node, [operation], False)


def an_odd_row_is_passed_over(site: Site) -> None:
    nodes = [site.enrol(), site.enrol()]
    asked: list[str] = []

    def look(task: DriverTask) -> None:
        asked.append(task.node.uuid)
        raise RuntimeError("an odd row")

    with contextlib.suppress(RuntimeError):
        agents.run(site.runtime, [("fake", Periodic(states=("enroll",), look=look))])
    assert sorted(asked) == sorted(nodes)


MUTANTS: tuple[tuple[Callable[[Patch], None], Callable[[Site], None]], ...] = (
    (closed_secrets_off, a_secret_changes_as_a_whole_or_not_at_all),
    (depth_check_off, a_patch_nests_no_deeper_than_a_body),
    (skipping_off, an_odd_row_is_passed_over),
)


@pytest.mark.parametrize(("off", "probe"), MUTANTS, ids=lambda each: each.__name__)
def test_a_protection_that_is_off_is_noticed(make_site, off, probe):
    probe(make_site())
    with pytest.MonkeyPatch.context() as patch:
        off(patch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            probe(make_site())
