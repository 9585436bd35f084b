"""Run the published suites of clients against Bloomery, and tell what fails that works with Ironic.

    python -m tests.conformance.clients.suites --clients build/clients/bin/python
    python -m tests.conformance.clients.suites --clients ... --ironic build/ironic/bin

The suites are openstacksdk's functional tests for bare metal, and the API tests of Ironic's plugin
for Tempest.  With ``--ironic`` both are run against the published Ironic first, and what came of
them is recorded in ``ironic.json``; without, that record is compared with.  Exits with 1 if a test
fails here that does not fail there.  ``doc/reference/conformance.md`` is written from the outcomes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.conformance.clients import services
from tests.kit.servers.identity import SYSTEM, Identity, password

HERE: Final = Path(__file__).resolve().parent
RECORD: Final = HERE / "ironic.json"
PAGE: Final = HERE.parents[2] / "doc/reference" / "conformance.md"
SUITES: Final = {
    "openstacksdk": "openstack.tests.functional.baremetal",
    "ironic-tempest-plugin": "ironic_tempest_plugin.tests.api",
}
CLOUDS: Final = {  # as openstacksdk's tests name them, and who logs in there
    "devstack": ("ann", services.PROJECT),
    "devstack-alt": ("carl", "other"),
    "devstack-admin": ("boss", services.PROJECT),
    "devstack-system-admin": ("root", SYSTEM),
}
Outcomes = dict[str, dict[str, str]]  # by test: outcome and reason

TEMPEST: Final = """
[DEFAULT]
log_file = {folder}/tempest.log
[auth]
use_dynamic_credentials = false
test_accounts_file = {folder}/accounts.yaml
[identity]
auth_version = v3
uri_v3 = {identity}
region = one
v3_endpoint_type = public
[service_available]
ironic = true
cinder = false
glance = false
neutron = false
nova = false
swift = false
[enforce_scope]
ironic = true
[baremetal]
driver = fake-hardware
endpoint_type = public
max_microversion = {version}
enabled_drivers = fake-hardware
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
default_rescue_interface = fake
[oslo_concurrency]
lock_path = {folder}/locks
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """The interpreter that has the published packages, and where the suites log in."""

    python: str
    identity: Identity

    def run(self, package: str, word: str) -> Outcomes:
        """Run a suite; its tests are children of one process, one after the other."""
        python = os.path.abspath(self.python)  # noqa: PTH100  resolved, it leaves its environment
        with tempfile.TemporaryDirectory(prefix="suites-") as folder:
            self._write_settings(Path(folder))
            env = {
                "PATH": os.environ["PATH"], "HOME": folder, "TEMPEST_CONFIG_DIR": folder,
                "OS_CLIENT_CONFIG_FILE": f"{folder}/clouds.yaml", "OS_CLOUD": "devstack-admin",
                "OS_TEST_TIMEOUT": "300",
            }  # fmt: skip
            child = subprocess.Popen(
                [python, str(HERE / "child.py"), package, word],
                env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            return {line["test"]: line for line in _lines(child)}

    def _write_settings(self, folder: Path) -> None:
        clouds = {
            name: {"auth": _login(self.identity, *account), "region_name": "one"}
            for name, account in CLOUDS.items()
        }
        (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
        accounts = [_account(*account) for account in services.ACCOUNTS]
        (folder / "accounts.yaml").write_text(yaml.safe_dump(accounts))
        settings = TEMPEST.format(folder=folder, identity=self.identity.url, version="1.115")
        (folder / "tempest.conf").write_text(settings)
        (folder / "locks").mkdir()


def _login(identity: Identity, user: str, project: str) -> dict[str, str]:
    login = {"auth_url": identity.url, "username": user, "password": password(user),
             "user_domain_id": "default"}  # fmt: skip
    if project == SYSTEM:
        return login | {"system_scope": "all"}
    return login | {"project_name": project, "project_domain_id": "default"}


def _account(user: str, project: str, role: str) -> dict[str, Any]:
    scope = {"system": "all"} if project == SYSTEM else {"project_name": project}
    domain = {"user_domain_name": "Default"}
    if project != SYSTEM:
        domain["project_domain_name"] = "Default"
    return {"username": user, "password": password(user), "roles": [role], **domain, **scope}


def _lines(child: subprocess.Popen[str]) -> Iterator[dict[str, str]]:
    assert child.stdout
    for text in child.stdout:
        line = json.loads(text)
        if sys.stdout.isatty() or line["outcome"] == "failed":
            _say(f"{line['outcome']:8} {line['test']} {_last(line['reason'])}")
        yield line
    if child.wait():
        raise RuntimeError(f"the suite ended with {child.returncode}")


def _last(reason: str) -> str:
    """Return the last line of a trace, which says what happened."""
    return (reason.strip().splitlines() or [""])[-1]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------------- what came of it


def worse(ours: Outcomes, theirs: Mapping[str, str]) -> list[str]:
    """Return the tests that work with Ironic, and here do not, or did not run at all."""
    works = {test for test, line in ours.items() if line["outcome"] == "ok"}
    return sorted(test for test, outcome in theirs.items() if outcome == "ok" and test not in works)


def _page(all_outcomes: Mapping[str, Outcomes], record: Mapping[str, Mapping[str, str]]) -> str:
    """Write what an operator wants to know: what was run, and what did not work."""
    rows = []
    for name, outcomes in all_outcomes.items():
        ours = Counter(line["outcome"] for line in outcomes.values())
        theirs = Counter(record.get(name, {}).values())
        cells = (f"{ours[kind]} ({theirs[kind]})" for kind in ("ok", "failed", "skipped"))
        rows.append(f"| {name} | {' | '.join(cells)} |")
    failing = [
        f"- `{test}`: {_last(line['reason'])}"
        for outcomes in all_outcomes.values()
        for test, line in sorted(outcomes.items())
        if line["outcome"] == "failed"
    ]
    table = "\n".join(rows)
    listed = "\n".join(failing) or "None."
    return (HERE / "page.md").read_text().format(table=table, failing=listed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", required=True, help="the interpreter with the suites")
    parser.add_argument("--ironic", type=Path, help="run the published Ironic's commands here, too")
    parser.add_argument("--suite", choices=SUITES, action="append", help="one of them alone")
    parser.add_argument("word", nargs="?", default="", help="tests whose names have it")
    asked = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    failed: list[str] = []
    outcomes: dict[str, Outcomes] = {}
    for name in asked.suite or SUITES:
        if asked.ironic:
            theirs = _run(asked.clients, name, asked.word, asked.ironic)
            record.setdefault(name, {}).update(
                {test: line["outcome"] for test, line in theirs.items()}
            )
        outcomes[name] = _run(asked.clients, name, asked.word, None)
        chosen = {t: o for t, o in record.get(name, {}).items() if asked.word in t}
        failed += worse(outcomes[name], chosen)
        counts = Counter(line["outcome"] for line in outcomes[name].values())
        _say(f"{name}: {dict(counts)}")
    if asked.ironic:
        RECORD.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
    if not asked.word and not asked.suite:
        PAGE.write_text(_page(outcomes, record))
    for test in failed:
        _say(f"fails here, and not with Ironic: {test}")
    return 1 if failed else 0


def _run(python: str, name: str, word: str, ironic: Path | None) -> Outcomes:
    with services.identity() as identity:
        service = services.ironic(identity, ironic) if ironic else services.bloomery(identity)
        with service as url:
            identity.serve("baremetal", url)
            return Clients(python=python, identity=identity).run(SUITES[name], word)


if __name__ == "__main__":
    sys.exit(main())
