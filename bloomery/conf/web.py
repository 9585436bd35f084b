"""[cors], [healthcheck], [monitoring], [oslo_middleware] and [ssl].

Names and defaults are those of oslo.middleware and oslo.service, or Ironic's where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    allowed_origin: tuple[str, ...] = option(
        (),
        "origins whose pages may use the APIs, such as https://dashboard.example.com; *: any; "
        "empty: none",
    )
    allow_credentials: bool = option(True, "allow pages to send credentials")
    expose_headers: tuple[str, ...] = option(
        (
            "X-OpenStack-Ironic-API-Version",
            "X-OpenStack-Ironic-API-Minimum-Version",
            "X-OpenStack-Ironic-API-Maximum-Version",
            "Location",
            "X-OpenStack-Request-Id",
            "OpenStack-Request-Id",
        ),
        "response headers that pages may read",
    )
    max_age: int = option(3600, "seconds for which a browser may cache a preflight answer", least=0)
    allow_methods: tuple[str, ...] = option(
        ("GET", "PUT", "POST", "DELETE", "PATCH"), "HTTP methods that pages may use"
    )
    allow_headers: tuple[str, ...] = option(
        (), "request headers that pages may send, besides those of the APIs' clients"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Healthcheck:
    enabled: bool = option(False, "answer health checks of the API without a login")
    path: str = option("/healthcheck", "path of the health check")
    detailed: bool = option(
        False, "include details of the process; do not enable it for untrusted clients"
    )
    backends: tuple[str, ...] = option((), "names of oslo.middleware's checks")
    allowed_source_ranges: tuple[str, ...] = option(
        (), "networks (CIDR) that may call the health check; empty: all"
    )
    ignore_proxied_requests: bool = option(False, "ignore requests that came through a proxy")
    disable_by_file_path: str | None = option(None, "file of the check disable_by_file")
    disable_by_file_paths: tuple[str, ...] = option(
        (), "port:file pairs of the check disable_by_files_ports"
    )
    enable_by_file_paths: tuple[str, ...] = option((), "files of the check enable_by_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    host_ip: str = option(
        "127.0.0.1",
        "address for /metrics, /healthz and /readyz of conductors and engines in processes of "
        "their own, without a login",
    )
    conductor_port: int = option(
        0, "port of these pages in `bloomery conductor`; 0: none", least=0, most=65535
    )
    engine_port: int = option(
        0, "port of these pages in `bloomery engine`; 0: none", least=0, most=65535
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloMiddleware:
    enable_proxy_headers_parsing: bool = option(
        False,
        "trust the headers Forwarded and X-Forwarded-*; enable it only behind a proxy that sets "
        "them",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssl:
    cert_file: str | None = option(
        None, "PEM file of the certificate chain, where [api]cert_file is unset"
    )
    key_file: str | None = option(
        None, "PEM file of the certificate's key, where [api]key_file is unset"
    )
    ca_file: str | None = option(
        None, "PEM file of CAs of client certificates; if set, every client needs a certificate"
    )
    ciphers: str | None = option(None, "OpenSSL cipher list for TLS 1.2; unset: OpenSSL's default")
