from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.template import kinds


def broken() -> type:
    raise ImportError("No module named 'gone'")


def test_kinds_that_are_installed_are_found_by_name():
    installed = kinds.installed()
    found = installed.find("OS::Heat::None")
    assert found is not None
    assert found is installed.find("OS::Heat::None")
    assert "OS::Heat::None" in installed
    assert "OS::Heat::Nothing" not in installed
    assert installed.find("OS::Heat::Nothing") is None
    assert list(installed) == sorted(installed)
    assert len(installed) == len(list(installed))


def test_a_kind_is_loaded_only_when_it_is_asked_for():
    table = kinds.Kinds({"A": broken, "B": lambda: int})
    assert table.find("B") is int
    assert list(table) == ["A", "B"]
    with pytest.raises(errors.StackValidationFailed, match=r"\(A\) cannot be used.*'gone'"):
        table.find("A")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("OS::Nova::Server", "There is no Nova here. Bloomery has OS::Ironic::Instance instead."),
        ("OS::Neutron::Port", "Bloomery has the property networks of OS::Ironic::Instance instead"),
        ("OS::Neutron::Net", "There is no Neutron here. To keep the template, map the type in"),
        ("OS::Manila::Share", "resource_registry of an environment"),
    ],
)
def test_a_type_of_another_service_names_what_there_is_instead(name: str, text: str):
    refused = str(kinds.installed().unknown(name))
    assert text in refused
    assert "Did you mean" not in refused


def test_what_there_is_instead_exists():
    for text in kinds.INSTEAD.values():
        named = [word.strip(",.") for word in text.split() if "::" in word]
        assert all(name in kinds.installed() for name in named)


def test_an_unknown_type_is_told_the_nearest_name():
    table = kinds.Kinds({"OS::Heat::Value": lambda: int})
    assert str(table.unknown("OS::Heat::Valu")) == (
        "The Resource Type (OS::Heat::Valu) could not be found. Did you mean 'OS::Heat::Value'?"
    )
    assert "Did you mean 'My::Type'" in str(table.unknown("My::Tipe", ["My::Type"]))
    assert str(table.unknown("X")) == "The Resource Type (X) could not be found."
