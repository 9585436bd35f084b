"""Checks of schemathesis for which requests must be sent in order, or to another service.

    documented_stories.ask_other_methods(target)     # unsupported_method
    documented_stories.look_for_deleted(target)      # use_after_free
    documented_stories.come_without_login(app, USER, PASSWORD)   # ignored_auth

Nothing is drawn: each asks every operation of the document that it can.  The first thins out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode
from schemathesis.core.transport import Response
from schemathesis.engine.recorder import ScenarioRecorder
from schemathesis.specs.openapi import checks

from bloomery.api import versions
from tests.kit import sampling
from tests.kit.clients import documented
from tests.kit.probes import fuzzing

ANSWERED = ("HEAD", "OPTIONS")  # of each path, as in Ironic
NEWEST = {versions.NAME: versions.LATEST}
PORT = {"address": "52:54:00:dd:00:01"}
STEP = {"interface": "power", "step": "reboot"}


def ask_other_methods(target: fuzzing.Target) -> int:
    """Ask paths for each method that the document does not have, and return how many."""
    schema = schemathesis.openapi.from_dict(documented.document())
    schema.app = target.app
    count = 0
    for result in sampling.some([*schema.get_all_operations()]):
        operation = result.ok()
        for case in _other_methods(operation):
            case.path_parameters = _real(operation, target)
            case.headers[versions.NAME] = versions.LATEST
            response = case.call()
            target.told[response.status_code] += 1
            if case.method not in ANSWERED:
                case.validate_response(response, checks=[checks.unsupported_method])
            count += 1
    return count


def _other_methods(operation: Any) -> Iterator[Case]:
    schema = operation.schema
    for case in schema.iter_coverage_cases(
        operation,
        generation_modes=[GenerationMode.NEGATIVE],
        generation_config=schema.config.generation_for(operation=operation),
    ):
        if case.meta.phase.data.scenario.name == "UNSPECIFIED_HTTP_METHOD":
            yield case


def _real(operation: Any, target: fuzzing.Target) -> dict[str, str]:
    names = [parameter.name for parameter in operation.path_parameters]
    return {name: (target.idents.get(name) or ["x"])[0] for name in names}


# ------------------------------------------------------------------------------ what is deleted


def _bodies(target: fuzzing.Target) -> dict[str, Any]:
    """What may be created and deleted at once, by the path that creates it."""
    node = {"node_uuid": target.nodes[0]}
    return {
        "/v1/nodes": {"driver": "fake-hardware"},
        "/v1/ports": node | PORT,
        "/v1/portgroups": node,
        "/v1/chassis": {},
        "/v1/allocations": {"resource_class": "nothing"},
        "/v1/deploy_templates": {"name": "CUSTOM_D", "steps": [STEP | {"args": {}, "priority": 1}]},
        "/v1/runbooks": {"name": "short-lived", "steps": [STEP | {"order": 1}]},
        "/v1/inspection_rules": {"actions": [{"op": "fail", "args": {"msg": "no"}}]},
        "/v1/volume/connectors": node | {"type": "iqn", "connector_id": "short-lived"},
        "/v1/volume/targets": node | {"volume_type": "iscsi", "volume_id": "s", "boot_index": 9},
    }


def look_for_deleted(target: fuzzing.Target) -> int:
    """Create and delete one of each noun, then ask for it at every path; return how many."""
    schema = schemathesis.openapi.from_dict(documented.document())
    schema.app = target.app
    operations = [result.ok() for result in schema.get_all_operations()]
    items = {
        operation.path.rpartition("/{")[0]: operation
        for operation in operations
        if operation.method == "delete" and re.fullmatch(r"[^{}]+{\w+}", operation.path)
    }
    bodies = _bodies(target)
    return sum(
        _look_below(target, schema[path]["post"], body, items[path], operations)
        for path, body in bodies.items()
    )


def _look_below(
    target: fuzzing.Target, creation: Any, body: Any, deletion: Any, operations: list[Any]
) -> int:
    story = ScenarioRecorder(label="deleted")
    first = creation.Case(headers=NEWEST, body=body, media_type="application/json")
    ident = str(_send(target, story, first, None, 201).json()["uuid"])
    name = deletion.path.rpartition("{")[2].rstrip("}")
    last = deletion.Case(path_parameters={name: ident}, headers=NEWEST)
    _send(target, story, last, first, 204)
    below = [
        operation
        for operation in operations
        if operation.method == "get" and operation.path.startswith(deletion.path)
    ]
    for operation in below:
        along = _real(operation, target) | {name: ident}
        case = operation.Case(path_parameters=along, headers=NEWEST)
        response = _send(target, story, case, last, None)
        case.validate_response(response, checks=[checks.use_after_free], recorder=story)
    assert below, deletion.path
    return len(below)


def _send(
    target: fuzzing.Target,
    story: ScenarioRecorder,
    case: Case,
    parent: Case | None,
    status: int | None,
) -> Response:
    response = case.call()
    story.record_case(case=case, parent_id=parent and parent.id)
    story.record_response(case_id=case.id, response=response)
    target.told[response.status_code] += 1
    assert status in (None, response.status_code), response.content
    return response


# ------------------------------------------------------------------------------ who may ask


def come_without_login(app: Any, target: fuzzing.Target, user: str, password: str) -> int:
    """Ask a service with logins for all there is: with one, without, with a wrong one.

    Returns how many operations succeeded with the right login, and so were judged.
    """
    schema = schemathesis.openapi.from_dict(_with_logins())
    schema.app = app
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    headers = NEWEST | {"Authorization": f"Basic {login}"}
    judged = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        case = operation.Case(path_parameters=_real(operation, target), headers=NEWEST)
        response = case.call(headers=headers)
        target.told[response.status_code] += 1
        case.validate_response(response, checks=[checks.ignored_auth], headers=headers)
        judged += response.status_code < 300
    return judged


def _with_logins() -> dict[str, Any]:
    """The document of a service that takes nobody without a login."""
    return documented.document() | {"security": [{"basic": []}]}
