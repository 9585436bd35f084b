"""No input is an error of ours: a short look at what ``make fuzz`` does for longer."""

from __future__ import annotations

import bcrypt
import pytest

from bloomery.api import app
from bloomery.http_server import login
from tests.kit.probes import documented_stories, fuzz_documented, fuzz_hostile, fuzz_wire
from tests.kit.sampling import count


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
