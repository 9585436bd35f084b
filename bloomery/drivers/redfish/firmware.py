"""Firmware versions, and updates by the UpdateService.

Components are updated one after another, each over several attempts: order the update, poll its
task, restart the machine where needed, and wait for the new version.  ``driver_internal_info``
stores the position before each write.  After a crash or a lost answer, a task that the BMC has
started for this machine is continued; only otherwise a new one is ordered.  A task of unknown
machine, at a BMC of several machines, is waited for; then the version decides. Source: DMTF
DSP2046, UpdateService, action SimpleUpdate.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import urllib3

from bloomery import clock, errors, fetching, secrets
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, steps, substeps
from bloomery.drivers.redfish import bmc_clock, firmware_images, power, reading, tasks
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.model.rules import firmware as rules
from bloomery.outcome import DONE, Again, Done, Outcome

Json: TypeAlias = dict[str, Any]

_MEMORY: Final = "redfish_firmware"
_KEYS: Final = ("component", "url", "checksum", "wait", "version")  # of an entry
_COMPONENTS: Final = ("bios", "bmc")
_FIRST_POLL_S: Final = 1.0
_START_S: Final = 30.0  # a task not started by then needs a restart of the machine
_MOST_ORDERS: Final = 3  # orders with a 5xx as answer
_LONGEST_VERSION: Final = 255
_FETCH_TIMEOUT: Final = urllib3.Timeout(connect=10, read=30)
_MOST_FETCH_S: Final = 600.0
_REST: Final = "firmware_update_unresponsive_bmc_wait"  # of driver_info, as in Ironic
_CHUNK: Final = 1 << 20
_ACTION: Final = "#UpdateService.SimpleUpdate"
_UPDATE_ARGS: Final = {
    "settings": {
        "description": "list of {component, url, checksum, wait, version}, in this order; the last "
        "three, of the file, in seconds, and to read afterwards, may be left out",
        "required": True,
        "items": {
            "component": {
                "description": "bios, bmc, or nic: and a serial number",
                "required": True,
            },
            "url": {"description": "of the firmware file", "required": True},
            "checksum": {"description": "of the file", "required": False},
            "wait": {
                "description": "seconds after the update",
                "required": False,
                "type": "number",
            },
            "version": {"description": "that the BMC is to show afterwards", "required": False},
        },
    },
}
_ROLLBACK_ARGS: Final = {
    "component": {"description": "bios or bmc", "required": True},
    "version": {"description": "of the kept image, where there are several", "required": False},
}


class RedfishFirmware(RedfishInterface, base.Firmware):
    def cache_firmware_components(self, task: base.DriverTask) -> Done | None:
        rows = self.access.read(task, components)
        return Done(result={"firmware": rows}) if rows else None

    def cache_firmware_versions(self, task: base.DriverTask) -> Done | None:
        """Leave out network adapters; remember the clock that the manager shows beside."""
        manager, rows = self.access.read(task, _own_components)
        if manager is not None and (shown := bmc_clock.time_of(manager.json)) is not None:
            difference_s = bmc_clock.difference_s(shown, datetime.now(UTC))
            self.access.bmc(task).note_clock(difference_s)
        return Done(result={"firmware": rows}) if rows else None

    @steps.keeps_disks
    @steps.out_of_band_step(_UPDATE_ARGS)
    def update(self, task: base.DriverTask, settings: Any) -> Outcome:
        """Update the firmware of components; an interrupted list continues at its position."""
        entries = steps.checked_entries("settings", settings, ("component", "url"))
        for entry in entries:
            name = entry["component"]
            if unknown := sorted(entry.keys() - set(_KEYS)):
                raise errors.InvalidParameterValue(
                    reason=f"settings: an entry takes {', '.join(_KEYS)}, and no {unknown[0]}",
                )
            if name not in _COMPONENTS and name.removeprefix(rules.NIC) in ("", name):
                raise errors.InvalidParameterValue(
                    reason=f"settings: redfish updates {', '.join(_COMPONENTS)} and "
                    f"{rules.NIC}NAME, not {name}",
                )
            _check_file(entry["url"], entry.get("checksum"))
            wait_s = entry.get("wait", 0)
            if type(wait_s) not in (int, float) or not 0 <= wait_s <= rules.LONGEST_WAIT_S:
                raise errors.InvalidParameterValue(
                    reason=f"settings: wait takes seconds, from 0 to {rules.LONGEST_WAIT_S}",
                )
            version = entry.get("version", "any")
            if not isinstance(version, str) or not 0 < len(version) <= _LONGEST_VERSION:
                raise errors.InvalidParameterValue(
                    reason="settings: version takes a text of 1 to "
                    f"{_LONGEST_VERSION} characters, as the BMC shows it",
                )
        return self._run(task, entries)

    @steps.keeps_disks
    @steps.out_of_band_step(_ROLLBACK_ARGS)
    def rollback(self, task: base.DriverTask, component: Any, version: Any = None) -> Outcome:
        """Return to the image of a component that the BMC keeps, and read its version back."""
        if component not in firmware_images.COMPONENTS:
            raise errors.InvalidParameterValue(
                reason=f"component takes {' or '.join(firmware_images.COMPONENTS)}, whose images "
                f"Redfish shows, not {errors.shortened(str(component))}",
            )
        if version is not None and not isinstance(version, str):
            raise errors.InvalidParameterValue(reason="version takes a text, as the BMC shows it")
        return self._run(task, [{"component": component, "kept": version}])

    def _run(self, task: base.DriverTask, entries: list[Json]) -> Outcome:
        try:
            return _Update(self, task, entries).run()
        except (errors.StepFailure, errors.Invalid, errors.BmcRefused):
            task.node.driver_internal_info.pop(_MEMORY, None)
            raise


def components(system: Any) -> list[Json]:
    """Return the versions of ``bios``, ``bmc`` and network adapters that the BMC has."""
    return [*_own_components(system)[1], *_adapters(system)]


def _own_components(system: Any) -> tuple[Any, list[Json]]:
    """Return the manager, None without one, and the versions of ``bios`` and ``bmc``."""
    versions: list[Json] = []
    if system.bios_version:
        version = {"component": "bios", "current_version": system.bios_version}
        versions.append(version | {"vendor": system.manufacturer, "model": _model(system)})
    manager = next(reading.managers(system), None)
    if manager is not None and manager.firmware_version:
        version = {"component": "bmc", "current_version": manager.firmware_version}
        versions.append(version | {"model": manager.model})
    return manager, versions


def _model(system: Any) -> str | None:
    model = system.json.get("Model")
    return model if isinstance(model, str) else None


def _adapters(system: Any) -> Iterator[Json]:
    """Yield the network adapters that tell their version.  Source: NetworkAdapter 1.0."""
    for chassis in reading.chassis(system):
        for adapter in reading.members(system, chassis.json, "NetworkAdapters"):
            name = adapter.get("SerialNumber") or adapter.get("Id")
            versions = (
                each.get("FirmwarePackageVersion") for each in adapter.get("Controllers") or ()
            )
            version = next(filter(None, versions), None)
            if name and version:
                yield {
                    "component": f"{rules.NIC}{name}", "current_version": version,
                    "vendor": adapter.get("Manufacturer"), "model": adapter.get("Model"),
                    "serial_number": adapter.get("SerialNumber"),
                }  # fmt: skip


def _version(system: Any, component: str) -> str | None:
    of_adapter = component.startswith(rules.NIC)
    components = _adapters(system) if of_adapter else _own_components(system)[1]
    rows = (row for row in components if row["component"] == component)
    return next((row["current_version"] for row in rows), None)


class _Update:
    """A running step; ``driver_internal_info`` stores its position.

    ``done``: the number of updated components.  ``left``: those that had the version before.
    ``until``: the deadline of the current one.  ``now``: None before it begins, then its version
    ``before``, the BMC's older ``tasks``, the number of ``orders``, the ``monitor`` of its task,
    and the next ``stage``.  The position of another ``flow`` is continued until its deadline.  An
    entry with ``kept`` has no URL: an ``image`` of the BMC becomes the active one.
    """

    def __init__(
        self, interface: RedfishFirmware, task: base.DriverTask, entries: list[Json]
    ) -> None:
        self._access, self._conf, self._task = interface.access, interface.conf.redfish, task
        self._entries = entries
        digest = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]
        memory = task.node.driver_internal_info.get(_MEMORY)
        flow = str(task.node.provision_updated_at)  # constant during a flow
        is_left = memory is not None and memory.get("flow") != flow and _is_past(memory["until"])
        if memory is None or memory["asked"] != digest or is_left:
            until = _later(self._conf.firmware_update_overall_timeout)
            memory = {"asked": digest, "done": 0, "now": None, "until": until}
            task.node.driver_internal_info[_MEMORY] = memory
        elif memory.get("flow") != flow and memory["now"] is not None:
            memory["now"].pop("restarts", None)  # the restart ended with its flow
        memory["flow"] = flow
        self._memory: Json = memory

    def run(self) -> Outcome:
        """Run stages until one must wait.  Raises StepFailure, BmcRefused, BmcUnreachable."""
        stages: dict[str, Callable[[], Outcome | None]] = {
            "ask": self._ask, "poll": self._poll, "restart": self._restart,
            "settle": self._settle, "validate": self._validate, "switch off": self._switch_off,
            "wait": self._wait,
        }  # fmt: skip
        while self._memory["done"] < len(self._entries):
            stage = self._begin if self._memory["now"] is None else stages[self._now["stage"]]
            outcome = stage()
            if outcome is not None and not isinstance(outcome, Done):
                return outcome
            self._task.save()
        rows = self._access.read(self._task, components)
        left = self._memory.get("left", ())
        flashed = {entry["component"] for entry in self._entries}.difference(left)
        del self._task.node.driver_internal_info[_MEMORY]
        for row in rows:
            if row["component"] in flashed:
                row["last_version_flashed"] = row["current_version"]
        return Done(result={"firmware": rows}) if rows else DONE

    @property
    def _now(self) -> Json:
        now: Json = self._memory["now"]
        return now

    @property
    def _entry(self) -> Json:
        return self._entries[self._memory["done"]]

    @property
    def _component(self) -> str:
        return str(self._entry["component"])

    # ------------------------------------------------------------------------------- stages

    def _begin(self) -> Outcome | None:
        """Read the version and the BMC's tasks before the first order."""
        entry = self._entry
        version, listed = self._access.read(
            self._task, lambda system: (_version(system, self._component), tasks.listed(system))
        )
        if version is None and self._component.startswith(rules.NIC):
            raise errors.InvalidParameterValue(
                reason=f"its BMC shows no version of {self._component}; GET firmware lists what it "
                "shows",
            )
        if version is not None and version == entry.get("version"):
            self._memory["left"] = [*self._memory.get("left", ()), self._component]
            self._memory["done"] += 1
            return None
        if entry.get("checksum") is not None:
            _check_content(entry["url"], entry["checksum"])
        self._memory["now"] = {
            "before": version, "tasks": listed, "orders": 0, "monitor": None, "stage": "ask",
            "was_off": self._task.node.power_state == PowerState.OFF,
        }  # fmt: skip
        if "kept" in entry:
            image = self._access.read(
                self._task,
                lambda system: firmware_images.choose(system, self._component, entry["kept"]),
            )
            self._now["image"] = [*image]
        self._memory["until"] = _later(self._conf.firmware_update_overall_timeout)
        return None

    def _ask(self) -> Outcome | None:
        """Order the update, unless an earlier order has started or succeeded."""
        now = self._now
        owner, path, _version = now.get("image") or ("", str(self._entry.get("url")), None)
        if owner:
            self._access.change(
                self._task, lambda system: firmware_images.activate(system, owner, path),
                repeatable=True,
            )  # fmt: skip
            self._follow(None)
            return None
        if now["orders"]:
            own, others = self._access.read(self._task, self._find_begun)
            if own is not None:
                self._follow(own)
                return None
            if others:
                paths = ", ".join(others)
                why = f"{paths} may be its task, and does not say for which machine it works"
                if _is_past(self._memory["until"]):
                    raise errors.StepFailure(
                        reason=f"cannot tell whether the BMC updates {self._component}: {why}",
                    )
                return self._again(why)
            if now["before"] is not None and self._reads_new():
                now.update(stage="settle", settles_by=None)
                return None
        now["orders"] += 1
        self._task.save()
        try:
            monitor = self._access.change(
                self._task, lambda system: _simple_update(system, path),
                secrets=secrets.in_address(path),
            )  # fmt: skip
        except errors.BmcRefused as no:
            if not isinstance(no, errors.BmcFailed) or now["orders"] >= _MOST_ORDERS:
                raise
            return Again(after_s=_FIRST_POLL_S, reason=f"the BMC answered {no.facts['reason']}")
        self._follow(monitor)
        return None

    def _find_begun(self, system: Any) -> tuple[str | None, list[str]]:
        return tasks.find_own(system, self._now["tasks"], _action(system)["target"])

    def _follow(self, monitor: str | None) -> None:
        is_nic, conf = self._component.startswith(rules.NIC), self._conf
        start_s = conf.firmware_update_nic_starting_wait if is_nic else _START_S
        self._now.update(monitor=monitor, stage="poll", starts_by=_later(start_s))

    def _poll(self) -> Outcome | None:
        """Poll the task; a BMC that updates itself may be silent."""
        now, what = self._now, f"update {self._component}"
        monitor, hidden = now["monitor"], secrets.in_address(self._entry.get("url", ""))
        try:
            state = tasks.COMPLETED
            if monitor is not None:
                state = self._access.read(
                    self._task, lambda system: tasks.state(system, monitor, what, hidden)
                )
        except (errors.BmcUnreachable, errors.BmcRefused) as exc:
            if self._component != "bmc":
                raise
            return self._tolerate(exc)
        if state == tasks.COMPLETED:
            is_new = self._component == "bmc" or now.get("restarted") or self._reads_new()
            now.update(stage="settle" if is_new else "restart", settles_by=None)
            return None
        if _is_past(self._memory["until"]):
            raise errors.StepFailure(
                reason=f"the update of {self._component} has not ended within "
                f"{self._conf.firmware_update_overall_timeout} s: its task is {state}",
            )
        waits = state in tasks.NOT_BEGUN and not now.get("restarted")
        if self._component != "bmc" and waits and _is_past(now["starts_by"]):
            now["stage"] = "restart"
            return None
        return self._again(f"its task is {state}")

    def _restart(self) -> Outcome | None:
        """Restart the machine, then poll the task again, which may have waited for the restart.

        After an interrupted restart the machine may be flashing: wait before a second one.
        """
        now = self._now
        if now.get("restarts") and not self._task.turn:
            now.update(stage="settle", settles_by=None, restarts=False, unsure=True)
            substeps.forget(self._task, power.REBOOT)
            return None
        now["restarts"] = True
        self._task.save()
        outcome = self._task.driver.power.reboot(self._task)
        if isinstance(outcome, Done):
            now.update(stage="poll", restarted=True)
        return outcome

    def _settle(self) -> Outcome | None:
        """Wait for a new version; an unchanged one may have been flashed again."""
        now = self._now
        now["settles_by"] = now["settles_by"] or _later(self._conf.firmware_update_reboot_delay)
        try:
            is_new = self._reads_new()
        except (errors.BmcUnreachable, errors.BmcRefused) as exc:
            if self._component != "bmc" and isinstance(exc, errors.BmcRefused):
                raise
            return self._tolerate(exc)
        if not is_new and self._restarts_bmc():
            return self._again("it is restarted, for its other image")
        if not is_new and not _is_past(now["settles_by"]):
            return self._again("its new version does not show yet")
        if not is_new and now.pop("unsure", False):
            now["stage"] = "restart"
            return None
        limit_s = self._conf.firmware_update_resource_validation_timeout
        now.update(stage="validate", answers=0, validates_by=_later(limit_s) if limit_s else None)
        return None

    def _restarts_bmc(self) -> bool:
        """Restart a BMC once that has another image for its next start, and does not by itself."""
        now = self._now
        is_bmc = "image" in now and bool(now["image"][0]) and self._component == "bmc"
        if not is_bmc or now.get("bmc_restarted") or not _is_past(now["starts_by"]):
            return False
        now.update(bmc_restarted=True, settles_by=None)
        with contextlib.suppress(errors.BmcUnreachable):  # it may restart before it answers
            self._access.change(self._task, firmware_images.restart_bmc)
        return True

    def _validate(self) -> Outcome | None:
        """Wait until the BMC has shown the component several times in a row."""
        now, conf = self._now, self._conf
        required = conf.firmware_update_required_successes if now["validates_by"] else 0
        if now["answers"] < required:
            try:
                version = self._access.read(
                    self._task, lambda system: _version(system, self._component)
                )
                now["answers"] += 1
            except (errors.BmcUnreachable, errors.BmcRefused) as exc:
                self._tolerate(exc)
                version = None
            if version is None and now["before"] is not None:
                now["answers"] = 0
        if now["answers"] >= required:
            try:
                self._check_version()
            except (errors.BmcUnreachable, errors.BmcRefused) as exc:
                return self._tolerate(exc)
            now["stage"] = "switch off" if now["was_off"] else "wait"
            now["waits_until"] = _later(self._entry.get("wait", self._usual_rest_s()))
            return None
        progress = f"its BMC has shown it {now['answers']} of {required} times in a row"
        if _is_past(now["validates_by"]):
            raise errors.StepFailure(
                reason=f"{self._component} was updated, and {progress} within "
                f"{conf.firmware_update_resource_validation_timeout} s",
            )
        return Again(
            after_s=float(max(conf.firmware_update_validation_interval, 0.1)),
            reason=f"{self._component} is updated: {progress}",
        )

    def _check_version(self) -> None:
        """Raise StepFailure unless the BMC shows the expected version: its word is no proof.

        An image that the BMC keeps may have none: then any version but the former one counts.
        """
        component, before, image = self._component, self._now["before"], self._now.get("image")
        expected = self._entry.get("version") if image is None else image[2]
        if image is None and expected is None:
            return
        version = self._access.read(self._task, lambda system: _version(system, component))
        is_expected = version == expected
        if expected is None:
            is_expected = version not in (None, before)
        if not is_expected:
            state = "shows no version" if version is None else f"is {version}"
            if version is not None and version == before:
                state = f"is still {version}"
            raise errors.StepFailure(
                reason=f"the BMC reported the end of the update, and {component} {state}, "
                f"not {expected or 'the one of its other image'}",
            )

    def _tolerate(self, exc: errors.Failure) -> Again:
        """Wait for a restarting BMC, which is silent and then lacks documents.  Raises ``exc``."""
        if isinstance(exc, errors.BmcLoginRefused) or _is_past(self._memory["until"]):
            raise exc
        return self._again("it does not answer as it did", exc.facts.get("retry_after_s") or 0)

    def _reads_new(self) -> bool:
        """Return whether another version runs; True where the old one is unknown."""

        def read(system: Any) -> bool:
            before, version = self._now["before"], _version(system, self._component)
            return before is None or version not in (None, before)

        return self._access.read(self._task, read)

    def _switch_off(self) -> Outcome:
        outcome = self._task.driver.power.set_power_state(self._task, PowerState.OFF)
        if isinstance(outcome, Done):
            self._now["stage"] = "wait"
        return outcome

    def _wait(self) -> Outcome | None:
        left_s = (datetime.fromisoformat(self._now["waits_until"]) - clock.now()).total_seconds()
        if left_s > 0:
            return Again(after_s=left_s, reason=f"{self._component} is updated; it is to rest")
        self._memory.update(done=self._memory["done"] + 1, now=None)
        return None

    def _usual_rest_s(self) -> float:
        """Return the rest after a BMC, by the node or the option.  Raises InvalidParameterValue."""
        if self._component != "bmc":
            return 0
        rest_s = self._task.driver_info.get(_REST, self._conf.firmware_update_wait_unresponsive_bmc)
        try:
            if 0 <= (seconds := float(rest_s)) <= rules.LONGEST_WAIT_S:
                return seconds
        except (TypeError, ValueError):
            pass
        raise errors.InvalidParameterValue(
            reason=f"driver_info/{_REST} takes seconds, from 0 to {rules.LONGEST_WAIT_S}",
        )

    def _again(self, why: str, least_s: float = 0) -> Again:
        """Return a pause that grows with the time spent."""
        limit_s = self._conf.firmware_update_overall_timeout
        left_s = (datetime.fromisoformat(self._memory["until"]) - clock.now()).total_seconds()
        pause_s = _FIRST_POLL_S + max(limit_s - left_s, 0) / 4
        longest_s = float(self._conf.firmware_update_status_interval)
        if self._component == "bmc" and self._now["stage"] == "settle":
            longest_s = max(self._conf.firmware_update_bmc_version_check_interval, 0.1)
        return Again(
            after_s=max(least_s, min(longest_s, pause_s)),
            reason=f"the BMC updates {self._component}: {why}",
        )


