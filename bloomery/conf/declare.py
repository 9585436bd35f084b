"""Declaration of an option group as a frozen dataclass, and its oslo.config options.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Api:
        max_limit: int = option(1000, "most items on one page of a list", least=1)

The field's type selects the option's type; ``read`` returns an instance.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections import ChainMap
from pathlib import Path
from typing import Any

from oslo_config import cfg, types

_TYPES: dict[Any, Any] = {  # by annotation, whose evaluation costs as much as all the rest
    "str": cfg.StrOpt,
    "str | None": cfg.StrOpt,
    "bool": cfg.BoolOpt,
    "int": cfg.IntOpt,
    "int | None": cfg.IntOpt,
    "float": cfg.FloatOpt,
    "tuple[str, ...]": cfg.ListOpt,
    "dict[str, str]": cfg.DictOpt,
}
_REFERENCES = ("file", "credential")
_CREDENTIALS = "CREDENTIALS_DIRECTORY"  # set by systemd
_BOUNDED = (cfg.IntOpt, cfg.FloatOpt)


def option(
    default: Any,
    help_: str,
    *,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] | None = None,
    secret: bool = False,
    sample: str | None = None,
    default_from: str | None = None,
    in_default: str | None = None,
    repeats: bool = False,
) -> Any:
    """Declare one option: default, help with unit, and range; ``secret``: it may be a reference.

    ``sample``: the default in words, where it depends on the machine.  ``default_from``: the option
    of the group whose value is the default.  ``in_default``: Heat's name of the option in
    [DEFAULT], which is read as well.  ``repeats``: each line of a file adds to the list or
    mapping, and commas separate no texts of a list.
    """
    facts = {
        "help": help_, "min": least, "max": most, "choices": choices, "secret": secret,
        "sample": sample, "default_from": default_from, "in_default": in_default,
        "repeats": repeats,
    }  # fmt: skip
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def options(declared: type[Any]) -> list[cfg.Opt]:
    """Return the oslo.config options of ``declared``."""
    opts = []
    for field in dataclasses.fields(declared):
        facts, kind = field.metadata, _TYPES[field.type]
        more: dict[str, Any] = {
            "help": facts["help"], "secret": facts["secret"], "sample_default": facts["sample"],
        }  # fmt: skip
        if facts["repeats"]:
            item = types.Dict() if kind is cfg.DictOpt else types.String()
            kind = functools.partial(cfg.MultiOpt, item_type=item)
        if facts["in_default"]:
            more["deprecated_opts"] = [cfg.DeprecatedOpt(facts["in_default"], group="DEFAULT")]
        if kind in _BOUNDED:
            more |= {"min": facts["min"], "max": facts["max"]}
        if facts["choices"]:
            more["choices"] = list(facts["choices"])
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        elif isinstance(default, tuple):
            default = list(default)
        if facts["default_from"]:
            default = f"${facts['default_from']}"
        opts.append(kind(field.name, default=default, **more))
    return opts


def read(declared: type[Any], group: Any) -> Any:
    """Return the values of a group as an instance of ``declared``.

    Raises a ValueError that names every option with an invalid value.
    """
    values, faults = {}, []
    for field in dataclasses.fields(declared):
        try:
            value = _value(group, field.name)
            value = tuple(value) if isinstance(value, list) else value
            if field.metadata["repeats"]:
                lines = [line for line in value if line]
                is_mapping = field.default_factory is not dataclasses.MISSING
                value = dict(ChainMap(*reversed(lines))) if is_mapping else tuple(lines)
            is_reference = field.metadata["secret"] and isinstance(value, str)
            values[field.name] = referred(field.name, value) if is_reference else value
        except ValueError as exc:
            faults.append(str(exc))
    if faults:
        raise ValueError("; ".join(faults))
    return declared(**values)


def referred(name: str, value: str) -> str:
    """Return the value of a secret option; ``file:`` and ``credential:`` name its source.

    ``file:PATH`` is a file's content without the end of its line, ``credential:NAME`` that of a
    credential of systemd.  Raises ValueError.
    """
    kind, _, place = value.partition(":")
    if kind not in _REFERENCES or not place:
        return value
    path = Path(place)
    if kind == "credential":
        folder = os.environ.get(_CREDENTIALS)
        if folder is None:
            raise ValueError(
                f"option {name}: there is no credential {place}: systemd has given none; write "
                f"LoadCredential={place}:PATH into the unit"
            )
        path = Path(folder, place)
    try:
        return path.read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is no text"
        raise ValueError(f"option {name}: cannot read {path}: {reason}") from exc


def _value(group: Any, name: str) -> Any:
    try:
        return getattr(group, name)
    except (cfg.Error, RecursionError) as exc:
        if isinstance(exc, ValueError):  # names the option itself
            raise
        cause: BaseException = exc
        while cause.__context__ is not None:
            cause = cause.__context__
        reason = f"its value refers by $ to what is not there: {cause}"
        if isinstance(cause, RecursionError):
            reason = "its value refers to itself by $"
        raise ValueError(f"option {name}: {reason}; write $$ for a dollar sign") from exc
