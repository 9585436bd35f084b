"""Vendor passthru methods of nodes and drivers.

A synchronous method runs in the request.  An asynchronous one is a flow of one step, which survives
a crash or fails with a named reason.  An asynchronous method without a lock has no rows, and is
lost with its conductor.
"""

from __future__ import annotations

import base64
import logging
from functools import partial
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import runner, task_manager, tasks, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition, ends_with
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.drivers import base, vendor_methods
from bloomery.drivers.vendor_methods import VendorMethod
from bloomery.model.request import Request
from bloomery.model.step import Step
from bloomery.model.vendor_call import VendorCall
from bloomery.outcome import DONE, Again, Outcome

LOG = logging.getLogger(__name__)
Json = dict[str, Any]


# ------------------------------------------------------------------------------------ of a node


def list_methods(interface: base.Vendor) -> Json:
    methods = vendor_methods.of_nodes(type(interface))
    return {name: method.shown() for name, method in methods.items()}


def perform(runtime: ConductorRuntime, request: Request, node_uuid: str, call: VendorCall) -> Json:
    """Run a node's method, or start it.  Raises InvalidParameterValue before a lock is taken."""
    with tasks.shared(runtime, request, node_uuid) as task:
        method = _chosen(task, call)
    if method.async_call and method.require_exclusive_lock:
        with tasks.order(runtime, request, node_uuid, call.purpose) as (task, slot):
            _start(task, slot, call)
        return _answer(method, None)
    if method.async_call:
        runtime.workers.spawn(_run_beside, runtime, request, node_uuid, call)
        return _answer(method, None)
    result = tasks.in_worker(
        runtime, request, node_uuid, lambda task: _run(task, call), purpose=call.purpose,
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


def _start(task: TaskManager, slot: Slot, call: VendorCall) -> None:
    """Start a flow that calls the method; the arguments are sealed, as they may be secrets."""
    method = _chosen(task, call)
    sealed = task.runtime.sealer.seal_whole(dict(call.info))
    args = {"method": call.method, "http_method": call.http_method, "info": sealed}
    step = Step(
        interface="vendor", step="passthru", args=args, internal=True, resumable=method.resumable
    )
    runner.start(task, slot, VENDOR, step)


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


def _run_beside(
    runtime: ConductorRuntime, request: Request, node_uuid: str, call: VendorCall
) -> None:
    """Run a method without a lock; lock the node only to record a failure."""
    context = Context(runtime=runtime, request=request, in_place=True)
    try:
        with task_manager.acquire(context, node_uuid, shared=True, insists=True) as task:
            _run(task, call)
    except Exception as exc:  # noqa: BLE001  the supervisor of its thread
        sentence = f"{call.purpose} failed: {secrets.brief(exc)}"
        LOG.warning("node %s: %s", node_uuid, sentence)
        _write_failure(context, node_uuid, sentence)


def _write_failure(context: Context, node_uuid: str, sentence: str) -> None:
    try:
        with task_manager.acquire(context, node_uuid, load_driver=False) as task:
            task.save(writes.failure_entry(context, task.node, sentence, "vendor"))
    except errors.Failure as unable:
        LOG.warning("node %s: cannot write its last_error: %s", node_uuid, unable)


# ---------------------------------------------------------------------------------- of a driver


def _vendor_of(runtime: ConductorRuntime, driver: str) -> base.Interface:
    return runtime.registry.default_interface(driver, "vendor")


def list_driver_methods(runtime: ConductorRuntime, driver: str) -> Json:
    methods = vendor_methods.of_drivers(type(_vendor_of(runtime, driver)))
    return {name: method.shown() for name, method in methods.items()}


def perform_for_driver(runtime: ConductorRuntime, driver: str, call: VendorCall) -> Json:
    """Run a driver's method in a worker; a failure of an asynchronous method is logged."""
    interface = _vendor_of(runtime, driver)
    methods = vendor_methods.of_drivers(type(interface))
    method = vendor_methods.choose(methods, call.method, call.http_method, call.info)
    work = getattr(interface, method.attribute)
    if method.async_call:
        future = runtime.workers.spawn(work, **call.info)
        future.add_done_callback(lambda done: _log(driver, call, done.exception()))
        return _answer(method, None)
    purpose = f"{call.purpose} of {driver}"
    return _answer(method, tasks.result_in_worker(runtime, purpose, partial(work, **call.info)))


def _log(driver: str, call: VendorCall, exc: BaseException | None) -> None:
    if exc is not None:
        LOG.error("driver %s: %s failed: %s", driver, call.purpose, secrets.brief(exc))
