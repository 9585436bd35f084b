"""Calls of the webhooks of drains, each in a thread of its own, so that no turn waits for one.

    calls = WebhookCalls(conf.events)
    calls.post("id/0", "id", {"url": ..., "secret": ...}, body)  # None while it lasts, then once:
    # Answer(fault="", is_drained=True)

A call that this process does not know begins: after a crash the next engine thus calls again, with
the same ``webhook-id``, by which receivers know it.
"""

from __future__ import annotations

import binascii
import json
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import standardwebhooks

from bloomery import errors, fetching
from bloomery.conf.notifications import Events
from bloomery.model import webhook as webhook_model
from bloomery.orchestration.resources.base import Answer

MOST_CALLS: Final = 16  # at the same time; further ones begin later
MOST_KEPT: Final = 1000  # answers that nobody has asked for yet


class WebhookCalls:
    """``conf`` says how long a call may take, and which addresses may be called."""

    def __init__(self, conf: Events) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._answers: dict[str, Answer] = {}

    def post(
        self, call: str, webhook_id: str, webhook: Mapping[str, Any], body: Mapping[str, Any]
    ) -> Answer | None:
        with self._lock:
            if (answer := self._answers.pop(call, None)) is not None:
                return answer
            if call in self._running or len(self._running) >= MOST_CALLS:
                return None
            self._running.add(call)
        threading.Thread(
            target=self._run, args=(call, webhook_id, webhook, orjson.dumps(body)),
            name=f"drain-{call}", daemon=True,
        ).start()  # fmt: skip
        return None

    def _run(self, call: str, webhook_id: str, webhook: Mapping[str, Any], body: bytes) -> None:
        try:
            answer = self._call(webhook_id, webhook, body)
        except Exception as exc:  # noqa: BLE001  this thread's supervisor: the drain names the fault
            answer = Answer(fault=errors.brief(exc))
        with self._lock:
            self._running.discard(call)
            while len(self._answers) >= MOST_KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[call] = answer

    def _call(self, webhook_id: str, webhook: Mapping[str, Any], body: bytes) -> Answer:
        try:
            signer = standardwebhooks.Webhook(webhook["secret"])
        except (binascii.Error, ValueError):
            return Answer(fault=f"its secret cannot be used: {webhook_model.SECRET_SIZE}")
        headers = fetching.signed(signer, webhook_id, datetime.now(UTC), body)
        try:
            url = fetching.checked(webhook["url"])
            status, _, content = fetching.post(
                url, body, headers, self._addresses, self._conf.webhook_timeout
            )
        except (fetching.FetchRefused, fetching.FetchFailed) as exc:
            return Answer(fault=str(exc))
        if not 200 <= status < 300:
            return Answer(fault=f"the server answers {status}")
        try:
            document = json.loads(content)
        except ValueError:
            return Answer()
        is_drained = isinstance(document, dict) and document.get("drained") is True
        return Answer(is_drained=is_drained)

    def _addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
        entries, allow_local = fetching.resolved(host, port), self._conf.webhook_allow_local
        return fetching.reachable(entries, webhook_model.OPTION, allow_local=allow_local)
