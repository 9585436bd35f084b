"""Plug-ins of a site: modules in folders that bring kinds and constraints."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomery import errors, plugins
from bloomery.orchestration import simulation
from bloomery.orchestration.engine_host import plugin_modules
from bloomery.orchestration.properties import custom
from bloomery.orchestration.template import kinds
from tests.kit.stacks.simulations import stack

PLUGINS = Path(__file__).parents[3] / "kit" / "stacks" / "plugins"
TEXT = """
resources:
  kettle: {type: Site::Kettle, properties: {litres: 2, tea: TEA}}
  cup: {type: Site::Cup, properties: {value: {get_attr: [kettle, boiled_at]}}}
outputs:
  at: {value: {get_attr: [cup, value]}}
"""


@pytest.fixture(autouse=True)
def _apart(monkeypatch):
    """What a test installs is gone after it."""
    offered = kinds.Kinds(plugins.loaders(kinds.GROUP))
    monkeypatch.setattr(kinds, "installed", lambda: offered)
    checks = dict(custom._checks())
    monkeypatch.setattr(custom, "_checks", lambda: checks)


def of_site(tea):
    return stack(
        TEXT.replace("TEA", tea),
        more={name: kinds.installed().find(name) for name in ("Site::Kettle", "Site::Cup")},
    )


def test_kinds_and_constraints_of_modules_stand_beside_those_installed():
    plugin_modules.install([str(PLUGINS)])
    assert {"Site::Kettle", "Site::Cup", "OS::Heat::Value"} <= set(kinds.installed())
    result = simulation.run(of_site("black tea"))
    assert result.status == "CREATE_COMPLETE", result.error
    assert result.events[-1].at_s == 120
    refused = simulation.run(of_site("coffee"))
    assert "write a kind of tea" in refused.error.message


def test_a_module_is_imported_once():
    plugin_modules.install([str(PLUGINS)])
    first = kinds.installed().find("Site::Kettle")
    plugin_modules.install([str(PLUGINS)])
    assert kinds.installed().find("Site::Kettle") is first


def test_what_is_available_is_asked_before_what_there_is(tmp_path):
    """A module may leave out kinds whose service is not there."""
    text = (PLUGINS / "kettles.py").read_text()
    text += '\n\ndef available_resource_mapping():\n    return {"Site::Urn": Kettle}\n'
    (tmp_path / "urns.py").write_text(text)
    plugin_modules.install([str(tmp_path)])
    assert "Site::Urn" in kinds.installed()
    assert "Site::Kettle" not in kinds.installed()


def test_a_kind_of_a_module_takes_the_place_of_an_installed_one(tmp_path):
    text = (PLUGINS / "kettles.py").read_text().replace("Site::Kettle", "OS::Heat::Value")
    (tmp_path / "other.py").write_text(text)
    plugin_modules.install([str(tmp_path)])
    assert kinds.installed().find("OS::Heat::Value").__name__ == "Kettle"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nothing_of_that_name", "cannot be imported: ModuleNotFoundError"),
        ("def resource_mapping(): return [1]", r"resource_mapping\(\) must return a map"),
        ("def resource_mapping(): return {'A': 1}", "maps A to 1, which is no kind"),
        ("def resource_mapping(): return {'A': int}", "no kind of resource"),
        ("def constraint_mapping(): return {'a': 1}", "cannot be called"),
        ("def constraint_mapping(): 1 / 0", r"constraint_mapping\(\) fails: ZeroDivisionError"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named_and_nothing_starts(tmp_path, text, why):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(errors.CannotStart, match=rf"broken\.py: it .*{why}"):
        plugin_modules.install([str(tmp_path)])


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(errors.CannotStart, match=r"plugin_dirs .*nope: No such file"):
        plugin_modules.install([str(tmp_path / "nope")])
