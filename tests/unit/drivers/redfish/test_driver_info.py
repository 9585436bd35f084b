from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import driver_info

ADDRESS = {"redfish_address": "https://bmc-1"}


def parse(**info):
    return driver_info.parse({"redfish_address": "bmc-1"} | info, Redfish())


@pytest.mark.parametrize(
    ("given", "address", "root"),
    [
        ("bmc-1", "https://bmc-1", "/redfish/v1/"),
        ("http://10.0.0.1:8000", "http://10.0.0.1:8000", "/redfish/v1/"),
        ("https://bmc-1/", "https://bmc-1", "/redfish/v1/"),
        ("https://bmc-1/rack/3/redfish/v1", "https://bmc-1", "/rack/3/redfish/v1/"),
        ("[fe80::1]", "https://[fe80::1]", "/redfish/v1/"),
    ],
)
def test_an_address_is_a_host_or_a_url(given, address, root):
    found = parse(redfish_address=given)
    assert (found.address, found.root) == (address, root)


def test_a_missing_address_is_named():
    with pytest.raises(
        errors.MissingParameterValue, match="driver_info/redfish_address is missing"
    ):
        driver_info.parse({}, Redfish())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("redfish_address", "ftp://bmc-1"),
        ("redfish_address", "https://user:sesame@bmc-1"),
        ("redfish_address", "https://bmc-1:port"),
        ("redfish_address", "https://bmc-1?x=1"),
        ("redfish_address", 5),
        ("redfish_system_id", "Systems/1"),
        ("redfish_system_id", "//elsewhere/redfish"),
        ("redfish_system_id", 1),
        ("redfish_username", ["admin"]),
        ("redfish_password", 1234),
        ("redfish_verify_ca", "/no/such/file"),
        ("redfish_verify_ca", 7),
        ("redfish_auth_type", "kerberos"),
        ("redfish_tls_minimum_version", "1.0"),
        ("redfish_tls_ciphers", 3),
    ],
)
def test_what_is_malformed_is_named_by_its_key(key, value):
    with pytest.raises(errors.InvalidParameterValue, match=f"driver_info/{key}") as told:
        parse(**{key: value})
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "verify"),
    [(True, True), (False, False), ("no", False), ("True", True), ("/", "/")],
)
def test_certificates_are_checked_unless_told_otherwise(given, verify):
    assert parse(redfish_verify_ca=given).verify == verify
    assert parse().verify is True


def test_a_password_is_not_shown():
    assert "battery" not in repr(parse(redfish_password="battery"))


def test_a_system_id_is_quoted():
    assert parse(redfish_system_id="/redfish/v1/Systems/a b").system == "/redfish/v1/Systems/a%20b"
