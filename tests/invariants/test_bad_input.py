"""No input is an error of ours: a short look at what ``make fuzz`` does for longer."""

from __future__ import annotations

from tests.kit import fuzz_documented, fuzz_hostile, fuzz_wire


def test_requests_made_from_the_document(target, seed):
    fuzz_documented.run(target, seed, examples=4)


def test_wrong_values_at_every_place(target, lots):
    fuzz_hostile.misplace(target, lots, most=4)


def test_requests_that_nobody_should_send(target, seed):
    fuzz_hostile.throw(target, seed, examples=1200)


def test_bytes_that_are_hardly_http(target, seed):
    with fuzz_wire.served(target) as address:
        fuzz_wire.send_all(address, target.told)
        fuzz_wire.throw(address, seed, 600, target.told)
        fuzz_wire.dawdle(address, target.told)
        fuzz_wire.break_off(address, seed, 100)
