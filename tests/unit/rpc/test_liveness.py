"""Who is alive: counters that move, judged by looks at them."""

from __future__ import annotations

import pytest

from bloomery.db import rows
from bloomery.model.conductor import Conductor
from bloomery.rpc.liveness import Liveness

TIMEOUT_S = 60


class Watcher:
    """A process that looks at one conductor's row from time to time."""

    def __init__(self):
        self.now = 1000.0
        self.liveness = Liveness(timeout_s=TIMEOUT_S, longest_gap_s=20, clock=lambda: self.now)

    def look(self, heartbeat, after_s=10.0, hostname="a", online=True, takes_s=0.0):
        self.now += after_s
        asked_at = self.now
        self.now += takes_s
        row = Conductor(
            id=1, hostname=hostname, conductor_group="", drivers=(), online=online,
            heartbeat=heartbeat, created_at=rows.now(), updated_at=None,
        )  # fmt: skip
        [judged] = self.liveness.judge([row], asked_at)
        return judged

    def look_for(self, seconds, heartbeat):
        for _ in range(int(seconds / 10)):
            judged = self.look(heartbeat)
        return judged


@pytest.fixture
def watcher():
    return Watcher()


def test_first_look_believes_what_the_row_says(watcher):
    assert watcher.look(7).alive
    assert not watcher.look(7, hostname="b", online=False).alive


def test_counter_that_stands_still_is_alive_until_the_timeout(watcher):
    watcher.look(7)
    assert watcher.look_for(50, 7).alive
    dead = watcher.look(7)
    assert (dead.alive, dead.silent_s) == (False, 60)
    assert watcher.liveness.is_dead(dead)


def test_counter_that_moves_is_alive_however_slowly(watcher):
    for heartbeat in range(5):
        watcher.look(heartbeat)
        assert watcher.look_for(50, heartbeat).alive


def test_who_moves_again_is_alive_again(watcher):
    watcher.look(7)
    watcher.look_for(90, 7)
    back = watcher.look(8)
    assert (back.alive, back.silent_s) == (True, 0)


def test_new_life_under_the_old_counter_or_below_counts_as_movement(watcher):
    watcher.look(7)
    watcher.look_for(90, 7)
    assert watcher.look(0).alive


def test_who_signed_off_is_not_alive_however_often_it_beats(watcher):
    for heartbeat in range(10):
        judged = watcher.look(heartbeat, online=False)
    assert not judged.alive
    assert not watcher.liveness.is_dead(judged), "it ends its work"


def test_time_in_which_nobody_looked_kills_nobody(watcher):
    """The database was away, or this process was stopped: the others could not tell us either."""
    watcher.look(7)
    assert watcher.look(7, after_s=3600).alive
    assert watcher.look_for(30, 7).alive
    assert not watcher.look(7).alive


def test_pause_while_the_rows_are_read_is_no_silence(watcher):
    """The counter that a paused process has read may have moved at the end of the pause."""
    watcher.look(7, takes_s=80)
    assert watcher.look(7, after_s=3.5).silent_s == 3.5
    watcher.look(8, takes_s=80)
    assert watcher.look(8, after_s=3.5).silent_s == 3.5


def test_silence_of_looks_that_pass_each_other_is_counted_once(watcher):
    watcher.look(7)
    watcher.look(7)
    [late] = watcher.liveness.judge([watcher.look(7)], watcher.now - 15)
    assert late.silent_s == 20


def test_conductors_are_judged_apart(watcher):
    watcher.look(7)
    for heartbeat in range(7):
        watcher.look(heartbeat, hostname="b", after_s=0)
        watcher.look(7)
    assert watcher.look(8, hostname="b", after_s=0).alive
    assert not watcher.look(7, after_s=0).alive
