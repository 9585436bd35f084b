"""Requests drawn from the OpenAPI document: every operation that Ironic has, right and wrong.

A story tells of the operations of one group, each with lots of its own, so that a change of the
document changes nothing but the operations that it changes.  What is asked:

- right, of several nodes in several states;
- with a wrong value for each argument and each field of the body, one at a time;
- with the versions around the one that brought the operation, an argument or a field;
- of something that is not there, with an unknown argument, with a body of another form.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from bloomery.api import openapi, routes
from bloomery.model import node as node_model
from bloomery.model import nouns
from tests.conformance.ironic import document_values as values
from tests.conformance.ironic import story_verbs
from tests.conformance.ironic.script import NEWEST, Script

OWN: Final = "/ext/"  # what Ironic does not have
GROUPS: Final[Mapping[str, str]] = {  # the first pattern that the path fits
    "states": r"/nodes/{node}/(states|maintenance|validate)",
    "management": r"/nodes/{node}/(management|vendor_passthru)",
    "parts of a node": r"/nodes/{node}/(volume|ports|portgroups|children)",
    "facts of a node": r"/nodes/{node}/",
    "nodes": r"/v1/nodes",
    "chassis": r"/chassis",
    "groups": r"/portgroups",
    "ports": r"/ports",
    "connectors": r"/volume/connectors",
    "volumes": r"/volume",
    "allocations": r"/allocations",
    "templates": r"/deploy_templates",
    "runbooks": r"/runbooks",
    "rules": r"/inspection_rules",
    "drivers": r"/drivers",
    "rest": r"/",
}


class Operation(NamedTuple):
    """One method of one path; ``fields``: of its body, with the JSON schema of each."""

    method: str
    path: str
    since: int
    arguments: Mapping[str, Mapping[str, Any]]
    fields: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def noun(self) -> str:
        """The last word of the path that is no ident, such as ``ports`` or ``power``."""
        words = [word for word in self.path.split("/") if word and not word.startswith("{")]
        return words[-1] if words else ""


@functools.cache
def operations() -> tuple[Operation, ...]:
    """Return all operations of the document that Ironic has, in the order of their names."""
    document = openapi.document(routes.ENDPOINTS)
    listed = [
        _operation(method.upper(), path, declared)
        for path, methods in document["paths"].items()
        for method, declared in methods.items()
        if not path.startswith(OWN)
    ]
    return tuple(sorted(listed, key=lambda each: each.name))


def _operation(method: str, path: str, declared: Mapping[str, Any]) -> Operation:
    content = declared.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema", {})
    arguments = {
        each["name"]: each["schema"] | {"x-since": each.get("x-since")}
        for each in declared["parameters"]
        if each.get("in") == "query"
    }
    return Operation(
        method, path, _minor(declared["x-since"]), arguments, body.get("properties", {}),
        frozenset(body.get("required", ())),
    )  # fmt: skip


def _minor(version: str | None) -> int:
    return int(version.removeprefix("1.")) if version else 1


def _type(schema: Mapping[str, Any]) -> str:
    types = schema.get("type", "string")
    return types if isinstance(types, str) else types[0]


class Teller:
    """Draws the requests of one operation."""

    def __init__(self, script: Script, seed: int, operation: Operation, stage: Stage) -> None:
        self.script, self.operation, self.stage = script, operation, stage
        self.lots = random.Random(f"{seed} {operation.name}")

    def tell(self) -> None:
        for ask in (self._right, self._right, self._gates, self._wrong_arguments, self._wrong_body,
                    self._strange, self._right):  # fmt: skip
            ask()

    # -- the pieces of a request -------------------------------------------------------------------

    def _path(self) -> str:
        return re.sub(r"{(\w+)}", lambda ident: self._ident(ident[1]), self.operation.path)

    def _ident(self, kind: str) -> str:
        return str(self.lots.choice(self.stage.idents[kind]))

    def _value(self, field: str) -> Any:
        special = values.RIGHT_OF.get(self.operation.noun, {})
        drawn = self.lots.choice(special.get(field) or values.RIGHT.get(field) or ("x",))
        text = json.dumps(drawn)
        text = re.sub(r"{(\w+)}", lambda ident: self._ident(ident[1]), text)
        text = text.replace(values.CHOSEN, self._uuid())
        return json.loads(text.replace(values.MAC, f"52:54:00:{self._hex()}"))

    def _uuid(self) -> str:
        digits = f"{self.lots.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"

    def _hex(self) -> str:
        return ":".join(f"{self.lots.getrandbits(8):02x}" for _ in range(3))

    def _body(self) -> Any:
        """Return a right body, with a third of what it need not have."""
        if self._patches():
            return [self._change()]
        if self.operation.noun == "provision":
            return self._verb()
        if not self.operation.fields and self.operation.method in {"GET", "DELETE"}:
            return None
        body = {
            field: self._value(field)
            for field in self.operation.fields
            if field in self.operation.required or self.lots.random() < 1 / 3
        }
        if self.operation.method == "POST" and "uuid" in self.operation.fields:
            body["uuid"] = self._uuid()
        return body

    def _verb(self) -> dict[str, Any]:
        verb = self.lots.choice([verb for verb in story_verbs.VERBS if verb != "rebuild"])
        return {"target": verb} | VERB_ARGUMENTS.get(verb, {})

    def _patches(self) -> bool:
        return self.operation.method == "PATCH" and "vendor_passthru" not in self.operation.path

    def _attributes(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what a PATCH may change: the fields of the POST that makes such a thing."""
        if not self._patches():
            return self.operation.fields
        collection = self.operation.path.rpartition("/")[0].rsplit("/", maxsplit=1)[-1]
        return _posted(collection)

    def _change(self) -> dict[str, Any]:
        field = self.lots.choice([field for field in self._attributes() if field not in FIXED])
        operation = self.lots.choice(("add", "replace", "remove"))
        change = {"op": operation, "path": f"/{field}"}
        return change if operation == "remove" else change | {"value": self._value(field)}

    def _query(self) -> str:
        words = [word for word in self.operation.arguments if self.lots.random() < 1 / 4]
        return "&".join(f"{word}={self._word(word)}" for word in words)

    def _word(self, argument: str) -> str:
        if argument == "marker":
            return self._marker()
        if argument == "fields":
            return ",".join(self.lots.sample(("uuid", "links", "created_at", "updated_at"), 2))
        if argument == "sort_key":
            return str(self.lots.choice(values.ORDERS[:2]))
        value = self._value(argument)
        return ",".join(value) if isinstance(value, list) else str(value)

    def _marker(self) -> str:
        return self._ident(KINDS.get(self.operation.noun, "node"))

    # -- the requests ------------------------------------------------------------------------------

    def _ask(self, path: str, body: Any, query: str = "", at: int = NEWEST) -> None:
        more = {} if body is None else {"body": body}
        path = path.removeprefix("/v1") if path.startswith("/v1") else f"//{path}"
        self.script.ask(self.operation.method, f"{path}?{query}" if query else path, at=at, **more)
        if self.operation.method == "DELETE":
            self.stage.restock(self.script, path)

    def _right(self) -> None:
        self._ask(self._path(), self._body(), self._query())

    def _gates(self) -> None:
        since = self.operation.since
        old = (since - 1, since) if since > 1 else (1, self.lots.choice((20, 50, 80)))
        for minor in old:
            self._ask(self._path(), self._body(), at=minor)
        for argument, schema in self.operation.arguments.items():
            if (minor := _minor(schema["x-since"])) > max(since, 1):
                query = f"{argument}={self._word(argument)}"
                self._ask(self._path(), self._body(), query, minor - 1)
        versions = _versions(self.operation.noun)
        for field in self.operation.fields:
            if versions.get(field, 1) > max(since, 1):
                body = self._body() | {field: self._value(field)}
                self._ask(self._path(), body, at=versions[field] - 1)

    def _wrong_arguments(self) -> None:
        for argument, schema in self.operation.arguments.items():
            words = values.ORDERS if argument == "sort_key" else values.WRONG_WORDS[_type(schema)]
            self._ask(self._path(), self._body(), f"{argument}={self.lots.choice(words)}")

    def _wrong_body(self) -> None:
        for field, schema in self._attributes().items():
            wrong = self.lots.choice(values.WRONG[_type(schema)])
            if self._patches():
                change = {"op": "replace", "path": f"/{field}", "value": wrong}
                self._ask(self._path(), [change])
            else:
                self._ask(self._path(), self._body() | {field: wrong})
        for field in sorted(self.operation.required):
            body = self._body()
            self._ask(self._path(), {key: body[key] for key in body if key != field})

    def _strange(self) -> None:
        if "{" in self.operation.path:
            nobody = re.sub(r"{\w+}", lambda _: self.lots.choice(("nobody", NOTHING)),
                            self.operation.path)  # fmt: skip
            self._ask(nobody, self._body())
        self._ask(self._path(), self._body(), "nothing=1")
        if self._patches():
            for patch in self.lots.sample(values.WRONG_PATCHES, 2):
                self._ask(self._path(), patch)
        elif self.operation.fields:
            self._ask(self._path(), self._body() | {"nothing": 1})
            self._ask(self._path(), self.lots.choice(values.WRONG_BODIES))


