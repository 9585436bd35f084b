"""OS::Heat::None: a placeholder without effect, for any properties and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery.orchestration.resources import base


class NoneResource(base.Resource):
    """A placeholder to which an environment maps types that it leaves out."""

    ignores_properties: ClassVar[bool] = True
    dynamic_attributes: ClassVar[bool] = True

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id())

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Do nothing."""
        return

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return None
