"""The clock of this machine waits until the moment that is asked for, or for news."""

from __future__ import annotations

import threading

from bloomery.cli.template.runs import Monotonic


def test_it_waits_until_the_moment():
    clock = Monotonic()
    until_s = clock.now() + 0.05
    clock.wait(until_s)
    assert clock.now() >= until_s


def test_a_moment_that_lies_behind_is_not_waited_for():
    clock = Monotonic()
    clock.wait(clock.now() - 60)


def test_news_end_the_present_wait_or_the_next():
    clock = Monotonic()
    clock.wake()
    clock.wait(None)  # the wake-up before it counts
    waiting = threading.Thread(target=clock.wait, args=(None,), daemon=True)
    waiting.start()
    clock.wake()
    waiting.join(timeout=10)
    assert not waiting.is_alive()


def test_news_are_told_once():
    clock = Monotonic()
    clock.wake()
    clock.wait(None)
    until_s = clock.now() + 0.05
    clock.wait(until_s)
    assert clock.now() >= until_s


def test_a_stack_that_ran_out_of_time_says_how_to_have_more(typed, tmp_path):
    file = tmp_path / "slow.yaml"
    file.write_text(
        "heat_template_version: 2016-10-14\n"
        "resources: {a: {type: OS::Heat::Delay, properties: {min_wait: 3600}}}\n"
    )
    done = typed("run", str(file))
    assert done.exit_code == 1
    assert "CREATE_FAILED: Timed out after 60 minutes; --timeout allows for more" in done.output
    assert "CREATE_COMPLETE" in typed("run", str(file), "--timeout", "61").output
