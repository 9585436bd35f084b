"""The plan of an update of many Instances, from rows: CPU and memory of the process that makes it.

The stack is that of the drift watch: made by an engine on machines in memory.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import resource
import time
from collections.abc import Sequence
from typing import Any, Final

from bench import drift, harness
from bench.harness import Line
from bloomery.model.stack_views import StackArguments
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.orders.machines import machines_of

_NEW_IMAGE: Final = {**drift.IMAGE, "source": "http://images/b.img"}


def measure() -> Sequence[Line]:
    cpu = Line(what=f"plan of an update of {drift.LARGE} Instances", unit="s CPU", at_most=0.6)
    memory = Line(what="memory for it, at its peak", unit="MiB", at_most=40)
    with harness.folder() as folder, drift.site(folder / "home") as (_, services):
        assert services.sealer is not None
        runtime = drift.deploy(services, services.sealer, drift.LARGE)
        runtime = dataclasses.replace(runtime, machines=machines_of(services))
        endpoint = StackOperations(services, runtime, lambda root: None)
        stack = endpoint.identify_stack(drift.OPERATOR, "machines")
        changed = _changed(endpoint.get_template(drift.OPERATOR, stack))
        before = harness.rss_mib(os.getpid())
        for _ in harness.rounds():
            began = time.process_time()
            preview = endpoint.preview_update_stack(
                drift.OPERATOR, stack, StackArguments(template=changed)
            )
            json.dumps(preview.plan)
            cpu.add(time.process_time() - began)
            assert preview.plan["summary"] == {"rebuild": drift.LARGE}
        memory.add(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)
    return [cpu, memory]


def _changed(template: dict[str, Any]) -> dict[str, Any]:
    """Return the template with another image for each machine."""
    new = copy.deepcopy(template)
    for each in new["resources"].values():
        each["properties"]["image"] = _NEW_IMAGE
    return new


if __name__ == "__main__":
    harness.main(measure)
