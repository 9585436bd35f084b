"""/Chassis: indicator, cards, and sensors: two temperatures, a fan, a power supply, leak detectors.

/PowerEquipment: the power shelves beside a machine.
"""

from __future__ import annotations

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import checked, missing
from bloomery.lab.resources.systems import LEDS
from bloomery.lab.routing import (
    HEALTHY,
    NO_CONTENT,
    Answer,
    Ask,
    Json,
    item,
    ref,
    route,
    route_lists,
)
from bloomery.lab.system import System


@route("GET", "/Chassis/*")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Chassis/{ident}"
    return {
        "@odata.type": "#Chassis.v1_14_0.Chassis",
        "Id": ident, "Name": system.name, "UUID": ident, "ChassisType": "RackMount",
        "Manufacturer": "Lab", "Model": "Simulated", "Status": HEALTHY,
        "IndicatorLED": system.led, "PowerState": system.power,
        **{k: ref(f"{path}/{k}") for k in ("NetworkAdapters", "Thermal", "Power", "Sensors")},
        **({"ThermalSubsystem": ref(f"{path}/ThermalSubsystem")} if system.leaks else {}),
        "EnvironmentMetrics": ref(f"{path}/EnvironmentMetrics"),
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


@route("GET", "/Chassis/*/PCIeDevices/0/PCIeFunctions/0")
def show_function(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    bmc.system(ident)
    return {
        "@odata.type": "#PCIeFunction.v1_5_0.PCIeFunction",
        "Id": "0", "Name": "GPU", "VendorId": "0x10DE", "DeviceId": "0x1EB8",
        "ClassCode": "0x030200", "RevisionId": "0xA1",
    }  # fmt: skip


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


# ----------------------------------------------------------------- Thermal, Power and Sensors


@route("GET", "/Chassis/*/Thermal")
def show_thermal(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    readings = _readings(bmc.system(ident))
    temperatures = [
        {
            "MemberId": str(number), "Name": f"{place} Temp", "SensorNumber": number,
            "PhysicalContext": place, "ReadingCelsius": readings[f"{place}Temp"],
            "MinReadingRangeTemp": 0, "MaxReadingRangeTemp": 120, "Status": HEALTHY,
        }
        for number, place in enumerate(("CPU", "Intake"), 1)
    ]  # fmt: skip
    fan = {
        "MemberId": "0", "Name": "Fan 1", "PhysicalContext": "SystemBoard", "ReadingUnits": "RPM",
        "Reading": readings["Fan1"], "Status": HEALTHY,
    }  # fmt: skip
    return {
        "@odata.type": "#Thermal.v1_6_0.Thermal", "Id": "Thermal", "Name": "Thermal",
        "Temperatures": temperatures, "Fans": [fan],
    }  # fmt: skip


@route("GET", "/Chassis/*/Power")
def show_power(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    supply = {
        "MemberId": "0", "Name": "PSU 1", "PowerCapacityWatts": 750, "LineInputVoltage": 230,
        "LastPowerOutputWatts": _readings(bmc.system(ident))["Watts"], "SerialNumber": "PSU-0",
        "Status": HEALTHY,
    }  # fmt: skip
    absent = {"MemberId": "1", "Name": "PSU 2", "Status": {"State": "Absent"}}
    return {
        "@odata.type": "#Power.v1_6_0.Power", "Id": "Power", "Name": "Power",
        "PowerSupplies": [supply, absent],
    }  # fmt: skip


@route("GET", "/Chassis/*/Sensors/*")
def show_sensor(bmc: SimulatedBmc, ask: Ask, ident: str, name: str) -> Answer:
    sensors = _sensors(bmc.system(ident))
    if name not in sensors:
        raise missing(name)
    return sensors[name]


@route("GET", "/Chassis/*/EnvironmentMetrics")
def show_metrics(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    watts = _readings(bmc.system(ident))["Watts"]
    return {
        "@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics",
        "Id": "EnvironmentMetrics", "Name": "Chassis Environment Metrics",
        "PowerWatts": {"Reading": watts},
    }  # fmt: skip


# ----------------------------------------------------------------- leak detectors, power shelves


@route("GET", "/Chassis/*/ThermalSubsystem")
def show_thermal_subsystem(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    _detectors(bmc.system(ident))
    path = f"/Chassis/{ident}/ThermalSubsystem"
    return {
        "@odata.type": "#ThermalSubsystem.v1_3_0.ThermalSubsystem",
        "Id": "ThermalSubsystem", "Name": "Thermal Subsystem", "Status": HEALTHY,
        "LeakDetection": ref(f"{path}/LeakDetection"),
    }  # fmt: skip


@route("GET", "/Chassis/*/ThermalSubsystem/LeakDetection")
def show_leak_detection(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    _detectors(bmc.system(ident))
    path = f"/Chassis/{ident}/ThermalSubsystem/LeakDetection"
    return {
        "@odata.type": "#LeakDetection.v1_0_1.LeakDetection",
        "Id": "LeakDetection", "Name": "Leak Detection", "Status": HEALTHY,
        "LeakDetectors": ref(f"{path}/LeakDetectors"),
    }  # fmt: skip


@route("GET", "/Chassis/*/ThermalSubsystem/LeakDetection/LeakDetectors/*")
def show_detector(bmc: SimulatedBmc, ask: Ask, ident: str, name: str) -> Answer:
    detectors = _detectors(bmc.system(ident))
    if name not in detectors:
        raise missing(name)
    return {
        "@odata.type": "#LeakDetector.v1_0_1.LeakDetector",
        "Id": name, "Name": name.replace("_", " "), "LeakDetectorType": "Moisture",
        "DetectorState": detectors[name],
        "Status": {"State": "Enabled", "Health": detectors[name]},
    }  # fmt: skip


def _detectors(system: System) -> dict[str, str]:
    """Return what each leak detector says.  Raises Refusal for a machine without any."""
    if not system.leaks:
        raise missing("LeakDetection")
    return system.leaks


def _shelves(bmc: SimulatedBmc) -> list[str]:
    """Return the power shelves that a BMC shows.  Raises Refusal without any."""
    shelves = [shelf for system in bmc.systems.values() for shelf in system.spec.shelves]
    if not shelves:
        raise missing("PowerEquipment")
    return list(dict.fromkeys(shelves))


@route("GET", "/PowerEquipment")
def show_power_equipment(bmc: SimulatedBmc, ask: Ask) -> Answer:
    _shelves(bmc)
    return {
        "@odata.type": "#PowerEquipment.v1_2_0.PowerEquipment",
        "Id": "PowerEquipment", "Name": "Power Equipment", "Status": HEALTHY,
        "PowerShelves": ref("/PowerEquipment/PowerShelves"),
    }  # fmt: skip


@route("GET", "/PowerEquipment/PowerShelves/*")
def show_shelf(bmc: SimulatedBmc, ask: Ask, name: str) -> Answer:
    if name not in _shelves(bmc):
        raise missing(name)
    return {
        "@odata.type": "#PowerDistribution.v1_3_0.PowerDistribution",
        "Id": name, "Name": f"Power shelf {name}", "EquipmentType": "PowerShelf",
        "Model": "LAB-SHELF", "SerialNumber": f"SHELF-{name}", "Status": HEALTHY,
        "Metrics": ref(f"/PowerEquipment/PowerShelves/{name}/Metrics"),
    }  # fmt: skip


@route("GET", "/PowerEquipment/PowerShelves/*/Metrics")
def show_shelf_metrics(bmc: SimulatedBmc, ask: Ask, name: str) -> Answer:
    if name not in _shelves(bmc):
        raise missing(name)
    return {
        "@odata.type": "#PowerDistributionMetrics.v1_3_0.PowerDistributionMetrics",
        "Id": "Metrics", "Name": "Metrics of the shelf",
        "PowerWatts": {"Reading": 5200}, "PowerLoadPercent": {"Reading": 16},
    }  # fmt: skip


def _sensors(system: System) -> dict[str, Json]:
    readings = _readings(system)
    kinds = {
        "CPUTemp": ("Temperature", "Cel", "CPU"), "Fan1": ("Rotational", "{rev}/min", "Fan"),
        "Watts": ("Power", "W", "PowerSupply"),
    }  # fmt: skip
    return {
        name: {
            "@odata.type": "#Sensor.v1_5_0.Sensor", "Id": name, "Name": name, "ReadingType": kind,
            "ReadingUnits": units, "PhysicalContext": place, "Reading": readings[name],
            "Status": HEALTHY,
        }
        for name, (kind, units, place) in kinds.items()
    }  # fmt: skip


def _readings(system: System) -> dict[str, int]:
    if system.power == "On":
        return {"CPUTemp": 42, "IntakeTemp": 21, "Fan1": 3000, "Watts": 240}
    return {"CPUTemp": 24, "IntakeTemp": 20, "Fan1": 0, "Watts": 12}


route_lists(
    ("/Chassis/*/PCIeDevices/0/PCIeFunctions", "PCIeFunction", lambda _: ["0"]),
    ("/Chassis/*/NetworkAdapters", "NetworkAdapter", lambda _: ["0"]),
    ("/Chassis/*/NetworkAdapters/0/Ports", "Port", lambda of: map(str, range(len(of.spec.macs)))),
    ("/Chassis/*/Sensors", "Sensor", _sensors),
    ("/Chassis/*/ThermalSubsystem/LeakDetection/LeakDetectors", "LeakDetector", _detectors),
    ("/PowerEquipment/PowerShelves", "PowerDistribution", _shelves),
)
