from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg, types

import bloomery
from bloomery import conf, errors

EACH_GROUP = pytest.mark.parametrize(
    ("group", "options"), [pytest.param(*each, id=each[0]) for each in conf.list_opts()]
)


def written(tmp_path: Path, group: str, name: str, value: object) -> list[str]:
    return all_written(tmp_path, group, {name: value})


def all_written(tmp_path: Path, group: str, values: Mapping[str, object]) -> list[str]:
    path = tmp_path / "bloomery.conf"
    lines = (f"{name} = {value}\n" for name, value in values.items())
    path.write_text(f"[{group}]\n{''.join(lines)}")
    return [str(path)]


def value_in(loaded: conf.Conf, group: str, name: str) -> Any:
    return getattr(getattr(loaded, group.lower()), name)


def another(option: cfg.Opt) -> tuple[str, Any]:
    """A value that is not the default: as the file says it, and as it is read."""
    if choices := getattr(option.type, "choices", None):
        other = next(choice for choice in choices if choice != option.default)
        return other, other
    match option:
        case cfg.BoolOpt():
            return str(not option.default), not option.default
        case cfg.IntOpt():
            base = option.default or option.type.min or 0
            other = base + (-1 if base == option.type.max else 1)
            return str(other), other
        case cfg.ListOpt():
            return "one, two", ("one", "two")
        case cfg.DictOpt():
            return "deploy.x:1,deploy.y:2", {"deploy.x": "1", "deploy.y": "2"}
        case cfg.MultiOpt() if isinstance(option.type, types.Dict):
            return "deploy.x:1,deploy.y:2", {"deploy.x": "1", "deploy.y": "2"}
        case cfg.MultiOpt():
            return "one, two", ("one, two",)
    return "something else", "something else"


@EACH_GROUP
def test_every_option_has_help(group: str, options: list[cfg.Opt]):
    assert [option.name for option in options if len(option.help or "") < 7] == []


@EACH_GROUP
def test_every_option_is_read_from_a_file(tmp_path: Path, group: str, options: list[cfg.Opt]):
    said = {option.name: another(option) for option in options}
    loaded = conf.load(
        all_written(tmp_path, group, {name: text for name, (text, _) in said.items()})
    )
    assert {name: value_in(loaded, group, name) for name in said} == {
        name: meant for name, (_, meant) in said.items()
    }


def test_without_a_file_everything_is_at_its_default():
    assert conf.load() == conf.Conf()


@EACH_GROUP
def test_values_out_of_range_are_refused_by_name(
    tmp_path: Path, group: str, options: list[cfg.Opt]
):
    wrong = {option.name: list(wrong_values(option)) for option in options}
    for number in range(max(map(len, wrong.values()))):
        values = {name: each[number] for name, each in wrong.items() if number < len(each)}
        files = all_written(tmp_path, group, values)
        with pytest.raises(errors.CannotStart) as caught:
            conf.load(files)
        said = str(caught.value)
        assert f"[{group}]" in said
        assert [name for name in values if f"option {name} " not in said] == []
        assert files[0] in said
        assert "\n" not in said


def wrong_values(option: cfg.Opt) -> Iterator[object]:
    if getattr(option.type, "choices", None):
        yield "nonsense"
    if isinstance(option, cfg.IntOpt | cfg.BoolOpt):
        yield "nonsense"
    if (least := getattr(option.type, "min", None)) is not None:
        yield least - 1
    if (most := getattr(option.type, "max", None)) is not None:
        yield most + 1


def test_options_of_the_reference_that_we_lack_are_left_alone(tmp_path: Path):
    files = written(tmp_path, "neutron", "cleaning_network", "provisioning")
    assert conf.load(files) == conf.Conf()


