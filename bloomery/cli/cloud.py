"""Find the APIs and the login in clouds.yaml and OS_* variables.

    cloud = find(None)                  # $OS_CLOUD, or the cloud that ``bloomery serve`` writes
    cloud.orchestration.get("/stacks")
    cloud.baremetal.get("/v1/nodes")

Searched in this order: $OS_CLIENT_CONFIG_FILE; ./clouds.yaml, ~/.config/openstack/clouds.yaml and
/etc/openstack/clouds.yaml where a cloud is named; the state dir of ``bloomery serve``.
"""

from __future__ import annotations

import base64
import importlib
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bloomery import errors, parsing
from bloomery.cli.client import Client

DEFAULT: Final = "bloomery"
_VARIABLES: Final = (
    "endpoint", "auth_url", "username", "password", "token", "project_name", "project_id",
    "user_domain_name", "user_domain_id", "project_domain_name", "project_domain_id",
)  # fmt: skip
_NO_LOGIN: Final = ("none", "admin_token", "noauth")

Json = dict[str, Any]


class CloudNotUsable(errors.Failure):
    """The configuration lacks the service's URL or the login."""

    code = "client.cloud"
    text = "cannot find the service: {reason}"
    exit_code = 2  # as for a wrong command line


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Clients of one cloud.  ``orchestration``: below the project.  ``extensions``: above it."""

    name: str
    orchestration: Client
    extensions: Client
    baremetal: Client | None

    @property
    def nodes(self) -> Client:
        """The client of nodes.  Raises CloudNotUsable."""
        if self.baremetal is None:
            raise CloudNotUsable(reason=f"cloud {self.name} has no baremetal endpoint")
        return self.baremetal


def find(name: str | None) -> Cloud:
    """Return the cloud of that name, or without one of $OS_CLOUD.  Raises CloudNotUsable."""
    settings = _settings(name or os.environ.get("OS_CLOUD"))
    label = name or os.environ.get("OS_CLOUD") or DEFAULT
    user = settings["auth"].get("username")
    login = _login(settings)
    tls = _tls(settings)
    url = settings.get("orchestration_endpoint_override") or login.endpoint("orchestration")
    if not url:
        raise CloudNotUsable(reason=f"cloud {label} has no orchestration endpoint")
    nodes_url = settings.get("baremetal_endpoint_override") or login.endpoint("baremetal")
    return Cloud(
        name=label,
        orchestration=Client(url, login.headers, tls, user),
        extensions=Client(url.rpartition("/v1/")[0] or url, login.headers, tls, user),
        baremetal=Client(nodes_url, login.headers, tls, user) if nodes_url else None,
    )


def find_nodes(name: str | None) -> Client:
    """Return the client of a cloud's bare-metal API; the cloud may have no other.

    Raises CloudNotUsable.
    """
    settings = _settings(name or os.environ.get("OS_CLOUD"))
    login = _login(settings)
    url = settings.get("baremetal_endpoint_override") or login.endpoint("baremetal")
    if not url:
        raise CloudNotUsable(reason=f"cloud {name or DEFAULT} has no baremetal endpoint")
    return Client(url, login.headers, _tls(settings), settings["auth"].get("username"))


# ------------------------------------------------------------------------------------- settings


def _settings(name: str | None) -> Json:
    """Merge the cloud's settings: clouds.yaml, the secure file, then OS_* variables."""
    file = os.environ.get("OS_CLIENT_CONFIG_FILE")
    places = [Path(file)] if file else []
    if not file and name is not None:
        places = [Path("clouds.yaml"), Path("~/.config/openstack/clouds.yaml").expanduser()]
        places.append(Path("/etc/openstack/clouds.yaml"))
    if not file:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        places.append(state / "bloomery" / "clouds.yaml")
    path = next((each for each in places if each.is_file()), None)
    if path is None and file:
        raise CloudNotUsable(
            reason=f"OS_CLIENT_CONFIG_FILE names {file}, which is not there; "
            "bloomery serve writes it at its start"
        )
    settings: Json = {}
    if path is not None:
        clouds = _clouds(path)
        if (name or DEFAULT) not in clouds:
            names = ", ".join(sorted(clouds)) or "none"
            raise CloudNotUsable(reason=f"{path} has no cloud {name or DEFAULT}; it has {names}")
        settings = dict(clouds[name or DEFAULT] or {})
    secure = os.environ.get("OS_CLIENT_SECURE_FILE")
    auth = dict(settings.get("auth") or {})
    if secure:
        auth |= (_clouds(Path(secure)).get(name or DEFAULT) or {}).get("auth") or {}
    variables = {key: os.environ.get(f"OS_{key.upper()}") for key in _VARIABLES}
    auth |= {key: value for key, value in variables.items() if value}
    kind = os.environ.get("OS_AUTH_TYPE") or settings.get("auth_type")
    if path is None and not auth:
        raise CloudNotUsable(
            reason=f"there is no clouds.yaml that names {name or DEFAULT}; point "
            "OS_CLIENT_CONFIG_FILE at the one in the state dir of bloomery serve"
        )
    return {**settings, "auth": auth, "auth_type": kind or "password"}


