"""Collect the files that a template names, as Heat's client does before it sends a stack.

A template names files by ``get_file``, and by a ``type`` that ends in .yaml or .template; an
environment by its resource registry.  Each name is relative to the document that has it.  The
document is rewritten to the key under which the file is sent: its path relative to the working
directory, or its URL.  A file that cannot be read is left out, with its reason in ``unread``: the
validation of the template reports where it is needed.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parse

NESTED: Final = (".yaml", ".template")
FETCH_TIMEOUT_S: Final = 60  # Heat: template_fetch_timeout
STANDARD_INPUT: Final = "-"


class FileBundle:
    """Documents and the files they name.  ``files`` is the request's value of that key."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.files: dict[str, str] = {}
        self.reading = ""  # the document that was requested last
        self.texts: dict[str, str] = {}  # original documents, before they are rewritten
        self.verbatim: dict[str, str] = {}  # the texts of templates that are sent as they are
        self.unread: dict[str, str] = {}  # why a file is missing, by its key

    def template(self, path: str) -> dict[str, Any]:
        """Return the template at ``path``, rewritten; add the files that it names to ``files``."""
        document = self.document(path)
        rewritten = self._rewritten(document, path)
        if rewritten == document:
            self.verbatim[path] = self.texts[path]
        return rewritten

    def document(self, path: str) -> dict[str, Any]:
        """Return the document at ``path`` as it is."""
        self.reading = path
        return parse.document(self._must_read(path), self.limits, path)

    def environment(self, path: str) -> dict[str, Any]:
        """Return the environment at ``path``, its registry rewritten."""
        self.reading = path
        text = self._must_read(path)
        document = parse.document(text, self.limits, path, may_be_empty=True)
        registry = document.get("resource_registry")
        if isinstance(registry, dict):
            document["resource_registry"] = self._registry(registry, path)
        return document

    # -------------------------------------------------------------------------------- documents

    def _rewritten(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        return {
            section: self._tree(body, path, types=section in {"resources", "Resources"})
            for section, body in document.items()
        }

    def _tree(self, tree: Any, path: str, *, types: bool) -> Any:
        if isinstance(tree, list):
            return [self._tree(item, path, types=types) for item in tree]
        if not isinstance(tree, dict):
            return tree
        rewritten = {}
        for key, value in tree.items():
            rewritten[key] = value
            if not isinstance(value, str):
                rewritten[key] = self._tree(value, path, types=types)
            elif key == "get_file" and len(tree) == 1:
                rewritten[key] = beside(value, path)
                self._take(rewritten[key])
            elif types and key in {"type", "Type"} and value.endswith(NESTED):
                rewritten[key] = self._nested(value, path)
        return rewritten

    def _registry(self, registry: dict[str, Any], path: str) -> dict[str, Any]:
        return {
            name: self._registry(target, path)
            if isinstance(target, dict)
            else self._nested(target, path)
            if isinstance(target, str) and target.endswith(NESTED)
            else target
            for name, target in registry.items()
        }

    # ------------------------------------------------------------------------------------ files

    def _nested(self, name: str, named_in: str) -> str:
        """Add a nested template and the files that it names in turn, once."""
        key = beside(name, named_in)
        if key not in self.files and self._take(key):
            try:
                document = parse.document(self.files[key], self.limits, key)
            except errors.Failure:
                return key  # the validation of the nested stack reports the fault
            rewritten = self._rewritten(document, key)
            self.texts[key] = self.files[key]
            if rewritten != document:
                self.files[key] = json.dumps(rewritten)
        return key

    def _take(self, key: str) -> bool:
        if key in self.files:
            return True
        try:
            self.files[key] = read(key, self.limits).decode()
        except (OSError, ValueError) as exc:
            self.unread[key] = why(exc)
            return False
        return True

    def _must_read(self, path: str) -> bytes:
        try:
            content = read(path, self.limits, any_kind=True)
        except (OSError, ValueError) as exc:
            reason = f"cannot read {path or repr(path)}: {why(exc)}"
            raise errors.TemplateUnreadable(reason=reason) from exc
        self.texts[path] = content.decode(errors="replace")
        return content


def beside(name: str, named_in: str) -> str:
    """Return the key of ``name`` in the document ``named_in``."""
    if is_url(name):
        return local(name) if name.startswith("file:") else name
    if is_url(named_in):
        return urllib.parse.urljoin(named_in, name)
    return display_path(Path(named_in).parent / name)


def is_url(name: str) -> bool:
    return name.startswith(("http://", "https://", "file:"))


def local(url: str) -> str:
    return display_path(Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)))


def display_path(path: Path) -> str:
    """Return the path as a user would type it: relative below the working directory."""
    whole = Path(os.path.normpath(Path.cwd() / path))
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)


def read(key: str, limits: Limits, *, any_kind: bool = False) -> bytes:
    """Return the content of a path or URL.  Raises OSError, ValueError.

    ``any_kind``: of file, such as a shell's pipe, and ``-`` for standard input; a template names
    plain files only.
    """
    most = limits.result_chars
    if key.startswith(("http://", "https://")):
        try:
            # scheme is checked
            with urllib.request.urlopen(key, timeout=FETCH_TIMEOUT_S) as answer:  # noqa: S310
                content = answer.read(most + 1)
        except http.client.HTTPException as exc:
            raise ValueError(str(exc) or type(exc).__name__) from exc
    elif any_kind and key == STANDARD_INPUT:
        content = sys.stdin.buffer.read(most + 1)
    else:
        path = Path(local(key) if key.startswith("file:") else key)
        if path.exists() and not path.is_file() and not any_kind:
            raise ValueError("it is no file")
        with path.open("rb") as source:
            content = source.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most} bytes (result_chars)")
    return content


def why(exc: Exception) -> str:
    """Describe why a file could not be read, without Python's class names."""
    if isinstance(exc, UnicodeDecodeError):
        return "it is not UTF-8; save it as UTF-8"
    if isinstance(exc, UnicodeEncodeError):
        return "write what is not ASCII in a URL as %XX"
    if isinstance(exc, urllib.error.HTTPError):
        return f"the server answers {exc.code} {exc.reason}"
    cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    return str(getattr(cause, "strerror", None) or cause)
