"""[api] and [oslo_policy]: the REST API as its callers see it, and who may ask what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

POLICY_FILE: Final = "policy.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    host_ip: str = option("127.0.0.1", "address to listen on; others than loopback want a login")
    port: int = option(6385, "TCP port; 0: any free one", least=0, most=65535)
    threads: int = option(
        4,
        "requests handled at a time, half of which may wait for busy nodes; "
        "more cost, measured, not help",
        least=2,
    )
    max_limit: int = option(1000, "most items on one page of a list", least=1)
    public_endpoint: str | None = option(None, "URL of this API in links; unset: as asked")
    max_json_body_depth: int = option(25, "deepest nesting of a JSON body", least=1)
    max_json_body_size: int = option(1024, "largest body, KiB", least=1)
    max_json_body_size_provision: int = option(65536, "largest body of states/provision, KiB")
    enable_ssl_api: bool = option(False, "speak TLS, on the port of stacks as well")
    cert_file: str | None = option(None, "certificate chain of this service, PEM")
    key_file: str | None = option(None, "its key, PEM, without a password")
    tls_minimum_version: str = option(
        "1.3", "oldest version of TLS that clients may speak", choices=("1.2", "1.3")
    )
    max_json_body_size_inspection: int = option(
        16384, "largest body of continue_inspection, KiB", least=1
    )
    enable_ramdisk_endpoints: bool = option(
        True, "answer agents: lookup, heartbeat, continue_inspection, which ask for no login"
    )
    agent_networks: tuple[str, ...] = option(
        (),
        "networks (CIDR) that agents call from and are called in, and that scripts of iPXE are "
        "handed out to; empty: all",
    )
    restrict_lookup: bool = option(
        True, "lookup answers only for nodes in a state in which an agent may run"
    )
    ramdisk_heartbeat_timeout: int = option(
        300, "seconds within which an agent is told to call again", least=1
    )
    disallow_deploy_steps: tuple[str, ...] = option(("vendor.send_raw",), "interface.step list")
    disallow_service_steps: tuple[str, ...] = option(("vendor.send_raw",), "interface.step list")
    disallow_clean_steps: tuple[str, ...] = option(("vendor.send_raw",), "interface.step list")
    disallowed_enrollment_boot_modes: tuple[str, ...] = option((), "boot modes refused on create")
    insecure_listen: bool = option(
        False,
        "listen beyond loopback although auth_strategy is noauth: everybody is then an operator",
    )
    project_admin_can_manage_own_nodes: bool = option(
        True,
        "let an admin of a project enrol nodes of that project, and delete them",
    )

    @property
    def public_root(self) -> str | None:
        """The URL above /v1 that machines and BMCs are told; None: nobody said it."""
        url = self.public_endpoint
        return None if url is None else url.rstrip("/").removesuffix("/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OsloPolicy:
    policy_file: str = option(
        POLICY_FILE,
        "YAML file of rules that differ from the defaults; looked for beside the configuration "
        "file, then in the state dir",
    )
    policy_dirs: tuple[str, ...] = option(
        ("policy.d",),
        "folders of more such files, read after it in the order of their names",
    )
