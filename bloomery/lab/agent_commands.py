"""The commands of a ramdisk's agent, as ironic-python-agent takes and reports them.

    commands = Commands()
    commands.token = "..."                                  # that lookup gave
    status, answer = commands.take("standby.prepare_image", {"image_info": {...}})
    commands.finish()                                       # the command that runs ends

An asynchronous command runs until ``finish``; one runs at a time.
"""

from __future__ import annotations

import base64
import gzip
import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # it needs cryptography
    from bloomery.lab.tpm import SoftwareTpm

Json = dict[str, Any]
RUNNING: Final = "RUNNING"


def step(name: str, priority: int = 0, **more: Any) -> Json:
    """Return a step as an agent lists it."""
    return {
        "step": name, "priority": priority, "interface": "deploy", "reboot_requested": False,
        "abortable": True,
    } | more  # fmt: skip


STEPS: Final = {
    "clean": [("erase_devices", 10), ("erase_devices_metadata", 99), ("burnin_cpu", 0)],
    "deploy": [("erase_devices_metadata", 0), ("write_image", 0), ("inject_files", 0)],
    "service": [("burnin_cpu", 0)],
}


class Commands:
    """The commands of one agent since its boot, the oldest first."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.commands: list[Json] = []
        self.params: dict[str, Json] = {}  # of the last command of each name
        self.fails: dict[str, str] = {}  # name: message, of commands that end as FAILED
        self.results: dict[str, Any] = {}  # of steps, by name
        self.steps = {phase: [step(*each) for each in rows] for phase, rows in STEPS.items()}
        self.versions = {"generic_hardware_manager": "1.2"}
        self.logs = gzip.compress(b"journal")
        self.partitions: Json = {"root uuid": "r-1", "efi system partition uuid": "e-1"}
        self.inventory: Json = {"interfaces": []}
        self.tpm: SoftwareTpm | None = None  # with one, it has the plug-in bloomery_attestation
        self.mutex = threading.Lock()

    def boot(self) -> None:
        """Forget the commands and the token, as a machine does that is switched on again."""
        with self.mutex:
            self.commands, self.token = [], None

    @property
    def running(self) -> Json | None:
        """The command that runs, or None."""
        last = self.commands[-1] if self.commands else None
        return last if last and last["command_status"] == RUNNING else None

    def finish(self) -> None:
        """End the command that runs."""
        with self.mutex:
            if (command := self.running) is not None:
                command |= self._end(command["command_name"])

    def _end(self, name: str) -> Json:
        """Return what changes of a command at its end."""
        if (message := self.fails.get(name)) is not None:
            error = {"type": "Error", "code": 500, "message": message}
            return {"command_status": "FAILED", "command_error": error}
        result: Json = {"result": name}
        if self.tpm is not None and f"attest.{name}" in self.params:
            try:
                result = self.tpm.run(name, self.params[f"attest.{name}"])
            except ValueError as exc:
                error = {"type": "Error", "code": 500, "message": str(exc)}
                return {"command_status": "FAILED", "command_error": error}
        if name.startswith("execute_") and name.endswith("_step"):
            phase = name.split("_")[1]
            ran = self.params[f"{phase}.{name}"]["step"]
            result = {f"{phase}_step": ran, f"{phase}_result": self.results.get(ran["step"])}
        return {"command_status": "SUCCEEDED", "command_result": result}

    def take(self, name: str, params: Json) -> tuple[int, Json]:
        """Begin a command; return the HTTP status and the answer."""
        with self.mutex:
            if self.running is not None:
                return 409, {"faultcode": "Client", "faultstring": "Agent is busy"}
            if name.startswith("attest.") and self.tpm is None:
                fault = "Extension with id attest not found."
                return 404, {"faultcode": "Client", "faultstring": fault}
            self.params[name] = params
            short = name.rpartition(".")[2]
            result: Json | None = None  # of commands that end at once
            if short == "get_partition_uuids":
                result = self.partitions
            elif short == "get_hardware_info":
                result = self.inventory
            elif short.startswith("get_"):
                phase = short.split("_")[1]
                result = {
                    f"{phase}_steps": {"GenericHardwareManager": self.steps[phase]},
                    "hardware_manager_version": self.versions,
                }
            elif short == "collect_system_logs":
                result = {"system_logs": base64.b64encode(self.logs).decode()}
            elif short in ("sync", "lockdown", "finalize_rescue"):
                result = {"result": ""}
            command = {
                "id": str(uuid.uuid4()), "command_name": short, "command_error": None,
                "command_status": RUNNING if result is None else "SUCCEEDED",
                "command_result": result,
            }  # fmt: skip
            self.commands.append(command)
            return 200, command
