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


def _crash(case: Case, theirs: Answer, ours: Answer) -> bool:
    return theirs["error"] in FOREIGN and ours["error"] in OURS


def _keys(case: Case, theirs: Answer, ours: Answer) -> bool:
    return bool(KEYS.search(json.dumps(case["template"])))


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
