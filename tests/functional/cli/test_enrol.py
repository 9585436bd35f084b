"""``bloomery enrol``: machines of files become nodes, once, and no password is shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli.client import Client
from bloomery.conf.default import Default
from tests.functional.cli.conftest import Run
from tests.invariants.test_docs import ROOT, words_after
from tests.kit.servers.orchestration import Orchestration

SECRET = "hunter2hunter2"
CSV = """\
name,driver,bmc,username,password,macs,resource_class,properties.rack
csv-1,redfish,https://10.0.8.1,admin,hunter2hunter2,52:54:00:12:34:56 52-54-00-12-34-57,bm.small,r1
csv-2,ipmi,10.0.8.2,admin,hunter2hunter2,52:54:00:12:34:58,,
"""
YAML = """\
nodes:
- name: yaml-1
  bmc: http://10.0.1.1:8000
  username: admin
  password: hunter2hunter2
  macs: [52:54:00:12:35:01]
- name: yaml-2
  driver: fake-hardware
  driver_info: {fake_password: 0123}
  ports: [{address: "52:54:00:12:35:02", physical_network: rack-1}]
  extra: {asset: 0042}
"""
INSTACKENV = {
    "nodes": [
        {
            "name": "stack-1", "pm_type": "ipmi", "pm_addr": "10.0.2.1", "pm_port": 6230,
            "pm_user": "admin", "pm_password": SECRET, "mac": ["52:54:00:12:36:01"],
            "cpu": "8", "memory": "65536", "disk": "400", "arch": "x86_64", "profile": "compute",
        },
        {
            "name": "stack-2", "pm_type": "redfish", "pm_addr": "10.0.2.2", "pm_user": "admin",
            "pm_password": SECRET, "pm_system_id": "/redfish/v1/Systems/1",
            "ports": [{"address": "52:54:00:12:36:02"}],
        },
    ]
}  # fmt: skip
METAL3 = f"""\
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {{name: host-1, namespace: metal3}}
spec:
  online: true
  bootMode: UEFI
  bootMACAddress: 52:54:00:12:37:01
  rootDeviceHints: {{minSizeGigabytes: 100}}
  bmc:
    address: redfish-uefihttp+http://10.0.3.1:8000/redfish/v1/Systems/1
    credentialsName: host-1-bmc
    disableCertificateVerification: true
---
apiVersion: v1
kind: Secret
metadata: {{name: host-1-bmc, namespace: metal3}}
data:
  username: {base64.b64encode(b"admin").decode()}
  password: {base64.b64encode(SECRET.encode()).decode()}
"""
FILES = {
    "machines.csv": CSV, "machines.yaml": YAML, "instackenv.json": json.dumps(INSTACKENV, indent=1),
    "hosts.yaml": METAL3,
}  # fmt: skip

PAGE = ROOT / "doc/guides/enrol.md"

Write = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    types = Default(enabled_hardware_types=("fake-hardware", "redfish", "ipmi"))
    with Orchestration(tmp_path_factory.mktemp("site") / "state", default=types) as running:
        yield running


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return written


def nodes(api: Client) -> dict[str, Any]:
    return {each["name"]: each for each in api.get("/v1/nodes/detail")["nodes"]}


def macs(api: Client) -> list[str]:
    return sorted(each["address"] for each in api.get("/v1/ports")["ports"])


def test_machines_of_every_format_are_enrolled_once(run: Run, api: Client, file: Write) -> None:
    paths = " ".join(str(file(name, text)) for name, text in FILES.items())
    dry = run(f"enrol {paths} --dry-run")
    assert (dry.exit_code, dry.stdout.splitlines()[-1]) == (0, "7 machines: 7 create"), dry.output
    assert nodes(api) == {}
    first = run(f"enrol {paths}")
    assert (first.exit_code, first.stdout.splitlines()[-1]) == (0, "7 machines: 7 enrolled"), (
        first.output
    )
    for place in ("instackenv.json:3: left out: profile", "hosts.yaml:1: left out: spec.online"):
        assert place in first.stderr
    there = nodes(api)
    assert sorted(there) == [
        "csv-1", "csv-2", "host-1", "stack-1", "stack-2", "yaml-1", "yaml-2"
    ]  # fmt: skip
    infos = {name: node["driver_info"] for name, node in there.items()}
    assert infos["csv-1"] == {
        "redfish_address": "https://10.0.8.1", "redfish_username": "admin",
        "redfish_password": "******",
    }  # fmt: skip
    assert infos["stack-1"]["ipmi_port"] == 6230
    assert infos["host-1"]["redfish_address"] == "http://10.0.3.1:8000"
    assert infos["host-1"]["redfish_verify_ca"] is False
    assert there["host-1"]["boot_interface"] == "redfish-https"
    assert there["host-1"]["properties"] == {
        "root_device": {"size": ">= 100"}, "capabilities": "boot_mode:uefi",
    }  # fmt: skip
    assert there["csv-1"]["properties"] == {"rack": "r1"}
    assert there["stack-1"]["properties"]["memory_mb"] == "65536"
    assert there["yaml-2"]["extra"] == {"asset": "0042"}
    assert len(macs(api)) == 8

    removed = api.get("/v1/ports?address=52:54:00:12:34:57")["ports"][0]["uuid"]
    api.delete(f"/v1/ports/{removed}")
    again = run(f"enrol {paths}")
    last = "7 machines: 1 ports added, 6 is there"
    assert (again.exit_code, again.stdout.splitlines()[-1]) == (0, last)
    assert (len(nodes(api)), len(macs(api))) == (7, 8)
    for result in (dry, first, again):
        assert SECRET not in result.output

    other = file("other.csv", CSV.replace("csv-", "new-"))
    refused = run(f"enrol {other} --json")
    assert refused.exit_code == 1
    rows = json.loads(refused.stdout)
    assert rows[1]["errors"][0] == (
        "bmc: 10.0.8.2:623 is that of node csv-2; leave the row out, or delete it"
    )
    assert "52:54:00:12:34:58 is that of node" in rows[1]["errors"][1]
    renamed = run(f"enrol {file('renamed.csv', CSV.replace('10.0.8.1', '10.0.8.9'))}")
    assert "renamed.csv:2: name: node csv-1 is there with another BMC" in renamed.stderr
    assert len(nodes(api)) == 7


def test_child_nodes_are_found_by_a_second_run(run: Run, tmp_path: Path):
    file = tmp_path / "hosts.csv"
    file.write_text(
        "name,driver,macs,parent_node\nparent-1,fake-hardware,52:54:00:12:99:01,\n"
        "dpu-1,fake-hardware,52:54:00:12:99:02,parent-1\n"
    )
    ends = [run(f"enrol {file}").stdout.splitlines()[-1] for _ in range(2)]
    assert ends == ["2 machines: 2 enrolled", "2 machines: 2 is there"]


NO_SECRET = "no Secret host-1-bmc in namespace metal3; name its file, too"
FAULTS = {
    "a.csv": (
        """\
