"""The hardware type ``webhook``: power by an HTTP API of your own, such as a PDU's or a relay's.

A node names three URLs: to read its power, to switch it on, and to switch it off.  Each call is a
POST, signed as in Standard Webhooks with its type: ``power.read``, ``power.on``, ``power.off``.  A
read is answered by ``{"power": "on"}`` or ``{"power": "off"}``, an order by any 2xx.  An order is
done when the state reads so, and sent again where its answer was unclear.  An operator sets the
boot order; agents boot from the network.
"""

from __future__ import annotations

import re
import ssl
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import orjson
import standardwebhooks

from bloomery import clock, errors, fetching, parsing
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.conf.drivers import WebhookPower as Options
from bloomery.drivers import base, substeps
from bloomery.drivers.base import BmcSystem
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.state import BmcState
from bloomery.model import webhook as webhook_model
from bloomery.outcome import DONE, Again, Done, Outcome

_READ: Final = "read"  # beside the two power states: what is asked of a server
_URLS: Final[Mapping[str, str]] = {
    _READ: "webhook_power_read_url",
    PowerState.ON: "webhook_power_on_url",
    PowerState.OFF: "webhook_power_off_url",
}
_TYPES: Final = {_READ: "power.read", PowerState.ON: "power.on", PowerState.OFF: "power.off"}
_SECRET: Final = "webhook_secret"  # noqa: S105  the name of a key
_VERIFY: Final = "webhook_verify_ca"
PROPERTIES: Final = {
    _URLS[_READ]: "URL that answers the power state of the machine. Required.",
    _URLS[PowerState.ON]: "URL that switches the machine on. Required.",
    _URLS[PowerState.OFF]: "URL that switches the machine off. Required.",
    _SECRET: "secret that signs each call: 24 to 64 bytes in base64. Required.",
    _VERIFY: "true, false, or path of a file or directory of CAs. Optional.",
}
_OPTION: Final = "[webhook]allow_local"
_STATES: Final = {"on": PowerState.ON, "off": PowerState.OFF}
_MEMORY: Final = "webhook_power"  # in driver_internal_info: an order; "unclear": send it again
_VISIBLE: Final = re.compile("[!-~]+")
_SECONDS: Final = re.compile("[0-9]{1,6}")
_NONSENSE: Final = """its answer is neither {"power": "on"} nor {"power": "off"}"""
_BAD_SIGNATURE: Final = (401, 403)
_BUSY: Final = (409, 423, 425, 429, 503)


