"""Why an answer may differ from Heat's: a name, a reason, how many cases, and which.

A reason names a decision of ours or an accident of Heat that clients cannot rely on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

Case = dict[str, Any]
Answer = dict[str, Any]


class Allowance(NamedTuple):
    why: str
    most: int  # cases of the seed that is recorded; other seeds have other numbers
    applies: Callable[[Case, Answer, Answer], bool]


FOREIGN: Final = frozenset({"AttributeError", "KeyError", "TypeError", "ValueError", "error"})
OURS: Final = frozenset({"InvalidSchemaError", "InvalidTemplateReference", "StackValidationFailed"})
TOLERANT: Final = re.compile(r'"(?:filter|list_join)": ')
KEYS: Final = re.compile(r"\.keys\(\)")
ONE_OF: Final = re.compile(r"\.(?:first|last|single)\(\)")
PLAIN_NAME: Final = re.compile(r'"get_attr": "')


def _crash(case: Case, theirs: Answer, ours: Answer) -> bool:
    return theirs["error"] in FOREIGN and ours["error"] in OURS


def _keys(case: Case, theirs: Answer, ours: Answer) -> bool:
    return bool(KEYS.search(json.dumps(case["template"])))


def _none_of_none(case: Case, theirs: Answer, ours: Answer) -> bool:
    failed = "failed" in ours["outputs"].get("o", {})
    told = "value" in theirs["outputs"].get("o", {})
    return failed and told and bool(ONE_OF.search(json.dumps(case["template"])))


def _plain_name(case: Case, theirs: Answer, ours: Answer) -> bool:
    classes = (theirs["error"], ours["error"])
    named = bool(PLAIN_NAME.search(json.dumps(case["template"])))
    return named and classes == ("StackValidationFailed", "InvalidTemplateReference")


def _falsy_list(case: Case, theirs: Answer, ours: Answer) -> bool:
    refused = ours["error"] == "StackValidationFailed" or "failed" in ours["outputs"].get("o", {})
    passes = theirs["status"] == "CREATE_COMPLETE" and "value" in theirs["outputs"].get("o", {})
    return refused and passes and bool(TOLERANT.search(json.dumps(case["template"])))


ALLOWED: Final[Mapping[str, Allowance]] = {
    "a crash of Heat": Allowance(
        "Heat lets a Python error out where it should refuse (500 on the wire); here it is named",
        9,
        _crash,
    ),
    "something false for a list": Allowance(
        "Heat's filter and list_join take anything empty or false for a list; documented is null",
        6,
        _falsy_list,
    ),
    "one of none in yaql": Allowance(
        "Heat makes null of first() of nothing in an output and refuses it in a property",
        0,
        _none_of_none,
    ),
    "a plain name of no resource": Allowance(
        "Heat says that get_attr takes a list, because the name it was given is of no resource",
        0,
        _plain_name,
    ),
    "keys in yaql": Allowance(
        "Heat makes the text of a Python set of them, such as {'b', 'a'}; here they are a list",
        0,
        _keys,
    ),
}


def reason(case: Case, theirs: Answer, ours: Answer) -> str | None:
    """Return the name of the first reason that covers a difference."""
    for name, allowance in ALLOWED.items():
        if allowance.applies(case, theirs, ours):
            return name
    return None
