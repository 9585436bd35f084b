"""An identity service in this process: of Keystone's API, what logins and checks of tokens ask.

with Identity() as identity:
    identity.grant("ann", "web", "member")               # role of a user in a project
    identity.grant("root", SYSTEM, "admin")
    identity.serve("baremetal", service.url)             # into the catalog
    token = identity.token("ann", "web")                 # or over HTTP, with a password

A user's password is the name and "-secret"; ids are the names and "-id".
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

SYSTEM: Final = "system"
DOMAIN: Final = {"id": "default", "name": "Default"}
SERVICE: Final = "bloomery"  # the user as whom the service under test checks tokens
IMPLIED: Final = {"admin": ("manager", "member", "reader"), "manager": ("member", "reader"),
                  "member": ("reader",)}  # fmt: skip


def ident(name: str) -> str:
    return f"{name}-id"


def password(user: str) -> str:
    return f"{user}-secret"


class Identity:
    """``checks`` counts tokens that were looked at for somebody; ``is_down`` answers 503."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._roles: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._catalog: dict[str, str] = {}
        self._tokens: dict[str, dict[str, Any]] = {}
        self.checks = 0
        self.is_down = False
        self.gate = threading.Event()  # answers wait for it
        self.gate.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3"
        self.serve("identity", self.url)
        self.grant(SERVICE, "service", "service")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def grant(self, user: str, project: str, role: str) -> None:
        """Give a role, and those that it implies; the project may be SYSTEM."""
        self._roles[user, project] += [role, *IMPLIED.get(role, ())]

    def serve(self, kind: str, url: str) -> None:
        """Put a service into the catalog; ``{project}`` in the URL is that of the token."""
        self._catalog[kind] = url

    def token(self, user: str, project: str, /, *, lasts_s: float = 3600, **more: Any) -> str:
        """Issue a token; ``more`` is put into it."""
        value = f"token-{next(self._numbers)}"
        now = datetime.now(UTC)
        scope: dict[str, Any] = {"system": {"all": True}}
        if project != SYSTEM:
            scope = {"project": {"id": ident(project), "name": project, "domain": DOMAIN}}
        self._tokens[value] = {
            "methods": ["password"],
            "user": {"id": ident(user), "name": user, "domain": DOMAIN},
            "roles": [{"id": ident(role), "name": role} for role in self._roles[user, project]],
            "catalog": [self._service(kind, url, project) for kind, url in self._catalog.items()],
            "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
            "expires_at": f"{now + timedelta(seconds=lasts_s):%Y-%m-%dT%H:%M:%S.%fZ}",
            **scope,
            **more,
        }
        return value

    def revoke(self, token: str) -> None:
        del self._tokens[token]

    def options(self, **more: Any) -> dict[str, Any]:
        """Return what leads a service here: [keystone_authtoken]."""
        return {
            "auth_type": "password", "auth_url": self.url, "www_authenticate_uri": self.url,
            "username": SERVICE, "password": password(SERVICE), "user_domain_id": "default",
            "project_name": "service", "project_domain_id": "default", **more,
        }  # fmt: skip

    def write_options(self, path: Path, **more: Any) -> str:
        """Write a configuration that leads a service here; return its name."""
        lines = "".join(f"{name} = {value}\n" for name, value in self.options(**more).items())
        path.write_text(f"[DEFAULT]\nauth_strategy = keystone\n[keystone_authtoken]\n{lines}")
        return str(path)

    def login(self, user: str, project: str) -> dict[str, str]:
        """Return the variables with which clients log in."""
        scope = {"OS_SYSTEM_SCOPE": "all"}
        if project != SYSTEM:
            scope = {"OS_PROJECT_NAME": project, "OS_PROJECT_DOMAIN_ID": "default"}
        return {
            "OS_AUTH_URL": self.url, "OS_USERNAME": user, "OS_PASSWORD": password(user),
            "OS_USER_DOMAIN_ID": "default", "OS_IDENTITY_API_VERSION": "3", **scope,
        }  # fmt: skip

    def _service(self, kind: str, url: str, project: str) -> dict[str, Any]:
        place = {"id": kind, "region": "one", "region_id": "one",
                 "url": url.replace("{project}", ident(project))}  # fmt: skip
        endpoints = [place | {"interface": interface} for interface in ("public", "internal")]
        return {"id": kind, "type": kind, "name": kind, "endpoints": endpoints}

    # --------------------------------------------------------------------------- over HTTP

    def issue(self, document: Any) -> tuple[str, dict[str, Any]] | None:
        """Return a token and what it says; None for a wrong name, password or project."""
        auth = document["auth"]
        user = auth["identity"]["password"]["user"]
        name = user.get("name") or user["id"].removesuffix("-id")
        scope = auth.get("scope", {})
        project = SYSTEM if "system" in scope else scope.get("project", {}).get("name", "")
        project = project or scope.get("project", {}).get("id", "").removesuffix("-id")
        if user["password"] != password(name) or not self._roles.get((name, project)):
            return None
        token = self.token(name, project)
        return token, self._tokens[token]

    def check(self, asker: str, subject: str, *, allow_expired: bool) -> dict[str, Any] | None:
        """Return what a token says, if it is worth something and the asker's, too."""
        self.checks += 1
        if asker not in self._tokens:
            raise PermissionError
        token = self._tokens.get(subject)
        if token is None or (_is_over(token) and not allow_expired):
            return None
        return token


def _is_over(token: dict[str, Any]) -> bool:
    return bool(datetime.fromisoformat(token["expires_at"]) < datetime.now(UTC))


def _handler(identity: Identity) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path.rstrip("/") != "/v3/auth/tokens":
                return self._answer(200, _versions(identity.url, path))
            identity.gate.wait()
            if identity.is_down:
                return self._answer(503, {})
            try:
                token = identity.check(
                    self.headers["X-Auth-Token"] or "",
                    self.headers["X-Subject-Token"] or "",
                    allow_expired="allow_expired=1" in query,
                )
            except PermissionError:
                return self._answer(401, _fault(401))
            return (
                self._answer(404, _fault(404))
                if token is None
                else self._answer(200, {"token": token})
            )

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"] or 0)
            issued = identity.issue(json.loads(self.rfile.read(length)))
            if issued is None:
                return self._answer(401, _fault(401))
            return self._answer(201, {"token": issued[1]}, {"X-Subject-Token": issued[0]})

        def _answer(self, status: int, document: Any, headers: Any = ()) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **dict(headers)}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Write nothing."""

    return Handler


def _versions(url: str, path: str) -> dict[str, Any]:
    version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{url}/"}]}
    return {"version": version} if path.startswith("/v3") else {"versions": {"values": [version]}}


def _fault(status: int) -> dict[str, Any]:
    return {"error": {"code": status, "message": "no", "title": "no"}}
