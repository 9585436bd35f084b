"""No input is an error of ours: as in the invariants, with as many requests as fit."""

from __future__ import annotations

import pytest

from tests.kit.probes import fuzz_documented, fuzz_hostile, fuzz_wire, fuzzing

LASTING_S = 1200

pytestmark = pytest.mark.timeout(600)


@pytest.mark.timeout(2 * LASTING_S)
def test_requests_made_from_the_document(target, seed):
    fuzz_documented.run_for(target, seed, fuzzing.seconds(LASTING_S))


def test_wrong_values_at_every_place(target, lots):
    fuzz_hostile.misplace(target, lots, most=len(fuzz_hostile.VALUES))


def test_requests_that_nobody_should_send(target, seed):
    fuzz_hostile.throw(target, seed, examples=15_000)


def test_bytes_that_are_hardly_http(target, seed):
    with fuzz_wire.served(target) as address:
        fuzz_wire.send_all(address, target.told)
        fuzz_wire.throw(address, seed, 8_000, target.told)
        fuzz_wire.dawdle(address, target.told)
        fuzz_wire.break_off(address, seed, 3_000)
