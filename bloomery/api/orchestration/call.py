"""Requests of the orchestration API, and the URLs of stacks: /v1/{project}/stacks/{name}/{id}."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from bloomery import errors
from bloomery.api.declare import Call
from bloomery.api.orchestration import replies
from bloomery.http_server import bodies
from bloomery.model.request import Request
from bloomery.model.stack_views import StackIdentity
from bloomery.orchestration.operations import StackOperations

_JSON_TYPES: Final = ("", "application/json")
_NO_BODY: Final = (
    "cannot do this without a JSON object as body, sent with Content-Type: application/json"
)


@dataclass(slots=True, kw_only=True)
class StackCall(Call):
    """One request.  ``project``: from the path.  ``token``: of a signal, in place of a login."""

    operations: StackOperations
    request: Request
    project: str
    query_string: str
    token: str | None = None

    def link(self, *segments: str, project: str | None = None) -> str:
        """Return the URL of segments below a project, by default the caller's."""
        parts = ("v1", project or self.project, *segments)
        return "/".join((self.url, *map(quoted, parts)))

    def stack(self, name: str, uuid: str) -> StackIdentity:
        """Return the stack of this name and id in the call's project."""
        return StackIdentity(project=self.project, name=name, uuid=uuid)

    def stack_url(self, stack: StackIdentity, *segments: str) -> str:
        """Return the URL of a stack, or of a path below it."""
        return self.link("stacks", stack.name, stack.uuid, *segments, project=stack.project)

    def stack_link(self, rel: str, stack: StackIdentity) -> dict[str, str]:
        return {"href": self.stack_url(stack), "rel": rel}

    @property
    def document(self) -> dict[str, Any]:
        """Return the body.  Raises BadRequest if it is no JSON object."""
        document = self.optional_document
        if document is None:
            raise replies.BadRequest(reason=_NO_BODY)
        return document

    @property
    def optional_document(self) -> dict[str, Any] | None:
        """Return the body; as in Heat, a body that does not look like an object counts as empty.

        Raises BadRequest for a malformed object.
        """
        if not self.body.startswith(b"{") or self.content_type not in _JSON_TYPES:
            return None
        try:
            document: dict[str, Any] = bodies.parse(self.body, keeps_big_integers=True)
        except errors.Invalid as exc:
            raise replies.BadRequest(reason=str(exc)) from None
        return document


@functools.lru_cache(maxsize=1024)
def quoted(segment: str) -> str:
    """Quote a segment of a path; lists repeat a few segments in thousands of links."""
    return quote(segment, "")
