"""Alert rules and dashboard ask only for metrics, labels and values that the product declares."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import prometheus_client
import pytest
import yaml

from bloomery import metrics
from bloomery.cmd import gauges
from bloomery.conductor.periodics import table
from bloomery.conductor.states import State
from bloomery.model import webhook

ROOT = Path(__file__).parents[2]
RULES = ROOT / "contrib/prometheus/bloomery.rules.yaml"
DASHBOARD = ROOT / "contrib/grafana/bloomery.json"
GUIDE = ROOT / "doc/guides/watch.md"
OF_PROMETHEUS = {"instance", "job"}  # labels that each scrape adds
VALUES = {
    ("bloomery_nodes", "state"): set(State),
    ("bloomery_conductors", "state"): set(gauges.CONDUCTOR_STATES),
    ("bloomery_webhooks", "state"): set(webhook.State),
    ("bloomery_bmcs", "state"): {"answering", "silent", "left_alone"},
    ("bloomery_periodic_lag_seconds", "periodic"): {each.name for each in table.TABLE},
}
SUM_OF_SITE = re.compile(
    r"\bsum(?: by \([^)]*\))? ?\(bloomery_(?:nodes\w*|conductors|stacks|webhooks|event_sink\w*)\b"
)


class Query(NamedTuple):
    where: str
    text: str


def _declared_gauges() -> dict[str, set[str]]:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "tools/reference_pages.py")
    assert spec
    assert spec.loader
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return {f"bloomery_{name}": set(labels) for name, _, labels in pages.gauges()}


def _of_process() -> dict[str, set[str]]:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    return {sample.name: set() for family in registry.collect() for sample in family.samples}


def declared() -> dict[str, set[str]]:
    """Return the labels of each series, by its name as Prometheus stores it."""
    series = _declared_gauges() | _of_process() | {"up": set()}
    for name, metric in metrics.DECLARED.items():
        labels = set(metric.labels)
        if metric.kind == "counter":
            series[f"bloomery_{name}_total"] = labels
            continue
        series |= {f"bloomery_{name}_seconds_{part}": labels for part in ("sum", "count")}
        series[f"bloomery_{name}_seconds_bucket"] = labels | {"le"}
    return series


DECLARED = declared()


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    for rule in rules():
        yield Query(rule["alert"], rule["expr"])
    for panel in panels():
        for target in panel["targets"]:
            yield Query(panel["title"], target["expr"])


QUERIES = list(queries())
every_query = pytest.mark.parametrize("query", QUERIES, ids=[each.where for each in QUERIES])


def series(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the series that a query asks for, each with its matchers."""
    return [
        (name, dict(re.findall(r'(\w+)\s*[!=]=?~?\s*"([^"]*)"', matchers)))
        for name, matchers in re.findall(r"\b((?:bloomery|process)_\w+|up)\b(?:\{([^}]*)\})?", text)
    ]


@every_query
def test_each_series_and_label_is_declared(query: Query) -> None:
    asked = series(query.text)
    assert asked
    assert [name for name, _ in asked if name not in DECLARED] == []
    for name, matchers in asked:
        assert set(matchers) <= DECLARED[name] | OF_PROMETHEUS, name
    common = set.union(*(DECLARED[name] for name, _ in asked)) | OF_PROMETHEUS
    for labels in re.findall(r"\bby \(([^)]*)\)", query.text):
        assert set(labels.split(", ")) <= common, labels


@every_query
def test_each_matcher_of_closed_values_matches_one(query: Query) -> None:
    for name, matchers in series(query.text):
        for label, pattern in matchers.items():
            if values := VALUES.get((name, label)):
                assert any(re.fullmatch(pattern, value) for value in values), (name, pattern)


@every_query
def test_what_each_api_shows_alike_is_not_summed_over_processes(query: Query) -> None:
    assert not SUM_OF_SITE.search(query.text)


def test_a_sum_over_processes_would_be_seen() -> None:
    wrong = ("sum(bloomery_nodes)", 'sum by (state) (bloomery_stacks{state="x"})')
    assert all(map(SUM_OF_SITE.search, wrong))


def test_labels_are_legends_of_their_panel() -> None:
    for panel in panels():
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            names = [name for name, _ in series(target["expr"])]
            assert labels <= set.union(*(DECLARED[name] for name in names)) | OF_PROMETHEUS


def test_summaries_name_labels_that_the_alert_keeps() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        kept = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        names = [name for name, _ in series(rule["expr"])]
        all_labels = set.union(*(DECLARED[name] for name in names)) | OF_PROMETHEUS
        assert used <= (set(kept[0].split(", ")) if kept else all_labels), rule["alert"]


def test_the_guide_explains_each_alert() -> None:
    explained = re.findall(r"^\| `(Bloomery\w+)` \|", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert explained == [rule["alert"] for rule in rules()]


def test_no_label_is_one_that_prometheus_sets() -> None:
    reserved = OF_PROMETHEUS | {"le", "quantile"}
    ours = _declared_gauges()
    ours |= {name: set(metric.labels) for name, metric in metrics.DECLARED.items()}
    assert {name: labels & reserved for name, labels in ours.items() if labels & reserved} == {}


def test_names_end_as_prometheus_expects() -> None:
    names = set(_declared_gauges())
    assert [name for name in names if name.endswith(("_total", "_s", "_ms", "_count"))] == []
    assert [name for name in metrics.DECLARED if name.endswith(("_total", "_seconds"))] == []
    timed = {name for name in names if re.search(r"_(age|lag)\b|_(age|lag)_", name)}
    assert timed
    assert {name for name in timed if not name.endswith("_seconds")} == set()


def test_promtool_accepts_the_rules() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed; names and labels are tested above")
    line = [program, "check", "rules", str(RULES)]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
