"""From a document to the YAML that a person would write: keys in order, texts of lines as blocks.

``parse.document`` reads the text back to the same document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

_TEXT: Final = "tag:yaml.org,2002:str"


class _Writer(yaml.CSafeDumper):  # type: ignore[misc]  # libyaml's has no types
    def ignore_aliases(self, data: Any) -> bool:
        return True  # an alias would stand for a value that is written twice


def _text(writer: _Writer, value: str) -> yaml.ScalarNode:
    return writer.represent_scalar(_TEXT, value, style="|" if "\n" in value else None)


_Writer.add_representer(str, _text)


def text(document: Mapping[str, Any]) -> str:
    """Return the document as YAML."""
    written: str = yaml.dump(
        dict(document), Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100
    )
    return written
