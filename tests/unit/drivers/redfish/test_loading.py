from __future__ import annotations

import subprocess
import sys


def test_a_start_loads_no_library_that_only_some_calls_need():
    program = (
        "import sys; sys.modules['eventlet'] = None\n"
        "from bloomery.conf import Conf\n"
        "from bloomery.conf.default import Default\n"
        "from bloomery.drivers import registry\n"
        "conf = Conf(default=Default(enabled_hardware_types=('redfish',)))\n"
        "assert 'redfish' in registry.load(conf).types\n"
        "print(sorted({'sushy', 'requests', 'cryptography'} & set(sys.modules)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout.strip() == "[]"
