"""Which interfaces a node uses, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import lifecycle
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.inspection import Inspector
from bloomery.drivers import autodetect, registry
from bloomery.model.node import INTERFACES, Node


def load(**default: Any) -> registry.Registry:
    return registry.load(Conf(default=Default(**default)))


def node(**values: Any) -> Node:
    return Node(**({"uuid": "node-1", "driver": "fake-hardware"} | values))


def test_without_options_a_hardware_type_brings_what_it_prefers():
    found = load()
    assert set(found.types) == {"fake-hardware", "redfish"}
    assert found.default_for("redfish", "boot") == "redfish-virtual-media"
    assert found.default_for("fake-hardware", "power") == "fake"
    assert found.default_for("fake-hardware", "network") == "noop"


def test_without_options_a_node_may_boot_an_iso_or_have_an_image_written():
    found = load()
    assert found.default_for("redfish", "deploy") == "ramdisk"
    assert (
        found.driver_of(node(driver="redfish", deploy_interface="direct")).deploy.name == "direct"
    )
    fakes = load(enabled_hardware_types=("fake-hardware",)).interfaces
    assert ("direct" in fakes["deploy"], "ipxe" in fakes["boot"]) == (False, False)


def test_a_site_that_has_an_agent_writes_images_by_default():
    agent = Conductor(
        deploy_kernel="http://agent/kernel", deploy_ramdisk_by_arch={"arm": "http://x"}
    )
    own = registry.load(Conf(conductor=agent))
    assert own.default_for("redfish", "deploy") == "direct"
    assert own.default_for("fake-hardware", "deploy") == "fake"
    without = Default(enabled_deploy_interfaces=("fake", "ramdisk"))
    other = registry.load(Conf(conductor=agent, default=without))
    assert other.default_for("redfish", "deploy") == "ramdisk"


def test_without_options_a_node_may_boot_an_agent_from_the_network():
    found = load()
    assert found.driver_of(node(driver="redfish", boot_interface="ipxe")).boot.name == "ipxe"
    chosen = load(enabled_boot_interfaces=("fake", "ipxe", "redfish-virtual-media"))
    assert chosen.driver_of(node(boot_interface="ipxe")).boot.name == "ipxe"


def test_without_options_a_node_may_do_without():
    for kind in ("bios", "raid", "vendor"):
        values = {"driver": "redfish", f"{kind}_interface": f"no-{kind}"}
        assert getattr(load().driver_of(node(**values)), kind).name == f"no-{kind}"


def test_a_node_that_names_nothing_gets_defaults():
    plain = node()
    load().fill_and_check(plain)
    assert all(getattr(plain, f"{kind}_interface") for kind in INTERFACES)
    assert load().driver_of(node()).deploy.name == "fake"


def test_what_a_node_names_is_used():
    found = load(enabled_bios_interfaces=("fake", "no-bios"))
    assert found.driver_of(node(bios_interface="no-bios")).bios.name == "no-bios"
    assert found.driver_of(node()).bios.name == "fake"


def test_an_instance_may_choose_its_own():
    found = load(enabled_bios_interfaces=("fake", "no-bios"))
    chosen = node(bios_interface="fake", instance_info={"bios_interface": "no-bios"})
    assert found.driver_of(chosen).bios.name == "no-bios"


def test_the_operator_may_choose_the_default():
    found = load(enabled_bios_interfaces=("fake", "no-bios"), default_bios_interface="no-bios")
    assert found.default_for("fake-hardware", "bios") == "no-bios"


def test_nodes_that_use_the_same_interfaces_share_one_driver():
    found = load()
    assert found.driver_of(node()) is found.driver_of(node(uuid="node-2"))


def test_an_unknown_driver_is_not_found():
    with pytest.raises(errors.DriverNotFound) as told:
        load().driver_of(node(driver="no-such"))
    assert told.value.status == 404


def test_an_interface_that_is_not_enabled_is_named_with_those_that_are():
    with pytest.raises(
        errors.InterfaceNotFoundInEntrypoint, match=r"'no-bios' on node node-1.*: fake"
    ):
        load(
            enabled_hardware_types=("fake-hardware",), enabled_bios_interfaces=("fake",)
        ).driver_of(node(bios_interface="no-bios"))


@pytest.mark.parametrize("names", [(), ("no-such",), ("fake-hardware", "no-such")])
def test_a_hardware_type_that_is_not_installed_stops_the_start(names: tuple[str, ...]):
    with pytest.raises(errors.CannotStart, match=r"enabled_hardware_types.*(none|fake-hardware)"):
        load(enabled_hardware_types=names)


def test_an_interface_that_is_not_installed_stops_the_start():
    with pytest.raises(errors.CannotStart, match="no-such"):
        load(enabled_power_interfaces=("no-such",))


def test_all_names_that_are_not_installed_are_told_at_once():
    options = Default(
        enabled_hardware_types=("fake-hardware", "illo", "irm"),
        enabled_bios_interfaces=("illo",), enabled_power_interfaces=("fake", "irm"),
    )  # fmt: skip
    inspector = Inspector(hooks=("ports", "parse-nothing", "guess"))
    with pytest.raises(errors.CannotStart) as refusal:
        lifecycle.build(Conf(default=options, inspector=inspector), None, None)
    sentence = str(refusal.value)
    for phrase in (
        "[DEFAULT]enabled_hardware_types: illo, irm not installed",
        "[DEFAULT]enabled_bios_interfaces: illo not installed",
        "[DEFAULT]enabled_power_interfaces: irm not installed",
        "[inspector]hooks: there is no inspection hook parse-nothing, guess: installed are",
    ):
        assert phrase in sentence
    assert "\n" not in sentence


# The lists of Metal3's ironic-image, at two ages.
IRONIC_IMAGES = (
    {
        "enabled_bios_interfaces": "no-bios,redfish,idrac-redfish,irmc",
        "enabled_boot_interfaces": "ipxe,pxe,fake,redfish-virtual-media,"
        "idrac-redfish-virtual-media,redfish-https",
        "enabled_deploy_interfaces": "direct,fake,ramdisk,custom-agent,bootc",
        "enabled_firmware_interfaces": "no-firmware,fake,redfish",
        "enabled_hardware_types": "idrac,irmc,fake-hardware,redfish,manual-management",
        "enabled_inspect_interfaces": "agent,irmc,fake,redfish",
        "enabled_management_interfaces": "ipmitool,irmc,fake,redfish,idrac-redfish,noop",
        "enabled_network_interfaces": "noop",
        "enabled_power_interfaces": "ipmitool,irmc,fake,redfish,idrac-redfish",
        "enabled_raid_interfaces": "no-raid,irmc,agent,fake,redfish,idrac-redfish",
        "enabled_vendor_interfaces": "no-vendor,ipmitool,idrac-redfish,redfish,fake",
    },
    {
        "enabled_bios_interfaces": "no-bios,redfish,idrac-redfish,irmc,ilo",
        "enabled_boot_interfaces": "ipxe,ilo-ipxe,pxe,ilo-pxe,fake,redfish-virtual-media,"
        "idrac-redfish-virtual-media,ilo-virtual-media,redfish-https",
        "enabled_deploy_interfaces": "direct,fake,ramdisk,custom-agent",
        "enabled_firmware_interfaces": "no-firmware,fake,redfish",
        "enabled_hardware_types": "idrac,irmc,fake-hardware,redfish,manual-management,ilo,ilo5",
        "enabled_inspect_interfaces": "agent,irmc,fake,redfish,ilo",
        "enabled_management_interfaces": "ipmitool,irmc,fake,redfish,idrac-redfish,ilo,ilo5,noop",
        "enabled_power_interfaces": "ipmitool,irmc,fake,redfish,idrac-redfish,ilo",
        "enabled_raid_interfaces": "no-raid,irmc,agent,fake,redfish,idrac-redfish,ilo5",
        "enabled_vendor_interfaces": "no-vendor,ipmitool,idrac-redfish,redfish,ilo,fake",
    },
)


@pytest.mark.parametrize("lists", IRONIC_IMAGES)
def test_lists_of_ironic_image_start_and_what_is_left_out_is_warned_of(lists, caplog):
    found = load(
        default_deploy_interface="direct", default_inspect_interface="agent",
        **{name: tuple(text.split(",")) for name, text in lists.items()},
    )  # fmt: skip
    assert set(found.types) == {"idrac", "fake-hardware", "redfish", "manual-management"}
    chosen = {kind: found.default_for("manual-management", kind) for kind in INTERFACES}
    assert (chosen["power"], chosen["management"], chosen["deploy"]) == ("fake", "noop", "direct")
    assert found.default_for("idrac", "boot") == "idrac-redfish-virtual-media"
    warnings = dict(record.args for record in caplog.records if "left out" in record.msg)
    assert "irmc" in warnings["enabled_hardware_types"]
    assert " pxe" not in warnings.get("enabled_boot_interfaces", "")
    assert found.interfaces["boot"]["pxe"].name == "pxe"
    has_bootc = "bootc" in lists["enabled_deploy_interfaces"]
    assert ("bootc" in found.interfaces["deploy"]) == has_bootc
    assert "enabled_deploy_interfaces" not in warnings


def test_ironic_images_default_of_autodetect_is_the_nodes_default_too():
    found = load(
        enabled_deploy_interfaces=("autodetect", "direct", "ramdisk", "custom-agent", "bootc"),
        default_deploy_interface="autodetect",
    )
    for driver in found.types:
        assert found.default_for(driver, "deploy") == "autodetect"


def test_types_of_ironic_alone_do_not_start():
    with pytest.raises(errors.CannotStart, match="Bloomery has none of them"):
        load(enabled_hardware_types=("irmc",))


@pytest.mark.parametrize(
    ("instance", "kind", "deploy"),
    [
        ({"boot_iso": "http://x/a.iso", "image_source": "http://x/a.raw"}, None, "ramdisk"),
        ({"image_source": "http://x/a.raw"}, None, "direct"),
        ({}, None, "direct"),
        ({"image_source": "oci://x/a:1"}, None, "bootc"),  # until someone has looked
        ({"image_source": "oci://x/a:1"}, "container", "bootc"),
        ({"image_source": "oci://x/a:1"}, "disk", "direct"),
        ({"boot_iso": "http://x/a.iso", "image_source": "oci://x/a:1"}, "container", "ramdisk"),
    ],
)
def test_autodetect_takes_what_fits_the_instance_and_stays(instance, kind, deploy):
    found = load(enabled_deploy_interfaces=("autodetect", "direct", "ramdisk", "bootc"))
    chooser = node(driver="redfish", deploy_interface="autodetect", instance_info=instance)
    autodetect.remember(chooser, kind)
    assert found.driver_of(chooser).deploy.name == deploy
    assert chooser.deploy_interface == "autodetect"


def test_what_was_seen_of_one_image_says_nothing_of_another():
    chooser = node(driver="redfish", instance_info={"image_source": "oci://x/a:1"})
    autodetect.remember(chooser, "container")
    assert autodetect.recall(chooser) == "container"
    chooser.instance_info = {"image_source": "oci://x/a:2"}
    assert autodetect.recall(chooser) is None
    chooser.instance_info = {}
    assert autodetect.recall(chooser) is None


def test_autodetect_without_another_interface_is_refused_in_words():
    found = load(enabled_deploy_interfaces=("autodetect", "fake"))
    with pytest.raises(errors.NoValidDefaultForInterface, match="ramdisk, bootc, direct"):
        found.driver_of(node(driver="redfish", deploy_interface="autodetect"))


def test_fake_hardware_lists_no_interface_of_another_type():
    types = ("fake-hardware", "redfish")
    enabled = load(
        enabled_hardware_types=types, enabled_management_interfaces=("fake", "noop", "redfish")
    ).enabled()
    listed = {
        hardware: [pair.name for pair in enabled
                   if (pair.hardware_type, pair.kind) == (hardware, "management")]
        for hardware in types
    }  # fmt: skip
    assert listed == {"fake-hardware": ["fake"], "redfish": ["noop", "redfish"]}


def test_a_default_that_is_not_enabled_stops_the_start():
    with pytest.raises(errors.NoValidDefaultForInterface, match="bios"):
        load(default_bios_interface="no-bios", enabled_bios_interfaces=("fake", "redfish"))


def test_every_pair_that_works_is_registered_with_one_default_each():
    types = ("fake-hardware",)
    found = load(
        enabled_hardware_types=types, enabled_bios_interfaces=("fake", "no-bios")
    ).enabled()
    bios = {one.name: one.default for one in found if one.kind == "bios"}
    assert bios == {"fake": True, "no-bios": False}
    for kind in INTERFACES:
        assert sum(one.default for one in found if one.kind == kind) == 1


def test_properties_are_those_of_the_default_interfaces():
    assert "B1" in load().properties_of("fake-hardware")
    with pytest.raises(errors.DriverNotFound):
        load().properties_of("no-such")


@pytest.mark.parametrize(
    ("kind", "driver"),
    [("management", "redfish"), ("management", "fake-hardware"), ("deploy", "fake-hardware")],
)
def test_a_configuration_may_name_interfaces_that_do_nothing(kind: str, driver: str):
    names = {"enabled_management_interfaces": ("noop", "fake", "redfish")}
    names |= {"enabled_deploy_interfaces": ("noop", "fake", "ramdisk")}
    chosen = load(**names, **{f"default_{kind}_interface": "noop"} if kind == "management" else {})
    named = chosen.driver_of(node(driver=driver, **{f"{kind}_interface": "noop"}))
    assert named.interface(kind).name == "noop"
    named.interface(kind).validate(None)  # type: ignore[arg-type]


def test_management_that_does_nothing_accepts_every_boot_device():
    management = load(enabled_management_interfaces=("noop", "fake", "redfish")).interfaces[
        "management"
    ]
    noop: Any = management["noop"]
    noop.set_boot_device(None, "cdrom", persistent=True)
    assert noop.get_boot_device(None) == {"boot_device": None, "persistent": None}
    assert noop.get_supported_boot_devices(None) == ("pxe", "disk")


def test_storage_does_nothing_by_default():
    both = load(enabled_storage_interfaces=("fake", "noop"))
    assert both.default_for("fake-hardware", "storage") == "noop"
