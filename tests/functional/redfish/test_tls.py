"""TLS: refused unless the certificate can be checked, or the node says not to."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.functional.redfish.conftest import enrol


def certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate of its own authority for loopback; return it and its key as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bmc")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    files = folder / "bmc.crt", folder / "bmc.key"
    files[0].write_bytes(made.public_bytes(pem))
    files[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return str(files[0]), str(files[1])


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
    assert "TLS refused" in stage.wait_for(node, "enroll")["last_error"]
