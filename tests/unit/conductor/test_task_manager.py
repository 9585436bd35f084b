"""The contract of ``task_manager.acquire``, sentence by sentence."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import states, task_manager, writes
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import NOSTATE
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import locks, nodes, rows
from bloomery.db.engine import Meter
from bloomery.db.tables import PORTGROUPS, VOLUME_CONNECTORS, VOLUME_TARGETS
from bloomery.model.request import Request
from tests.kit.probes import probes
from tests.kit.servers.site import HOST, Site
from tests.kit.waiting import wait_for


class Boom(Exception):
    pass


@pytest.fixture
def node(site: Site) -> str:
    return site.enrol(provision_state="available")


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as made:
        yield made


def impatient(site: Site) -> Context:
    return site.context(wait_s=0.05)


# ------------------------------------------------------------------------------ construction


def test_an_exclusive_task_reserves_the_node_until_the_block_ends(site: Site, node: str):
    with site.acquire(node, purpose="power on") as task:
        row = site.node(node)
        assert (row.reservation, row.reserved_for) == (HOST, "power on")
        assert row.reserved_at is not None
        assert not task.shared
    free = site.node(node)
    assert (free.reservation, free.reserved_for, free.reserved_at) == (None, None, None)


def test_the_lock_is_taken_in_the_constructor_and_not_on_entering(site: Site, node: str):
    task = site.acquire(node)
    assert site.node(node).reservation == HOST
    task.release_resources()


def test_a_shared_task_takes_no_lock_and_meets_none(site: Site, node: str):
    with site.acquire(node), site.acquire(node, shared=True) as task:
        assert task.shared
        assert task.node.uuid == node
    with site.acquire(node, shared=True):
        assert site.is_free(node)


def test_a_task_shows_what_the_contract_names(site: Site, node: str):
    context = site.context()
    with task_manager.acquire(context, node) as task:
        assert task.context is context
        assert task.shared is False
        assert task.node_id == node
        assert task.node == site.node(node)
        assert task.fsm.current_state == "available"
        assert task.fsm.is_stable("available")
        assert task.driver.power.kind == "power"
        for name in ("ports", "portgroups", "volume_connectors", "volume_targets"):
            assert list(getattr(task, name)) == []


def test_a_node_may_be_named_by_the_number_of_its_row(site: Site, node: str):
    with site.acquire(site.node(node).id) as task:
        assert task.node.uuid == node
        assert site.node(node).reservation == HOST


@pytest.mark.parametrize("ident", ["nobody", 987654])
@pytest.mark.parametrize("shared", [True, False])
def test_a_node_that_is_not_there_is_not_found(site: Site, ident: str | int, shared: bool):
    with pytest.raises(errors.NodeNotFound):
        site.acquire(ident, shared=shared)
    assert site.runtime.node_locks.in_use == 0


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("driver", "no-such-hardware", errors.DriverNotFound),
        ("power_interface", "no-such-power", errors.InterfaceNotFoundInEntrypoint),
    ],
)
def test_a_constructor_that_fails_holds_nothing(
    site: Site, node: str, column: str, value: str, error: type[Exception]
):
    site.set(node, **{column: value})
    with pytest.raises(error):
        site.acquire(node)
    assert site.is_free(node)
    assert site.runtime.node_locks.in_use == 0


def test_without_its_driver_a_task_has_none_until_it_is_loaded(site: Site, node: str):
    site.set(node, driver="no-such-hardware")
    with site.acquire(node, load_driver=False) as task:
        assert task.driver is None
        site.set(node, driver="fake-hardware")
        task.node = site.node(node)
        task.load_driver()
        assert task.driver.deploy.kind == "deploy"


def test_setting_the_node_sets_up_the_machine_anew(site: Site, node: str):
    with site.acquire(node) as task:
        other = site.node(node)
        other.provision_state, other.target_provision_state = "deploying", "active"
        task.node = other
        assert (task.fsm.current_state, task.fsm.target_state) == ("deploying", "active")


def test_lists_are_read_when_first_asked_for_and_kept(site: Site, node: str):
    address = "52:54:00:00:00:01"
    with site.acquire(node) as task:
        site.order("create_record", "port", port_of(node, address))
        assert [port.address for port in task.ports] == [address]
        site.order("create_record", "port", port_of(node, "52:54:00:00:00:02"))
        assert [port.address for port in task.ports] == [address]
        task.ports = []
        assert task.ports == []


def port_of(node: str, address: str) -> dict[str, Any]:
    return {"uuid": f"{address.replace(':', '')}-port", "node_uuid": node, "address": address}


def test_port_groups_and_volumes_are_read_too(site: Site, node: str):
    now = {"node_uuid": node, "created_at": rows.now(), "extra": '{"a":1}'}

    def add(conn: sa.Connection) -> None:
        conn.execute(
            sa.insert(PORTGROUPS),
            {
                "uuid": "pg", "internal_info": "{}", "properties": "{}", "mode": "active-backup",
                "standalone_ports_supported": True, "dynamic_portgroup": False,
            } | now,
        )  # fmt: skip
        conn.execute(
            sa.insert(VOLUME_CONNECTORS), {"uuid": "vc", "type": "iqn", "connector_id": "i"} | now
        )
        conn.execute(
            sa.insert(VOLUME_TARGETS),
            {"uuid": "vt", "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
            | {"properties": "{}"} | now,
        )  # fmt: skip

    site.db.transact(add)
    with site.acquire(node) as task:
        found = [task.portgroups, task.volume_connectors, task.volume_targets]
        assert found[0][0].uuid == "pg"
        assert [[row.uuid for row in listed] for listed in found[1:]] == [["vc"], ["vt"]]
        assert task.portgroups[0].extra == {"a": 1}
        task.portgroups = []
        assert task.portgroups == []


def test_a_list_that_cannot_be_read_releases_the_node(site: Site, node: str, monkeypatch):
    def refuse(*_args: Any, **_equal: Any) -> Any:
        raise Boom

    monkeypatch.setattr(task_manager.records, "list_where", refuse)
    task = site.acquire(node)
    with pytest.raises(Boom):
        _ = task.ports
    assert site.is_free(node)


# ---------------------------------------------------------------------------- exclusive locks


def test_a_second_holder_is_told_who_holds_and_for_what(site: Site, node: str):
    probes.second_holder_is_told_who_holds(site, node)


def test_a_holder_in_another_process_is_named(site: Site, node: str):
    other = site.another_host("host-b")
    with task_manager.acquire(
        Context(runtime=other, request=site.request()), node, purpose="clean"
    ):
        with pytest.raises(errors.NodeLocked, match=r"host host-b \(clean\)") as told:
            site.acquire(node, retry=False)
        assert told.value.status == 409


def test_two_tasks_of_one_host_exclude_each_other_in_the_database(site: Site, node: str):
    probes.reservation_excludes_without_gates(site, node)


def test_without_retry_there_is_one_attempt(site: Site, node: str):
    with site.acquire(node):
        began = time.monotonic()
        with pytest.raises(errors.NodeLocked):
            site.acquire(node, retry=False)
        assert time.monotonic() - began < 0.5


def test_a_caller_waits_as_long_as_the_options_say(make_site):
    site = make_site(node_locked_retry_attempts=2, node_locked_retry_interval=3)
    assert site.context().patience_s == 6
    assert site.context(wait_s=0.25).patience_s == 0.25


def test_a_caller_that_waited_in_vain_is_told(site: Site, node: str):
    with site.acquire(node):
        began = time.monotonic()
        with pytest.raises(errors.NodeLocked):
            task_manager.acquire(impatient(site), node)
        assert time.monotonic() - began >= 0.05


def test_who_waits_is_served_when_the_holder_lets_go(site: Site, node: str, pool):
    task = site.acquire(node)
    waiting = pool.submit(site.acquire, node)
    wait_for(lambda: site.runtime.node_locks.waiting, "the second to wait")
    task.release_resources()
    second = waiting.result(timeout=5)
    assert site.node(node).reservation == HOST
    second.release_resources()


def test_waiters_are_served_first_come_first_served(site: Site, node: str, pool):
    probes.waiters_are_served_in_order(site, node, pool)


def test_the_patient_wait_past_every_limit(make_site, pool):
    site = make_site(node_locked_retry_attempts=0)
    node = site.enrol()
    task = site.acquire(node)
    patient = pool.submit(site.acquire, node, patient=True)
    wait_for(lambda: site.runtime.node_locks.waiting, "the patient one to wait")
    with pytest.raises(errors.NodeLocked):
        site.acquire(node)
    task.release_resources()
    patient.result(timeout=5).release_resources()


def test_a_task_releases_only_what_it_holds(site: Site, node: str):
    task = site.acquire(node)
    site.db.transact(lambda conn: locks.void_all(conn, HOST))
    other = task_manager.acquire(
        Context(runtime=site.another_host("host-b"), request=site.request()), node
    )
    task.release_resources()
    assert site.node(node).reservation == "host-b"
    other.release_resources()
    assert site.is_free(node)


def test_upgrading_locks_and_reads_the_node_anew(site: Site, node: str):
    with site.acquire(node, shared=True) as task:
        site.set(node, description="changed", provision_state="manageable")
        task.upgrade_lock(purpose="to write")
        assert not task.shared
        assert task.node.description == "changed"
        assert task.fsm.current_state == "manageable"
        assert site.node(node).reserved_for == "to write"
        generation = task.node.lock_generation
        task.upgrade_lock()
        assert site.node(node).lock_generation == generation
    assert site.is_free(node)


def test_an_upgrade_that_failed_leaves_a_shared_task_that_may_try_again(site: Site, node: str):
    other = task_manager.acquire(
        Context(runtime=site.another_host("host-b"), request=site.request()), node
    )
    with site.acquire(node, shared=True) as task:
        with pytest.raises(errors.NodeLocked):
            task.upgrade_lock(retry=False)
        assert task.shared
        assert site.runtime.node_locks.in_use == 0
        other.release_resources()
        task.upgrade_lock(retry=False)
        assert site.node(node).reservation == HOST
    assert site.is_free(node)


# ------------------------------------------------------------------------ a late reservation


def test_a_late_reservation_comes_with_the_first_write(site: Site, node: str):
    meter, before = Meter(site.db), site.node(node).lock_generation
    with site.acquire(node, purpose="deploy", late=True) as task:
        shown = task.node
        assert (shown.reservation, shown.lock_generation) == (HOST, before + 1)
        assert (meter.commits, site.node(node).reservation) == (0, None)
        task.process_event("deploy")
        stored = site.node(node)
        assert stored == shown
        assert (stored.reserved_for, stored.provision_state) == ("deploy", "deploying")
        task.node.description = "more"
        task.save()
        assert meter.commits == 2
    assert site.is_free(node)
    assert site.node(node).lock_generation == before + 1


def test_a_late_reservation_that_ends_with_the_first_write_is_one_commit(site: Site, node: str):
    meter, before = Meter(site.db), site.node(node).lock_generation
    with site.acquire(node, late=True) as task:
        task.process_event("manage", release=True)
    assert meter.commits == 1
    assert site.is_free(node)
    assert site.node(node).lock_generation == before + 1


def test_a_late_reservation_without_a_write_leaves_nothing(site: Site, node: str):
    before = site.everything()
    with pytest.raises(Boom), site.acquire(node, late=True):
        raise Boom
    with site.acquire(node, late=True):
        pass
    assert site.everything() == before
    assert site.is_free(node)


CHANGES_MEANWHILE: dict[str, dict[str, Any]] = {
    "a field": {"description": "by another"},
    "what the driver keeps": {"driver_internal_info": '{"agent_url": "https://agent"}'},
    "a reservation": {"reservation": "host-b"},
    "a reservation that is over": {"lock_generation": 7},
}


@pytest.mark.parametrize("change", CHANGES_MEANWHILE.values(), ids=CHANGES_MEANWHILE)
@pytest.mark.parametrize("write", ["process_event", "save", "assert_lease"])
def test_a_node_that_has_changed_gets_no_late_reservation(
    site: Site, node: str, change: dict[str, Any], write: str
):
    with site.acquire(node, late=True) as task:
        site.set(node, **change)
        before = site.everything()
        with pytest.raises(locks.NodeChanged):
            getattr(task, write)(*(["deploy"] if write == "process_event" else []))
    assert site.everything() == before
    assert site.runtime.node_locks.in_use == 0


def test_new_traits_refuse_a_late_reservation(site: Site, node: str):
    with site.acquire(node, late=True) as task:
        site.db.transact(lambda conn: nodes.add_traits(conn, node, ["CUSTOM_A"]))
        with pytest.raises(locks.NodeChanged):
            task.save()


def test_a_reserved_node_is_waited_for_before_a_late_reservation(site: Site, node: str):
    site.set(node, reservation="host-b", reserved_for="cleaning")
    with pytest.raises(errors.NodeLocked, match="host-b"):
        task_manager.acquire(impatient(site), node, late=True)
    assert site.runtime.node_locks.in_use == 0


def test_a_check_of_the_lock_reserves_before_a_bmc_is_told_something(site: Site, node: str):
    with site.acquire(node, late=True) as task:
        task.assert_lease()
        assert site.node(node).reservation == HOST
    assert site.is_free(node)


def test_a_dead_conductor_reserves_nothing_late(site: Site, node: str):
    with site.acquire(node, late=True) as task:
        site.runtime.lease.incarnation = "an earlier life"
        before = site.everything()
        with pytest.raises(errors.LockLost):
            task.process_event("deploy")
    assert site.everything() == before


def test_a_commit_in_doubt_is_released(site: Site, node: str, monkeypatch: pytest.MonkeyPatch):
    """It may have reserved the node."""
    transact = site.db.transact

    def lose_the_answer(work: Any) -> Any:
        transact(work)
        monkeypatch.setattr(site.db, "transact", transact)
        raise errors.CommitInDoubt(reason="the server is gone")

    with site.acquire(node, late=True) as task:
        monkeypatch.setattr(site.db, "transact", lose_the_answer)
        with pytest.raises(errors.CommitInDoubt):
            task.process_event("deploy")
    assert site.node(node).provision_state == "deploying"
    assert site.is_free(node)


def test_downgrading_gives_the_lock_back_and_reads_on(site: Site, node: str, pool):
    with site.acquire(node) as task:
        task.downgrade_lock()
        assert task.shared
        assert site.is_free(node)
        site.set(node, description="by another")
        task.downgrade_lock()
        pool.submit(site.acquire, node).result(timeout=5).release_resources()
        with pytest.raises(errors.ExclusiveLockRequired):
            task.save()


def test_downgrading_reads_the_node_anew(site: Site, node: str):
    with site.acquire(node) as task:
        site.set(node, description="by another")
        task.downgrade_lock()
        assert task.node.description == "by another"


def test_a_released_task_cannot_be_downgraded(site: Site, node: str):
    task = site.acquire(node)
    task.release_resources()
    with pytest.raises(RuntimeError, match="released"):
        task.downgrade_lock()


def test_releasing_forgets_everything_and_may_be_done_twice(site: Site, node: str):
    task = site.acquire(node)
    assert task.ports == []
    task.release_resources()
    other = site.acquire(node)
    task.release_resources()
    for name in (
        "node", "driver", "fsm", "ports", "portgroups", "volume_connectors", "volume_targets",
    ):  # fmt: skip
        assert getattr(task, name) is None
    assert site.node(node).reservation == HOST
    other.release_resources()


@pytest.mark.parametrize("call", ["save", "process_event"])
def test_a_released_task_writes_nothing(site: Site, node: str, call: str):
    task = site.acquire(node)
    task.release_resources()
    before = site.everything()
    with pytest.raises(RuntimeError, match="released"):
        getattr(task, call)(*(["deploy"] if call == "process_event" else []))
    assert site.everything() == before


def test_a_task_may_destroy_its_node(site: Site, node: str):
    with site.acquire(node) as task:
        site.db.transact(lambda conn: nodes.delete(conn, task.node.uuid))
    assert site.runtime.node_locks.in_use == 0


def test_what_needs_an_exclusive_lock_refuses_a_shared_one(site: Site, node: str):
    @task_manager.require_exclusive_lock
    def touch(task: TaskManager, value: int, *, more: int = 0) -> int:
        return value + more

    class Toucher:
        @task_manager.require_exclusive_lock
        def touch(self, task: TaskManager) -> str:
            return task.node.uuid

    with site.acquire(node) as task:
        assert touch(task, 1, more=2) == 3
        assert Toucher().touch(task) == node
    with site.acquire(node, shared=True) as task:
        for call in (lambda: touch(task, 1), lambda: Toucher().touch(task)):
            with pytest.raises(errors.ExclusiveLockRequired) as told:
                call()
            assert told.value.status == 403


# ----------------------------------------------------------------------------------- writing


def test_only_what_changed_is_saved(site: Site, node: str):
    with site.acquire(node) as task:
        site.set(node, description="by another")
        task.node.extra["mine"] = 1
        task.save()
    saved = site.node(node)
    assert (saved.extra, saved.description) == ({"mine": 1}, "by another")
    assert saved.updated_at is not None


def test_saving_nothing_writes_nothing(site: Site, node: str):
    with site.acquire(node) as task:
        before = site.node(node)
        task.save()
        assert site.node(node) == before


def _entry(task: TaskManager) -> EncodedWrite:
    return writes.history_entry(task.context, task.node, "said", event_type="test")


def test_what_joins_a_save_is_written_with_it_or_not_at_all(site: Site, node: str):
    def refuse(conn: sa.Connection) -> None:
        raise Boom

    with site.acquire(node) as task:
        task.node.description = "lost"
        with pytest.raises(Boom):
            task.save(_entry(task), refuse)
        assert site.history(node) == []
        assert site.node(node).description is None
        task.save(_entry(task))
    assert site.node(node).description == "lost"
    assert [entry["event"] for entry in site.history(node)] == ["said"]


# ---------------------------------------------------------------------------------- spawning


def test_nothing_is_spawned_before_the_block_ends(site: Site, node: str):
    called: list[Any] = []

    def spawn(*args: Any, **more: Any) -> Future[None]:
        called.append((args, more))
        return ended()

    with site.acquire(node) as task:
        task.spawn_after(spawn, 1, two=2)
        assert called == []
    assert called == [((1,), {"two": 2})]


def ended(exc: BaseException | None = None) -> Future[None]:
    future: Future[None] = Future()
    if exc is None:
        future.set_result(None)
    else:
        future.set_exception(exc)
    return future


def test_the_lock_travels_with_the_future(site: Site, node: str):
    future: Future[None] = Future()
    with site.acquire(node) as task:
        task.spawn_after(lambda: future)
    assert site.node(node).reservation == HOST
    assert task.node.uuid == node
    future.set_result(None)
    assert site.is_free(node)
    assert task.node is None


def test_the_usual_shape_runs_in_the_background_and_frees_the_node(site: Site, node: str):
    began, go_on = threading.Event(), threading.Event()

    def power_action(task: TaskManager, state: str) -> None:
        began.set()
        go_on.wait(5)
        task.node.power_state = state
        task.save()

    with task_manager.acquire(site.context(), node, purpose="power on") as task:
        task.driver.power.set_power_state(task, "power on")
        task.spawn_after(site.runtime.workers.spawn, power_action, task, "power off")
    assert began.wait(5)
    assert site.node(node).reservation == HOST
    go_on.set()
    wait_for(lambda: site.is_free(node), "the worker to let go")
    assert site.node(node).power_state == "power off"


def test_a_body_that_raises_spawns_nothing_and_calls_no_hook(site: Site, node: str):
    called: list[Any] = []
    with pytest.raises(Boom), site.acquire(node) as task:  # noqa: PT012  its end raises
        task.spawn_after(called.append)
        task.set_spawn_error_hook(called.append)
        raise Boom
    assert called == []
    assert site.is_free(node)


def test_a_spawn_that_fails_calls_the_hook_and_is_raised(site: Site, node: str):
    called: list[Any] = []

    def refuse() -> Future[None]:
        raise Boom("no thread")

    def hook(exc: Exception, *args: Any, **more: Any) -> None:
        called.append((type(exc), args, more, site.node(node).reservation))

    with pytest.raises(Boom, match="no thread"), site.acquire(node) as task:  # noqa: PT012  its end raises
        task.spawn_after(refuse)
        task.set_spawn_error_hook(hook, 1, two=2)
    assert called == [(Boom, (1,), {"two": 2}, HOST)]
    assert site.is_free(node)


def test_a_hook_without_arguments_gets_the_exception_alone(site: Site, node: str):
    def refuse() -> Future[None]:
        raise Boom

    seen: list[Exception] = []

    def on_error(e: Exception) -> None:
        if isinstance(e, Exception):
            seen.append(e)

    with pytest.raises(Boom), site.acquire(node) as task:  # noqa: PT012  its end raises
        task.spawn_after(refuse)
        task.set_spawn_error_hook(on_error)
    assert len(seen) == 1


def test_a_hook_that_fails_does_not_hide_why_nothing_was_spawned(site: Site, node: str):
    def refuse() -> Future[None]:
        raise Boom("first")

    def hook(exc: Exception) -> None:
        raise LookupError("second")

    with pytest.raises(Boom, match="first"), site.acquire(node) as task:  # noqa: PT012  its end raises
        task.spawn_after(refuse)
        task.set_spawn_error_hook(hook)
    assert site.is_free(node)


def test_a_future_that_takes_no_callback_is_cancelled(site: Site, node: str):
    class Deaf(Future):
        def add_done_callback(self, fn: Any) -> None:
            raise Boom

    future: Future[None] = Deaf()
    with pytest.raises(Boom), site.acquire(node) as task:
        task.spawn_after(lambda: future)
    assert future.cancelled()
    assert site.is_free(node)


def test_a_worker_that_dies_is_named_in_last_error_and_lets_go(site: Site, node: str):
    def format_disks(task: TaskManager) -> None:
        raise Boom("no such disk")

    called: list[Any] = []
    with site.acquire(node) as task:
        task.spawn_after(site.runtime.workers.spawn, format_disks, task)
        task.set_spawn_error_hook(called.append)
    wait_for(lambda: site.is_free(node), "the dead worker's lock to be dropped")
    said = site.node(node).last_error
    assert "format_disks" in said
    assert "no such disk" in said
    assert called == []


def test_an_error_that_is_told_already_stays(site: Site, node: str):
    with site.acquire(node) as task:
        task.node.last_error = "told by the worker"
        task.save()
        task.spawn_after(lambda: ended(Boom("later")))
    assert site.node(node).last_error == "told by the worker"
    assert site.is_free(node)


def test_a_cancelled_worker_lets_go_and_leaves_no_error(site: Site, node: str):
    future: Future[None] = Future()
    with site.acquire(node) as task:
        task.spawn_after(lambda: future)
    future.cancel()
    assert site.is_free(node)
    assert site.node(node).last_error is None


def test_a_worker_may_die_after_its_node(site: Site, node: str):
    future: Future[None] = Future()
    with site.acquire(node) as task:
        task.spawn_after(lambda: future)
    site.db.transact(lambda conn: nodes.delete(conn, node))
    future.set_exception(Boom())
    assert site.runtime.node_locks.in_use == 0


# --------------------------------------------------------------------------- process_event


def test_a_callback_is_spawned_with_its_arguments(site: Site, node: str):
    called: list[Any] = []

    def spawn(*args: Any, **more: Any) -> Future[None]:
        called.append((args, more, site.node(node).provision_state))
        return ended()

    with site.acquire(node) as task:
        task.process_event("deploy", callback=spawn, call_args=(1,), call_kwargs={"two": 2})
    assert called == [((1,), {"two": 2}, "deploying")]


def test_a_callback_needs_no_arguments(site: Site, node: str):
    with site.acquire(node) as task:
        task.process_event("deploy", callback=ended)
    assert site.node(node).provision_state == "deploying"


def test_the_error_handler_gets_the_node_and_where_it_came_from(site: Site, node: str):
    called: list[Any] = []

    def refuse() -> Future[None]:
        raise Boom

    def handler(exc: Exception, node_: Any, state: str | None, target: str | None) -> None:
        called.append((type(exc), node_.uuid, state, target))

    with pytest.raises(Boom), site.acquire(node) as task:
        task.process_event("deploy", callback=refuse, err_handler=handler)
    assert called == [(Boom, node, "available", NOSTATE)]


def test_an_error_handler_without_a_callback_is_not_kept(site: Site, node: str):
    called: list[Any] = []

    def refuse() -> Future[None]:
        raise Boom

    with pytest.raises(Boom), site.acquire(node) as task:  # noqa: PT012  its end raises
        task.process_event("manage", err_handler=lambda *args: called.append(args))
        task.spawn_after(refuse)
    assert called == []


@pytest.mark.parametrize("aim", ["available", "manageable"])
def test_a_cleaning_that_is_resumed_keeps_its_aim(site: Site, aim: str):
    node = site.enrol(provision_state="clean wait", target_provision_state=aim)
    with site.acquire(node) as task:
        task.resume_cleaning()
    resumed = site.node(node)
    assert (resumed.provision_state, resumed.target_provision_state) == ("cleaning", aim)


def test_the_names_that_the_first_contract_reads_are_there(site: Site, node: str):
    assert states.NOSTATE is None
    assert "deploying" in states.UNSTABLE_STATES
    with site.acquire(node) as task:
        assert task.fsm.is_stable(task.node.provision_state)
        task.process_event("deploy")
        assert task.fsm.target_state == "active"
        assert task._notify_provision_state_change() == ("info", "start")
    assert Request.new().request_id.startswith("req-")


def test_the_relay_is_told_after_the_commit(site: Site, node: str):
    seen: list[str | None] = []
    runtime = site.another_host("host-b")
    object.__setattr__(
        runtime, "on_events_written", lambda: seen.append(site.node(node).provision_state)
    )
    with task_manager.acquire(Context(runtime=runtime, request=site.request()), node) as task:
        task.process_event("deploy")
    assert seen == ["deploying"]