class WebhookHardware(base.HardwareType):
    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("no-bios",),
        "boot": ("ipxe", "pxe"),
        "console": ("no-console", "console-server"),
        "deploy": ("direct", "ramdisk", "custom-agent", "bootc", "autodetect", "noop"),
        "firmware": ("no-firmware",),
        "inspect": ("agent", "no-inspect"),
        "management": ("noop",),
        "network": ("noop", "ironic-networking"),
        "power": ("webhook",),
        "raid": ("no-raid", "agent"),
        "rescue": ("no-rescue", "agent"),
        "storage": ("noop",),
        "vendor": ("no-vendor",),
    }

    def check_driver_info(self, driver_info: Mapping[str, Any]) -> None:
        for key in _URLS.values():
            if isinstance(driver_info.get(key), str):  # one with a query is sealed
                _url(driver_info, key)

    def bmc_system(self, info: Mapping[str, Any]) -> BmcSystem | None:
        """Return the URL to read; None where it is sealed, or none."""
        try:
            parts = _url(info, _URLS[_READ])
        except errors.Invalid:
            return None
        return BmcSystem(
            host=str(parts.hostname), port=parts.port, system=parts.path, text=str(parts.hostname)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The driver_info of a node, parsed: URLs by what they do; their paths may be secret."""

    urls: Mapping[str, urllib.parse.SplitResult] = field(repr=False)
    signer: standardwebhooks.Webhook = field(repr=False)
    trust: bool | str

    def address(self, action: str) -> str:
        """Return scheme, host and port, which name the server in messages."""
        return f"{self.urls[action].scheme}://{self.urls[action].netloc}"

    def context(self, action: str) -> ssl.SSLContext | None:
        """Return the TLS context of a URL.  Raises InvalidParameterValue without certificates."""
        if self.urls[action].scheme == "http":
            return None
        try:
            return fetching.tls_context(self.trust)
        except OSError as exc:
            raise _wrong(_VERIFY, f"it holds no certificates: {exc.strerror}") from exc


def parse(info: Mapping[str, Any], conf: Options) -> Hooks:
    """Parse driver_info; asks nobody.  Raises MissingParameterValue, InvalidParameterValue."""
    for key in (*_URLS.values(), _SECRET):
        if not info.get(key):
            raise errors.MissingParameterValue(
                reason=f"driver_info/{key} is missing: {PROPERTIES[key]}"
            )
    urls = {action: _url(info, key) for action, key in _URLS.items()}
    for action, url in urls.items():
        if not conf.allow_local and any(map(fetching.is_reserved, fetching.numeric(url))):
            raise _wrong(_URLS[action], fetching.LEADS_HERE.format(option=_OPTION))
    if not webhook_model.is_secret(info[_SECRET]):
        raise _wrong(_SECRET, webhook_model.SECRET_SIZE)
    try:
        trust = parsing.trust(info.get(_VERIFY, conf.verify_ca))
    except ValueError as exc:
        raise _wrong(_VERIFY, f"it {exc}") from None
    return Hooks(urls=urls, signer=standardwebhooks.Webhook(info[_SECRET]), trust=trust)


def _url(info: Mapping[str, Any], key: str) -> urllib.parse.SplitResult:
    value = info.get(key)
    if not isinstance(value, str) or not _VISIBLE.fullmatch(value):
        raise _wrong(key, "it must be a URL in ASCII, without spaces")
    try:
        return fetching.checked(value)
    except fetching.FetchRefused as exc:
        raise _wrong(key, str(exc)) from None


def _wrong(key: str, why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"cannot use driver_info/{key}: {why}")


class WebhookPower(base.Power):
    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self.gateway = gateway.of(conf)  # keeps the shared gateway alive

    def get_properties(self) -> dict[str, str]:
        return dict(PROPERTIES)

    def validate(self, task: base.DriverTask) -> None:
        parse(task.driver_info, self.conf.webhook)

    def describe_bmc(self, task: base.DriverTask) -> dict[str, Any]:
        return self._bmc(task).describe()

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self._bmc(task).has_answered(since)

    def _bmc(self, task: base.DriverTask) -> BmcState:
        return self.gateway.bmc(parse(task.driver_info, self.conf.webhook).address(_READ))

    def get_power_state(self, task: base.DriverTask) -> str | None:
        return self._call(task, _READ)

    def set_power_state(
        self, task: base.DriverTask, state: str, timeout_s: float | None = None
    ) -> Outcome:
        if state == PowerState.REBOOT:
            return self.reboot(task, timeout_s)
        if state not in _STATES.values():
            raise errors.InvalidParameterValue(
                reason=f'webhook cannot bring power to "{state}": it takes power on, power off and '
                "rebooting",
            )
        return _recorded(task, self._bring(task, PowerState(state), timeout_s), state)

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        """Switch off and on.  Only the end is recorded, so that power sync mends a half."""
        if task.node.disable_power_off:
            raise errors.InvalidParameterValue(
                reason=f"cannot reboot node {errors.name_of(task.node)}: a webhook would switch it "
                "off, and disable_power_off is set",
            )
        outcome = substeps.run_in_order(
            task,
            "webhook_reboot",
            lambda: self._bring(task, PowerState.OFF, timeout_s),
            lambda: self._bring(task, PowerState.ON, timeout_s),
        )
        return _recorded(task, outcome, PowerState.ON)

    def _bring(self, task: base.DriverTask, state: PowerState, timeout_s: float | None) -> Outcome:
        """Order the state unless it is there, then poll it.

        Silence is tolerated until the deadline, and only counts if the state does not come.
        """
        memory = task.node.driver_internal_info
        order = memory.get(_MEMORY)
        limit_s = timeout_s or self.conf.conductor.power_state_change_timeout
        if not task.turn or order is None or order["state"] != state:
            memory.pop(_MEMORY, None)
            if self._call(task, _READ) == state:
                return DONE
            now = clock.now()
            order = {"state": state, "since": now.isoformat(), "unclear": "it was not sent yet",
                     "until": (now + timedelta(seconds=limit_s)).isoformat()}  # fmt: skip
            is_late = False
        else:
            try:
                reading: object = self._call(task, _READ, insists=True)
            except (errors.BmcUnreachable, errors.BmcFailed) as exc:
                reading = exc
            if reading == state:
                del memory[_MEMORY]
                return DONE
            is_late = clock.now() >= datetime.fromisoformat(order["until"])
            if is_late:
                del memory[_MEMORY]
                if isinstance(reading, errors.Failure):
                    raise reading
                why = order["unclear"] or f"it accepted the order, and still reads {reading}"
                raise errors.PowerStateFailure(
                    state=state, reason=f"within {limit_s:g} s it did not get there: {why}"
                )
        memory[_MEMORY] = order
        if order["unclear"]:
            self._order(task, state, order)
        waited_s = (clock.now() - datetime.fromisoformat(order["since"])).total_seconds()
        return Again(after_s=min(2.0, 0.2 + waited_s / 4), reason=f"waiting for {state}")

    def _order(self, task: base.DriverTask, state: PowerState, order: dict[str, Any]) -> None:
        """Send an order, and note why it has to be sent again; a refusal ends it."""
        order["unclear"] = None
        try:
            self._call(task, state)
        except (errors.BmcUnreachable, errors.BmcFailed) as exc:
            order["unclear"] = exc.facts["reason"]
        except errors.Failure:
            del task.node.driver_internal_info[_MEMORY]
            raise

    def _call(
        self, task: base.DriverTask, action: str, *, insists: bool = False
    ) -> PowerState | None:
        """POST to the URL of an action; return the power state of a read, None for an order.

        Raises BmcUnreachable and BmcRefused with their kinds, LockLost, and InvalidParameterValue
        for a server that may not be called.
        """
        options, node, now = self.conf.webhook, task.node, datetime.now(UTC)
        hooks = parse(task.driver_info, options)
        url, address, key = hooks.urls[action], hooks.address(action), _URLS[action]
        is_read = action == _READ
        body = orjson.dumps({"type": _TYPES[action], "timestamp": now, "data": {"node": node.uuid}})
        headers = fetching.signed(hooks.signer, f"msg_{uuid.uuid4().hex}", now, body)
        facts = {"node": errors.name_of(node), "address": address}
        with self.gateway.guard(address, task, write=not is_read, insists=insists) as call:
            limit_s = min(options.timeout, call.left_s())
            if not is_read:
                call.assert_lease()
            began_at = call.clock()
            try:
                status, lines, content = fetching.post(
                    url, body, headers, self._addresses, limit_s, hooks.context(action)
                )
            except fetching.FetchRefused as exc:
                raise _wrong(key, str(exc)) from exc
            except fetching.FetchFailed as exc:
                raise errors.BmcUnreachable(
                    **facts, reason=str(exc), was_cut_short=limit_s < options.timeout
                ) from exc
            call.took(call.clock() - began_at)
            if not 200 <= status < 300:
                kind, reason = _refusal(status, key)
                pause = lines.get("Retry-After") or ""
                if kind is errors.BmcBusy and _SECONDS.fullmatch(pause):
                    raise kind(**facts, reason=reason, retry_after_s=int(pause))
                raise kind(**facts, reason=reason)
            if not is_read:
                return None
            try:
                return _STATES[parsing.load_json(content)["power"]]
            except (ValueError, KeyError, TypeError):
                raise errors.BmcUnreadable(**facts, reason=_NONSENSE) from None

    def _addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
        entries, allow_local = fetching.resolved(host, port), self.conf.webhook.allow_local
        return fetching.reachable(entries, _OPTION, allow_local=allow_local)


def _refusal(status: int, key: str) -> tuple[type[errors.Failure], str]:
    """Return the error of an answer other than 2xx, and its reason."""
    code = f"HTTP {status}"
    if status in _BUSY:
        return errors.BmcBusy, f"it did not do that ({code}): ask again later"
    if status in _BAD_SIGNATURE:
        return errors.BmcLoginRefused, (
            f"the signature ({code}): give it the secret of driver_info/{_SECRET}, and check the "
            "clocks of both"
        )
    if status >= 500:
        return errors.BmcFailed, f"the server answers {code}"
    if 300 <= status < 400:
        return errors.BmcRefused, (
            f"it redirects ({code}), which is not followed: write the last URL into "
            f"driver_info/{key}"
        )
    return errors.BmcRefused, f"it does not offer that ({code}): check driver_info/{key}"


def _recorded(task: base.DriverTask, outcome: Outcome, state: str) -> Outcome:
    if isinstance(outcome, Done):
        task.node.power_state = state
    return outcome
