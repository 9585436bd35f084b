"""The stage of a story: a site of its own, on which nothing may be left at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kit.servers.stories import Stage

MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(make_site) -> Iterator[MakeStage]:
    """Make stages whose conductors are configured as the arguments say."""
    made: list[Stage] = []

    def make(**more: object) -> Stage:
        stage = Stage(make_site(**more))
        made.append(stage)
        return stage

    yield make
    for stage in made:
        assert stage.site.closed or stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage()
