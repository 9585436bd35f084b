"""What deploy interface bootc refuses before an agent boots, and what it has no use for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.agent.bootc import BootcDeploy
from tests.kit.machines.driver_task import FakeTask

SOURCE = {"image_source": "oci://images.test/os:1"}


def task(**info: Any) -> Any:
    made: Any = FakeTask({}, instance_info=info)
    boot = SimpleNamespace(validate_ramdisk=lambda _task: None)
    made.driver = SimpleNamespace(boot=boot)
    return made


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({}, "takes a bootable container .*oci://HOST.*--deploy-interface direct"),
        ({"image_source": "http://images.test/os.raw"}, "takes a bootable container"),
        ({"image_source": "oci://u:p@h/os"}, "has no login: that is instance_info/image_pull_s"),
        (SOURCE | {"image_pull_secret": "hush\r\n"}, "image_pull_secret takes printable ASCII"),
        (SOURCE | {"root_device": {"colour": "red"}}, "root_device takes an object"),
        (SOURCE | {"bootc_authorized_keys": ["ssh"]}, "bootc_authorized_keys takes the text"),
        (SOURCE | {"bootc_tpm2_luks": "perhaps"}, "bootc_tpm2_luks takes true or false, not 'per"),
    ],
)
def test_what_no_agent_could_install_is_refused(info: Any, reason: str) -> None:
    with pytest.raises(errors.Invalid, match=reason) as refusal:
        BootcDeploy(Conf()).validate(task(**info))
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("more", [{}, {"bootc_tpm2_luks": "true"}, {"root_device": {"size": 9}}])
def test_a_container_of_a_registry_is_taken(more: Any) -> None:
    BootcDeploy(Conf()).validate(task(**SOURCE, **more))


def test_settings_of_disk_images_are_named_as_ineffective() -> None:
    node = task(**SOURCE, image_disk_format="raw", root_gb=10)
    assert BootcDeploy(Conf()).list_ineffective(node) == [
        "instance_info/image_disk_format", "instance_info/root_gb",
    ]  # fmt: skip


def test_its_steps_have_the_names_and_places_of_ironics() -> None:
    steps = {step.step: step.priority for step in BootcDeploy(Conf()).steps("deploy")}
    assert steps == {
        "deploy": 100, "execute_bootc_install": 80, "set_boot_to_disk": 60, "tear_down_agent": 40,
        "switch_to_tenant_network": 30, "boot_instance": 20,
    }  # fmt: skip
