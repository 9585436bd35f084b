"""A way back tells of images that are gone, and of those that nobody could look at."""

from __future__ import annotations

import pytest

from bloomery.orchestration.orders import images
from bloomery.orchestration.orders.fetching import Fetcher
from tests.kit.servers import web

ANSWERS = {
    "/there": web.text("an image"),
    "/moved": web.moved("/there"),
    "/gone": web.text("", 410),
    "/secret": web.text("", 403),
    "/moves": web.moved("/nowhere"),
}


def warnings(*paths: str, networks: tuple[str, ...] = ("127.0.0.0/8",)) -> list[str]:
    fetcher = Fetcher.of(timeout_s=20, networks=networks)
    with web.serving(ANSWERS) as site:
        told = images.list_warnings(fetcher, {site.url(path): "web" for path in paths})
        return [each.replace(site.url(""), "") for each in told]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/there", []),
        ("/moved", []),
        ("/gone", ["web: its image /gone is gone (the server answers 410): the update would fail"]),
        ("/nowhere",
         ["web: its image /nowhere is gone (the server answers 404): the update would fail"]),
        ("/moves",
         ["web: its image /moves is gone (the server answers 404): the update would fail"]),
        ("/secret", ["web: cannot see whether /secret is there: the server answers 403"]),
    ],
)  # fmt: skip
def test_an_image_is_looked_at_by_its_headers(path: str, told: list[str]) -> None:
    assert warnings(path) == told


def test_an_address_that_is_not_public_is_not_asked_and_said_so() -> None:
    (sentence,) = warnings("/there", networks=())
    assert sentence.startswith("web: cannot see whether /there is there: it leads to an address")


def test_no_plan_asks_for_more_images_than_a_few() -> None:
    told = warnings(*(f"/there?{number}" for number in range(images.MOST + 3)))
    assert told[-1] == "3 more images were not looked at"
