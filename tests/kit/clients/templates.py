"""Names for tests of ``bloomery template``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from click.testing import Result

Command = Callable[..., Result]
EXAMPLES: Final = Path(__file__).parents[3] / "examples"


def written(folder: Path, **texts: str) -> None:
    """Write files; ``__`` in a name stands for the dot."""
    for name, text in texts.items():
        folder.joinpath(name.replace("__", ".")).write_text(text, encoding="utf-8")
