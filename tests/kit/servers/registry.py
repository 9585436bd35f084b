"""A container registry on this machine: it gives tokens, manifests and blobs (OCI 1.1).

with registry.serving() as images:
    digest = images.push("os", b"a disk", tag="12")
    images.url("os:12")                        # oci://127.0.0.1:PORT/os:12
    images.login = "user:password"             # from now on it needs one
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

Json = dict[str, Any]

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TOKEN = "a-token-of-the-registry"


class Registry:
    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.realm = f"http://{self.address}/token"
        self.login: str | None = None
        self.asks_basic = False
        self.documents: dict[str, tuple[str, bytes]] = {}  # of a path: its type and content
        self.elsewhere: dict[str, str] = {}  # of a path: where its server redirects to
        self.asked: list[str] = []

    def url(self, name: str) -> str:
        return f"oci://{self.address}/{name}"

    def push(self, name: str, *layers: bytes, tag: str | None = None) -> str:
        """Store an artefact; return the digest of its manifest."""
        described = [{"digest": self._store(f"{name}/blobs", each)} for each in layers]
        return self._put(name, MANIFEST, {"layers": described}, tag)

    def push_index(self, name: str, manifests: Sequence[Json], tag: str) -> str:
        return self._put(name, INDEX, {"manifests": list(manifests)}, tag)

    def _put(self, name: str, kind: str, document: Json, tag: str | None) -> str:
        body = json.dumps({"schemaVersion": 2, "mediaType": kind} | document).encode()
        if tag is not None:
            self.documents[f"/v2/{name}/manifests/{tag}"] = (kind, body)
        return self._store(f"{name}/manifests", body, kind)

    def _store(self, folder: str, body: bytes, kind: str = "application/octet-stream") -> str:
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.documents[f"/v2/{folder}/{digest}"] = (kind, body)
        return digest

    def is_known(self, header: str | None) -> bool:
        return self.login is None or header == (
            _basic(self.login) if self.asks_basic else f"Bearer {TOKEN}"
        )


def _basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


@contextlib.contextmanager
def serving() -> Iterator[Registry]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            images.asked.append(self.path)
            header = self.headers["Authorization"]
            if self.path.startswith("/token?"):
                known = images.login is not None and header == _basic(images.login)
                return self._answer(200 if known else 401, json.dumps({"token": TOKEN}).encode())
            if not images.is_known(header):
                challenge = (
                    'Basic realm="here"' if images.asks_basic
                    else f'Bearer realm="{images.realm}",service="images"'
                )  # fmt: skip
                return self._answer(401, b"", {"WWW-Authenticate": challenge})
            if self.path in images.elsewhere:
                return self._answer(307, b"", {"Location": images.elsewhere[self.path]})
            kind, body = images.documents.get(self.path, ("", b""))
            return self._answer(200 if kind else 404, body, {"Content-Type": kind})

        def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    images = Registry(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield images
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
