"""Roll-outs over machines in memory, by engines over rows that may be killed in the middle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.tables import STACK_EVENTS
from bloomery.model.stacks import Order, OrderKind, Template
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.resources.windows import Window
from bloomery.orchestration.simulation.simulation import EPOCH
from tests.kit.stacks import trees
from tests.kit.stacks.machine_sites import Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine, Kill, Killed

NEW = "http://images/b"


@dataclass
class Watched(MemoryMachines):
    """Notes how many members were down at most, and how often each was written anew."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.most_down = 0
        self.times: list[float] = []  # of each order to write a member anew

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        super().set_provision_state(uuid, verb, **arguments)
        if verb == "rebuild":
            self.times.append(EPOCH.timestamp() + self._utc())
            down = [n for n in self.nodes.values() if n["provision_state"] == "deploying"]
            self.most_down = max(self.most_down, len(down))

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._failures.clear()

    def images(self) -> list[str]:
        nodes = self.nodes.values()
        return sorted(
            n["instance_info"]["image_source"] for n in nodes if n["instance_uuid"] is not None
        )


@dataclass
class Rack:
    """A group of so many machines, made, and whoever signals it when it pauses."""

    path: Path
    count: int
    policy: dict[str, Any] = field(default_factory=dict)
    canary: dict[str, Any] = field(default_factory=dict)
    signals: list[str] = field(default_factory=list)
    pauses: list[Any] = field(default_factory=list)  # batch and reason of each

    def __post_init__(self) -> None:
        self.site: Site = make_site(trees.database(self.path), Watched, pool=self.count + 3)
        self.site.create(self.template("http://images/a"))
        self.run()
        assert self.site.stack().status == Status.COMPLETE, self.site.stack().reason

    @property
    def machines(self) -> Watched:
        assert isinstance(self.site.machines, Watched)
        return self.site.machines

    def template(self, image: str, count: int | None = None) -> Template:
        policy = {"rolling_update": {"health_gate": {"settle_seconds": 5}, **self.policy}}
        group = {
            "type": "OS::Ironic::InstanceGroup",
            "properties": {
                "count": self.count if count is None else count,
                "member": {
                    "name": "m-%index%", "image": {"source": image},
                    "selector": {"resource_class": "pool"},
                },
            },
            "update_policy": {**policy, "canary": self.canary},
        }  # fmt: skip
        return template({"workers": group}, name=f"{image} {count}")

    def update(self, image: str = NEW, count: int | None = None, *, converge: bool = False) -> None:
        self.site.update(self.template(image, count), payload={"converge": converge})

    def run(self, kill: Kill | None = None) -> int:
        engine = Engine(self.site.db, self.site.runtime(), kill, self._answer_pauses)
        try:
            return engine.run(self.site.root)
        except Killed:
            return Engine(self.site.db, self.site.runtime(), None, self._answer_pauses).run(
                self.site.root
            )

    def _answer_pauses(self, _commits: int) -> None:
        rollout = self.rollout()
        pause = (rollout.get("batch"), rollout.get("reason"))
        if rollout.get("state") != "paused" or pause in self.pauses:
            return
        self.pauses.append(pause)
        self.signal(self.signals.pop(0) if self.signals else "abort")

    def told_pauses(self) -> list[str]:
        """The reasons of the events that tell of a pause."""
        query = sa.select(STACK_EVENTS.c.reason).where(
            STACK_EVENTS.c.reason.startswith("roll-out paused")
        )
        with self.site.db.read() as conn:
            return list(conn.execute(query).scalars())

    def signal(self, word: str) -> None:
        details = {"resource": self.group().uuid, "details": {"rollout": word}}
        trees.accept(
            self.site.db,
            Order(root_uuid=self.site.root, stack_uuid=self.site.root, kind=OrderKind.SIGNAL,
                  payload=details),
        )  # fmt: skip

    def group(self) -> Any:
        return next(row for row in self.site.tree().resources if row.name == "workers")

    def rollout(self) -> Mapping[str, Any]:
        rows = [row for row in self.site.tree().resources if row.name == "workers"]
        return rows[0].data.get("rollout") or {} if rows else {}


Make = Callable[..., Rack]


@pytest.fixture
def make_rack(tmp_path: Path) -> Make:
    numbers = iter(range(1000))

    def make(count: int, **more: Any) -> Rack:
        path = tmp_path / str(next(numbers))
        path.mkdir()
        return Rack(path, count, **more)

    return make


def test_every_member_changes_once_and_one_is_down_at_a_time(make_rack: Make) -> None:
    rack = make_rack(4)
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.site.stack().reason
    assert rack.machines.images() == [NEW] * 4
    assert [verb for _, verb in rack.machines.orders].count("rebuild") == 4
    assert rack.machines.most_down == 1
    assert rack.rollout()["batch"] == 4


