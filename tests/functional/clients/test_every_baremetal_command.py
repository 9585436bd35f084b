"""Every command of ``baremetal``, as one types them.

Stories are read top to bottom.  A line is a command; ``-> text``: it prints that text;
``-/> text``: it does not; ``!``: it fails; ``until NODE FIELD VALUE`` waits.  What a command
without a result has changed the next two lines show.
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
from tests.kit.clients.openstack_command import OpenStackCommand
from tests.kit.servers import databases
from tests.kit.waiting import wait_for

COMMANDS = sorted(point.name for point in metadata.entry_points(group="openstack.baremetal.v1"))
CHASSIS, NODE, RULE = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(1, 4))
CONNECTOR, TARGET, GROUP = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(4, 7))
PORT, CHILD = (f"0000000{n}-0000-4000-8000-000000000000" for n in range(7, 9))

RECORDS = f"""
chassis create --uuid {CHASSIS} --description row-B --extra rack=4 -> row-B
chassis list -> row-B
chassis set {CHASSIS} --description row-C
chassis show {CHASSIS} -> row-C
node create --driver fake-hardware --uuid {NODE} --name n1 --chassis-uuid {CHASSIS} -> enroll
node list --chassis {CHASSIS} -> n1
node list --long -> fake-hardware
node set n1 --resource-class large --extra rack=4 --property cpus=8 --shard east
node show n1 -> large
node unset n1 --extra rack
node show n1 --fields extra -/> rack
node validate n1 -> deploy
shard list -> east
node set n1 --target-raid-config {{raid}}
node show n1 --fields target_raid_config -> MAX
node unset n1 --target-raid-config
node show n1 --fields target_raid_config -/> MAX
port create --node {NODE} --uuid {PORT} 52:54:00:00:00:01 -> {PORT}
port list --node {NODE} -> 52:54:00:00:00:01
port set {PORT} --extra vlan=4
port show {PORT} -> vlan
port unset {PORT} --extra vlan
port show {PORT} -/> vlan
port group create --node {NODE} --uuid {GROUP} --name bond0 -> {GROUP}
port group list -> bond0
port group set bond0 --mode 802.3ad --extra rack=4
port group show bond0 -> 802.3ad
port group list --node n1 --fields name mode extra -> rack
port group unset bond0 --extra rack
port group show bond0 -/> rack
volume connector create --node {NODE} --uuid {CONNECTOR} --type iqn --connector-id iqn.a -> iqn.a
volume connector list -> iqn.a
node power off n1
until n1 power_state power off
volume connector set {CONNECTOR} --connector-id iqn.b --extra rack=4
volume connector show {CONNECTOR} -> iqn.b
volume connector unset {CONNECTOR} --extra rack
volume connector show {CONNECTOR} -/> rack
volume target create --node {NODE} --uuid {TARGET} --type iscsi --boot-index 0 --volume-id v1 -> v1
volume target list -> v1
volume target set {TARGET} --volume-id v2 --extra rack=4
volume target show {TARGET} -> v2
volume target unset {TARGET} --extra rack
volume target show {TARGET} -/> rack
volume target delete {TARGET}
volume target list -/> {TARGET}
volume connector delete {CONNECTOR}
volume connector list -/> {CONNECTOR}
port group delete bond0
port group list -/> bond0
port delete {PORT}
port list -/> {PORT}
chassis unset {CHASSIS} --description
chassis show {CHASSIS} -/> row-C
node create --driver fake-hardware --uuid {CHILD} --name child --parent-node n1 -> {NODE}
node children list n1 -> {CHILD}
node delete child
node children list n1 -/> {CHILD}
node delete n1
node list -/> n1
chassis delete {CHASSIS}
chassis list -/> {CHASSIS}
conductor list -> True
conductor show {{host}} -> fake-hardware
driver list -> fake-hardware
driver show fake-hardware -> default_power_interface
driver property list fake-hardware -> B1
driver raid property list fake-hardware -> raid_level
driver passthru list fake-hardware -/> POST
! driver passthru call fake-hardware nothing
"""

TEMPLATES = f"""
deploy template create CUSTOM_A --steps {{steps}} -> CUSTOM_A
deploy template list -> CUSTOM_A
deploy template set CUSTOM_A --extra a=b
deploy template show CUSTOM_A --fields extra -> b
deploy template show CUSTOM_A -> reboot
deploy template unset CUSTOM_A --extra a
deploy template show CUSTOM_A --fields extra -> {{}}
deploy template delete CUSTOM_A
deploy template list -/> CUSTOM_A
runbook create --name tidy --steps {{ordered}} -> tidy
runbook list -> tidy
runbook set tidy --extra a=b
runbook show tidy --fields extra -> b
runbook show tidy -> power
runbook trait add tidy CUSTOM_B
runbook trait list tidy -> CUSTOM_B
runbook trait remove tidy CUSTOM_B
runbook trait list tidy -/> CUSTOM_B
runbook unset tidy --extra a
runbook show tidy --fields extra -> {{}}
runbook delete tidy
runbook list -/> tidy
inspection rule create --uuid {RULE} --description marks --conditions [] --actions {{actions}}
inspection rule list -> marks
inspection rule set {RULE} --priority 7
inspection rule show {RULE} --fields priority -> 7
inspection rule unset {RULE} --description
inspection rule show {RULE} -/> marks
inspection rule delete {RULE}
inspection rule list -/> {RULE}
create {{resources}}
node show from-a-file -> fake-hardware
node delete from-a-file
node list -/> from-a-file
"""

LIFE = """
node create --driver fake-hardware --name n2 --resource-class large -> large
node maintenance set n2 --reason DIMM
node show n2 -> DIMM
node maintenance unset n2
node show n2 -/> DIMM
node manage n2 --wait 60
node show n2 --fields provision_state -> manageable
node inspect n2 --wait 60
node show n2 --fields inspection_finished_at -/> None
! node inventory save n2 --file {inventory}
node clean n2 --wait 60 --clean-steps {clean_steps}
node history list n2 -> log_passthrough
node boot device set n2 pxe
node boot device show n2 -> pxe
node boot device show n2 --supported -> pxe
node boot mode set n2 uefi
until n2 boot_mode uefi
node secure boot on n2
until n2 secure_boot True
node secure boot off n2
until n2 secure_boot False
node console enable n2
until n2 console_enabled True
node console show n2 -> True
node console disable n2
until n2 console_enabled False
! node inject nmi n2
node passthru list n2 -> second_method
node passthru call n2 second_method --arg bar=meow
until n2 reservation None
node trait add n2 CUSTOM_A CUSTOM_B
node trait list n2 -> CUSTOM_A
node trait remove n2 CUSTOM_B
node trait list n2 -/> CUSTOM_B
node add trait n2 CUSTOM_C
node trait list n2 -> CUSTOM_C
node remove trait n2 CUSTOM_C
node trait list n2 -/> CUSTOM_C
node bios setting list n2 -/> fake
! node bios setting show n2 nothing
node firmware list n2 -/> fake
node vif list n2 -/> vif
node vif attach n2 vif-1
node vif list n2 -/> vif
node vif detach n2 vif-1
node vif list n2 -/> vif
node power on n2 --power-timeout 60
until n2 power_state power on
node reboot n2
until n2 target_power_state None
node power off n2
until n2 power_state power off
node provide n2 --wait 60
node show n2 --fields provision_state -> available
allocation create --name a1 --resource-class large --candidate-node n2 --wait 60 -> active
allocation list --node n2 --fields name resource_class -> a1
allocation set a1 --extra job=7
allocation show a1 -> job
allocation unset a1 --extra job
allocation show a1 -/> job
node deploy n2 --wait 60
node show n2 --fields provision_state -> active
! allocation delete a1
node history list n2 -> deploy
node history get n2 {event} -> severity
node rebuild n2 --wait 60
node history list n2 -> rebuild
node rescue n2 --rescue-password secret --wait 60
node show n2 --fields provision_state -> rescue
node unrescue n2 --wait 60
node show n2 --fields provision_state -> active
node service n2 --wait 60 --service-steps {service_steps}
node history list n2 -> service
node undeploy n2 --wait 60
node show n2 --fields provision_state -> available
allocation create --name a2 --resource-class large --trait CUSTOM_A --wait 60 -> active
allocation delete a2
allocation list -/> a2
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
node show n2 --fields provision_state -> active
node undeploy n2 --wait 60
node show n2 --fields provision_state -> available
node delete n2
node list -/> n2
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
    wait_for(lambda: str(command.json(*show)[field]) == " ".join(value), f"{field} {value}")