def _later(seconds: float) -> str:
    return (clock.now() + timedelta(seconds=seconds)).isoformat()


def _is_past(moment: str) -> bool:
    return clock.now() >= datetime.fromisoformat(moment)


def _action(system: Any) -> Json:
    """Return the SimpleUpdate action.  Raises InvalidParameterValue where there is none."""
    service = reading.follow(system, system.root.json, "UpdateService")
    action: Json = (service.get("Actions") or {}).get(_ACTION) or {}
    if not action.get("target"):
        raise errors.InvalidParameterValue(
            reason="its BMC offers no update of firmware from an address (SimpleUpdate)",
        )
    return action


def _simple_update(system: Any, url: str) -> str | None:
    """Order an update; return the path of its task.  Raises InvalidParameterValue.

    ``url``: also the path of an image that the BMC has.
    """
    import sushy

    action = _action(system)
    payload: Json = {"ImageURI": url}
    protocols = action.get("TransferProtocol@Redfish.AllowableValues")
    if protocols and not url.startswith("/"):
        payload["TransferProtocol"] = url.partition(":")[0].upper()
        if payload["TransferProtocol"] not in protocols:
            raise errors.InvalidParameterValue(
                reason=f"its BMC fetches firmware by {', '.join(map(str, protocols))}, "
                f"not by {payload['TransferProtocol']}",
            )
    own = {"Targets": [system.path]}
    if tasks.has_neighbours(system):
        payload |= own
    connection = system.root._conn  # noqa: SLF001  sushy's call names a protocol of its own
    try:
        answer = connection.post(action["target"], data=payload)
    except sushy.exceptions.BadRequestError:
        if "Targets" in payload:
            raise
        answer = connection.post(action["target"], data=payload | own)  # some BMCs require Targets
    return tasks.monitor(answer)


