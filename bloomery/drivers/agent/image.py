"""The image that an agent writes: the checks of ``instance_info``, and the command's parameters.

The agent downloads the image from ``image_source`` and writes it to the whole disk.  Source of the
names: Ironic's instance_info, and ironic-python-agent's prepare_image.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask

Json = dict[str, Any]

FORMATS: Final = ("raw", "qcow2")
_DIGITS: Final = {"md5": 32, "sha256": 64, "sha512": 128}  # of a checksum, in hexadecimal
_ALGORITHMS: Final = ", ".join(_DIGITS)
_PROXIES: Final = {"http": "image_http_proxy", "https": "image_https_proxy"}
_NO_PROXY: Final = "image_no_proxy"
PROPERTIES: Final = {
    _PROXIES["http"]: "URL of the proxy by which agents fetch images of http. Optional.",
    _PROXIES["https"]: "URL of the proxy by which agents fetch images of https. Optional.",
    _NO_PROXY: "Hosts, with commas between them, that agents reach without a proxy. Optional.",
}
_HINTS: Final = frozenset(
    {
        "by_path", "hctl", "model", "name", "rotational", "serial", "size", "vendor", "wwn",
        "wwn_vendor_extension", "wwn_with_extension",
    },
)  # fmt: skip


def check(task: DriverTask, conf: Conf) -> None:
    """Raise unless an agent can write the image of the node's instance_info.

    Raises MissingParameterValue, InvalidParameterValue.
    """
    info = task.opened(task.node.instance_info)
    _check_source(info.get("image_source"))
    _check_kind(info)
    _check_download(info, task.driver_info)
    _check_format(info.get("image_disk_format"))
    _check_checksum(info, conf)
    for where in (task.node.properties, info):
        _check_hints(where.get("root_device"))
    for name in _PROXIES.values():
        if task.driver_info.get(name) is not None:
            _check_url(f"driver_info/{name}", task.driver_info[name])


def parameters(task: DriverTask, conf: Conf) -> Json:
    """Return the parameters of prepare_image: the image, and the config drive if any."""
    info = task.opened(task.node.instance_info)
    source = str(info["image_source"])
    image = {
        "id": urllib.parse.urlsplit(source).path.rpartition("/")[2] or source,
        "urls": [source],
        "container_format": "bare",
        "disk_format": info.get("image_disk_format"),
        "image_type": "whole-disk-image",
        "stream_raw_images": conf.agent.stream_raw_images,
        "node_uuid": task.node.uuid,
    }
    image |= _checksums(info) | _proxies(task.driver_info) | _login(conf)
    drive = info.get("configdrive")
    return {"image_info": image} | ({"configdrive": drive} if drive else {})


def _checksums(info: Mapping[str, Any]) -> Json:
    names = {
        "image_checksum": "checksum", "image_os_hash_algo": "os_hash_algo",
        "image_os_hash_value": "os_hash_value",
    }  # fmt: skip
    return {theirs: info[ours] for ours, theirs in names.items() if info.get(ours)}


def _proxies(driver_info: Mapping[str, Any]) -> Json:
    proxies = {scheme: driver_info[n] for scheme, n in _PROXIES.items() if driver_info.get(n)}
    if not proxies:
        return {}
    no_proxy = driver_info.get(_NO_PROXY)
    return {"proxies": proxies} | ({"no_proxy": no_proxy} if no_proxy else {})


def _login(conf: Conf) -> Json:
    """Return the login for the image server, if it needs one."""
    if conf.deploy.image_server_auth_strategy == "noauth":
        return {}
    names = ("image_server_auth_strategy", "image_server_user", "image_server_password")
    return {name: getattr(conf.deploy, name) for name in names}


# ------------------------------------------------------------------------------------- checks


def _check_source(source: Any) -> None:
    if source is None:
        raise errors.MissingParameterValue(
            reason="instance_info/image_source is missing: the URL of a whole-disk image "
            f"({', '.join(FORMATS)})",
        )
    _check_url("instance_info/image_source", source)


def _check_kind(info: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for a partition image, which would need a boot loader."""
    is_partition = str(info.get("image_type") or "").startswith("partition")
    named = ["image_type"] if is_partition else [n for n in ("kernel", "ramdisk") if info.get(n)]
    if named:
        raise errors.InvalidParameterValue(
            reason=f"instance_info/{named[0]} means an image of a partition, and only images of "
            "whole disks are written: name one, and take image_type, kernel and ramdisk away",
        )


