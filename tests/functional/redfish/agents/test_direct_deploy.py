"""A machine that its BMC boots into an agent: deploy interfaces direct, custom-agent, autodetect.

Beside the BMC of the lab there is an agent that looks up, calls, and takes commands over HTTPS.
"""

from __future__ import annotations

import dataclasses
import logging
from concurrent.futures import ThreadPoolExecutor

import metalsmith
import openstack
import pytest
from metalsmith import instance_config, sources

from bloomery.api import app
from bloomery.api import server as api_server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from tests.functional.redfish.agents.conftest import DIGEST, IMAGE, INSTANCE, MAC, Ramdisk
from tests.functional.redfish.conftest import ISO, manageable
from tests.kit.machines.agent_server import step
from tests.kit.servers.stories import Stage


def test_cleaning_erases_metadata_and_takes_the_agent_away(stage, node, machine, ramdisk):
    stage.ask(node, "provide")
    shown = ramdisk.live_until(node, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    assert ramdisk.server.told == [
        "boot", "clean.get_clean_steps", "clean.execute_clean_step", "poll.get_hardware_info",
    ]  # fmt: skip
    told = ramdisk.server.params["clean.execute_clean_step"]
    assert told["step"]["step"] == "erase_devices_metadata"
    assert told["clean_version"] == ramdisk.server.versions
    assert told["node"]["uuid"] == node
    assert told["node"]["driver_internal_info"]["disk_erasure_concurrency"] == 4
    assert told["ports"][0]["address"] == MAC
    assert shown["power_state"] == "power off"
    assert machine.system.media == {"Cd": None}
    assert "agent_url" not in shown["driver_internal_info"]


def test_what_no_agent_can_find_says_so_while_it_waits(stage, node):
    (port,) = stage.api.get("/v1/ports").json["ports"]
    stage.api.delete(f"/v1/ports/{port['uuid']}")
    stage.ask(node, "provide")
    stage.wait_for(node, "clean wait")
    why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    assert "the node has no port" in why["next_action"]


def test_what_booting_the_agent_lacks_is_named_before_there_is_an_image(stage, machine):
    node = manageable(stage, machine)
    stage.patch(node, deploy_interface="direct")
    refusal = stage.api.get(f"/v1/nodes/{node}/validate").json["deploy"]
    assert refusal["result"] is False
    assert "deploy_iso" in refusal["reason"]


def test_an_image_is_written_and_booted_with_its_config_drive(stage, available, machine, ramdisk):
    stage.ask(available, "active", configdrive={"meta_data": {"hostname": "web-1"}})
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert ramdisk.server.told == [
        "boot", "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
        "standby.power_off",
    ]  # fmt: skip
    told = ramdisk.server.params["standby.prepare_image"]
    assert told["configdrive"].startswith("H4sI")
    assert told["image_info"] == {
        "id": "os.qcow2", "urls": [IMAGE], "disk_format": "qcow2", "container_format": "bare",
        "image_type": "whole-disk-image", "stream_raw_images": True, "node_uuid": available,
        "os_hash_algo": "sha256", "os_hash_value": DIGEST,
    }  # fmt: skip
    assert shown["power_state"] == "power on"
    assert machine.system.media == {"Cd": None}
    assert machine.system.booted["target"] == "Hdd"
    assert [name for name, _ in stage.steps(available, "deploy")] == [
        "deploy.prepare", "deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot",
        "deploy.tear_down_agent", "deploy.switch_to_tenant_network", "deploy.boot_instance",
    ]  # fmt: skip


def test_an_image_of_a_partition_gets_the_boot_loader_of_its_root(stage, available, ramdisk):
    sizes = {"root_gb": 10, "swap_mb": 512, "ephemeral_gb": 1}
    stage.patch(available, instance_info=INSTANCE | sizes | {"image_type": "partition"})
    stage.ask(available, "active")
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert ramdisk.server.told == [
        "boot", "deploy.get_deploy_steps", "standby.prepare_image", "standby.get_partition_uuids",
        "image.install_bootloader", "standby.power_off",
    ]  # fmt: skip
    image = ramdisk.server.params["standby.prepare_image"]["image_info"]
    assert (image["image_type"], image["root_mb"], image["swap_mb"]) == ("partition", 10240, 512)
    assert ramdisk.server.params["image.install_bootloader"] == {
        "root_uuid": "r-1", "efi_system_part_uuid": "e-1", "prep_boot_part_uuid": None,
        "target_boot_mode": "uefi",
    }  # fmt: skip
    assert "agent_partitions" not in shown["driver_internal_info"]


def test_an_agent_without_a_root_partition_fails_the_deployment(stage, available, ramdisk):
    ramdisk.server.partitions = {}
    partition = {"root_gb": 10, "image_type": "partition"}
    stage.patch(available, instance_info=INSTANCE | partition)
    assert "does not name the root partition" in failed(stage, available, ramdisk)


def test_an_agent_of_its_own_installs_the_machine_without_an_image(
    stage, available, machine, ramdisk
):
    stage.patch(available, deploy_interface="custom-agent", instance_info={})
    assert stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"]["result"] is True
    stage.ask(available, "active")
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert "standby.prepare_image" not in ramdisk.server.told
    assert machine.system.booted["target"] == "Hdd"
    assert "deploy.write_image" not in [name for name, _ in stage.steps(available, "deploy")]


def test_autodetect_writes_an_image_or_boots_an_iso_and_stays_the_nodes_interface(
    stage, available, machine, ramdisk
):
    stage.patch(available, deploy_interface="autodetect")
    stage.ask(available, "active")
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["deploy_interface"]) == ("active", "autodetect")
    assert "standby.prepare_image" in ramdisk.server.told
    stage.site.set(available, provision_state="available")
    stage.patch(available, instance_info={"boot_iso": ISO})
    stage.ask(available, "active")
    assert stage.wait_for(available, "active")["deploy_interface"] == "autodetect"
    assert machine.system.booted["image"] == ISO


@pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning")
@pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning")
def test_metalsmith_deploys_an_image_and_gives_the_machine_back(stage, available, machine, ramdisk):
    values = {"properties.local_gb": 100, "properties.capabilities": "boot_mode:uefi"}
    stage.patch(available, instance_info={}, name="web-1", resource_class="large", **values)
    serving = api_server.make(app.make_app(stage.services), Conf(api=Api(port=0)))
    serving.start()
    cloud = openstack.connect(
        auth_type="none", endpoint=serving.url, baremetal_endpoint_override=serving.url
    )
    smith = metalsmith.Provisioner(cloud_region=cloud.config)
    image = sources.HttpWholeDiskImage(IMAGE, checksum="0" * 32)
    config = instance_config.GenericConfig(ssh_keys=["ssh-ed25519 AAAA ann"])
    with ThreadPoolExecutor(1) as agents:
        reserved = smith.reserve_node("large", hostname="db-1")
        life = agents.submit(ramdisk.live_until, available, "active", "deploy failed")
        instance = smith.provision_node(reserved, image, config=config, wait=60)
        assert (life.result()["last_error"], instance.state.value) == (None, "active")
        assert machine.system.booted["target"] == "Hdd"
        life = agents.submit(ramdisk.live_until, available, "available", "clean failed")
        smith.unprovision_node(instance.uuid, wait=60)
        assert (life.result()["last_error"], machine.system.power) == (None, "Off")
    assert list(cloud.baremetal.allocations()) == []
    cloud.close()
    serving.stop()


def test_a_machine_in_bios_mode_needs_no_boot_entry(stage, available, ramdisk):
    stage.patch(available, **{"instance_info.capabilities": {"boot_mode": "bios"}})
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    assert "image.install_bootloader" not in ramdisk.server.told