NOTHING: Final = "99999999-9999-4999-8999-999999999999"
FIXED: Final = frozenset({"uuid", "driver", "node_uuid", "node_ident"})
VERB_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rescue": {"rescue_password": "secret"},
    "clean": {"clean_steps": [story_verbs.LOG]},
    "service": {"service_steps": [story_verbs.PAUSE]},
}
KINDS: Final[Mapping[str, str]] = {  # of the things in a collection
    "ports": "port", "portgroups": "portgroup", "chassis": "chassis", "allocations": "allocation",
    "connectors": "volumeconnector", "targets": "volumetarget", "runbooks": "runbook",
    "deploy_templates": "deploytemplate", "inspection_rules": "inspectionrule",
    "conductors": "hostname",
}  # fmt: skip


@functools.cache
def _posted(collection: str) -> Mapping[str, Mapping[str, Any]]:
    paths = {f"/v1/{collection}", f"/v1/volume/{collection}"}
    [creation] = [each for each in operations() if each.method == "POST" and each.path in paths]
    return creation.fields


def _versions(collection: str) -> Mapping[str, int]:
    """Return when each attribute of the things in a collection came."""
    if collection == "nodes":
        return {field.name: field.since for field in node_model.FIELDS.values()}
    for noun in nouns.BY_NAME.values():
        if noun.path.endswith(collection):
            return {field.name: field.since for field in noun.fields.values()}
    return {}


