"""The ramdisk's plug-in with the TPM of swtpm and tpm2-tools: it answers the conductor's challenge.

Debian's packages swtpm and tpm2-tools have them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bloomery.drivers.attestation import tpm
from tests.kit.waiting import wait_for

PLUG_IN = Path(__file__).parents[3] / "contrib/agent"
LOG = b"a log of the firmware"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("swtpm", "tpm2_quote"))), reason="swtpm or tpm2-tools are missing"
)


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(PLUG_IN))
    yield importlib.import_module("bloomery_attestation.tpm2")
    for name in [name for name in sys.modules if name.startswith("bloomery_attestation")]:
        del sys.modules[name]


@pytest.fixture
def machine(plug_in: ModuleType, tmp_path: Path) -> Iterator[Any]:
    with switched_on(plug_in, tmp_path) as tpm_of_machine:
        yield tpm_of_machine


@contextlib.contextmanager
def switched_on(plug_in: ModuleType, tmp_path: Path) -> Iterator[Any]:
    """The plug-in's view of a TPM that was switched on, and loses its power at the end."""
    (tmp_path / "log").write_bytes(LOG)
    (tmp_path / "tpm").unlink(missing_ok=True)
    command = (
        f"swtpm socket --tpm2 --tpmstate dir={tmp_path} --flags not-need-init,startup-clear "
        f"--server type=unixio,path={tmp_path}/tpm --ctrl type=unixio,path={tmp_path}/tpm.ctrl"
    )
    with subprocess.Popen(
        command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as it:
        try:
            wait_for((tmp_path / "tpm").exists, "swtpm to listen", timeout_s=60)
            yield plug_in.Tpm(f"swtpm:path={tmp_path}/tpm", tmp_path / "log")
        finally:
            it.kill()


def read_keys(machine: Any) -> tuple[tpm.Public, tpm.Public]:
    keys = machine.identify()
    ek, ak = (base64.b64decode(keys[f"{kind}_key"]) for kind in ("endorsement", "attestation"))
    return tpm.read_public(ek, "endorsement key"), tpm.read_public(ak, "attestation key")


def ask(machine: Any, challenge: tpm.Challenge) -> dict[str, Any]:
    sent = (challenge.credential, challenge.encrypted_secret)
    answer: dict[str, Any] = machine.quote(*(base64.b64encode(each) for each in sent), [9, 4, 8])
    return answer


def test_a_tpm_answers_the_challenge_with_a_quote_of_its_pcrs(machine):
    ek, ak = read_keys(machine)
    tpm.check_attestation_key(ak)
    challenge = tpm.challenge(ek, ak)
    answer = ask(machine, challenge)
    document, signature = (base64.b64decode(answer[name]) for name in ("quote", "signature"))
    quote = tpm.read_quote(ak, document, signature)
    assert quote.nonce == challenge.secret
    assert quote.pcrs == (4, 8, 9)
    values = b"".join(bytes.fromhex(answer["pcrs"][pcr]) for pcr in ("4", "8", "9"))
    assert quote.pcr_digest == hashlib.sha256(values).digest()
    assert base64.b64decode(answer["event_log"]) == LOG


def test_a_tpm_has_the_same_keys_again_and_refuses_a_challenge_for_another(machine, plug_in):
    ek, ak = read_keys(machine)
    again = read_keys(machine)
    assert (tpm.fingerprint(ek.key), ak.name) == (tpm.fingerprint(again[0].key), again[1].name)
    with pytest.raises(plug_in.TpmError, match="tpm2_activatecredential failed: "):
        ask(machine, tpm.challenge(ek, ek))


def test_a_tpm_that_loses_its_power_again_and_again_is_not_locked_out(plug_in, tmp_path):
    """A TPM counts a loss of power as a wrong password, if a key with a password was in use."""
    for _ in range(5):  # swtpm locks after 3
        with switched_on(plug_in, tmp_path) as machine:
            ask(machine, tpm.challenge(*read_keys(machine)))


def test_a_machine_without_a_tpm_says_what_is_missing(plug_in, monkeypatch, tmp_path):
    monkeypatch.setattr(plug_in, "DEVICE", tmp_path / "tpmrm0")
    with pytest.raises(plug_in.TpmError, match=r"no TPM 2.0: there is no .*/tpmrm0"):
        plug_in.Tpm()


def test_a_machine_without_an_event_log_says_so(machine, tmp_path):
    (tmp_path / "log").unlink()
    ek, ak = read_keys(machine)
    with pytest.raises(Exception, match=r"there is no log of the machine's boot at .*/log"):
        ask(machine, tpm.challenge(ek, ak))
