"""/Chassis: indicator and cards."""

from __future__ import annotations

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import checked
from bloomery.lab.resources.systems import LEDS
from bloomery.lab.routing import HEALTHY, NO_CONTENT, Answer, Ask, collection, item, ref, route


@route("GET", "/Chassis/*")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Chassis/{ident}"
    return {
        "@odata.type": "#Chassis.v1_14_0.Chassis",
        "Id": ident, "Name": system.name, "UUID": ident, "ChassisType": "RackMount",
        "Manufacturer": "Lab", "Model": "Simulated", "Status": HEALTHY,
        "IndicatorLED": system.led, "PowerState": system.power,
        **{k: ref(f"{path}/{k}") for k in ("NetworkAdapters", "Thermal", "Power", "Sensors")},
        "Links": {
            "ComputerSystems": [ref(f"/Systems/{ident}")], "ManagedBy": [ref(f"/Managers/{ident}")],
        },
    }  # fmt: skip


@route("PATCH", "/Chassis/*")
def change(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    system.led = checked(ask.body, {"IndicatorLED": LEDS}).get("IndicatorLED", system.led)
    return NO_CONTENT


# ---------------------------------------------------------------- cards: a GPU, a network adapter


@route("GET", "/Chassis/*/PCIeDevices/0")
def show_card(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident)
    path = f"/Chassis/{ident}/PCIeDevices/0"
    return {
        "@odata.type": "#PCIeDevice.v1_9_0.PCIeDevice",
        "Id": "0", "Name": "GPU", "Manufacturer": "Lab", "Status": HEALTHY,
        "PCIeFunctions": ref(f"{path}/PCIeFunctions"),
    }  # fmt: skip


@route("GET", "/Chassis/*/PCIeDevices/0/PCIeFunctions")
def list_functions(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident)
    return collection(f"/Chassis/{ident}/PCIeDevices/0/PCIeFunctions", "PCIeFunction", ["0"])


@route("GET", "/Chassis/*/PCIeDevices/0/PCIeFunctions/0")
def show_function(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident)
    return {
        "@odata.type": "#PCIeFunction.v1_5_0.PCIeFunction",
        "Id": "0", "Name": "GPU", "VendorId": "0x10DE", "DeviceId": "0x1EB8",
        "ClassCode": "0x030200", "RevisionId": "0xA1",
    }  # fmt: skip


@route("GET", "/Chassis/*/NetworkAdapters")
def list_adapters(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident)
    return collection(f"/Chassis/{ident}/NetworkAdapters", "NetworkAdapter", ["0"])


@route("GET", "/Chassis/*/NetworkAdapters/0")
def show_adapter(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    return {
        "@odata.type": "#NetworkAdapter.v1_9_0.NetworkAdapter",
        "Id": "0", "Name": "Network adapter", "Status": HEALTHY, "Manufacturer": "Lab",
        "Model": "LAB-NIC", "SerialNumber": f"N{system.serial}",
        "Controllers": [{"FirmwarePackageVersion": system.firmware["NIC"]}],
        "Ports": ref(f"/Chassis/{ident}/NetworkAdapters/0/Ports"),
    }  # fmt: skip


@route("GET", "/Chassis/*/NetworkAdapters/0/Ports")
def list_ports(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    names = [str(number) for number in range(len(bmc.system(ident).spec.macs))]
    return collection(f"/Chassis/{ident}/NetworkAdapters/0/Ports", "Port", names)


@route("GET", "/Chassis/*/NetworkAdapters/0/Ports/*")
def show_port(bmc: SimulatedBmc, ask: Ask, ident: str, number: str) -> Answer:
    mac = item(bmc.system(ident).spec.macs, number)
    return {
        "@odata.type": "#Port.v1_9_0.Port",
        "Id": number, "Name": f"Port {number}", "LinkStatus": "LinkUp", "Status": HEALTHY,
        "Ethernet": {
            "AssociatedMACAddresses": [mac],
            "LLDPReceive": {
                "ChassisId": "02:00:5e:00:00:01", "ChassisIdSubtype": "MacAddr",
                "PortId": f"Ethernet1/{number}", "PortIdSubtype": "IfName",
                "SystemName": "leaf-1", "ManagementAddressIPv4": "192.0.2.1",
            },
        },
    }  # fmt: skip
