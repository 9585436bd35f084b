"""The architecture of a machine, from where its BMC has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bloomery.drivers.redfish import inspect


def value(text: str | None) -> Any:
    return None if text is None else SimpleNamespace(value=text)


def architecture(
    kind: str | None, instructions: str | None, model: str | None, summary: Any
) -> Any:
    processor = SimpleNamespace(
        processor_type=value("CPU"), processor_architecture=value(kind),
        instruction_set=value(instructions), model=model, total_threads=4, max_speed_mhz=None,
    )  # fmt: skip
    members = [processor] if (kind, instructions, model) != (None, None, None) else []
    system = SimpleNamespace(
        json={"ProcessorSummary": summary},
        processors=SimpleNamespace(
            members_identities=range(len(members)),
            get_member=members.__getitem__,
        ),
    )
    cpu = inspect._with_architecture(system, inspect._cpu(system))
    assert cpu["count"] == (4 if members else None)
    return cpu["architecture"]


@pytest.mark.parametrize(
    ("kind", "instructions", "model", "summary", "expected"),
    [
        ("x86", "x86-64", None, None, "x86_64"),
        ("ARM", "ARM-A64", None, None, "aarch64"),
        ("ARM", None, None, None, "aarch64"),
        (None, "ARM-A64", "Intel(R) Xeon(R)", None, "aarch64"),
        ("OEM", "ARM-A64", None, None, "aarch64"),
        ("Power", "PowerISA", None, None, "Power"),
        ("OEM", None, "Neoverse-N1", None, "aarch64"),
        (None, None, "AMD EPYC 9654 96-Core Processor", None, "x86_64"),
        (None, None, "Ampere(R) Altra(R) Processor Q80-30", None, "aarch64"),
        (None, None, None, {"Model": "Intel(R) Xeon(R) Gold 6230"}, "x86_64"),
        (None, None, None, {"Model": "AmpereOne(TM) A192-32X"}, "aarch64"),
        (None, None, "CPU 1", {"Model": None}, None),
        (None, None, None, "odd", None),
        (None, None, "Gracemont", None, None),
    ],
)
def test_the_exact_name_comes_first_and_the_model_last(
    kind: Any, instructions: Any, model: Any, summary: Any, expected: Any
) -> None:
    assert architecture(kind, instructions, model, summary) == expected
