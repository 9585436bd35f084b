"""Every command of ``baremetal``, as one types them.

Stories are read top to bottom.  A line is a command; ``-> text``: it prints that text; ``!``: it
fails; ``until NODE FIELD VALUE`` waits.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.state_dir import StateDir
from tests.kit import databases
from tests.kit.openstack_command import OpenStackCommand
from tests.kit.waiting import wait_for

COMMANDS = sorted(point.name for point in metadata.entry_points(group="openstack.baremetal.v1"))
CHASSIS, NODE, RULE = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 4))
CONNECTOR, TARGET, GROUP = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(4, 7))
PORT, PARENT = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(7, 9))

RECORDS = f"""
chassis create --uuid {CHASSIS} --description row-B --extra rack=4
chassis list -> row-B
chassis set {CHASSIS} --description row-C
chassis show {CHASSIS} -> row-C
node create --driver fake-hardware --uuid {NODE} --name n1 --chassis-uuid {CHASSIS}
node list --chassis {CHASSIS} -> n1
node set n1 --resource-class large --extra rack=4 --property cpus=8 --shard east
node show n1 -> large
node unset n1 --extra rack
node validate n1 -> deploy
shard list -> east
port create --node {NODE} --uuid {PORT} 52:54:00:00:00:01
port list --node {NODE} -> 52:54:00:00:00:01
port set {PORT} --extra vlan=4
port show {PORT} -> vlan
port unset {PORT} --extra vlan
port group create --node {NODE} --uuid {GROUP} --name bond0
port group list -> bond0
port group set bond0 --mode 802.3ad --extra rack=4
port group show bond0 -> 802.3ad
port group unset bond0 --extra rack
volume connector create --node {NODE} --uuid {CONNECTOR} --type iqn --connector-id iqn.a
volume connector list -> iqn.a
node power off n1
until n1 power_state power off
volume connector set {CONNECTOR} --connector-id iqn.b --extra rack=4
volume connector show {CONNECTOR} -> iqn.b
volume connector unset {CONNECTOR} --extra rack
volume target create --node {NODE} --uuid {TARGET} --type iscsi --boot-index 0 --volume-id v1
volume target list -> v1
volume target set {TARGET} --volume-id v2 --extra rack=4
volume target show {TARGET} -> v2
volume target unset {TARGET} --extra rack
volume target delete {TARGET}
volume connector delete {CONNECTOR}
port group delete bond0
port delete {PORT}
chassis unset {CHASSIS} --description
node create --driver fake-hardware --name child --parent-node n1
node children list n1
node delete child
node delete n1
chassis delete {CHASSIS}
conductor list -> True
conductor show {{host}} -> fake-hardware
driver list -> fake-hardware
driver show fake-hardware -> default_power_interface
driver property list fake-hardware -> B1
driver raid property list fake-hardware -> raid_level
driver passthru list fake-hardware
! driver passthru call fake-hardware nothing
"""

TEMPLATES = f"""
deploy template create CUSTOM_A --steps {{steps}}
deploy template list -> CUSTOM_A
deploy template set CUSTOM_A --extra a=b
deploy template show CUSTOM_A -> reboot
deploy template unset CUSTOM_A --extra a
deploy template delete CUSTOM_A
runbook create --name tidy --steps {{ordered}}
runbook list -> tidy
runbook set tidy --extra a=b
runbook show tidy -> power
runbook trait add tidy CUSTOM_B
runbook trait list tidy -> CUSTOM_B
runbook trait remove tidy CUSTOM_B
runbook unset tidy --extra a
runbook delete tidy
inspection rule create --uuid {RULE} --description marks --conditions [] --actions {{actions}}
inspection rule list -> marks
inspection rule set {RULE} --priority 7
inspection rule show {RULE} -> 7
inspection rule unset {RULE} --description
inspection rule delete {RULE}
create {{resources}}
node show from-a-file -> fake-hardware
node delete from-a-file
"""

LIFE = """
node create --driver fake-hardware --name n2 --resource-class large
node maintenance set n2 --reason DIMM
node show n2 -> DIMM
node maintenance unset n2
node manage n2 --wait 60
node inspect n2 --wait 60
! node inventory save n2 --file {inventory}
node clean n2 --wait 60 --clean-steps {clean_steps}
node boot device set n2 pxe
node boot device show n2 -> pxe
node boot device show n2 --supported -> pxe
node boot mode set n2 uefi
node secure boot on n2
node secure boot off n2
node console enable n2
node console show n2
node console disable n2
! node inject nmi n2
node passthru list n2 -> second_method
node passthru call n2 second_method --arg bar=meow
node trait add n2 CUSTOM_A CUSTOM_B
node trait list n2 -> CUSTOM_A
node trait remove n2 CUSTOM_B
node add trait n2 CUSTOM_C
node remove trait n2 CUSTOM_C
node bios setting list n2
! node bios setting show n2 nothing
node firmware list n2
node vif list n2
node vif attach n2 vif-1
node vif detach n2 vif-1
node power on n2 --power-timeout 60
node reboot n2
node power off n2
node provide n2 --wait 60
allocation create --name a1 --resource-class large --trait CUSTOM_A --wait 60 -> active
allocation list -> a1
allocation set a1 --extra job=7
allocation show a1 -> job
allocation unset a1 --extra job
node deploy n2 --wait 60
! allocation delete a1
node history list n2 -> deploy
node history get n2 {event}
node rebuild n2 --wait 60
node rescue n2 --rescue-password secret --wait 60
node unrescue n2 --wait 60
node service n2 --wait 60 --service-steps {service_steps}
node undeploy n2 --wait 60
allocation create --name a2 --resource-class large --wait 60 -> active
allocation delete a2
node manage n2 --wait 60
node clean n2 --clean-steps {hold_steps}
until n2 provision_state clean hold
node unhold n2
until n2 provision_state manageable
node clean n2 --clean-steps {hold_steps}
until n2 provision_state clean hold
node abort n2
until n2 provision_state clean failed
node manage n2 --wait 60
node adopt n2 --wait 60
node undeploy n2 --wait 60
node delete n2
"""

STORIES = {"records": RECORDS, "templates": TEMPLATES, "life": LIFE}


def command_of(line: str) -> str:
    """Return the entry point of a line: the longest that its words begin with."""
    words = ["baremetal", *line.removeprefix("! ").split()]
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return next(name for name in names if name in COMMANDS)


def lines_of(story: str) -> list[str]:
    return [line for line in story.splitlines() if line]


def wait_until(command: OpenStackCommand, node: str, field: str, *value: str) -> None:
    show = ("node", "show", node, "--fields", field)
    wait_for(lambda: command.json(*show)[field] == " ".join(value), f"{field} {value}")


def test_every_command_is_in_a_story() -> None:
    lines = (line for story in STORIES.values() for line in lines_of(story))
    typed = {command_of(line) for line in lines if not line.startswith("until ")}
    assert set(COMMANDS) - typed == set()


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCommand]:
    folder = tmp_path_factory.mktemp("site")
    conf = Conf(
        api=Api(port=0),
        conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5),
        database=databases.settings(folder),
    )
    with StateDir(folder / "state") as home, Service(conf, home) as service:
        command = OpenStackCommand(
            {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": service.url}, shell="ironicclient.shell"
        )
        yield command
        command.close()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_goes_as_it_is_typed(name, command, tmp_path: Path) -> None:
    wrong = []
    for line in lines_of(STORIES[name]):
        typed, _, expected = line.partition(" -> ")
        words = [_value(word, command, tmp_path) for word in shlex.split(typed)]
        if words[0] == "until":
            wait_until(command, *words[1:])
            continue
        fails = words[0] == "!"
        result = command.run(*words[fails:])
        if (result.code != 0) != fails or expected not in result.out:
            wrong.append((line, result))
    assert not wrong, "\n".join(f"{line}: {result}" for line, result in wrong)


FILES = {
    "steps": '[{"interface": "power", "step": "reboot", "args": {}, "priority": 7}]',
    "ordered": '[{"interface": "power", "step": "reboot", "args": {}, "order": 1}]',
    "clean_steps": '[{"interface": "vendor", "step": "log_passthrough"}]',
    "service_steps": '[{"interface": "vendor", "step": "log_passthrough"}]',
    "hold_steps": '[{"interface": "power", "step": "hold"}]',
    "actions": '[{"op": "set-attribute", "args": {"path": "extra.seen", "value": "yes"}}]',
    "resources": '{"nodes": [{"driver": "fake-hardware", "name": "from-a-file"}]}',
}


def _value(word: str, command: OpenStackCommand, folder: Path) -> str:
    """Return what stands for ``{name}``: a file, or what the service knows."""
    if not (word.startswith("{") and word.endswith("}")):
        return word
    name = word[1:-1]
    if name == "host":
        return command.json("conductor", "list")[0]["hostname"]
    if name == "event":
        return command.json("node", "history", "list", "n2")[0]["uuid"]
    path = folder / f"{name}.json"
    if name in FILES:
        path.write_text(FILES[name])
    return str(path)
