"""The deploy interface ``bootc``: the agent installs a bootable container.

The agent pulls the container from its registry, and runs ``bootc install to-disk`` in it.  The
container's installer makes the disk bootable, so the agent writes no boot loader.

Source of the names: Ironic's deploy interface bootc, and ironic-python-agent's
standby.execute_bootc_install.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from bloomery import errors, parsing, secrets
from bloomery.drivers import autodetect, base, secure_boot, steps, substeps
from bloomery.drivers.agent import commands, image, oci
from bloomery.drivers.agent.deploy import CustomAgentDeploy
from bloomery.model.node import Node
from bloomery.outcome import Outcome

Json = dict[str, Any]

_COMMAND: Final = "standby.execute_bootc_install"
_KEYS, _TPM = "bootc_authorized_keys", "bootc_tpm2_luks"  # in instance_info, for the agent
_UNUSED: Final = (  # of an image that the agent writes
    "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format",
    "image_type", "image_download_source", "kernel", "ramdisk", "root_gb", "swap_mb",
    "ephemeral_gb",
)  # fmt: skip


class BootcDeploy(CustomAgentDeploy):
    prepare_instance_boot = None  # type: ignore[assignment]  # the container's installer does it

    def get_properties(self) -> dict[str, str]:
        return {oci.PULL_SECRET: image.PROPERTIES[oci.PULL_SECRET]} | super().get_properties()

    def takes(self, node: Node) -> bool:
        """Take images of registries until a look at one says that it is of a disk."""
        kind, looks = autodetect.recall(node), self.conf.conductor.preflight_timeout > 0
        is_unknown = kind is None and looks and image.is_oci(node.instance_info.get("image_source"))
        return kind == oci.CONTAINER or is_unknown

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless an agent can boot, and instance_info names a container."""
        super().validate(task)
        info = task.opened(task.node.instance_info)
        source = info.get("image_source")
        if not image.is_oci(source):
            kind = errors.MissingParameterValue if source is None else errors.InvalidParameterValue
            raise kind(
                reason="deploy interface bootc takes a bootable container as "
                "instance_info/image_source = oci://HOST/REPOSITORY:TAG; an image of a disk needs "
                f"direct: baremetal node set {errors.name_of(task.node)} --deploy-interface direct",
            )
        oci.login_of(self.conf.oci, oci.parse(source).registry, image.pull_secret(task))
        image.check_root_device(task.node.properties, info)
        keys, seals = info.get(_KEYS), info.get(_TPM)
        if keys is not None and not isinstance(keys, str):
            raise errors.InvalidParameterValue(
                reason=f"instance_info/{_KEYS} takes the text of root's authorized_keys",
            )
        try:
            parsing.boolean(False if seals is None else seals, strict=True)
        except ValueError:
            raise errors.InvalidParameterValue(
                reason=f"instance_info/{_TPM} takes true or false, not {seals!r}",
            ) from None

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        """Return the settings of images that the agent writes itself."""
        info = task.node.instance_info
        return [f"instance_info/{name}" for name in _UNUSED if info.get(name) is not None]

    def remote_files(self, task: base.DriverTask) -> Sequence[base.RemoteFile]:
        """Return the container, whose manifest is read."""
        source = str(task.opened(task.node.instance_info["image_source"]))
        wish, takes_both = image.wish_of(task, None), autodetect.is_asked(task.node)

        def read(client: Any) -> str:
            kind = oci.Registries(self.conf.oci, client).look(source, wish)
            if kind != oci.CONTAINER and not takes_both:
                raise errors.StepFailure(
                    reason="it is no container, but the image of a disk, which deploy interface "
                    "direct writes",
                )
            return kind

        return [base.RemoteFile(name="instance_info/image_source", url=source, read=read)]

    @steps.deploy_step(priority=80, resumable=True)
    def execute_bootc_install(self, task: base.DriverTask) -> Outcome:
        """Have the agent pull and install the container, and write the config drive."""
        return substeps.run_in_order(
            task,
            "agent_bootc",
            lambda: self.attestation.ensure(task),
            lambda: self._install(task),
        )

    def _install(self, task: base.DriverTask) -> Outcome:
        info = task.opened(task.node.instance_info)
        source, secret = str(info["image_source"]), image.pull_secret(task)
        login = oci.login_of(self.conf.oci, oci.parse(source).registry, secret)
        own = {_KEYS: info.get(_KEYS), _TPM: parsing.boolean(info.get(_TPM) or False)}

        def params() -> Json:
            return {
                "image_source": source,
                "instance_info": {name: value for name, value in own.items() if value},
                "pull_secret": _encoded(login) if login else None,
                "configdrive": info.get("configdrive"),
            }

        try:
            reason = "the agent installs the container"
            return commands.run(task, self.conf, _COMMAND, params, reason)
        except (errors.StepFailure, errors.AgentRefused) as exc:
            hidden = [text for text in (secret, login, login and _encoded(login)) if text]
            raise errors.StepFailure(reason=secrets.hide(str(exc), hidden)) from None

    @steps.deploy_step(priority=60, resumable=True)
    def set_boot_to_disk(self, task: base.DriverTask) -> Outcome | None:
        """Set the machine to boot its disk; secure boot waits for ``boot_instance``."""
        if secure_boot.is_asked(task.node):
            return None
        return task.driver.boot.prepare_instance(task)


def _encoded(login: str) -> str:
    """Return a login as the agent takes it, which decodes it once before podman reads it."""
    return base64.b64encode(login.encode()).decode()