def test_power_is_cut_after_a_sync_where_the_node_says_so(stage, available, machine, ramdisk):
    stage.patch(available, **{"driver_info.deploy_forces_oob_reboot": "true"})
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    assert ramdisk.server.told[-1] == "standby.sync"
    assert machine.system.booted["target"] == "Hdd"


def test_a_rebuild_writes_anew_and_an_undeploy_cleans(stage, available, machine, ramdisk):
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    ramdisk.server.told.clear()
    stage.ask(available, "rebuild")
    ramdisk.live_until(available, "active")
    assert ramdisk.server.told.count("standby.prepare_image") == 1
    ramdisk.server.told.clear()
    stage.ask(available, "deleted")
    shown = ramdisk.live_until(available, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    assert ramdisk.server.told[-2] == "clean.execute_clean_step"
    assert machine.system.power == "Off"


def test_an_image_boots_with_secure_boot_and_agents_without(stage, available, machine, ramdisk):
    stage.patch(available, **{"instance_info.capabilities": "secure_boot:true"})
    stage.ask(available, "active")
    ramdisk.live_until(available, "active", "deploy failed")
    assert (machine.system.booted["target"], machine.system.booted["secure"]) == ("Hdd", True)
    stage.ask(available, "rebuild")
    ramdisk.live_until_it_writes(available)
    assert machine.system.booted["secure"] is False
    ramdisk.server.endless.clear()
    ramdisk.live_until(available, "active", "deploy failed")
    assert machine.system.booted["secure"] is True
    stage.ask(available, "deleted")
    shown = ramdisk.live_until(available, "available", "clean failed")
    assert (shown["secure_boot"], machine.system.booted["secure"]) == (False, False)


def test_secure_boot_is_switched_on_when_the_agent_is_gone(stage, available, machine, ramdisk):
    """A BMC that restarts the machine for it would end an agent that runs."""
    stage.patch(available, **{"instance_info.capabilities": "secure_boot:true"})
    machine.system.history.clear()
    stage.ask(available, "active")
    ramdisk.live_until(available, "active", "deploy failed")
    happened = machine.system.happened
    switched = happened.index("secure boot: on at the next boot")
    assert [each for each in happened[:switched] if "power is" in each][-1] == "power is Off"


def test_an_agent_that_calls_while_it_writes_is_heard_and_changes_nothing(
    stage, available, ramdisk
):
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    before = len(stage.moves(available))
    for _ in range(3):
        assert ramdisk.call().status == 202
    assert len(stage.moves(available)) == before
    ramdisk.server.endless.clear()
    ramdisk.live_until(available, "active")


def test_an_agent_calls_again_where_too_many_threads_wait(stage, available, ramdisk):
    """Its call asks it what it does, which takes a place among the threads that wait."""
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    ramdisk.server.endless.clear()
    ramdisk.server.finish()
    places = stage.site.runtime.node_locks.places
    most, places.most = places.most, 0
    assert ramdisk.call().status == 503
    stage.wait_until_free(available)
    assert stage.standing(available)[0] == "wait call-back"
    places.most = most
    ramdisk.live_until(available, "active")


# ------------------------------------------------------------------------------- what goes wrong


def failed(stage: Stage, node: str, ramdisk: Ramdisk) -> str:
    """Deploy a node that fails; return why, its machine being off and without its CD."""
    stage.ask(node, "active")
    shown = ramdisk.live_until(node, "active", "deploy failed")
    assert shown["provision_state"] == "deploy failed"
    assert ramdisk.machine.system.media == {"Cd": None}
    assert ramdisk.machine.system.power == "Off"
    return str(shown["last_error"])


@pytest.mark.parametrize(
    ("command", "step"),
    [("prepare_image", "write_image"), ("install_bootloader", "prepare_instance_boot")],
)
def test_a_command_that_fails_is_told_with_its_step(stage, available, ramdisk, command, step):
    ramdisk.server.fails[command] = "no such disk"
    told = failed(stage, available, ramdisk)
    assert f"(deploy step deploy.{step}" in told
    assert "no such disk" in told
    assert available not in told


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("deploy.get_deploy_steps", "refused deploy.get_deploy_steps: no deploy.get_deploy_steps"),
        ("standby.prepare_image", "refused standby.prepare_image: no standby.prepare_image"),
    ],
)
def test_a_command_that_is_refused_fails_its_step(stage, available, ramdisk, command, said):
    ramdisk.server.refuses[command] = 400
    assert said in failed(stage, available, ramdisk)


