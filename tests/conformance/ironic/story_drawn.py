"""Walks: requests drawn by lot, so that states, versions and arguments meet that no table names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.conformance.ironic import story_lists, story_verbs
from tests.conformance.ironic.script import NEWEST, Script

WALKS: Final = 10
STEPS: Final = 40
VERSIONS: Final = (1, 4, 5, 9, 10, 11, 15, 21, 31, 38, 42, 51, 61, 74, 81, 90, 95, 104)
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "rescue": {"rescue_password": "secret"},
    "clean": {"clean_steps": [{"interface": "vendor", "step": "log_passthrough"}]},
    "service": {"service_steps": [story_verbs.PAUSE]},
}
PLACES: Final = (
    "", "/states", "/validate", "/traits", "/vifs", "/ports", "/children", "/bios", "/volume",
    "/management/boot_device", "/states/console", "?fields=provision_state,power_state",
)  # fmt: skip
SAFE_PATCHES: Final = tuple(
    patch
    for patch in story_lists.PATCHES
    if isinstance(patch, list) and "network_data" not in str(patch)
)


def _version(script: Script) -> int:
    return NEWEST if script.lots.random() < 0.75 else script.lots.choice(VERSIONS)


def look(script: Script, node: str) -> None:
    script.get(f"/nodes/{node}{script.lots.choice(PLACES)}", _version(script))


def search(script: Script, _node: str) -> None:
    pair = script.lots.sample([query for query, _ in story_lists.FILTERS], 2)
    script.get(f"/nodes?{'&'.join(pair)}", _version(script))


def change(script: Script, node: str) -> None:
    script.patch(f"/nodes/{node}", script.lots.choice(SAFE_PATCHES), _version(script))


def lead(script: Script, node: str) -> None:
    verb = script.lots.choice(list(story_verbs.VERBS))
    if verb != "rebuild":  # crashes in 39.0.0
        script.provision(node, verb, _version(script), **ARGUMENTS.get(verb, {}))
    script.get(f"/nodes/{node}/states")


def switch(script: Script, node: str) -> None:
    body = script.lots.choice(story_verbs.POWER)
    script.put(f"/nodes/{node}/states/power", body, _version(script))


def keep(script: Script, node: str) -> None:
    method = script.lots.choice(("PUT", "DELETE"))
    script.ask(method, f"/nodes/{node}/maintenance", {"reason": "r"} if method == "PUT" else {})


def mark(script: Script, node: str) -> None:
    method = script.lots.choice(("PUT", "DELETE"))
    trait = script.lots.choice(("CUSTOM_A", "CUSTOM_B", "x"))
    script.ask(method, f"/nodes/{node}/traits/{trait}", at=_version(script))


def plug(script: Script, node: str) -> None:
    script.post("/ports", {"node_uuid": node, "address": script.mac()}, _version(script))


DEEDS: Final[tuple[tuple[Callable[[Script, str], None], int], ...]] = (
    (look, 5), (search, 3), (change, 5), (lead, 8), (switch, 3), (keep, 1), (mark, 1), (plug, 1),
)  # fmt: skip


def walk(script: Script) -> None:
    states = ("enroll", "manageable", "available", "active")
    nodes = [script.node(state, name=f"n-{state}") for state in script.lots.sample(states, 2)]
    deeds = [deed for deed, weight in DEEDS for _ in range(weight)]
    for _ in range(STEPS):
        script.lots.choice(deeds)(script, script.lots.choice(nodes))


def draw(seed: int) -> Iterator[Script]:
    for number in range(WALKS):
        script = Script(f"walk {number}", seed)
        walk(script)
        yield script
