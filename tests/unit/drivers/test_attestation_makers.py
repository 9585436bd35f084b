"""Whether the certificate of an endorsement key leads to a maker that the site trusts."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from bloomery import clock, errors
from bloomery.drivers.attestation.makers import Makers
from bloomery.lab.tpm import SoftwareTpm
from tests.kit.machines.tpm_makers import IS_CLIENT, Maker

ROOT, STRANGER = Maker("a maker"), Maker("a maker")  # of one name
LINE = Maker("a line of products", ROOT)
NO_CA = Maker("a line of products", ROOT, signs=False)
RECORDED = Path(__file__).parent / "swtpm_ek.pem"  # swtpm_setup --create-ek-cert, and its CA
KEY = SoftwareTpm().endorsement_key


@pytest.fixture
def trust(tmp_path: Path):
    def written(*makers: Maker) -> Makers:
        for number, maker in enumerate(makers):
            (tmp_path / f"{number}.pem").write_text(maker.certificate)
        return Makers(str(tmp_path))

    return written


@pytest.mark.parametrize(
    ("trusted", "text"),
    [
        ([ROOT], ROOT.certify(KEY)),
        ([STRANGER, ROOT], ROOT.certify(KEY)),
        ([LINE], LINE.certify(KEY)),
        ([ROOT, LINE], LINE.certify(KEY)),
        ([ROOT], LINE.certify(KEY) + LINE.certificate),
        ([ROOT], LINE.certify(KEY) + STRANGER.certificate + LINE.certificate + ROOT.certificate),
    ],
    ids=["root", "two roots", "line", "folder", "chain", "chain with others"],
)
def test_a_certificate_of_a_trusted_maker_is_taken(trust, trusted, text):
    trust(*trusted).check(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LINE.certify(KEY), "its certificate, issued by CN=a line of products, leads to no maker"),
        (STRANGER.certify(KEY), "signature does not match"),
        (STRANGER.certify(KEY) + STRANGER.certificate, "leads to no maker"),
        (NO_CA.certify(KEY) + NO_CA.certificate, "leads to no maker"),
        (ROOT.certify(KEY, ends_in_days=-1), "not valid at validation time"),
        (ROOT.certify(KEY, usage=None), "missing required extension"),
        (ROOT.certify(KEY, usage=IS_CLIENT), "it is not the certificate of an endorsement key"),
        (ROOT.certify(KEY, is_ca=True), "it is the certificate of a CA"),
        (ROOT.certificate, "leads to no maker"),
        (KEY, "asks for the certificate of its key, in PEM"),
        ("sha256:" + 64 * "0", "asks for the certificate of its key, in PEM"),
        (7, "asks for the certificate of its key, in PEM"),
        ("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", "leads to no maker"),
    ],
    ids=[
        "no chain", "other key", "own root", "no CA", "expired", "no usage", "client", "CA",
        "the root", "key", "digest", "number", "garbage",
    ],
)  # fmt: skip
def test_another_certificate_is_refused_with_the_reason(trust, text, why):
    with pytest.raises(errors.InvalidParameterValue, match=why) as refusal:
        trust(ROOT).check(text)
    assert "driver_info/attestation_ek is not of a trusted TPM" in str(refusal.value)


def test_a_certificate_of_swtpm_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
    own, end, issuer = RECORDED.read_text().partition("-----END CERTIFICATE-----\n")
    (tmp_path / "issuer.pem").write_text(issuer)
    Makers(str(tmp_path)).check(own + end)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_the_service_does_not_start_with_an_unusable_file(tmp_path, content):
    if content is not None:
        (tmp_path / "makers").write_text(content)
    with pytest.raises(errors.CannotStart, match=r"makers of \[agent\]attestation_ca"):
        Makers(str(tmp_path / "makers"))


def test_an_empty_folder_is_no_trust(tmp_path):
    with pytest.raises(errors.CannotStart):
        Makers(str(tmp_path))
