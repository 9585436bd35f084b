"""[cors], [healthcheck], [monitoring], [oslo_middleware] and [ssl]: between services and clients.

Names and defaults are those of oslo.middleware and oslo.service; Ironic's where it has others.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    allowed_origin: tuple[str, ...] = option(
        (),
        "origins whose pages may use the APIs, as https://dashboard.example.com; *: any; "
        "empty: none may",
    )
    allow_credentials: bool = option(True, "let pages send logins")
    expose_headers: tuple[str, ...] = option(
        (
            "X-OpenStack-Ironic-API-Version",
            "X-OpenStack-Ironic-API-Minimum-Version",
            "X-OpenStack-Ironic-API-Maximum-Version",
            "Location",
            "X-OpenStack-Request-Id",
            "OpenStack-Request-Id",
        ),
        "headers of answers that pages may read; Ironic has the first three",
    )
    max_age: int = option(3600, "seconds for which a browser may remember a preflight", least=0)
    allow_methods: tuple[str, ...] = option(
        ("GET", "PUT", "POST", "DELETE", "PATCH"),
        "methods that pages may use",
    )
    allow_headers: tuple[str, ...] = option(
        (), "headers that pages may send beside those that clients of the APIs always send"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthcheck:
    enabled: bool = option(False, "answer whoever asks whether the API lives, without a login")
    path: str = option("/healthcheck", "where it does")
    detailed: bool = option(False, "tell more, also of the process: not for strangers")
    backends: tuple[str, ...] = option((), "checks of oslo.middleware by name")
    allowed_source_ranges: tuple[str, ...] = option(
        (), "networks (CIDR) that get an answer; empty: all"
    )
    ignore_proxied_requests: bool = option(False, "leave requests through a proxy unanswered")
    disable_by_file_path: str | None = option(None, "file of the check disable_by_file")
    disable_by_file_paths: tuple[str, ...] = option(
        (), "port:file pairs of the check disable_by_files_ports"
    )
    enable_by_file_paths: tuple[str, ...] = option((), "files of the check enable_by_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    host_ip: str = option(
        "127.0.0.1",
        "address at which conductors and engines that run alone answer /metrics, /healthz and "
        "/readyz, without a login",
    )
    conductor_port: int = option(
        0, "port where `bloomery conductor` does; 0: it does not", least=0, most=65535
    )
    engine_port: int = option(
        0, "port where `bloomery engine` does; 0: it does not", least=0, most=65535
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloMiddleware:
    enable_proxy_headers_parsing: bool = option(
        False,
        "believe the headers Forwarded and X-Forwarded-*: only where a proxy sets them",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssl:
    cert_file: str | None = option(None, "certificate chain, PEM, if [api]cert_file is unset")
    key_file: str | None = option(None, "its key, PEM, if [api]key_file is unset")
    ca_file: str | None = option(
        None, "authorities, PEM, of which every client must show a certificate; unset: none need"
    )
    ciphers: str | None = option(None, "ciphers of TLS 1.2 as OpenSSL lists them; unset: its own")
