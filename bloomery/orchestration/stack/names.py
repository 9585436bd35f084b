"""What a stack may be called: the pattern is on the wire, clients test for it too."""

from __future__ import annotations

import re
from typing import Any, Final

from bloomery import errors

NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


def check_name(name: Any) -> None:
    """Raise StackValidationFailed unless ``name`` can be that of a stack which a user makes."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return
    raise errors.StackValidationFailed(
        reason=f"Invalid stack name {str(name)[:300]!r}: it must begin with a letter, go on with"
        " letters, digits, _ . and -, and have at most 255 characters"
    )
