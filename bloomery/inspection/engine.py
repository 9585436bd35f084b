"""The engine of inspection rules: highest priority first, each on the result of the previous ones.

    engine.run(rules, draft, engine.Powers(mask_secrets="always", reveal=sealer.open, call=fetch))

A rule acts if all its conditions hold.  A failing rule fails the inspection with an error that
names the rule and the action.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.inspection import actions, conditions, rule_check
from bloomery.inspection.draft import Draft
from bloomery.inspection.formats import Budget, Scope
from bloomery.model import node as node_model
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.rules import inspection

Json = dict[str, Any]
LOG = logging.getLogger(__name__)
_SENSITIVE: Final = "its data are not shown, as it is sensitive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers:
    """The rules' access beyond the draft.

    ``mask_secrets``: the option's value.  ``reveal`` opens sealed secrets.  ``call`` makes an
    api-call; it raises Invalid.
    """

    mask_secrets: str
    reveal: Callable[[Any], Any]
    call: Callable[..., None]


def run(rules: Iterable[InspectionRule], draft: Draft, powers: Powers) -> None:
    """Apply the rules to the draft.  Raises HardwareInspectionFailure."""
    budget = Budget()
    draft.unshare()
    for rule in sorted(rules, key=lambda rule: -rule.priority):
        reads = powers.mask_secrets == "never" or (
            powers.mask_secrets == "sensitive" and rule.sensitive
        )
        reveal = powers.reveal if reads else None
        with _naming_fault(rule):
            if _holds(rule, draft, budget, reveal):
                LOG.info("node %s: inspection rule %s applies", draft.node.uuid, rule.uuid)
                _act(rule, draft, budget, reveal, powers)


def _holds(
    rule: InspectionRule, draft: Draft, budget: Budget, reveal: Callable[[Any], Any] | None
) -> bool:
    scope = _scope(draft, budget, reveal)
    for place, condition in enumerate(rule.conditions):
        with _naming(rule, "condition", place, condition["op"]):
            if not conditions.holds(condition, scope):
                return False
    return True


def _act(
    rule: InspectionRule,
    draft: Draft,
    budget: Budget,
    reveal: Callable[[Any], Any] | None,
    powers: Powers,
) -> None:
    """Run every action, once or for each item, on the result of the previous one."""
    for place, action in enumerate(rule.actions):
        op = action["op"]
        with _naming(rule, "action", place, op):
            with budget.timed():
                items = conditions.loop_of(action, _scope(draft, budget, reveal))
            for item in [None] if items is None else items:
                scope = _scope(draft, budget, reveal)
                scope = scope if items is None else scope.with_item(item)
                with budget.timed():
                    arguments = conditions.arguments_of(action, inspection.ACTIONS[op], scope)
                    if op == "api-call":
                        powers.call(**arguments)
                    else:
                        actions.OPERATORS[op](draft, **arguments)


def _scope(draft: Draft, budget: Budget, reveal: Callable[[Any], Any] | None) -> Scope:
    names = {
        "node": {name: getattr(draft.node, name, None) for name in node_model.FIELDS},
        "inventory": draft.inventory,
        "plugin_data": draft.plugin_data,
    }
    return Scope(names=names, budget=budget, reveal=reveal)


@contextlib.contextmanager
def _naming_fault(rule: InspectionRule) -> Iterator[None]:
    """Add to the errors of an outdated rule why this release would refuse it.

    The rule runs all the same: its fault may not matter on this node.
    """
    fault = rule_check.find_fault(rule)
    if fault is None:
        yield
        return
    place, _, why = fault.partition(": ")
    refusal = f"{_name(rule)}, {place}: {_SENSITIVE if rule.sensitive else why}"
    LOG.warning("%s; it would be refused today: change it, or delete it", refusal)
    try:
        yield
    except errors.HardwareInspectionFailure as exc:
        raise _outdated(f"{exc.facts['reason']}; {place}") from exc
    except (LookupError, TypeError) as exc:  # a removed operator or argument
        raise _outdated(f"{refusal}; it") from exc


def _outdated(what: str) -> errors.HardwareInspectionFailure:
    reason = f"{what} would be refused today: change the rule, or delete it"
    return errors.HardwareInspectionFailure(reason=reason)


def _name(rule: InspectionRule) -> str:
    name = f"{rule.uuid} ({rule.description})" if rule.description else rule.uuid
    return f"inspection rule {name}"


@contextlib.contextmanager
def _naming(rule: InspectionRule, kind: str, place: int, op: str) -> Iterator[None]:
    """Add the rule and its part to the errors of the block.

    A sensitive rule's errors show no data, except the message of its action ``fail``.
    """
    name = _name(rule)
    try:
        yield
    except errors.HardwareInspectionFailure as exc:
        raise errors.HardwareInspectionFailure(reason=f"{exc.facts['reason']} ({name})") from exc
    except errors.Failure as exc:
        why = _SENSITIVE if rule.sensitive else str(exc)
        raise errors.HardwareInspectionFailure(
            reason=f"{name}, {kind} {place} ({op}): {why}"
        ) from exc
