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
import json
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.kit.servers import web

Json = dict[str, Any]

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"
TOKEN = "a-token-of-the-registry"


class Registry:
    address = realm = ""
    asked: Sequence[str] = ()  # paths, in the order in which they were asked for

    def __init__(self) -> None:
        self.login: str | None = None
        self.asks_basic = False
        self.documents: dict[str, tuple[str, bytes]] = {}  # of a path: its type and content
        self.elsewhere: dict[str, str] = {}  # of a path: where its server redirects to

    def url(self, name: str) -> str:
        return f"oci://{self.address}/{name}"

    def push(self, name: str, *layers: bytes, tag: str | None = None) -> str:
        """Store an artefact; return the digest of its manifest."""
        described = [{"digest": self._store(f"{name}/blobs", each)} for each in layers]
        return self.put(name, MANIFEST, {"layers": described}, tag)

    def push_container(self, name: str, architecture: str = "amd64", tag: str | None = None) -> str:
        """Store a container of two layers; return the digest of its manifest."""
        config = json.dumps({"architecture": architecture, "config": {}}).encode()
        described = {"mediaType": CONFIG, "digest": self._store(f"{name}/blobs", config)}
        layers = [
            {"mediaType": LAYER, "digest": self._store(f"{name}/blobs", each)}
            for each in (b"base", b"more")
        ]
        return self.put(name, MANIFEST, {"config": described, "layers": layers}, tag)

    def push_index(self, name: str, manifests: Sequence[Json], tag: str) -> str:
        return self.put(name, INDEX, {"manifests": list(manifests)}, tag)

    def put(self, name: str, kind: str, document: Json, tag: str | None) -> str:
        """Store a manifest or an index; return its digest."""
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

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer as a registry does; a login is asked for where one is set."""
        path, header = request.path, request.headers["Authorization"]
        if path.startswith("/token?"):
            has_login = self.login is not None and header == _basic(self.login)
            reply = web.text(json.dumps({"token": TOKEN}), 200 if has_login else 401)
        elif not self.is_known(header):
            bearer = f'Bearer realm="{self.realm}",service="images"'
            challenge = 'Basic realm="here"' if self.asks_basic else bearer
            reply = web.text("", 401, WWW_Authenticate=challenge)
        elif path in self.elsewhere:
            reply = web.moved(self.elsewhere[path], 307)
        else:
            kind, body = self.documents.get(path, ("", b""))
            reply = web.text(body, 200 if kind else 404, Content_Type=kind)
        reply(request)


def _basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


@contextlib.contextmanager
def serving() -> Iterator[Registry]:
    images = Registry()
    with web.serving_by(images.answer) as site:
        images.address, images.asked = f"127.0.0.1:{site.port}", site.asked
        images.realm = site.url("/token")
        yield images
