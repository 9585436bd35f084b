"""Agents in ramdisks: their tokens, certificates and heartbeats.

An agent reads its token from its kernel parameters, or gets it from its first lookup, and sends it
with every call. A token belongs to one session. A flow that begins or ends, or a power change, ends
the session and drops the token, the agent's URL and its certificate. The row stores the token
sealed.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import enrollment, flows, heartbeats, runner, states, task_manager, tasks
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import nodes, rows, steps
from bloomery.drivers.base import Heartbeat
from bloomery.model.node import Node
from bloomery.model.rules import agents
from bloomery.model.step import find_parked
from bloomery.outcome import Done

LOG = logging.getLogger(__name__)

Json = dict[str, Any]
_CERTIFICATE: Final = "agent_verify_ca"  # in driver_internal_info: the path of its file


# ------------------------------------------------------------------------------------ tokens


def get_node_with_token(context: Context, node_uuid: str, caller: str | None = None) -> Json:
    """Return the token for the node's agent at ``caller``, or stars if another agent has it.

    Takes no lock: an agent looks its node up while a flow holds the node.
    """
    runtime = context.runtime
    new = runtime.sealer.seal_under(nodes.AGENT_TOKEN, secrets.new_token())
    sealed = runtime.db.transact(lambda conn: nodes.add_agent_token(conn, node_uuid, new, caller))
    token = secrets.MASK if sealed is None else str(runtime.sealer.open(sealed))
    return {"uuid": node_uuid, "agent_token": token}


def _check_token(runtime: ConductorRuntime, node: Node, token: str | None) -> None:
    """Raise InvalidParameterValue unless ``token`` is the token of the node's agent."""
    sealed = node.driver_internal_info.get(nodes.AGENT_TOKEN)
    if not sealed or not isinstance(token, str) or not runtime.sealer.is_of(sealed, token):
        raise errors.InvalidParameterValue(
            reason=f"cannot take a heartbeat for node {node.uuid}: its agent_token is missing or "
            "is not the one that lookup has given out",
        )


# ------------------------------------------------------------------------------- certificates


def _is_certificate_kept(node: Node, text: str | None) -> bool:
    """Return whether the agent's certificate is stored already, or the agent sent none.

    Raises InvalidParameterValue if the certificate differs from the stored one.
    """
    path = node.driver_internal_info.get(_CERTIFICATE)
    if text is None:
        return True
    try:
        before = Path(path).read_text() if path else None
    except (OSError, UnicodeDecodeError):
        before = None  # the caller writes the file again
    if before is None:
        return False
    if before != text:
        raise errors.InvalidParameterValue(
            reason=f"cannot take a heartbeat for node {node.uuid}: its agent_verify_ca is not the "
            "certificate that the agent has shown before",
        )
    return True


def _store_certificate(task: TaskManager, text: str) -> None:
    """Write the certificate to ``[agent]certificates_path``/UUID.crt, whole or not at all."""
    folder = task.runtime.conf.agent.certificates_path
    if folder is None:
        raise errors.Unavailable(reason="[agent]certificates_path names no folder")
    path = Path(folder) / f"{task.node.uuid}.crt"
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text)
        fresh.replace(path)
    except OSError as exc:
        raise errors.Unavailable(
            reason=f"cannot keep the certificate of node {task.node.uuid}: {exc.strerror}",
            log=f"{path}: {exc}",
        ) from exc
    task.node.driver_internal_info[_CERTIFICATE] = str(path)


# --------------------------------------------------------------------------------- heartbeats


