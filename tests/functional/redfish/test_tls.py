"""TLS: refused unless the certificate can be checked, or the node says not to."""

from __future__ import annotations

import pytest

from bloomery.lab.tls import certificate
from tests.functional.redfish.conftest import enrol


@pytest.fixture
def tls(tmp_path):
    return certificate(tmp_path)


@pytest.fixture
def machine(make_rack, tls):
    return make_rack(tls=tls).machines[0]


def test_a_certificate_that_cannot_be_checked_is_refused_with_the_way_out(stage, machine) -> None:
    node = enrol(stage, machine)
    stage.ask(node, "manage")
    said = stage.wait_for(node, "enroll")["last_error"]
    assert "TLS refused: certificate verify failed: self-signed certificate" in said
    assert "set driver_info/redfish_verify_ca to the CA" in said


def test_a_certificate_whose_authority_is_named_is_taken(stage, machine, tls) -> None:
    node = enrol(stage, machine, redfish_verify_ca=tls[0])
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["power_state"] == "power off"


def test_a_node_may_say_that_nothing_is_checked(stage, machine) -> None:
    node = enrol(stage, machine, redfish_verify_ca=False)
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["power_state"] == "power off"


def test_speaking_tls_to_a_bmc_that_does_not_is_told(stage, make_rack) -> None:
    plain = make_rack().machines[0]
    node = enrol(stage, plain, redfish_address=plain.address.replace("http:", "https:"))
    stage.ask(node, "manage")
    said = stage.wait_for(node, "enroll")["last_error"]
    assert "it speaks plain HTTP at this port, and no TLS: write http://" in said


def test_speaking_plain_http_to_a_bmc_of_tls_gets_a_hint(stage, machine) -> None:
    node = enrol(stage, machine, redfish_address=machine.address.replace("https:", "http:"))
    stage.ask(node, "manage")
    message = stage.wait_for(node, "enroll")["last_error"]
    assert (
        "closed connection without response; if the BMC speaks TLS there, use https://" in message
    )
