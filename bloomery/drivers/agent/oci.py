"""Images in container registries: which blob of an artefact a node gets, and by which login.

    blob = oci.Registries(conf, client).find("oci://registry.test/images/os:12", wish)
    kind = oci.Registries(conf, client).look("oci://registry.test/images/os:12", wish)

A tag may name an index of artefacts; the node's architecture and the type of the disk choose one.
An artefact has one layer, the image of a disk.  A container has archives of files as layers.

Source: OCI distribution-spec 1.1, image-spec 1.1; the choice by ``disktype`` is Ironic's.

The library ``oras`` has no time-outs, sleeps between its tries and reads the login of the service's
own user, so the few requests are made here.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import urllib3

from bloomery import errors, parsing
from bloomery.conf.agent import Oci
from bloomery.drivers.agent_boot import http_client
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.model import architectures

Json = dict[str, Any]

SCHEME: Final = "oci://"
PULL_SECRET: Final = "image_pull_secret"  # noqa: S105  a name
_REFERENCE: Final = re.compile(
    r"oci://(?P<registry>[^/@\s]+)/(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127})?)?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
DISK, CONTAINER = "disk", "container"  # kinds of images
_CONFIGS: Final = (  # of containers
    "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json",
)  # fmt: skip
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_HOSTS: Final = {"docker.io": "registry-1.docker.io"}
_ACCEPT: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
_MOST_BYTES: Final = 4 << 20  # of a manifest
_PARAMETER: Final = re.compile(r'(\w+)="([^"]*)"')
_TYPES: Final = {"qcow2": "qcow2", "qemu": "qcow2", "raw": "raw", "applehv": "raw"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    registry: str
    repository: str
    name: str  # a tag, or a digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An image in a registry, and the headers of its download."""

    url: str
    headers: Mapping[str, str]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A node's choice among images; ``secret``: its own login, as in a Docker config.json."""

    arch: str | None
    disk_format: str | None
    secret: str | None


def parse(url: str) -> Reference:
    """Return the parts of an address.  Raises InvalidParameterValue."""
    match = _REFERENCE.fullmatch(url)
    if match is None:
        raise errors.InvalidParameterValue(
            reason="instance_info/image_source of a registry is oci://HOST/REPOSITORY:TAG or "
            "oci://HOST/REPOSITORY@sha256:DIGEST, and has no login: that is "
            f"instance_info/{PULL_SECRET}",
        )
    return Reference(
        registry=match["registry"], repository=match["repository"],
        name=match["digest"] or match["tag"] or "latest",
    )  # fmt: skip


def login_of(conf: Oci, registry: str, secret: str | None) -> str | None:
    """Return the login at a registry in base64: the node's own, else the configured one.

    Raises InvalidParameterValue for an unusable [oci]authentication_config.
    """
    if secret:
        if not (secret.isascii() and secret.isprintable()):
            raise errors.InvalidParameterValue(
                reason=f"{PULL_SECRET} takes printable ASCII: auth of Docker's config.json, or "
                "user:password",
            )
        return base64.b64encode(secret.encode()).decode() if ":" in secret else secret
    if conf.authentication_config is None:
        return None
    try:
        auths = orjson.loads(Path(conf.authentication_config).read_bytes())["auths"]
        entry = auths.get(registry) or {}
        login = entry.get("auth")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise errors.InvalidParameterValue(
            reason=f"[oci]authentication_config {conf.authentication_config} is no config.json of "
            f"Docker: {type(exc).__name__}",
        ) from exc
    return login if isinstance(login, str) else None


