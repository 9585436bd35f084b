"""/Chassis: the boxes, their light, fans, temperatures and power supplies."""

from __future__ import annotations

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.refusal import checked
from bloomery.lab.resources.systems import LEDS
from bloomery.lab.routing import HEALTHY, NO_CONTENT, Answer, Ask, ref, route


@route("GET", "/Chassis/*")
def show(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system, path = bmc.system(ident), f"/Chassis/{ident}"
    return {
        "@odata.type": "#Chassis.v1_14_0.Chassis",
        "Id": ident, "Name": system.name, "UUID": ident, "ChassisType": "RackMount",
        "Manufacturer": "Lab", "Model": "Simulated", "Status": HEALTHY,
        "IndicatorLED": system.led, "PowerState": system.power,
        "Thermal": ref(f"{path}/Thermal"), "Power": ref(f"{path}/Power"),
        "Links": {
            "ComputerSystems": [ref(f"/Systems/{ident}")], "ManagedBy": [ref(f"/Managers/{ident}")],
        },
    }  # fmt: skip


@route("PATCH", "/Chassis/*")
def change(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    system = bmc.system(ident)
    system.led = checked(ask.body, {"IndicatorLED": LEDS}).get("IndicatorLED", system.led)
    return NO_CONTENT


@route("GET", "/Chassis/*/Thermal")
def thermal(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    on = bmc.system(ident).power == "On"
    return {
        "@odata.type": "#Thermal.v1_6_0.Thermal",
        "Id": "Thermal", "Name": "Thermal",
        "Temperatures": [{
            "MemberId": "0", "Name": "CPU Temp", "ReadingCelsius": 41 if on else 22,
            "UpperThresholdCritical": 95, "PhysicalContext": "CPU", "Status": HEALTHY,
        }],
        "Fans": [{
            "MemberId": "0", "Name": "Fan 1", "Reading": 6000 if on else 0,
            "ReadingUnits": "RPM", "Status": HEALTHY,
        }],
    }  # fmt: skip


@route("GET", "/Chassis/*/Power")
def power(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    on = bmc.system(ident).power == "On"
    return {
        "@odata.type": "#Power.v1_5_0.Power",
        "Id": "Power", "Name": "Power", "Voltages": [],
        "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 210 if on else 12}],
        "PowerSupplies": [{
            "MemberId": "0", "Name": "PSU 1", "PowerSupplyType": "AC", "LineInputVoltage": 230,
            "PowerCapacityWatts": 750, "Status": HEALTHY,
        }],
    }  # fmt: skip
