"""Asks of the operator, and whether each was answered as it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.client import Answer
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

Json = dict[str, Any]
VERSION = "1.109"  # the newest that the operator knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    what: str
    request: str
    needs: int
    answer: Answer
    is_so: bool

    @property
    def is_fine(self) -> bool:
        return self.answer.status == self.needs and self.is_so

    def __str__(self) -> str:
        got = f"{self.answer.status} {self.answer.body[:300]!r}"
        return f"{self.what}: {self.request}: needs {self.needs}, got {got}"


class Operator:
    """The client; ``asks`` is all that it has asked for."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.asks = stage, list[Ask]()

    def ask(
        self,
        what: str,
        request: str,
        body: Any = None,
        *,
        needs: int = 200,
        where: Callable[[Any], object] = lambda document: True,
    ) -> Any:
        """Make one request; return the document of the answer."""
        method, _, path = request.partition(" ")
        answer = self.stage.api.ask(method, path, body, version=VERSION)
        document = answer.json if answer.body else None
        is_so = answer.status != needs or bool(where(document))
        self.asks.append(Ask(what=what, request=request, needs=needs, answer=answer, is_so=is_so))
        return document

    def change(self, what: str, node: str, **values: Any) -> Json:
        """Update a node as the operator does: an addition for each value, a removal for None."""
        patch = [
            {"op": "remove", "path": path}
            if value is None
            else {"op": "add", "path": path, "value": value}
            for name, value in values.items()
            for path in [f"/{name.replace('.', '/')}"]
        ]
        return dict(self.ask(what, f"PATCH /v1/nodes/{node}", patch))

    def provision(self, what: str, node: str, target: str, **along: Any) -> None:
        self.ask(
            what, f"PUT /v1/nodes/{node}/states/provision", {"target": target} | along, needs=202
        )

    def provision_refused(self, what: str, node: str, target: str) -> None:
        self.ask(what, f"PUT /v1/nodes/{node}/states/provision", {"target": target}, needs=400)

    def wait(
        self,
        what: str,
        node: str,
        state: str,
        live: Callable[[], None] = lambda: None,
        where: Callable[[Json], object] = lambda node: True,
    ) -> Json:
        """Poll the node until it rests in a state; the last answer is the ask."""
        assert self.asks[-1].is_fine, str(self.asks[-1])

        def rests() -> bool:
            live()
            row = self.stage.site.node(node)
            return row.reservation is None and (
                row.provision_state == state or row.provision_state.endswith((" failed", "error"))
            )

        wait_for(rests, f"{node} to be {state}", timeout_s=60)
        return dict(
            self.ask(
                what,
                f"GET /v1/nodes/{node}",
                where=lambda shown: (
                    (shown["provision_state"], shown["last_error"]) == (state, None)
                    and where(shown)
                ),
            )
        )
