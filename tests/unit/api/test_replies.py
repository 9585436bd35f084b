from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest

from bloomery.api import replies
from bloomery.api.orchestration import replies as stack_replies


@pytest.mark.parametrize("document", [replies.document, stack_replies.document])
@pytest.mark.parametrize("status", [HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.NOT_FOUND])
def test_the_status_line_has_the_words_of_http(document: Callable[..., Any], status: HTTPStatus):
    assert document({}, int(status)).status == f"{status} {status.phrase}"
