"""Templates that want to keep the whole service busy: it answers everybody else meanwhile."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from tests.kit.servers.orchestration import Orchestration

HEAD = "heat_template_version: 2021-04-16\n"
SLOW = "range(0, 20).select(range(0, 20).select($ * $).sum()).sum()"
NUMBERS = [str(number) for number in range(1000)]


def value(tree: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": tree}}


def template(resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources} | more


def product(at: int) -> Any:
    return {"repeat": {"template": f"a-b-{at}", "for_each": {"a": NUMBERS, "b": NUMBERS[:500]}}}


def evaluation(at: int) -> Any:
    return {"yaql": {"expression": f"{SLOW} + {at}", "data": {}}}


BOMB = "".join(
    f"  v{at}: &v{at} [{', '.join([f'*v{at - 1}'] * 9) if at else 'x'}]\n" for at in range(40)
)
PATTERN = {"type": "string", "constraints": [{"allowed_pattern": "(x|xx)+y"}]}
HOSTILE: dict[str, dict[str, Any]] = {
    "bomb": {"template": f"{HEAD}parameter_defaults:\n{BOMB}"},
    "depth": {"template": HEAD + "a: " + "[" * 200_000},
    "pattern": {
        "template": template({}, parameters={f"p{at}": PATTERN for at in range(20)}),
        "parameters": {f"p{at}": "x" * 5000 for at in range(20)},
    },
    "product": {"template": template({"r": value(product(0))})},
    "evaluation": {"template": template({f"r{at}": value(evaluation(at)) for at in range(4)})},
}  # fmt: skip
REFUSED = {"StackValidationFailed", "HTTPBadRequest", "RequestLimitExceeded", "HeavyJobsBusy"}


def test_api_answers_while_four_hostile_templates_are_validated(tmp_path: Path) -> None:
    """Each asks for seconds of computation; small requests go on between them."""
    with Orchestration(tmp_path / "state") as site, ThreadPoolExecutor(4) as pool:
        names = ["evaluation", "product", "pattern", "evaluation"]
        busy: list[Future[tuple[int, Any]]] = [
            pool.submit(site.ask, "POST", "/stacks/preview", HOSTILE[name] | {"stack_name": "s"})
            for name in names
        ]
        answered = 0
        while wait(busy, timeout=0.05).not_done:
            status, document = site.ask("GET", "/template_versions")
            assert status == 200
            assert document["template_versions"]
            answered += 1
        assert answered >= 10, "nobody else was answered"
        for each in busy:
            status, document = each.result()
            assert status in {200, 400, 503}, document
            if status != 200:
                assert document["error"]["type"] in REFUSED, document


def test_every_hostile_template_is_refused_in_words(tmp_path: Path) -> None:
    with Orchestration(tmp_path / "state") as site:
        for name in ("bomb", "depth", "pattern"):
            status, document = site.ask("POST", "/stacks", HOSTILE[name] | {"stack_name": name})
            assert status == 400, document
            assert document["error"]["type"] in REFUSED, document
            assert document["error"]["message"]
        status, document = site.ask("GET", "/stacks")
        assert (status, document["stacks"]) == (200, [])


def test_integers_beyond_64_bits_survive_from_request_to_answer(tmp_path: Path) -> None:
    big = 2**70 + 1
    with Orchestration(tmp_path / "state") as site:
        body = template(
            {"a": value({"get_param": "n"})},
            parameters={"n": {"type": "number", "default": -big}, "j": {"type": "json"}},
            outputs={"n": {"value": {"get_attr": ["a", "value"]}},
                     "j": {"value": {"get_param": "j"}}},
        )  # fmt: skip
        stack = site.create("big", body, parameters={"n": big, "j": {"k": big}})
        shown = site.wait_for(stack, "CREATE_COMPLETE")
        outputs = {each["output_key"]: each["output_value"] for each in shown["outputs"]}
        assert outputs == {"n": big, "j": {"k": big}}
        assert site.ask("GET", f"{stack}/environment")[1]["parameters"]["n"] == big
        stored = site.ask("GET", f"{stack}/template")[1]
        assert stored["parameters"]["n"]["default"] == -big
