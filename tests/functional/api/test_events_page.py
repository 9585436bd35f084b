"""doc/guides/events.md: its commands do what the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bloomery.api import server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from tests.functional.api import test_event_stream, test_webhooks
from tests.functional.api.test_event_stream import Site

PAGE = Path(__file__).parents[3] / "doc/guides" / "events.md"
COMMANDS = re.findall(r"^curl .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
LISTENING = [command for command in COMMANDS if "event-stream" in command]
OF_WEBHOOKS = [command for command in COMMANDS if "webhooks" in command]

site = test_event_stream.site
pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def test_there_are_commands():
    assert (len(LISTENING), len(OF_WEBHOOKS), len(COMMANDS)) == (3, 2, 6)


@pytest.mark.parametrize("command", LISTENING)
def test_commands_listen(site: Site, command: str):
    known = [site.happen("provision_set") for _ in range(42)]
    host, port = site.address
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={"URL": f"http://{host}:{port}", "PATH": "/usr/bin:/bin"}, text=True,
    ) as curl:  # fmt: skip
        lines = iter(curl.stdout)
        assert next(lines) == ": events\n"
        new = site.happen("provision_set")
        expected = known[41:] if "Last-Event-ID" in command else known * ("since" in command)
        frames = [line for line in take(lines, new) if line.startswith("data: ")]
        assert [json.loads(frame[6:])["id"] for frame in frames] == [*expected, new]
        curl.terminate()


def take(lines, last: int):
    """Yield lines up to the data of event ``last``."""
    for line in lines:
        yield line
        if line.startswith("data: ") and json.loads(line[6:])["id"] == last:
            return


def test_command_lists_a_page(site: Site):
    numbers = [site.happen() for _ in range(3)]
    (command,) = set(COMMANDS) - set(LISTENING) - set(OF_WEBHOOKS)
    host, port = site.address
    document = answer(command, host, port)
    assert [event["id"] for event in document["events"]] == numbers[:2]
    assert document["next"] == f"http://{host}:{port}/ext/v1/events?since=2&limit=2"


def test_commands_add_a_webhook_and_list_it(world):
    site = test_webhooks.Site(world.site)
    serving = server.make(site.app, Conf(api=Api(port=0)))
    serving.start()
    try:
        added, listed = (answer(command, *serving.address) for command in OF_WEBHOOKS)
        assert added["state"] == "active"
        assert listed == {"webhooks": [added]}
    finally:
        serving.stop()
        site.close()


def answer(command: str, host: str, port: int) -> Any:
    printed = subprocess.run(
        ["bash", "-c", f"{command} --silent"], check=True, stdout=subprocess.PIPE,
        env={"URL": f"http://{host}:{port}", "PATH": "/usr/bin:/bin"},
    ).stdout  # fmt: skip
    return json.loads(printed)
