"""The lab's commands of an agent, over HTTPS, as a script of a test.

with AgentServer(tmp_path) as server:
    server.token = "..."           # what lookup has given out
    server.finish()                # the command that runs ends, as it was told to (``fails``)

An asynchronous command runs until the test says so.  ``told`` is all that was asked of it, boots
included; ``boot`` forgets the commands, as a machine that is switched on again does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from bloomery.lab import agent_server, tls
from bloomery.lab.agent_commands import Commands, Json, step

__all__ = ["AgentServer", "step"]


class AgentServer(Commands):
    def __init__(self, folder: Path, files: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.told: list[str] = []  # every command, in order; a boot is "boot"
        self.refuses: dict[str, int] = {}  # name: HTTP status of the answer
        self.endless: set[str] = set()  # names of those that run until they are taken out
        self.mismatches = 0  # so many steps end with a mismatch of versions
        self.loses_answers_to: set[str] = set()  # names taken once without an answer
        pair = files or tls.certificate(folder)
        self._server = agent_server.AgentServer(*pair, handler=_Handler, threads=2)
        self.certificate = self._server.certificate
        self.url, self.has_ended = self._server.open(self), False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.stop()

    def end(self) -> None:
        """Listen no more until the next boot, as an agent that has set a password."""
        self.has_ended = True
        self._server.close(self.url)

    def boot(self) -> None:
        super().boot()
        self.told.append("boot")
        if self.has_ended:
            self.has_ended = False
            self._server.open(self, urlsplit(self.url).port or 0)

    def finish(self) -> None:
        if self.running is not None and self.running["command_name"] not in self.endless:
            super().finish()

    def _end(self, name: str) -> Json:
        if self.mismatches and name not in self.fails and name.startswith("execute_"):
            self.mismatches -= 1
            return {"command_status": "CLEAN_VERSION_MISMATCH"}
        return super()._end(name)

    def take(self, name: str, params: Json) -> tuple[int, Json]:
        if self.running is None and name in self.refuses:
            return self.refuses[name], {"faultcode": "Client", "faultstring": f"no {name}"}
        status, answer = super().take(name, params)
        if status == 200:
            self.told.append(name)
        return status, answer


class _Handler(agent_server.Handler):
    def serve(self, name: str, params: Json) -> None:
        status, answer = self.server.take(name, params)
        if name == "rescue.finalize_rescue" and status == 200:
            self.server.end()
        if name in self.server.loses_answers_to:
            self.server.loses_answers_to.discard(name)
            self.close_connection = True
            return
        self._reply(status, answer)