class Registries:
    def __init__(self, conf: Oci, client: HttpClient) -> None:
        self._conf, self._client = conf, client

    def find(self, url: str, wish: Wish) -> Blob:
        """Return the blob of the image for a node.  Raises StepFailure."""
        reference = parse(url)
        session = _Session(reference, self._client, self._conf, wish.secret)
        manifest, _ = session.choose(wish)
        digest = _digest_of(_only_layer(reference, manifest))
        return Blob(
            url=session.url(f"blobs/{digest}"), headers=session.headers,
            sha256=digest.partition(":")[2],
        )  # fmt: skip

    def look(self, url: str, wish: Wish) -> str:
        """Return the kind of an image, DISK or CONTAINER, that the node can use.

        Raises StepFailure for one of another architecture, and for a disk of several layers.
        """
        reference = parse(url)
        session = _Session(reference, self._client, self._conf, wish.secret)
        manifest, arch = session.choose(wish, any_arch=True)
        if not _is_container(manifest):
            manifest, _ = session.choose(wish)
            _only_layer(reference, manifest)
            return DISK
        if arch is None and wish.arch:
            arch = architectures.canonical(session.config(manifest).get("architecture"))
        if arch and wish.arch and arch != wish.arch:
            raise _refused(reference, f"it is for {arch}, and properties/cpu_arch is {wish.arch}")
        return CONTAINER


