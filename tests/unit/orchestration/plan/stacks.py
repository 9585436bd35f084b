"""Stacks from texts, for tests that look at whole templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.template import parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.environment import Environment


def stack(
    text: str,
    *,
    files: Mapping[str, str] | None = None,
    environment: Mapping[str, Any] | None = None,
    timeout_s: float = 3600,
    limits: Limits = LIMITS,
    sound: bool = True,
    **given: Any,
) -> Stack:
    document = parse.document(text, limits)
    template = versions.template_class(document)(document, files or {}, limits=limits)
    definition = Definition(
        template=template,
        environment=Environment.of(environment),
        identity=Identity(name="story"),
        user_parameters=given,
    )
    made = Stack(definition, timeout_s=timeout_s)
    if sound:
        validate(made)
    return made


def resources(body: str, **others: Any) -> Stack:
    """A stack of resources alone, written below ``resources``."""
    return stack(f"heat_template_version: 2021-04-16\nresources:\n{body}", **others)
