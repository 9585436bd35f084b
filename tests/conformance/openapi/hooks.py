"""What schemathesis cannot read in the documents; ``schemathesis.toml`` holds the exceptions."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode, HookContext

LIMIT = 2**63


@schemathesis.hook
def filter_case(context: HookContext, case: Case) -> bool:
    """Leave out requests that are right by JSON schema, and wrong by the rest of the document."""
    if case.meta is None or case.meta.generation.mode is GenerationMode.NEGATIVE:
        return True
    groups = case.operation.definition.raw.get("x-at-most-one-of", ())
    return _fits(case.body) and all(len({*group} & {*case.query}) < 2 for group in groups)


def _fits(value: Any) -> bool:
    """Say whether all integers have 64 bits; no schema can say so of free objects."""
    if isinstance(value, dict | list):
        return all(map(_fits, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or -LIMIT <= value < LIMIT
