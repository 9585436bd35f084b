"""Stacks made of YAML, for tests."""

from __future__ import annotations

import textwrap
from typing import Any

from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.stack import Stack, ValidationLevel
from bloomery.orchestration.stack import validate as validate_stack
from bloomery.orchestration.template import kinds, parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.environment import Environment


def hot(body: str, version: str = "2018-08-31") -> dict[str, Any]:
    """A document of a HOT version."""
    return parse.document(f"heat_template_version: {version}\n{textwrap.dedent(body)}")


def cfn(body: str, *, heat: bool = False) -> dict[str, Any]:
    """A document of the CloudFormation dialect, in the form of AWS or of Heat."""
    version = "HeatTemplateFormatVersion: 2012-12-12" if heat else (
        "AWSTemplateFormatVersion: 2010-09-09"
    )  # fmt: skip
    return parse.document(f"{version}\n{textwrap.dedent(body)}")


def definition(document: dict[str, Any], env: Any = None, *, limits=LIMITS, files=None, **more):
    template = versions.template_class(document)(document, files, limits=limits)
    environment = Environment.of(env, kinds.installed())
    identity = {key: more.pop(key) for key in ("name", "id", "arn", "project_id") if key in more}
    return Definition(
        template=template,
        environment=environment,
        identity=Identity(**({"name": "web"} | identity)),
        **more,
    )


def stack(document: dict[str, Any], env: Any = None, *, timeout_s: float = 3600, **more) -> Stack:
    return Stack(definition(document, env, **more), timeout_s=timeout_s)


def validate(document: dict[str, Any], env: Any = None, *, strict: bool = True, **more) -> Stack:
    made = stack(document, env, **more)
    validate_stack(made, ValidationLevel.VALUES if strict else ValidationLevel.SHAPE)
    return made
