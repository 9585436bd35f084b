"""/Chassis/ID/Thermal, Power and Sensors: two temperatures, a fan, a power supply."""

from __future__ import annotations

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import missing
from bloomery.lab.routing import HEALTHY, Answer, Ask, Json, collection, route
from bloomery.lab.system import System


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


@route("GET", "/Chassis/*/Sensors")
def list_sensors(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    return collection(f"/Chassis/{ident}/Sensors", "Sensor", list(_sensors(bmc.system(ident))))


@route("GET", "/Chassis/*/Sensors/*")
def show_sensor(bmc: SimulatedBmc, ask: Ask, ident: str, name: str) -> Answer:
    sensors = _sensors(bmc.system(ident))
    if name not in sensors:
        raise missing(name)
    return sensors[name]


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
