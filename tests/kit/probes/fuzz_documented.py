"""Requests that schemathesis makes from our OpenAPI document, to nodes in many states.

It is driven as a library, so that seed, count and idents are ours.  Checks that need a story of
their own are in ``documented_stories``; ``tests/conformance/openapi`` runs schemathesis itself,
which also looks whether what is right is accepted.
"""

from __future__ import annotations

import itertools
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
from tests.kit import sampling
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
    """Throw so many requests of either kind at every operation, or at a share of them."""
    target.lock_one()
    schema = schemathesis.openapi.from_wsgi(DOCUMENT, target.app)
    for result in sampling.some([*schema.get_all_operations()]):
        for mode in MODES:
            _throw(target, result.ok(), mode, seed, examples)


def _throw(target: fuzzing.Target, operation: Any, mode: Any, seed: int, examples: int) -> None:
    idents = target.idents

    @hypothesis.seed(seed)
    @fuzzing.settings(examples)
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def look(case: Case, data: st.DataObject) -> None:
        _aim(case, idents, data)
        if mode is GenerationMode.POSITIVE:
            _show_token(case, target.tokens, data)
        # What is no object counts as no body, as in Ironic, wherever bodies may be absent.
        rejects = isinstance(case.body, dict | NotSet) or not _may_be_absent(operation)
        more = [checks.negative_data_rejection] if rejects else []
        judge(target, case, [*CHECKS, *more])

    look()


def _may_be_absent(operation: Any) -> bool:
    return not any(alternative.is_required for alternative in operation.body)


def judge(target: fuzzing.Target, case: Case, wanted: list[Any]) -> None:
    """Send the request; let schemathesis and the target look at the answer."""
    response = case.call()
    if response.status_code == 413:  # refused by its size, before anything was read
        wanted = [each for each in wanted if each is not checks.negative_data_rejection]
    case.validate_response(response, checks=wanted)
    headers = {name.lower(): values[0] for name, values in response.headers.items()}
    target.judge(Answer(response.status_code, headers, response.content), case.method)


def _aim(case: Case, idents: dict[str, list[str]], data: st.DataObject) -> None:
    """Mostly speak the newest version, and of things that exist.

    What schemathesis has made wrong stays wrong.
    """
    if not _is_wrong(case, ParameterLocation.HEADER) and data.draw(st.integers(0, 3)):
        case.headers[versions.NAME] = versions.LATEST
    for name in case.path_parameters or {}:
        is_wrong = _is_wrong(case, ParameterLocation.PATH)
        if idents.get(name) and not is_wrong and data.draw(st.integers(0, 3)):
            case.path_parameters[name] = data.draw(st.sampled_from(idents[name]))


def _is_wrong(case: Case, location: ParameterLocation) -> bool:
    return case.meta is not None and case.meta.is_negative_at(location)


def _show_token(case: Case, tokens: dict[str, str], data: st.DataObject) -> None:
    """Let a heartbeat come from a node's own agent, mostly."""
    if "/heartbeat/" in case.path and data.draw(st.integers(0, 3)):
        node = data.draw(st.sampled_from(sorted(tokens)))
        case.path_parameters["node"] = node
        case.body = {**case.body, "agent_token": tokens[node]}
