"""Lights that know on and off alone, and those that a BMC does not tell rightly."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.drivers.redfish.indicators import Light


class Resource:
    """A resource of sushy's, as far as a light looks at it."""

    path = "/redfish/v1/Systems/1"

    def __init__(self, **document):
        self.json, self.changes = document, []
        self._conn = SimpleNamespace(patch=self._patch)

    def _patch(self, path, data, etag):
        self.changes.append((path, data, etag))

    def _get_etag(self):
        return "e1"

    def invalidate(self):
        self.json = {}


def light(**document):
    return Light(component="system", name="1", resource=Resource(**document))


def test_a_newer_light_is_on_or_off():
    newer = light(LocationIndicatorActive=True)
    assert newer.facts() == {"readonly": False, "states": ["off", "on"]}
    assert (newer.read(), light(LocationIndicatorActive=False).read()) == ("on", "off")
    newer.switch("off")
    [change] = newer.resource.changes
    assert change == (Resource.path, {"LocationIndicatorActive": False}, "e1")
    with pytest.raises(errors.InvalidParameterValue, match="it takes off, on"):
        light(LocationIndicatorActive=True).switch("blinking")


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("Lit", "on"),
        ("Off", "off"),
        ("Blinking", "blinking"),
        ("Unknown", "unknown"),
        (7, "unknown"),
    ],
)
def test_an_older_light_has_words(word, state):
    assert light(IndicatorLED=word).read() == state


def test_the_older_property_counts_where_there_are_both():
    both = light(IndicatorLED="Off", LocationIndicatorActive=True)
    assert both.read() == "off"
    both.switch("blinking")
    assert both.resource.changes[0][1] == {"IndicatorLED": "Blinking"}
