"""The caller of a request, and the rights that the policies grant."""

from __future__ import annotations

from typing import Any, Final

from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.operations.policy_rules import RULES

_RULES: Final = tuple(rule.name for rule in RULES if ":" in rule.name)
_OWNERS: Final = ("node.owner", "node.lessee", "runbook.owner", "allocation.owner", "project_id")


def describe(ctx: Context) -> dict[str, Any]:
    """Return user, project, roles, and each rule with whether it is granted.

    A rule is asked about an object of the caller's own project.  Raises Forbidden.
    """
    policy.authorize(ctx, "baremetal:caller:get")
    own = dict.fromkeys(_OWNERS, ctx.request.project)
    return {
        "auth_strategy": ctx.services.conf.default.auth_strategy,
        "user": ctx.request.user_name or ctx.request.user,
        "project": ctx.request.project,
        "roles": list(ctx.request.roles),
        "rules": {rule: policy.may(ctx, rule, own) for rule in _RULES},
    }