def test_a_failure_in_the_second_batch_pauses_it_and_a_signal_ends_it(make_rack: Make) -> None:
    rack = make_rack(4, policy={"batch_size": 2, "max_unavailable": 2}, signals=["continue"])
    rack.update()
    rack.machines.fail_next("rebuild", "no disk")
    rack.run()
    assert [batch for batch, _ in rack.pauses] == [1]
    assert rack.site.stack().status == Status.COMPLETE, rack.site.stack().reason
    assert rack.machines.images() == [NEW] * 4


def test_a_pause_that_comes_again_at_once_is_told_of_again(make_rack: Make) -> None:
    """The canary is in a critical state after it was judged: no other may be taken down."""
    canary = {"size": 1, "require_signal": True}
    rack = make_rack(3, canary=canary, policy={"order": "unhealthy_first"})
    rack.update()
    words, answered = ["continue", "continue", "abort"], 0

    def answer(_commits: int) -> None:
        nonlocal answered
        if words and len(rack.told_pauses()) > answered:
            answered += 1
            for node in rack.machines.nodes.values():
                if node["instance_info"].get("image_source") == NEW:
                    node["health"] = "critical"
            rack.signal(words.pop(0))

    Engine(rack.site.db, rack.site.runtime(), None, answer).run(rack.site.root)
    _canary, *pauses = rack.told_pauses()
    assert len(pauses) == 2
    assert "too few members are ready" in pauses[0] == pauses[1]
    assert "aborted by a signal" in rack.group().reason


def test_who_failed_is_left_alone_until_the_next_update(make_rack: Make) -> None:
    rack = make_rack(4, policy={"failure_policy": "continue"})
    rack.update()
    rack.machines.fail_next("rebuild", "no disk")
    rack.run()
    assert [verb for _, verb in rack.machines.orders].count("rebuild") == 4
    assert rack.site.stack().status == Status.FAILED
    assert "3 of 4 members are ready" in rack.group().reason
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.group().reason
    assert [verb for _, verb in rack.machines.orders].count("rebuild") == 5


def test_an_abort_leaves_a_group_that_the_next_update_can_finish(make_rack: Make) -> None:
    rack = make_rack(4, signals=["abort"])
    rack.update()
    rack.machines.fail_next("rebuild", "no disk")
    rack.run()
    assert rack.site.stack().status == Status.FAILED
    assert "aborted by a signal after batch 1 of 4" in rack.group().reason
    assert rack.machines.images().count(NEW) == 1
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.group().reason
    assert rack.machines.images() == [NEW] * 4


def test_a_signal_takes_everybody_back(make_rack: Make) -> None:
    rack = make_rack(3, canary={"size": 1, "require_signal": True}, signals=["rollback"])
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.FAILED
    assert rack.machines.images() == ["http://images/a"] * 3


def test_a_canary_soaks_and_the_others_wait_for_a_signal(make_rack: Make) -> None:
    canary = {"size": 1, "soak_seconds": 500, "require_signal": True}
    rack = make_rack(
        4, canary=canary, signals=["continue"], policy={"batch_size": 3, "max_unavailable": 3}
    )
    before = rack.site.now_s
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.group().reason
    assert rack.rollout()["batch"] == 2
    assert rack.site.now_s - before > 500


def test_a_roll_out_says_what_it_waits_for(make_rack: Make) -> None:
    rack = make_rack(2, canary={"size": 1, "soak_seconds": 500}, policy={"pause_time": 7})
    rack.update()
    reasons: dict[str, None] = {}
    engine = Engine(
        rack.site.db,
        rack.site.runtime(),
        None,
        lambda _: reasons.update({rack.group().reason: None}),
    )
    engine.run(rack.site.root)
    waits = [reason for reason in reasons if " is done; " in reason]
    assert waits == [
        "batch 1 of 2 is done; its members are judged 5 s later (settle_seconds)",
        "batch 1 of 2 is done; the canary soaks for 500 s (soak_seconds)",
        "batch 1 of 2 is done; the next one begins 7 s later (pause_time)",
        "batch 2 of 2 is done; its members are judged 5 s later (settle_seconds)",
    ]
    assert rack.group().reason == "state changed"


NIGHT = {"begin": "02:00", "end": "02:02", "time_zone": "Europe/Berlin"}  # one batch fits


def open_at(seconds: float) -> bool:
    window = Window.of(NIGHT)
    assert window is not None
    return window.wait_s(seconds) == 0


@pytest.mark.parametrize("begins_s", [0, 3600.0, 5400.0])
def test_members_change_while_the_window_is_open(make_rack: Make, begins_s: float) -> None:
    """It waits for days, longer than its time-out of an hour: waits do not count."""
    rack = make_rack(3, policy={"window": NIGHT})
    rack.site.now_s += begins_s
    rack.update()
    reasons: dict[str, None] = {}
    Engine(
        rack.site.db, rack.site.runtime(), None,
        lambda _: reasons.update({rack.group().reason: None}),
    ).run(rack.site.root)  # fmt: skip
    assert rack.site.stack().status == Status.COMPLETE, rack.site.stack().reason
    assert rack.machines.images() == [NEW] * 3
    assert all(map(open_at, rack.machines.times)), rack.machines.times
    first, _, last = rack.machines.times
    assert 47 * 3600 < last - first < 49 * 3600
    waits = [reason for reason in reasons if reason.startswith("roll-out waits")]
    assert waits[-1] == (
        "roll-out waits after batch 2 of 3 for its window, which opens "
        f"{Window.of(NIGHT).local(last)} (mon,tue,wed,thu,fri,sat,sun 02:00-02:02 Europe/Berlin)"
    )