class _Session:
    """Requests to one repository, by one login."""

    def __init__(
        self, reference: Reference, client: HttpClient, conf: Oci, secret: str | None
    ) -> None:
        self._reference, self._client = reference, client
        self._login = login_of(conf, reference.registry, secret)
        self._host = _HOSTS.get(reference.registry, reference.registry)
        self._scheme = "https"
        self.headers: Mapping[str, str] = {}
        if may_use_http(self._host, conf):
            try:
                with self._client.get(f"https://{self._host}/v2/", {}):
                    """The registry speaks TLS."""
            except urllib3.exceptions.HTTPError as exc:
                if "CERTIFICATE_VERIFY_FAILED" in str(exc):
                    raise errors.StepFailure(
                        reason=f"cannot fetch https://{self._host}/v2/: {http_client.why(exc)}"
                    ) from exc
                self._scheme = "http"

    def url(self, path: str) -> str:
        return f"{self._scheme}://{self._host}/v2/{self._reference.repository}/{path}"

    def manifest(self, name: str) -> Json:
        """Return a manifest or an index; one that a digest names is checked."""
        status, headers, body = self._read(name)
        if status == 401:
            self.headers = self._authorized(headers.get("www-authenticate", ""))
            status, headers, body = self._read(name)
        if status in (401, 403):
            raise _refused(
                self._reference,
                f"the registry answers HTTP {status}: set instance_info/{PULL_SECRET}, or "
                "[oci]authentication_config, to a login that may pull it",
            )
        if status != 200:
            raise _refused(self._reference, f"the registry answers HTTP {status} for {name}")
        if name.startswith("sha256:") and hashlib.sha256(body).hexdigest() != name[7:]:
            raise _refused(self._reference, f"the manifest {name} has another checksum")
        return self._document(body)

    def choose(self, wish: Wish, *, any_arch: bool = False) -> tuple[Json, str | None]:
        """Return the manifest for a node, and the architecture that its index says."""
        manifest = self.manifest(self._reference.name)
        if "manifests" not in manifest:
            return manifest, None
        artefacts = [each for each in manifest["manifests"] if isinstance(each, dict)]
        chosen = _choose(artefacts, wish, any_arch=any_arch)
        return self.manifest(_digest_of(chosen)), _arch(chosen)

    def config(self, manifest: Json) -> Json:
        """Return the configuration of a container, as its builder wrote it."""
        digest = _digest_of(manifest["config"])
        url = self.url(f"blobs/{digest}")
        status, _headers, body = self._client.read(url, self.headers, _MOST_BYTES)
        if status != 200 or hashlib.sha256(body).hexdigest() != digest[7:]:
            raise _refused(self._reference, f"the registry has no configuration of it ({status})")
        return self._document(body)

    def _read(self, name: str) -> tuple[int, Mapping[str, str], bytes]:
        accepted = {"Accept": _ACCEPT, **self.headers}
        return self._client.read(self.url(f"manifests/{name}"), accepted, _MOST_BYTES)

    def _document(self, body: bytes) -> Json:
        try:
            document = parsing.load_json(body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise _refused(self._reference, "the registry's answer is no JSON object")
        return document

    def _authorized(self, challenge: str) -> Mapping[str, str]:
        """Return the headers that the registry's challenge asks for."""
        kind = challenge.partition(" ")[0].lower()
        basic = {"Authorization": f"Basic {self._login}"} if self._login else {}
        if kind != "bearer":
            return basic
        parameters = dict(_PARAMETER.findall(challenge))
        realm = parameters.get("realm", "")
        if urllib.parse.urlsplit(realm).scheme not in ("https", self._scheme):
            raise _refused(self._reference, "the registry names no https address for its login")
        query = {"scope": f"repository:{self._reference.repository}:pull"}
        if "service" in parameters:
            query["service"] = parameters["service"]
        joint = "&" if "?" in realm else "?"
        address = f"{realm}{joint}{urllib.parse.urlencode(query)}"
        status, _headers, body = self._client.read(address, basic, _MOST_BYTES)
        answer = self._document(body) if status == 200 else {}
        token = answer.get("token") or answer.get("access_token")
        return {"Authorization": f"Bearer {token}"} if token else {}


def may_use_http(host: str, conf: Oci) -> bool:
    """Return whether a registry that does not speak TLS may be asked."""
    if conf.permit_fallback_to_http_transport:
        return True
    name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_container(manifest: Json) -> bool:
    layers = [each for each in manifest.get("layers") or () if isinstance(each, dict)]
    has_files = any("tar" in str(layer.get("mediaType")) for layer in layers)
    config = manifest.get("config")
    kind = config.get("mediaType") if isinstance(config, dict) else None
    return kind in _CONFIGS and has_files


def _only_layer(reference: Reference, manifest: Json) -> Any:
    """Return the layer of an artefact.  Raises StepFailure."""
    layers = manifest.get("layers") or []
    if _is_container(manifest) and len(layers) != 1:
        raise _refused(reference, "it is a container, which deploy interface bootc installs")
    if len(layers) != 1:
        raise _refused(
            reference,
            f"it has {len(layers)} layers: an image of a disk is one layer, as oras push makes it",
        )
    return layers[0]


def _choose(manifests: Sequence[Json], wish: Wish, *, any_arch: bool) -> Json:
    """Return the artefact of an index for the node's architecture and type of disk.

    ``any_arch``: the first one will do where the node's architecture is unknown.
    """
    fitting = [
        each for each in manifests
        if (_arch(each) in (wish.arch, None) if wish.arch else _arch(each) != "unknown")
    ]  # fmt: skip
    types = (wish.disk_format,) if wish.disk_format in _TYPES else ("qcow2", "raw")
    for name in (*types, None):
        artefacts = [each for each in fitting if _type(each) == name]
        if len(artefacts) == 1 or (artefacts and any_arch and not wish.arch):
            return artefacts[0]
        if artefacts:
            break
    there = ", ".join(f"{_arch(each)} {_type(each)}" for each in manifests)
    raise errors.StepFailure(
        reason=f"cannot choose an image of the index for properties/cpu_arch {wish.arch} and "
        f"image_disk_format {wish.disk_format}: it has {there}; name one as @sha256:DIGEST",
    )


def _arch(descriptor: Json) -> str | None:
    return architectures.canonical(_text(descriptor, "platform", "architecture"))


def _type(descriptor: Json) -> str | None:
    return _TYPES.get(_text(descriptor, "annotations", "disktype"))


def _text(descriptor: Json, part: str, name: str) -> str:
    members = descriptor.get(part)
    return str(members.get(name) or "") if isinstance(members, dict) else ""


def _digest_of(descriptor: Any) -> str:
    """Return the digest of a descriptor.  Raises StepFailure for another one than SHA-256."""
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        raise errors.StepFailure(reason="the registry names an image without a digest of sha256")
    return digest


def _refused(reference: Reference, why: str) -> errors.StepFailure:
    address = f"{reference.registry}/{reference.repository}"
    return errors.StepFailure(reason=f"cannot fetch the image of {address}: {why}")