@pytest.mark.parametrize("name", ["enable_stack_abandon", "convergence_engine"])
def test_options_that_heat_has_in_default_are_read_there(tmp_path: Path, name: str) -> None:
    before, read = conf.Conf().engine, name.removesuffix("_engine")
    path = tmp_path / "heat.conf"
    path.write_text(f"[DEFAULT]\n{name} = {not getattr(before, read)}\n", encoding="utf-8")
    assert getattr(conf.load([str(path)]).engine, read) is not getattr(before, read)
    assert conf.unknown([str(path)]) == []
    path.write_text(f"{path.read_text()}[engine]\n{read} = {getattr(before, read)}\n")
    assert getattr(conf.load([str(path)]).engine, read) is getattr(before, read)


def test_an_option_of_several_lines_has_each_of_them(tmp_path: Path) -> None:
    """As Ironic's files have them."""
    path, alias = tmp_path / "bloomery.conf", '{"vendor_id": "1", "product_id": "2", "name": "x"}'
    path.write_text(
        "[conductor]\nclean_step_priority_override = deploy.x:1\n"
        "clean_step_priority_override = deploy.y:2,deploy.z:3\n"
        f"[inspector]\npci_device_alias = {alias}\npci_device_alias = 3:4:y\n"
    )
    loaded = conf.load([str(path)])
    priorities = {"deploy.x": "1", "deploy.y": "2", "deploy.z": "3"}
    assert loaded.conductor.clean_step_priority_override == priorities
    assert loaded.inspector.pci_device_alias == (alias, "3:4:y")


def test_later_files_win(tmp_path: Path):
    first, second = tmp_path / "1.conf", tmp_path / "2.conf"
    first.write_text("[api]\nport = 1\nthreads = 7\n")
    second.write_text("[api]\nport = 2\n")
    loaded = conf.load([str(first), str(second)])
    assert (loaded.api.port, loaded.api.threads) == (2, 7)


@pytest.mark.parametrize("content", [None, "no section\n", "[api\nport = 1\n"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: str | None):
    path = tmp_path / "broken.conf"
    if content:
        path.write_text(content)
    with pytest.raises(errors.CannotStart, match=str(path)):
        conf.load([str(path)])


@pytest.mark.parametrize("group", conf.GROUPS)
def test_groups_are_values_that_nobody_can_change(group: str):
    declared = conf.GROUPS[group]
    value = declared()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(declared)[0].name, None)


def test_every_group_is_read():
    assert set(typing.get_type_hints(conf.Conf)) == {group.lower() for group in conf.GROUPS}


REFERRED_TO = {"default_hooks", "default_inspection_hooks"}  # by the defaults of other options
WHOLE = {"cors", "healthcheck", "fake"}  # groups that are read as a whole
COMPUTED = re.compile(r"default_[a-z]+_interface|enabled_[a-z]+_interfaces|[a-z]+_network")


def read_names() -> set[str]:
    """Attributes and strings of the code outside of conf/."""
    names: set[str] = set()
    package = Path(bloomery.__file__).parent
    for path in package.rglob("*.py"):
        if package / "conf" not in path.parents:
            names.update(re.findall(r"[.\"](\w+)", path.read_text()))
    return names


def test_every_option_is_read_somewhere():
    """One that nothing reads says that it works, and silences the warning that it does not."""
    names = read_names()
    unread = [
        f"[{group}]{option.dest}"
        for group, options in conf.list_opts()
        for option in options
        if group not in WHOLE and not COMPUTED.fullmatch(option.dest)
        if option.dest not in names | REFERRED_TO
    ]
    assert unread == []


def test_options_that_are_not_ours_are_named(tmp_path: Path):
    path = tmp_path / "bloomery.conf"
    path.write_text(
        "[DEFAULT]\ntransport_url = rabbit://\nenabled_hardware_type = redfish\n"
        "[conductor]\nautomated_clean = false\nautomatic_clean = false\n"
        "[oslo_messaging_rabbit]\nssl = true\n[neutron]\nurl = x\ndefault_hoks = x\n"
        "[api]\ndefault_hoks = x\n",
    )
    path.write_text(path.read_text() + "\n[API]\nenable_ssl_api = true\n")  # oslo.config folds
    assert conf.unknown([str(path)]) == [
        "[DEFAULT]enabled_hardware_type (Did you mean 'enabled_hardware_types'?)",
        "[api]default_hoks (Did you mean '[inspector]default_hooks'?)",
        "[conductor]automatic_clean (Did you mean 'automated_clean'?)",
        "[neutron]default_hoks",
        "[neutron]url",
    ]


