"""Mistakes of operators: each answer names the thing, the cause and the way out.

A row is what was typed, the exit code, and the words that the answer must have.  The code is 2 for
a wrong command line, file name or cloud, and 1 for a refusal by the service or a fault in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet
from bloomery.cli.main import main
from bloomery.conf.default import Default
from tests.kit.servers.orchestration import Orchestration

FILES = {
    "synonyms.csv": "Name,Address,MAC,user,pass\ns1,10.1.0.5,52:54:00:aa:00:01,root,x\n",
    "port.csv": "name,driver,address\ns2,fake-hardware,52:54:00:aa:00:02\n",
    "semicolons.csv": "name;driver;bmc\ns3;redfish;10.1.0.6\n",
    "colour.csv": "name,driver,resource_clas\ns4,fake-hardware,bm\n",
    "cells.csv": "name,driver\ns5,fake-hardware,more\n",
    "comma.json": '[{"name": "a",}]',
    "twice.json": '[{"name":"t1","driver":"fake-hardware","macs":["52:54:00:aa:00:03"]},'
    '{"name":"t2","driver":"fake-hardware","macs":["52:54:00:aa:00:03"]}]',
    "owned.yaml": "- {name: o1, driver: fake-hardware, macs: ['52:54:00:aa:00:09']}\n",
    "driver.yaml": "- {name: o2, driver: fake-hardwear}\n",
    "typo.yaml": "- {name: o3, bmc: 10.1.0.7, driver_info: {redfish_verfy_ca: false}}\n",
    "password.yaml": "- {name: typo, driver_info: {redfish_addres: 'https://10.1.0.8', "
    "redfish_username: me, redfish_password: hunter2hunter2}}\n",
    "mac.yaml": "- {name: o4, driver: fake-hardware, macs: ['52:54:00:aa:00']}\n",
    "empty.yaml": "",
    "word.yaml": "web-1\n",
    "typed.yaml": "heat_template_version: 2021-04-16\nresources:\n  a: {type: 'OS::Heat::Valu'}\n",
    "property.yaml": "heat_template_version: 2021-04-16\n"
    "resources:\n  a: {type: 'OS::Heat::Value', properties: {valeu: 1}}\n",
    "many.yaml": "heat_template_version: 2021-04-16\n"
    "resources:\n  a: {type: 'OS::Heat::Valu'}\n"
    "  b: {type: 'OS::Heat::Value', properties: {valeu: 1}}\n"
    "  c: {type: 'OS::Heat::RandomString', properties: {length: x}}\n",
    "version.yaml": "heat_template_version: 2099-01-01\n",
    "reference.yaml": "heat_template_version: 2021-04-16\n"
    "resources:\n  a: {type: 'OS::Heat::Value', properties: {value: {get_param: sise}}}\n",
    "parameter.yaml": "heat_template_version: 2021-04-16\nparameters:\n  size: {type: number}\n",
    "sound.yaml": "heat_template_version: 2021-04-16\n",
}


class Mistake(NamedTuple):
    typed: str
    code: int
    words: tuple[str, ...]


MISTAKES = (
    # verbs in the wrong state
    Mistake(
        "node deploy man",
        1,
        ("cannot deploy it while it is manageable", "first: bloomery node provide man --wait"),
    ),
    Mistake(
        "node deploy enr",
        1,
        (
            "while it is enroll",
            "bloomery node manage enr --wait && bloomery node provide enr --wait",
        ),
    ),
    Mistake(
        "node provide enr -y",
        1,
        ("cannot provide it while it is enroll", "first: bloomery node manage enr --wait"),
    ),
    Mistake("node provide ava -y", 1, ("it is available", "possible now: manage, deploy")),
    Mistake("node deploy act", 1, ("cannot deploy it while it is active", "rebuild, undeploy")),
    Mistake("node manage act", 1, ("cannot manage it while it is active", "undeploy")),
    Mistake(
        "node undeploy man -y", 1, ("cannot undeploy it while it is manageable", "possible now")
    ),
    Mistake("node delete act -y", 1, ("delete node act", "active", "maintenance")),
    Mistake("node deploy maint", 1, ("maint", "maintenance", "unset")),
    # names
    Mistake("node deploy nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node show nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node why nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node timeline nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node power on nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node retire nope", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake("node delete nope -y", 1, ("cannot find a node called nope", "bloomery node list")),
    Mistake(
        "node maintenance on nope", 1, ("cannot find a node called nope", "bloomery node list")
    ),
    Mistake("stack show nope", 1, ("cannot find a stack called nope", "bloomery stack list")),
    Mistake("stack why nope", 1, ("cannot find a stack called nope", "bloomery stack list")),
    Mistake("stack down nope -y", 1, ("cannot find a stack called nope", "bloomery stack list")),
    Mistake("stack events nope", 1, ("cannot find a stack called nope", "bloomery stack list")),
    # words of the command line
    Mistake("node lst", 2, ("No such command 'lst'", "Did you mean 'list'")),
    Mistake(
        "node list --state depoyed",
        2,
        ("there is no state 'depoyed'", "Did you mean 'deploy failed'", "active"),
    ),
    Mistake("node list --stat active", 2, ("--stat", "--state")),
    Mistake("node power of act", 2, ("'of'", "on", "off", "reboot")),
    Mistake("node maintenance unset act", 2, ("'unset'", "off")),
    Mistake("node deploy ava --set image_source", 2, ("--set needs KEY=VALUE", "image_source")),
    Mistake("node deploy ava --wait --timeout 0", 2, ("'0' is no time", "15m")),
    Mistake("node deploy ava --wait --timeout soon", 2, ("'soon' is no time", "15m")),
    Mistake("stack up {sound.yaml} s --timeout 4x", 2, ("'4x' is no time", "4h")),
    Mistake("node power on act --soft", 2, ("--soft is for off and reboot",)),
    Mistake("node maintenance off act --reason x", 2, ("--reason is for on",)),
    Mistake("node undeploy act", 2, ("no terminal", "--yes")),
    Mistake("stack down x --cloud nope", 2, ("No such option", "--cloud")),
    Mistake("node --cloud nope list", 2, ("no cloud nope", "it has bloomery")),
    Mistake("stack --cloud nope list", 2, ("no cloud nope", "it has bloomery")),
    Mistake("status --cloud nope", 2, ("no cloud nope", "it has bloomery")),
    Mistake("serve --prt 3", 2, ("No such option '--prt'", "--port")),
    Mistake("config sampel", 2, ("Did you mean 'sample'",)),
    Mistake("discover 10.0.0.0/33", 2, ("10.0.0.0/33", "10.0.0.0/24")),
    Mistake(
        "bmc check 10.0.0.1 --username root",
        2,
        ("no terminal", "--password-file", "BLOOMERY_BMC_PASSWORD"),
    ),
    # files that are not there
    Mistake("enrol nowhere.csv", 2, ("nowhere.csv", "does not exist")),
    Mistake("stack up nowhere.yaml -y", 2, ("there is no file nowhere.yaml",)),
    Mistake("stack plan nowhere.yaml", 2, ("there is no file nowhere.yaml",)),
    Mistake("template validate nowhere.yaml", 2, ("there is no file nowhere.yaml",)),
    Mistake("bmc check 10.0.0.1 --password-file nowhere", 2, ("nowhere", "does not exist")),
    # files of machines
    Mistake(
        "enrol {synonyms.csv} --dry-run",
        0,
        ("Address is read as bmc", "MAC is read as macs", "pass is read as password"),
    ),
    Mistake("enrol {port.csv} --dry-run", 0, ("address is read as macs",)),
    Mistake("enrol {semicolons.csv} --dry-run", 0, ("s3: create",)),
    Mistake(
        "enrol {colour.csv}",
        1,
        ("resource_clas: no field of a node", "Did you mean 'resource_class'"),
    ),
    Mistake("enrol {cells.csv}", 1, ("cells.csv:2", "2 cells")),
    Mistake("enrol {comma.json}", 1, ("comma.json, line 1", "no JSON")),
    Mistake("enrol {twice.json}", 1, ("52:54:00:aa:00:03 is that of t1", "remove one of them")),
    Mistake("enrol {owned.yaml}", 1, ("52:54:00:aa:00:09 is that of node act", "delete that port")),
    Mistake(
        "enrol {driver.yaml}", 1, ("no conductor serves fake-hardwear", "enabled_hardware_types")
    ),
    Mistake(
        "enrol {typo.yaml} --dry-run",
        0,
        ("redfish_verfy_ca: no key of the driver redfish", "Did you mean 'redfish_verify_ca'"),
    ),
    Mistake(
        "enrol {password.yaml}",
        1,
        ("bmc: the address of the BMC, which the driver redfish needs, is missing",),
    ),
    Mistake("enrol {mac.yaml}", 1, ("52:54:00:aa:00", "52:54:00:12:34:56")),
    Mistake("enrol {empty.yaml}", 1, ("have no machines",)),
    Mistake("enrol {word.yaml}", 1, ("word.yaml:1", "list of machines")),
    # templates
    Mistake("stack up {typed.yaml} -y", 1, ("OS::Heat::Valu", "Did you mean 'OS::Heat::Value'")),
    Mistake(
        "template validate {typed.yaml}", 1, ("typed.yaml:3", "Did you mean 'OS::Heat::Value'")
    ),
    Mistake("template validate {property.yaml}", 1, ("property.yaml:3", "valeu", "'value'")),
    Mistake(
        "template validate {many.yaml}", 1, ("many.yaml:3", "Valu", "many.yaml:4", "valeu", '"x"')
    ),
    Mistake("template validate {version.yaml}", 1, ("2099-01-01", "2021-04-16")),
    Mistake("template validate {reference.yaml}", 1, ("sise",)),
    Mistake("template validate {parameter.yaml}", 1, ("size",)),
    Mistake("stack up {parameter.yaml} -y", 1, ("size",)),
    Mistake("template validate {sound.yaml} -P size", 1, ("-P KEY=VALUE",)),
    Mistake("stack up {sound.yaml} 1st -y", 1, ("1st",)),
    # why, the thing that is asked after a mistake
    Mistake(
        "node why typo",
        0,
        ("redfish_address is missing", "'redfish_address'", "baremetal node set --driver-info"),
    ),
    Mistake("node why maint", 0, ("maintenance", "new disks", "unset")),
    Mistake("node why enr", 0, ("baremetal node manage",)),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    """A service with a node in each state that a mistake needs."""
    types = Default(enabled_hardware_types=("fake-hardware", "redfish"))
    folder = tmp_path_factory.mktemp("site")
    with Orchestration(folder / "state", default=types) as running:
        client = Client(running.service.url)
        for name in ("enr", "man", "ava", "act", "maint"):
            client.post("/v1/nodes", {"driver": "fake-hardware", "name": name})
        info = {"redfish_addres": "https://10.1.0.9", "redfish_username": "root"}
        client.post("/v1/nodes", {"driver": "redfish", "name": "typo", "driver_info": info})
        port = {"address": "52:54:00:aa:00:09"}
        client.post("/v1/ports", port | {"node_uuid": client.get("/v1/nodes/act")["uuid"]})
        Fleet(client, ["man", "ava", "act", "maint"]).take("manage", "manageable")
        Fleet(client, ["ava", "act", "maint"]).take("provide", "available")
        Fleet(client, ["act"]).take("active", "active")
        client.put("/v1/nodes/maint/maintenance", {"reason": "new disks"})
        yield running


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.typed)
def test_the_answer_names_thing_cause_and_way_out(
    mistake: Mistake, site: Orchestration, here: Path
) -> None:
    unset = dict.fromkeys(("OS_CLOUD", "OS_AUTH_TYPE", "OS_ENDPOINT", "BLOOMERY_BMC_PASSWORD"))
    runner = CliRunner(env={**unset, "OS_CLIENT_CONFIG_FILE": str(site._home.clouds)})
    typed = mistake.typed.replace("{", f"{here}/").replace("}", "").split()
    result = runner.invoke(main, typed, input="")
    assert result.exit_code == mistake.code, result.output
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    text = " ".join(result.output.split())
    assert [words for words in mistake.words if words not in text] == [], result.output
    assert "hunter2" not in text
    assert "Traceback" not in text
