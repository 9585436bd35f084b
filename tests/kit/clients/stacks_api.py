"""A tenant of the orchestration API: any service that speaks it, known by its URL alone.

api = StacksApi("http://127.0.0.1:8004/v1/admin")
web = api.create({"a": {"type": "OS::Heat::Value", "properties": {"value": 1}}})
api.settle(web, "CREATE_COMPLETE")
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.kit.waiting import wait_for

VERSION: Final = "2021-04-16"
PATIENCE_S: Final = 20.0
OPTIONS: Final = frozenset(
    {"environment", "environment_files", "files", "parameters", "tags", "disable_rollback",
     "timeout_mins", "converge", "clear_parameters"}
)  # fmt: skip


class Answer(NamedTuple):
    status: int
    document: Any
    headers: Mapping[str, str]

    @property
    def type(self) -> str | None:
        """The class of an error."""
        return self.document["error"]["type"] if "error" in (self.document or {}) else None

    @property
    def refusal(self) -> tuple[int, str | None]:
        return self.status, self.type


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


OPENER: Final = urllib.request.build_opener(NoRedirect)


def document(resources: Any = None, version: str = VERSION, **sections: Any) -> dict[str, Any]:
    """A template; ``declared`` is its section of parameters."""
    given = {} if resources is None else {"resources": resources}
    if "declared" in sections:
        given["parameters"] = sections.pop("declared")
    return {"heat_template_version": version, **given, **sections}


def value(content: Any, **keys: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": content}, **keys}


def test_resource(**properties: Any) -> dict[str, Any]:
    needs = {"depends_on": properties.pop("needs")} if "needs" in properties else {}
    return {"type": "OS::Heat::TestResource", "properties": properties, **needs}


test_resource.__test__ = False  # type: ignore[attr-defined]


class StacksApi:
    """Stacks are given and taken as their paths: ``stacks/NAME/UUID``."""

    def __init__(self, base: str, headers: Mapping[str, str] | None = None) -> None:
        self.base = base.rstrip("/")
        self.headers = dict(headers or {})

    # -- plain requests ----------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        url = path if path.startswith("http") else f"{self.base}/{path}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            url,
            method=method,
            data=None if body is None else data,
            headers={"Content-Type": "application/json", "Accept": "application/json"}
            | self.headers
            | headers,
        )
        try:
            with OPENER.open(request, timeout=PATIENCE_S) as answer:
                status, text, kept = answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as exc:
            status, text, kept = exc.code, exc.read(), dict(exc.headers)
        is_json = "json" in kept.get("Content-Type", "")
        return Answer(status, json.loads(text) if text and is_json else None, kept)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.document

    # -- stacks ------------------------------------------------------------------------------------

    def post(self, template: Any, name: str | None = None, **options: Any) -> Answer:
        """Ask for a stack; ``options`` are keys of the request's body."""
        body = {"stack_name": name or f"s{uuid.uuid4().hex[:12]}", "template": template, **options}
        return self.ask("POST", "stacks", body)

    def begin(self, template: Any, name: str | None = None, **options: Any) -> str:
        """Ask for a stack and return its path at once; the request must be taken."""
        answer = self.post(template, name, **options)
        assert answer.status == 201, answer
        return "stacks" + answer.document["stack"]["links"][0]["href"].rpartition("/stacks")[2]

    def create(self, resources: Any, name: str | None = None, **more: Any) -> str:
        """Make a stack to its good end; ``more``: sections of the template, keys of the body.

        ``parameters`` is the key of the body; those that the template declares: ``declared``.
        """
        options = {key: more.pop(key) for key in OPTIONS & set(more)}
        path = self.begin(document(resources, **more), name, **options)
        self.settle(path, "CREATE_COMPLETE")
        return path

    def output(self, content: Any, resources: Any = None, **more: Any) -> Any:
        """The value of an output ``o`` of a new stack."""
        outputs = {"o": {"value": content}}
        path = self.create(resources or {}, outputs=outputs, **more)
        return self.outputs(path)["o"]

    def update(self, path: str, resources: Any, **more: Any) -> None:
        """Put another template and wait until the update has ended well."""
        self.put(path, resources, **more)
        self.settle(path, "UPDATE_COMPLETE")

    def put(self, path: str, resources: Any, **more: Any) -> None:
        options = {key: more.pop(key) for key in OPTIONS & set(more)}
        body = {"template": document(resources, **more), **options}
        answer = self.ask("PUT", path, body)
        assert answer.status == 202, answer

    def patch(self, path: str, **body: Any) -> None:
        answer = self.ask("PATCH", path, body)
        assert answer.status == 202, answer
        self.settle(path, "UPDATE_COMPLETE")

    def act(self, path: str, action: str) -> Answer:
        return self.ask("POST", f"{path}/actions", {action: None})

    def delete(self, path: str) -> None:
        assert self.ask("DELETE", path).status == 204
        self.settle(path, "DELETE_COMPLETE")

    # -- what is there -----------------------------------------------------------------------------

    def show(self, path: str) -> dict[str, Any]:
        stack: dict[str, Any] = self.get(path)["stack"]
        return stack

    def status(self, path: str) -> str:
        return str(self.get(f"{path}?resolve_outputs=False")["stack"]["stack_status"])

    def settle(self, path: str, status: str) -> dict[str, Any]:
        """Wait for a state of the stack, and return it; another final state is an error."""
        action = status.partition("_")[0]
        ends = (f"{action}_FAILED", f"{action}_COMPLETE")
        wait_for(lambda: self.status(path) in ends, f"{path} to be {status}",
                 timeout_s=PATIENCE_S, every_s=0.05)  # fmt: skip
        stack = self.show(path)
        assert stack["stack_status"] == status, stack
        return stack

    def outputs(self, path: str) -> dict[str, Any]:
        """Values by name; of a failed one the exception's place is taken by its text."""
        return {
            each["output_key"]: each.get("output_error") or each["output_value"]
            for each in self.show(path)["outputs"]
        }

    def resources(self, path: str, query: str = "") -> dict[str, dict[str, Any]]:
        listed = self.get(f"{path}/resources{query}")["resources"]
        return {each["resource_name"]: each for each in listed}

    def states(self, path: str) -> dict[str, str]:
        return {name: each["resource_status"] for name, each in self.resources(path).items()}

    def resource(self, path: str, name: str) -> dict[str, Any]:
        resource: dict[str, Any] = self.get(f"{path}/resources/{name}")["resource"]
        return resource

    def wait_resource(self, path: str, name: str, status: str) -> None:
        wait_for(lambda: self.states(path).get(name) == status, f"{name} to be {status}",
                 timeout_s=PATIENCE_S, every_s=0.05)  # fmt: skip

    def events(self, path: str, name: str | None = None) -> list[str]:
        """Lines in time's order: all as ``NAME STATE``, or the states of ``name`` alone.

        The stack itself is called ``S``.
        """
        stack = path.split("/")[1]
        lines = [
            ("S" if each["resource_name"] == stack else each["resource_name"],
             each["resource_status"])
            for each in self.get(f"{path}/events?sort_dir=asc")["events"]
        ]  # fmt: skip
        if name:
            return [state for who, state in lines if who == name]
        return [" ".join(line) for line in lines]

    def reasons(self, path: str, name: str) -> list[str]:
        listed = self.get(f"{path}/events?sort_dir=asc&resource_name={name}")["events"]
        return [each["resource_status_reason"] for each in listed]

    def wait_event(self, path: str, line: str, count: int = 1) -> None:
        wait_for(lambda: self.events(path).count(line) >= count, f"event {line} of {path}",
                 timeout_s=PATIENCE_S, every_s=0.05)  # fmt: skip
