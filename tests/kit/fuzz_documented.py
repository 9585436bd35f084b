"""Requests that schemathesis makes from our OpenAPI document: right ones, and wrong ones.

It is driven as a library, so that seed and count are ours.
"""

from __future__ import annotations

from typing import Any

import hypothesis
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from bloomery.api import versions
from tests.fakes.client import Answer
from tests.kit import fuzzing

DOCUMENT = "/ext/v1/openapi.json"
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def run(target: fuzzing.Target, seed: int, examples: int) -> None:
    """Throw so many requests of either kind at every operation of the document."""
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
        _aim(case, idents, data)
        response = case.call()
        case.validate_response(response, checks=CHECKS)
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        target.judge(Answer(response.status_code, headers, response.content), case.method)

    look()


def _aim(case: Case, idents: dict[str, list[str]], data: st.DataObject) -> None:
    """Mostly speak the newest version, and of things that exist."""
    if data.draw(st.integers(0, 3)):
        case.headers[versions.NAME] = versions.LATEST
    for name in case.path_parameters or {}:
        if idents.get(name) and data.draw(st.integers(0, 3)):
            case.path_parameters[name] = data.draw(st.sampled_from(idents[name]))
