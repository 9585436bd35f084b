"""The check of an IPMI BMC: a few commands that read."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bloomery.cli.service.bmc import bmc as command


def test_the_endpoint_shows_what_works(stage, machine):
    node = stage.enrol(driver="ipmi", driver_info=machine.driver_info)
    report = stage.api.get(f"/ext/v1/nodes/{node}/bmc").json
    assert (report["protocol"], report["usable"], report["error"]) == ("ipmi", True, None)
    assert {each["name"]: each["works"] for each in report["checks"]} == {
        "power": True, "boot device": True, "boot mode": True, "sensors": True,
        "serial console": True,
    }  # fmt: skip
    assert report["identity"]["version"] == "2.0"
    assert report["identity"]["bmc_firmware"] == "9.08"
    assert report["sessions_in_use"] == 1
    assert report["driver_info"] == machine.driver_info | {"ipmi_password": "******"}
    assert machine.calls == ["get power", "get boot"]


def test_the_command_asks_by_ipmi(machine, monkeypatch):
    monkeypatch.setenv("BLOOMERY_BMC_PASSWORD", "password")
    words = ["127.0.0.1", "--protocol", "ipmi", "--username", "admin", "--json"]
    words += ["--driver-info", f"ipmi_port={machine.port}", "--driver-info", "ipmi_cipher_suite=3"]
    shown = CliRunner().invoke(command, ["check", *words])
    assert shown.exit_code == 0, shown.output
    (report,) = json.loads(shown.output)
    assert report["address"] == f"127.0.0.1:{machine.port}"
