"""What ``bloomery serve`` tells can be typed as it stands."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery.cli.service import roles
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.state_dir import StateDir


@pytest.mark.parametrize(
    ("enabled", "driver"),
    [(("redfish", "ipmi"), "redfish"), (("redfish", "fake-hardware"), "fake-hardware")],
)
def test_first_node_has_a_driver_that_is_enabled(tmp_path, enabled, driver):
    conf = Conf(default=Default(enabled_hardware_types=enabled))
    service = SimpleNamespace(
        conf=conf, url="http://127.0.0.1:6385", orchestration_url="http://127.0.0.1:8004"
    )
    steps = roles.next_steps(service, StateDir(tmp_path))
    assert f"node create --driver {driver} --name" in steps
    assert "examples/" not in steps
    assert "pip install python-ironicclient python-openstackclient python-heatclient" in steps
