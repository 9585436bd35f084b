"""What a roll-out does not protect, as nothing of it is in service yet, is made at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bloomery.model.stacks import Template
from tests.kit.stacks import machine_sites, trees
from tests.kit.stacks.machine_sites import Site, make_site
from tests.kit.stacks.row_engines import Engine

DEPLOY_S = machine_sites.TAKES_S["active"]


def group(count: int) -> Template:
    """Machines that change one by one, judged a minute after each."""
    member = {
        "selector": {"resource_class": "pool"}, "image": {"source": "http://images/a"},
        "retry": {"attempts": 1},
    }  # fmt: skip
    properties = {"count": count, "member": member}
    policy = {"rolling_update": {"failure_policy": "stop"}}
    body = {
        "type": "OS::Ironic::InstanceGroup", "properties": properties, "update_policy": policy,
    }  # fmt: skip
    return machine_sites.template({"group": body}, f"group of {count}")


def ended(site: Site) -> tuple[str, float]:
    """Let the engine end what was ordered; return the state, and how long it took."""
    began_s = site.now_s
    Engine(site.db, site.runtime()).run(site.root)
    stack = site.stack()
    return f"{stack.action}_{stack.status}", site.now_s - began_s


def rollout(site: Site) -> Any:
    (row,) = (each for each in site.tree().resources if each.name == "group")
    return row.data["rollout"]


def test_members_that_were_never_complete_are_made_in_one_batch(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=8)
    for verb in ("active", "rebuild") * 4:
        site.machines.fail_next(verb, "no disk")
    site.create(group(4))
    assert ended(site)[0] == "CREATE_FAILED"
    site.update(group(4))
    assert ended(site)[0] == "UPDATE_FAILED"
    site.update(group(4))
    state, took_s = ended(site)
    assert state == "UPDATE_COMPLETE"
    assert (rollout(site)["batch"], rollout(site)["of"]) == (1, 1)
    assert took_s < DEPLOY_S + 60


def test_a_group_that_grows_is_complete_when_its_new_members_are(tmp_path: Path) -> None:
    site = make_site(trees.database(tmp_path), pool=4)
    site.create(group(2))
    ended(site)
    site.update(group(4))
    state, took_s = ended(site)
    assert state == "UPDATE_COMPLETE"
    assert took_s < DEPLOY_S + 60
    assert rollout(site)["batch"] == 1
