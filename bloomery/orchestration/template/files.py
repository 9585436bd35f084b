"""The files that come with a template, by the literal names that templates and environments use.

A name appears in ``get_file``, as a type that ends with .yaml or .template, as the target of a
registry rule, or in ``environment_files``.  Clients turn relative paths into URLs in both places
before they send them, so the service compares names as text and never resolves them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parse

VERSION_KEYS: Final = ("heat_template_version", "TemplateFormatVersion")
HIDDEN_KEYS: Final = ("hidden", "NoEcho")


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
            try:
                size += len(text) if text.isascii() else len(text.encode())
            except UnicodeEncodeError as exc:
                raise _fault(
                    f"the file {name[:100]!r} holds half of a character: save it as UTF-8"
                ) from exc
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


def declarations(
    texts: Mapping[str, str], limits: Limits = LIMITS
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and body of each parameter that a template among the files declares.

    Skip a file that cannot be parsed: if a stack uses it, reading it fails there.
    """
    for text in texts.values():
        if any(key in text for key in VERSION_KEYS):  # most files are scripts: do not read those
            try:
                document = parse.document(text, limits)
            except errors.Failure:
                continue
            yield from declared(document)


def declared(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and body of each parameter that a template declares, unchecked."""
    section = document.get("parameters", document.get("Parameters"))
    for name, body in section.items() if isinstance(section, dict) else ():
        if isinstance(body, dict):
            yield name, body


def hidden_in(
    texts: Mapping[str, str], names: Collection[str], limits: Limits = LIMITS
) -> frozenset[str]:
    """Return those of ``names`` that a template among the files declares as hidden."""
    suspects = {
        file: text
        for file, text in texts.items()
        if any(key in text for key in HIDDEN_KEYS) and any(name in text for name in names)
    }
    return frozenset(
        name
        for name, body in declarations(suspects, limits)
        if name in names and (body.get("hidden") or str(body.get("NoEcho")).lower() == "true")
    )


def _fault(reason: str) -> errors.TemplateUnreadable:
    return errors.TemplateUnreadable(reason=reason)