def _clouds(path: Path) -> Json:
    try:
        document = parsing.load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as exc:
        raise CloudNotUsable(reason=f"{path} cannot be read: {type(exc).__name__}") from exc
    clouds = document.get("clouds") if isinstance(document, dict) else None
    if not isinstance(clouds, dict):
        raise CloudNotUsable(reason=f"{path} has no map of clouds")
    return clouds


def _tls(settings: Json) -> ssl.SSLContext | None:
    authorities = os.environ.get("OS_CACERT") or settings.get("cacert")
    if settings.get("verify") is False:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=authorities) if authorities else None
    except OSError as exc:
        raise CloudNotUsable(reason=f"cannot read cacert {authorities}: {exc.strerror}") from exc


# ---------------------------------------------------------------------------------------- login


@dataclass(frozen=True, slots=True, kw_only=True)
class _Login:
    headers: Callable[[], Mapping[str, str]]
    endpoint: Callable[[str], str | None]


def _login(settings: Json) -> _Login:
    """Return the login headers.  Only Keystone needs keystoneauth, which is loaded on demand."""
    auth, kind = settings["auth"], settings["auth_type"]
    if kind in _NO_LOGIN:
        return _Login(headers=dict, endpoint=lambda service: auth.get("endpoint"))
    if kind == "http_basic":
        if not (auth.get("username") and auth.get("password")):
            raise CloudNotUsable(
                reason="a name and a password are needed: set OS_USERNAME and OS_PASSWORD"
            )
        pair = f"{auth['username']}:{auth['password']}".encode()
        header = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return _Login(headers=lambda: header, endpoint=lambda service: auth.get("endpoint"))
    exceptions = importlib.import_module("keystoneauth1.exceptions")
    loading = importlib.import_module("keystoneauth1.loading")
    sessions = importlib.import_module("keystoneauth1.session")
    verify = settings.get("verify") is not False and (
        os.environ.get("OS_CACERT") or settings.get("cacert") or True
    )
    try:
        loader = loading.get_plugin_loader(kind)
        plugin = loader.load_from_options(**auth)
    except exceptions.ClientException as exc:
        raise CloudNotUsable(reason=f"cannot log in: {exc}") from exc
    session = sessions.Session(auth=plugin, verify=verify)
    region = os.environ.get("OS_REGION_NAME") or settings.get("region_name")

    def headers() -> Mapping[str, str]:
        try:
            return dict(plugin.get_headers(session) or {})
        except exceptions.ClientException as exc:
            raise CloudNotUsable(reason=f"cannot log in: {exc}") from exc

    def endpoint(service: str) -> str | None:
        headers()
        url = plugin.get_endpoint(session, service_type=service, region_name=region)
        return None if url is None else str(url)

    return _Login(headers=headers, endpoint=endpoint)