def test_a_machine_that_its_agent_will_not_shut_down_loses_its_power(
    stage, available, machine, ramdisk
):
    ramdisk.server.refuses["standby.power_off"] = 400
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    happened = machine.system.happened[-8:]
    assert happened.index("reset ForceOff") < happened.index("boots from Hdd in UEFI mode")


def test_a_step_that_fails_in_cleaning_calls_an_operator(stage, node, machine, ramdisk):
    ramdisk.server.fails["execute_clean_step"] = "cannot erase /dev/sda"
    stage.ask(node, "provide")
    shown = ramdisk.live_until(node, "clean failed", "available")
    assert "cannot erase /dev/sda" in shown["last_error"]
    assert stage.care(node) == (True, "clean failure")
    assert (machine.system.power, machine.system.media) == ("Off", {"Cd": None})


def test_a_wrong_checksum_is_told_in_the_agents_words(stage, available, ramdisk):
    ramdisk.server.fails["prepare_image"] = "Error verifying image checksum: not what was meant"
    told = failed(stage, available, ramdisk)
    assert "deploy.write_image" in told
    assert "Error verifying image checksum: not what was meant" in told


def test_an_agent_that_refuses_its_token_is_named(stage, available, ramdisk):
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    ramdisk.server.token = "another"
    ramdisk.call()
    shown = stage.wait_for(available, "deploy failed")
    assert "refused commands: Token invalid." in shown["last_error"]


def test_an_agent_that_vanishes_runs_out_of_time(stage, available, ramdisk):
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    stage.let_time_pass(available)
    shown = stage.wait_for(available, "deploy failed")
    place = "wait call-back at step deploy.write_image (the agent writes the image)"
    assert f"timed out in {place}: no call came within 1800 s" in shown["last_error"]
    assert ramdisk.machine.system.media == {"Cd": None}


def test_a_machine_that_boots_its_agent_anew_gets_no_token(stage, available, ramdisk):
    """What it was doing is lost, and who boots it was not us: nothing is written once more."""
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    ramdisk.server.boot()
    ramdisk.agent.look_up()
    assert ramdisk.agent.config["agent_token"] == "******"
    assert "agent_token" in ramdisk.call().said
    assert stage.standing(available)[0] == "wait call-back"
    cause = stage.why(available)["cause"]
    assert cause.startswith("step deploy.write_image of deploy waits for a call of the agent")
    assert cause.endswith(f"from {ramdisk.server.url}")
    stage.ask(available, "abort")
    assert stage.wait_for(available, "deploy failed")["power_state"] == "power off"


def test_an_abort_switches_off_once_however_long_that_takes(stage, available, machine):
    """The machine is on at the first look: each further one asks the BMC anew."""
    stage.ask(available, "active")
    stage.wait_for(available, "wait call-back")
    orders = machine.system.happened.count("reset ForceOff")
    machine.system.spec = dataclasses.replace(machine.system.spec, power_s=0.8)
    stage.ask(available, "abort")
    stage.wait_until_free(available)
    assert stage.wait_for(available, "deploy failed")["power_state"] == "power off"
    assert machine.system.happened.count("reset ForceOff") == orders + 1


