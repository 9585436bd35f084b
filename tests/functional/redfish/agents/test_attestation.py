"""Machines prove by their TPM what they have booted, before disks are cleaned and written."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import ssl
from pathlib import Path
from typing import Any

import pycdlib
import pytest

from bloomery.conf import Conf
from bloomery.db import rows
from bloomery.lab.rack import Machine
from bloomery.lab.tpm import SoftwareTpm
from tests.functional.redfish.agents.conftest import INSTANCE, MAC, Ramdisk
from tests.functional.redfish.conftest import manageable
from tests.kit.machines.agent_server import AgentServer
from tests.kit.machines.tpm_makers import Maker
from tests.kit.servers.stories import Stage

VERIFY = {"interface": "deploy", "step": "verify_attestation"}
LEARN = {"interface": "deploy", "step": "learn_endorsement_key"}
QUESTIONS = ["attest.identify", "attest.quote"]
OWN_FILES = {"kernel": b"k" * 5000, "ramdisk": b"r" * 70_000, "esp": b"e" * 40_000}


class Prover(Ramdisk):
    """An agent from a CD that was built here; its TPM measures what is on the CD."""

    def __init__(self, stage: Stage, machine: Machine, server: AgentServer, folder: Path) -> None:
        super().__init__(stage, machine, server)
        self._folder = folder

    def runs(self, image: str | None) -> bool:
        return bool(image and image.endswith(".iso"))

    def begin_boot(self, image: str) -> None:
        iso = (self._folder / "boot-files" / image.rpartition("/")[2]).read_bytes()
        if self.server.tpm is not None:
            self.server.tpm.boot_cd(iso)
        self.agent.boot(grub_line(iso))


def grub_line(iso: bytes) -> str:
    disc, out = pycdlib.PyCdlib(), io.BytesIO()
    disc.open_fp(io.BytesIO(iso))
    disc.get_file_from_iso_fp(out, rr_path="/EFI/BOOT/grub.cfg")
    (line,) = (line for line in out.getvalue().decode().splitlines() if "linux /vmlinuz" in line)
    return line.replace("'", "")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name, content in OWN_FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def asks_makers() -> bool:
    return False


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    maker = Maker("the maker")
    (tmp_path / "makers").write_text(maker.certificate)
    return maker


@pytest.fixture
def settings(settings: Conf, files: Path, tmp_path: Path, maker: Maker, asks_makers: bool) -> Conf:
    (tmp_path / "digests").write_text(f"{SoftwareTpm().loader.hex()}  GRUB\n")
    agent = dataclasses.replace(
        settings.agent, attestation_digests=str(tmp_path / "digests"), deploy_logs_collect="never",
        attestation_ca=str(tmp_path / "makers") if asks_makers else None,
    )  # fmt: skip
    conductor = dataclasses.replace(
        settings.conductor, deploy_kernel=f"file://{files}/kernel",
        deploy_ramdisk=f"file://{files}/ramdisk", bootloader=f"file://{files}/esp",
    )  # fmt: skip
    return dataclasses.replace(settings, agent=agent, conductor=conductor)


@pytest.fixture
def tpm(server: AgentServer) -> SoftwareTpm:
    server.tpm = SoftwareTpm()
    return server.tpm


@pytest.fixture
def ramdisk(stage, machine, server, tpm, tmp_path) -> Prover:
    return Prover(stage, machine, server, tmp_path / "http")


@pytest.fixture
def node(stage: Stage, machine: Machine, tpm: SoftwareTpm) -> str:
    """A node whose endorsement key is enrolled."""
    node = manageable(stage, machine, attestation_ek=tpm.endorsement_key)
    stage.patch(node, deploy_interface="direct", instance_info=INSTANCE)
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    return node


def deploy(stage: Stage, ramdisk: Prover, node: str, **more: Any) -> dict[str, Any]:
    stage.ask(node, "active", **more)
    return ramdisk.live_until(node, "active", "deploy failed")


def clean(stage: Stage, ramdisk: Prover, node: str, *steps: Any) -> dict[str, Any]:
    stage.ask(node, "clean", clean_steps=list(steps))
    return ramdisk.live_until(node, "manageable", "clean failed")


def test_a_machine_that_proves_its_boot_is_deployed(stage, available, ramdisk):
    shown = deploy(stage, ramdisk, available)
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert ramdisk.server.told[:5] == [
        "boot", "deploy.get_deploy_steps", *QUESTIONS, "standby.prepare_image",
    ]  # fmt: skip
    record = shown["driver_internal_info"]["attestation"]
    assert record["endorsement_key"].startswith("sha256:")
    assert record["pcrs"] == {str(pcr): ramdisk.server.tpm.pcrs[pcr].hex() for pcr in (4, 8, 9)}
    assert "agent_challenge" not in shown["driver_internal_info"]
    steps = [name for name, _ in stage.steps(available, "deploy")]
    assert steps[:4] == [
        "deploy.prepare", "deploy.deploy", "deploy.verify_attestation", "deploy.write_image",
    ]  # fmt: skip


def test_a_machine_is_asked_before_its_disks_are_cleaned(stage, node, ramdisk):
    stage.ask(node, "provide")
    assert ramdisk.live_until(node, "available", "clean failed")["last_error"] is None
    assert ramdisk.server.told[:5] == [
        "boot", "clean.get_clean_steps", *QUESTIONS, "clean.execute_clean_step",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ("unanswered", "the agent's quote does not answer this challenge"),
        ("replayed", "the agent's quote does not answer this challenge"),
        ("unbound", "the agent failed attest.quote: TPM2_ActivateCredential: TPM_RC_INTEGRITY"),
        ("exportable", "the agent's attestation key may sign what no TPM made"),
        ("values", "the agent's PCR values are not those that its TPM has quoted"),
        ("log", "the event log does not explain PCR 9"),
        ("cut", "the agent's event log cannot be read"),
        ("signature", "the signature of the agent's quote is not that of its attestation key"),
    ],
)
def test_what_a_machine_cannot_prove_fails_the_deployment_before_its_disk_is_written(
    stage, available, ramdisk, tpm, lie, why
):
    tpm.wrong = lie
    if lie == "replayed":  # a quote of an earlier boot
        tpm.wrong = None
        clean(stage, ramdisk, make_manageable(stage, available), VERIFY)
        stage.site.set(available, provision_state="available")
        ramdisk.begin()
        tpm.wrong = lie
    shown = deploy(stage, ramdisk, available)
    assert shown["provision_state"] == "deploy failed"
    assert "deploy.verify_attestation" in shown["last_error"]
    assert why in shown["last_error"]
    assert "standby.prepare_image" not in ramdisk.server.told
    assert "attestation" not in shown["driver_internal_info"]
    told = stage.api.get(f"/ext/v1/nodes/{available}/why").json
    assert why in str(told)


def make_manageable(stage: Stage, node: str) -> str:
    stage.site.set(node, provision_state="manageable")
    return node


@pytest.mark.parametrize("name", ["kernel", "ramdisk"])
def test_a_machine_that_has_booted_another_file_is_refused_by_the_digest(
    stage, available, ramdisk, files, name
):
    """The CD has one file, and the conductor has another when it looks."""
    live = ramdisk.begin_boot

    def boot_then_change(image: str) -> None:
        live(image)
        (files / name).write_bytes(b"another" * 1000)

    ramdisk.begin_boot = boot_then_change
    shown = deploy(stage, ramdisk, available)
    assert shown["provision_state"] == "deploy failed"
    measured = hashlib.sha256(OWN_FILES[name]).hexdigest()
    assert f"with SHA-256 {measured}, which is of none of the node's boot" in shown["last_error"]


def test_another_tpm_is_refused_with_both_keys(stage, available, ramdisk, server):
    server.tpm = SoftwareTpm()
    shown = deploy(stage, ramdisk, available)
    assert "the machine has another TPM: its endorsement key is sha256:" in shown["last_error"]
    assert ramdisk.server.told == ["boot", "deploy.get_deploy_steps", QUESTIONS[0]]


def test_a_ramdisk_without_the_plug_in_is_refused_with_its_name(stage, available, ramdisk, server):
    server.tpm = None
    shown = deploy(stage, ramdisk, available)
    assert "Extension with id attest not found" in shown["last_error"]
    assert "bloomery_attestation in its ramdisk" in shown["last_error"]


def test_a_machine_without_a_tpm_says_so(stage, available, ramdisk, server):
    server.fails["identify"] = "this machine has no TPM 2.0: there is no /dev/tpmrm0"
    shown = deploy(stage, ramdisk, available)
    assert "the agent failed attest.identify: this machine has no TPM 2.0" in shown["last_error"]


def test_a_step_that_is_left_out_is_made_up_for_before_the_image(stage, available, ramdisk, tpm):
    tpm.wrong = "signature"
    shown = deploy(stage, ramdisk, available, deploy_steps=[VERIFY | {"args": {}, "priority": 0}])
    assert shown["provision_state"] == "deploy failed"
    assert "deploy.write_image" in shown["last_error"]
    assert "standby.prepare_image" not in ramdisk.server.told


def test_a_container_and_its_login_reach_no_machine_that_proves_nothing(
    stage, available, ramdisk, tpm
):
    tpm.wrong = "signature"
    image = {"image_source": "oci://registry.test/os:1"}
    stage.patch(available, deploy_interface="bootc", instance_info=image)
    shown = deploy(stage, ramdisk, available, deploy_steps=[VERIFY | {"args": {}, "priority": 0}])
    assert "deploy.execute_bootc_install" in shown["last_error"]
    assert "the signature of the agent's quote is not that" in shown["last_error"]
    assert ramdisk.server.told[-2:] == QUESTIONS


@pytest.mark.parametrize(
    ("pinned", "why"),
    [
        ({"0": "00" * 32}, None),
        ({"0": ["11" * 32, "00" * 32], "7": "00" * 32}, None),
        ({"0": "11" * 32}, f"PCR 0 is {'00' * 32}, and driver_info/attestation_pcrs says 1111"),
    ],
)
def test_pcrs_of_the_firmware_are_compared_where_they_are_enrolled(
    stage, available, ramdisk, pinned, why
):
    stage.patch(available, **{"driver_info.attestation_pcrs": pinned})
    shown = deploy(stage, ramdisk, available)
    asked = ramdisk.server.params["attest.quote"]["pcrs"]
    assert asked == sorted({4, 8, 9, *map(int, pinned)})
    assert shown["provision_state"] == ("active" if why is None else "deploy failed")
    assert (why or "") in (shown["last_error"] or "")


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"attestation_ek": "ab" * 32}, "takes the endorsement key of the machine's TPM"),
        ({"attestation_pcrs": {"24": "00" * 32}}, "takes an object of PCRs, 0 to 23"),
        ({"attestation_pcrs": {"0": "zz"}}, "takes an object of PCRs, 0 to 23"),
        ({"attestation_pcrs": ["00"]}, "takes an object of PCRs, 0 to 23"),
        ({"deploy_iso": "http://images.test/agent.iso"}, "deploy_iso is a ready ISO"),
    ],
)
def test_settings_that_prove_nothing_are_refused_by_name(stage, available, info, why):
    stage.patch(available, **{f"driver_info.{name}": value for name, value in info.items()})
    refusal = stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"]
    assert refusal["result"] is False
    assert why in refusal["reason"]


def test_a_deployment_without_an_agent_says_that_nothing_is_proved(stage, available):
    iso = {"boot_iso": "http://images.test/rescue.iso"}
    stage.patch(available, deploy_interface="ramdisk", instance_info=iso)
    answer = stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"]
    assert answer["result"] is True
    assert "driver_info/attestation_ek" in answer["reason"]


# --------------------------------------------------------------------------------- learning


@pytest.fixture
def unknown(stage, node) -> str:
    """A node whose machine was never seen."""
    info = dict(stage.site.node(node).driver_info)
    del info["attestation_ek"]
    stage.site.set(node, driver_info=rows.dump(info))
    return str(node)


def test_a_node_without_a_key_is_not_asked(stage, unknown, ramdisk):
    stage.site.set(unknown, provision_state="available")
    assert deploy(stage, ramdisk, unknown)["provision_state"] == "active"
    assert not set(QUESTIONS) & set(ramdisk.server.told)


def test_a_key_is_learnt_once_and_compared_from_then_on(stage, unknown, ramdisk, server):
    learn = LEARN | {"args": {"pcrs": [7, 0]}}
    shown = clean(stage, ramdisk, unknown, learn)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    info = shown["driver_info"]
    assert info["attestation_ek"] == shown["driver_internal_info"]["attestation"]["endorsement_key"]
    assert info["attestation_pcrs"] == {"0": "00" * 32, "7": "00" * 32}
    assert clean(stage, ramdisk, unknown, VERIFY)["provision_state"] == "manageable"
    failed = clean(stage, ramdisk, unknown, learn)
    assert "names an endorsement key already: remove it first" in failed["last_error"]
    stage.patch(unknown, maintenance=False)
    stage.site.set(unknown, provision_state="manageable")
    server.tpm = SoftwareTpm()
    assert "has another TPM" in clean(stage, ramdisk, unknown, VERIFY)["last_error"]


def test_nothing_is_learnt_of_a_machine_that_has_booted_something_else(
    stage, unknown, ramdisk, tpm
):
    tpm.wrong = "log"
    assert clean(stage, ramdisk, unknown, LEARN)["provision_state"] == "clean failed"
    assert "attestation_ek" not in stage.show(unknown)["driver_info"]


@pytest.mark.parametrize("pcrs", ["0", [24], [True], [-1], {"0": 1}])
def test_pcrs_that_are_none_are_not_learnt(stage, unknown, ramdisk, pcrs):
    shown = clean(stage, ramdisk, unknown, LEARN | {"args": {"pcrs": pcrs}})
    assert "argument pcrs takes a list of numbers from 0 to 23" in shown["last_error"]


def test_a_site_may_let_no_machine_go_unproved(stage, unknown, ramdisk):
    direct = stage.site.runtime.registry.interfaces["deploy"]["direct"]
    proof = direct.attestation
    agent = dataclasses.replace(proof._conf.agent, require_attestation=True)
    proof._conf = dataclasses.replace(proof._conf, agent=agent)
    refusal = stage.api.get(f"/v1/nodes/{unknown}/validate").json["deploy"]
    assert "driver_info/attestation_ek is missing" in refusal["reason"]
    stage.ask(unknown, "provide")
    failed = ramdisk.live_until(unknown, "available", "clean failed")
    assert "learn it by the clean step learn_endorsement_key" in failed["last_error"]
    assert ramdisk.server.told[-1] == QUESTIONS[0]


# ------------------------------------------------------------------------------ makers of TPMs


@pytest.mark.parametrize("asks_makers", [True])
def test_a_machine_whose_tpm_a_trusted_maker_has_certified_is_deployed(
    stage, available, ramdisk, tpm, maker
):
    stage.patch(available, **{"driver_info.attestation_ek": maker.certify(tpm.endorsement_key)})
    shown = deploy(stage, ramdisk, available)
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    other = maker.certify(SoftwareTpm().endorsement_key)
    stage.patch(available, **{"driver_info.attestation_ek": other})
    stage.ask(available, "deleted")
    error = ramdisk.live_until(available, "available", "clean failed")["last_error"]
    assert "the machine has another TPM" in error


@pytest.mark.parametrize("asks_makers", [True])
@pytest.mark.parametrize("kind", ["key", "certificate of a stranger"])
def test_a_key_of_no_trusted_maker_is_refused_before_the_machine_boots(
    stage, available, ramdisk, tpm, kind
):
    if kind != "key":
        certificate = Maker("the maker").certify(tpm.endorsement_key)
        stage.patch(available, **{"driver_info.attestation_ek": certificate})
    answer = stage.api.put(f"/v1/nodes/{available}/states/provision", {"target": "active"})
    assert answer.status == 400
    assert "driver_info/attestation_ek is not of a trusted TPM" in answer.said
    assert ramdisk.server.told == []
    validation = stage.api.get(f"/v1/nodes/{available}/validate").json
    assert "is not of a trusted TPM" in validation["deploy"]["reason"]


def der(certificate: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate)


@pytest.mark.parametrize("asks_makers", [True])
def test_a_key_is_learnt_with_the_certificate_of_a_trusted_maker(stage, node, ramdisk, tpm, maker):
    stage.patch(node, **{"driver_info.attestation_ek": None})
    certificate = maker.certify(tpm.endorsement_key)
    tpm.certificate = der(certificate) + 50 * b"\xff"  # that fills the TPM's memory
    assert clean(stage, ramdisk, node, LEARN)["last_error"] is None
    assert stage.show(node)["driver_info"]["attestation_ek"] == certificate
    assert clean(stage, ramdisk, node, VERIFY)["last_error"] is None


@pytest.mark.parametrize("asks_makers", [True])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("none", "asks for the certificate of the endorsement key, and the machine's TPM shows"),
        ("a stranger's", "cannot learn the endorsement key: driver_info/attestation_ek is not of"),
        ("another key's", "the certificate that the machine's TPM shows is that of another key"),
        ("garbage", "the TPM's certificate cannot be read"),
    ],
)
def test_a_key_without_its_certificate_is_not_learnt(stage, node, ramdisk, tpm, maker, kind, why):
    stage.patch(node, **{"driver_info.attestation_ek": None})
    tpm.certificate = {
        "none": None,
        "a stranger's": der(Maker("the maker").certify(tpm.endorsement_key)),
        "another key's": der(maker.certify(SoftwareTpm().endorsement_key)),
        "garbage": b"0\x82\x00\x04 abc",
    }[kind]
    assert why in clean(stage, ramdisk, node, LEARN)["last_error"]
    assert stage.show(node)["driver_info"]["attestation_ek"] is None
