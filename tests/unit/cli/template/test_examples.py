"""The templates of examples/: each does what it says, in every command."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.clients.templates import EXAMPLES, Command

ENVIRONMENTS = {
    "rack": ("-e", EXAMPLES / "rack.env.yaml"),
    "nova": ("-e", EXAMPLES / "from-nova.env.yaml"),
}
OF_OTHERS = ("rack-machine", "nova-server")  # templates that others name as a type
TEMPLATES = sorted(
    path.stem
    for path in EXAMPLES.glob("*.yaml")
    if not path.stem.endswith(".env") and path.stem not in OF_OTHERS
)


MACHINES = sorted((EXAMPLES / "machines").glob("*.yaml"))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_an_example_of_machines_is_valid_and_runs_without_a_service(
    path: Path, typed: Command, document: Callable[..., Any]
) -> None:
    done = typed("validate", path)
    assert (done.exit_code, done.stderr) == (0, "")
    result = document("run", path)
    assert (result["status"], result["error"]) == ("CREATE_COMPLETE", None)
    assert [name for name, output in result["outputs"].items() if "error" in output] == []


def words(name: str) -> tuple[str | Path, ...]:
    return (EXAMPLES / f"{name}.yaml", *ENVIRONMENTS.get(name, ()))


def test_there_are_five_examples() -> None:
    assert len(TEMPLATES) >= 5


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_example_is_valid(name: str, typed: Command) -> None:
    done = typed("validate", *words(name))
    assert (done.exit_code, done.stderr) == (0, "")
    assert "it can be created" in done.stdout


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_example_can_be_created(name: str, document: Callable[..., Any]) -> None:
    result = document("run", *words(name))
    assert (result["status"], result["error"]) == ("CREATE_COMPLETE", None)
    assert [name for name, output in result["outputs"].items() if "error" in output] == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_example_can_be_shown_planned_and_drawn(name: str, typed: Command) -> None:
    assert typed("show", *words(name)).exit_code == 0
    same = typed("plan", EXAMPLES / f"{name}.yaml", *words(name))
    assert same.stdout == "Nothing changes.\n"
    ET.fromstring(typed("graph", *words(name), "--svg", "-").stdout)
    assert typed("graph", *words(name)).stdout.startswith("digraph ")


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_commands_that_an_example_recommends_work(
    name: str, typed: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    recommended = re.findall(r"bloomery template (.+)", text)
    assert recommended
    monkeypatch.chdir(EXAMPLES.parent)
    for line in recommended:
        words = line.replace("rack.svg", str(tmp_path / "rack.svg")).split()
        done = typed(*words)
        assert done.exit_code == 0, line
        assert done.stdout != "Nothing changes.\n", line


def outputs(document: Callable[..., Any], *given: str | Path) -> Any:
    told = document("run", *given)["outputs"]
    return {name: output["value"] for name, output in told.items()}


def test_hello_makes_up_a_codename(document: Callable[..., Any]) -> None:
    told = outputs(document, EXAMPLES / "hello.yaml", "-P", "greeting=Ahoy")
    assert re.fullmatch(r"Ahoy, rack [a-z0-9]{8}!", told["sentence"])


def test_addresses_lists_every_host_but_those_left_out(document: Callable[..., Any]) -> None:
    given = ("-P", "racks=r1", "-P", "slots=1,2,3", "-P", "leave_out=r1-2")
    told = outputs(document, EXAMPLES / "addresses.yaml", *given)
    assert told["hosts"] == ["r1-1", "r1-3"]
    assert told["count"] == 2
    assert told["bmcs"][1] == "https://r1-3.bmc.example.com:443/redfish/v1/"
    assert told["inventory"]["all"]["hosts"]["r1-1"] == {"ansible_host": "r1-1.example.com"}


def test_rack_gives_each_machine_a_stack_of_its_own(document: Callable[..., Any]) -> None:
    told = outputs(document, *words("rack"), "-P", "machines=3")
    assert told["names"] == ["machine-0", "machine-1", "machine-2"]
    assert told["first"] == "machine-0 runs rocky-9 behind 10.20.0.1"


def test_stages_burns_in_only_in_production(document: Callable[..., Any]) -> None:
    trial = outputs(document, EXAMPLES / "stages.yaml")
    assert trial["settings"] == {"stage": "trial", "replicas": 1}
    production = outputs(document, EXAMPLES / "stages.yaml", "-e", EXAMPLES / "stages.env.yaml")
    assert production["settings"]["alarm"] == "on-call"
    assert (trial["burned_in"], production["burned_in"]) == (None, "yes")


def test_first_boot_never_shows_the_password(typed: Command) -> None:
    given = (EXAMPLES / "first-boot.yaml", "-P", "root_password=not-for-eyes")
    for command in ("show", "run", "graph"):
        done = typed(command, *given)
        assert done.exit_code == 0
        assert "not-for-eyes" not in done.output
    assert "not-for-eyes" not in typed("plan", EXAMPLES / "hello.yaml", *given).output


def test_a_plan_of_the_rack_shows_the_image_that_differs(typed: Command, tmp_path: Path) -> None:
    environment, rack = tmp_path / "rack.env.yaml", EXAMPLES / "rack.yaml"
    machine = EXAMPLES / "rack-machine.yaml"
    environment.write_text(f"resource_registry: {{'Rack::Machine': '{machine}'}}")
    shown = typed("plan", rack, rack, "-e", environment, "--new-parameter", "image=x").stdout
    assert "     resource_def.properties.image: debian-12 -> x\n" in shown
