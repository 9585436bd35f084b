"""Validate policy files before oslo.policy reads them.

oslo.policy turns a malformed check into "!" and continues: a misspelt rule would lock callers out
silently.  Here one error refuses the whole file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

Check = str | list[Any]  # a check, or the old list form: any of lists of all

_WORDS: Final = ("and", "or", "not")
_EXAMPLE: Final = '"NAME": "CHECK", as in "show_password": "user_id:ann"'


class Unusable(ValueError):
    """A sentence with the file, the line where known, the fault, and the remedy."""


def read(files: Sequence[Path]) -> dict[str, Check]:
    """Return the checks of all files by rule; later files win.  Raises Unusable."""
    rules: dict[str, Check] = {}
    for path in files:
        import yaml

        try:
            text = path.read_text()
            of_file = yaml.safe_load(text)
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except OSError as exc:
            advice = f"{exc.strerror}; make it readable, or move it away"
            raise _unusable(path, None, advice) from exc
        except (yaml.YAMLError, ValueError) as exc:
            mark = getattr(exc, "problem_mark", None)
            problem = getattr(exc, "problem", None) or str(exc).splitlines()[0]
            advice = f"it is not YAML ({problem}); write {_EXAMPLE}"
            raise _unusable(path, mark and mark.line + 1, advice) from exc
        if of_file is None:
            continue
        if not isinstance(of_file, dict):
            raise _unusable(path, root.start_mark.line + 1, f"there is no rule; write {_EXAMPLE}")
        lines = {key.value: key.start_mark.line + 1 for key, _ in root.value}
        for name, check in of_file.items():
            if fault := _fault(name, check):
                advice = f"{fault}; mend it, or take the rule out"
                raise _unusable(path, lines.get(str(name)), advice)
        rules.update(of_file)
    return rules


def _unusable(path: Path, line: int | None, problem: str) -> Unusable:
    place = "" if line is None else f", line {line}"
    return Unusable(f"cannot use the policy file {path}{place}: {problem}")


def _fault(name: object, check: object) -> str | None:
    """Return the fault of a rule, or None."""
    if not isinstance(name, str):
        return f"the name of a rule must be text, not {name!r}"
    if isinstance(check, str):
        problem = _fault_of_words(_atoms(check)) or _fault_of_order(check)
    elif isinstance(check, list) and all(isinstance(atom, str) for atom in _listed(check)):
        problem = _fault_of_words(_listed(check))
    else:
        return f"the check of rule {name!r} must be text in quotes, not {check!r}"
    return problem and f"rule {name!r} is {check!r}, where {problem}"


def _atoms(check: str) -> list[str]:
    """Return the comparisons in a check, without operators and brackets."""
    bare = (word.lstrip("(") for word in check.split())
    return [word.rstrip(")") for word in bare if word and word.lower() not in _WORDS]


def _listed(check: list[Any]) -> list[Any]:
    """Return the comparisons in a check of the list form."""
    return [atom for some in check for atom in (some if isinstance(some, list) else [some])]


def _fault_of_words(atoms: Sequence[str]) -> str | None:
    for atom in atoms:
        if atom in {"", "!", "@"}:
            continue
        _, colon, match = atom.partition(":")
        if not colon:
            return f"{atom!r} is no comparison like role:admin"
        try:
            match % defaultdict(str)
        except (TypeError, ValueError):
            return f"{atom!r} has a % that does not begin %(NAME)s"
    return None


def _fault_of_order(check: str) -> str | None:
    from oslo_policy import _parser

    if not check:
        return None  # always true
    state = _parser.ParseState()
    for token in _parser._parse_tokenize(check):  # noqa: SLF001  parse_rule hides the fault
        state.shift(token)
    try:
        state.result  # noqa: B018  a property that raises
    except ValueError:
        return "brackets, 'and', 'or' and 'not' do not fit together"
    return None


def references(check: Check) -> Iterator[str]:
    """Yield the names of the rules that a check refers to."""
    for atom in _atoms(check) if isinstance(check, str) else _listed(check):
        if atom.startswith("rule:"):
            yield atom.removeprefix("rule:")


def effective(rules: Mapping[str, Check], checked: Sequence[str]) -> set[str]:
    """Return all rules that take effect through the rules ``checked``.

    oslo.policy replaces a missing referenced rule by the rule "default".
    """
    names: set[str] = set()
    pending = list(checked)
    while pending:
        name = pending.pop()
        name = name if name in rules else "default"
        if name not in names:
            names.add(name)
            pending += references(rules.get(name, ""))
    return names
