"""Faults on request: which, where, and how often.

    {"kind": "status", "status": 503, "path": "/Systems/", "method": "GET", "skip": 1, "times": 2}

skips one request that matches the regular expressions, then hits two (-1: all further ones).
``probability``: the share of those requests that it hits.  ``until``: a request that matches this
regular expression ("POST .*EjectMedia") ends the fault.

    delay    {"seconds": S}     answer late; adds to another fault
    status   {"status": 503}    answer with this code (and optional "body", "headers")
    hang     {"seconds": S}     read the request, say nothing, close
    reset    {}                 close with a TCP reset
    truncate {}                 half of the answer, then close
    nojson   {}                 an HTML page with code 200
    after    {"status": 500}    carry out the request, then answer with this code
    expire   {}                 drop all sessions, then continue normally
    stuck    {}                 accept a power request and do nothing
    later    {"seconds": S}     answer 204 (or "status"), and carry out the request after the time
    task     {"seconds": S}     answer 202 with a task that carries out the request after the time;
                                with "message", the task fails and says so
    shows    {"document": {}}   merge this JSON patch (RFC 7396) into the answer; adds to another
                                fault
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from bloomery.lab.refusal import Refusal, Rule, checked, needed

KINDS: Final = [
    "delay", "status", "hang", "reset", "truncate", "nojson", "after", "expire", "stuck",
    "later", "task", "shows",
]  # fmt: skip
_RULES: Final[dict[str, Rule]] = {
    "kind": KINDS, "path": str, "method": str, "skip": int, "times": int, "hits": int,
    "seconds": (int, float), "probability": (int, float), "status": int, "body": None,
    "headers": dict, "message": str, "document": dict, "until": str,
}  # fmt: skip


class Hit(NamedTuple):
    """What meets one request: seconds to wait, patches of its answer, and a fault or {}."""

    delay_s: float
    patches: Sequence[dict[str, Any]]
    fault: dict[str, Any]


class Faults:
    """The faults of one BMC; all delays and patches count, and the first of the others."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._random = source or random.Random(0)  # noqa: S311  of a simulation
        self._lock = threading.Lock()
        self._all: list[dict[str, Any]] = []

    def add(self, **fault: Any) -> None:
        """Add a fault.  Raises Refusal for an invalid one."""
        document: dict[str, Any] = (
            {"path": "", "method": ".*", "skip": 0, "times": 1} | fault | {"hits": 0}
        )
        needed(document, "kind")
        checked(document, _RULES, "the fault")
        try:
            for name in ("path", "method", "until"):
                re.compile(document.get(name, ""))
        except re.error as exc:
            raise Refusal(400, f"cannot take this fault: {exc}") from exc
        with self._lock:
            self._all.append(document)

    def add_json(self, raw: bytes) -> None:
        try:
            fault = json.loads(raw)
        except ValueError as exc:
            raise Refusal(400, f"cannot take this fault: {exc}") from exc
        self.add(**checked(fault, _RULES, "the fault"))

    def clear(self) -> None:
        with self._lock:
            self._all.clear()

    def shown(self) -> list[dict[str, Any]]:
        with self._lock:
            return [dict(fault) for fault in self._all]

    def take(self, method: str, path: str) -> Hit:
        """Return what meets this request."""
        delay_s, patches = 0.0, []
        with self._lock:
            for fault in self._all:
                if not self._hits(fault, method, path):
                    continue
                if fault["kind"] == "delay":
                    delay_s += fault.get("seconds", 5)
                elif fault["kind"] == "shows":
                    patches.append(fault.get("document") or {})
                else:
                    return Hit(delay_s, patches, dict(fault))
        return Hit(delay_s, patches, {})

    def _hits(self, fault: dict[str, Any], method: str, path: str) -> bool:
        """Return whether the fault hits this request, and count it."""
        if "until" in fault and re.search(fault["until"], f"{method} {path}"):
            fault["times"] = 0
        if fault["times"] == 0 or not re.search(fault["path"], path):
            return False
        if not re.fullmatch(fault["method"], method):
            return False
        if fault["skip"]:
            fault["skip"] -= 1
            return False
        if self._random.random() >= fault.get("probability", 1):
            return False
        fault["times"] -= 1
        fault["hits"] += 1
        return True