def test_every_command_is_in_a_story() -> None:
    lines = (line for story in STORIES.values() for line in lines_of(story))
    typed = {command_of(line) for line in lines if not line.startswith("until ")}
    assert set(COMMANDS) - typed == set()


@pytest.mark.parametrize("name", STORIES)
def test_no_exit_code_is_believed_alone(name: str) -> None:
    lines = lines_of(STORIES[name])
    shows = [any(mark in line for mark in (" -> ", " -/> ", "! ", "until ")) for line in lines]
    alone = [line for place, line in enumerate(lines) if not any(shows[place : place + 3])]
    assert not alone


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStackCommand]:
    folder = tmp_path_factory.mktemp("site")
    conf = Conf(
        api=Api(port=0),
        conductor=Conductor(workers_pool_size=20, graceful_shutdown_timeout=5),
        database=databases.settings(folder),
    )
    with StateDir(folder / "state") as home, Service(conf, home):
        login = {"OS_CLIENT_CONFIG_FILE": str(home.clouds), "OS_CLOUD": "bloomery"}
        command = OpenStackCommand(login, shell="ironicclient.shell")
        yield command
        command.close()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_goes_as_it_is_typed(name, command, tmp_path: Path) -> None:
    wrong = []
    for line in lines_of(STORIES[name]):
        typed, _, absent = line.partition(" -/> ")
        typed, _, expected = typed.partition(" -> ")
        words = [_value(word, command, tmp_path) for word in shlex.split(typed)]
        if words[0] == "until":
            wait_until(command, *words[1:])
            continue
        fails = words[0] == "!"
        result = command.run(*words[fails:])
        shown = expected in result.out and not (absent and absent in result.out)
        if (result.code != 0) != fails or not shown:
            wrong.append((line, result))
    assert not wrong, "\n".join(f"{line}: {result}" for line, result in wrong)


FILES = {
    "steps": '[{"interface": "power", "step": "reboot", "args": {}, "priority": 7}]',
    "ordered": '[{"interface": "power", "step": "reboot", "args": {}, "order": 1}]',
    "clean_steps": '[{"interface": "vendor", "step": "log_passthrough"}]',
    "service_steps": '[{"interface": "vendor", "step": "log_passthrough"}]',
    "hold_steps": '[{"interface": "power", "step": "hold"}]',
    "raid": '{"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}',
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
