"""What a start imports before its first answer, counted in modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_MOST = 979  # lower it with each room that a start leaves out; the hours of sensors are one
_LATE = (  # imported by those who need them
    "alembic", "cryptography", "ironic_lib", "jsonschema", "oslo_concurrency", "oslo_messaging",
    "oslo_policy", "oslo_utils.strutils", "requests", "sqlalchemy.dialects.mysql",
    "sqlalchemy.dialects.postgresql", "sushy", "yaml", "bloomery.drivers.ipmi",
    "bloomery.drivers.idrac", "bloomery.orchestration.template",
)  # fmt: skip
_START = """
import json, sys, urllib.request
from pathlib import Path
from bloomery.cli.main import main
main.get_command(None, "serve")  # imports what the command does
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.engine import Orchestration
from bloomery.state_dir import StateDir
conf = Conf(api=Api(port=0), orchestration=Orchestration(port=0))
with StateDir(Path(sys.argv[1])) as home, Service(conf, home) as service:
    if sys.argv[2] == "asked":
        urllib.request.urlopen(f"{service.url}/v1/nodes?limit=1").read()
        print(json.dumps(sorted(sys.modules)))
"""


def test_a_start_imports_what_its_first_answer_needs(tmp_path: Path) -> None:
    def run(asked: str) -> str:
        command = (sys.executable, "-W", "ignore", "-c", _START, str(tmp_path / "state"), asked)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    run("")  # makes the database
    modules = json.loads(run("asked"))
    assert [name for name in _LATE if name in modules] == []
    assert len(modules) <= _MOST