name,driver,bmc,password,macs,colour
bad-1,redfish,,hunter2hunter2,52:54:00:12:34:5,red
bad-2,redfish,https://me:hunter2hunter2@10.0.9.1,,52:54:00:99:00:01,
bad-3,redfish,https://10.0.9.3,,52:54:00:99:00:01,
bad-3,manual-management,,,,
""",
        [
            "a.csv:2: bmc: the address of the BMC, which the driver redfish needs, is missing",
            "a.csv:2: macs: '52:54:00:12:34:5' is no MAC such as 52:54:00:12:34:56",
            "a.csv:2: colour: no field of a node. Leave it out, or write extra.colour",
            "a.csv:3: bmc: it has a login; move it to username and password",
            "a.csv:4: macs: 52:54:00:99:00:01 is that of bad-2 (a.csv:3), too; remove one of them",
            "a.csv:5: name: bad-3 is that of bad-3 (a.csv:4), too; remove one of them",
        ],
    ),
    "b.yaml": (
        METAL3.split("---", maxsplit=1)[0].replace("bootMode: UEFI", "bootMode: EFI"),
        [
            f"b.yaml:1: spec.bmc.credentialsName: {NO_SECRET}",
            "b.yaml:1: spec.bootMode: one of UEFI, legacy, UEFISecureBoot",
        ],
    ),
    "c.json": (
        '{"nodes": [{"pm_type": "pxe_ssh", "pm_addr": "10.0.9.5", "name": "x"}]}',
        ["c.json:1: pm_type: no driver for pxe_ssh; use ipmi or redfish"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_their_row_and_nothing_is_created(
    run: Run, api: Client, file: Write, name: str
) -> None:
    text, faults = FAULTS[name]
    before = nodes(api)
    result = run(f"enrol {file(name, text)}")
    assert result.exit_code == 1
    assert [each for each in faults if each not in result.stderr.splitlines()] == [], result.stderr
    assert "nothing was created; correct the rows, and run it again" in result.stderr
    assert SECRET not in result.output
    assert nodes(api) == before


def test_a_row_that_the_service_refuses_stops_no_other(run: Run, api: Client, file: Write) -> None:
    rows = f"name,driver,resource_class\nodd-1,fake-hardware,{'x' * 99}\nodd-2,fake-hardware,\n"
    result = run(f"enrol {file('odd.csv', rows)}")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        1, "2 machines: 1 refused, 1 enrolled"
    )  # fmt: skip
    assert "odd.csv:2: " in result.stderr
    assert "odd-2" in nodes(api)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("bad.yaml", f"nodes:\n- password: {SECRET}\n  b: [\n", "bad.yaml, line 4"),
        ("bad.json", f'{{"nodes": [{{"password": "{SECRET}"', "bad.json, line 1"),
        ("bad.csv", f"name,password\nx,{SECRET},more\n", "bad.csv:2: the line needs 2 cells"),
        ("word.yaml", SECRET, "word.yaml:1: it needs a list of machines"),
    ],
)
def test_an_unreadable_file_is_named_with_the_line_and_not_quoted(
    run: Run, file: Write, name: str, text: str, error: str
) -> None:
    result = run(f"enrol {file(name, text)}")
    assert result.exit_code == 1
    assert error in result.stderr
    assert SECRET not in result.output


def test_the_commands_of_the_page_enrol_the_machines_of_the_page(
    run: Run, api: Client, file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for kind in ("csv", "yaml"):
        file(f"machines.{kind}", text.split(f"```{kind}\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    lines = [" ".join(words) for words in words_after(PAGE, "bloomery") if "machines.csv" in words]
    results = [run(line) for line in lines]
    assert [result.exit_code for result in results] == [0, 0, 0], results[0].output
    assert {each["action"] for each in json.loads(results[2].stdout)} == {"is there"}
    assert {"web-1", "web-2", "db-1", "db-2"} <= set(nodes(api))
