"""One BMC: users, sessions, tasks, faults, and the machines behind it."""

from __future__ import annotations

import base64
import contextlib
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.lab.faults import Faults
from bloomery.lab.model import GENERIC, ROOT, Model, View
from bloomery.lab.refusal import Refusal, missing
from bloomery.lab.system import Spec, System
from bloomery.lab.timers import Seconds

__all__ = ["ROOT", "Rules", "SimulatedBmc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The behaviour of a BMC.

    ``max_sessions``: further logins get 503.  ``idle_s``: idle time before it closes a connection.
    ``late_s``: delay of each answer.  ``expands``: supports ``$expand``, and lists it in the root;
    otherwise 501.  ``require_etag``: 412 without If-Match; a wrong one always gets 412.
    ``tells_payload``: an update's task shows its request.  ``is_new``: as from the factory, where
    each user must change the password first.  ``password_chars``: least and most, which the account
    service shows.  ``forgets_passwords``: a restart of the BMC brings the former ones back.
    ``account_slots``: the fixed number of accounts, the first unused; 0: new ones are taken.
    ``page_size``: the links on a page of a collection; 0: all.  ``root_needs_login``: also the
    service root, which DSP0266 opens to everybody.
    """

    users: Mapping[str, str] = field(default_factory=lambda: {"admin": "password"})
    session_s: float = 1800.0
    max_sessions: int = 1000
    idle_s: float = 300.0
    late_s: Seconds = 0.0
    expands: bool = True
    require_etag: bool = False
    tells_payload: bool = True
    is_new: bool = False
    password_chars: tuple[int, int] = (8, 20)
    forgets_passwords: bool = False
    page_size: int = 0
    account_slots: int = 0
    root_needs_login: bool = False
    volume_s: float = 0.0
    update_s: float = 2.0
    restart_s: float = 3.0


class SimulatedBmc:
    """One BMC and its counters.

    ``requests``, ``connections`` accepted, TLS ``handshakes``, ``logins`` for a session,
    ``refused``: answers with 401, and ``wrong_passwords``.
    """

    def __init__(
        self, specs: Iterable[Spec], rules: Rules, model: Model = GENERIC, seed: str = ""
    ) -> None:
        self.rules, self.random = rules, random.Random(seed)  # noqa: S311  of a simulation
        self.stopping = threading.Event()
        self.systems = {spec.uuid: System(spec, self.stopping) for spec in specs}
        self.view = None if model is GENERIC else View(model, list(self.systems))
        self.faults = Faults(self.random)
        self.lock = threading.RLock()
        self.changed_passwords: dict[str, str] = {}
        self.roles: dict[str, str] = {}  # of users that were created
        self._former_passwords: dict[str, str] = {}  # those before the last change
        self.must_change = set(rules.users) if rules.is_new else set[str]()
        self.sessions: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.events: dict[str, dict[str, Any]] = {}
        self.requests = self.connections = self.handshakes = self.logins = self.refused = 0
        self.wrong_passwords = 0
        self._counting = threading.Lock()
        self._tasks_made = 0

    @property
    def has_shelves(self) -> bool:
        return any(system.spec.shelves for system in self.systems.values())

    def count(self, what: str) -> None:
        with self._counting:
            setattr(self, what, getattr(self, what) + 1)

    def counted(self) -> dict[str, int]:
        names = ("requests", "connections", "handshakes", "logins", "refused")
        return {name: getattr(self, name) for name in names}

    def system(self, ident: str) -> System:
        """Return a machine.  Raises Refusal while the BMC restarts."""
        system = self.systems.get(ident)
        if system is None:
            raise missing(ident)
        if system.bmc_back_at > time.monotonic():
            raise Refusal(503, "the BMC is restarting", "ServiceTemporarilyUnavailable")
        return system

    def restart(self, system: System) -> None:
        """Be unavailable for a while; drop sessions and tasks if this is the only machine."""
        system.bmc_back_at, system.bmc_reset_at = (
            time.monotonic() + self.rules.restart_s,
            time.time(),
        )
        if (version := system.firmware_next.pop("BMC", None)) is not None:
            system.install("BMC", version)
        if self.rules.forgets_passwords:
            self.changed_passwords = dict(self._former_passwords)
        if len(self.systems) == 1:
            with self.lock:
                self.sessions.clear()
                self.tasks.clear()

    # ------------------------------------------------------------------------------ sessions

    @property
    def passwords(self) -> dict[str, str]:
        """The passwords by user."""
        return {**self.rules.users, **self.changed_passwords}

    def live_sessions(self) -> dict[str, dict[str, Any]]:
        """Return the sessions by token, without expired ones."""
        with self.lock:
            oldest = time.monotonic() - self.rules.session_s
            stale = [token for token, s in self.sessions.items() if s["used"] <= oldest]
            for token in stale:
                del self.sessions[token]
            return dict(self.sessions)

    def log_in(self, user: str, password: str) -> tuple[str, str]:
        """Return the token and the id of a new session."""
        self.count("logins")
        if self.passwords.get(user) != password:
            self.count("wrong_passwords")
            raise Refusal(401, "wrong user or password", "ResourceAtUriUnauthorized")
        token, ident = uuid.uuid4().hex, uuid.uuid4().hex[:8]
        with self.lock:
            if len(self.live_sessions()) >= self.rules.max_sessions:
                raise Refusal(503, "too many sessions", "SessionLimitExceeded")
            self.sessions[token] = {"id": ident, "user": user, "used": time.monotonic()}
        return token, ident

    def log_out(self, ident: str) -> None:
        with self.lock:
            gone = [token for token, s in self.sessions.items() if s["id"] == ident]
            for token in gone:
                del self.sessions[token]

    def admit(self, token: str | None, authorization: str) -> str:
        """Return the user of a live session or a password.  Raises Refusal without one."""
        live = self.live_sessions().get(token or "")
        if live is not None:
            live["used"] = time.monotonic()
            return str(live["user"])
        if authorization.startswith("Basic "):
            with contextlib.suppress(ValueError):
                user, _, password = base64.b64decode(authorization[6:]).decode().partition(":")
                if (user, password) in self.passwords.items():
                    return user
                self.count("wrong_passwords")
        raise Refusal(
            401, "authentication needed", "ResourceAtUriUnauthorized",
            {"WWW-Authenticate": 'Basic realm="lab"'},
        )  # fmt: skip

    def create_user(self, user: str, password: str, role: str) -> None:
        """Take a new user.  Raises Refusal for one that is there, or by the password's policy."""
        least, most = self.rules.password_chars
        if user in self.passwords:
            raise Refusal(400, f"user {user} is there", "ResourceAlreadyExists")
        if not least <= len(password) <= most:
            raise Refusal(400, "the password breaks the policy", "PropertyValueFormatError")
        with self.lock:
            self.changed_passwords[user] = password
            self.roles[user] = role

    def change_password(self, user: str, password: str) -> None:
        """Take a new password, and end the user's sessions.  Raises Refusal by the policy."""
        least, most = self.rules.password_chars
        if not least <= len(password) <= most or password == self.passwords[user]:
            raise Refusal(400, "the password breaks the policy", "PropertyValueFormatError")
        with self.lock:
            self._former_passwords = dict(self.changed_passwords)
            self.changed_passwords[user] = password
            self.must_change.discard(user)
            gone = [token for token, s in self.sessions.items() if s["user"] == user]
            for token in gone:
                del self.sessions[token]

    # --------------------------------------------------------------------------------- tasks

    def begin(
        self,
        name: str,
        seconds: float,
        then: Callable[[], None],
        payload: Mapping[str, str] | None = None,
    ) -> str:
        """Start a task that calls ``then`` at its end, which a Refusal fails; return its id.

        ``payload``: what the task shows of its request.
        """
        with self.lock:
            self._tasks_made += 1
            task: dict[str, Any] = {
                "id": str(self._tasks_made), "name": name, "start": time.time(),
                "seconds": seconds, "state": "Running", "end": None, "why": name,
                "payload": payload if self.rules.tells_payload else None,
            }  # fmt: skip
            self.tasks[task["id"]] = task
        threading.Thread(target=self._run, args=(task, then), name=name, daemon=True).start()
        ident: str = task["id"]
        return ident

    def _run(self, task: dict[str, Any], then: Callable[[], None]) -> None:
        self.stopping.wait(task["seconds"])
        with self.lock:
            if task["id"] not in self.tasks:
                return  # it was deleted
            try:
                then()
                task["state"] = "Completed"
            except Refusal as refusal:
                task.update(state="Exception", why=str(refusal))
            task["end"] = time.time()
