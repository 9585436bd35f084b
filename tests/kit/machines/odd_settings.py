"""BMCs of public reports whose settings, inventories, sensors and power are odd.

The rows are those of ``bmc_oddities``, which tells how a row is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bloomery.conductor.sensor_board import list_leaks
from tests.kit.machines.bmc_oddities import ODDITIES, SYSTEM, Json, Oddity, ignored, refusal, shows

IRONIC: Final = "https://opendev.org/openstack/ironic/src/branch/master/releasenotes/notes/"
SUSHY: Final = "https://opendev.org/openstack/sushy/src/branch/master/releasenotes/notes/"
REGISTRY: Final = r"/Registries/LabBios\.1\.0$"
NIC: Final = r"/EthernetInterfaces/0$"


def nic(*addresses: str | None, **more: Any) -> Json:
    """Return a fault: the only interface has this address, and perhaps a permanent one."""
    names = ("MACAddress", "PermanentMACAddress")
    return shows(NIC, dict.fromkeys(names) | dict(zip(names, addresses, strict=False)) | more)


def _mac(address: str) -> Json:
    return dict.fromkeys(("MACAddress", "PermanentMACAddress"), address)


def has_ports(*addresses: str) -> Callable[[Any], bool]:
    """Return a check of what an inspection made: ports with these addresses alone."""
    return lambda read: [port["address"] for port in read["ports"]] == list(addresses)


def _quirk(words: str) -> Callable[[Any], bool]:
    return lambda report: any(words in quirk for quirk in report["quirks"])


def _checks(name: str, **facts: Any) -> Callable[[Any], bool]:
    """Return a check of a report: the feature of this name has these facts."""
    return lambda report: all(
        check[key] == fact
        for check in report["checks"]
        if check["name"] == name
        for key, fact in facts.items()
    )


BIOS_SETTINGS: Final = (
    Oddity(
        id="bios-registry-of-another-version",
        source="https://github.com/ansible-collections/community.general/pull/7144",
        bmc="the registry of BIOS attributes has another version than the BIOS names",
        operation="read BIOS settings",
        faults=(
            shows("/Bios$", {"AttributeRegistry": "LabBios.1.0.3"}),
            refusal(404, "Base.1.8.ResourceMissingAtURI", "missing", path=r"LabBios\.1\.0\.3$"),
        ),
    ),
    Oddity(
        id="bios-registry-is-american",
        source=f"{SUSHY}non-default-language-registries-f73bdecc98ba2cc8.yaml",
        bmc="the registry of BIOS attributes has the language en-US",
        operation="read BIOS settings",
        faults=(
            shows(
                REGISTRY,
                {
                    "Languages": ["en-US"],
                    "Location": [
                        {"Language": "en-US", "Uri": "/redfish/v1/Registries/LabBios.1.0/en"}
                    ],
                },
            ),
        ),
    ),
    Oddity(
        id="bios-registry-cannot-be-read",
        source="https://github.com/DMTF/Redfish-Service-Validator/issues/359",
        bmc="the file of the registry names neither the registry nor its place (AMI)",
        operation="check the BMC",
        faults=(shows(REGISTRY, dict.fromkeys(("Id", "Registry", "Location", "Languages"))),),
        reads=_quirk("it shows no attribute registry LabBios.1.0"),
    ),
    Oddity(
        id="bios-has-no-attributes",
        source="https://github.com/ansible/ansible/issues/48296",
        bmc="the BIOS shows its settings elsewhere than in Attributes (HPE iLO 4)",
        operation="check the BMC",
        faults=(shows("/Bios$", {"Attributes": None}),),
        reads=_checks("BIOS", works=False),
    ),
    Oddity(
        id="bios-value-is-none-of-the-registry",
        source="https://bugs.launchpad.net/ironic/+bug/2148675",
        bmc="the registry allows 1 to 3 cores, and 4 are asked for",
        operation="apply BIOS settings",
        faults=(
            shows(
                f"{REGISTRY[:-1]}/en$",
                {
                    "RegistryEntries": {
                        "Attributes": [
                            {
                                "AttributeName": "NumCores",
                                "Type": "Integer",
                                "LowerBound": 1,
                                "UpperBound": 3,
                            }
                        ]
                    }
                },
            ),
        ),
        ends="clean failed",
        says="it takes a whole number of at least 1 and of at most 3",
    ),
)

BOOT_SETTINGS: Final = (
    Oddity(
        id="boot-mode-falls-back-to-legacy",
        source="https://github.com/DMTF/Redfishtool/pull/106",
        bmc="a PATCH of Boot without the mode sets Legacy (Supermicro)",
        operation="deploy",
        machine={"forgets_mode": True},
        is_so=lambda system: system.booted["mode"] == "UEFI",
    ),
    Oddity(
        id="boot-wants-the-whole-triple",
        source=f"{IRONIC}redfish-full-boot-payload-asrockrack-79a9291da8ec5a50.yaml",
        bmc="a PATCH of Boot must name Enabled, Target and Mode (ASRock Rack, AMI)",
        operation="deploy",
        machine={"wants_triple": True},
        is_so=lambda system: system.booted["mode"] == "UEFI",
    ),
    Oddity(
        id="boot-mode-is-shown-and-not-writable",
        source="https://github.com/ansible-collections/community.general/issues/3509",
        bmc="the boot mode is shown, and a PATCH that names it is refused",
        operation="deploy",
        machine={"modes": ()},
        faults=(shows(SYSTEM, {"Boot": {"BootSourceOverrideMode": "UEFI"}}),),
    ),
    Oddity(
        id="boot-mode-is-misspelled",
        source=f"{SUSHY}fix-malformed-boot-mode-1ba1117cad8dcc47.yaml",
        bmc="the boot mode is shown as Uefi",
        operation="check the BMC",
        faults=(
            shows(
                SYSTEM,
                {
                    "Boot": {
                        "BootSourceOverrideMode": "Uefi",
                        "BootSourceOverrideMode@Redfish.AllowableValues": ["Uefi", "Legacy"],
                    }
                },
            ),
        ),
        reads=_checks("boot mode", works=True, detail="uefi", allowed=["uefi", "bios"]),
    ),
    Oddity(
        id="boot-mode-is-not-shown",
        source=f"{IRONIC}redfish-boot-mode-override-not-present-handling-92e7263617e467c4.yaml",
        bmc="Boot has no mode",
        operation="deploy",
        machine={"modes": ()},
    ),
    Oddity(
        id="boot-stores-nothing",
        source="https://github.com/bmc-toolbox/bmclib/pull/459",
        bmc="PATCH of Boot is 200, and nothing is stored",
        operation="deploy",
        faults=(ignored(SYSTEM, "PATCH", 200),),
        ends="deploy failed",
        says="accepted the order to boot from cdrom, and does not show it",
        is_so=lambda system: system.power == "Off",
    ),
    Oddity(
        id="boot-device-stores-nothing-by-request",
        source="https://github.com/kubevirtbmc/kubevirtbmc/issues/166",
        bmc="PATCH of Boot is 204, and nothing is stored",
        operation="set boot device",
        faults=(ignored(SYSTEM, "PATCH"),),
        ends="failed",
        says="accepted the order to boot from pxe, and does not show it",
    ),
    *(
        Oddity(
            id=f"{operation.replace(' ', '-')}-stores-nothing",
            source="https://github.com/bmc-toolbox/bmclib/pull/459, there of the boot device",
            bmc="PATCH is 200, and nothing is stored",
            operation=operation,
            faults=(ignored(path, "PATCH", 200),),
            ends="failed",
            says="does not show it as done after the machine has booted",
            is_so=lambda system: system.power == "Off",
        )
        for operation, path in (("boot mode", SYSTEM), ("secure boot", "/SecureBoot$"))
    ),
    *(
        Oddity(
            id=f"{operation.replace(' ', '-')}-loses-the-boot-device",
            source="https://github.com/ironcore-dev/metal-operator/issues/938",
            bmc="a boot device is shown as set, and is gone after the Reset to On",
            operation=operation,
            machine={"forgets_boot": True},
            ends="deploy failed",
            says=f"the BMC lost the boot device {target} at the power on",
            is_so=lambda system: system.power == "Off",
        )
        for operation, target in (("deploy", "Cd"), ("deploy by redfish-https", "UefiHttp"))
    ),
    Oddity(
        id="boot-is-stored-later",
        source="https://github.com/ansible-collections/community.general/issues/5091",
        bmc="PATCH of Boot is 200, and is shown a second later",
        operation="deploy",
        faults=({"kind": "later", "path": SYSTEM, "method": "PATCH", "seconds": 1, "status": 200},),
    ),
    Oddity(
        id="boot-is-a-task",
        source="https://github.com/ansible-collections/community.general/issues/5091",
        bmc="PATCH of Boot is 202 with a task",
        operation="deploy",
        faults=({"kind": "task", "path": SYSTEM, "method": "PATCH", "seconds": 1},),
    ),
    Oddity(
        id="boot-task-fails",
        source="https://github.com/ansible-collections/community.general/issues/5091",
        bmc="PATCH of Boot is 202 with a task that fails",
        operation="deploy",
        faults=(
            {
                "kind": "task",
                "path": SYSTEM,
                "method": "PATCH",
                "seconds": 0.5,
                "message": "a job is pending",
            },
        ),
        ends="deploy failed",
        says="a job is pending",
    ),
    Oddity(
        id="boot-is-refused-during-post",
        source="https://bugs.launchpad.net/ironic/+bug/2136275",
        bmc="PATCH of Boot is 400 once, while the machine is in POST (HPE iLO)",
        operation="deploy",
        faults=(
            refusal(
                400,
                "iLO.2.25.UnableToModifyDuringSystemPOST",
                "in POST",
                path=SYSTEM,
                method="PATCH",
                times=1,
            ),
        ),
    ),
    Oddity(
        id="boot-has-no-override",
        source="https://github.com/ibm-openbmc/bmcweb/pull/209",
        bmc="Boot has an order of boot options alone",
        operation="check the BMC",
        faults=(
            shows(
                SYSTEM,
                {
                    "Boot": {
                        "BootSourceOverrideTarget": None,
                        "BootSourceOverrideEnabled": None,
                        "BootSourceOverrideMode": None,
                        "HttpBootUri": None,
                        "BootSourceOverrideTarget@Redfish.AllowableValues": None,
                        "BootSourceOverrideMode@Redfish.AllowableValues": None,
                    }
                },
            ),
        ),
        reads=lambda report: (
            not report["usable"]
            and _checks("boot device", works=False)(report)
            and not _quirk("order of boot options")(report)
        ),
    ),
    Oddity(
        id="boot-has-no-override-and-no-devices",
        source=f"{SUSHY}do_not_require_actions_or_boot-b495d5407666be8b.yaml",
        bmc="the system has no Boot",
        operation="list boot devices",
        faults=(shows(SYSTEM, {"Boot": None}),),
        reads=lambda read: read["supported_boot_devices"] == [],
    ),
    *(
        Oddity(
            id=f"boot-has-an-order-alone-{operation.replace(' ', '-')}",
            source="https://github.com/ibm-openbmc/bmcweb/pull/209",
            bmc="Boot has no override, and an order of boot options that can be written",
            operation=operation,
            machine={"order": (("Boot0001", "Hdd"), ("Boot0002", "Pxe"), ("Boot0003", "Cd"))},
            is_so=is_so,
            reads=reads,
        )
        for operation, is_so, reads in (
            ("deploy", lambda system: system.order[0] == "Boot0003", lambda read: True),
            (
                "list boot devices",
                lambda system: True,
                lambda read: read["supported_boot_devices"] == ["pxe", "disk", "cdrom"],
            ),
            ("check the BMC", lambda system: True, _checks("boot device", works=True)),
        )
    ),
    *(
        Oddity(
            id=f"boot-has-boot-next-{name}-{operation.replace(' ', '-')}",
            source="DMTF DSP0268, ComputerSystem: BootNext",
            bmc=f"Boot has no override, and BootNext {name.replace('-', ' ')}",
            operation=operation,
            machine={
                "order": (("Boot0001", "Hdd"), ("Boot0002", "Pxe"), ("Boot0003", "Cd")),
                "order_settings": settings,
            },
            is_so=is_so,
            reads=reads,
        )
        for name, settings in (
            ("alone", ("BootNext",)),
            ("beside-the-order", ("BootOrder", "BootNext")),
        )
        for operation, is_so, reads in (
            ("deploy", lambda system: system.booted["target"] == "Cd", lambda read: True),
            (
                "list boot devices",
                lambda system: True,
                lambda read: read["supported_boot_devices"] == ["pxe", "disk", "cdrom"],
            ),
            (
                "boot agent by pxe",
                lambda system: system.order == ["Boot0001", "Boot0002", "Boot0003"],
                lambda read: True,
            ),
            ("check the BMC", lambda system: True, _checks("boot device", works=True)),
        )
    ),
    Oddity(
        id="boot-has-no-override-to-set",
        source="https://bugs.launchpad.net/sushy/+bug/2131942",
        bmc="the system has no Boot (NVIDIA HGX)",
        operation="set boot device",
        faults=(shows(SYSTEM, {"Boot": None}),),
        ends="failed",
        says="its BMC offers neither an override of the boot device",
    ),
    Oddity(
        id="boot-once-is-all-there-is",
        source=f"{IRONIC}redfish-sadness-6e2a37b3f45ef1aa.yaml",
        bmc="a persistent boot device is refused",
        operation="deploy",
        machine={"enables": ("Once", "Disabled")},
    ),
)

ARRAY: Final = "/redfish/v1/Systems/1/SmartStorage/ArrayControllers/0"

INSPECTION: Final = (
    *(
        Oddity(
            id=f"mac-{name}",
            source=source,
            bmc=f"the interface's address is {' and '.join(map(repr, addresses))}",
            operation="inspect and show",
            faults=(nic(*addresses),),
            reads=has_ports(port),
        )
        for name, source, addresses, port in (
            (
                "with-dashes",
                "https://redfish.dmtf.org/schemas/v1/EthernetInterface.json",
                ("02-AA-01-00-00-01",),
                "02:aa:01:00:00:01",
            ),
            (
                "of-digits",
                "https://github.com/nsacyber/paccor/pull/75",
                ("02AA01000002",),
                "02:aa:01:00:00:02",
            ),
            (
                "with-short-groups",
                "https://github.com/joyent/conch-api/issues/530",
                ("2:aa:1:0:0:3",),
                "02:aa:01:00:00:03",
            ),
            (
                "permanent-is-zero",
                f"{IRONIC}redfish-inspect-invalid-mac-speed-bd0f7802cf18bd5d.yaml",
                ("02:AA:01:00:00:04", "00:00:00:00:00:00"),
                "02:aa:01:00:00:04",
            ),
            (
                "permanent-is-empty",
                f"{SUSHY}skip-empty-mac-address-0d758a9c0d70e2a9.yaml",
                ("02:AA:01:00:00:05", ""),
                "02:aa:01:00:00:05",
            ),
        )
    ),
    *(
        Oddity(
            id=f"interface-{name}",
            source=source,
            bmc=bmc,
            operation="inspect and show",
            machine={"macs": (f"02:aa:02:00:00:{at:02x}", f"02:aa:02:00:01:{at:02x}")},
            faults=(shows(NIC, document),),
            reads=has_ports(f"02:aa:02:00:01:{at:02x}"),
        )
        for at, (name, source, bmc, document) in enumerate(
            (
                (
                    "address-is-zero",
                    "https://github.com/canonical/checkbox/issues/390",
                    "an interface has the address 00:00:00:00:00:00",
                    _mac("00:00:00:00:00:00"),
                ),
                (
                    "address-is-empty",
                    "https://github.com/dell/iDRAC-Redfish-Scripting/issues/349",
                    "an interface has an empty address (Dell iDRAC 10)",
                    _mac(""),
                ),
                (
                    "is-infiniband",
                    "https://github.com/dsx-ai-factory/infra-controller/issues/4756",
                    "the address of an interface has 20 bytes, as InfiniBand's do (BlueField)",
                    _mac("00:00:11:e7:fe:80:00:00:00:00:00:00:02:00:00:03:00:18:00:01"),
                ),
                (
                    "leads-to-the-bmc",
                    "https://github.com/ansible-collections/community.general/pull/3693",
                    "the interface ToManager leads to the BMC",
                    {"Id": "ToManager"},
                ),
                (
                    "has-the-address-of-another",
                    "https://github.com/dsx-ai-factory/infra-controller/issues/4436",
                    "two interfaces have one address",
                    _mac("02:AA:02:00:01:04"),
                ),
            )
        )
    ),
    Oddity(
        id="interfaces-are-those-of-the-adapters",
        source="https://github.com/dsx-ai-factory/infra-controller/issues/4436",
        bmc="the system has no interfaces, and the ports of its network adapters do (Lenovo XCC)",
        operation="inspect and show",
        faults=(
            shows("/EthernetInterfaces$", {"Members": []}),
            shows(
                "/NetworkAdapters/[^/]+/Ports/[^/]+$",
                {"Ethernet": {"AssociatedMACAddresses": ["02-AA-03-00-00-07"]}},
            ),
        ),
        reads=has_ports("02:aa:03:00:00:07"),
    ),
    Oddity(
        id="speed-is-text",
        source=f"{IRONIC}redfish-inspect-invalid-mac-speed-bd0f7802cf18bd5d.yaml",
        bmc="the speed of an interface is a text",
        operation="inspect and show",
        faults=(nic("02:aa:03:00:00:01", SpeedMbps="25 Gbps"),),
        reads=has_ports("02:aa:03:00:00:01"),
    ),
    Oddity(
        id="system-has-a-vendor-of-its-board",
        source="https://github.com/dsx-ai-factory/libredfish/pull/92",
        bmc="the root's Vendor is that of the BMC, AMI; the system's Manufacturer is Lenovo",
        operation="detect the vendor",
        faults=(
            shows(r"/redfish/v1/?$", {"Vendor": "AMI"}),
            shows(SYSTEM, {"Manufacturer": "Lenovo"}),
        ),
        reads=lambda vendor: vendor == "Lenovo",
    ),
    Oddity(
        id="system-has-no-manufacturer",
        source="https://github.com/DMTF/python-redfish-library/issues/71",
        bmc="the system's Manufacturer is empty, the root's Vendor is not",
        operation="detect the vendor",
        faults=(
            shows(r"/redfish/v1/?$", {"Vendor": "Contoso"}),
            shows(SYSTEM, {"Manufacturer": ""}),
        ),
        reads=lambda vendor: vendor == "Contoso",
    ),
    Oddity(
        id="system-name-is-no-product",
        source="https://bugs.launchpad.net/ironic/+bug/2136233",
        bmc="the system's Name is System, its Model says what it is",
        operation="inspect and show",
        faults=(nic("02:aa:03:00:00:02"), shows(SYSTEM, {"Name": "System", "Model": "R750"})),
        reads=lambda read: read["inventory"]["system_vendor"]["product_name"] == "R750",
    ),
    Oddity(
        id="drives-without-a-size",
        source="https://bugs.launchpad.net/sushy/+bug/2150858",
        bmc="a drive tells no CapacityBytes",
        operation="inspect and show",
        faults=(nic("02:aa:03:00:00:03"), shows("/Drives/0$", {"CapacityBytes": None})),
        reads=lambda read: read["properties"]["local_gb"] == 479,
    ),
    Oddity(
        id="processor-tells-its-instructions-alone",
        source="https://github.com/ibm-openbmc/dev/issues/278",
        bmc="a processor has an InstructionSet and no ProcessorArchitecture",
        operation="inspect and show",
        faults=(
            nic("02:aa:03:00:00:04"),
            shows("/Processors/0$", {"ProcessorArchitecture": None, "InstructionSet": "ARM-A64"}),
        ),
        reads=lambda read: read["properties"]["cpu_arch"] == "aarch64",
    ),
    Oddity(
        id="interface-is-listed-and-missing",
        source=f"{SUSHY}handle-missing-collection-members-8ccbd4588790eabe.yaml",
        bmc="the collection of interfaces lists one that is a 404 (NVIDIA HGX)",
        operation="inspect and show",
        machine={"macs": ("02:aa:03:00:00:05", "02:aa:03:00:00:06")},
        faults=(refusal(404, "Base.1.8.ResourceMissingAtURI", "missing", path=NIC),),
        reads=has_ports("02:aa:03:00:00:06"),
    ),
    Oddity(
        id="disks-in-smart-storage",
        source="https://github.com/mrlhansen/idrac_exporter/issues/136",
        bmc="Storage is empty, and SmartStorage has the disks (HPE iLO 5)",
        operation="inspect and show",
        model="hpe-ilo5",
        reads=lambda read: read["properties"]["local_gb"] == 446,
    ),
    Oddity(
        id="smart-storage-has-hrefs",
        source="https://github.com/mrlhansen/idrac_exporter/issues/57",
        bmc="SmartStorage has links with href in place of Links with @odata.id (HPE iLO 4)",
        operation="inspect and show",
        model="hpe-ilo5",
        faults=(
            shows(
                r"(?i)/ArrayControllers/0/?$",
                {
                    "Links": None,
                    "links": {
                        "LogicalDrives": {"href": f"{ARRAY}/LogicalDrives/"},
                        "PhysicalDrives": {"href": f"{ARRAY}/DiskDrives/"},
                    },
                },
            ),
        ),
        reads=lambda read: read["properties"]["local_gb"] == 446,
    ),
)

SENSORS: Final = (
    Oddity(
        id="sensors-without-a-member-id",
        source="https://github.com/ansible-collections/community.general/pull/3233",
        bmc="temperatures have Names and no MemberId (Cisco)",
        operation="read sensors",
        faults=(
            shows(
                "/Thermal$",
                {
                    "Temperatures": [
                        {"Name": name, "ReadingCelsius": 40} for name in ("P1_TEMP", "P2_TEMP")
                    ]
                },
            ),
        ),
        reads=lambda read: (
            {name.partition("@")[0] for name in read["Temperature"]} == {"P1_TEMP", "P2_TEMP"}
        ),
    ),
    Oddity(
        id="leak-detector-without-a-state",
        source="DMTF DSP0268, LeakDetector: DetectorState is not required",
        bmc="a leak detector has a Health and no DetectorState",
        operation="read sensors",
        machine={"detectors": ("Leak_0",)},
        faults=(
            shows(
                "/LeakDetectors/",
                {
                    "DetectorState": None,
                    "Status": {"Health": "Critical"},
                },
            ),
        ),
        reads=lambda read: len(list_leaks(read)) == 1,
    ),
    Oddity(
        id="leak-detector-is-listed-and-missing",
        source="DMTF DSP0266, members of collections",
        bmc="the collection of leak detectors lists one that is a 404",
        operation="read sensors",
        machine={"detectors": ("Leak_0", "Leak_1")},
        faults=(
            refusal(404, "Base.1.8.ResourceMissingAtURI", "missing", path="/LeakDetectors/Leak_0$"),
        ),
        reads=lambda read: [name.partition("@")[0] for name in read["LeakDetector"]] == ["Leak_1"],
    ),
)

FIRMWARE_UPDATES: Final = (
    Oddity(
        id="manager-without-a-version",
        source=f"{IRONIC}firmware-fail-c6f6c70220373033.yaml",
        bmc="the manager tells no FirmwareVersion",
        operation="check the BMC",
        faults=(shows("/Managers/[^/]+$", {"FirmwareVersion": None}),),
        reads=lambda report: report["identity"]["bmc_firmware"] is None,
    ),
)

_DELL: Final = "https://github.com/dell/"
BUSY: Final = tuple(
    Oddity(
        id=f"{operation}-{name}-is-busy-{status}".lower().replace(" ", "-"),
        source=source,
        bmc=f"{name} is {status} with Retry-After, twice: {message}",
        operation=operation,
        faults=(
            refusal(
                status, code, message, path=path, method=method, times=2,
                headers={"Retry-After": "1"},
            ),
        ),
    )
    for source, status, code, message, calls in (
        (
            f"{_DELL}iDRAC-Redfish-Scripting/issues/116", 503,
            "Base.1.8.ServiceTemporarilyUnavailable", "The service is temporarily unavailable.",
            (
                ("deploy", "GET of the system", SYSTEM, "GET"),
                ("deploy", "InsertMedia", "InsertMedia$", "POST"),
                ("deploy", "PATCH of Boot", SYSTEM, "PATCH"),
                ("deploy", "Reset", r"ComputerSystem\.Reset$", "POST"),
                ("deploy by redfish-https", "PATCH of Boot", SYSTEM, "PATCH"),
                ("undeploy", "Reset", r"ComputerSystem\.Reset$", "POST"),
                ("undeploy", "EjectMedia", "EjectMedia$", "POST"),
                ("apply BIOS settings", "PATCH", "/Bios/Settings$", "PATCH"),
                ("update firmware", "SimpleUpdate", r"SimpleUpdate$", "POST"),
            ),
        ),
        (
            f"{_DELL}terraform-provider-redfish/issues/342", 429,
            "Base.1.8.GeneralError", "Too many requests.",
            (
                ("deploy", "GET of the system", SYSTEM, "GET"),
                ("undeploy", "EjectMedia", "EjectMedia$", "POST"),
            ),
        ),
        (
            "https://github.com/fwupd/fwupd/pull/4836", 409,
            "Base.1.8.ResourceInUse", "Another update is in progress.",
            (
                ("update firmware", "SimpleUpdate", r"SimpleUpdate$", "POST"),
                ("undeploy", "Reset", r"ComputerSystem\.Reset$", "POST"),
                ("rebooting", "Reset", r"ComputerSystem\.Reset$", "POST"),
                ("apply BIOS settings", "PATCH", "/Bios/Settings$", "PATCH"),
            ),
        ),
    )
    for operation, name, path, method in calls
)  # fmt: skip

POWER: Final = (
    Oddity(
        id="power-on-conflicts-for-a-while",
        source="https://bugs.launchpad.net/ironic/+bug/2162995",
        bmc="the first On after a power off is 409 (Dell iDRAC10)",
        operation="power on",
        faults=(
            refusal(
                409,
                "Base.1.18.ActionParameterValueConflict",
                "conflict",
                path=r"ComputerSystem\.Reset$",
                method="POST",
                times=1,
            ),
        ),
    ),
    Oddity(
        id="resets-are-described-elsewhere",
        source=f"{SUSHY}reset-action-info-116108027e85e510.yaml",
        bmc="the resets stand in an ActionInfo",
        operation="power on",
        model="lenovo-xcc",
    ),
    Oddity(
        id="restart-is-never-graceful",
        source="https://github.com/quadsproject/badfish/issues/118",
        bmc="the resets lack GracefulRestart (Dell iDRAC 9)",
        operation="soft rebooting",
        machine={"resets": ("On", "ForceOff", "ForceRestart", "GracefulShutdown")},
        ends="failed",
        says="the BMC offers no GracefulRestart",
    ),
    Oddity(
        id="system-is-pulled",
        source="DMTF DSP0266, 404 for a resource that is gone",
        bmc="GET of the system is 404, and of others is not: its tray was pulled",
        operation="power on",
        faults=(refusal(404, "Base.1.8.ResourceMissingAtURI", "missing", path=SYSTEM),),
        ends="failed",
        says="see whether its tray is in place",
    ),
)

ALL: Final[tuple[Oddity, ...]] = (
    *ODDITIES,
    *BIOS_SETTINGS,
    *BOOT_SETTINGS,
    *INSPECTION,
    *SENSORS,
    *FIRMWARE_UPDATES,
    *BUSY,
    *POWER,
)
