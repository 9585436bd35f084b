"""Ask the published Heat: create each case's stack in one process and tell what a client would see.

Runs in an environment of its own (``make heat``), with the package openstack-heat and
nothing of ours. Reads cases, one JSON document a line, from stdin, and writes one answer a line:

    {"id": ..., "status": "CREATE_COMPLETE" or null, "error": null or {"type": ..., "message": ...},
     "outputs": {name: {"value": ...} or {"error": text}}}

Heat's engine is used as a library: its database is SQLite in memory, its message bus a direct call.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import logging
import signal
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from heat.common import config as _options  # noqa: E402, F401  declares the options
from heat.common import context, messaging  # noqa: E402
from heat.db import api as rows  # noqa: E402
from heat.db import models  # noqa: E402
from heat.engine import resources, service  # noqa: E402
from heat.engine.resources import stack_resource  # noqa: E402
from oslo_config import cfg  # noqa: E402

SETTINGS = {
    "max_stacks_per_tenant": 1_000_000,
    "convergence_engine": False,
    "deferred_auth_method": "password",
    "error_wait_time": 0,
}
CASE_S = 30
NAMES = itertools.count()


class Slow(BaseException):
    """A case that did not end."""


class Inline:
    """Runs at once what the engine would give to a thread."""

    def start(self, stack_id, function, *args, **kwargs):
        function(*args, **kwargs)

    def start_with_lock(self, _context, stack, engine_id, function, *args, **kwargs):
        function(*args, **kwargs)
        stack.persist_state_and_release_lock(engine_id)
        return self

    def start_with_acquired_lock(self, stack, lock, function, *args, **kwargs):
        function(*args, **kwargs)
        stack.persist_state_and_release_lock(lock.engine_id)

    def __getattr__(self, name):
        return lambda *args, **kwargs: None


class Client:
    """What a resource with a nested stack calls instead of the message bus."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        target = getattr(self.engine, name.removeprefix("_"))
        known = inspect.signature(target).parameters

        def call(_context, *args, **kwargs):
            return target(_context, *args, **{k: v for k, v in kwargs.items() if k in known})

        return call

    @contextlib.contextmanager
    def ignore_error_by_name(self, name):
        try:
            yield
        except Exception as exc:
            if type(exc).__name__ != name:
                raise


def engine():
    cfg.CONF([], project="heat", default_config_files=[])
    cfg.CONF.set_override("connection", "sqlite://", group="database")
    for name, value in SETTINGS.items():
        cfg.CONF.set_override(name, value)
    messaging.setup("fake://", optional=True)
    resources.initialise()
    models.BASE.metadata.create_all(rows.get_engine())
    made = service.EngineService("localhost", "engine")
    made.thread_group_mgr = Inline()
    made.engine_id = "engine"
    stack_resource.StackResource.rpc_client = lambda self: Client(made)
    return made


def user():
    return context.RequestContext(
        user_id="u",
        username="u",
        project_id="p" * 32,
        is_admin=True,
        auth_token="x",
        password="p",
        roles=[],
        auth_url="http://127.0.0.1:5/v3",
    )


def told(exc):
    cause = getattr(exc, "exc_info", None)
    exc = cause[1] if cause else exc
    return {"type": type(exc).__name__, "message": str(exc)[:500]}


def answer(made, case):
    out = {"id": case["id"], "status": None, "error": None, "outputs": {}}
    try:
        identity = made.create_stack(
            user(),
            f"c{next(NAMES)}",
            case["template"],
            case.get("environment", {}),
            case.get("files", {}),
            {"timeout_mins": 1, "disable_rollback": True},
        )
        (shown,) = made.show_stack(user(), identity, resolve_outputs=True)
    except (Exception, Slow) as exc:  # noqa: BLE001  whatever Heat raises is its answer
        out["error"] = told(exc)
        return out
    out["status"] = f"{shown['stack_action']}_{shown['stack_status']}"
    if shown["stack_status"] == "FAILED":
        out["error"] = {"type": "ResourceFailure", "message": shown["stack_status_reason"][:500]}
    for output in shown.get("outputs", ()):
        failed = output.get("output_error")
        value = {"error": failed[:300]} if failed else {"value": output["output_value"]}
        out["outputs"][output["output_key"]] = value
    return out


def slow(*_):
    raise Slow(f"no answer within {CASE_S} s")


def main():
    made = engine()
    signal.signal(signal.SIGALRM, slow)
    for line in sys.stdin:
        signal.alarm(CASE_S)
        told_of = answer(made, json.loads(line))
        signal.alarm(0)
        sys.stdout.write(json.dumps(told_of, default=str, sort_keys=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
