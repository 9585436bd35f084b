"""Where commands find the service, and how they log in."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from bloomery.cli import cloud

URL = "http://127.0.0.1:8004/v1/admin"
PLAIN = {
    "auth_type": "none",
    "auth": {"endpoint": URL},
    "baremetal_endpoint_override": "http://127.0.0.1:6385",
    "orchestration_endpoint_override": URL,
}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "OS_CLOUD", "OS_AUTH_TYPE", "OS_ENDPOINT", "OS_PASSWORD", "OS_CLIENT_CONFIG_FILE",
        "OS_CLIENT_SECURE_FILE",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def write(path: Path, clouds: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"clouds": clouds}))
    return path


def test_both_apis_are_where_clouds_yaml_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(write(tmp_path / "c", {"bloomery": PLAIN})))
    found = cloud.find(None)
    assert found.orchestration.url == URL
    assert found.extensions.url == "http://127.0.0.1:8004"
    assert found.baremetal is not None
    assert found.baremetal.url == "http://127.0.0.1:6385"


def test_without_a_word_the_state_dir_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(tmp_path / "clouds.yaml", {"other": {}})  # of those that want a cloud of theirs
    write(tmp_path / "state/bloomery/clouds.yaml", {"bloomery": PLAIN})
    assert cloud.find(None).orchestration.url == URL


def test_a_named_cloud_is_looked_for_where_openstack_does(tmp_path: Path) -> None:
    write(tmp_path / ".config/openstack/clouds.yaml", {"lab": PLAIN})
    assert cloud.find("lab").name == "lab"
    with pytest.raises(cloud.CloudNotUsable, match="has no cloud other; it has lab"):
        cloud.find("other")


def test_who_has_nothing_is_told_what_to_set() -> None:
    with pytest.raises(cloud.CloudNotUsable, match="point OS_CLIENT_CONFIG_FILE at"):
        cloud.find(None)


def test_a_login_by_name_takes_the_password_of_the_secure_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    basic = PLAIN | {"auth_type": "http_basic", "auth": {"username": "ann", "endpoint": URL}}
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(write(tmp_path / "c", {"bloomery": basic})))
    with pytest.raises(cloud.CloudNotUsable, match="a password are needed"):
        cloud.find(None)
    secure = write(tmp_path / "s", {"bloomery": {"auth": {"password": "correct horse"}}})
    monkeypatch.setenv("OS_CLIENT_SECURE_FILE", str(secure))
    settings = cloud._settings(None)
    assert cloud._login(settings).headers() == {
        "Authorization": f"Basic {base64.b64encode(b'ann:correct horse').decode()}"
    }


def test_variables_alone_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_AUTH_TYPE", "none")
    monkeypatch.setenv("OS_ENDPOINT", URL)
    assert cloud.find(None).orchestration.url == URL


def test_a_file_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").write_text("clouds: [")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "c"))
    with pytest.raises(cloud.CloudNotUsable, match="c cannot be read: ParserError"):
        cloud.find(None)
