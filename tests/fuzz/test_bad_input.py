"""No input is an error of ours: as in the invariants, with as much as fits."""

from __future__ import annotations

import pytest

from tests.kit.probes import (
    fuzz_crowd,
    fuzz_documented,
    fuzz_hostile,
    fuzz_life,
    fuzz_stacks,
    fuzz_templates,
    fuzz_wire,
    fuzzing,
)

LASTING_S = 1200

pytestmark = pytest.mark.timeout(900)


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


def test_whatever_clients_do_nodes_rest_and_keep_what_was_acknowledged(target, seed):
    fuzz_life.run(target, seed, lives=80, steps=50)


def test_crowd_after_the_same_few_names(target, seed):
    fuzz_crowd.run(target, seed, clients=12, requests=2_000)


def test_whatever_a_template_holds_only_named_errors_are_raised(seed):
    fuzz_templates.run_for(seed, fuzzing.seconds(LASTING_S / 4))


def test_whatever_a_template_holds_the_api_answers_as_it_documents(tmp_path, seed):
    fuzz_stacks.run(tmp_path, seed, examples=2_500)
