"""Marks of vendor methods: what they say, and which calls they let through."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers import vendor_methods
from bloomery.drivers.fake.hardware import FakeVendor
from bloomery.drivers.noop import NoVendor


class Vendor:
    @vendor_methods.passthru(("POST", "PUT"), method="blink-all", description="Blink.")
    def blink(self, task, times, colour="red"): ...

    @vendor_methods.passthru(("GET",), check=lambda info: int(info["number"]))
    def checked(self, task, number): ...

    @vendor_methods.driver_passthru(("GET",))
    def models(self, **others): ...


class Better(Vendor):
    @vendor_methods.passthru(("DELETE",), method="blink-all")
    def blink(self, task): ...


def test_a_mark_says_what_the_api_shows():
    assert vendor_methods.of_nodes(Vendor)["blink-all"].document() == {
        "async": True, "attach": False, "description": "Blink.", "http_methods": ["POST", "PUT"],
        "require_exclusive_lock": True,
    }  # fmt: skip
    assert set(vendor_methods.of_nodes(Vendor)) == {"blink-all", "checked"}
    assert set(vendor_methods.of_drivers(Vendor)) == {"models"}
    assert vendor_methods.of_nodes(NoVendor) == vendor_methods.of_drivers(FakeVendor) == {}


def test_a_subclass_may_say_something_else():
    assert vendor_methods.of_nodes(Better)["blink-all"].http_methods == ("DELETE",)


@pytest.mark.parametrize("http_methods", [(), ("BREW",), ("get",)])
def test_a_mark_names_http_methods_that_there_are(http_methods):
    with pytest.raises(ValueError, match="http_methods must be some of GET, POST"):
        vendor_methods.passthru(http_methods)


def choose(name, http_method="POST", **info):
    return vendor_methods.choose(vendor_methods.of_nodes(Vendor), name, http_method, info)


def test_a_call_leads_to_its_method():
    assert choose("blink-all", times=3).attribute == "blink"
    assert choose("blink-all", "PUT", times=1, colour="blue").required == ("times",)


@pytest.mark.parametrize(
    ("name", "http_method", "info", "told"),
    [
        ("blink", "POST", {"times": 1}, "No handler for method blink: .* has blink-all, checked"),
        ("blink-all", "GET", {"times": 1}, "does not support HTTP GET: it takes POST, PUT"),
        ("blink-all", "POST", {}, "'times' not passed to method 'blink-all'"),
        ("blink-all", "POST", {"times": []}, "'times' not passed"),
        ("blink-all", "POST", {"times": 0}, "'times' not passed"),
        ("blink-all", "POST", {"times": False}, "'times' not passed"),
        ("blink-all", "POST", {"times": 1, "x": 2}, "'x' is none of .*: it takes colour, times"),
        ("x" * 999, "POST", {}, "No handler for method x{100}:"),
    ],
)
def test_a_call_that_leads_nowhere_says_what_there_is(name, http_method, info, told):
    with pytest.raises(errors.InvalidParameterValue, match=told):
        choose(name, http_method, **info)


def test_a_method_looks_at_its_arguments_before_it_is_called():
    with pytest.raises(ValueError, match="many"):
        choose("checked", "GET", number="many")


def test_a_method_may_take_anything():
    methods = vendor_methods.of_drivers(Vendor)
    assert vendor_methods.choose(methods, "models", "GET", {"any": 1}).takes_others


@pytest.mark.parametrize("name", ["self", "task"])
def test_no_caller_passes_what_the_conductor_does(name):
    methods = vendor_methods.of_drivers(Vendor)
    with pytest.raises(errors.InvalidParameterValue, match=f"'{name}' is none of method 'models'"):
        vendor_methods.choose(methods, "models", "GET", {name: 1})
