"""The check of a BMC: reads alone, few of them, and what each make shows."""

from __future__ import annotations

import io
import json
import re
import threading
import types
import urllib.request

import pycdlib
import pytest
from click.testing import CliRunner

from bloomery.cli.service import boot_media
from bloomery.cli.service.bmc import bmc as command
from bloomery.drivers.bmc.state import MOST_REQUESTS
from bloomery.lab import models
from bloomery.lab import system as lab_system
from bloomery.lab.bmc import Rules
from bloomery.lab.tls import certificate
from tests.functional.redfish.conftest import enrol

FEATURES = [
    "power", "boot device", "boot mode", "virtual media", "BIOS", "RAID", "firmware update",
    "secure boot", "event service", "sensors",
]  # fmt: skip
MISSING = {
    "generic": set(),
    "dmtf-rackmount1": {"RAID"},
    "hpe-ilo6": set(),
    "hpe-ilo5": {"RAID"},
    "supermicro-x10": {"boot mode", "virtual media", "RAID", "secure boot"},
    "openbmc-gb300": {"boot mode"},
    "nvidia-gb200": {"boot mode"},
    "dell-idrac": set(),
    "lenovo-xcc": set(),
}
UNTYPED = ": BIOS settings have no types and limits, and values are sent unchecked"
QUIRKS = {
    "generic": [],
    "dmtf-rackmount1": [],
    "hpe-ilo6": [f"it shows no attribute registry BiosAttributeRegistryU54.v1_40{UNTYPED}"],
    "hpe-ilo5": [],
    "supermicro-x10": [
        f"it shows no attribute registry LabBios.1.0{UNTYPED}",
        "it links to /redfish/v1/Systems/1/Storage and does not show it",
        "it does not list its resets: any is sent",
        "it shows no boot mode: set capabilities boot_mode in properties",
        "its virtual CD boots as CD/DVD",
    ],
    "openbmc-gb300": [
        f"it shows no attribute registry{UNTYPED}",
        "it shows no boot mode: set capabilities boot_mode in properties",
        "its virtual CD boots as Usb",
    ],
    "nvidia-gb200": [
        f"it shows no attribute registry{UNTYPED}",
        "it shows no boot mode: set capabilities boot_mode in properties",
        "its virtual CD boots as Usb",
    ],
    "dell-idrac": [],
    "lenovo-xcc": [
        "it links to /redfish/v1/Chassis/3 and does not show it",
    ],
}


@pytest.fixture(autouse=True)
def quiet(stage):
    """Let no periodic ask in between."""
    stage.site.service.periodics.stop()


def check(stage, node):
    answer = stage.api.get(f"/ext/v1/nodes/{node}/bmc")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize("model", models.ALL)
def test_each_make_is_checked_by_few_reads(stage, make_rack, model) -> None:
    machine = make_rack(model=model).machines[0]
    report = check(stage, enrol(stage, machine))
    assert machine.bmc.requests <= MOST_REQUESTS
    assert (report["protocol"], report["usable"], report["error"]) == ("redfish", True, None)
    assert [each["name"] for each in report["checks"]] == FEATURES
    lacking = {each["name"] for each in report["checks"] if not each["works"]}
    assert (lacking, report["quirks"]) == (MISSING[model], QUIRKS[model])
    assert report["driver_info"] == machine.driver_info | {
        "redfish_password": "******", "redfish_system_id": machine.system_id.rstrip("/"),
    }  # fmt: skip


def test_a_check_changes_nothing(stage, machine) -> None:
    node = enrol(stage, machine)
    before = stage.show(node)
    report = check(stage, node)
    assert not machine.system.history
    assert stage.show(node) == before
    assert report["sessions_in_use"] == 1
    assert abs(report["clock_difference_s"]) < 60
    assert report["latency"]["count"] == machine.bmc.requests
    assert report["tls"] is None


