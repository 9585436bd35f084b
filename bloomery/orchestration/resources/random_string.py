"""OS::Heat::RandomString: a text drawn from the system's random source, kept as a secret."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from bloomery import errors
from bloomery.orchestration.properties import constraints, translation
from bloomery.orchestration.properties.schema import Attribute, Schema, Status, Support, Type
from bloomery.orchestration.resources import base

CLASSES: Final = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}
LONGEST: Final = 512
VALUE: Final = "value"

T = TypeVar("T")


def _at_least() -> Schema:
    return Schema(
        Type.INTEGER,
        "The minimum number of these characters in the text.",
        default=1,
        constraints=[constraints.Range(min=1, max=LONGEST)],
    )


class RandomString(base.Resource):
    """A random text; each change of a property replaces it."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "length": Schema(
            Type.INTEGER, "Length of the text.", default=32,
            constraints=[constraints.Range(min=1, max=LONGEST)],
        ),
        "character_classes": Schema(
            Type.LIST, "Classes of characters to draw from.", default=[{"class": "lettersdigits"}],
            schema=Schema(
                Type.MAP, schema={
                    "class": Schema(
                        Type.STRING, "The name of the character class.", default="lettersdigits",
                        constraints=[constraints.AllowedValues(list(CLASSES))],
                    ),
                    "min": _at_least(),
                },
            ),
        ),
        "character_sequences": Schema(
            Type.LIST, "Sequences of characters to draw from.", schema=Schema(
                Type.MAP, schema={
                    "sequence": Schema(Type.STRING, "Characters of the sequence.", required=True),
                    "min": _at_least(),
                },
            ),
        ),
        "sequence": Schema(
            Type.STRING, "A class of characters, the old spelling of character_classes.",
            constraints=[constraints.AllowedValues(list(CLASSES))],
            support=Support(status=Status.HIDDEN, message="Use property character_classes."),
        ),
        "salt": Schema(Type.STRING, "Any text; a change creates a new random text."),
    }  # fmt: skip
    translation_rules: ClassVar[Sequence[translation.Rule]] = (
        translation.Add(
            ("character_classes",), source=("sequence",),
            element=lambda name: {"class": name, "min": 1},
        ),
    )  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        VALUE: Attribute("The random text.", Type.STRING),
    }

    def validate(self) -> None:
        least = sum(count for _, count in self._sources())
        length = self.properties["length"]
        if length and least > length:
            raise errors.StackValidationFailed(
                reason=f"cannot put {least} characters, the sum of all min, into a text of length "
                f"{length}; raise length or lower min"
            )
        if any(not characters for characters, _ in self._sources()):
            raise errors.StackValidationFailed(
                reason="cannot draw from an empty sequence; name at least one character"
            )

    def handle_create(self) -> Any:
        random = self.context.random
        sources = list(self._sources())
        self.record.redacted.add(VALUE)
        self.record.data[VALUE] = draw(sources, self.properties["length"], random)
        self.resource_id_set(self.physical_resource_name())

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        super().handle_adopt(data)
        self.record.redacted.add(VALUE)

    def get_reference_id(self) -> Any:
        return self.record.name if self.record.physical_id is None else self.record.data.get(VALUE)

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self.record.data.get(VALUE) if name == VALUE else None

    def _sources(self) -> Iterator[tuple[str, int]]:
        """Yield each alphabet with the least number of its characters.

        Validation may not know all values yet: their entries are left out.
        """
        for entry in self.properties["character_classes"] or ():
            if isinstance(entry, Mapping) and str(entry["class"]) in CLASSES:
                yield CLASSES[entry["class"]], entry["min"] or 0
        for entry in self.properties["character_sequences"] or ():
            if isinstance(entry, Mapping) and isinstance(entry["sequence"], str):
                yield entry["sequence"], entry["min"] or 0


def draw(sources: Sequence[tuple[str, int]], length: int, random: Callable[[], float]) -> str:
    """Draw the least number from each source, then any up to ``length``, and shuffle them."""
    characters = [choose(alphabet, random) for alphabet, least in sources for _ in range(least)]
    anywhere = [alphabet for alphabet, _ in sources] or [CLASSES["lettersdigits"]]
    while len(characters) < length:
        characters.append(choose(choose(anywhere, random), random))
    return "".join(shuffle(characters, random))


def choose(items: Sequence[T], random: Callable[[], float]) -> T:
    return items[int(random() * len(items))]


def shuffle(items: list[T], random: Callable[[], float]) -> list[T]:
    for last in range(len(items) - 1, 0, -1):
        other = int(random() * (last + 1))
        items[last], items[other] = items[other], items[last]
    return items