def test_all_wrong_values_are_named_at_once(tmp_path: Path):
    path = tmp_path / "bloomery.conf"
    path.write_text("[api]\nport = x\nthreads = 0\n[conductor]\nworkers_pool_size = many\n")
    with pytest.raises(errors.CannotStart) as caught:
        conf.load([str(path)])
    for name in ("port", "threads", "[conductor]", "workers_pool_size"):
        assert name in str(caught.value)


def test_options_that_are_ours_are_not(tmp_path: Path):
    for group, options in conf.list_opts():
        values = {option.name: "1" for option in options}
        assert conf.unknown(all_written(tmp_path, group, values)) == []


def test_hooks_may_be_the_usual_ones_and_more(tmp_path: Path):
    loaded = conf.load(written(tmp_path, "inspector", "hooks", "$default_hooks,parse-lldp"))
    assert loaded.inspector.hooks == (*conf.Conf().inspector.hooks, "parse-lldp")
    path = written(tmp_path, "redfish", "inspection_hooks", "$default_inspection_hooks,pci-devices")
    hooks = conf.load(path).redfish.inspection_hooks
    assert hooks == (*conf.Conf().redfish.inspection_hooks, "pci-devices")


def test_the_usual_hooks_are_the_default_of_the_hooks(tmp_path: Path):
    loaded = conf.load(written(tmp_path, "inspector", "default_hooks", "ports,architecture"))
    assert loaded.inspector.hooks == ("ports", "architecture")


@pytest.mark.parametrize(
    ("group", "option"),
    [("DEFAULT", "host"), ("api", "port"), ("inspector", "hooks"), ("conductor", "node_history")],
)
@pytest.mark.parametrize(
    ("value", "reason"),
    [("$nope", "nope"), ("${nope.x}", "nope"), ("{itself}", "refers to itself")],
)
def test_a_reference_that_leads_nowhere_is_one_sentence(
    tmp_path: Path, group: str, option: str, value: str, reason: str
):
    path = written(tmp_path, group, option, value.replace("{itself}", f"${option}"))
    with pytest.raises(errors.CannotStart) as refusal:
        conf.load(path)
    assert option in str(refusal.value)
    assert reason in str(refusal.value)
    assert "$$" in str(refusal.value)


URL = "postgresql://bloomery:hunter2@db/bloomery"


@pytest.mark.parametrize("kind", ["file", "credential"])
def test_a_secret_option_may_name_the_place_of_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "db-url").write_text(f"{URL}\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    place = f"{tmp_path}/db-url" if kind == "file" else "db-url"
    loaded = conf.load(written(tmp_path, "database", "connection", f"{kind}:{place}"))
    assert loaded.database.connection == URL


def test_an_option_that_is_no_secret_is_no_reference(tmp_path: Path) -> None:
    loaded = conf.load(written(tmp_path, "DEFAULT", "host", "file:1"))
    assert loaded.default.host == "file:1"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("file:/no/such", "option connection: cannot read /no/such: No such file or directory"),
        ("credential:db-url", "LoadCredential=db-url:PATH"),
    ],
)
def test_a_place_without_a_value_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(errors.CannotStart, match=re.escape(reason)):
        conf.load(written(tmp_path, "database", "connection", value))


def test_a_secret_file_of_bytes_is_refused_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "db-url").write_bytes(b"hunter2\xff")
    with pytest.raises(errors.CannotStart) as refused:
        conf.load(written(tmp_path, "database", "connection", f"file:{tmp_path}/db-url"))
    assert "it is no text" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_the_environment_overrides_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_DATABASE__CONNECTION", URL)
    files = written(tmp_path, "database", "connection", "sqlite:///other")
    assert conf.load(files).database.connection == URL
