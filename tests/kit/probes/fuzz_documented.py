"""Requests that schemathesis makes from our OpenAPI document: right ones, and wrong ones.

It is driven as a library, so that seed and count are ours.  Checks that need a story of their own
are in ``documented_stories``.
"""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import hypothesis
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi import checks

from bloomery.api import versions
from tests.fakes.client import Answer
from tests.kit.probes import fuzzing

DOCUMENT = "/ext/v1/openapi.json"
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.allow_header_conformance,
]
# Bodies are not among what must be accepted: a schema does not say which verb fits a state, which
# interface a driver has, or which operation a patch may do.  Neither are query arguments that name
# things (fields, sort keys, markers, rows) or that a noun knows but a version or policy refuses.
ACCEPTED = ("limit", "sort_dir", "detail")
# 400 as Ironic has it: nested items, methods of vendors that are not for GET, nobody named, and the
# allocation of a node that another request has deleted.
REFUSED = re.compile(
    r".*}/(nodes|ports|portgroups|volume/connectors|volume/targets)/{\w+}|.*/{\w+}/allocation"
    r"|.*/vendor_passthru(/{\w+})?|/v1/nodes/validate|/v1/lookup"
)
ROUND = 10
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def run_for(target: fuzzing.Target, seed: int, lasting_s: float) -> None:
    """Throw ROUND requests of either kind at every operation, with a new seed, as time allows."""
    end = time.monotonic() + lasting_s
    target.lock_one()
    schema = schemathesis.openapi.from_wsgi(DOCUMENT, target.app)
    while time.monotonic() < end:
        print(f"requests from the document: seed {seed}")  # noqa: T201
        for result, mode in itertools.product(schema.get_all_operations(), MODES):
            if time.monotonic() < end:
                _throw(target, result.ok(), mode, seed, ROUND)
        seed += 1


def run(target: fuzzing.Target, seed: int, examples: int) -> None:
    """Throw so many requests of either kind at every operation of the document."""
    target.lock_one()
    schema = schemathesis.openapi.from_wsgi(DOCUMENT, target.app)
    for result in schema.get_all_operations():
        for mode in MODES:
            _throw(target, result.ok(), mode, seed, examples)


def _throw(target: fuzzing.Target, operation: Any, mode: Any, seed: int, examples: int) -> None:
    idents = target.idents

    @hypothesis.seed(seed)
    @fuzzing.settings(examples)
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def look(case: Case, data: st.DataObject) -> None:
        is_aimed = _aim(case, idents, data)
        if is_aimed and mode is GenerationMode.POSITIVE:
            _show_token(case, target.tokens, data)
        is_right = is_aimed and _asks_only_what_is_accepted(case, mode)
        more = [checks.positive_data_acceptance] if is_right else []
        # What is no object counts as no body, as in Ironic, wherever bodies may be absent.
        rejects = isinstance(case.body, dict | NotSet) or not _may_be_absent(operation)
        more += [checks.negative_data_rejection] if rejects else []
        judge(target, case, [*CHECKS, *more])

    look()


def _may_be_absent(operation: Any) -> bool:
    return not any(alternative.is_required for alternative in operation.body)


def judge(target: fuzzing.Target, case: Case, wanted: list[Any]) -> None:
    """Send the request; let schemathesis and the target look at the answer."""
    response = case.call()
    case.validate_response(response, checks=wanted)
    headers = {name.lower(): values[0] for name, values in response.headers.items()}
    target.judge(Answer(response.status_code, headers, response.content), case.method)


def _aim(case: Case, idents: dict[str, list[str]], data: st.DataObject) -> bool:
    """Mostly speak the newest version, and of things that exist; return whether all of it does.

    What schemathesis has made wrong stays wrong.
    """
    is_aimed = True
    if _is_wrong(case, ParameterLocation.HEADER) or not data.draw(st.integers(0, 3)):
        is_aimed = False
    else:
        case.headers[versions.NAME] = versions.LATEST
    for name in case.path_parameters or {}:
        is_wrong = _is_wrong(case, ParameterLocation.PATH)
        if idents.get(name) and not is_wrong and data.draw(st.integers(0, 3)):
            case.path_parameters[name] = data.draw(st.sampled_from(idents[name]))
        else:
            is_aimed = False
    return is_aimed


def _is_wrong(case: Case, location: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(location)


def _show_token(case: Case, tokens: dict[str, str], data: st.DataObject) -> None:
    """Let a heartbeat come from a node's own agent, mostly."""
    if "/heartbeat/" in case.path and data.draw(st.integers(0, 3)):
        node = data.draw(st.sampled_from(sorted(tokens)))
        case.path_parameters["node"] = node
        case.body = {**case.body, "agent_token": tokens[node]}


def _asks_only_what_is_accepted(case: Case, mode: GenerationMode) -> bool:
    is_read = case.method == "GET" and mode is GenerationMode.POSITIVE
    is_refused = REFUSED.fullmatch(case.path) is not None
    return is_read and not is_refused and all(name in ACCEPTED for name in case.query or {})
