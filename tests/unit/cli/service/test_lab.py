from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from bloomery.cli.enrol import machines
from bloomery.cli.main import main
from bloomery.cli.service import lab
from bloomery.conf.api import Api
from bloomery.conf.engine import Orchestration
from bloomery.lab import models
from bloomery.lab.rack import Rack


def test_a_rack_says_how_to_enrol_its_machines(capsys):
    with Rack(2) as rack:
        lab.echo_rack(rack)
    said = capsys.readouterr().out
    for machine in rack.machines:
        assert f"{machine.name}  {machine.address}  {machine.system_id}  {machine.mac}" in said
    assert "baremetal node create --driver redfish --name sim-0000" in said
    assert f"--driver-info redfish_address={rack.address}" in said
    assert "baremetal port create --node $(baremetal node show sim-0000 -f value -c uuid)" in said
    assert "baremetal node deploy sim-0000 --wait" in said


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    program = "from bloomery.cli.main import main; main()"
    file = tmp_path / "rack.json"
    words = [sys.executable, "-c", program, "lab", "up", "--nodes", "1", "--port", "0",
             "--first-address", "127.1.0.1", "--answer-seconds", "0.01",
             "--write", str(file), "--switches", str(tmp_path / "switches.conf")]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as rack:
        assert rack.stdout is not None
        assert next(rack.stdout).startswith("1 servers at http://127.1.0.1:")
        assert any("Ctrl-C switches the rack off" in line for line in rack.stdout)
        assert any("Ports of switch tor-2" in line for line in rack.stdout)
        [entry] = machines.read([file], "redfish")
        assert (entry.machine.name, entry.faults) == ("sim-0000", ())
        assert "[switch:tor-2]" in (tmp_path / "switches.conf").read_text()
        rack.send_signal(signal.SIGINT)
        said, _ = rack.communicate(timeout=20)
    assert (rack.returncode, said) == (0, "\nthe rack is off\n")


def test_a_rack_that_stands_apart_leaves_a_service_its_ports():
    [first] = [each.default for each in lab.up.params if each.name == "port"]
    assert {Api().port, Orchestration().port}.isdisjoint(range(first, first + 1000))


@pytest.mark.parametrize("address", ["10.0.0.1", "::1", "bmc"])
def test_bmcs_have_addresses_of_this_host_alone(address):
    refused = CliRunner().invoke(main, ["lab", "up", "--port", "0", "--first-address", address])
    assert refused.exit_code == 2
    assert f"cannot serve at {address}: write an address such as 127.1.0.1" in refused.output


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    words = ["up", "--nodes", "1", "--port", "0", "--write", str(tmp_path / "no/rack.json")]
    refused = CliRunner().invoke(main, ["lab", *words])
    assert refused.exit_code == 1
    assert "rack.json: No such file or directory; choose another --write" in refused.output


def test_the_makes_are_listed_with_what_they_are():
    shown = CliRunner().invoke(lab.lab, ["models"])
    assert [line.split()[0] for line in shown.output.splitlines()] == list(models.ALL)
    assert "hpe-ilo6         HPE iLO 6: " in shown.output


def test_a_rack_of_a_make_stands_apart_and_is_enrolled_by_its_own_paths(capsys):
    with Rack(2, model="dell-idrac") as rack:
        lab.echo_rack(rack)
    said = capsys.readouterr().out
    assert len({machine.address for machine in rack.machines}) == 2
    assert "--driver-info redfish_system_id=/redfish/v1/Systems/System.Embedded.1 " in said


def test_a_make_that_is_unknown_is_told_with_those_that_are():
    shown = CliRunner().invoke(lab.lab, ["up", "--model", "vax"])
    assert shown.exit_code == 2
    assert "'vax' is not one of 'generic', 'dmtf-rackmount1'" in shown.output


def test_a_scenario_is_served_with_a_page_of_what_happens(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("groups:\n  web: {count: 1}\n  gpu: {count: 1, model: dell-idrac}\n")
    written = tmp_path / "nodes.json"
    program = "from bloomery.cli.main import main; main()"
    words = [sys.executable, "-c", program, "lab", "up", "--scenario", str(file), "--port", "0",
             "--write", str(written)]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as rack:
        assert rack.stdout is not None
        url = next(line.split()[-1] for line in rack.stdout if line.startswith("What happens:"))
        rack.send_signal(signal.SIGINT)
    entries = machines.read([written], "redfish")
    assert [entry.machine.name for entry in entries] == ["web-0000", "gpu-0000"]
    assert url.endswith("/lab")


def test_options_that_a_scenario_has_keys_for_are_refused():
    words = ["lab", "up", "--scenario", str(lab.EXAMPLE), "--nodes", "3"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "cannot use --nodes with --scenario: write it into the file" in refused.output


def test_the_example_is_printed_whole():
    assert CliRunner().invoke(lab.lab, ["example"]).output == lab.EXAMPLE.read_text()


def test_a_page_and_its_events_need_no_password():
    with Rack(2) as rack:
        with urllib.request.urlopen(f"{rack.address}/lab") as answer:
            page = answer.read().decode()
            assert answer.headers["Content-Type"] == "text/html"
        rack.machines[0].system.note("hello")
        with urllib.request.urlopen(f"{rack.address}/lab/events") as answer:
            shown = json.load(answer)
    assert "fetch('/lab/events')" in page
    assert (shown["power"], shown["agents"], shown["faults"]) == ({"off": 2}, {}, {})
    assert [(each["machine"], each["event"]) for each in shown["events"]] == [("sim-0000", "hello")]
