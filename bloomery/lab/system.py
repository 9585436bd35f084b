"""One machine behind a BMC: power with delays, boot override, media, BIOS.

Power requests run one after another, each ``power_s`` after its acceptance.  A boot uses up a
``Once`` override; BIOS and secure boot changes apply at the next boot.  ``history`` records the
events.
"""

from __future__ import annotations

import re
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bloomery.lab.refusal import Refusal, Rule

RESETS: Final = (
    "On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn",
    "PushPowerButton",
)  # fmt: skip
TARGETS: Final = ("None", "Pxe", "Cd", "Hdd", "UefiHttp", "BiosSetup")
_CDS: Final = ("Cd", "UsbCd", "CD/DVD", "VCD-DVD")  # names of the CD drive
_SWITCH: Final = ["Enabled", "Disabled"]
BIOS: Final[dict[str, tuple[Any, Rule]]] = {  # name: factory value, rule for others
    "BootMode": ("Uefi", ["Uefi", "Bios"]),
    "ProcTurboMode": ("Enabled", _SWITCH),
    "NumCores": (2, int),
    "QuietBoot": (True, bool),
    "AssetTag": ("", str),
    "SriovGlobalEnable": ("Disabled", _SWITCH),
}
_STOPS: Final = ("ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle")
_STARTS: Final = ("On", "ForceOn", "GracefulRestart", "ForceRestart", "PowerCycle")
_ONLY_WHEN_ON: Final = ("GracefulShutdown", "GracefulRestart", "Nmi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The hardware and behaviour of a machine.

    ``graceful_s``: time of its guest's shutdown.  ``strict``: power on when on is 409.  ``fetch``:
    inserted media are downloaded, and unreachable images refused.  ``mode_at_boot``: a new boot
    mode or secure boot shows only after the next boot.  ``post_s``: time of POST, at whose end BIOS
    settings apply.  ``resets``, ``targets``, ``enables``, ``modes``: the values that its BMC
    accepts; no ``modes``: it has no boot mode.  ``media``: virtual devices and their types.
    ``media_by_patch``: they take PATCH in place of actions.  ``idrac``: its BMC has Dell's
    services, and makes a job of a BIOS change: until the next boot it refuses others.
    ``forgets_mode``: a boot device without a mode sets Legacy.  ``wants_triple``: a boot device
    without duration and mode is refused.  ``order``: boot options by reference and their device; a
    machine with them has no boot override.  ``order_settings``: what its Boot shows and takes.
    ``forgets_boot``: a power on loses the override before the firmware has read it.
    ``log_of``: the resource with the log services, Systems or Managers.  ``sets_clock``: its BMC
    takes a time.  ``bmc_firmware``: its version.  ``keeps_images``: an update keeps the former
    firmware of BMC and BIOS.
    ``restarts_for_image``: its BMC restarts by itself for another image of its own.
    ``detectors``: leak detectors of its chassis, by their Id.  ``shelves``: power shelves that its
    BMC shows.
    """

    uuid: str
    name: str
    macs: tuple[str, ...]
    cpus: int = 8
    memory_gib: int = 16
    disks_gib: tuple[int, ...] = (480, 480)
    mode: str = "UEFI"
    power_s: float = 0.0
    graceful_s: float = 0.0
    strict: bool = True
    fetch: bool = False
    mode_at_boot: bool = False
    post_s: float = 0.0
    resets: tuple[str, ...] = RESETS
    targets: tuple[str, ...] = TARGETS
    enables: tuple[str, ...] = ("Once", "Continuous", "Disabled")
    modes: tuple[str, ...] = ("Legacy", "UEFI")
    media: tuple[tuple[str, tuple[str, ...]], ...] = (("Cd", ("CD", "DVD")),)
    media_by_patch: bool = False
    idrac: bool = False
    bmc_firmware: str = "1.0.0"
    forgets_mode: bool = False
    wants_triple: bool = False
    order: tuple[tuple[str, str], ...] = ()
    order_settings: tuple[str, ...] = ("BootOrder",)
    forgets_boot: bool = False
    log_of: str = "Systems"
    sets_clock: bool = True
    keeps_images: bool = False
    restarts_for_image: bool = True
    detectors: tuple[str, ...] = ()
    shelves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """An entry of the BMC's log; ``at`` in seconds since 1970, by the BMC's clock."""

    number: int
    at: float
    severity: str
    message: str


def factory_bios() -> dict[str, Any]:
    return {name: value for name, (value, _) in BIOS.items()}


class System:
    """The state of one machine."""

    def __init__(self, spec: Spec, stopping: threading.Event) -> None:
        self.spec, self.id, self.name = spec, spec.uuid, spec.name
        self.serial = f"LAB{spec.uuid[-8:].upper()}"
        self.lock, self._media_lock = threading.RLock(), threading.Lock()
        self._stopping = stopping
        self._on = False
        self.boot = {"target": "None", "enabled": "Disabled", "mode": spec.mode}
        self.order = [reference for reference, _ in spec.order]
        self.boot_next = ""
        self.mode_next = spec.mode
        self.http_uri = ""
        self.booted: dict[str, Any] = {}
        self.media: dict[str, str | None] = {device: None for device, _ in spec.media}
        self.bios, self.bios_next = factory_bios(), dict[str, Any]()
        self.jobs: set[str] = set()  # that an iDRAC runs at the next boot
        self.first_boot = {
            "ServerBoot.1.FirstBootDevice": "Normal", "ServerBoot.1.BootOnce": "Disabled",
        }  # fmt: skip
        self._in_post: threading.Timer | None = None
        self.secure = False
        self.secure_next: bool | None = None
        self.leaks = dict.fromkeys(spec.detectors, "OK")  # what each leak detector says
        self.led, self.asset = "Off", ""
        self.drive_leds: dict[str, str] = {}  # by number; missing: Off
        self.firmware = {"BMC": spec.bmc_firmware, "BIOS": "2.0.0", "NIC": "3.0.0"}
        self.firmware_next: dict[str, str] = {}
        self.firmware_kept: dict[str, str] = {}  # of the slot that is not active
        self.firmware_slots = dict.fromkeys(self.firmware, "A")  # the active ones
        self.volumes: list[dict[str, Any]] = []
        self.volumes_made = 0
        self.history: deque[tuple[float, str]] = deque(maxlen=200)
        self._orders: list[tuple[float, str]] = []
        self.changed: Callable[[], None] = lambda: None  # is called at each start and stop
        self.serial_line: Callable[[], None] = lambda: None  # as ``changed``
        self.bmc_back_at = self.bmc_reset_at = 0.0
        self.clock_s = 0.0  # the BMC's clock less that of this host
        self.utc_offset = "+00:00"
        self.log: deque[LogEntry] = deque(maxlen=1000)
        self._logged = 0

    @property
    def bmc_time(self) -> float:
        return time.time() + self.clock_s

    def log_event(self, message: str, severity: str = "Critical", at: float | None = None) -> None:
        """Add an entry to the BMC's log, by default with the time of its clock."""
        with self.lock:
            self._logged += 1
            at = self.bmc_time if at is None else at
            self.log.append(
                LogEntry(number=self._logged, at=at, severity=severity, message=message)
            )

    def clear_log(self) -> None:
        """Empty the log; as many BMCs do, write that into it."""
        with self.lock:
            self.log.clear()
            self._logged = 0
            self.log_event("Log cleared", "OK")

    def note(self, what: str) -> None:
        self.history.append((round(time.time(), 2), what))

    @property
    def happened(self) -> list[str]:
        """The history without times."""
        return [what for _, what in list(self.history)]

    @property
    def macs(self) -> tuple[str, ...]:
        return self.spec.macs

    @property
    def is_on(self) -> bool:
        return self._on

    @property
    def medium(self) -> str | None:
        """The image, or ``network``, that the machine has booted, or None: off, or its disk."""
        if not self.is_on:
            return None
        return self.booted.get("image") or (
            "network" if self.booted.get("target") == "Pxe" else None
        )

    def start(self) -> None:
        """Start the machine with ``booted``; subclasses run more than a state here."""
        self._on = True

    def stop(self) -> None:
        """Stop the machine."""
        self._on = False

    @property
    def power(self) -> str:
        return "On" if self.is_on else "Off"

    def set_boot(self, **settings: str) -> None:
        """Set ``target``, ``enabled`` and ``mode``."""
        with self.lock:
            self.mode_next = settings.get("mode", self.mode_next)
            if self.spec.mode_at_boot:
                settings.pop("mode", None)
            self.boot.update(settings)

    @property
    def boot_progress(self) -> str:
        if not self.is_on:
            return "None"
        return "OSRunning" if self._in_post is None else "MemoryInitializationStarted"

    # --------------------------------------------------------------------------------- power

    def reset(self, kind: str, *, stuck: bool = False) -> None:
        """Accept a power request; ``stuck``: without an effect."""
        if kind == "PushPowerButton":
            kind = "GracefulShutdown" if self.is_on else "On"
        pointless = kind in ("On", "ForceOn") if self.is_on else kind in _ONLY_WHEN_ON
        if pointless and self.spec.strict:
            raise Refusal(409, f"{kind}: the system is {self.power}", "ActionNotSupported")
        self.note(f"reset {kind}{' (stuck)' if stuck else ''}")
        if stuck:
            return
        with self.lock:
            shutdown_s = self.spec.graceful_s if kind.startswith("Graceful") else 0.0
            self._orders.append((time.monotonic() + self.spec.power_s + shutdown_s, kind))
            if len(self._orders) == 1:
                threading.Thread(target=self._work, name=self.name, daemon=True).start()

    def _work(self) -> None:
        """Carry out the queued power requests one after another."""
        while not self._stopping.is_set():
            due_at, kind = self._orders[0]
            graceful = kind.startswith("Graceful")
            while (left_s := due_at - time.monotonic()) > 0 and not self._stopping.is_set():
                if graceful and any(k.startswith("Force") for _, k in self._orders[1:]):
                    break  # a Force request behind a graceful one ends the wait
                self._stopping.wait(min(left_s, 0.05) if graceful else left_s)
            was_on, stops = self.is_on, kind in _STOPS
            if stops:
                self.stop()
                self._follow_power()
                if self._in_post is not None:  # a power off during POST applies nothing
                    self._in_post.cancel()
                    self._in_post = None
            if kind in _STARTS and (stops or not was_on):
                self._take_boot()
                self.start()
                self._follow_power()
            self.note(f"power is {self.power}")
            with self.lock:
                del self._orders[0]
                if not self._orders:
                    return

    def _follow_power(self) -> None:
        self.changed()
        self.serial_line()

    def _take_boot(self) -> None:
        """Begin POST, and boot with the current settings, which uses up a Once override."""
        with self.lock:
            if self.spec.post_s:
                self._in_post = threading.Timer(self.spec.post_s, self._end_post)
                self._in_post.daemon = True
                self._in_post.start()
            else:
                self._end_post()
            if self.secure_next is not None:
                self.secure, self.secure_next = self.secure_next, None
            boot = self.boot
            boot["mode"] = self.mode_next
            if self.spec.forgets_boot:
                boot.update(target="None", enabled="Disabled")
            target = boot["target"] if boot["enabled"] != "Disabled" else "None"
            # The device that an iDRAC's own attribute names comes before the override.
            device = self.first_boot["ServerBoot.1.FirstBootDevice"]
            if self.first_boot["ServerBoot.1.BootOnce"] == "Enabled":
                self.first_boot["ServerBoot.1.FirstBootDevice"] = "Normal"
            if device != "Normal":
                target = device
            if self.order:
                target = dict(self.spec.order)[self.boot_next or self.order[0]]
                self.boot_next = ""
            if boot["enabled"] == "Once":
                boot.update(target="None", enabled="Disabled")
            image = self.http_uri if target == "UefiHttp" else None
            # USB counts as a CD only where the BMC has no other target.
            if target in (_CDS if "Cd" in self.spec.targets else (*_CDS, "Usb")):
                discs = [device for device, kinds in self.spec.media if {"CD", "DVD"} & set(kinds)]
                image = next((self.media[disc] for disc in discs if self.media[disc]), None)
            self.booted = {
                "target": target, "mode": boot["mode"], "secure": self.secure, "image": image,
            }  # fmt: skip
            self.note(f"boots from {target} in {boot['mode']} mode")

    def _end_post(self) -> None:
        with self.lock:
            self.bios.update(self.bios_next)
            for part in [part for part in self.firmware_next if part != "BMC"]:
                self.install(part, self.firmware_next.pop(part))
            self.bios_next = {}
            self.jobs.clear()
            self._in_post = None

    def install(self, part: str, version: str) -> None:
        """Let a version run; a machine that keeps images has the former one in its other slot."""
        if self.spec.keeps_images:
            self.firmware_kept[part] = self.firmware[part]
            self.firmware_slots[part] = "B" if self.firmware_slots[part] == "A" else "A"
        self.firmware[part] = version

    # ---------------------------------------------------------------------------------- jobs

    def queue_job(self, kind: str, refusal: str) -> None:
        """Note an iDRAC's job for the next boot.  Raises Refusal where one is pending."""
        with self.lock:
            if kind in self.jobs:
                raise Refusal(400, f"a configuration job of {kind} is pending", refusal)
            if self.spec.idrac:
                self.jobs.add(kind)

    def clear_jobs(self) -> None:
        with self.lock:
            self.jobs.clear()
            self.bios_next = {}
            self.note("job queue cleared")

    # --------------------------------------------------------------------------------- media

    def insert(self, url: str, device: str = "Cd") -> None:
        if not re.match(r"https?://.", url):
            raise Refusal(400, "Image must be an http or https URL", "PropertyValueFormatError")
        with self._media_lock:
            if self.media[device]:
                raise Refusal(409, "media is inserted", "ResourceInUse")
            if self.spec.fetch:
                self.note(f"fetched {_fetch(url)} bytes")
            self.media[device] = url
            self.note(f"media inserted: {url}")

    def eject(self, device: str = "Cd") -> None:
        with self._media_lock:
            if self.media[device]:
                self.media[device] = None
                self.note("media ejected")

    def shown(self) -> dict[str, Any]:
        """Return the true state, for tests."""
        return {
            "power": self.power, "boot": self.boot, "booted": self.booted, "media": self.media,
            "bios": self.bios, "secure_boot": self.secure, "history": list(self.history),
        }  # fmt: skip


def _fetch(url: str) -> int:
    """Download an image as a BMC does; return its size."""
    size = 0
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310  checked: http(s)
            while chunk := answer.read(1 << 20):
                size += len(chunk)
    except (OSError, ValueError) as exc:
        raise Refusal(500, f"cannot fetch {url}: {exc}") from exc
    return size
