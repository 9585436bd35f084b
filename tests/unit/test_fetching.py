"""TLS contexts, which all who fetch share."""

from __future__ import annotations

import os
from pathlib import Path

import certifi
import pytest

from bloomery import fetching


@pytest.fixture
def trusted(tmp_path) -> dict[str, bool | str]:
    file = tmp_path / "ca.pem"
    file.write_bytes(Path(certifi.where()).read_bytes())
    folder = tmp_path / "authorities"
    folder.mkdir()
    return {"system": True, "nobody": False, "file": str(file), "folder": str(folder)}


@pytest.mark.parametrize("kind", ["system", "nobody", "file", "folder"])
def test_a_context_is_shared_by_all_that_trust_the_same(trusted, kind):
    context = fetching.tls_context(trusted[kind])
    assert fetching.tls_context(trusted[kind]) is context
    others = [fetching.tls_context(each) for name, each in trusted.items() if name != kind]
    assert all(other is not context for other in others)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_changed_certificates_are_read_again(trusted, kind):
    context = fetching.tls_context(trusted[kind])
    os.utime(trusted[kind], ns=(1, 1))
    assert fetching.tls_context(trusted[kind]) is not context


def test_a_path_without_certificates_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        fetching.tls_context(str(tmp_path / "nowhere.pem"))