def test_values_that_the_bmc_allows_are_shown(stage, machine) -> None:
    checks = {each["name"]: each for each in check(stage, enrol(stage, machine))["checks"]}
    assert "ForceOff" in checks["power"]["allowed"]
    assert checks["boot mode"] == {
        "name": "boot mode", "works": True, "detail": "uefi", "allowed": ["uefi", "bios"],
    }  # fmt: skip
    assert checks["RAID"]["allowed"] == ["RAID0", "RAID1"]
    assert checks["firmware update"]["allowed"] == ["HTTP", "HTTPS"]


def test_a_bmc_with_many_parts_is_not_read_to_the_end(stage, make_rack) -> None:
    machine = make_rack(disks_gib=(100,) * 99, media=[(f"CD{n}", ("CD",)) for n in range(99)])
    machine = machine.machines[0]
    machine.bmc.faults.add(
        kind="status", status=500, times=-1, path="/(UpdateService|EventService|SecureBoot|Bios)"
    )
    report = check(stage, enrol(stage, machine))
    assert machine.bmc.requests <= MOST_REQUESTS
    assert report["usable"]


def test_a_silent_bmc_and_a_wrong_password_are_errors_of_the_report(stage, make_rack) -> None:
    machine, other = make_rack(2).machines
    report = check(stage, enrol(stage, machine, redfish_password="wrong"))
    assert not report["usable"]
    assert report["error"].startswith("the user name or the password (HTTP 401")
    assert (report["checks"], report["driver_info"]["redfish_password"]) == ([], "******")
    report = check(stage, enrol(stage, other, redfish_address="http://127.0.0.1:9"))
    assert report["error"] == "Connection refused"


def test_a_bmc_of_several_systems_names_them(stage, make_rack) -> None:
    machine = make_rack(2, apart=False).machines[0]
    node = enrol(stage, machine, redfish_system_id=None)
    assert machine.system_id in check(stage, node)["error"]


def test_sessions_that_are_missing_are_a_quirk(stage, make_rack) -> None:
    machine = make_rack(rules=Rules(max_sessions=0)).machines[0]
    report = check(stage, enrol(stage, machine))
    assert report["quirks"] == ["it opens no session: each request sends the password"]


def test_tls_is_described_whether_or_not_it_is_trusted(stage, make_rack, tmp_path) -> None:
    pair = certificate(tmp_path)
    machine, other = make_rack(2, tls=pair).machines
    report = check(stage, enrol(stage, machine, redfish_verify_ca=pair[0]))
    assert (report["usable"], report["tls"]["verified"]) == (True, True)
    assert report["tls"]["version"] == "TLSv1.3"
    report = check(stage, enrol(stage, other))
    assert report["error"].startswith("TLS refused: certificate verify failed")
    assert report["tls"]["expires_at"]


def test_a_node_without_a_bmc_is_refused(make_site) -> None:
    from tests.kit.servers.stories import Stage

    stage = Stage(make_site())
    answer = stage.api.get(f"/ext/v1/nodes/{stage.enrol()}/bmc")
    assert answer.status == 400
    assert "does not support examine_bmc" in str(answer.body)


# ------------------------------------------------------------------------------- the command


def run(*words, password="password"):
    return CliRunner().invoke(command, ["check", *words], env={"BLOOMERY_BMC_PASSWORD": password})


def test_the_command_shows_what_works_and_what_to_write(machine) -> None:
    shown = run(machine.address, "--username", "admin")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith(f"redfish at {machine.address}: usable\n")
    assert f"driver_info: redfish_system_id={machine.system_id}" in shown.output
    assert "driver_info: redfish_password=******" in shown.output
    assert machine.bmc.requests <= MOST_REQUESTS
    assert not machine.bmc.live_sessions()


def test_the_command_prints_the_report_of_the_endpoint(stage, machine) -> None:
    shown = run(machine.address, "--username", "admin", "--json")
    (report,) = json.loads(shown.output)
    of_node = check(stage, enrol(stage, machine))
    volatile = ("latency", "clock_difference_s")
    assert {k: v for k, v in report.items() if k not in volatile} == {
        k: v for k, v in of_node.items() if k not in volatile
    }