def _check_download(*where: Mapping[str, Any]) -> None:
    source = next((w["image_download_source"] for w in where if w.get("image_download_source")),
                  "http")  # fmt: skip
    if source != "http":
        raise errors.InvalidParameterValue(
            reason=f"image_download_source {source!r} is not offered: agents fetch images "
            "themselves (http); set it so, or take it away",
        )


def _check_format(name: Any) -> None:
    if name is not None and name not in FORMATS:
        raise errors.InvalidParameterValue(
            reason=f"instance_info/image_disk_format takes {' or '.join(FORMATS)}, not {name!r}",
        )


def _check_checksum(info: Mapping[str, Any], conf: Conf) -> None:
    """Raise unless the image has a usable checksum."""
    checksum = info.get("image_checksum")
    algorithm, value = info.get("image_os_hash_algo"), info.get("image_os_hash_value")
    if checksum is None and (algorithm is None or value is None):
        raise errors.MissingParameterValue(
            reason="the image has no checksum: set instance_info/image_checksum, or "
            "image_os_hash_algo and image_os_hash_value",
        )
    if algorithm is not None and algorithm not in _DIGITS:
        raise errors.InvalidParameterValue(
            reason=f"instance_info/image_os_hash_algo takes one of {_ALGORITHMS}, not "
            f"{algorithm!r}",
        )
    if checksum is not None:
        _check_digits("image_checksum", checksum, None, conf)
    if value is not None:
        _check_digits("image_os_hash_value", value, algorithm, conf)


def _check_digits(name: str, text: Any, algorithm: str | None, conf: Conf) -> None:
    """Raise unless ``text`` is a checksum or the URL of a checksum file."""
    if isinstance(text, str) and "://" in text:
        _check_url(f"instance_info/{name}", text)
        return
    is_hex = isinstance(text, str) and not set(text.lower()) - set("0123456789abcdef")
    named = {a for a, digits in _DIGITS.items() if is_hex and len(text) == digits}
    if not named or (algorithm is not None and algorithm not in named):
        raise errors.InvalidParameterValue(
            reason=f"instance_info/{name} takes the hexadecimal digits of "
            f"{algorithm or _ALGORITHMS}, or the URL of a file of checksums",
        )
    if "md5" in named and not conf.agent.allow_md5_checksum:
        raise errors.InvalidParameterValue(
            reason=f"instance_info/{name} is an MD5 checksum, and [agent]allow_md5_checksum is "
            "false: take sha256 or sha512",
        )


def _check_hints(hints: Any) -> None:
    if hints is None:
        return
    unknown = sorted(set(hints) - _HINTS) if isinstance(hints, dict) else [str(hints)]
    if unknown:
        raise errors.InvalidParameterValue(
            reason=f"root_device takes an object with {', '.join(sorted(_HINTS))}, not "
            f"{', '.join(unknown)}",
        )


def _check_url(name: str, url: Any) -> None:
    try:
        parts = urllib.parse.urlsplit(url) if isinstance(url, str) else None
        fine = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine:
        shown = secrets.mask_address(url) if isinstance(url, str) else url
        raise errors.InvalidParameterValue(
            reason=f"{name} must be an http or https URL that the agent can fetch, not {shown!r}: "
            "images of Glance, of files and of registries are not written",
        )
