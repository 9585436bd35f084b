"""Methods of vendor interfaces, called from outside: for a node, or for a driver.

A synchronous method is a question.  What is asynchronous is a flow of one step, so that it outlives
a crash, or fails by name where it may not be repeated; one that takes no lock runs beside whatever
holds the node, has no rows, and is lost with its conductor.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import runner, task_manager, tasks, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.runner import Flow
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite
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
    """Run a method of a node's, or begin to.  Raises InvalidParameterValue before a lock."""
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
    """Return the method that the node has now; its arguments are checked."""
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
    """Return what crosses RPC: JSON."""
    if method.attach and result is not None:
        text = result if isinstance(result, bytes) else str(result).encode()
        result = base64.b64encode(text).decode()
    return {"return": result, "async": method.async_call, "attach": method.attach}


# ------------------------------------------------------------------------- in the background


def _start(task: TaskManager, slot: Slot, call: VendorCall) -> None:
    """Let a flow begin that calls the method; its arguments may be secrets, and are sealed."""
    method = _chosen(task, call)
    sealed = task.runtime.sealer.seal_whole(dict(call.info))
    args = {"method": call.method, "http_method": call.http_method, "info": sealed}
    step = Step(
        interface="vendor", step="passthru", args=args, internal=True, resumable=method.resumable
    )
    runner.start(task, slot, VENDOR, step, _undo)


def _passthru(task: TaskManager, method: str, http_method: str, info: Any) -> Outcome:
    opened = task.runtime.sealer.open(info)
    call = VendorCall(method=method, http_method=http_method, info=opened)
    result = _run(task, call)
    return result if isinstance(result, Again) else DONE


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event=None)


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    sentence = f"{failure.sentence} (method {failure.run.step.args['method']})"
    return Transition(event=None, writes=[_give_up(task, sentence)])


def _undo(exc: Exception, flow: Flow) -> None:
    """No worker came: nothing was called, and the node says why."""
    flow.task.save(flow.cancelled, _give_up(flow.task, secrets.brief(exc)))


def _give_up(task: TaskManager, sentence: str) -> EncodedWrite:
    task.node.last_error = sentence
    return writes.history_entry(task.context, task.node, sentence, event_type="vendor", failed=True)


VENDOR: Final = Phase(
    name="vendor", own_steps={"passthru": _passthru}, finish=_finish, fail=_fail, urgent=True
)


def _run_beside(
    runtime: ConductorRuntime, request: Request, node_uuid: str, call: VendorCall
) -> None:
    """Run without a lock; then take it for a moment if there is a failure to tell of."""
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
            task.save(_give_up(task, sentence))
    except errors.Failure as unable:
        LOG.warning("node %s: cannot write its last_error: %s", node_uuid, unable)


# ---------------------------------------------------------------------------------- of a driver


def _vendor_of(runtime: ConductorRuntime, driver: str) -> base.Interface:
    """Return the default vendor interface of a hardware type.  Raises DriverNotFound."""
    return runtime.registry.default_interface(driver, "vendor")


def list_driver_methods(runtime: ConductorRuntime, driver: str) -> Json:
    methods = vendor_methods.of_drivers(type(_vendor_of(runtime, driver)))
    return {name: method.shown() for name, method in methods.items()}


def perform_for_driver(runtime: ConductorRuntime, driver: str, call: VendorCall) -> Json:
    """Run a method of a driver's in a worker; of an asynchronous one a failure is logged."""
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
