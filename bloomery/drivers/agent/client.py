"""The command API of an agent.

    agent = client.of(task, conf)
    agent.commands()                                     # the commands of this boot, in order
    agent.send("standby.prepare_image", {"image_info": {...}})

The agent's API takes the token in the query, so request URLs must not reach a log or an error.
Source: ironic-python-agent, API v1.
"""

from __future__ import annotations

import errno
import http.client
import ipaddress
import logging
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import orjson

from bloomery import errors, fetching, parsing, secrets
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

TOKEN: Final = "agent_secret_token"  # noqa: S105  a key of driver_internal_info
URL: Final = "agent_url"
CERTIFICATE: Final = "agent_verify_ca"  # the path of the certificate; also a key of driver_info
RUNNING: Final = "RUNNING"
SUCCEEDED: Final = "SUCCEEDED"
_PATH: Final = "/v1/commands/"
_MOST_BYTES: Final = 4 << 20  # of an answer
_MOST_ID: Final = 64  # characters of a command's ID
_MOST_MESSAGE: Final = 1000  # characters of an agent's message in an error
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json"}
_ADDRESS: Final = re.compile(r"https?://[^\s'\"<>]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command as the agent reports it; ``name`` is without its extension.

    ``status``: RUNNING, SUCCEEDED, FAILED, or a version mismatch.  ``error``: the agent's message.
    """

    id: str
    name: str
    status: str
    result: Json
    error: str


class AgentClient:
    """A client of one agent during one boot of its machine."""

    def __init__(
        self, node: str, url: str, token: str, trust: bool | str, timeout_s: float,
        most_bytes: int | None = None,
    ) -> None:  # fmt: skip
        """``trust``: a certificate file; True: the system's CAs; False: no verification.

        ``most_bytes``: of an answer; None: 4 MiB.
        """
        self._node, self._url, self._token = node, url.rstrip("/"), token
        self._trust, self._timeout_s = trust, timeout_s
        self._most_bytes = most_bytes or _MOST_BYTES

    def commands(self) -> list[Command]:
        """Return the commands of this boot, the oldest first.  Raises as ``send``."""
        answer = self._ask("GET", "commands", {}, None)
        rows = answer.get("commands")
        if not isinstance(rows, list):
            raise self._refused("commands", "its answer is no list of commands")
        return [self._command("commands", row) for row in rows]

    def send(self, name: str, params: Json) -> Command:
        """Send a command; return it as started, or already ended.

        Raises AgentUnreachable (the command may have started), AgentBusy, AgentRefused.
        """
        answer = self._ask("POST", name, {"wait": "false"}, {"name": name, "params": params})
        command = self._command(name, answer)
        LOG.info("node %s: agent command %s: %s", self._node, name, command.status)
        return command

    def _command(self, name: str, row: Any) -> Command:
        try:
            return Command(
                id=str(row["id"])[:_MOST_ID],
                name=str(row["command_name"]),
                status=str(row["command_status"]),
                result=row.get("command_result") or {},
                error=_message(row.get("command_error")),
            )
        except (AttributeError, KeyError, TypeError) as exc:
            raise self._refused(name, "its answer is no command") from exc

    def _ask(self, method: str, name: str, query: dict[str, str], body: Json | None) -> Json:
        query_text = urlencode(query | {"agent_token": self._token})
        data = None if body is None else orjson.dumps(body)
        try:
            status, content = self._exchange(method, f"{_PATH}?{query_text}", data)
        except (http.client.HTTPException, OSError, ValueError) as exc:  # ValueError: a bad port
            raise errors.AgentUnreachable(
                node=self._node, address=self._url, reason=self._why(exc)
            ) from exc
        if len(content) > self._most_bytes:
            raise self._refused(name, f"its answer has more than {self._most_bytes >> 20} MiB")
        try:
            document = parsing.load_json(content)
        except ValueError:
            document = None
        if status == 200 and isinstance(document, dict):
            return document
        fault = document.get("faultstring") if isinstance(document, dict) else None
        message = _message(fault) or f"HTTP {status}"
        if status == 409:
            raise errors.AgentBusy(node=self._node, reason=message)
        raise self._refused(name, message)

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        """Return status and body; the time limit covers the whole answer."""
        url = urlsplit(self._url)
        context = self._context() if url.scheme == "https" else None
        until_s = time.monotonic() + self._timeout_s
        connection = fetching.Connection(url, _addresses, until_s, context)
        try:
            connection.request(method, url.path + target, body=data, headers=_HEADERS)
            with connection.getresponse() as answer:
                return answer.status, connection.content(answer, self._most_bytes)
        except (http.client.HTTPException, OSError):
            connection.check_time()
            raise
        finally:
            connection.end()

    def _context(self) -> ssl.SSLContext:
        """Return the TLS context; an agent's certificate is its own CA.

        Raises OSError, which names the file of certificates.
        """
        try:
            return fetching.tls_context(self._trust)
        except OSError as exc:
            why = f"its certificate in {self._trust} cannot be read: {exc.strerror}"
            raise OSError(exc.errno, why) from exc

    def _why(self, exc: Exception) -> str:
        """Return a short reason why there was no answer."""
        if isinstance(exc, ssl.SSLCertVerificationError) and "not yet valid" in exc.verify_message:
            return "its certificate is not valid yet: its clock is ahead of this conductor's"
        if isinstance(exc, ssl.SSLCertVerificationError):
            return f"its certificate is not the one that it has shown: {exc.verify_message}"
        if isinstance(exc, TimeoutError):
            return f"no answer within {self._timeout_s:g} s"
        if mismatch := fetching.explain_mismatch(str(exc)):
            scheme = "http" if mismatch == fetching.PLAIN_HTTP else "https"
            return f"{mismatch}: the callback_url of its heartbeats must begin with {scheme}://"
        if isinstance(exc, ConnectionResetError) and self._url.startswith("http:"):
            return (
                "it closed the connection; if it speaks TLS at this port, the callback_url of its "
                "heartbeats must begin with https://"
            )
        return getattr(exc, "strerror", None) or type(exc).__name__

    def _refused(self, name: str, reason: str) -> errors.AgentRefused:
        return errors.AgentRefused(
            node=self._node, address=self._url, command=name, reason=reason
        )  # fmt: skip


def of(
    task: DriverTask, conf: Conf, timeout_s: float | None = None, most_bytes: int | None = None
) -> AgentClient:
    """Return a client of the node's agent.  Raises StepFailure before its first heartbeat.

    ``timeout_s``: of one request; None: [agent]command_timeout.  ``most_bytes``: of an answer;
    None: 4 MiB.
    """
    info = task.node.driver_internal_info
    url, token = info.get(URL), task.opened(info.get(TOKEN))
    if not url or not token:
        raise errors.StepFailure(
            reason="no agent has sent a heartbeat since the machine was booted"
        )
    limit_s = timeout_s or conf.agent.command_timeout
    return AgentClient(
        task.node.uuid, str(url), str(token), _trust(task, conf), limit_s, most_bytes
    )


def _trust(task: DriverTask, conf: Conf) -> bool | str:
    """Return how to verify the agent's certificate: that of its heartbeats comes first."""
    own = task.node.driver_internal_info.get(CERTIFICATE) or task.driver_info.get(CERTIFICATE)
    value = str(conf.agent.verify_ca if own is None else own)
    try:
        return parsing.boolean(value, strict=True)
    except ValueError:
        return value


def _addresses(host: str, port: int) -> Iterator[tuple[Any, ...]]:
    """Yield the addresses of a host; raise OSError for the conductor's own host or its link.

    This host may differ from the API's, which accepts loopback only from agents on its own host
    (``operations.agent_callers``).
    """
    for entry in fetching.resolved(host, port):
        if entry[4][0] != host:  # a name
            is_off_limits = fetching.is_local(entry)
        else:
            is_off_limits = fetching.is_own(entry) and not ipaddress.ip_address(host).is_loopback
        if is_off_limits:
            raise OSError(errno.EACCES, "it leads to the machine of the service, or its link")
        yield entry


def _message(error: Any) -> str:
    parts = [error.get("message"), error.get("details")] if isinstance(error, dict) else [error]
    text = " ".join(str(part) for part in parts if part)
    text = _ADDRESS.sub(lambda match: secrets.mask_address(match[0]), " ".join(text.split()))
    return str(secrets.mask(text))[:_MOST_MESSAGE]
