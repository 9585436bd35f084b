"""How an Instance waits until its system says that it has come up (OS::Ironic::FirstBoot)."""

from __future__ import annotations

from typing import Final

from bloomery import errors
from bloomery.orchestration.resources import first_boot, stepwise

BOOTS: Final = "boots"  # how often a system was written


class Boot(stepwise.OnNode):
    """The step ``come_up``, and the handle that it looks at."""

    def handle_of_boot(self) -> first_boot.FirstBoot | None:
        """Return the handle that is named.  Raises EntityNotFound for another resource."""
        named, siblings = self.properties["first_boot"], self.context.siblings
        if not named or self.properties["wait_for"] in ("active", "none"):
            return None
        handle = siblings and siblings.find(named)
        if not isinstance(handle, first_boot.FirstBoot):
            raise errors.EntityNotFound(entity="FirstBoot of this stack", name=named)
        return handle

    def arm(self) -> None:
        """Let the handle wait for the system that is written next, and for no earlier one."""
        if handle := self.handle_of_boot():
            boots = self.record.data[BOOTS] = self.record.data.get(BOOTS, 0) + 1
            whole_drive = bool(self.properties["configdrive"])
            handle.arm(f"{self.record.uuid}/{boots}", new_token=not whole_drive)

    def step_come_up(self) -> str | None:
        """Wait until the system says that it has come up, where it is to say so."""
        handle = self.handle_of_boot()
        if handle is None:
            return None
        try:
            if handle.has_come_up():
                return None
        except ValueError as exc:
            raise stepwise.MachineFailed(str(exc)) from exc
        chosen = (self.properties["timeouts"] or {}).get("first_boot")
        timeout_s = float(chosen or handle.properties["timeout"])
        self.wait_for(handle.record.uuid, timeout_s, "for the system to come up")
