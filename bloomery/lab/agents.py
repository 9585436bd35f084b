"""Emulated agents: each boots with its machine, looks up, sends heartbeats, answers commands.

    crew = Crew(folder)
    crew.join(system, Profile(api="http://127.0.0.1:6385", boot_s=5, write_s=30), random.Random(1))
    crew.start()

All agents of a crew share one TLS server, one thread of timers and a pool of threads.
"""

from __future__ import annotations

import collections
import http.client
import json
import logging
import random
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from bloomery.lab import tls
from bloomery.lab.agent import Agent
from bloomery.lab.agent_commands import RUNNING, Commands, Json
from bloomery.lab.agent_server import AgentServer
from bloomery.lab.timers import Seconds, Timers, draw

if TYPE_CHECKING:  # it needs cryptography
    pass

LOG = logging.getLogger(__name__)
_THREADS: Final = 32
_API_TIMEOUT_S: Final = 60.0
_RETRY_S: Final = 1.0  # after a heartbeat that the API refused, on average
_HAND_INS: Final = 3  # attempts to post an inventory, a second apart
_LOOK_UP_S: Final = 1.0  # pause after the first lookup without a node; each next one is doubled
_LAST_LOOK_UP_S: Final = 128.0  # after some 250 s the agent gives up; ironic-python-agent: 300 s
_HEARTBEAT_SHARE: Final = (0.3, 0.6)  # of heartbeat_timeout, as ironic-python-agent has it
_GAP_S: Final = 5.0  # least time between two heartbeats, as ironic-python-agent has it
_RESETS: Final = {"power_off": "ForceOff", "run_image": "ForceRestart", "reboot": "ForceRestart"}
_HIDDEN: Final = "******"  # in place of the token, where the kernel's parameters have it
_TOKEN: Final = re.compile(rb"ipa-agent-token=([\w.~-]+)(?=[^\w.~-])")
_MOST_TOKEN: Final = 1024  # bytes of the parameter
_CHUNK: Final = 1 << 20
_FAILURE: Final = "the emulated agent failed, as its scenario orders"


