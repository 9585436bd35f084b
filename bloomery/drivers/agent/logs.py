"""The logs of ramdisks: fetched from agents, stored in a folder of this host.

Files have Ironic's names: the node's UUID, that of its instance if any, the flow, and the time.
The oldest are removed where the folder grows too large.
"""

from __future__ import annotations

import binascii
import contextlib
import logging
import re
import threading
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.agent import client, commands

LOG = logging.getLogger(__name__)

FILE: Final = "agent_logs"  # in driver_internal_info: the file of the logs, with its host
_ASKED: Final = {"always": (True, False), "on_failure": (True,), "never": ()}  # after failures?
_MOST_BYTES: Final = 32 << 20  # of an answer, in base64
_AT_ONCE: Final = threading.BoundedSemaphore(4)  # answers in memory
_GZIP: Final = b"\x1f\x8b"
_MIB: Final = 1 << 20
# A crash leaves a part.
_OURS: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_.*\.tar\.(gz|part)")


class RamdiskLogs:
    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for a storage that is not offered."""
        if conf.agent.deploy_logs_storage_backend != "local":
            raise errors.CannotStart(
                reason="cannot store the logs of ramdisks in swift: set [agent]"
                "deploy_logs_storage_backend = local, and deploy_logs_local_path to a folder",
            )
        self._conf = conf

    def collect(self, task: base.DriverTask, flow: str, *, failed: bool) -> None:
        """Store the logs of the node's agent where [agent]deploy_logs_collect asks for them.

        The node's history names the file; a warning says why there is none.  Does nothing where no
        agent has called.  Raises LockLost.
        """
        info = task.node.driver_internal_info
        info.pop(FILE, None)
        if failed not in _ASKED[self._conf.agent.deploy_logs_collect] or not info.get(client.URL):
            return
        try:
            path = self._store(task, flow)
        except (errors.AgentBusy, errors.AgentRefused, errors.AgentUnreachable,
                errors.StepFailure, commands.VersionMismatch) as exc:  # fmt: skip
            LOG.warning("node %s: no logs of its ramdisk: %s", task.node.uuid, secrets.brief(exc))
            return
        info[FILE] = {"file": str(path), "host": self._conf.default.host}
        task.record(f"the logs of the agent's ramdisk are stored in {path}")

    def _store(self, task: base.DriverTask, flow: str) -> Path:
        """Store the agent's answer whole or not at all, readable for this user only."""
        folder = self._conf.agent.deploy_logs_local_path
        if folder is None:
            raise errors.StepFailure(reason="[agent]deploy_logs_local_path names no folder")
        time = f"{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}"
        parts = (task.node.uuid, task.node.instance_uuid, flow, time)
        path = Path(folder) / ("_".join(part for part in parts if part) + ".tar.gz")
        fresh = path.with_suffix(".part")
        with _AT_ONCE:
            agent = client.of(task, self._conf, most_bytes=_MOST_BYTES)
            answer = commands.call(agent, "log.collect_system_logs", {})
            try:
                content = b64decode(answer["system_logs"], validate=True)
            except (KeyError, TypeError, binascii.Error) as exc:
                raise errors.StepFailure(reason="the agent's answer has no logs") from exc
            if not content.startswith(_GZIP):
                raise errors.StepFailure(reason="the agent's logs are no tar.gz")
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._make_room(path.parent, len(content))
                fresh.touch(0o600)
                fresh.write_bytes(content)
                fresh.replace(path)
            except OSError as exc:
                with contextlib.suppress(OSError):
                    fresh.unlink()
                raise errors.StepFailure(reason=f"cannot store {path}: {exc.strerror}") from exc
        return path

    def _make_room(self, folder: Path, size: int) -> None:
        """Remove the oldest logs.  Raises StepFailure where the new ones alone are too large."""
        most = self._conf.agent.deploy_logs_local_size * _MIB
        if size > most:
            raise errors.StepFailure(
                reason=f"they have {size // _MIB + 1} MiB, and [agent]deploy_logs_local_size is "
                f"{most // _MIB}",
            )
        stored = sorted(
            ((path, path.stat()) for path in folder.iterdir() if _OURS.fullmatch(path.name)),
            key=lambda entry: entry[1].st_mtime_ns,
        )
        used = size + sum(status.st_size for _, status in stored)
        for path, status in stored:
            if used <= most:
                break
            path.unlink(missing_ok=True)
            used -= status.st_size
