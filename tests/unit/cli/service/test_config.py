from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from oslo_config import cfg

from bloomery import conf
from bloomery.cli import main
from bloomery.cli.service import config


@pytest.fixture(scope="module")
def sample() -> str:
    result = CliRunner().invoke(main.main, ["config", "sample"])
    assert result.exit_code == 0
    return result.stdout


def test_every_option_is_in_the_sample_under_its_group(sample: str):
    parts = re.split(r"^\[(\w+)\]$", sample, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    options = [(group, option.name) for group, listed in conf.list_opts() for option in listed]
    assert [each for each in options if f"\n#{each[1]} = " not in sections[each[0]]] == []


def test_an_option_tells_help_type_range_and_default():
    option = cfg.IntOpt("port", default=6385, min=0, max=65535, help="TCP port")
    assert list(config.described(option)) == [
        "# TCP port (integer value)",
        "# Minimum value: 0",
        "# Maximum value: 65535",
        "#port = 6385",
    ]


def test_choices_are_listed():
    option = cfg.StrOpt("synchronous", default="FULL", choices=["FULL", "NORMAL"], help="how")
    assert "# Possible values: FULL, NORMAL" in config.described(option)


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (None, "<None>"),
        (True, "true"),
        (["a", "b"], "a,b"),
        ({"a": "1", "b": "2"}, "a:1,b:2"),
        (6385, "6385"),
    ],
)
def test_defaults_are_shown_as_the_file_would_say_them(default: object, shown: str):
    assert config.shown(default) == shown


def test_the_sample_is_the_same_on_every_machine(sample: str):
    assert "\n#host = <host name of the machine>\n" in sample


def test_the_sample_can_be_used_as_it_is_and_with_every_default_uncommented(
    sample: str, tmp_path: Path
):
    path = tmp_path / "bloomery.conf"
    path.write_text(sample)
    assert conf.load([str(path)]) == conf.Conf()
    uncommented = re.sub(r"^#(\w+ = (?!<))", r"\1", sample, flags=re.MULTILINE)
    path.write_text(uncommented)
    assert conf.load([str(path)]) == conf.Conf()
