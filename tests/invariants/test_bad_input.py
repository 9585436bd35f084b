"""No input is an error of ours: a short look at what ``make fuzz`` does for longer."""

from __future__ import annotations

import bcrypt
import pytest

from bloomery.api import app
from bloomery.http_server import login
from tests.kit.probes import (
    documented_stories,
    fuzz_crowd,
    fuzz_documented,
    fuzz_hostile,
    fuzz_life,
    fuzz_stacks,
    fuzz_templates,
    fuzz_wire,
)
from tests.kit.sampling import count
from tests.kit.stacks import template_calls


@pytest.mark.timeout(600)  # a minute on two quiet cores; a busy machine asks as much
def test_requests_made_from_the_document(target, seed):
    fuzz_documented.run(target, seed, examples=3)


def test_other_methods_are_refused(target):
    assert documented_stories.ask_other_methods(target) > count(400)


def test_what_is_deleted_is_nowhere(target):
    assert documented_stories.look_for_deleted(target) > 40


def test_nobody_comes_without_a_login(target, tmp_path):
    users = tmp_path / "htpasswd"
    users.write_text("ann:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(rounds=4)).decode() + "\n")
    guarded = app.make_app(target.stage.services, logins=login.HttpBasic(users))
    assert documented_stories.come_without_login(guarded, target, "ann", "secret") > 30


def test_wrong_values_at_every_place(target, lots):
    fuzz_hostile.misplace(target, lots, most=count(4))


def test_requests_that_nobody_should_send(target, seed):
    fuzz_hostile.throw(target, seed, examples=count(1200))


def test_bytes_that_are_hardly_http(target, seed):
    with fuzz_wire.served(target) as address:
        fuzz_wire.send_all(address, target.told)
        fuzz_wire.throw(address, seed, count(600), target.told)
        fuzz_wire.dawdle(address, target.told)
        fuzz_wire.break_off(address, seed, count(100))


def test_whatever_clients_do_nodes_rest_and_keep_what_was_acknowledged(target, seed):
    fuzz_life.run(target, seed, lives=count(15), steps=25)


def test_crowd_after_the_same_few_names(target, seed):
    fuzz_crowd.run(target, seed, clients=8, requests=count(100))


def test_whatever_a_template_holds_only_named_errors_are_raised(seed):
    results = fuzz_templates.run(seed, batches=count(4))
    valid = sum(cases for how, cases in results.items() if how.startswith("valid"))
    assert valid * 6 > results.total(), "too little of what is drawn gets past validation"
    is_whole = count(4) == 4  # a share of the batches may hold none
    assert results["valid, CREATE_FAILED"] or not is_whole, "nothing fails while it is made"


def test_calls_are_drawn_of_every_function():
    assert set(template_calls.ARGUMENTS) == template_calls.offered()


def test_whatever_a_template_holds_the_api_answers_as_it_documents(tmp_path, seed):
    answers = fuzz_stacks.run(tmp_path, seed, examples=count(400))
    assert answers["POST 201"] > 4, "too little of what is drawn becomes a stack"
    assert answers["POST 400"] > 4, "too little of what is drawn is refused"
