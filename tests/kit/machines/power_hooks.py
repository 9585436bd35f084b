"""The server of the guide about power by webhook, which may also misbehave."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

PAGE = Path(__file__).parents[3] / "doc/guides/power-by-webhook.md"
PATH = "/outlets/1"


def server_of_page() -> dict[str, Any]:
    """Run the text of the page; return its names."""
    [text] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "outlets"}
    exec(compile(text, str(PAGE), "exec"), names)
    return names


class PowerHooks:
    """``calls``: types of those that were signed well.  ``faults``: for the next calls of a type.

    A fault gets the handler, and returns whether the server goes on as usual.
    """

    def __init__(self) -> None:
        page = server_of_page()
        self.outlets, self.secret = page["OUTLETS"], page["SECRET"]
        self.calls: list[str] = []
        self.faults: dict[str, list[Callable[[Any], bool]]] = {}
        self.released = threading.Event()  # ends those that hang
        verify = page["standardwebhooks"].Webhook(self.secret).verify

        class Handler(page["Outlets"]):
            hooks = self

            def do_POST(self) -> None:  # noqa: N802  of http.server
                peek = self.rfile.peek()[: int(self.headers["Content-Length"])]
                try:
                    call = verify(peek, dict(self.headers))["type"]
                except page["standardwebhooks"].WebhookVerificationError:
                    return super().do_POST()
                self.hooks.calls.append(call)
                planned = self.hooks.faults.get(call) or []
                return super().do_POST() if not planned or planned.pop(0)(self) else None

            def log_message(self, *_args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{PATH}"

    @property
    def driver_info(self) -> dict[str, Any]:
        urls = {f"webhook_power_{verb}_url": self.url for verb in ("read", "on", "off")}
        return {**urls, "webhook_secret": self.secret}

    @property
    def power(self) -> str:
        return f"power {self.outlets[PATH]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()
