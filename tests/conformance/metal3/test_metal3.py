"""Metal3's Baremetal Operator works with a service that its ironic-image configures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bloomery import conf as options
from bloomery.conf import Conf
from bloomery.drivers import registry
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from tests.conformance.metal3 import host
from tests.conformance.metal3.asks import Operator
from tests.conformance.metal3.machine import AgentMachine
from tests.kit.machines.agent_server import AgentServer, step
from tests.kit.servers.stories import Stage

FILE = str(Path(__file__).with_name("ironic.conf"))
MODELS = {
    "redfish-virtualmedia": "generic", "redfish-uefihttp": "generic",
    "idrac-virtualmedia": "dell-idrac",
}  # fmt: skip
IGNORED_GROUPS = {"dhcp", "irmc", "nova", "service_catalog"}
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    """The configuration of ironic-image; only paths and pauses are of this test."""
    for name in ("kernel", "ramdisk", "esp"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    files = {name: f"file://{tmp_path}/{name}" for name in ("kernel", "ramdisk", "esp")}
    plain = options.load([FILE])
    return dataclasses.replace(
        plain,
        default=dataclasses.replace(plain.default, isolinux_bin="/none"),
        agent=dataclasses.replace(
            plain.agent,
            certificates_path=str(tmp_path / "certificates"),
            deploy_logs_local_path=str(tmp_path / "logs"),
            post_deploy_get_power_state_retry_interval=0,
        ),
        conductor=dataclasses.replace(
            plain.conductor,
            preflight_timeout=0,
            file_url_allowed_paths=(str(tmp_path),),
            deploy_kernel=files["kernel"],
            deploy_ramdisk=files["ramdisk"],
            bootloader=files["esp"],
            deploy_kernel_by_arch={},
            deploy_ramdisk_by_arch={},
            bootloader_by_arch={},
        ),
        deploy=dataclasses.replace(
            plain.deploy,
            http_root=str(tmp_path / "http"),
            ramdisk_cache_path=str(tmp_path / "cache"),
        ),
        redfish=dataclasses.replace(
            plain.redfish,
            firmware_update_status_interval=1,
            firmware_update_reboot_delay=1,
            firmware_update_validation_interval=0,
            raid_config_status_interval=1,
            verify_ca="False",
        ),
    )


@pytest.fixture
def operator(make_site, conf: Conf) -> Operator:
    stage = Stage(make_site(registry=registry.load(conf), **dataclasses.asdict(conf.conductor)))
    for group in ("agent", "api", "deploy"):
        stage.configure(group, **dataclasses.asdict(getattr(conf, group)))
    return Operator(stage)


@pytest.fixture
def make_machine(operator: Operator, conf: Conf, tmp_path: Path):
    folder = tmp_path / "agent"
    folder.mkdir()
    racks: list[Rack] = []
    with AgentServer(folder) as server:

        def make(scheme: str) -> AgentMachine:
            rules = Rules(update_s=0.1, restart_s=0.2)
            racks.append(Rack(1, apart=True, rules=rules, model=MODELS[scheme]).start())
            root = Path(str(conf.deploy.http_root))
            return AgentMachine(operator.stage, racks[-1].machines[0], server, root)

        yield make
    for rack in racks:
        rack.stop()


def faults(operator: Operator) -> list[str]:
    return [str(ask) for ask in operator.asks if not ask.is_fine]


@pytest.mark.parametrize("scheme", MODELS)
def test_a_host_lives_its_whole_life(operator: Operator, make_machine, scheme: str) -> None:
    machine = make_machine(scheme)
    host.start(operator)
    node = host.register(operator, machine, scheme)
    host.reconcile(operator, node)
    host.inspect(operator, machine, node)
    host.prepare(operator, machine, node, raid=MODELS[scheme] == "generic")
    host.provision(operator, machine, node, host.IMAGE)
    host.use(operator, machine, node)
    host.refuse(operator, node)
    host.deprovision(operator, machine, node)
    host.adopt(operator, node)
    host.delete(operator, node)
    assert faults(operator) == []
    assert len(operator.asks) >= 77


def test_a_host_boots_a_live_iso(operator: Operator, make_machine) -> None:
    machine = make_machine("redfish-virtualmedia")
    node = host.register(operator, machine, "redfish-virtualmedia", deploy_interface="ramdisk")
    host.inspect(operator, machine, node)
    operator.provision("provide", node, "provide")
    operator.wait("available", node, "available", machine.live)
    host.provision(operator, machine, node, {"boot_iso": "http://images.test/live.iso"})
    assert machine.lab.system.booted["image"] == "http://images.test/live.iso"
    host.deprovision(operator, machine, node)
    host.delete(operator, node)
    assert faults(operator) == []


def test_a_host_is_installed_by_a_step_of_its_agent(operator: Operator, make_machine) -> None:
    machine = make_machine("redfish-virtualmedia")
    machine.server.steps["deploy"].append(step("install_coreos", 0))
    node = host.register(operator, machine, "redfish-virtualmedia", deploy_interface="custom-agent")
    operator.provision("provide", node, "provide")
    operator.wait("available", node, "available", machine.live)
    install = {"interface": "deploy", "step": "install_coreos", "args": {}, "priority": 80}
    operator.provision(
        "deploy", node, "active", configdrive=host.CONFIG_DRIVE, deploy_steps=[install]
    )
    operator.wait("active", node, "active", machine.live)
    assert "deploy.execute_deploy_step" in machine.server.told
    assert faults(operator) == []


def test_the_configuration_of_ironic_image_starts_and_the_rest_is_named(conf: Conf) -> None:
    enabled = registry.load(conf).types
    assert set(enabled) == {"ipmi", "idrac", "fake-hardware", "redfish", "manual-management"}
    named = {text.partition("]")[0].lstrip("[") for text in options.unknown([FILE])}
    assert named >= IGNORED_GROUPS
