"""[json_rpc]: calls to conductors over HTTP, for sites without a message broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

NONE: Final = "none"
OSLO: Final = "oslo"
JSON_RPC: Final = "json-rpc"
TRANSPORTS: Final = (NONE, OSLO, JSON_RPC)
LEAST_THREADS: Final = 16  # of an API that calls other processes: half of them may wait
PORT: Final = 8089  # a conductor that listens elsewhere has the port in its name


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpc:
    auth_strategy: str | None = option(
        None,
        "how callers prove who they are; unset: auth_strategy of [DEFAULT]",
        choices=("noauth", "http_basic"),
    )
    host_ip: str = option(
        "127.0.0.1",
        "address that a conductor listens on; the default is for processes of one machine",
    )
    port: int = option(
        PORT,
        "port that a conductor listens on; any other than 8089 becomes part of its name, host:port",
        least=1,
        most=65535,
    )
    insecure_listen: bool = option(
        False, "let everybody who reaches host_ip call this conductor, with auth_strategy noauth"
    )
    use_ssl: bool = option(False, "conductors speak TLS, with cert_file and key_file")
    client_use_ssl: bool = option(False, "callers speak TLS")
    cert_file: str | None = option(None, "certificate of a conductor; unset: that of [ssl]")
    key_file: str | None = option(None, "its key; unset: that of [ssl]")
    cafile: str | None = option(
        None, "who signs certificates of conductors; unset: whom this machine trusts"
    )
    insecure: bool = option(False, "callers believe any certificate")
    http_basic_auth_user_file: str = option(
        "/etc/ironic/htpasswd-json-rpc", "file of user:bcrypt lines for auth_strategy = http_basic"
    )
    username: str | None = option(None, "name that callers log in with")
    password: str | None = option(None, "password that callers log in with", secret=True)
    max_body_size: int = option(128, "largest call, MiB", least=1)
