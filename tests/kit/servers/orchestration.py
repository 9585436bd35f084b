"""A whole service in this process, asked for stacks over HTTP, as its clients do.

with Orchestration(tmp_path / "state") as site:
    stack = site.create("web", {"heat_template_version": "rocky", "resources": {...}})
    site.wait_for(stack, "CREATE_COMPLETE")
    site.restart()                                  # the next process, on what this one left
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any, Self

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import Redfish
from bloomery.conf.engine import Engine
from bloomery.conf.notifications import Events
from bloomery.state_dir import StateDir
from tests.kit.servers import databases
from tests.kit.waiting import wait_for

PROJECT = "admin"
QUIET = Conductor(
    heartbeat_interval=3600, heartbeat_timeout=7220, sync_power_state_interval=0,
    power_failure_recovery_interval=0, check_provision_state_interval=0,
    sqlite_checkpoint_interval=0, preflight_timeout=0, graceful_shutdown_timeout=5,
)  # fmt: skip


def template(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources} | more


class Orchestration:
    """``options`` are those of [engine]; ``default``: [DEFAULT]; and so on."""

    def __init__(
        self, state: Path, *, default: Default | None = None,
        redfish: Redfish | None = None, events: Events | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self._home = StateDir(state)
        self._conf = Conf(
            default=default or Default(), api=Api(port=0), conductor=QUIET,
            engine=Engine(**options), database=databases.settings(state),
            events=events or Events(),
            redfish=redfish or Redfish(firmware_update_validation_interval=0),
        )  # fmt: skip
        self.service: Service

    def __enter__(self) -> Self:
        self._home.take()
        self.service = Service(self._conf, self._home)
        self.service.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.service.stop()
        self._home.leave()

    def restart(self) -> None:
        """End the process in good order, as far as a process can end in a test; begin the next."""
        self.service.stop()
        self.service = Service(self._conf, self._home)
        self.service.start()

    # ----------------------------------------------------------------------------- asking

    @property
    def url(self) -> str:
        return f"{self.service.orchestration_url}/v1/{PROJECT}"

    def ask(
        self, method: str, path: str, body: Any = None, project: str = PROJECT
    ) -> tuple[int, Any]:
        """Return the status and the document; ``path`` is what follows the project."""
        connection = http.client.HTTPConnection(*self.service.orchestration_api.address, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request(method, f"/v1/{project}{path}", data, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 302:  # a name: the stack has its own address
                place = str(answer.getheader("Location")).split(f"/v1/{project}", 1)[1]
                return self.ask(method, place, body, project)
        finally:
            connection.close()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return answer.status, json.loads(text) if text and is_json else text.decode()

    def create(self, name: str, template: dict[str, Any], **more: Any) -> str:
        """Create a stack; return its path."""
        body = {"stack_name": name, "template": template} | more
        status, document = self.ask("POST", "/stacks", body)
        assert status == 201, document
        return f"/stacks/{name}/{document['stack']['id']}"

    def stack(self, path: str) -> dict[str, Any]:
        status, document = self.ask("GET", path)
        assert status == 200, document
        found: dict[str, Any] = document["stack"]
        return found

    def resources(self, path: str) -> dict[str, dict[str, Any]]:
        _, document = self.ask("GET", f"{path}/resources")
        return {each["resource_name"]: each for each in document["resources"]}

    def events(self, path: str) -> list[tuple[str, str]]:
        """Return who was told of, and in which state, the newest first."""
        _, document = self.ask("GET", f"{path}/events")
        return [(each["resource_name"], each["resource_status"]) for each in document["events"]]

    # ---------------------------------------------------------------------------- waiting

    def wait_for(self, path: str, *states: str, timeout_s: float = 20.0) -> dict[str, Any]:
        """Wait until the stack is in one of ``states``, and its lock is free."""

        def arrived() -> dict[str, Any] | None:
            found = self.stack(path)
            return found if found["stack_status"] in states else None

        try:
            return wait_for(arrived, f"{path} to be {' or '.join(states)}", timeout_s=timeout_s)
        except AssertionError as late:
            found = self.stack(path)
            late.add_note(f"it is {found['stack_status']}: {found['stack_status_reason']}")
            raise
