"""What is imported late is imported by one thread at a time, whichever needs it first.

The packages of stacks need each other.  Of two threads that begin at different ends, Python shows
one half a module: a request got 500, and a stack's step failed, just after a restart.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

NEEDS = {  # what a thread of a process needs first
    "a turn of the engine": "Loader(stacks._runtime)(None)",
    "a request": "stacks.operations()",
    "the API": "late_app(services, stacks.operations, NoAuth())({}, print)",
    "the drift watch": "stacks.engine.drift._make_watch()",
}
PROGRAM = """
import sys, threading, time
from dataclasses import replace
from importlib import machinery
from types import SimpleNamespace
from bloomery.api.auth import NoAuth
from bloomery.cmd.stacks import Stacks, late_app
from bloomery.conf import Conf
from bloomery.orchestration.engine_host.engine_service import Loader

importing, together, execute = set(), [], machinery.SourceFileLoader.exec_module

def slow(self, module):
    me = threading.get_ident()
    is_outer = me not in importing
    importing.add(me)
    if len(importing) > 1:
        together.append(module.__name__)
    time.sleep(0.001)  # another thread gets its turn in the middle of each module
    execute(self, module)
    if is_outer:
        importing.discard(me)

machinery.SourceFileLoader.exec_module = slow
conf = Conf()
services = SimpleNamespace(conf=conf)
stacks = Stacks(services, conf, SimpleNamespace(is_sqlite=True), None,
                endpoint=lambda: "http://here", on_events_written=print)

def need(name):
    try:
        eval(name)
    except ImportError:
        raise
    except Exception as exc:  # of the stand-ins, once all is imported
        print(type(exc).__name__, exc)

threads = [threading.Thread(target=need, args=(name,)) for name in sys.argv[1:]]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert "bloomery.orchestration.plan.rules" in sys.modules
sys.exit(f"imported by two threads at once: {together[:5]}" if together else 0)
"""


@pytest.mark.parametrize("needs", [list(NEEDS), list(reversed(NEEDS))], ids=["turn first", "last"])
def test_one_thread_imports_at_a_time(needs: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(NEEDS[name] for name in needs)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
