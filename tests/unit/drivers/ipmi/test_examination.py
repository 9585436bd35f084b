from __future__ import annotations

from bloomery.drivers.bmc.state import MOST_REQUESTS
from bloomery.drivers.ipmi import examination, tool
from tests.unit.drivers.ipmi.conftest import LEAST

BOARD = """\
Firmware Revision         : 3.88
IPMI Version              : 2.0
Manufacturer ID           : 674
"""
FRU = """\
 Product Manufacturer  : DELL
 Product Name          : PowerEdge R750
 Product Serial        : J9XK2G3
"""
NO_ANSWER = tool.Failed("no answer")


def examine(make_bmc, **more):
    return examination.examine(make_bmc(min_command_interval=0, **more), LEAST)


def works(report):
    return {check["name"] for check in report["checks"] if check["works"]}


def test_what_the_commands_print_is_reported(make_bmc, made_up):
    made_up.answers |= {
        "mc info": BOARD,
        "fru print 0": FRU,
        "chassis bootparam get 5": "Boot parameter data: e008000000\n",
        "sdr info": "Record Count                        : 79\n",
        "sol info": "Enabled                         : true\n",
        "session info active": "session handle : 1\nactive sessions               : 4\n",
        "-Z sel time get": "01/02/26 03:04:05 UTC\n",
    }
    report = examine(make_bmc)
    assert works(report) == {
        "power", "boot device", "boot mode", "sensors", "serial console",
    }  # fmt: skip
    assert {each["name"]: each["detail"] for each in report["checks"]}["boot mode"] == (
        "uefi, asked for with the device"
    )
    assert report["identity"] == {
        "manufacturer": "dell", "model": "PowerEdge R750", "serial": "J9XK2G3",
        "bmc_firmware": "3.88", "version": "2.0",
    }  # fmt: skip
    assert report["sessions_in_use"] == 4
    assert report["clock_difference_s"] < 0
    assert report["latency"]["count"] == len(made_up.asked) == 8


def test_a_feature_that_the_bmc_refuses_is_missing(make_bmc, made_up):
    made_up.answers |= {
        "mc info": BOARD,
        "chassis bootparam get 5": tool.Failed("Get Chassis Boot Parameter: Invalid command"),
        "sol info": NO_ANSWER,
    }
    report = examine(make_bmc)
    assert works(report) == {"power"}
    assert not report["usable"]
    details = {check["name"]: check["detail"] for check in report["checks"]}
    assert details["boot device"] == "Get Chassis Boot Parameter: Invalid command"
    assert details["serial console"] == "no answer"


def test_a_silent_bmc_is_an_error_after_few_commands(make_bmc, made_up):
    made_up.answers["mc info"] = [NO_ANSWER] * 100
    report = examine(make_bmc)
    assert report["error"].startswith("no answer")
    assert report["checks"] == []
    assert len(made_up.asked) <= MOST_REQUESTS


def test_the_cipher_suite_that_worked_is_written_down(make_bmc, made_up):
    made_up.answers["mc info"] = BOARD
    report = examination.examine(
        make_bmc(min_command_interval=0, ipmi_cipher_suite="", cipher_suite_versions=("17",)), {}
    )
    assert report["driver_info"]["ipmi_cipher_suite"] == 17
