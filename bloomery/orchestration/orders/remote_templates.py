"""Nested templates that a stack names by URL and that are not in its files.

Most clients read them and send them in ``files``.  The API fetches the others once, before the
stack is validated and stored.  They become files of the stack, so no engine fetches anything.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.fetching import FetchRefused
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.orders.fetching import Fetcher
from bloomery.orchestration.template import environment, parse

ADDRESSES: Final = ("http://", "https://")
SECTIONS: Final = ("resources", "Resources")
TYPES: Final = ("type", "Type")

Gate: TypeAlias = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedFiles:
    """``files``: given and fetched files.  ``unread``: the errors of other URLs, by URL."""

    files: Mapping[str, str]
    unread: Mapping[str, str]


def completed(
    document: Mapping[str, Any],
    environment_document: Mapping[str, Any],
    files: Mapping[str, str],
    fetcher: Fetcher,
    gate: Gate = nullcontext,
) -> CompletedFiles:
    """Fetch each template that the stack names by URL, and templates that these name in turn.

    ``gate`` is entered to parse documents, never during a fetch.  All fetches share one time-out.
    Raises RequestLimitExceeded for too many templates.
    """
    with gate():
        waiting = deque(_urls(document, environment_document, files, fetcher.limits))
    until_s = time.monotonic() + fetcher.timeout_s
    texts, unread = dict(files), dict[str, str]()
    while waiting:
        url = waiting.popleft()
        if url in texts or url in unread:
            continue
        fetched = len(texts) - len(files) + len(unread)
        if fetched >= fetcher.limits.fetched_templates:
            what = "a stack with more templates behind URLs"
            raise fetcher.limits.exceeded("fetched_templates", "templates", what)
        try:
            texts[url] = fetcher.fetch(url, until_s)
        except FetchRefused as exc:
            unread[url] = str(exc)
            continue
        with gate():
            waiting.extend(_of_text(texts[url], fetcher.limits))
    return CompletedFiles(files=texts, unread=unread)


def _urls(
    document: Mapping[str, Any],
    environment_document: Mapping[str, Any],
    files: Mapping[str, str],
    limits: Limits,
) -> Iterator[str]:
    yield from _of_document(document)
    yield from _of_registry(environment_document.get(environment.REGISTRY))
    for text in files.values():
        yield from _of_text(text, limits)


def _of_text(text: str, limits: Limits) -> Iterator[str]:
    """Yield the URLs in a text if it is a template; some files are scripts."""
    if not any(address in text for address in ADDRESSES):
        return
    if not any(section in text for section in SECTIONS):
        return
    try:
        yield from _of_document(parse.document(text, limits))
    except errors.Failure:
        return  # if a nested stack uses the file, its validation reports the error


def _of_document(document: Mapping[str, Any]) -> Iterator[str]:
    waiting = [document.get(section) for section in SECTIONS]
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, Mapping):
            yield from _addresses(tree.get(key) for key in TYPES)
            waiting.extend(tree.values())
        elif isinstance(tree, list):
            waiting.extend(tree)


def _of_registry(registry: Any) -> Iterator[str]:
    waiting = [registry]
    while waiting:
        level = waiting.pop()
        if isinstance(level, Mapping):
            yield from _addresses(level.values())
            waiting.extend(level.values())


def _addresses(values: Iterable[Any]) -> Iterator[str]:
    yield from (each for each in values if isinstance(each, str) and each.startswith(ADDRESSES))