def _check_file(url: object, checksum: object) -> None:
    """Raise InvalidParameterValue for a URL that no BMC fetches, or an invalid checksum."""
    if not fetching.is_http(url):
        raise errors.InvalidParameterValue(reason="settings: url takes an address of http or https")
    if checksum is not None and not rules.is_checksum(checksum):
        raise errors.InvalidParameterValue(
            reason=f"settings: checksum takes the digits of {', '.join(rules.CHECKSUMS.values())}",
        )


def _check_content(url: str, checksum: str) -> None:
    """Read the file; raise StepFailure unless it has this checksum."""
    algorithm = rules.CHECKSUMS[len(checksum)]
    digest = hashlib.new(algorithm, usedforsecurity=False)
    file, give_up_at = secrets.mask_address(url), time.monotonic() + _MOST_FETCH_S
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", url, timeout=_FETCH_TIMEOUT, preload_content=False)
            if answer.status != 200:
                raise errors.StepFailure(reason=f"cannot check {file}: HTTP {answer.status}")
            while chunk := answer.read(_CHUNK):
                digest.update(chunk)
                if time.monotonic() > give_up_at:
                    answer.close()
                    raise errors.StepFailure(
                        reason=f"cannot check {file}: it was not read within {_MOST_FETCH_S:g} s",
                    )
    except (urllib3.exceptions.HTTPError, OSError) as exc:
        why = type(exc).__name__
        raise errors.StepFailure(reason=f"cannot check {file}: it cannot be read ({why})") from exc
    if digest.hexdigest() != checksum.lower():
        raise errors.StepFailure(
            reason=f"{file} does not match its checksum: its {algorithm} is {digest.hexdigest()}",
        )
