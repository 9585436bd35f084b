"""What holds for every role that runs, every flow, and every method of the contract."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bloomery.conductor import flows, states
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.periodics import table as periodics
from bloomery.conductor.phase import Phase
from bloomery.drivers import steps
from bloomery.model.node import INTERFACES
from bloomery.model.step import Step
from bloomery.rpc import contract
from tests.kit.servers.site import Site

CONDUCTOR = """
from pathlib import Path
from bloomery import conf
from bloomery.conductor import lifecycle
from bloomery.db import schema
from bloomery.state_dir import StateDir

with StateDir(Path(sys.argv[1])) as home:
    db = home.open_database(conf.Conf().database)
    schema.prepare(db)
    running = lifecycle.ConductorService(lifecycle.build(conf.Conf(), db, home.sealer(db)))
    running.start()
    running.stop()
"""
SERVE = """
import dataclasses, urllib.request
from pathlib import Path
from bloomery import conf
from bloomery.cmd.service import Service
from bloomery.state_dir import StateDir

plain = conf.Conf()
settings = dataclasses.replace(plain, api=dataclasses.replace(plain.api, port=0))
with StateDir(Path(sys.argv[1])) as home, Service(settings, home) as service:
    assert urllib.request.urlopen(service.url + "/v1/nodes").status == 200
"""
CALLS = """
from bloomery.cmd import threads
from bloomery.conf import Conf
from bloomery.conf.default import Default
threads.use_threads()
from bloomery.rpc import transports

default = Default(rpc_transport="oslo", transport_url="rabbit://nobody@127.0.0.1:1/")
transports.build_client(Conf(default=default))
transports.build_server(Conf(default=default), "a", object())
assert "oslo_messaging" in sys.modules
"""
# A role, and a program that runs it; each goes in with `bloomery.cmd` as the command does.
ROLES = {"conductor": CONDUCTOR, "serve": SERVE, "calls over a broker": CALLS}
WATCHED = """
import sys
import bloomery.cmd
{program}
assert sys.modules["eventlet"] is None, "eventlet was loaded"
loaded = [name for name in sys.modules if name.startswith("eventlet.")]
assert not loaded, loaded
"""


@pytest.mark.parametrize("role", ROLES)
def test_a_role_runs_without_eventlet(role: str, tmp_path: Path):
    program = WATCHED.format(program=ROLES[role])
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


# --------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("method", sorted(contract.METHODS))
def test_the_manager_serves_the_contract(method: str):
    promised = inspect.signature(getattr(contract.Conductor, method))
    served = inspect.signature(getattr(ConductorManager, method))
    assert served.return_annotation.replace("dict[str, Any]", "Json") == promised.return_annotation
    _context, *arguments = served.parameters.values()
    assert arguments == list(promised.parameters.values())[2:]  # after self and the request


def test_the_manager_serves_nothing_but_the_contract():
    served = {name for name in vars(ConductorManager) if not name.startswith("_")}
    assert served == set(contract.METHODS)


@pytest.mark.parametrize("method", sorted(contract.METHODS))
def test_what_crosses_the_wire_is_json(method: str):
    """Every argument is of a kind that JSON knows, and has a name."""
    plain = {"str", "bool", "int", "float", "Json", "list[Json]", "list[str]", "Any", "Request"}
    for name, argument in inspect.signature(getattr(contract.Conductor, method)).parameters.items():
        if name == "self":
            continue
        words = {word.strip() for word in str(argument.annotation).split("|")} - {"None"}
        assert words <= plain, f"{method}: {name}"


# -------------------------------------------------------------------------------------- flows


PHASES = sorted(flows.PHASES)


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_is_found_by_its_name(name: str):
    phase = flows.PHASES[name]
    assert isinstance(phase, Phase)
    assert phase.name == name
    assert len(name) <= 16, "the column of step_runs"
    assert phase.own_steps
    assert all(len(step) <= 255 for step in phase.own_steps)


def test_every_frame_step_is_inner_resumable_and_in_its_frame():
    """The conductor's own steps may always be repeated: that is what recovery relies on."""
    frames = {name for phase in flows.PHASES.values() for name in phase.own_steps}
    found: dict[str, Step] = {}
    for module in {sys.modules[phase.finish.__module__] for phase in flows.PHASES.values()}:
        found |= {one.step: one for one in vars(module).values() if isinstance(one, Step)}
    assert found
    for step in found.values():
        assert step.internal, step
        assert step.resumable, step
        assert step.step in frames, step


OFFERED = [
    pytest.param(step, id=f"{kind}.{name}.{step.step}.{phase}")
    for kind, interfaces in Site.all_interfaces().items()
    for name, interface in interfaces.items()
    for phase in steps.PHASES
    for step in interface.steps(phase)
]


# interface.step -> why it may not be run twice: its flow fails when a conductor dies in it.
NOT_REPEATED = {
    "vendor.send_raw": "nobody knows what the bytes do when they are sent twice",
    "vendor.bmc_reset": "a second reset would cut off whoever came after the first",
}


@pytest.mark.parametrize("step", OFFERED)
def test_a_step_of_an_interface_may_be_repeated_or_says_why_not(step: Step):
    assert step.resumable != (step.name in NOT_REPEATED)


@pytest.mark.parametrize("step", OFFERED)
def test_a_step_fits_its_columns(step: Step):
    assert len(step.interface) <= 16
    assert len(step.step) <= 255
    assert step.interface in INTERFACES
    assert not step.internal


def test_every_transient_state_can_fail():
    """Whatever a conductor left there, recovery can end it."""
    for state in states.STUCK_STATES_TREATED_AS_FAIL:
        assert states.allows(state, "fail")


def test_every_wait_state_has_a_way_on_and_a_way_out():
    for state in states.WAIT_STATES:
        assert states.allows(state, "resume")
        assert states.allows(state, "fail")
        assert states.allows(state, "abort")


# ---------------------------------------------------------------------------------- periodics


@pytest.mark.parametrize("job", periodics.TABLE, ids=lambda job: job.name)
def test_a_periodic_may_run_at_any_time_and_twice(site: Site, job: periodics.Periodic):
    assert job.why
    run = job.make(site.runtime)
    before = site.everything()
    run()
    run()
    assert site.everything() == before


@pytest.mark.parametrize("job", periodics.TABLE, ids=lambda job: job.name)
def test_a_periodic_leaves_held_nodes_alone(site: Site, job: periodics.Periodic):
    node = site.enrol(provision_state="deploying", target_provision_state="active")
    run: Callable[[], None] = job.make(site.runtime)
    with site.acquire(node):
        before = site.node(node)
        run()
        assert dataclasses.asdict(site.node(node)) == dataclasses.asdict(before)