class Stage:
    """What the operations of a story find: nodes in several states, and one of each record."""

    def __init__(self, script: Script) -> None:
        nodes = [_LEADS[state](script) for state in _LEADS]
        for state, node in zip(_LEADS, nodes, strict=True):
            script.change(f"/nodes/{node}", "add", "/name", f"n-{state}")
        self.idents: dict[str, list[str]] = {
            "node": nodes, "driver": ["fake-hardware"], "hostname": ["localhost"],
            "driver_method": ["second_method", "third_method_sync"], "vif": ["vif-1", "vif-2"],
            "indicator": ["led@system", "power@system"], "trait": ["CUSTOM_A", "CUSTOM_B"],
            "entry": [NOTHING], "setting": ["prop1"],
        }  # fmt: skip
        self._bodies: dict[str, dict[str, Any]] = {}
        for kind, collection, body in self._records(script, nodes):
            ident = script.uuid()
            self.idents.setdefault(kind, []).append(ident)
            self._bodies[f"/{collection}/{ident}"] = {"uuid": ident} | body
            script.post(f"/{collection}", {"uuid": ident} | body)
        for node in nodes:
            self._bodies[f"/nodes/{node}"] = {"uuid": node, "driver": "fake-hardware"}

    def _records(self, script: Script, nodes: list[str]) -> Iterator[tuple[str, str, Any]]:
        yield "chassis", "chassis", {}
        for number, node in enumerate(nodes[:2]):
            yield "portgroup", "portgroups", {"node_uuid": node}
            yield "port", "ports", {"node_uuid": node, "address": script.mac()}
            yield (
                "volumeconnector", "volume/connectors",
                {"node_uuid": node, "type": "iqn", "connector_id": f"iqn-{number}"},
            )  # fmt: skip
            yield (
                "volumetarget", "volume/targets",
                {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0},
            )  # fmt: skip
        yield "allocation", "allocations", {"resource_class": "none", "name": "wish"}
        step = values.STEP
        template = {"name": "CUSTOM_T", "steps": [step | {"priority": 1}]}
        yield "deploytemplate", "deploy_templates", template
        yield "runbook", "runbooks", {"name": "CUSTOM_R", "steps": [step | {"order": 1}]}
        yield "inspectionrule", "inspection_rules", {"actions": values.RIGHT["actions"][0]}

    def restock(self, script: Script, path: str) -> None:
        """Make again what a request may have deleted; if it is there, that is refused."""
        for made, body in self._bodies.items():
            if path.endswith(made.rpartition("/")[2]):
                script.post(made.rpartition("/")[0], body)


def _maintained(script: Script) -> str:
    node = script.node("manageable")
    script.put(f"/nodes/{node}/maintenance", {"reason": "r"})
    return node


_LEADS: Final[Mapping[str, Callable[[Script], str]]] = {  # Ironic's fake hardware never holds
    "available": lambda script: script.node("available"),
    "active": lambda script: script.node("active"),
    "clean-failed": story_verbs.LEADS["verbs in clean failed"],
    "service-wait": story_verbs.LEADS["verbs in service wait"],
    "maintenance": _maintained,
}


def group(path: str) -> str:
    return next(name for name, pattern in GROUPS.items() if re.search(pattern, path))


def draw(seed: int) -> Iterator[Script]:
    for name in GROUPS:
        script = Script(f"document: {name}", seed)
        stage = Stage(script)
        for operation in operations():
            if group(operation.path) == name:
                Teller(script, seed, operation, stage).tell()
        yield script
