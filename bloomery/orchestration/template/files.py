"""The files that come with a template, by the literal names that templates and environments use.

A name appears in ``get_file``, as a type that ends with .yaml or .template, as the target of a
registry rule, or in ``environment_files``.  Clients turn relative paths into URLs in both places
before they send them, so the service compares names as text and never resolves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits


class Files(Mapping[str, str]):
    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = texts or {}

    @classmethod
    def of(cls, document: Any, limits: Limits = LIMITS) -> Files:
        """Check ``files`` of a request: a map of texts, or nothing."""
        if document is None:
            return cls()
        if not isinstance(document, Mapping):
            raise _fault("files must be a map from names to texts")
        size = 0
        for name, text in document.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise _fault(f"the file {str(name)[:100]!r} must be text")
            size += _bytes(name, text)
            if size > limits.files_bytes:
                raise limits.exceeded("files_bytes", "bytes", "the files of a template")
        return cls(document)

    def text(self, name: str) -> str:
        """Return one file.  Raises StackValidationFailed if it did not come with the template."""
        if (text := self._texts.get(name)) is None:
            near = errors.nearest(name, self._texts)
            raise errors.StackValidationFailed(
                reason=f"no file {name!r} came with the template: send it in files.{near}"
            )
        return text

    def over(self, older: Mapping[str, str]) -> Files:
        """Return these files over the ``older`` ones, as PATCH does."""
        return Files({**older, **self._texts})

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _bytes(name: str, text: str) -> int:
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as exc:
        raise _fault(
            f"the file {name[:100]!r} holds half of a character: save it as UTF-8"
        ) from exc


def _fault(reason: str) -> errors.TemplateUnreadable:
    return errors.TemplateUnreadable(reason=reason)
