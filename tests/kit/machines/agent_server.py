"""The command API of an agent in a ramdisk, over HTTPS: what ironic-python-agent answers.

with AgentServer(tmp_path) as server:
    server.token = "..."           # what lookup has given out
    server.finish()                # the command that runs ends, as it was told to (``fails``)

An asynchronous command runs until the test says so.  ``told`` is all that was asked of it, boots
included; ``boot`` forgets the commands, as a machine that is switched on again does.
"""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import ssl
import threading
import uuid
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.kit.servers import tls

Json = dict[str, Any]

STEPS = {
    "clean": [("erase_devices", 10), ("erase_devices_metadata", 99), ("burnin_cpu", 0)],
    "deploy": [("erase_devices_metadata", 0), ("write_image", 0), ("inject_files", 0)],
    "service": [("burnin_cpu", 0)],
}


class AgentServer:
    def __init__(self, folder: Path, files: tuple[str, str] | None = None) -> None:
        certificate, key = files or tls.certificate(folder)
        self.certificate = Path(certificate).read_text()
        self.token: str | None = None
        self.commands: list[Json] = []
        self.told: list[str] = []  # every command, in order; a boot is "boot"
        self.params: dict[str, Json] = {}  # of the last command of each name
        self.fails: dict[str, str] = {}  # name: message, of those that end as FAILED
        self.refuses: dict[str, int] = {}  # name: HTTP status of the answer
        self.endless: set[str] = set()  # names of those that run until they are taken out
        self.results: dict[str, Any] = {}  # of steps, by name
        self.mismatches = 0  # so many steps end with a mismatch of versions
        self.steps = {phase: [step(*each) for each in rows] for phase, rows in STEPS.items()}
        self.versions = {"generic_hardware_manager": "1.2"}
        self.logs = gzip.compress(b"journal")
        self.partitions: Json = {"root uuid": "r-1", "efi system partition uuid": "e-1"}
        self.inventory: Json = {"interfaces": []}
        self.loses_answers_to: set[str] = set()  # names taken once without an answer
        self._mutex = threading.Lock()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._handler = type("Handler", (_Handler,), {"agent": self})
        self._port, self.has_ended = 0, False
        self._listen()

    def _listen(self) -> None:
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), self._handler)
        self._port = self._http.server_address[1]
        self._http.daemon_threads = True
        self._http.socket = self._context.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()

    def end(self) -> None:
        """Listen no more until the next boot, as an agent that has set a password."""
        self.has_ended = True
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # -------------------------------------------------------------------- what happens to it

    def boot(self) -> None:
        with self._mutex:
            self.commands, self.token = [], None
            self.told.append("boot")
        if self.has_ended:
            self.has_ended = False
            self._listen()

    @property
    def running(self) -> Json | None:
        """The command that runs, if one does."""
        last = self.commands[-1] if self.commands else None
        return last if last and last["command_status"] == "RUNNING" else None

    def finish(self) -> None:
        """End the command that runs."""
        with self._mutex:
            command = self.running
            if command is None or command["command_name"] in self.endless:
                return
            name = command["command_name"]
            message = self.fails.get(name)
            if message is not None:
                command["command_status"] = "FAILED"
                command["command_error"] = {"type": "Error", "code": 500, "message": message}
            elif self.mismatches and name.startswith("execute_"):
                self.mismatches -= 1
                command["command_status"] = "CLEAN_VERSION_MISMATCH"
            else:
                command |= {"command_status": "SUCCEEDED", "command_result": self._result(name)}

    def _result(self, name: str) -> Json:
        if not name.startswith("execute_"):
            return {"result": name}
        phase = name.split("_")[1]
        ran = self.params[f"{phase}.{name}"]["step"]
        return {f"{phase}_step": ran, f"{phase}_result": self.results.get(ran["step"])}

    # ----------------------------------------------------------------------- what it answers

    def take(self, name: str, params: Json) -> tuple[int, Json]:
        with self._mutex:
            if self.running is not None:
                return 409, {"faultcode": "Client", "faultstring": "Agent is busy"}
            if name in self.refuses:
                return self.refuses[name], {"faultcode": "Client", "faultstring": f"no {name}"}
            self.told.append(name)
            self.params[name] = params
            command = self._begun(name)
            self.commands.append(command)
            return 200, command

    def _begun(self, name: str) -> Json:
        short = name.partition(".")[2]
        command = {
            "id": str(uuid.uuid4()), "command_name": short, "command_status": "RUNNING",
            "command_error": None, "command_result": None,
        }  # fmt: skip
        if short == "get_partition_uuids":
            result: Json = self.partitions
        elif short == "get_hardware_info":
            result = self.inventory
        elif short.startswith("get_"):
            phase = short.split("_")[1]
            result = {
                f"{phase}_steps": {"GenericHardwareManager": self.steps[phase]},
                "hardware_manager_version": self.versions,
            }
        elif short == "collect_system_logs":
            result = {"system_logs": base64.b64encode(self.logs).decode()}
        elif short in ("sync", "lockdown", "finalize_rescue"):
            result = {"result": ""}
        else:
            return command
        return command | {"command_status": "SUCCEEDED", "command_result": result}


def step(name: str, priority: int = 0, **more: Any) -> Json:
    """A step as an agent tells of it."""
    return {
        "step": name, "priority": priority, "interface": "deploy", "reboot_requested": False,
        "abortable": True,
    } | more  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
    agent: AgentServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Say nothing: what was asked stands in ``told``."""

    def do_GET(self) -> None:
        if self._is_known():
            self._reply(200, {"commands": self.agent.commands})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._is_known():
            return
        status, answer = self.agent.take(body["name"], body["params"])
        if body["name"] == "rescue.finalize_rescue" and status == 200:
            self.agent.end()
        if body["name"] in self.agent.loses_answers_to:
            self.agent.loses_answers_to.discard(body["name"])
            self.close_connection = True
            return
        self._reply(status, answer)

    def _is_known(self) -> bool:
        url = urlsplit(self.path)
        assert url.path == "/v1/commands/", url.path
        known = parse_qs(url.query).get("agent_token") == [self.agent.token]
        if not known:
            self._reply(401, {"faultcode": "Client", "faultstring": "Token invalid."})
        return known

    def _reply(self, status: int, document: Json) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
