"""The catalogue of firmware: what it refuses, by line, and what it finds of a machine."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.model.rules import firmware

GOOD = """\
# our fleet
- {model: BMC-6, component: bmc, version: "1.53", url: "http://files.test/bmc-1.53", wait: 60}
- model: R650
  vendor: Dell Inc.
  component: bios
  version: '1.10'
  url: http://files.test/r650
  checksum: 0123456789ABCDEF0123456789abcdef
- {model: r650, component: bmc, version: "7", url: "https://files.test/r650-bmc-7"}
- {model: X710, component: nic, version: "9.2", url: "http://files.test/x710"}
"""


def with_line(line: str) -> str:
    return GOOD + line


def entry(**values: object) -> str:
    """Return the catalogue with one more entry, on line 11; values are written as they are."""
    usual = {"model": "M", "component": "bios", "version": "'1'", "url": "'http://files.test/1'"}
    pairs = (f"{key}: {value}" for key, value in (usual | values).items() if value != "")
    return with_line(f"- {{{', '.join(pairs)}}}\n")


LAST = "cannot take the catalogue: line 11: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a list of entries is needed"),
        ("[]", "a list of entries is needed"),
        ("model: R650", "a list of entries is needed"),
        ("- a\n- {", "line 3: "),
        ("- " + "[" * 200 + "]" * 200, "deep"),
        ("# " + "x" * firmware.MOST_BYTES, "60,000 are allowed"),
        (with_line("- text\n"), LAST + "an entry is a map"),
        (entry(model=""), LAST + "model is missing"),
        (entry(version=""), LAST + "version is missing"),
        (entry(url="null"), LAST + "url is missing"),
        (entry(version="1.10"), LAST + "version is no text for YAML: write it in quotes"),
        (entry(version="2026-11-29"), LAST + "version is no text for YAML"),
        (entry(version="[1]"), LAST + "version takes a text"),
        (entry(model=650), LAST + "model is no text for YAML"),
        (entry(model="'" + "m" * 256 + "'"), LAST + "model takes a text of 1 to 255"),
        (entry(component="cpu"), LAST + "component is cpu, and takes bios, bmc, nic"),
        (entry(or_newer="'yes'"), LAST + "or_newer takes true or false"),
        (entry(component="nic:1"), LAST + "component is nic:1"),
        (entry(verison="'1'"), LAST + "verison is unknown"),
        (with_line("- {model: a, model: b}\n"), LAST + "model stands there twice"),
        (entry(url="'ftp://files.test/1'"), LAST + "url takes an address of http or https"),
        (entry(url="'http://['"), LAST + "url takes an address of http or https"),
        (entry(url="'http://a:secret@files.test/1'"), LAST + "url has a login"),
        (entry(checksum="sha256:abc"), "line 11: checksum takes the hexadecimal digits of md5"),
        (entry(checksum="'abc'"), "line 11: checksum takes the hexadecimal digits of md5"),
        (entry(checksum="'" + "g" * 64 + "'"), "line 11: checksum takes"),
        (entry(wait="-1"), "line 11: wait takes seconds"),
        (entry(wait="soon"), "line 11: wait takes seconds"),
        (entry(wait=".nan"), "line 11: wait takes seconds"),
        (entry(model="R650"), LAST + "line 3 has bios of R650 already"),
        (entry(model="r650", vendor="dell inc."), LAST + "line 3 has bios of r650 already"),
    ],
)
def test_a_catalogue_is_refused_by_its_line(text: str, reason: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        firmware.parse(text)
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)


def test_one_model_of_two_vendors_has_two_entries() -> None:
    catalogue = firmware.parse(entry(model="R650", vendor="HPE"))
    assert [catalogue.find("bios", vendor, "R650") for vendor in ("DELL INC.", "hpe", None)] == [
        1, 4, None,
    ]  # fmt: skip


def row(component: str, version: str | None, model: str | None = None, vendor: str | None = None):
    return {
        "component": component, "current_version": version, "model": model, "vendor": vendor,
    }  # fmt: skip


BIOS = row("bios", "1.10", "R650", "Dell Inc.")


@pytest.mark.parametrize(
    ("rows", "updates"),
    [
        ([], []),
        ([BIOS], []),
        ([BIOS | {"current_version": "1.1"}], [("bios", "1.1", "1.10")]),
        ([BIOS | {"vendor": "Dell"}], []),
        ([BIOS | {"model": None, "current_version": "1"}], []),
        ([BIOS, row("bmc", "6", "BMC-6")], [("bmc", "6", "7")]),  # of the machine first
        ([row("bmc", "1.52", "BMC-6")], [("bmc", "1.52", "1.53")]),
        ([row("bmc", "1.53", "BMC-6")], []),
        ([row("nic:A", "9.1", "X710"), row("nic:B", "9.2", "X710"), row("nic:C", None, "x710")],
         [("nic:A", "9.1", "9.2"), ("nic:C", None, "9.2")]),
        ([row("nic:A", "9.1", "other")], []),
        ([BIOS | {"current_version": "2"}, row("nic:A", "1", "X710"), row("bmc", "6")],
         [("bios", "2", "1.10"), ("bmc", "6", "7"), ("nic:A", "1", "9.2")]),  # as they stand there
    ],
)  # fmt: skip
def test_what_differs_from_the_catalogue_is_found_in_its_order(rows, updates) -> None:
    found = firmware.pending(firmware.parse(GOOD), rows)
    assert [(each.component, each.current_version, each.entry.version) for each in found] == updates


@pytest.mark.parametrize(
    ("least", "current", "is_right"),
    [
        ("2.9", "2.9", True), ("2.9", "2.10", True), ("2.9", "2.8.9", False), ("2.9", "3", True),
        ("2.9", None, False), ("2.1", "2.1.1", True), ("2.1.1", "2.1", False),
        ("2.1", "2.1-rc1", False), ("2.1", "2.01", False), ("1.0.A", "1.0.B", False),
        ("U30 v2.76 (02/09/2023)", "u30 V2.80 (01/01/2024)", True),
        ("U30 v2.76 (02/09/2023)", "U46 v2.80 (01/01/2024)", True),
        ("A43 v2.76", "B43 v2.80", False),
    ],
)  # fmt: skip
def test_a_newer_version_stays_where_the_entry_takes_it(least, current, is_right) -> None:
    text = f'- {{model: M, component: bios, version: "{least}", url: "http://files.test/m"'
    rows = [row("bios", current, "M")]
    open_entry = firmware.parse(f"{text}, or_newer: true}}")
    assert bool(firmware.pending(open_entry, rows)) is not is_right
    assert firmware.versions_of(open_entry, rows) == {"bios": current if is_right else least}
    exact = firmware.parse(f"{text}, or_newer: false}}")
    assert firmware.versions_of(exact, rows) == {"bios": least}


def test_an_update_is_an_entry_of_the_step() -> None:
    rows = [row("bios", "1", "R650", "Dell Inc."), row("bmc", "1", "BMC-6")]
    catalogue = firmware.parse(GOOD.replace("r650, component", "r651, component"))
    assert [each.setting for each in firmware.pending(catalogue, rows)] == [
        {"component": "bmc", "url": "http://files.test/bmc-1.53", "version": "1.53", "wait": 60},
        {"component": "bios", "url": "http://files.test/r650", "version": "1.10",
         "checksum": "0123456789ABCDEF0123456789abcdef"},
    ]  # fmt: skip


NODE = SimpleNamespace(
    provision_state="manageable", maintenance=False, instance_uuid=None, retired=False
)


@pytest.mark.parametrize(
    ("values", "verbs", "reason"),
    [
        ({}, ("clean",), None),
        ({"retired": True}, ("clean",), None),
        ({"provision_state": "available"}, ("manage", "clean", "provide"), None),
        ({"provision_state": "active", "instance_uuid": "i"}, ("service",), None),
        ({"provision_state": "available", "instance_uuid": "i"}, (), "reserved for instance i"),
        ({"provision_state": "available", "retired": True}, (), "it is retired"),
        ({"maintenance": True}, (), "it is in maintenance"),
        ({"provision_state": "clean failed", "maintenance": True}, (), "it is in clean failed"),
        ({"provision_state": "deploying"}, (), "manageable, available, active"),
    ],
)
def test_the_state_says_how_a_machine_is_updated(values, verbs, reason) -> None:
    node = SimpleNamespace(**vars(NODE) | values)
    way, refusal = firmware.find_way(node)
    assert (way, refusal is None) == (verbs, reason is None)
    assert (reason or "") in (refusal or "")


def test_every_key_of_an_entry_is_a_field() -> None:
    names = {field.name for field in dataclasses.fields(firmware.Entry)}
    assert names == set(firmware._KEYS)
