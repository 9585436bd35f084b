"""The makes of BMC, modelled on real documents.

Names and numbers are those of public mock-ups and of such BMCs.  Only the differences that matter
to clients are here.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.lab.model import GENERIC, ROOT, Model
from bloomery.lab.routing import HEALTHY, ref

__all__ = ["ALL", "GENERIC", "of"]

Json: TypeAlias = dict[str, Any]

_ABSENT: Final = {"State": "Absent"}
_RESET: Final = "#ComputerSystem.Reset"
_ALLOWED: Final = "ResetType@Redfish.AllowableValues"


def of(name: str) -> Model:
    """Return a model.  Raises InvalidParameterValue for an unknown name."""
    try:
        return ALL[name]
    except KeyError:
        raise errors.InvalidParameterValue(
            reason=f"the lab has no model {name!r}: it has {', '.join(ALL)}",
        ) from None


def _members(path: str, *names: str) -> Json:
    members = [ref(f"{path}/{name}") for name in names]
    return {"Members@odata.count": len(members), "Members": members}


def _reset_info(path: str, resets: tuple[str, ...], **system: Any) -> dict[str, Json]:
    """Return a system with its reset types in an ActionInfo document, as newer BMCs have it."""
    info = {"Name": "ResetType", "Required": True, "DataType": "String"}
    where = f"{path}/ResetActionInfo"
    offered = {_ALLOWED: None, "@Redfish.ActionInfo": ROOT + where}
    return {
        path: {"Actions": {_RESET: offered}} | system,
        where: {"Id": "ResetActionInfo", "Parameters": [info | {"AllowableValues": list(resets)}]},
    }


DMTF: Final = Model(
    name="dmtf-rackmount1",
    about="DMTF's public mock-up: SimpleStorage, media that are written to.",
    machine={
        "targets": ("None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Utilities", "Diags",
                    "SDCard", "UefiTarget"),
        "media": (("CD1", ("CD", "DVD")), ("Floppy1", ("Floppy", "USBStick"))),
        "media_by_patch": True,
        "memory_gib": 96,
    },
    places={
        "/Systems/@": "/Systems/437XR1138R2",
        "/Systems/@/Bios": "/Systems/437XR1138R2/BIOS",
        "/Managers/@": "/Managers/BMC",
        "/Chassis/@": "/Chassis/1U",
    },
    documents={
        "": {"Vendor": "Contoso", "Product": "UR99 1U Server"},
        "/Systems/437XR1138R2": {
            "Manufacturer": "Contoso", "Model": "3500RX", "Storage": None, "VirtualMedia": None,
            "SimpleStorage": ref("/Systems/437XR1138R2/SimpleStorage"),
            "Boot": {"UefiTargetBootSourceOverride": "/0x31/0x33/0x01/0x01", "HttpBootUri": None},
        },
        "/Systems/437XR1138R2/SimpleStorage": _members("/Systems/437XR1138R2/SimpleStorage", "1"),
        "/Systems/437XR1138R2/SimpleStorage/1": {
            "Id": "1", "Name": "Simple Storage Controller", "Status": HEALTHY,
            "Devices": [
                {"Name": "SATA Bay 1", "Manufacturer": "Contoso", "Model": "3000GT8",
                 "CapacityBytes": 8_000_000_000_000, "Status": HEALTHY},
                {"Name": "SATA Bay 2", "Manufacturer": "Contoso", "Model": "3000GT7",
                 "CapacityBytes": 4_000_000_000_000, "Status": HEALTHY},
                {"Name": "SATA Bay 3", "Status": _ABSENT},
            ],
        },
        "/Chassis/1U": {"UUID": None},
    },
)  # fmt: skip

_ILO_REGISTRY: Final = "biosattributeregistryu54.v1_40"

HPE: Final = Model(
    name="hpe-ilo6",
    about="HPE iLO 6: paths in two cases that end in a slash, a BIOS whose registry is a 404.",
    machine={
        "resets": ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi",
                   "PushPowerButton", "GracefulRestart"),
        "targets": ("None", "Cd", "Hdd", "Usb", "SDCard", "Utilities", "Diags", "BiosSetup",
                    "Pxe", "UefiShell", "UefiHttp", "UefiTarget"),
        "modes": ("UEFI",),
        "media": (("1", ("Floppy", "USBStick")), ("2", ("CD", "DVD"))),
    },
    places={
        "/Systems/@": "/Systems/1",
        "/Systems/@/Bios": "/systems/1/bios",
        "/Systems/@/Storage/1": "/Systems/1/Storage/DE00C000",
        "/Managers/@": "/Managers/1",
        "/Chassis/@": "/Chassis/1",
        "/Registries/LabBios.1.0": f"/registries/{_ILO_REGISTRY}",
    },
    documents={
        "": {"Vendor": "HPE", "Product": "ProLiant DL360 Gen11"},
        "/Systems/1": {"Manufacturer": "HPE", "Model": "ProLiant DL360 Gen11"},
        "/systems/1/bios": {"AttributeRegistry": "BiosAttributeRegistryU54.v1_40"},
        f"/registries/{_ILO_REGISTRY}": {
            "Id": _ILO_REGISTRY, "Registry": "BiosAttributeRegistryU54.v1_40",
            "Location": [{
                "Language": "en",
                "Uri": f"{ROOT}/registrystore/registries/en/{_ILO_REGISTRY}",
            }],
        },
        "/Managers/1": {"Model": "iLO 6", "FirmwareVersion": "iLO 6 v1.53"},
        "/Chassis/1": {"UUID": None},
    },
    gone=("/registrystore",),
    slash=True,
    folds_case=True,
)  # fmt: skip

_ILO5_STORE: Final = "/Systems/1/SmartStorage"
_ILO5_ARRAY: Final = f"{_ILO5_STORE}/ArrayControllers/0"

HPE_ILO5: Final = Model(
    name="hpe-ilo5",
    about="HPE iLO 5: an empty Storage, and disks in HPE's own SmartStorage.",
    machine={
        "resets": ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi",
                   "PushPowerButton"),
        "targets": ("None", "Cd", "Hdd", "Usb", "SDCard", "Utilities", "Diags", "BiosSetup",
                    "Pxe", "UefiShell", "UefiHttp", "UefiTarget"),
        "modes": ("UEFI", "Legacy"),
        "media": (("1", ("Floppy", "USBStick")), ("2", ("CD", "DVD"))),
    },
    places={
        "/Systems/@": "/Systems/1",
        "/Managers/@": "/Managers/1",
        "/Chassis/@": "/Chassis/1",
    },
    documents={
        "": {"Vendor": "HPE", "Product": "ProLiant DL380 Gen10"},
        "/Systems/1": {
            "Manufacturer": "HPE", "Model": "ProLiant DL380 Gen10",
            "Oem": {"Hpe": {"Links": {"SmartStorage": ref(_ILO5_STORE)}}},
        },
        "/Systems/1/Storage": {"Members@odata.count": 0, "Members": []},
        _ILO5_STORE: {
            "Id": "SmartStorage", "Name": "HpeSmartStorage", "Status": HEALTHY,
            "Links": {"ArrayControllers": ref(f"{_ILO5_STORE}/ArrayControllers")},
        },
        f"{_ILO5_STORE}/ArrayControllers": _members(f"{_ILO5_STORE}/ArrayControllers", "0", "1"),
        _ILO5_ARRAY: {
            "Id": "0", "Name": "HpeSmartStorageArrayController", "Model": "HPE P408i-a SR Gen10",
            "Links": {
                "LogicalDrives": ref(f"{_ILO5_ARRAY}/LogicalDrives"),
                "PhysicalDrives": ref(f"{_ILO5_ARRAY}/DiskDrives"),
            },
        },
        f"{_ILO5_ARRAY}/LogicalDrives": _members(f"{_ILO5_ARRAY}/LogicalDrives", "1"),
        f"{_ILO5_ARRAY}/LogicalDrives/1": {
            "Id": "1", "LogicalDriveName": "LogicalDrive_0", "CapacityMiB": 457_862,
            "Raid": "1", "MediaType": "SSD", "Status": HEALTHY,
        },
        f"{_ILO5_ARRAY}/DiskDrives": _members(f"{_ILO5_ARRAY}/DiskDrives", "0"),
        f"{_ILO5_ARRAY}/DiskDrives/0": {
            "Id": "0", "Location": "1I:3:1", "CapacityMiB": 457_862, "MediaType": "SSD",
            "Model": "MK000480GWXFF", "SerialNumber": "S4600000", "Status": HEALTHY,
        },
        f"{_ILO5_STORE}/ArrayControllers/1": {
            "Id": "1", "Name": "HpeSmartStorageArrayController", "Model": "HPE E208i-p SR Gen10",
            "Links": {
                "LogicalDrives": ref(f"{_ILO5_STORE}/ArrayControllers/1/LogicalDrives"),
                "PhysicalDrives": ref(f"{_ILO5_STORE}/ArrayControllers/1/DiskDrives"),
            },
        },
        f"{_ILO5_STORE}/ArrayControllers/1/LogicalDrives": {
            "Members@odata.count": 0, "Members": [],
        },
        f"{_ILO5_STORE}/ArrayControllers/1/DiskDrives": _members(
            f"{_ILO5_STORE}/ArrayControllers/1/DiskDrives", "0", "1"
        ),
        f"{_ILO5_STORE}/ArrayControllers/1/DiskDrives/0": {
            "Id": "0", "Location": "1I:1:1", "CapacityMiB": 1_907_729, "MediaType": "HDD",
            "Model": "MM2000GEFRA", "SerialNumber": "W4600000", "Status": HEALTHY,
        },
        f"{_ILO5_STORE}/ArrayControllers/1/DiskDrives/1": {
            "Id": "1", "Location": "1I:1:2", "Status": _ABSENT,
        },
        "/Managers/1": {"Model": "iLO 5", "FirmwareVersion": "iLO 5 v2.72"},
        "/Chassis/1": {"UUID": None},
    },
    slash=True,
    folds_case=True,
)  # fmt: skip

SUPERMICRO: Final = Model(
    name="supermicro-x10",
    about="Supermicro X10: Storage and registries are 404s, no memory told, no virtual CD.",
    machine={
        "resets": ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "ForceOn"),
        "targets": ("None", "Pxe", "Hdd", "Diags", "CD/DVD", "BiosSetup", "FloppyRemovableMedia",
                    "UsbKey", "UsbHdd", "UsbFloppy", "UefiUsbKey"),
        "modes": (),
        "media": (),
    },
    places={
        "/Systems/@": "/Systems/1",
        "/Managers/@": "/Managers/1",
        "/Managers/@/VirtualMedia": "/Managers/1/VM1",
        "/Chassis/@": "/Chassis/1",
    },
    documents={
        "": {"Vendor": None},
        "/Systems/1": {
            "Manufacturer": "Supermicro", "Model": None, "MemorySummary": None,
            "VirtualMedia": None, "SecureBoot": None,
            "Boot": {"HttpBootUri": None},
            "Actions": {_RESET: {_ALLOWED: None}},
        },
        "/Chassis/1": {"UUID": None},
    },
    gone=("/Systems/1/Storage", "/Registries"),
    expands=False,
)  # fmt: skip

_GB300_RESETS: Final = ("On", "ForceOff", "GracefulShutdown", "PowerCycle", "Nmi")

OPENBMC: Final = Model(
    name="openbmc-gb300",
    about="OpenBMC of an NVIDIA GB300: two systems, a CD among sticks, allowed resets elsewhere.",
    machine={
        "resets": _GB300_RESETS,
        "targets": ("None", "Pxe", "Hdd", "Usb", "UefiHttp", "UefiShell", "BiosSetup"),
        "modes": (),
        "media": (("Slot_0", ("USBStick",)), ("Slot_1", ("USBStick",)),
                  ("Slot_2", ("CD", "USBStick"))),
        "cpus": 72,
        "memory_gib": 480,
        "disks_gib": (960,),
        "keeps_images": True,
    },
    no_hosts=("HGX_Baseboard_0",),
    places={
        "/Systems/@": "/Systems/System_0",
        "/Managers/@": "/Managers/BMC_0",
        "/Chassis/@": "/Chassis/Chassis_0",
    },
    documents={
        "": {"Vendor": "NVIDIA", "Product": "GB300 NVL"},
        "/Systems/HGX_Baseboard_0": {
            "Id": "HGX_Baseboard_0", "Name": "HGX_Baseboard_0", "SystemType": "Physical",
        },
        **_reset_info(
            "/Systems/System_0", _GB300_RESETS, Manufacturer=None, Model="GB300",
            VirtualMedia=None,
        ),
        "/Chassis/Chassis_0": {"Thermal": None, "Power": None},
        "/Systems/System_0/Bios": {"AttributeRegistry": None},
        "/Systems/System_0/Processors/0": {
            "ProcessorArchitecture": "ARM", "InstructionSet": "ARM-A64", "TotalThreads": None,
            "Model": "Grace A02",
        },
        "/Systems/System_0/Storage/1/Drives/0": {"CapacityBytes": None, "Protocol": "NVMe"},
    },
)  # fmt: skip

GB200: Final = Model(
    name="nvidia-gb200",
    about="NVIDIA GB200 NVL tray: two hosts and a GPU baseboard behind one BMC, leak detectors.",
    machine={
        "resets": _GB300_RESETS,
        "targets": ("None", "Pxe", "Hdd", "Usb", "UefiHttp", "UefiShell", "BiosSetup"),
        "modes": (),
        "media": (("Slot_0", ("USBStick",)), ("Slot_2", ("CD", "USBStick"))),
        "cpus": 144,
        "memory_gib": 960,
        "disks_gib": (960,),
        "detectors": ("Chassis_0_LeakDetector_0_ColdPlate", "Chassis_0_LeakDetector_1_Manifold"),
        "shelves": ("PowerShelf_0",),
    },
    per_bmc=2,
    no_hosts=("HGX_Baseboard_0",),
    places={
        "/Systems/@": "/Systems/System_#",
        "/Managers/@": "/Managers/BMC_#",
        "/Chassis/@": "/Chassis/Chassis_#",
    },
    documents={
        "": {"Vendor": "NVIDIA", "Product": "GB200 NVL"},
        "/Systems/HGX_Baseboard_0": {
            "Id": "HGX_Baseboard_0", "Name": "HGX_Baseboard_0", "SystemType": "Physical",
            "PowerState": "On", "Model": "GB200 NVL",
            "Bios": ref("/Systems/HGX_Baseboard_0/Bios"),
        },
        "/Systems/HGX_Baseboard_0/Bios": {"Id": "Bios", "Name": "BIOS", "Attributes": {}},
        **_reset_info(
            "/Systems/System_#", _GB300_RESETS, Manufacturer=None, Model="GB200 NVL",
            VirtualMedia=None,
        ),
        "/Chassis/Chassis_#": {"Thermal": None, "Power": None},
        "/Systems/System_#/Bios": {"AttributeRegistry": None},
        "/Systems/System_#/Processors/0": {
            "ProcessorArchitecture": "ARM", "InstructionSet": "ARM-A64", "TotalThreads": None,
            "Model": "Grace A02P",
        },
        "/Systems/System_#/Storage/1/Drives/0": {"CapacityBytes": None, "Protocol": "NVMe"},
    },
)  # fmt: skip

_DELL_SYSTEM: Final = "/Systems/System.Embedded.1"
_DELL_RAID: Final = f"{_DELL_SYSTEM}/Storage/RAID.Integrated.1-1"
_DELL_MANAGER: Final = "/Managers/iDRAC.Embedded.1"
_DELL_OEM: Final = f"{_DELL_MANAGER}/Oem/Dell"
_DELL_BAY: Final = f"{_DELL_RAID}/Drives/Disk.Bay.@:Enclosure.Internal.0-1:RAID.Integrated.1-1"

DELL: Final = Model(
    name="dell-idrac",
    about="Dell iDRAC: long names, media at the system, a drive that is a 404, jobs, own services.",
    machine={
        "idrac": True,
        "bmc_firmware": "7.10.30.00",
        "log_of": "Managers",
        "resets": ("On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown",
                   "PushPowerButton", "Nmi", "PowerCycle"),
        "targets": ("None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget",
                    "SDCard", "UefiHttp"),
        "media": (("1", ("CD", "DVD", "USBStick")), ("2", ("CD", "DVD", "USBStick"))),
    },
    places={
        "/Systems/@": _DELL_SYSTEM,
        "/Systems/@/Storage/1": _DELL_RAID,
        "/Systems/@/Storage/1/Drives/0": _DELL_BAY.replace("@", "0"),
        "/Systems/@/Storage/1/Drives/1": _DELL_BAY.replace("@", "1"),
        "/Systems/@/Processors/0": f"{_DELL_SYSTEM}/Processors/CPU.Socket.1",
        "/Managers/@": _DELL_MANAGER,
        "/Managers/@/VirtualMedia": f"{_DELL_SYSTEM}/VirtualMedia",
        "/Chassis/@": "/Chassis/System.Embedded.1",
        "/Registries/LabBios.1.0": "/Registries/BiosAttributeRegistry.v1_0_0",
    },
    documents={
        "": {"Vendor": "Dell", "Product": "Integrated Dell Remote Access Controller"},
        _DELL_SYSTEM: {
            "Manufacturer": "Dell Inc.", "Model": "PowerEdge R750", "SKU": "J9XK2G3",
            "MemorySummary": {"TotalSystemMemoryGiB": 119.209},
        },
        f"{_DELL_SYSTEM}/Bios": {"AttributeRegistry": "BiosAttributeRegistry.v1_0_3"},
        "/Registries/BiosAttributeRegistry.v1_0_0": {"Registry": "BiosAttributeRegistry.v1_0_3"},
        _DELL_MANAGER: {
            "Model": "16G Monolithic", "VirtualMedia": None,
            "Links": {"Oem": {"Dell": {
                "DellAttributes": [
                    ref(f"{_DELL_OEM}/DellAttributes/{name}") for name in (
                        "System.Embedded.1", "LifecycleController.Embedded.1", "iDRAC.Embedded.1")],
                **{name: ref(f"{_DELL_OEM}/{name}") for name in (
                    "DellJobService", "DellLCService", "DelliDRACCardService")},
            }}},
        },
        "/Chassis/System.Embedded.1": {"UUID": None, "SKU": "J9XK2G3"},
    },
    gone=(_DELL_BAY.replace("@", "1"),),
)  # fmt: skip

_XCC_RESETS: Final = (
    "On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart",
)  # fmt: skip

LENOVO: Final = Model(
    name="lenovo-xcc",
    about="Lenovo XCC: weak ETags, one boot at a time, a chassis that is a 404.",
    machine={
        "resets": _XCC_RESETS,
        "targets": ("None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget",
                    "UefiHttp"),
        "enables": ("Once", "Disabled"),
        "media": (("EXT1", ("CD", "USBStick")), ("Remote1", ("CD", "USBStick")),
                  ("RDOC1", ("CD", "USBStick"))),
    },
    places={
        "/Systems/@": "/Systems/1",
        "/Systems/@/Storage/1": "/Systems/1/Storage/RAID_Slot4",
        "/Managers/@": "/Managers/1",
        "/Chassis/@": "/Chassis/1",
    },
    documents={
        "": {"Vendor": "Lenovo"},
        **_reset_info(
            "/Systems/1", _XCC_RESETS, Manufacturer="Lenovo", Model="ThinkSystem SR650 V2",
            VirtualMedia=None, Links={"Chassis": [ref("/Chassis/1"), ref("/Chassis/3")]},
        ),
        "/Managers/1": {"Model": "Lenovo XClarity Controller", "FirmwareVersion": "AFBT30O 4.20"},
    },
    gone=("/Chassis/3",),
    weak_etags=True,
)  # fmt: skip

ALL: Final = {
    model.name: model
    for model in (GENERIC, DMTF, HPE, HPE_ILO5, SUPERMICRO, OPENBMC, GB200, DELL, LENOVO)
}
