"""``run NEW --from OLD``: a stack is created from OLD and updated to NEW, and all is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kit.clients.templates import Command, written

HEAD = "heat_template_version: 2021-04-16\n"
OLD = HEAD + (
    "parameters: {size: {type: number, default: 8}}\n"
    "resources:\n"
    "  a: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}\n"
    "  b: {type: OS::Heat::Value, properties: {value: 1}}\n"
    "outputs: {v: {value: {get_attr: [a, value]}}}\n"
)
NEW = OLD.replace("value: 1", "value: 2").replace("default: 8", "default: 12")


def test_both_halves_are_shown(here: Path, typed: Command) -> None:
    written(here, old__yaml=OLD, new__yaml=NEW)
    done = typed("run", "new.yaml", "--from", "old.yaml")
    assert done.exit_code == 0
    created, updated = done.stdout.split("update to new.yaml:")
    assert "CREATE_COMPLETE: Stack CREATE completed successfully" in created
    assert "The Resource a requires replacement." in updated
    assert updated.rstrip().endswith("UPDATE_COMPLETE: Stack UPDATE completed successfully")


def test_programs_read_how_it_ended(here: Path, document: Callable[..., Any]) -> None:
    written(here, old__yaml=OLD, new__yaml=NEW)
    told = document("run", "new.yaml", "--from", "old.yaml", "--new-parameter", "size=20")
    assert (told["status"], told["error"]) == ("UPDATE_COMPLETE", None)
    assert len(told["outputs"]["v"]["value"]) == 20


def test_update_that_fails_is_rolled_back_if_asked(here: Path, typed: Command) -> None:
    failing = OLD.replace("OS::Heat::Value, properties: {value: 1}",
                          "OS::Heat::TestResource, properties: {fail: true}")  # fmt: skip
    written(here, old__yaml=OLD, new__yaml=failing)
    done = typed("run", "new.yaml", "--from", "old.yaml", "--rollback")
    assert done.exit_code == 1
    assert "UPDATE_FAILED" in done.stdout
    assert "ROLLBACK_COMPLETE" in done.stdout


def test_creation_that_fails_is_followed_by_no_update(here: Path, typed: Command) -> None:
    failing = HEAD + "resources: {a: {type: OS::Heat::TestResource, properties: {fail: true}}}\n"
    written(here, old__yaml=failing, new__yaml=NEW)
    done = typed("run", "new.yaml", "--from", "old.yaml")
    assert done.exit_code == 1
    assert "UPDATE" not in done.stdout


def test_fault_of_either_is_told_before_anything_is_done(here: Path, typed: Command) -> None:
    written(here, good__yaml=OLD, bad__yaml=HEAD + "resurces: {}\n")
    for old, new in (("bad.yaml", "good.yaml"), ("good.yaml", "bad.yaml")):
        done = typed("run", new, "--from", old)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("bad.yaml:2: StackValidationFailed: ")


def test_immutable_parameter_is_refused_before_anything_is_done(here: Path, typed: Command) -> None:
    fixed = OLD.replace("default: 8", "default: 8, immutable: true")
    written(here, t__yaml=fixed)
    done = typed("run", "t.yaml", "--from", "t.yaml", "--new-parameter", "size=9")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "immutable" in done.stderr
