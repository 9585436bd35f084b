"""[api] and [oslo_policy]: the REST API and its policy files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

POLICY_FILE: Final = "policy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    host_ip: str = option(
        "127.0.0.1",
        "address to listen on; addresses beyond loopback need auth_strategy or insecure_listen",
    )
    port: int = option(6385, "TCP port; 0: any free one", least=0, most=65535)
    threads: int = option(
        4,
        "requests handled at the same time, half of which may wait for busy nodes; more threads "
        "made the API slower in measurements",
        least=2,
    )
    max_limit: int = option(1000, "maximum number of items on one page of a list", least=1)
    public_endpoint: str | None = option(None, "URL of this API in links; unset: as in the request")
    max_json_body_depth: int = option(25, "maximum nesting of a JSON body", least=1)
    max_json_body_size: int = option(1024, "maximum size of a body, in KiB", least=1)
    max_json_body_size_provision: int = option(
        65536,
        "maximum size of a body of states/provision, in KiB; config drives need more than other "
        "bodies",
    )
    enable_ssl_api: bool = option(False, "serve TLS, on the port of the orchestration API as well")
    cert_file: str | None = option(None, "PEM file of the certificate chain; unset: that of [ssl]")
    key_file: str | None = option(
        None, "PEM file of the certificate's key, without a password; unset: that of [ssl]"
    )
    tls_minimum_version: str = option(
        "1.3", "oldest TLS version for clients", choices=("1.2", "1.3")
    )
    max_json_body_size_inspection: int = option(
        16384,
        "maximum size of a body that has an inventory, in KiB: continue_inspection and past",
        least=1,
    )
    enable_ramdisk_endpoints: bool = option(
        True,
        "serve agents without a login: lookup, heartbeat, continue_inspection; set it to false "
        "where no agents run",
    )
    agent_networks: tuple[str, ...] = option(
        (), "networks (CIDR) of agents and of machines that fetch boot files; empty: all"
    )
    restrict_lookup: bool = option(
        True, "answer lookups only for nodes in states in which an agent may run"
    )
    ramdisk_heartbeat_timeout: int = option(
        300, "seconds within which agents are told to send their next heartbeat", least=1
    )
    disallow_deploy_steps: tuple[str, ...] = option(
        ("vendor.send_raw",), "deploy steps that users must not request, each interface.step"
    )
    disallow_service_steps: tuple[str, ...] = option(
        ("vendor.send_raw",), "service steps that users must not request, each interface.step"
    )
    disallow_clean_steps: tuple[str, ...] = option(
        ("vendor.send_raw",), "clean steps that users must not request, each interface.step"
    )
    disallowed_enrollment_boot_modes: tuple[str, ...] = option(
        (), "boot modes that are refused when a node is created"
    )
    insecure_listen: bool = option(
        False,
        "listen beyond loopback with auth_strategy noauth, which makes every client an operator",
    )
    project_admin_can_manage_own_nodes: bool = option(
        True, "let a project's admin enroll and delete nodes of that project"
    )

    @property
    def public_root(self) -> str | None:
        """The URL above /v1 for machines and BMCs; None where it is not configured."""
        url = self.public_endpoint
        return None if url is None else url.rstrip("/").removesuffix("/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloPolicy:
    policy_file: str = option(
        POLICY_FILE,
        "YAML file of rules that override the defaults; searched beside the configuration file, "
        "then in the state dir",
    )
    policy_dirs: tuple[str, ...] = option(
        ("policy.d",),
        "folders of further policy files, read after policy_file in alphabetical order",
    )
