"""Password files, and the header that brings a login."""

from __future__ import annotations

import base64

import pytest

from bloomery import errors, htpasswd


@pytest.mark.parametrize("login", ["", "Bearer x"])
def test_no_login_is_told_from_one_that_is_malformed(login):
    with pytest.raises(htpasswd.Unauthorized):
        htpasswd.credentials(login)


@pytest.mark.parametrize("login", ["Basic ?", "Basic " + base64.b64encode(b"no colon").decode()])
def test_what_is_no_login_is_told_apart(login):
    with pytest.raises(htpasswd.Malformed):
        htpasswd.credentials(login)


def test_a_file_of_no_use_names_its_option(tmp_path):
    with pytest.raises(errors.CannotStart, match=r"\[json_rpc\]http_basic_auth_user_file"):
        htpasswd.PasswordFile(tmp_path / "gone", "[json_rpc]http_basic_auth_user_file")
