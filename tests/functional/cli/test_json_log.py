from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.kit.servers.served import Served


def test_service_logs_json_by_option(tmp_path: Path) -> None:
    """Each line is an object, also the first warning, of an option without effect."""
    with Served(tmp_path / "state", DEFAULT={"use_json": "true", "misspelt": 1}) as served:
        served.wait_until_it_answers()
        served.send(signal.SIGTERM)
        served.code()
    events = [json.loads(line) for line in served.complaints]
    assert [event["level"] for event in events if "misspelt" in event["message"]] == ["WARNING"]
