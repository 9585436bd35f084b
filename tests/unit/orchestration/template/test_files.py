from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.files import Files


def test_files_are_found_by_their_literal_names():
    files = Files.of({"./a.yaml": "x", "file:///b/a.yaml": ""})
    assert files.text("./a.yaml") == files["./a.yaml"] == "x"
    assert files.text("file:///b/a.yaml") == ""
    assert dict(files) == {"./a.yaml": "x", "file:///b/a.yaml": ""}
    assert len(files) == 2
    with pytest.raises(errors.StackValidationFailed) as refusal:
        files.text("a.yaml")
    assert str(refusal.value) == (
        "no file 'a.yaml' came with the template: send it in files. Did you mean './a.yaml'?"
    )


def test_files_may_be_left_out():
    assert dict(Files.of(None)) == dict(Files()) == dict(Files.of({})) == {}


@pytest.mark.parametrize("document", [[], "x", {"a": 5}, {"a": None}, {"a": {}}, {5: "a"}])
def test_files_that_are_no_texts_are_a_bad_request(document: Any):
    with pytest.raises(errors.TemplateUnreadable, match="must be"):
        Files.of(document)


def test_files_have_a_size_in_bytes_all_together():
    limits = Limits(files_bytes=10)
    Files.of({"a": "x" * 5, "b": "x" * 5}, limits)
    for too_much in ({"a": "x" * 5, "b": "x" * 6}, {"a": "ü" * 6}):
        with pytest.raises(errors.RequestLimitExceeded, match=r"10 bytes.*files_bytes"):
            Files.of(too_much, limits)


def test_new_files_win_over_older_ones():
    assert dict(Files({"a": "new"}).over({"a": "old", "b": "old"})) == {"a": "new", "b": "old"}


def test_files_hold_whole_characters():
    with pytest.raises(errors.TemplateUnreadable, match="half of a character: save it as UTF-8"):
        Files.of({"a": "x\ud800"})
