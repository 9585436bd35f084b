"""What strangers made: files and other services.  A command ends with a sentence, and soon."""

from __future__ import annotations

import csv
import ipaddress
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery.cli import client as cli_client
from bloomery.cli import terminal
from bloomery.cli.client import ApiError, Client
from bloomery.cli.discover import Bmc, Pace, Prober, csv_row, find
from bloomery.cli.enrol import records
from bloomery.cli.imports import site
from bloomery.cli.main import main
from tests.kit.servers import web
from tests.unit.test_parsing import DEEP, bomb

# ----------------------------------------------------------------------------------------- files

DEEP_LISTS, DEEP_MAPS = "[" * DEEP, '{"a":' * DEEP
TEXTS = {"deep lists": DEEP_LISTS, "deep maps": DEEP_MAPS, "aliases": bomb(10)}
COMMANDS = {
    "enrol of YAML": ("f.yaml", "enrol {file}"),
    "enrol of JSON": ("f.json", "enrol {file}"),
    "template validate": ("f.yaml", "template validate {file}"),
    "node check-erasure": ("f.json", "node check-erasure {file} --public-key {file}"),
    "import": ("f.yaml", "import ironic --from x --secrets {file}"),
    "lab": ("f.yaml", "lab --scenario {file}"),
}


@pytest.mark.parametrize(("name", "command"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_file_of_any_depth_is_refused_in_a_sentence(tmp_path, monkeypatch, name, command, text):
    file = tmp_path / name
    file.write_text(text)
    with web.serving_by(web.text(NOTHING, Content_Type="application/json")) as server:
        monkeypatch.setenv("OS_ENDPOINT", server.url(""))
        monkeypatch.setenv("OS_AUTH_TYPE", "none")
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds(tmp_path, server.url(""))))
        ended = CliRunner().invoke(main, command.format(file=file).split())
    assert ended.exit_code in (1, 2), ended.output
    assert isinstance(ended.exception, SystemExit), ended.exception
    assert 0 < len(ended.output) < 2000


NOTHING = json.dumps({name: [] for name in (
    "nodes", "ports", "drivers", *(noun.list_name for noun in site.NOUNS.values()),
)})  # fmt: skip


def clouds(folder: Path, url: str) -> Path:
    path = folder / "clouds.yaml"
    cloud = {"auth_type": "none", "baremetal_endpoint_override": url}
    path.write_text(json.dumps({"clouds": {"x": cloud, "bloomery": cloud}}))
    return path


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_clouds_of_any_depth_are_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "clouds.yaml"
    path.write_text(text)
    env = {"OS_CLIENT_CONFIG_FILE": str(path), "OS_CLOUD": "x"}
    ended = CliRunner(env=env).invoke(main, ["node", "list"])
    assert ended.exit_code in (1, 2), ended.output
    assert isinstance(ended.exception, SystemExit), ended.exception


def test_heading_of_a_thousand_dots_is_refused(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text(f"name,extra{'.a' * 1000}\nn1,x\n")
    with pytest.raises(records.FileUnreadable, match="dots"):
        records.read(file)


# ------------------------------------------------------------------------------------------ BMCs


@pytest.mark.parametrize("body", TEXTS.values(), ids=TEXTS)
def test_one_hostile_host_does_not_end_a_search(body):
    with web.serving_by(web.text(body[:65_000])) as server:
        prober = Prober(
            redfish_port=server.port, timeout_s=10, pace=Pace(every_s=0), ipmi_port=9
        )  # fmt: skip
        assert list(find([ipaddress.ip_address("127.0.0.1")], prober)) == []


FORMULAS = ("=WEBSERVICE(E2)", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text):
    assert terminal.csv_cell(text) == f"'{text}"
    vendor = terminal.visible(text)
    line = csv_row(Bmc(name="n", driver="redfish", bmc="https://h", vendor=vendor, product=""))
    cells = next(csv.reader([line]))
    assert cells[-2] == terminal.csv_cell(vendor)


def test_every_writer_of_csv_guards_its_cells():
    package = Path(cli_client.__file__).parent.parent
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    writers = [text for text in texts if "csv.writer(" in text]
    assert len(writers) == sum("csv_cell" in text for text in writers) > 1


# -------------------------------------------------------------------------------- other services


class Old(Client):
    """An older service that answers each list with what ``answer`` returns."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://old.test")
        self.answer, self.asked = answer, 0

    def latest(self) -> Client:
        return self

    def get(self, path: str) -> Any:
        self.asked += 1
        noun = path.partition("?")[0].rpartition("/")[2]
        return self.answer(noun, self.asked)


NODE = {
    "uuid": "u", "name": None, "driver": "x", "driver_info": {}, "instance_info": {},
    "provision_state": "active", "reservation": None, "maintenance": False,
    "maintenance_reason": None,
}  # fmt: skip


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in NODE.items() if key != name}


ANSWERS = {
    "a next that never ends": lambda noun, _: {noun: [NODE], "next": "x"},
    "an empty page with a next": lambda noun, _: {noun: [], "next": "x"},
    "pages in a circle": lambda noun, n: {noun: [NODE | {"uuid": f"u{n % 3}"}], "next": "x"},
    "no list": lambda *_: {"error": "x"},
    "a text": lambda *_: "hello",
    "nothing": lambda *_: None,
    "null as the list": lambda noun, _: {noun: None},
    "a map as the list": lambda noun, _: {noun: {"a": 1}},
    "texts as nodes": lambda noun, _: {noun: ["a"]},
    "a number as the UUID": lambda noun, _: {noun: [NODE | {"uuid": 7}]},
    "a list as driver_info": lambda noun, _: {noun: [NODE | {"driver_info": []}]},
    **{f"nodes without {name}": lambda noun, _, name=name: {noun: [without(name)]}
       for name in NODE},
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_old_side_is_not_believed(answer):
    old = Old(answer)
    with pytest.raises(ApiError, match=r"cannot use the answer at http://old\.test/v1/nodes"):
        site.read(old)
    assert old.asked < 10


def test_list_without_an_end_is_ended(monkeypatch):
    monkeypatch.setattr(cli_client, "MOST_RECORDS", 50)
    numbers = itertools.count()
    old = Old(lambda noun, _: {noun: [NODE | {"uuid": f"u{next(numbers)}"}], "next": "x"})
    with pytest.raises(ApiError, match="do not end, after 51 nodes"):
        list(old.pages("/v1/nodes?limit=1", "nodes"))


BODIES = {
    "more than its share": json.dumps({"a": "x" * 2000}),
    "deep": DEEP_LISTS[:900],
    "no JSON": "<html>",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("status", [200, 400])
def test_answer_is_bounded(monkeypatch, body, status):
    monkeypatch.setattr(cli_client, "MOST_BYTES", 1000)
    monkeypatch.setattr(cli_client, "_MOST_FAULT", 1000)
    with web.serving_by(web.text(body, status, Content_Type="application/json")) as server:
        with pytest.raises(ApiError) as refused:
            Client(server.url("")).get("/v1/nodes")
        assert len(str(refused.value)) < 1200
