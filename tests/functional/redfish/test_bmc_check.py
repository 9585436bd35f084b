"""The check of a BMC: reads alone, few of them, and what each make shows."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bloomery.cmd.bmc import bmc as command
from bloomery.drivers.bmc.report import MOST_REQUESTS
from bloomery.lab import models
from bloomery.lab.bmc import Rules
from tests.functional.redfish.conftest import enrol
from tests.kit.servers.tls import certificate

FEATURES = [
    "power", "boot device", "boot mode", "virtual media", "BIOS", "RAID", "firmware update",
    "secure boot", "event service", "sensors",
]  # fmt: skip
MISSING = {
    "generic": set(),
    "dmtf-rackmount1": {"RAID"},
    "hpe-ilo6": set(),
    "supermicro-x10": {"boot mode", "virtual media", "RAID", "secure boot"},
    "openbmc-gb300": {"boot mode"},
    "dell-idrac": set(),
    "lenovo-xcc": set(),
}
QUIRKS = {
    "generic": [],
    "dmtf-rackmount1": [],
    "hpe-ilo6": [],
    "supermicro-x10": [
        "it links to /redfish/v1/Systems/1/Storage and does not show it",
        "it does not list its resets: any is sent",
        "it shows no boot mode: set capabilities boot_mode in properties",
        "its virtual CD boots as CD/DVD",
    ],
    "openbmc-gb300": [
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
