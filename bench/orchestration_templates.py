"""What a template of many resources costs: read, validated and planned, in CPU and memory.

Each resource refers to three others.  The floor is libyaml, which builds the same document.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from bench import harness
from bench.harness import Line, Process
from bloomery.orchestration import foresight
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.template import parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.environment import Environment
from bloomery.orchestration.template.functions import base

RESOURCES: Final = 1_000
FEW, MANY = 100, 10_000
ELEMENTS: Final = 10_000
LIMITS: Final = Limits(resources=-1, template_bytes=2**26, document_nodes=10**7)
CHILD: Final = "from bench import orchestration_templates; orchestration_templates.tell_memory()"


def measure() -> Sequence[Line]:
    _whole(_text(FEW))  # plug-ins are found and loaded once
    text = _text(RESOURCES)
    whole = Line(what=f"template of {RESOURCES} resources: read, validate, plan", unit="s",
                 at_most=1, ratio=True, synchronous=None)  # fmt: skip
    update = Line(what=f"update that reaches {RESOURCES} resources: the same", unit="s",
                  ratio=True, synchronous=None)  # fmt: skip
    memory = Line(what=f"memory for {RESOURCES} resources", unit="MiB", at_most=40,
                  synchronous=None)  # fmt: skip
    slope = Line(what=f"growth from {FEW} to {MANY} resources", unit="exponent", at_most=1.1,
                 synchronous=None)  # fmt: skip
    repeat = Line(what=f"repeat of {ELEMENTS} elements", unit="s", at_most=15, ratio=True,
                  synchronous=None)  # fmt: skip
    old, looped = _validated(text), _looped()
    for _ in harness.rounds():
        floor = _cpu_s(lambda: _with_libyaml(text))
        whole.add(_cpu_s(lambda: _whole(text)), floor)
        update.add(_cpu_s(lambda: _updated(old)), floor)
        memory.add(_memory_mib())
        slope.add(_exponent())
        repeat.add(_cpu_s(looped), _cpu_s(_looped_alone))
    return whole, update, memory, slope, repeat


# ------------------------------------------------------------------------------ what is measured


def _text(count: int, first: int = 3) -> str:
    """A template in which each resource refers to three before it; ``first`` is a parameter."""
    lines = [
        "heat_template_version: 2021-04-16",
        f"parameters:\n  size: {{type: number, default: {first}}}",
        "resources:",
        "  r0: {type: OS::Heat::TestResource, properties: {value: {get_param: size}}}",
    ]
    for number in range(1, count):
        near, far, farther = (max(number - back, 0) for back in (1, 7, 31))
        lines.append(
            f"  r{number}:\n"
            "    type: OS::Heat::TestResource\n"
            "    properties:\n"
            "      value:\n"
            "        list_join: ['-', "
            f"[{{get_resource: r{near}}}, {{get_attr: [r{far}, output]}}]]\n"
            f"    metadata: {{farther: {{get_resource: r{farther}}}}}"
        )
    return "\n".join(lines)


def _validated(text: str) -> Stack:
    document = parse.document(text, LIMITS)
    template = versions.template_class(document)(document, limits=LIMITS)
    stack = Stack(Definition(template=template, environment=Environment.of(None)))
    validate(stack)
    return stack


def _whole(text: str) -> None:
    foresight.create(_validated(text))


def _updated(old: Stack) -> None:
    foresight.plan(old, _validated(_text(RESOURCES, first=4)))


def _looped() -> Callable[[], None]:
    """Return a function that resolves a ``repeat``."""
    loop = {"template": {"key-<n>": "value of <n>"}, "for_each": {"<n>": [*_numbers()]}}
    document = {
        "heat_template_version": "2021-04-16",
        "outputs": {"o": {"value": {"repeat": loop}}},
    }
    template = versions.template_class(document)(document, limits=LIMITS)
    definition = Definition(template=template, environment=Environment.of(None))
    tree, view = definition.outputs["o"].value, definition.view({})

    def resolve() -> None:
        assert len(base.resolve(tree, view)) == ELEMENTS

    return resolve


def _numbers() -> Sequence[str]:
    return [str(number) for number in range(ELEMENTS)]


# --------------------------------------------------------------------------------------- floors


def _with_libyaml(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _looped_alone() -> None:
    found = [{f"key-{number}": f"value of {number}"} for number in _numbers()]
    assert len(found) == ELEMENTS


# ------------------------------------------------------------------------------------------- how


def _exponent() -> float:
    """How cost grows with the number of resources: 1 is in step with it."""
    few, many = _text(FEW), _text(MANY)
    small = min(_cpu_s(lambda: _whole(few)) for _ in range(5))
    return math.log(_cpu_s(lambda: _whole(many)) / small) / math.log(MANY / FEW)


def _cpu_s(function: Callable[[], Any]) -> float:
    before = time.process_time()
    function()
    return time.process_time() - before


def _memory_mib() -> float:
    """What a process of its own takes for it at most, beyond what it had when it began."""
    with Process(sys.executable, "-c", CHILD, env=os.environ | {"PYTHONPATH": "."}) as child:
        return float(child.line())


def tell_memory() -> None:
    """Print the MiB that a template takes."""
    _whole(_text(2))
    text = _text(RESOURCES)
    before = harness.rss_mib(os.getpid())
    kept = _validated(text)
    made = foresight.create(kept)
    assert len(made.actions) == RESOURCES
    print(_most_mib() - before, flush=True)


def _most_mib() -> float:
    """The most that this process has had.  getrusage would count what its parent had, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    harness.main(measure)