def test_the_command_fails_where_the_login_is_refused(machine, tmp_path) -> None:
    file = tmp_path / "password"
    file.write_text("wrong-one\n")
    shown = run(machine.address, "--username", "admin", "--password-file", str(file))
    assert shown.exit_code == 1
    assert "error: the user name or the password" in shown.output
    assert "wrong-one" not in shown.output


def test_a_password_on_the_command_line_is_refused(machine) -> None:
    shown = run(machine.address, "--driver-info", "redfish_password=secret")
    assert shown.exit_code == 2
    assert "use --password-file" in shown.output


# --------------------------------------------------------------------------- its boot media

INSERT = r"/VirtualMedia/[^/]+/Actions/VirtualMedia.InsertMedia"


def run_media(machine, *words):
    return run(
        machine.address, "--username", "admin", "--boot-media", "--json", "--wait", "0",
        "--driver-info", f"redfish_system_id={machine.system_id}", *words,
    )  # fmt: skip


def media_of(shown):
    (report,) = json.loads(shown.stdout)
    return report["boot_media"]


@pytest.mark.parametrize("model", models.ALL)
def test_a_cd_is_inserted_and_ejected_and_the_power_stays(make_rack, model) -> None:
    machine = make_rack(model=model).machines[0]
    before = machine.system.shown()
    shown = run_media(machine)
    result = media_of(shown)
    if "virtual media" in MISSING[model]:
        assert (shown.exit_code, result["result"]) == (1, "failed")
        assert "offers no virtual CD or DVD" in result["reason"]
        return
    assert (shown.exit_code, result["result"], result["left"]) == (0, "not fetched", None)
    inserted, ejected = machine.system.happened
    assert inserted.startswith(f"media inserted: {result['served_at']}/boot-files/")
    assert ejected == "media ejected"
    assert machine.system.shown() | {"history": []} == before


def test_the_requests_of_the_bmc_are_shown(make_rack, monkeypatch) -> None:
    def fetch(url: str) -> int:
        for method, more in (("HEAD", {}), ("GET", {"Range": "bytes=0-99"})):
            headers = {"User-Agent": "BMC 1.0"} | more
            asked = urllib.request.Request(url, method=method, headers=headers)
            urllib.request.urlopen(asked, timeout=10).read()
        return 100

    monkeypatch.setattr(lab_system, "_fetch", fetch)
    machine = make_rack(fetch=True).machines[0]
    result = media_of(run_media(machine))
    assert result["result"] == "fetched"
    whole, part = result["requests"]
    assert (whole["method"], whole["status"], whole["bytes"], whole["range"]) == (
        "HEAD", 200, 0, None,
    )  # fmt: skip
    assert (part["method"], part["status"], part["bytes"], part["range"]) == (
        "GET", 206, 100, "bytes=0-99",
    )  # fmt: skip
    assert {each["client"] for each in (whole, part)} == {"127.0.0.1"}
    assert 0 <= whole["after_s"] <= part["after_s"]
    lines = run(machine.address, "--username", "admin", "--boot-media").output.splitlines()
    shown = [line.strip() for line in lines if line.startswith("  boot media: ")]
    assert shown[0].startswith("boot media: fetched from http://127.0.0.1:")
    assert re.fullmatch(
        r"boot media: GET by 127\.0\.0\.1 after \d+\.\d s: 206, 100 bytes, range bytes=0-99,"
        r" User-Agent BMC 1\.0",
        shown[2],
    )


def test_a_head_is_no_fetch(make_rack, monkeypatch) -> None:
    def fetch(url: str) -> int:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=10).close()
        return 0

    monkeypatch.setattr(lab_system, "_fetch", fetch)
    result = media_of(run_media(make_rack(fetch=True).machines[0]))
    assert (result["result"], len(result["requests"])) == ("not fetched", 1)


