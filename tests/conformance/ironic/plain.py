"""What of an answer must be equal: status, headers, the form of an error, the values of a body.

Ids that the server chose, times and addresses become tokens.  Of sentences nothing is kept but the
words that clients look for, so that none of another project's sentences is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.ironic.exchange import Reply

UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?")
REQUEST_ID: Final = re.compile(rf"req-{UUID.pattern}")
HEADERS: Final = (
    "content-type", "location", "allow", "vary", "www-authenticate", "openstack-api-version",
    "x-openstack-ironic-api-minimum-version", "x-openstack-ironic-api-maximum-version",
    "x-openstack-ironic-api-version",
)  # fmt: skip
SENTENCES: Final = frozenset({"last_error", "event", "reason"})
EXPLAINED: Final = re.compile(r"vendor_passthru/methods|properties|^/$")
UNORDERED: Final = re.compile(r"enabled_\w+_interfaces|traits|hosts|supported_boot_devices")
WORDS: Final = {  # what clients, tests and people look for in the text of an error
    "locked": re.compile(r"is locked by host (?P<what>\S+?),"),
    "cannot patch": re.compile(r"Cannot patch (?P<what>/\S+?)\. Only"),
    "expected": re.compile(r"Expected (?P<what>\w+(?: integer)? for \w+)"),
    "missing": re.compile(r"Missing mandatory parameter: (?P<what>)"),
}


class Tokens:
    """Ids of one story, in the order in which the server showed them first."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._ids: dict[str, str] = {}

    def keep(self, text: str) -> None:
        """Leave the ids in ``text`` as they are: the client chose them."""
        for ident in UUID.findall(text):
            self._ids.setdefault(ident, ident)

    def replace(self, text: str) -> str:
        text = text.replace(self._base, "<url>")
        text = REQUEST_ID.sub("<request>", text)
        text = TIME.sub("<time>", text)
        return UUID.sub(self._token, text)

    def _token(self, match: re.Match[str]) -> str:
        count = sum(token.startswith("<id ") for token in self._ids.values())
        return self._ids.setdefault(match[0], f"<id {count + 1}>")


def answer(reply: Reply, tokens: Tokens, path: str = "") -> dict[str, Any]:
    plain: dict[str, Any] = {"status": reply.status, "headers": _headers(reply.headers, tokens)}
    if reply.status >= 400:
        return plain | {"error": _error(reply.body)}
    if not reply.body:
        return plain
    try:
        document = json.loads(reply.body)
    except ValueError:
        return plain | {"body": "not JSON"}
    if EXPLAINED.search(path):
        document = _without_explanations(document)
    text = tokens.replace(json.dumps(_without_sentences(document), sort_keys=True))
    return plain | {"body": json.loads(text)}


def _headers(headers: Mapping[str, str], tokens: Tokens) -> dict[str, str]:
    plain = {name: tokens.replace(headers[name]) for name in HEADERS if name in headers}
    ids = [headers.get(name) for name in ("x-openstack-request-id", "openstack-request-id")]
    if any(ids):
        whole = ids[0] == ids[1] and REQUEST_ID.fullmatch(ids[0] or "")
        plain["request id"] = "both" if whole else "broken"
    return plain


def _error(body: bytes) -> dict[str, Any]:
    """Return the form of an error, what clients take from it, and the words in its text."""
    try:
        outer = json.loads(body)
    except ValueError:
        return {"form": "text" if body else "none"}
    if "error_message" not in outer:
        return {"form": "bare", "code": outer.get("faultcode"), **_words(outer)}
    try:
        inner = json.loads(outer["error_message"])
    except (TypeError, ValueError):
        return {"form": "page"}
    if "faultcode" in inner:
        nothing = inner.get("debuginfo", "") is None
        return {
            "form": "first" if nothing else "with debuginfo", "code": inner["faultcode"],
            **_words(inner),
        }  # fmt: skip
    return {"form": "second", "code": inner.get("code"), "title": inner.get("title")}


def _words(fault: Mapping[str, Any]) -> dict[str, str]:
    text = str(fault.get("faultstring"))
    for name, pattern in WORDS.items():
        if match := pattern.search(text):
            return {"words": f"{name} {match['what']}".strip()}
    return {}


def _without_explanations(document: Any) -> Any:
    """Leave the names of properties and methods, without what is told about each."""
    if isinstance(document, dict):
        return {name: _without_explanations(value) for name, value in document.items()}
    return "<text>" if isinstance(document, str) and " " in document else document


def _without_sentences(document: Any, key: str = "") -> Any:
    if isinstance(document, list):
        return [_without_sentences(item) for item in document]
    if isinstance(document, dict):
        plain = {name: _without_sentences(value, name) for name, value in document.items()}
        if document.get("fault"):
            plain["maintenance_reason"] = "<text>"
        lists = (name for name in plain if UNORDERED.match(name) and isinstance(plain[name], list))
        return plain | {name: sorted(plain[name]) for name in lists}
    return "<text>" if key in SENTENCES and isinstance(document, str) and document else document
