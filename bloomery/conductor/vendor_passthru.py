"""Vendor passthru methods of nodes and drivers.

A synchronous method runs in the request.  An asynchronous one is a flow of one step, which survives
a crash or fails with a named reason.  An asynchronous method without a lock has no rows, and is
lost with its conductor.
"""

from __future__ import annotations

import base64
import logging
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import runner, task_manager, tasks, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition, ends_with
from bloomery.conductor.runtime import Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers import vendor_methods
from bloomery.drivers.vendor_methods import VendorMethod
from bloomery.model.request import VendorCall
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again, Outcome

LOG = logging.getLogger(__name__)
Json = dict[str, Any]


# ------------------------------------------------------------------------------------ of a node


def list_methods(context: Context, node_uuid: str) -> Json:
    with tasks.shared(context, node_uuid) as task:
        methods = vendor_methods.of_nodes(type(task.driver.vendor))
    return {name: method.document() for name, method in methods.items()}


def perform(
    context: Context, node_uuid: str, driver_method: str, http_method: str, info: Json
) -> Json:
    """Run a node's method, or start it.  Raises InvalidParameterValue before a lock is taken."""
    call = VendorCall(method=driver_method, http_method=http_method, info=info)
    with tasks.shared(context, node_uuid) as task:
        method = _chosen(task, call)
    if method.async_call and method.require_exclusive_lock:
        with tasks.order(context, node_uuid, call.purpose) as (task, slot):
            # The arguments may be secrets.
            args = {"method": driver_method, "http_method": http_method,
                    "info": task.runtime.sealer.seal_whole(dict(info))}  # fmt: skip
            resumable = _chosen(task, call).resumable
            step = Step(
                interface="vendor", step="passthru", args=args, internal=True, resumable=resumable
            )
            runner.start(task, slot, VENDOR, step)
        return _answer(method, None)
    if method.async_call:
        context.runtime.workers.spawn(_run_beside, context, node_uuid, call)
        return _answer(method, None)
    result = tasks.in_worker(
        context, node_uuid, lambda task: _run(task, call), purpose=call.purpose,
        shared=not method.require_exclusive_lock, insists=True,
    )  # fmt: skip
    return _answer(method, result)


def _chosen(task: TaskManager, call: VendorCall) -> VendorMethod:
    """Return the node's method after checking its arguments."""
    methods = vendor_methods.of_nodes(type(task.driver.vendor))
    method = vendor_methods.choose(methods, call.method, call.http_method, call.info)
    task.driver.vendor.validate(task)
    return method


def _run(task: TaskManager, call: VendorCall) -> Any:
    method = _chosen(task, call)
    result = getattr(task.driver.vendor, method.attribute)(task, **call.info)
    if not task.shared:
        task.save()
    return result


def _answer(method: VendorMethod, result: Any) -> Json:
    if method.attach and result is not None:
        text = result if isinstance(result, bytes) else str(result).encode()
        result = base64.b64encode(text).decode()
    return {"return": result, "async": method.async_call, "attach": method.attach}


# ------------------------------------------------------------------------- in the background


def _passthru(task: TaskManager, method: str, http_method: str, info: Any) -> Outcome:
    opened = task.runtime.sealer.open(info)
    call = VendorCall(method=method, http_method=http_method, info=opened)
    result = _run(task, call)
    return result if isinstance(result, Again) else DONE


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    sentence = f"{failure.sentence} (method {failure.run.step.args['method']})"
    entry = writes.failure_entry(task.context, task.node, sentence, "vendor")
    return Transition(event=None, writes=[entry])


VENDOR: Final = Phase(
    name="vendor",
    own_steps={"passthru": _passthru},
    finish=ends_with(None),
    fail=_fail,
    urgent=True,
)


def _run_beside(context: Context, node_uuid: str, call: VendorCall) -> None:
    """Run a method without a lock; lock the node only to record a failure."""
    context = replace(context, in_place=True)
    try:
        with task_manager.acquire(context, node_uuid, shared=True, insists=True) as task:
            _run(task, call)
    except Exception as exc:  # noqa: BLE001  the supervisor of its thread
        sentence = f"{call.purpose} failed: {secrets.brief(exc)}"
        LOG.warning("node %s: %s", node_uuid, sentence)
        try:
            with task_manager.acquire(context, node_uuid, load_driver=False) as task:
                task.save(writes.failure_entry(context, task.node, sentence, "vendor"))
        except errors.Failure as unable:
            LOG.warning("node %s: cannot write its last_error: %s", node_uuid, unable)


# ---------------------------------------------------------------------------------- of a driver


def list_driver_methods(context: Context, driver: str) -> Json:
    interface = context.runtime.registry.default_interface(driver, "vendor")
    methods = vendor_methods.of_drivers(type(interface))
    return {name: method.document() for name, method in methods.items()}


def perform_for_driver(
    context: Context, driver: str, driver_method: str, http_method: str, info: Json
) -> Json:
    """Run a driver's method in a worker; a failure of an asynchronous method is logged."""
    runtime = context.runtime
    call = VendorCall(method=driver_method, http_method=http_method, info=info)
    interface = runtime.registry.default_interface(driver, "vendor")
    methods = vendor_methods.of_drivers(type(interface))
    method = vendor_methods.choose(methods, call.method, call.http_method, call.info)
    work = getattr(interface, method.attribute)
    if method.async_call:

        def log_failure(done: Future[Any]) -> None:
            if (exc := done.exception()) is not None:
                LOG.error("driver %s: %s failed: %s", driver, call.purpose, secrets.brief(exc))

        runtime.workers.spawn(work, **call.info).add_done_callback(log_failure)
        return _answer(method, None)
    purpose = f"{call.purpose} of {driver}"
    return _answer(method, tasks.result_in_worker(runtime, purpose, partial(work, **call.info)))
