"""A site to throw bad input at: nodes in many states behind the API, a real conductor, and a judge.

    target = Target(stage)
    target.judge(target.ask("PUT", f"/v1/nodes/{node}/states/power", raw=b"[" * 9999))

Nodes that a request deletes are enrolled again, so that the next one finds something to hit.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import traceback
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

import hypothesis

from bloomery import errors
from bloomery.conductor.states import State
from tests.fakes.client import NEWEST, Answer, Client
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage

SECRET = "correct-horse-battery"  # in every node's driver_info; no answer may tell it
WAITS = {"wait": {"deploy.deploy": -1}}
FAILS = {"fail": ["deploy.deploy"]}
ELSEWHERE = "host-elsewhere"  # holds the locked node
HOLD = {"interface": "deploy", "step": "hold"}
LOG = {"interface": "vendor", "step": "log_passthrough"}
WAIT = {"interface": "vendor", "step": "trigger_servicewait"}
STATES = {state.value for state in State}
MOST_DOCUMENT = 1 << 20


def seconds(default: float) -> float:
    """How long to draw, unless BLOOMERY_FUZZ_S says otherwise."""
    return float(os.environ.get("BLOOMERY_FUZZ_S", default))


def settings(examples: int) -> hypothesis.settings:
    """Draw so many examples, whatever they cost, and remember none of them."""
    return hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
    )


class Target:
    """A stage with nodes in many states; counts the answers by status."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.api: Client = stage.api
        self.app: Any = stage.api._app
        self.told: Counter[int] = Counter()
        self.broken = Broken()
        self.nodes = [self._node(f"node-{n}", *how) for n, how in enumerate(STANDING)]
        self.tokens = self._tokens()
        self._change_some()
        self.ports = [self._port(node, n) for n, node in enumerate(self.nodes)]
        self.chassis = [self._post("chassis", {})]
        self.groups = [self._post("portgroups", {"node_uuid": node}) for node in self.nodes[:2]]
        step = {"interface": "power", "step": "reboot", "args": {}, "priority": 1}
        self.template = self._post("deploy_templates", {"name": "CUSTOM_T", "steps": [step]})
        step = {"interface": "power", "step": "reboot", "order": 1}
        self.runbook = self._post("runbooks", {"name": "book", "steps": [step]})
        self.allocation = self._post("allocations", {"name": "wish", "resource_class": "x"})
        condition = {"op": "!eq", "args": {"values": ["{node.name}", 5]}, "loop": [1]}
        action = {"op": "set-attribute", "args": ["extra/rack", "{item}"], "loop": {"a": 1}}
        rule = {"conditions": [condition], "actions": [action]}
        self.rule = self._post("inspection_rules", rule)
        self.connectors = [
            self._post("volume/connectors", {"node_uuid": n, "type": "iqn", "connector_id": n})
            for n in self.nodes[:2]
        ]
        disk = {"volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
        self.targets = [
            self._post("volume/targets", disk | {"node_uuid": node}) for node in self.nodes[:2]
        ]

        hook = {"url": "http://hooks.test/", "secret": "A" * 40}
        self.webhook = self._post("webhooks", hook, "/ext/v1")

    @classmethod
    @contextlib.contextmanager
    def standing(cls, site: Site) -> Iterator[Target]:
        """A target that must be found whole at the end: nothing broke behind the answers."""
        target = cls(Stage(site))
        logger = logging.getLogger("bloomery")
        logger.addHandler(target.broken)
        try:
            yield target
            target.stage.site.set(target.nodes[-1], reservation=None)
            assert target.stage.nothing_is_left(), "a reservation is left"
        finally:
            logger.removeHandler(target.broken)
        print(target.told.total(), "requests:", dict(sorted(target.told.items())))  # noqa: T201
        assert target.broken.said == []

    @property
    def idents(self) -> dict[str, list[str]]:
        """What may stand in a path and means something, by the name of the path argument."""
        return {
            "node": [*self.nodes, "node-0", "node-3"],
            "port": self.ports,
            "portgroup": self.groups,
            "volumeconnector": self.connectors,
            "volumetarget": self.targets,
            "deploytemplate": [self.template, "CUSTOM_T"],
            "inspectionrule": [self.rule],
            "runbook": [self.runbook, "book"],
            "allocation": [self.allocation, "wish"],
            "chassis": self.chassis,
            "webhook": [self.webhook],
            "driver": ["fake-hardware"],
            "hostname": [self.stage.site.runtime.host],
            "conductor": [self.stage.site.runtime.host],
            "trait": ["CUSTOM_A", "HW_CPU_X86_VMX"],
            "vif": ["vif-1"],
            "indicator": ["led@system", "led-0@chassis"],
            "driver_method": ["second_method", "third_method_sync", "fourth_method_shared_lock"],
            "setting": ["virtualization"],
            "entry": [str(row["uuid"]) for row in self.stage.site.history(self.nodes[0])[:1]],
        }

    def _node(self, name: str, state: str, fake: dict[str, Any]) -> str:
        node = self.stage.enrol(fake, name=name, driver_info={"fake_password": SECRET})
        for verb, there, along in WAYS[state]:
            self.stage.ask(node, verb, **along)
            self.stage.wait_for(node, there)
        self.api.put(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_A"]})
        return node

    def _tokens(self) -> dict[str, str]:
        """Let the agents of nodes that wait for them ask for their tokens."""
        lookups = {
            node: self.api.get(f"/v1/lookup?node_uuid={node}")
            for node in self.nodes
            if self.stage.show(node)["provision_state"].endswith(("wait", "call-back"))
        }
        return {node: answer.json["config"]["agent_token"] for node, answer in lookups.items()}

    def _change_some(self) -> None:
        """Put a node into maintenance, retire one, protect one."""
        maintained, retired, protected = self.nodes[-4:-1]
        assert self.api.put(f"/v1/nodes/{maintained}/maintenance", {}).status == 202
        self.stage.patch(retired, retired=True)
        self.stage.patch(protected, protected=True)

    def lock_one(self) -> None:
        """Let another host hold the last node; from now on nobody waits for locks."""
        self.stage.configure("conductor", node_locked_retry_attempts=0)
        self.stage.site.set(self.nodes[-1], reservation=ELSEWHERE)

    def _port(self, node: str, number: int) -> str:
        address = f"52:54:00:00:00:{number:02x}"
        return self._post("ports", {"node_uuid": node, "address": address})

    def _post(self, plural: str, body: dict[str, Any], root: str = "/v1") -> str:
        made = self.api.post(f"{root}/{plural}", body)
        assert made.status == 201, made.body
        return str(made.json["uuid"])

    def restock(self) -> None:
        """Enrol again what was deleted."""
        known = {node["uuid"] for node in self.api.get("/v1/nodes").json["nodes"]}
        for node in set(self.nodes) - known:
            said = {
                "uuid": node,
                "driver": "fake-hardware",
                "driver_info": {"fake_password": SECRET},
            }
            assert self.api.post("/v1/nodes", said).status == 201

    def _take_away(self, made: Answer) -> None:
        """Delete what a POST made, so that lists stay short."""
        found = re.search(r"(/ext)?/v1/[\w/]+/[^/]+\Z", made.headers["location"])
        assert found is not None, made.headers
        if found[0].split("/")[-1] not in {*self.nodes, *self.ports, *self.groups, *self.chassis}:
            gone = self.api.delete(found[0])
            assert gone.status in {204, 403, 409}, gone.body  # it was made protected, or in use

    def ask(self, method: str, path: str, **more: Any) -> Answer:
        return self.judge(self.api.ask(method, path, **more), method)

    def send(self, method: str, path: str, body: bytes, **environ: str) -> Answer:
        """Ask with an environment in which a client may have put anything."""
        path, _, query = path.partition("?")
        return self.judge(
            self.api._send(
                {
                    "REQUEST_METHOD": method,
                    "SCRIPT_NAME": "",
                    "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
                    "QUERY_STRING": query,
                    "SERVER_NAME": "localhost",
                    "SERVER_PORT": "80",
                    "SERVER_PROTOCOL": "HTTP/1.1",
                    "wsgi.url_scheme": "http",
                    "wsgi.input": io.BytesIO(body),
                    "wsgi.errors": io.StringIO(),
                    "CONTENT_LENGTH": str(len(body)),
                    "CONTENT_TYPE": "application/json",
                    "HTTP_X_OPENSTACK_IRONIC_API_VERSION": NEWEST,
                }
                | environ,
            ),
            method,
        )

    def judge(self, answer: Answer, method: str) -> Answer:
        """Fail unless a client could make sense of the answer; and keep the stock as it was."""
        self.told[answer.status] += 1
        check(answer, method)
        if method == "DELETE" and answer.status == 204:
            self.restock()
        if answer.status == 201:
            self._take_away(answer)
        return answer


class Broken(logging.Handler):
    """Keeps what was logged with the traceback of an error that nobody had named."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        exc = record.exc_info[1] if record.exc_info else None
        if exc is not None and not isinstance(exc, errors.Failure):
            self.said.append("".join([record.getMessage(), *traceback.format_exception(exc)]))


def check(answer: Answer, method: str = "GET") -> None:
    """Fail unless it is no error of ours, well formed, and tells no secret."""
    assert answer.status < 500, answer.body
    assert SECRET.encode() not in answer.body
    assert len(answer.body) < MOST_DOCUMENT
    if method == "OPTIONS":
        return
    assert answer.headers["openstack-request-id"].startswith("req-")
    if answer.body:
        assert answer.headers["content-type"].startswith("application/json"), answer.headers
        json.loads(answer.body)
    if answer.status >= 400 and method != "HEAD":
        assert answer.form in {"first", "second", "bare", "page"}
        assert answer.form in {"bare", "page"} or answer.said, answer.body


Way: TypeAlias = list[tuple[str, str, dict[str, Any]]]  # verb, state it leads to, along with it
WAYS: dict[str, Way] = {
    "enroll": [],
    "manageable": [("manage", "manageable", {})],
}
WAYS["available"] = [*WAYS["manageable"], ("provide", "available", {})]
WAYS["active"] = [*WAYS["available"], ("active", "active", {})]
WAYS["deploy failed"] = [*WAYS["available"], ("active", "deploy failed", {})]
WAYS["wait call-back"] = [*WAYS["available"], ("active", "wait call-back", {})]
WAYS["clean hold"] = [*WAYS["manageable"], ("clean", "clean hold", {"clean_steps": [HOLD, LOG]})]
WAYS["service wait"] = [*WAYS["active"], ("service", "service wait", {"service_steps": [WAIT]})]
STANDING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("enroll", {}),
    ("manageable", {}),
    ("available", {}),
    ("active", {}),
    ("deploy failed", FAILS),
    ("wait call-back", WAITS),
    ("clean hold", {}),
    ("service wait", {"wait": {"vendor.trigger_servicewait": -1}}),
    ("manageable", {}),  # in maintenance; see _change_some
    ("manageable", {}),  # retired
    ("active", {}),  # protected
    ("available", {}),  # locked by lock_one
)