def test_members_that_are_only_added_wait_for_no_window(make_rack: Make) -> None:
    rack = make_rack(2, policy={"window": NIGHT})
    before = rack.site.now_s
    rack.update("http://images/a", 3)
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE
    assert rack.site.now_s - before < 1800
    rack.update("http://images/a", 1)
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE
    assert rack.site.now_s >= 3600  # which is 02:00 in Berlin


@pytest.mark.parametrize(
    ("signal", "status", "new"), [("continue", Status.COMPLETE, 3), ("abort", Status.FAILED, 0),
                                  ("pause", Status.FAILED, 0)],
)  # fmt: skip
def test_a_signal_ends_the_wait_for_a_window(make_rack: Make, signal, status, new) -> None:
    """``continue`` lets this roll-out go on at any time; a pause is ended by the abort after it."""
    rack = make_rack(3, policy={"window": NIGHT})
    before = rack.site.now_s
    rack.update()
    signals = [signal]

    def answer(_commits: int) -> None:
        if rack.rollout().get("state") == "waiting" and signals:
            rack.signal(signals.pop())
        rack._answer_pauses(_commits)

    Engine(rack.site.db, rack.site.runtime(), None, answer).run(rack.site.root)
    assert not signals
    assert (rack.site.stack().status, rack.machines.images().count(NEW)) == (status, new)
    assert rack.site.now_s - before < 3600
    assert len(rack.told_pauses()) == (signal == "pause")


@pytest.mark.parametrize(
    ("signals", "is_soon"),
    [([], False), (["continue"], True), (["pause", "continue"], False),
     ],
)  # fmt: skip
def test_members_that_are_gone_are_replaced_in_the_window(
    make_rack: Make, signals, is_soon
) -> None:
    """An update that converges waits as well, and looks at the members after a pause, too."""
    rack = make_rack(2, policy={"window": NIGHT})
    nodes = rack.machines.nodes
    gone = next(uuid for uuid, node in nodes.items() if node["instance_uuid"] is not None)
    del nodes[gone]
    before, left = rack.site.now_s, list(signals)
    rack.update("http://images/a", converge=True)

    def answer(_commits: int) -> None:
        if left and rack.rollout().get("state") in ("waiting", "paused"):
            state, signal = rack.rollout()["state"], left[0]
            if (state == "paused") == (signal == "continue" and signals[0] == "pause"):
                rack.signal(left.pop(0))

    Engine(rack.site.db, rack.site.runtime(), None, answer).run(rack.site.root)
    assert rack.site.stack().status == Status.COMPLETE, rack.site.stack().reason
    assert (len(rack.machines.images()), left) == (2, [])
    assert (rack.site.now_s - before < 1800) is is_soon


def test_killed_at_any_commit_a_roll_out_keeps_to_its_window(make_rack: Make) -> None:
    def life(kill: Kill | None) -> tuple[Rack, int]:
        rack = make_rack(2, policy={"window": NIGHT})
        rack.update()
        return rack, rack.run(kill)

    calm, commits = life(None)
    for number in range(1, commits):
        rack, _ = life(Kill(number, before=number % 2 == 0))
        assert rack.site.stack().status == Status.COMPLETE, number
        assert len(rack.machines.times) == len(calm.machines.times) == 2, number
        assert all(map(open_at, rack.machines.times)), number


def test_a_group_grows_meanwhile_where_nobody_may_be_down(make_rack: Make) -> None:
    rack = make_rack(3, policy={"max_unavailable": 0, "max_surge": 1})
    rack.update()
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.group().reason
    assert rack.machines.images() == [NEW] * 3
    verbs = [verb for _, verb in rack.machines.orders]
    assert (verbs.count("active"), verbs.count("deleted")) == (4, 1)


def test_a_group_that_shrinks_frees_the_last_ones(make_rack: Make) -> None:
    rack = make_rack(4)
    rack.update("http://images/a", 2)
    rack.run()
    assert rack.site.stack().status == Status.COMPLETE, rack.group().reason
    assert len(rack.machines.images()) == 2


def test_killed_at_any_commit_a_roll_out_ends_the_same(make_rack: Make) -> None:
    def life(kill: Kill | None) -> tuple[Rack, int]:
        rack = make_rack(3, canary={"size": 1, "require_signal": True}, signals=["continue"])
        rack.update()
        return rack, rack.run(kill)

    calm, commits = life(None)
    assert calm.site.stack().status == Status.COMPLETE
    for number in range(1, commits):
        rack, _ = life(Kill(number, before=number % 2 == 0))
        assert rack.site.stack().status == Status.COMPLETE, number
        assert len(rack.machines.orders) == len(calm.machines.orders), number
        assert rack.machines.most_down == 1
