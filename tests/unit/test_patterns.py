from __future__ import annotations

import re
import warnings

import pytest

from bloomery import errors, patterns
from bloomery.orchestration import limits
from tests.kit import work

LIMITS = limits.LIMITS

SAME_AS_RE = [
    ("[a-z]{3}", "abc"),
    ("[a-z]{3}", "abcd"),
    ("a|ab", "ab"),
    ("(?i)ABC", "abc"),
    ("(?:a|b)+", "abba"),
    ("(?P<x>a)(?P=x)", "aa"),
    ("(a)?(?(1)b|c)", "ab"),
    ("(?#why)a", "a"),
    ("(?=a)a(?!b)", "a"),
    ("(?i:A)b", "ab"),
    ("a{e}", "a{e}"),
    ("a{e}", "b"),
    ("a{,3}", "aa"),
    ("a{2,}", "aaa"),
    ("a{", "a{"),
    ("{a}", "{a}"),
    ("a{}", "a{}"),
    ("[[a]", "["),
    ("[]a]", "]"),
    ("[^]a]", "b"),
    ("[[:alpha:]]", "x"),
    ("[[:alpha:]]", ":]"),
    ("[a&&b]", "&"),
    ("[a||b]", "a"),
    ("[+--]", ","),
    (r"[\]a]+", "]a"),
    (r"\d+\.\d+", "1.5"),
    (r"\x41\u0042", "AB"),
    (r"\{a\}", "{a}"),
    ("\0", "\0"),
    ("", ""),
    ("(?>a+)b", "aab"),
    ("a++b", "aab"),
    ("(?s).", "\n"),
    ("(?a:\\w)", "ü"),
]


@pytest.mark.parametrize(("pattern", "text"), SAME_AS_RE)
def test_a_pattern_means_what_it_means_in_re(pattern, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of re: nested sets, later
        expected = re.fullmatch(pattern, text) is not None
    assert patterns.fullmatch(pattern, text, LIMITS) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "[a",
        "(a",
        "a)",
        "*a",
        "a{2}{3}",
        r"\p{L}",
        r"[\p{L}]",
        r"\X",
        "\\",
        "(?R)",
        "(?1)",
        "(?&x)",
        "(?P>x)",
        "(?|a)",
        "(?V1)a",
        "(?x) a",
        "(?<x>a)",
        "(*FAIL)",
        "(?(?=a)b|c)",
        r"\N{NO SUCH NAME}",
        "a{99999999999999}",
        "(" * 450 + "a" + ")" * 450,
    ],
)
def test_a_pattern_that_re_does_not_know_is_refused(pattern):
    assert "cannot use the regular expression" in str(patterns.refusal(pattern, LIMITS))
    with pytest.raises(errors.StackValidationFailed):
        patterns.fullmatch(pattern, "a", LIMITS)


def test_a_good_pattern_is_not_refused():
    assert patterns.refusal("[a-z]+", LIMITS) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "((a?){1000}){1000}",
        "a{1000000}",
        "(?:(?:(?:a{99}){99}){99}){99}",
        "(a{9999}|b{9999})c{9}" * 2,
    ],
)
def test_counted_repeats_that_multiply_are_refused_before_they_are_built(pattern):
    reasons: list[str | None] = []
    assert work.calls(lambda: reasons.append(patterns.refusal(pattern, LIMITS))) < 1_000
    assert "counted repeats" in str(reasons[0])


@pytest.mark.parametrize("pattern", ["a{0,65535}", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"])
def test_counted_repeats_of_use_are_taken(pattern):
    assert patterns.refusal(pattern, LIMITS) is None


@pytest.mark.parametrize("pattern", ["(?:.*?,){12}P", "(?:.*?b){9}P"])
def test_a_match_that_does_not_end_is_ended(pattern):
    bounds = limits.Limits(pattern_s=0.05)
    with pytest.raises(errors.StackValidationFailed, match="longer than"):
        patterns.fullmatch(pattern, "ab," * 100_000 + "e", bounds)


def test_pattern_and_text_have_their_lengths():
    patterns.fullmatch("a" * 1000, "a", LIMITS)
    with pytest.raises(errors.StackValidationFailed, match="1000 characters"):
        patterns.fullmatch("a" * 1001, "a", LIMITS)
    with pytest.raises(errors.StackValidationFailed, match="10 characters"):
        patterns.fullmatch("a*", "a" * 11, limits.Limits(pattern_text_chars=10))


def test_a_match_that_other_threads_left_no_time_begins_again():
    timeouts_s: list[float] = []

    def use(_pattern: object, timeout_s: float) -> str:
        timeouts_s.append(timeout_s)
        if len(timeouts_s) < 3:
            raise TimeoutError  # and this thread has done nothing
        return "matched"

    bounds = limits.Limits(pattern_s=1.0)
    assert patterns.bounded("a", "a", bounds, use) == "matched"
    assert timeouts_s == [1.0, 2.0, 4.0]
