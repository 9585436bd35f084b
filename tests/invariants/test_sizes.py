"""The house does not grow unseen: each figure of ``tools/sizes.py`` has a limit here.

Lower a limit in the commit that makes the figure smaller.  Whoever raises one says why, in a
comment behind it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/sizes.py"
LIMITS = {
    "lines of the product": 124_758,  # boot files by architecture, serial consoles
    "lines of the tests": 144_496,  # boot files by architecture, serial consoles
    "lines of bloomery": 3835,  # an error for a system that a BMC does not show
    "lines of bloomery/api": 8625,  # a node is forgotten
    "lines of bloomery/cli": 9756,  # systems behind a BMC, a chassis for rows of enrol
    "lines of bloomery/cmd": 2269,  # what a conductor is built from stands with it
    "lines of bloomery/conductor": 11_614,  # leaks, and what came before
    "lines of bloomery/conf": 1988,  # boot files by architecture, serial consoles
    "lines of bloomery/db": 9292,  # nodes with leaks are read in whatever state
    "lines of bloomery/drivers": 20_682,  # boot files by architecture, serial consoles
    "lines of bloomery/events": 1669,  # a sink for NATS
    "lines of bloomery/http_server": 2085,
    "lines of bloomery/inspection": 2093,  # pci_device_alias in JSON
    "lines of bloomery/lab": 5571,  # serial consoles, and what came before
    "lines of bloomery/model": 4259,  # boot files by architecture, the key of leaks
    "lines of bloomery/notifications": 268,
    "lines of bloomery/objects": 245,
    "lines of bloomery/operations": 5256,  # why tells of leaks and of pulled trays
    "lines of bloomery/orchestration": 480,  # the graph and the table of operations are files of it
    "lines of bloomery/orchestration/drawing": 707,
    "lines of bloomery/orchestration/engine": 3332,
    "lines of bloomery/orchestration/foresight": 1226,  # it alone judges before a traversal
    "lines of bloomery/orchestration/plan": 1562,
    "lines of bloomery/orchestration/properties": 1595,
    "lines of bloomery/orchestration/resources": 9253,  # reasons of states moved here
    "lines of bloomery/orchestration/engine_host": 1889,
    "lines of bloomery/orchestration/orders": 3144,
    "lines of bloomery/orchestration/queries": 1499,
    "lines of bloomery/orchestration/simulation": 469,  # tests ask for the result of a step, too
    "lines of bloomery/orchestration/stack": 1276,  # the template's side of a plan moved here
    "lines of bloomery/orchestration/template": 6172,
    "lines of bloomery/rpc": 2591,  # a node is forgotten
    "lines of bloomery/web": 56,
    "files of the product": 739,  # systems behind a BMC
    "functions": 8149,  # boot files by architecture, serial consoles
    "functions of under ten lines, per mille": 780,  # parts of the projection of nodes
    "one-caller helpers": 562,  # boot files by architecture, serial consoles
    "moves of get": 36,  # the table is called where Pecan searched controllers
    "moves of put": 162,  # the network is validated before a deployment
    "moves of create": 317,
    "moves of engine's create": 623,  # a stack reads its values in the file that the API uses, too
    "moves of update": 330,
    "moves of engine's update": 950,  # the same
    "files of get": 22,  # app, which calls the table
    "files of put": 56,  # app, which calls the table
    "files of create": 77,
    "files of engine's create": 74,
    "files of update": 77,
    "files of engine's update": 78,
}
SLACK = 0.02  # of a limit, and of small ones SMALL: a figure below that wants a lower limit
SMALL = 20


@pytest.fixture(scope="module")
def figures() -> dict[str, int]:
    printed = subprocess.run(
        [sys.executable, TOOL], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(maxsplit=1) for line in printed.splitlines())
    return {name: int(figure) for figure, name in rows}


def test_every_figure_has_a_limit(figures):
    assert figures.keys() == LIMITS.keys()


@pytest.mark.parametrize("name", LIMITS)
def test_no_figure_is_above_its_limit(figures, name):
    assert figures.get(name, 0) <= LIMITS[name], f"{name}: remove, or say why it may grow"


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_follows_its_figure_down(figures, name):
    slack = max(SMALL, int(LIMITS[name] * SLACK))
    assert figures.get(name, 0) >= LIMITS[name] - slack, f"{name}: lower its limit"
