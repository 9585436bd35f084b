"""What holds for every test: no eventlet, one seed, one empty database to copy."""

from __future__ import annotations

import sys

sys.modules["eventlet"] = None  # type: ignore[assignment]  # before anything could load it

import gc  # noqa: E402  the line above comes first
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from tests.kit import hangs, progress, sampling  # noqa: E402
from tests.kit.servers import databases  # noqa: E402
from tests.kit.servers.site import Site  # noqa: E402

MakeSite = Callable[..., Site]

# How fast a machine draws and runs examples says nothing of what is tested.
hypothesis.settings.register_profile(
    "any machine",
    max_examples=sampling.count(100),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("any machine")

databases.make_engines_cheap()

# A shell that starts a run with & has it ignore Ctrl-C, and so would all its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (hangs, progress, sampling):
        if not config.pluginmanager.is_registered(plugin):
            config.pluginmanager.register(plugin)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if databases.ON_SERVER and item.get_closest_marker("sqlite"):
            item.add_marker(pytest.mark.skip(reason="it is of SQLite"))


def pytest_collection_finish() -> None:
    gc.freeze()  # it lives until the end: neither searches for garbage nor forks copy it


def pytest_sessionfinish() -> None:
    databases.close()


@pytest.fixture
def seed() -> int:
    """The number that tests which draw lots begin with; a failure is repeated with it."""
    return int(os.environ.get("BLOOMERY_SEED", "1"))


@pytest.fixture
def lots(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture(autouse=databases.ON_SERVER)
def databases_of_the_test(tmp_path: Path) -> Iterator[None]:
    """Empty them for the next test, after everything that uses them has ended."""
    yield
    databases.release(tmp_path)


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[MakeSite]:
    """Make conductors on databases of their own; each is ended after the test."""
    made: list[Site] = []

    def make(**more: object) -> Site:
        site = Site(tmp_path / f"site-{len(made)}.sqlite", **more)
        made.append(site)
        return site

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    return make_site()


@pytest.fixture
def target(make_site: MakeSite) -> Iterator[Any]:
    """What bad input is thrown at: nodes in many states, behind the API."""
    from tests.kit.probes import fuzzing  # hypothesis and the API take their time to load

    with fuzzing.Target.standing(make_site()) as standing:
        yield standing
