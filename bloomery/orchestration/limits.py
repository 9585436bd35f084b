"""The limits of templates and stacks: one table, with a test that exceeds each row.

Parsers and template functions take a ``Limits``; an installation may raise a row, and benchmarks
do.  A document over a limit raises RequestLimitExceeded, or StackValidationFailed where a function
knows its place in the template.

Rows in ``_s`` are seconds of processor time, so that other work on the machine refuses no template.
These rows stop hostile templates; the counts are meant for legitimate ones.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bloomery import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    template_bytes: int = 524_288  # one document as text (Heat: max_template_size)
    document_depth: int = 100  # maps and lists inside each other
    document_nodes: int = 200_000  # keys and values after aliases are followed
    scalar_digits: int = 100  # of a number in a document or a parameter
    environment_files: int = 100  # merged into one environment
    environment_bytes: int = 2_097_152  # of all these files together
    files_bytes: int = 10_485_760  # of all files that come with a template
    fetched_templates: int = 20  # that the service fetches from URLs for one stack
    type_chars: int = 255  # length of a resource type in a resource_registry
    registry_names: int = 30  # types in one chain of rules of a resource_registry
    registry_patterns: int = 500  # of resource names in one resource_registry
    resources: int = 1_000  # of a stack with all its nested ones (max_resources_per_stack); -1: any
    group_machines: int = 2_000  # of one group of machines (max_machines_per_group); -1: any
    nested_depth: int = 5  # stacks inside stacks (max_nested_stack_depth)
    condition_depth: int = 30  # length of a chain of conditions that refer to each other
    result_nodes: int = 1_000_000  # keys and values that one function may produce
    result_chars: int = 10_000_000  # length of a text that one function may produce
    stack_nodes: int = 2_000_000  # keys and values that all resources of a tree hold together
    stack_chars: int = 20_000_000  # length of the text that they hold together
    replaced_chars: int = 500_000_000  # length of a text times the placeholders sought in it
    url_chars: int = 65_536  # length of the parts of a make_url
    pattern_chars: int = 1_000  # length of a regular expression
    pattern_text_chars: int = 1_000_000  # length of a text that is matched
    pattern_s: float = 0.5  # time for one match of a regular expression
    custom_text_chars: int = 10_000  # length of a text that a custom constraint looks at
    yaql_chars: int = 10_000  # length of a yaql expression
    yaql_elements: int = 200  # taken from any one iterator (Heat: limit_iterators)
    yaql_bytes: int = 10_000  # held by one expression (Heat: memory_quota)
    yaql_calls: int = 40_000  # of functions, operators and lambdas, by one expression
    yaql_s: float = 10.0  # time for one expression, where each call takes long
    validation_s: float = 30.0  # time of the processor for one stack with all its nested ones

    def exceeded(self, option: str, unit: str, what: str) -> errors.RequestLimitExceeded:
        """Return the error that ``what`` exceeds the limit ``option``, counted in ``unit``."""
        most = getattr(self, option)
        return errors.RequestLimitExceeded(what=what, limit=most, unit=unit, option=option)


LIMITS: Final = Limits()


class Deadline:
    """The processor time of one validation, of a stack and its nested stacks together.

    Each function has limits of its own, but a template has room for thousands of functions.
    """

    __slots__ = ("_limits", "_until")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._until = math.inf

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start the deadline for the block; a block inside another keeps the outer deadline."""
        outer = self._until
        self._until = min(outer, time.thread_time() + self._limits.validation_s)
        try:
            yield
        finally:
            self._until = outer

    def tick(self) -> None:
        """Raise RequestLimitExceeded when the time is over."""
        if self._until < math.inf and time.thread_time() > self._until:
            raise self._limits.exceeded("validation_s", "seconds", "a template that takes so long")
