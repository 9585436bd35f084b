"""Before an order: which machines are there, reserved and free, and what would be left."""

from __future__ import annotations

import json
from pathlib import Path

from tests.functional.orchestration.test_machines import IMAGE, enrol, ironic
from tests.functional.stories.test_stack_revisions import run
from tests.kit.servers.orchestration import Orchestration, template


def test_a_plan_tells_what_it_leaves_free(tmp_path: Path) -> None:
    member = {"name": "w-%index%", "selector": {"resource_class": "bm.test"}, "image": IMAGE}
    file = tmp_path / "workers.json"

    def write(count: int) -> str:
        properties = {"count": count, "member": member}
        group = {"type": "OS::Ironic::InstanceGroup", "properties": properties}
        file.write_text(json.dumps(template({"workers": group})), encoding="utf-8")
        return str(file)

    with Orchestration(tmp_path / "state") as site:
        for name in ("n1", "n2", "n3", "n4"):
            enrol(site, name, ports=[])
        enrol(site, "other", ports=[], resource_class="bm.other")
        assert ironic(site, "PUT", "/v1/nodes/n4/maintenance", {"reason": "r"})[0] == 202
        planned = run(site, "stack", "plan", write(2), "web", "--free")
        head, row = planned.output.rstrip().splitlines()[-2:]
        assert head.split() == [
            "CLASS", "TRAITS", "NODES", "RESERVED", "FREE", "NEEDED", "RETURNED", "LEFT",
        ]  # fmt: skip
        assert row.split() == ["bm.test", "CUSTOM_A", "4", "0", "3", "2", "0", "1"]
        assert run(site, "stack", "up", str(file), "web", "--yes").exit_code == 0
        grown = json.loads(run(site, "stack", "plan", write(5), "web", "--free", "--json").stdout)
        capacity = grown["plan"]["capacity"]
        assert [(each["free"], each["needed"], each["left"]) for each in capacity] == [
            (0, 2, -2), (1, 1, 0),
        ]  # fmt: skip
        shrunk = run(site, "stack", "plan", write(1), "web", "--free")
        row = shrunk.output.rstrip().splitlines()[-1]
        assert row.split() == ["bm.test", "CUSTOM_A", "4", "2", "1", "0", "1", "1"]
        plain = json.loads(run(site, "stack", "plan", str(file), "web", "--json").stdout)
        assert "capacity" not in plain["plan"]
