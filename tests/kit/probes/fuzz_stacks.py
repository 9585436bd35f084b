"""Throw drawn templates at the orchestration API, with rows behind it, and judge each answer.

    fuzz_stacks.run(folder, seed, examples=100)

Each case is validated, previewed, created, shown in all its parts, updated, patched and deleted, as
a client would; no engine runs, so that stacks stay as they were accepted.  What holds for every
answer: a status that the API documents, a document in Heat's form where it is an error, with a
sentence, without a traceback or a hidden value; and no other project learns of the stack.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import hypothesis

from bloomery.api.orchestration import app
from tests.fakes.client import Answer, Client
from tests.kit.clients.stack_calls import StackCalls
from tests.kit.probes import fuzzing
from tests.kit.probes.fuzz_templates import KNOWN
from tests.kit.stacks.template_strategy import SECRET, SECRET_NUMBER, Case, cases

REFUSALS: Final = (400, 403, 404, 409)
WIRE_TYPES: Final = KNOWN | {
    "HTTPBadRequest", "HTTPNotFound", "HTTPForbidden", "ValueError", "AttributeError",
}  # fmt: skip
PARTS: Final = (
    "", "/template", "/environment", "/files", "/outputs", "/resources?with_detail=true",
    "/resources?nested_depth=3", "/events", "/snapshots",
)  # fmt: skip


def run(folder: Path, seed: int, examples: int, *, shrink: bool = True) -> Counter[str]:
    """Draw cases and count what the API made of them; one seed draws the same ones."""
    told: Counter[str] = Counter()
    thrower = Thrower(folder, told)
    phases = [hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if shrink else [])]

    @hypothesis.seed(seed)
    @hypothesis.settings(fuzzing.settings(examples), phases=phases, report_multiple_bugs=shrink)
    @hypothesis.given(first=cases(), second=cases())
    def look(first: Case, second: Case) -> None:
        thrower.throw(first, second)

    look()
    print(told.total(), "answers:", dict(told.most_common()))  # noqa: T201
    return told


class Thrower:
    def __init__(self, folder: Path, told: Counter[str]) -> None:
        calls = StackCalls(folder, max_stacks_per_tenant=-1)
        self._api = Client(app.make_app(calls.services, calls.operations), version=None)
        self._told = told
        self._number = 0

    def throw(self, first: Case, second: Case) -> None:
        self._number += 1
        name, body = f"s{self._number}", body_of(first)
        self._ask("POST", "validate?show_nested=true", body, hides=False)
        self._ask("POST", "stacks/preview", body | {"stack_name": name})
        created = self._ask("POST", "stacks", body | {"stack_name": name})
        if created.status != 201:
            return
        path = f"stacks/{name}/{created.json['stack']['id']}"
        self._look(path)
        change = body_of(second)
        # PATCH keeps values: what was hidden need not be so in the new template.
        for method, hides in (("PUT", True), ("PATCH", False)):
            self._ask(method, f"{path}/preview?show_nested=true", change, hides=hides)
            self._ask(method, path, change, hides=hides)
            self._look(path, hides=hides)
        self._ask("DELETE", path)

    def _look(self, path: str, *, hides: bool = True) -> None:
        for part in PARTS:
            self._ask("GET", path + part, hides=hides and not part.startswith("/template"))
        self._ask("GET", path, project="other", only=404)

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        hides: bool = True,
        project: str = "p1",
        only: int | None = None,
    ) -> Answer:
        """``hides``: values of hidden parameters must not be in the answer."""
        raw = None if body is None else json.dumps(body, default=repr, skipkeys=True).encode()
        answer = self._api.ask(method, f"/v1/{project}/{path}", raw=raw)
        self._told[f"{method} {answer.status}"] += 1
        assert only is None or answer.status == only, (method, path, answer.body[:500])
        self._judge(answer, method, path, hides=hides)
        return answer

    def _judge(self, answer: Answer, method: str, path: str, *, hides: bool) -> None:
        text = answer.body.decode()
        where = (method, path, answer.status, text[:1000])
        assert answer.status < 300 or answer.status in REFUSALS, where
        assert "Traceback" not in text, where
        if answer.status >= 300:
            fault = answer.json["error"]
            assert fault["type"] in WIRE_TYPES, where
            assert fault["message"].strip(), where
            assert fault["traceback"] is None, where
        if hides:
            told = json.dumps(_without_values(answer.json)) if text else ""
            assert SECRET not in told, where
            assert str(SECRET_NUMBER) not in told, where


def _without_values(document: Any) -> Any:
    """The document without values of outputs: who puts a secret there wants it told."""
    if isinstance(document, dict):
        return {
            key: _without_values(value) for key, value in document.items() if key != "output_value"
        }
    return [*map(_without_values, document)] if isinstance(document, list) else document


def body_of(case: Case) -> dict[str, Any]:
    """The request that a client would make of a case."""
    body: dict[str, Any] = {
        "template": _sent(case.template),
        "files": dict(case.files),
        "parameters": case.given,
    }
    if len(case.environments) == 1:
        return body | {"environment": case.environments[0]}
    for at, each in enumerate(case.environments):
        body["files"][f"{at}.env"] = json.dumps(each, default=repr, skipkeys=True)
    return body | {"environment_files": [f"{at}.env" for at in range(len(case.environments))]}


def _sent(template: Any) -> Any:
    return template.decode(errors="replace") if isinstance(template, bytes) else template