def receive(
    context: Context,
    node_uuid: str,
    callback_url: str,
    agent_version: str | None,
    agent_token: str | None,
    agent_verify_ca: str | None,
    agent_status: str | None,
    agent_status_message: str | None,
) -> None:
    """Record an agent's heartbeat, and resume the flow that waits for it.

    A heartbeat is ignored in states that expect none.  A busy node ignores it too, unless it is the
    agent's first: the agent repeats it.  A heartbeat with nothing new needs no lock and is written
    later, in a batch.  ``rpc.contract`` lists the errors.
    """
    runtime = context.runtime
    heartbeat = Heartbeat(
        callback_url=callback_url, agent_version=agent_version, verify_ca=agent_verify_ca,
        status=agent_status, status_message=agent_status_message,
    )  # fmt: skip
    if agent_version is None and agent_status is None:
        raise errors.InvalidParameterValue(
            reason="cannot take a heartbeat without agent_version: send the agent's version",
        )
    agents.check_version(agent_version)
    if runtime.conf.agent.require_tls and callback_url and not callback_url.startswith("https://"):
        raise errors.InvalidParameterValue(
            reason="cannot take a callback_url that is not https ([agent]require_tls)",
        )
    with runtime.db.read() as conn:
        node, is_parked = steps.get_node_and_parked(conn, node_uuid)
    with task_manager.acquire(
        context, node_uuid, shared=True, load_driver=False, node=node
    ) as task:
        _check_token(runtime, node, agent_token)
        is_kept = _is_certificate_kept(node, heartbeat.verify_ca)
        is_fast = agents.is_fast_track(node.driver_info, runtime.conf.deploy.fast_track)
        expecting = states.FASTTRACK_HEARTBEAT_STATES if is_fast else states.HEARTBEAT_STATES
        if node.provision_state not in expecting:
            LOG.info("node %s: a heartbeat in %s is ignored", node_uuid, node.provision_state)
            return
        is_stored = flows.facts(heartbeat).items() <= node.driver_internal_info.items()
        is_quiet = is_kept and is_stored and node.reservation is None
        if is_quiet and _defer(task, heartbeat, is_parked=is_parked):
            return
    with runtime.workers.slot(allow_reserved=False) as slot:
        try:
            task = task_manager.acquire(context, node_uuid, purpose="heartbeat", retry=False)
        except errors.NodeLocked:
            if "agent_url" not in node.driver_internal_info:
                raise
            LOG.info("node %s: busy, heartbeat ignored: the agent repeats it", node_uuid)
            return
        with task:
            key, info = nodes.AGENT_TOKEN, task.node.driver_internal_info
            if info.get(key) != node.driver_internal_info.get(key):  # its session ended meanwhile
                _check_token(runtime, task.node, agent_token)
            agents.require_same_url(info, callback_url)
            _take(task, slot, heartbeat)


def _defer(task: TaskManager, heartbeat: Heartbeat, *, is_parked: bool) -> bool:
    """Queue a heartbeat that changes nothing; return False where it may resume the flow."""
    node, now, options = task.node, rows.now(), task.runtime.conf.conductor
    resumes = node.provision_state in states.HEARTBEAT_RESUMES_STATES
    if resumes and node.maintenance and not options.allow_provisioning_in_maintenance:
        return False
    if resumes and heartbeat.status == agents.FAILED:
        return False
    is_awaited = resumes and not node.maintenance and is_parked
    if is_awaited:
        if not heartbeats.may_be_deferred(node, options, now):
            return False
        task.load_driver()
        try:
            outcome = flows.ask_driver(task, heartbeat)  # does the step keep waiting?
        except errors.ApiThreadsBusy:
            raise
        except errors.Failure:
            return False
        if isinstance(outcome, Done) or task.is_changed:
            return False
    pace_s = heartbeats.pace_s(node, task.runtime.conf)
    task.runtime.heartbeats.note(node, now, counts_anew=is_awaited, pace_s=pace_s)
    return True


def _take(task: TaskManager, slot: Slot, heartbeat: Heartbeat) -> None:
    """Store a heartbeat under the node's lock, and resume the flow; in maintenance it may fail."""
    if heartbeat.verify_ca is not None:
        _store_certificate(task, heartbeat.verify_ca)
    flows.note_agent(task, heartbeat)
    node, options = task.node, task.runtime.conf.conductor
    if node.provision_state not in states.HEARTBEAT_RESUMES_STATES:
        task.save(release=True)
    elif not node.maintenance:
        flows.go_on(task, slot, heartbeat)
    elif options.allow_provisioning_in_maintenance:
        task.save(release=True)
    else:
        runs = flows.open_runs(task)
        task.save()
        if runs:
            sentence = (
                f"Node {node.uuid}: cannot go on from {node.provision_state} in maintenance "
                "([conductor]allow_provisioning_in_maintenance)"
            )
            task.spawn_after(runner.launch_failure, slot, flows.load(task, runs), sentence)


# --------------------------------------------------------------------------------- inspection


def continue_inspection(
    context: Context, node_uuid: str, inventory: Json, plugin_data: Json
) -> None:
    """Resume the inspection that waits for this inventory; the resumed step stores it."""
    with tasks.order(context, node_uuid, "continue_inspection") as (task, slot):
        state = task.node.provision_state
        runs = flows.open_runs(task)
        if state == State.INSPECTWAIT and find_parked(runs) is not None:
            _require_in_band(task)
            args = {"inventory": inventory, "plugin_data": plugin_data}
            task.node.driver_internal_info.pop(agents.BOOT_RETRIES, None)
            runner.resume(task, slot, "resume", flows.load(task, runs), args)
        elif state == State.ENROLL and task.runtime.conf.auto_discovery.enabled and not runs:
            _require_in_band(task)
            enrollment.start_discovery(task, slot, inventory, plugin_data)
        else:
            LOG.warning("node %s: an inventory in %s is refused", node_uuid, state)
            raise errors.NotFound(reason="cannot find a node that waits for this inventory")


def _require_in_band(task: TaskManager) -> None:
    inspect = task.driver.inspect
    if not inspect.in_band:
        raise inspect.unsupported(task, "continue_inspection")
