"""Abandon a stack in the published Heat, adopt it here, and compare: nothing is made anew.

    python -m tests.conformance.adopt_stacks --heat PATH             ask the Heat of PATH
    python -m tests.conformance.adopt_stacks --heat PATH --record    the same, and keep its answers

``make heat`` runs it, and ``make conformance`` with what was kept.  The stack has the kinds that
keep what they have made, a nested stack and a group.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from bloomery.cli.main import main as bloomery
from tests.conformance import life_heat
from tests.conformance.life_client import LifeClient
from tests.kit.servers.orchestration import Orchestration

RECORDED: Final = Path(__file__).resolve().parent / "abandoned.json"
NAME: Final = "web"
CHILD: Final = {
    "heat_template_version": "2018-08-31",
    "parameters": {"text": {"type": "string"}},
    "resources": {"inner": {"type": "OS::Heat::RandomString", "properties": {"length": 20}}},
    "outputs": {"inner": {"value": {"get_attr": ["inner", "value"]}}},
}
TEMPLATE: Final = {
    "heat_template_version": "2018-08-31",
    "parameters": {"text": {"type": "string", "default": "first"}},
    "resources": {
        "password": {"type": "OS::Heat::RandomString", "properties": {"length": 32}},
        "content": {
            "type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "text"}},
        },
        "copy": {
            "type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["content", "output"]}},
        },
        "child": {"type": "child.yaml", "properties": {"text": {"get_param": "text"}}},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": {"type": "OS::Heat::RandomString"}},
        },
    },
    "outputs": {
        "password": {"value": {"get_attr": ["password", "value"]}},
        "copy": {"value": {"get_attr": ["copy", "value"]}},
        "child": {"value": {"get_attr": ["child", "inner"]}},
        "group": {"value": {"get_attr": ["group", "value"]}},
    },
}  # fmt: skip
BODY: Final = {"template": TEMPLATE, "files": {"child.yaml": json.dumps(CHILD)}}
KEPT: Final = ("password", "content", "copy")  # by their physical ids


def shown(client: LifeClient) -> dict[str, Any]:
    """Return the outputs and the physical ids of a stack."""
    stack = client.call("GET", client.path)["stack"]
    resources = client.call("GET", f"{client.path}/resources")["resources"]
    return {
        "outputs": {each["output_key"]: each["output_value"] for each in stack["outputs"]},
        "ids": {each["resource_name"]: each["physical_resource_id"] for each in resources
                if each["resource_name"] in KEPT},
    }  # fmt: skip


def abandoned(base: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what Heat shows of a stack, and the document that abandoning it gives."""
    client = LifeClient(base, NAME, quiet=lambda _client: None)
    client.do_create({"body": BODY | {"parameters": {"text": "given"}}})
    client.settle("CREATE")
    return shown(client), client.call("DELETE", f"{client.path}/abandon")


def differences(theirs: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """Adopt what Heat has abandoned, then update it; return what is not as it was in Heat."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "abandoned.json")
        file.write_text(json.dumps(document))
        with Orchestration(Path(folder, "state"), enable_stack_adopt=True) as ours:
            runner = CliRunner(env={"OS_CLIENT_CONFIG_FILE": str(ours._home.clouds)})
            words = ["stack", "adopt", NAME, "--adopt-file", str(file)]
            done = runner.invoke(bloomery, words)
            if done.exit_code:
                return [done.output]
            client = LifeClient(ours.url, NAME, quiet=lambda _client: None)
            client.path = f"/stacks/{NAME}/{client.call('GET', f'/stacks/{NAME}')['stack']['id']}"
            adopted = shown(client)
            client.do_update({"body": BODY | {"parameters": {"text": "other"}}})
            client.settle("UPDATE")
            updated = shown(client)
    theirs_updated = {**theirs, "outputs": {**theirs["outputs"], "copy": "other"}}
    return [
        f"{when}: {mine} instead of {expected}"
        for when, mine, expected in (
            ("adopted", adopted, theirs), ("updated", updated, theirs_updated),
        ) if mine != expected
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heat", required=True, metavar="PATH")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with life_heat.running(options.heat) as base:
        theirs, document = abandoned(base)
    if options.record:
        kept = {"shown": theirs, "document": document}
        RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    faults = differences(theirs, document)
    sys.stdout.write("\n".join([*faults, f"a stack of Heat is adopted: {len(faults)} faults\n"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
