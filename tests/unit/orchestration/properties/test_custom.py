from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from bloomery.orchestration.limits import Limits
from bloomery.orchestration.properties import custom
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext

L63 = "x" * 63
LONG_NAME = ".".join(["a" * 60] + ["b" * 50] * 4)  # 264 characters of good labels
FITTING = ".".join(["a" * 63] * 3 + ["b" * 63])  # 255 characters

VERDICTS = {  # name: what passes, what is refused; asked of the published Heat
    "ip_addr": (
        ["1.2.3.4", "::1", "::ffff:1.2.3.4"],
        ["1.2.3", "1.2.3.4/24", "01.2.3.4", "256.1.1.1", "", "abc", "fe80::1%eth0", " 1.2.3.4"],
    ),
    "mac_addr": (
        ["52:54:00:12:34:56", "52-54-00-12-34-56", "525400123456", "5254.0012.3456", "5:4:0:1:2:3"],
        ["52:54:00:12:34", "zz:54:00:12:34:56", "52:54:00:12:34:56 ", ""],
    ),
    "net_cidr": (
        ["10.0.0.0/24", "10.0.0.1/24", "::/64", "fe80::1/64", "10.0.0.0/0", "10.0.0.1/32"],
        [
            "10.0.0.0", "10.0.0.0/33", "::/129", "abc", "10.0.0.0/24 ", "10.0.0.0/255.255.255.0",
            "10/8", "10.0.0.0/", "", "/24", "10.0.0.0/-1", "10.0.0.0/²", "10.0.0.0/" + "1" * 5000,
        ],
    ),
    "ip_or_cidr": (
        ["10.0.0.0/24", "1.2.3.4", "::1", "10.0.0.1/24"],
        ["abc", "", "10.0.0.0/99"],
    ),
    "dns_name": (
        ["a.b", "a.b.", "a", "", f"{L63}.b", "1.2.3.4", "a.1", "1.a", "a-b.c", FITTING],
        [".", "-a.b", "a-.b", "a_b", f"x{L63}.b", "a..b", "A.B", "é.de", "*.a", " a.b", LONG_NAME],
    ),
    "rel_dns_name": (["a.b", "a", "", "1"], ["a.b.", ".", "-a", "a_b"]),
    "dns_domain": (
        ["a.b.", "a.", "", "1.a."],
        ["a.b", ".", "a..", "a b.", "a.1.", "a", "1."],
    ),
    "cron_expression": (
        ["* * * * *", "*/5 0 1 1 0", "* * * * * *", "", "@daily", "0 0 31 2 *", "1-5,7 * * * MON"],
        ["* * * *", "61 * * * *", "abc", "1-99999999999 * * * *"],
    ),
    "timezone": (
        ["UTC", "Europe/Berlin", "", "Etc/GMT+3"],
        ["Foo", "../etc/passwd", "Asia", "/etc/localtime", "GMT+3", "a\0b", "x" * 5000, "é"],
    ),
    "json_string": (
        ["{}", "5", "", "null", "[1]", '"x"'],
        ["{bad", "{'a': 1}", "[" * 9000, "9" * 5000],
    ),
    "iso_8601": (
        ["2020-01-01T00:00:00Z", "2020-01-01", "20200101", "2020-01-01 00:00:00+02:00", "2020"],
        ["2020-13-01", "abc", "", "2020-W01-1", "2020-01-01T25:00:00Z", "12:00"],
    ),
    "expiration": (
        ["2099-01-01T00:00:00Z", "2099-01-01", "", "2030-01-01T01:00:01+01:00"],
        ["2020-01-01T00:00:00Z", "abc", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00+02:00"],
    ),
}  # fmt: skip
NOW = ConstraintContext(now=lambda: dt.datetime(2030, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("name", "text", "passes"),
    [(name, text, True) for name, (good, _) in VERDICTS.items() for text in good]
    + [(name, text, False) for name, (_, bad) in VERDICTS.items() for text in bad],
)
def test_a_check_lets_pass_what_heat_lets_pass(name: str, text: str, passes: bool):
    check = custom.find(name)
    assert check is not None
    why = check(text, NOW)
    assert (why is None) is passes
    assert passes or why


def test_every_check_of_ours_is_offered_by_entry_points():
    assert set(VERDICTS) <= set(custom._checks())


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("value", [None, 5, True, 1.5, [], ["192.0.2.1"], {}, {"a": 1}])
def test_a_check_of_text_refuses_all_else(name: str, value: Any):
    assert custom.find(name)(value, CONSTRAINT_CONTEXT) == "it must be text"


@pytest.mark.parametrize("name", VERDICTS)
def test_a_check_looks_at_no_more_than_the_limit(name: str):
    context = ConstraintContext(limits=Limits(custom_text_chars=3))
    assert (
        custom.find(name)("1" * 4, context) == "it has more than 3 characters (custom_text_chars)"
    )


def test_an_unknown_check_is_not_found():
    assert custom.find("nope") is None


def test_the_clock_is_asked_in_utc():
    assert CONSTRAINT_CONTEXT.now().tzinfo is dt.UTC