def test_the_cd_is_a_readable_iso(make_rack, monkeypatch) -> None:
    contents: list[bytes] = []

    def fetch(url: str) -> int:
        with urllib.request.urlopen(url, timeout=10) as answer:
            contents.append(answer.read())
        return len(contents[0])

    monkeypatch.setattr(lab_system, "_fetch", fetch)
    assert media_of(run_media(make_rack(fetch=True).machines[0]))["result"] == "fetched"
    iso = pycdlib.PyCdlib()
    iso.open_fp(io.BytesIO(contents[0]))
    assert len(contents[0]) < 100_000


def test_somebodys_medium_stays(machine) -> None:
    machine.system.insert("http://images.test/mine.iso?token=secret")
    shown = run_media(machine)
    result = media_of(shown)
    assert (shown.exit_code, result["result"], result["requests"]) == (1, "not tried", [])
    assert "http://images.test/mine.iso" in result["reason"]
    assert "token" not in result["reason"]
    assert machine.system.media["Cd"].startswith("http://images.test/mine.iso")


def test_a_medium_that_another_one_inserts_meanwhile_stays(make_rack, monkeypatch) -> None:
    media = [("Cd", ("CD",)), ("Second", ("CD",))]
    machine = make_rack(fetch=True, media=media).machines[0]

    def fetch(url: str) -> int:
        machine.system.media["Second"] = "http://images.test/other.iso"
        return 0

    monkeypatch.setattr(lab_system, "_fetch", fetch)
    result = media_of(run_media(machine))
    assert machine.system.media == {"Cd": None, "Second": "http://images.test/other.iso"}
    assert result["left"] == "the BMC still shows http://images.test/other.iso"


def test_a_refusal_is_told_in_the_words_of_the_bmc(machine) -> None:
    machine.bmc.faults.add(kind="status", status=400, times=-1, path=INSERT)
    shown = run_media(machine)
    result = media_of(shown)
    assert (shown.exit_code, result["result"], result["left"]) == (1, "failed", None)
    assert result["reason"].startswith("HTTP 400")


def test_a_cd_is_ejected_after_an_insertion_that_fails_and_works(machine) -> None:
    machine.bmc.faults.add(kind="after", status=400, times=-1, path=INSERT)
    shown = run_media(machine)
    assert (shown.exit_code, media_of(shown)["result"]) == (1, "failed")
    assert machine.system.happened[-1] == "media ejected"


def test_a_cd_that_stays_is_named(machine) -> None:
    machine.bmc.faults.add(kind="status", status=500, times=-1, path="EjectMedia")
    shown = run(machine.address, "--username", "admin", "--boot-media", "--wait", "0")
    assert shown.exit_code == 1
    assert "boot media: the CD may still be inserted; eject it: " in shown.output


def test_ctrl_c_ends_the_wait_and_ejects(machine, monkeypatch) -> None:
    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    monkeypatch.setattr(boot_media, "threading", types.SimpleNamespace(Event=Interrupted))
    shown = run_media(machine)
    assert (shown.exit_code, media_of(shown)["result"]) == (1, "interrupted")
    assert machine.system.happened[-1] == "media ejected"


@pytest.mark.parametrize("listen", ["0.0.0.0", "", "127.0.0.1:port", "a@127.0.0.1", "x/y"])
def test_an_address_that_no_bmc_reaches_is_refused(machine, listen) -> None:
    shown = run_media(machine, "--listen", listen)
    assert shown.exit_code == 2
    assert "give --listen the HOST[:PORT] that the BMC reaches" in " ".join(shown.output.split())


def test_the_address_is_the_one_that_was_named(make_rack) -> None:
    shown = run_media(make_rack(fetch=True).machines[0], "--listen", "localhost")
    result = media_of(shown)
    assert result["result"] == "fetched"
    assert result["served_at"].startswith("http://localhost:")


def test_boot_media_by_ipmi_are_refused() -> None:
    shown = run("127.0.0.1", "--protocol", "ipmi", "--boot-media")
    assert shown.exit_code == 2
    assert "use --protocol redfish" in shown.output
