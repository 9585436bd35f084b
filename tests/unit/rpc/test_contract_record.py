"""What conductors of a version answer stays: peers of another release call it, and by these names.

``methods.txt`` has a line for each method, and one for each parameter that came later, after the
version that brought it.  What is new comes with a higher ``contract.VERSION``; a line of a version
that is there already is never changed: ``FINGERPRINTS`` says so of all of them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bloomery.rpc import contract
from bloomery.rpc.methods import Method, parsed, understands

RECORD = Path(__file__).with_name("methods.txt").read_text().splitlines()
FINGERPRINTS = {
    "1.0": "95a4a48dc705",
    "1.1": "f014a01eb7ca",
    "1.2": "20c5cca79f2d",
    "1.3": "fb78632f1931",
    "1.4": "b28b25273609",
    "1.5": "461e16430cdc",
}


def lines_of(method: Method) -> Iterator[str]:
    signature = inspect.signature(getattr(contract.Conductor, method.name))
    plain = {name: str(each).replace("'", "") for name, each in signature.parameters.items()}
    first = [plain[name] for name in method.parameters if name not in method.field_since]
    yield f"{method.since} {method.name}({', '.join(first)}) -> {signature.return_annotation}"
    for name, version in method.field_since.items():
        yield f"{version} {method.name}: {plain[name]}"


def test_every_method_is_as_it_was_recorded():
    lines = [line for method in contract.METHODS.values() for line in lines_of(method)]
    assert sorted(lines) == sorted(RECORD)


def test_what_a_version_has_brought_is_never_changed():
    by_version = defaultdict(list)
    for line in sorted(RECORD):
        by_version[line.partition(" ")[0]].append(line)
    prints = {
        version: hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
        for version, lines in by_version.items()
    }
    assert prints == FINGERPRINTS


def test_the_version_is_that_of_the_newest_method():
    assert max(FINGERPRINTS, key=parsed) == contract.VERSION


def test_every_release_is_understood():
    assert all(understands(contract.VERSION, known) for known in contract.RELEASES.values())


def test_what_came_after_its_method_may_be_left_out():
    for method in contract.METHODS.values():
        assert not method.required & method.field_since.keys(), method.name
