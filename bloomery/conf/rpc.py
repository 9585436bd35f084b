"""[json_rpc]: calls to conductors over HTTP, without a message broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

NONE: Final = "none"
OSLO: Final = "oslo"
JSON_RPC: Final = "json-rpc"
TRANSPORTS: Final = (NONE, OSLO, JSON_RPC)
LEAST_THREADS: Final = 16  # of an API that calls other processes; half of them may wait
PORT: Final = 8089  # a conductor on another port has it in its name


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpc:
    auth_strategy: str | None = option(
        None,
        "authentication of callers; unset: [DEFAULT]auth_strategy",
        choices=("noauth", "http_basic"),
    )
    host_ip: str = option(
        "127.0.0.1", "address that a conductor listens on; the default suits processes of one host"
    )
    port: int = option(
        PORT,
        "port that a conductor listens on; any other than 8089 becomes part of its name, host:port",
        least=1,
        most=65535,
    )
    insecure_listen: bool = option(False, "allow calls from other hosts with auth_strategy noauth")
    use_ssl: bool = option(False, "serve TLS on conductors, with cert_file and key_file")
    client_use_ssl: bool = option(False, "use TLS for calls")
    cert_file: str | None = option(
        None, "PEM file of a conductor's certificate; unset: that of [ssl]"
    )
    key_file: str | None = option(None, "PEM file of the certificate's key; unset: that of [ssl]")
    cafile: str | None = option(
        None, "file of CAs that sign conductors' certificates; unset: the system's CAs"
    )
    insecure: bool = option(False, "accept any certificate of a conductor")
    http_basic_auth_user_file: str = option(
        "/etc/ironic/htpasswd-json-rpc", "file of user:bcrypt lines for auth_strategy = http_basic"
    )
    username: str | None = option(None, "user name for calls")
    password: str | None = option(None, "password for calls", secret=True)
    max_body_size: int = option(128, "maximum size of a call, in MiB", least=1)
