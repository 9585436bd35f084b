"""A client that calls a WSGI application, and takes its errors apart as Ironic's clients do."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from bloomery.api.versions import MAX
from bloomery.http_server import wsgi

NEWEST = f"1.{MAX}"
URL = "http://localhost"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fault(self) -> dict[str, Any]:
        """The inner document of an error: clients parse twice."""
        inner = json.loads(self.body)["error_message"]
        assert isinstance(inner, str)
        return json.loads(inner)

    @property
    def form(self) -> str:
        """Which form the error has."""
        outer = json.loads(self.body)
        if "error_message" not in outer:
            return "bare"
        try:
            inner = json.loads(outer["error_message"])
        except ValueError:
            return "page"
        return "first" if set(inner) == {"faultcode", "faultstring", "debuginfo"} else "second"

    @property
    def said(self) -> str:
        fault = self.fault
        return fault.get("faultstring") or fault.get("description") or ""


class Client:
    """Speaks the newest version unless told otherwise; ``version=None`` sends no header."""

    def __init__(self, app: Any, version: str | None = NEWEST) -> None:
        self._app = app
        self.version = version
        self.address = "127.0.0.1"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str | int | None = "",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        content_type: str | None = "application/json",
    ) -> Answer:
        path, _, query = path.partition("?")
        sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": wsgi._unquoted(path.encode()),
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "REMOTE_ADDR": self.address,
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "localhost",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(sent),
            "wsgi.errors": io.StringIO(),
            "wsgi.version": (1, 0),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        if sent:
            environ["CONTENT_LENGTH"] = str(len(sent))
            if content_type is not None:
                environ["CONTENT_TYPE"] = content_type
        spoken = self.version if version == "" else version
        if spoken is not None:
            said = f"1.{spoken}" if isinstance(spoken, int) else spoken
            environ["HTTP_X_OPENSTACK_IRONIC_API_VERSION"] = said
        for name, value in (headers or {}).items():
            environ["HTTP_" + name.upper().replace("-", "_")] = value
        return self._send(environ)

    def _send(self, environ: dict[str, Any]) -> Answer:
        told: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            shown = {name.lower(): value for name, value in headers}
            told[:] = [int(status.split(maxsplit=1)[0]), shown]

        body = b"".join(self._app(environ, start))
        return Answer(told[0], told[1], body)

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("PUT", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("PATCH", path, body, **more)

    def delete(self, path: str, **more: Any) -> Answer:
        return self.ask("DELETE", path, **more)

    def node(self, version: str | int | None = "", **values: Any) -> dict[str, Any]:
        """Enrol a node and return it."""
        made = self.post("/v1/nodes", {"driver": "fake-hardware"} | values, version=version)
        assert made.status == 201, made.body
        return made.json
