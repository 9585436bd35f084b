"""A machine whose BMC boots the agent from the service's CD, and the agent that runs then."""

from __future__ import annotations

import io
from pathlib import Path

import pycdlib

from bloomery import boot_files
from bloomery.conductor import states
from bloomery.lab.rack import Machine
from tests.kit.machines.agent import Agent
from tests.kit.machines.agent_server import AgentServer
from tests.kit.servers.stories import Stage

_GRUB = "/EFI/centos/grub.cfg"


class AgentMachine:
    def __init__(
        self, stage: Stage, machine: Machine, server: AgentServer, http_root: Path
    ) -> None:
        self.stage, self.lab, self.server = stage, machine, server
        self.agent = Agent(stage.api, [machine.mac])
        self._http_root, self._boots = http_root, 0

    def live(self) -> None:
        """Do what the machine's agent does next, if one runs."""
        system = self.lab.system
        image = str(system.booted.get("image") or "")
        if system.power != "On" or f"/{boot_files.FOLDER}/" not in image:
            self.server.token = None  # no agent runs any longer
            return
        boots = system.happened.count("power is On")
        if boots != self._boots:
            line = self._kernel_line(image)
            if line is None:
                return
            self._boots = boots
            self.server.boot()
            self.agent.boot(line)
            self.agent.look_up()
            self.server.token = self.agent.token
        elif self.server.running is not None and self.server.told[-1:] == ["standby.power_off"]:
            system.reset("ForceOff")
            return
        node = self.stage.site.node(self.agent.node["uuid"])
        if node.provision_state not in states.WAIT_STATES or node.reservation is not None:
            return
        if node.provision_state == "inspect wait":
            nic = {
                "name": "eth0",
                "mac_address": self.lab.mac,
                "ipv4_address": "192.0.2.8",
                "has_carrier": True,
                "vendor": "0x8086",
                "product": "0x1572",
            }
            vendor = {"manufacturer": "Lab", "product_name": "Simulated", "serial_number": "1"}
            inventory = self.agent.inventory(
                interfaces=[nic],
                system_vendor=vendor,
                hostname="host-0",
                disks=[{"name": "/dev/sda", "size": 500107862016, "rotational": False}],
            )
            self.agent.try_to_hand_in({"inventory": inventory, "plugin_data": {}})
            return
        self.server.finish()
        self.call()

    def call(self) -> None:
        """Send a heartbeat."""
        self.agent.call(callback_url=self.server.url, agent_verify_ca=self.server.certificate)

    def _kernel_line(self, image: str) -> str | None:
        """Return the command line on the CD; None once the CD is removed."""
        path = self._http_root / boot_files.FOLDER / image.rpartition("/")[2]
        if not path.exists():
            return None
        iso, script = pycdlib.PyCdlib(), io.BytesIO()
        iso.open_fp(io.BytesIO(path.read_bytes()))
        iso.get_file_from_iso_fp(script, rr_path=_GRUB)
        lines = script.getvalue().decode().splitlines()
        [line] = [words for words in lines if "linux /vmlinuz" in words]
        return line.replace("'", "")
