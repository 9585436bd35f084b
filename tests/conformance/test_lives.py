"""What Heat showed of the lives of stacks is kept; without a Heat they are compared with that."""

from __future__ import annotations

import pytest

from tests.conformance import compare_lives, life_allowed, life_views, lives
from tests.kit import sampling


def test_every_life_that_is_drawn_was_led_in_heat() -> None:
    drawn = compare_lives.draw(compare_lives.SEED, "", patience_s=1)
    kept = compare_lives.recorded()
    assert [life["id"] for life in drawn] == list(kept)
    assert len(drawn) == lives.COUNT
    for life in drawn:
        assert len(kept[life["id"]]) == len(life["steps"])


def test_little_of_what_heat_shows_is_its_luck() -> None:
    """Views that Heat itself has no one answer to are few; all others are compared."""
    kept = compare_lives.recorded()
    loose = compared = 0
    for life in compare_lives.draw(compare_lives.SEED, "", patience_s=1):
        for seen, needs in zip(kept[life["id"]], life_views.needs_of_steps(life), strict=True):
            compared += len(life_views.views(seen, needs))
            loose += len(seen.get("loose", ()))
    assert loose < compared / 50, (loose, compared)


@pytest.mark.timeout(300)
def test_stacks_live_as_they_do_in_heat() -> None:
    """Sixty stacks, created, updated twice at a time, failed, rolled back and deleted over REST."""
    shown = compare_lives.recorded()
    chosen = {life: shown[life] for life in sampling.some([*shown])}
    differences = compare_lives.compare(compare_lives.SEED, "", chosen)
    assert life_allowed.judge(differences, counts=len(chosen) == len(shown)) == []


def test_the_same_seed_draws_the_same_lives() -> None:
    first, second = (list(lives.lives(7, patience_s=1, count=3)) for _ in range(2))
    assert first == second
    assert first != list(lives.lives(8, patience_s=1, count=3))