class Hardware(Protocol):
    """The machine of an agent; ``changed`` is called at each start and stop."""

    name: str
    changed: Callable[[], None]

    @property
    def macs(self) -> Sequence[str]: ...

    @property
    def medium(self) -> str | None:
        """The image, or ``network``, that the machine has booted, or None: off, or its disk."""

    def reset(self, kind: str) -> None: ...

    def note(self, what: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """``api``: the address of the API.  ``image``: a part of the address of the agent's image.

    A machine that boots another image has no agent.  ``boot_s``: from power on to the first lookup.

    ``write_s``: of an image.  ``erase_s``: of a step that erases.  ``fails``: the share of writes
    and steps that fail.  ``inspects``: post the inventory before the lookup.  ``heartbeat_s``:
    between two heartbeats; None: as the API asks.  ``tpm``: it proves which CD it has booted.
    """

    api: str
    image: str = ""
    boot_s: Seconds = 3.0
    write_s: Seconds = 0.0
    erase_s: Seconds = 0.0
    fails: float = 0.0
    inspects: bool = False
    tpm: bool = False
    heartbeat_s: Seconds | None = None


class Answer(NamedTuple):
    status: int
    json: Any


class HttpApi:
    """An API over HTTP; an API that does not answer has status 0."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def get(self, path: str, *, version: str) -> Answer:
        return self._ask("GET", path, None, version)

    def post(self, path: str, body: Any, *, version: str) -> Answer:
        return self._ask("POST", path, json.dumps(body).encode(), version)

    def _ask(self, method: str, path: str, data: bytes | None, version: str) -> Answer:
        headers = {
            "Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": version,
        }  # fmt: skip
        request = urllib.request.Request(  # noqa: S310  the scenario's own address
            self._url + path, data=data, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_API_TIMEOUT_S) as answer:  # noqa: S310
                return Answer(answer.status, json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as no:
            with no:
                return Answer(no.code, {})
        except (OSError, ValueError) as exc:
            LOG.warning("no answer of %s: %s", self._url, exc)
            return Answer(0, {})


def _token_of(url: str) -> str | None:
    """Return the token in the kernel parameters of a CD, as a ramdisk finds it; None without."""
    kept = b""
    try:
        with urllib.request.urlopen(url, timeout=_API_TIMEOUT_S) as cd:  # noqa: S310
            while chunk := cd.read(_CHUNK):
                if found := _TOKEN.search(kept + chunk):
                    return found[1].decode()
                kept = (kept + chunk)[-_MOST_TOKEN:]
    except (OSError, ValueError, http.client.HTTPException) as exc:
        LOG.warning("the CD of a machine cannot be read: %s", type(exc).__name__)
    return None


class EmulatedAgent(Commands):
    """The agent of one machine, over all of its boots.

    ``state``: off, booting, looking up, waiting, working, or lost: no node, or no token, was found.
    """

    def __init__(
        self, machine: Hardware, profile: Profile, crew: Crew, source: random.Random
    ) -> None:
        super().__init__()
        self.machine, self.profile, self.state = machine, profile, "off"
        self._crew, self._random = crew, source
        self._agent = Agent(HttpApi(profile.api), machine.macs)
        self.inventory = self._agent.inventory()
        if profile.tpm:
            from bloomery.lab.tpm import SoftwareTpm  # late: cryptography

            self.tpm = SoftwareTpm()
        self._url = ""
        self._sent_at = 0.0
        self._boots = self._heartbeats = 0  # timers of an earlier boot or heartbeat have no effect
        self._life = threading.RLock()
        machine.changed = self.follow

    def follow(self) -> None:
        """Begin anew, or end, with the machine."""
        with self._life:
            self._boots += 1
            self._leave()
            medium = self.machine.medium
            if medium is not None and (medium == "network" or self.profile.image in medium):
                self.state = "booting"
                call = partial(self._look_up, _LOOK_UP_S)
                if self.profile.inspects:
                    call = partial(self._hand_in, _HAND_INS)
                self._later(draw(self.profile.boot_s, self._random), call)

    def _leave(self) -> None:
        self._crew.server.close(self._url)
        self._url, self.state = "", "off"
        self.boot()
        self._agent.boot("")

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        boot = self._boots
        self._crew.timers.call_in(seconds, lambda: work() if boot == self._boots else None)

    # ------------------------------------------------------------------------- calls to the API

    def _hand_in(self, attempts: int) -> None:
        """Post the inventory, again where no node waits for it yet; then look up."""
        boot = self._boots
        answer = self._agent.try_to_hand_in()
        if answer.status != 202 and attempts > 1:
            self._later(_LOOK_UP_S, lambda: self._hand_in(attempts - 1))
            return
        self.machine.note(f"agent: inventory posted, HTTP {answer.status}")
        if "config" in answer.json:
            self._begin(boot, answer.json)
        else:
            self._look_up(_LOOK_UP_S)

    def _look_up(self, pause_s: float) -> None:
        boot, self.state = self._boots, "looking up"
        answer = self._agent.try_to_look_up()
        if answer.status != 200 and pause_s <= _LAST_LOOK_UP_S:
            self._later(pause_s, lambda: self._look_up(2 * pause_s))
            return
        self.machine.note(f"agent: lookup, HTTP {answer.status}")
        if answer.status == 200:
            self._begin(boot, answer.json)
        else:
            self.state = "lost"

    def _begin(self, boot: int, document: Json) -> None:
        """Listen and send heartbeats, unless the machine has been switched meanwhile."""
        medium, token = self.machine.medium, None
        if document["config"].get("agent_token") == _HIDDEN and medium not in (None, "network"):
            token = _token_of(str(medium))
            if token is None:
                self.machine.note("agent: lookup gave no token, and the CD has none")
                self.state = "lost"
                return
        if self.tpm is not None and medium not in (None, "network"):
            self.tpm.reset()
            try:
                with urllib.request.urlopen(str(medium), timeout=_API_TIMEOUT_S) as cd:  # noqa: S310
                    self.tpm.boot_cd(cd.read())
            except (OSError, ValueError, http.client.HTTPException) as exc:
                self.machine.note(f"agent: its TPM cannot measure the CD: {type(exc).__name__}")
        with self._life:
            if boot != self._boots:
                return
            self._agent.learn(document)
            self._agent.kernel_token = token
            self.token = self._agent.token
            self._url = self._crew.server.open(self)
            self.state = "waiting"
            self._schedule(0.0)

    def _schedule(self, seconds: float) -> None:
        """Schedule the next heartbeat, in place of an earlier one."""
        self._heartbeats += 1
        number = self._heartbeats
        self._later(seconds, lambda: self._send() if number == self._heartbeats else None)

    def _send(self) -> None:
        self._sent_at = self._crew.timers.now()
        answer = self._agent.call(
            callback_url=self._url, agent_verify_ca=self._crew.server.certificate
        )
        if answer.status == 202:
            self._schedule(self._interval_s())
        else:
            self._schedule(self._random.uniform(0.5, 1.5) * _RETRY_S)

    def _interval_s(self) -> float:
        if self.profile.heartbeat_s is not None:
            return draw(self.profile.heartbeat_s, self._random)
        timeout_s = float(self._agent.config.get("heartbeat_timeout", 300))
        return timeout_s * self._random.uniform(*_HEARTBEAT_SHARE)

    # -------------------------------------------------------------------------------- commands

    def take(self, name: str, params: Json) -> tuple[int, Json]:
        status, answer = super().take(name, params)
        if status == 200:
            self.machine.note(f"agent: {name}")
            if answer["command_status"] == RUNNING:
                self.state = "working"
                work = (params.get("step") or {}).get("step", name.rpartition(".")[2])
                duration: Seconds = 0.0
                if work in ("prepare_image", "write_image"):
                    duration = self.profile.write_s
                elif work.startswith("erase"):
                    duration = self.profile.erase_s
                self._later(draw(duration, self._random), self._end_command)
            elif name == "rescue.finalize_rescue":
                self._later(0.0, self._leave)
        return status, answer

    def _end_command(self) -> None:
        name = str((self.running or {}).get("command_name"))
        if name in _RESETS:
            self.machine.reset(_RESETS[name])
            return
        may_fail = name == "prepare_image" or name.startswith("execute_")
        fails = may_fail and self._random.random() < self.profile.fails
        self.fails = {name: _FAILURE} if fails else {}
        self.finish()
        self.state = "waiting"
        self.machine.note(f"agent: {name} {'failed' if fails else 'ended'}")
        gap_s = min(_GAP_S, self._interval_s())
        self._schedule(max(self._sent_at + gap_s - self._crew.timers.now(), 0.0))


class Crew:
    """The agents of a simulation; ``folder`` gets their certificate."""

    def __init__(self, folder: Path) -> None:
        self.agents: list[EmulatedAgent] = []
        self.server = AgentServer(*tls.certificate(folder))
        self._pool = ThreadPoolExecutor(_THREADS, "lab-work")
        self.timers = Timers(lambda work: self._pool.submit(self._run, work))

    def join(self, machine: Hardware, profile: Profile, source: random.Random) -> EmulatedAgent:
        """Give a machine an agent."""
        self.agents.append(EmulatedAgent(machine, profile, self, source))
        return self.agents[-1]

    def states(self) -> dict[str, int]:
        return dict(collections.Counter(agent.state for agent in self.agents))

    def start(self) -> None:
        self.timers.start()

    def stop(self) -> None:
        self.timers.stop()
        self._pool.shutdown(cancel_futures=True)
        self.server.stop()

    @staticmethod
    def _run(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            LOG.exception("an agent of the lab broke")