def test_an_agent_that_was_started_anew_has_lost_its_command(stage, available, ramdisk):
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    ramdisk.server.commands.clear()
    told = ramdisk.live_until(available, "active", "deploy failed")["last_error"]
    assert "does not know standby.prepare_image" in told


def test_an_answer_that_is_lost_is_no_second_order(stage, available, ramdisk):
    """The command was taken, and its answer did not come: the agent is asked before it is told."""
    ramdisk.server.loses_answers_to.add("standby.prepare_image")
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    assert ramdisk.server.told.count("standby.prepare_image") == 1


def test_the_token_is_in_no_log_and_no_error(stage, available, ramdisk, caplog):
    caplog.set_level(logging.DEBUG)
    ramdisk.server.fails["prepare_image"] = "gone"
    failed(stage, available, ramdisk)
    token = ramdisk.agent.config["agent_token"]
    assert token not in caplog.text
    assert token not in str(stage.site.everything())


# ------------------------------------------------------------------- steps that the agent offers


def test_an_agents_step_is_run_on_request_with_its_arguments(stage, node, ramdisk):
    asked = [{"interface": "deploy", "step": "burnin_cpu"}]
    stage.ask(node, "clean", clean_steps=asked)
    shown = ramdisk.live_until(node, "manageable", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert ramdisk.server.params["clean.execute_clean_step"]["step"]["step"] == "burnin_cpu"


def test_a_step_that_wants_a_reboot_gets_one(stage, node, ramdisk):
    ramdisk.server.steps["clean"].append(step("flash", 50, reboot_requested=True))
    stage.ask(node, "provide")
    ramdisk.live_until(node, "available")  # the next plan knows of it
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    ramdisk.server.told.clear()
    stage.ask(node, "clean", clean_steps=[{"interface": "deploy", "step": "flash"}])
    ramdisk.live_until(node, "manageable", "clean failed")
    assert ramdisk.server.told == [
        "boot", "clean.get_clean_steps", "clean.execute_clean_step", "boot",
        "clean.get_clean_steps",
    ]  # fmt: skip


def test_a_step_that_the_agent_lacks_fails_by_name(stage, node, ramdisk):
    ramdisk.server.steps["clean"] = [step("erase_devices", 10)]
    stage.ask(node, "provide")
    shown = ramdisk.live_until(node, "clean failed", "available")
    assert "deploy.erase_devices_metadata" in shown["last_error"]


def test_news_of_the_agent_counts_from_the_next_cleaning_on(stage, node, ramdisk):
    ramdisk.server.steps["clean"].append(step("flash", 50))
    for flashes in (0, 1):
        stage.ask(node, "provide")
        ramdisk.live_until(node, "available")
        names = [name for name, _ in stage.steps(node, "clean")]
        assert names.count("deploy.flash") == flashes
        stage.ask(node, "manage")
        stage.wait_for(node, "manageable")


def test_a_mismatch_of_versions_is_asked_about_and_the_step_repeated(stage, node, ramdisk):
    ramdisk.server.mismatches = 1
    stage.ask(node, "provide")
    ramdisk.live_until(node, "available")
    assert ramdisk.server.told == [
        "boot", "clean.get_clean_steps", "clean.execute_clean_step", "clean.get_clean_steps",
        "clean.execute_clean_step", "poll.get_hardware_info",
    ]  # fmt: skip


def test_a_service_boots_the_instance_again(stage, available, machine, ramdisk):
    stage.ask(available, "active")
    ramdisk.live_until(available, "active")
    ramdisk.server.told.clear()
    asked = [{"interface": "deploy", "step": "burnin_cpu"}]
    stage.ask(available, "service", service_steps=asked)
    ramdisk.live_until(available, "active", "service failed")
    assert ramdisk.server.told == [
        "boot", "service.get_service_steps", "service.execute_service_step",
    ]  # fmt: skip
    assert (machine.system.power, machine.system.booted["target"]) == ("On", "Hdd")
