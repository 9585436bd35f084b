"""Run Heat's own functional tests beside a live Heat: what passes there shall pass here.

    python -m tests.conformance.heat_suite --heat build/heat/bin/python [WORD]

The tests come with the package openstack-heat, and log in at an identity service of ours.  Those
that want Nova, Neutron or Swift fail or are skipped in both.  Exits with 1 if a test passes in Heat
and not here, unless ``ALLOWED`` has it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.conformance import life_heat
from tests.conformance.clients.suites import HERE
from tests.kit.servers.identity import Identity, password
from tests.kit.servers.orchestration import Orchestration

PACKAGE: Final = "heat_integrationtests.functional"
PROJECT: Final = "conformance"
USERS: Final = {"ann": "member", "boss": "admin"}
CROWD: Final = 10  # classes at a time: most of their time they wait
LONGEST_S: Final = 1200  # of one class
_CLASS: Final = re.compile(r"^class (\w+)\(", re.MULTILINE)
HIDDEN_TAG: Final = "data-processing-cluster"
SETTINGS: Final = """
[heat_plugin]
auth_url = {url}
username = ann
password = {member}
project_name = {project}
admin_username = boss
admin_password = {admin}
admin_project_name = {project}
user_domain_id = default
project_domain_id = default
region = one
build_interval = 1
build_timeout = 120
hidden_stack_tag = {tag}
"""
SENTENCE: Final = "a sentence of a fault in a template"
NO_TYPE: Final = "a type of a service that is not there"
ALLOWED: Final[
    Mapping[str, str]
] = {  # end of a test's name -> why, see doc/reference/differences.md
    ".RoleBasedExposureTest.test_non_admin_forbidden_create_resources(r_cinder_vtype)": NO_TYPE,
    ".RoleBasedExposureTest.test_non_admin_forbidden_create_resources(r_nova_flavor)": NO_TYPE,
    ".RoleBasedExposureTest.test_non_admin_forbidden_create_resources(r_nova_host_aggregate)": (
        NO_TYPE
    ),
    ".ServiceBasedExposureTest.test_unavailable_resources_not_created": NO_TYPE,
    ".ValidateFacadeTest.test_missing_output": SENTENCE,
    ".ValidateFacadeTest.test_missing_param": SENTENCE,
    ".ResourceGroupTest.test_resource_group_zero_novalidate": SENTENCE,
}

Outcomes = dict[str, dict[str, str]]  # by test: outcome and reason


def run(python: str, url: str, word: str) -> Outcomes:
    """Run the suite against the orchestration API at ``url``, several classes at a time."""
    classes = [*_classes(python)]
    chosen = [name for name in classes if word in name or name in word] or classes
    with tempfile.TemporaryDirectory(prefix="suite-") as folder, _identity(url) as identity:
        settings = SETTINGS.format(
            url=identity.url, member=password("ann"), admin=password("boss"), project=PROJECT,
            tag=HIDDEN_TAG,
        )  # fmt: skip
        Path(folder, "tempest.conf").write_text(settings)
        with ThreadPoolExecutor(CROWD) as pool:
            lines = pool.map(lambda name: _run_class(python, folder, name, word), chosen)
            return {line["test"]: line for line in itertools.chain.from_iterable(lines)}


def _classes(python: str) -> Iterator[str]:
    """Yield each class of tests, as ``module.Class.``."""
    code = f"import {PACKAGE} as package; print(package.__path__[0])"
    folder = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    for path in sorted(folder.glob("test_*.py")):
        for match in _CLASS.finditer(path.read_text(encoding="utf-8")):
            yield f"{path.stem}.{match[1]}."


@contextlib.contextmanager
def _identity(url: str) -> Iterator[Identity]:
    with Identity() as identity:
        for user, role in USERS.items():
            identity.grant(user, PROJECT, role)
        identity.serve("orchestration", url)
        yield identity


def _run_class(python: str, folder: str, name: str, word: str) -> list[dict[str, str]]:
    """Return the outcomes of a class; those that it had, if its time is up."""
    command = [python, str(HERE / "child.py"), PACKAGE, f".{name}", word]
    env = {"PATH": os.environ["PATH"], "HOME": folder, "TEMPEST_CONFIG_DIR": folder}
    child = subprocess.Popen(
        command, env=env, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        text, _ = child.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        child.kill()
        text, _ = child.communicate()
    return [json.loads(line) for line in text.splitlines()]


@contextlib.contextmanager
def bloomery() -> Iterator[str]:
    """Yield the URL of an orchestration API of our own."""
    with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
        options = {"enable_stack_abandon": True, "enable_stack_adopt": True}
        with Orchestration(
            Path(folder, "state"), hidden_stack_tags=(HIDDEN_TAG,), **options
        ) as site:
            yield site.url


def passed(outcomes: Outcomes) -> set[str]:
    return {test for test, line in outcomes.items() if line["outcome"] == "ok"}


def excuse(test: str) -> str | None:
    """Return why a test may fail here; None: it may not."""
    return next((why for end, why in ALLOWED.items() if test.endswith(end)), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--heat", required=True, help="the interpreter of an openstack-heat")
    parser.add_argument("word", nargs="?", default="", help="tests whose names have it")
    asked = parser.parse_args()
    python = os.path.abspath(asked.heat)  # noqa: PTH100  resolved, it leaves its environment
    with life_heat.running(python) as url:
        theirs = run(python, url, asked.word)
    with bloomery() as url:
        ours = run(python, url, asked.word)
    worse = sorted(passed(theirs) - passed(ours))
    faults = [test for test in worse if excuse(test) is None]
    for test in worse:
        reason = ours.get(test, {}).get("reason") or "it did not run"
        why = excuse(test) or f"fails here, and not in Heat: {reason.splitlines()[-1]}"
        _say(f"{test}: {why}")
    for name, outcomes in (("Heat", theirs), ("here", ours)):
        _say(f"{name}: {dict(Counter(line['outcome'] for line in outcomes.values()))}")
    return 1 if faults else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
