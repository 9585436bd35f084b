"""What the pages name is there: files, links, make targets, commands, options, metrics."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from bloomery import conf, metrics, plugins
from bloomery.cli.main import COMMANDS, main
from bloomery.objects import payloads
from bloomery.operations import policy_rules
from bloomery.orchestration.template import kinds

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "tools/reference_pages.py"
GAUGES = ROOT / "bloomery/cmd/gauges.py"
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
ROOMS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "build")
PLACEHOLDER = re.compile(r"[A-Z]{4,}")  # NOUN, NAME, NNNN: for the reader to fill in
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def code(page: Path) -> Iterator[str]:
    """What a page shows as code: spans, indented lines and fenced blocks, line by line."""
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()
        else:
            yield from re.findall(r"`([^`]+)`", line)


def paths(page: Path) -> Iterator[str]:
    for said in code(page):
        for found in re.findall(r"(?<![\w./$:-])(\w[\w-]*(?:/[\w.-]+)+)", said):
            first = found.split("/")[0]
            is_ours = first in ROOMS or (ROOT / "bloomery" / first).is_dir()
            if is_ours and not PLACEHOLDER.search(found):
                yield found


def bare_files(page: Path) -> Iterator[str]:
    """Files of ours that a page names without their folder."""
    for said in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
        if re.fullmatch(r"[a-z]\w*\.py", said):
            yield said


def words_after(page: Path, program: str) -> Iterator[list[str]]:
    """The words behind each call of ``program`` in the page's code."""
    for said in code(page):
        found = re.match(rf"(?:\$ )?(?:\.venv/bin/)?{program}\s+(.+)", said)
        if found:
            yield found[1].split()


@pytest.fixture(scope="module")
def reference_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_pages", GENERATOR)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Markdown's tools make them."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", line.lower()).replace(" ", "-") for line in lines}


@every_page
def test_links_lead_to_headings(page: Path):
    for link, anchor in re.findall(
        r"\]\(([^)#:]*\.md|)#([^)]+)\)", page.read_text(encoding="utf-8")
    ):
        target = page.parent / link if link else page
        if target.exists():  # the others are generated
            assert anchor in headings(target), f"{link}#{anchor}"


@every_page
def test_local_links_lead_somewhere(page: Path, reference_pages: ModuleType):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            target = page.parent / link
            assert target.exists() or target.stem in reference_pages.PAGES, link


@every_page
def test_paths_that_are_named_exist(page: Path):
    for path in paths(page):
        assert (ROOT / path).exists() or (ROOT / "bloomery" / path).exists(), path


@every_page
def test_tests_that_are_named_exist(page: Path):
    """A page may name the test that shows a claim: ``PATH::NAME``."""
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"


@every_page
def test_files_that_are_named_without_their_folder_exist(page: Path):
    rooms = [ROOT / name for name in ROOMS if not name.startswith((".", "build"))]
    there = {path.name for room in rooms for path in room.rglob("*.py")}
    assert set(bare_files(page)) <= there


def test_every_room_of_the_map_is_there():
    text = (ROOT / "doc/explanation/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \|", text.split("## Where things live")[1], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 15
    assert [name for name in named if not (ROOT / "bloomery" / name).exists()] == []


@every_page
def test_make_targets_that_are_named_exist(page: Path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for words in words_after(page, "make"):
        assert words[0] in targets, words


@every_page
def test_commands_that_are_named_exist_with_their_options(page: Path):
    for words in words_after(page, "bloomery"):
        command: click.Command = main
        context = click.Context(main)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words.pop(0))
            assert found is not None, words
            command = found
        known = {name for parameter in command.params for name in parameter.opts} | {"--version"}
        assert {word for word in words if word.startswith("--")} <= known, words


@every_page
def test_options_that_are_named_exist(page: Path):
    known = {(group, option.name) for group, options in conf.list_opts() for option in options}
    named = re.findall(r"`\[([\w]+)\]([a-z_]+)", page.read_text(encoding="utf-8"))
    assert set(named) <= known


def test_time_outs_and_limits_are_options():
    page = (ROOT / "doc/guides/configure.md").read_text(encoding="utf-8")
    table = page.split("## Time-outs and limits")[1].split("\n## ")[0]
    known = {option.name for option in dict(conf.list_opts())["conductor"]}
    named = {
        name
        for row in re.findall(r"^\|.*\|(.*)\|$", table, re.MULTILINE)
        for name in re.findall(r"`([a-z_]+)`", row)
    }
    assert len(named) > 15
    assert named <= known


def test_generated_pages_name_every_declaration(reference_pages: ModuleType):
    written = {name: "\n".join(lines()) for name, lines in reference_pages.PAGES.items()}
    declared = {
        "options": [f"`{each.name}`" for _, options in conf.list_opts() for each in options],
        "policies": [f"`{rule.name}`" for rule in policy_rules.RULES],
        "metrics": [f"`bloomery_{name}_" for name in metrics.DECLARED]
        + [f"`bloomery_{name}`" for name in re.findall(r'Gauge\(\s*"(\w+)"', GAUGES.read_text())],
        "notifications": [f"`{name}`" for name in payloads.PAYLOADS],
        "causes": [
            f"`{rule.code}`"
            for table in reference_pages.CAUSES.values()
            for rule in table
            if rule.code.isidentifier()
        ],
        "commands": [f"## bloomery {name}" for name in COMMANDS],
        "properties": [f"## {name}" for name in plugins.loaders(kinds.GROUP)],
    }
    for page, names in declared.items():
        assert [name for name in names if name not in written[page]] == [], page
