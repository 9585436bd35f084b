"""The image that an agent writes: the checks of ``instance_info``, and the command's parameters.

The agent downloads the image from ``image_source``, or from the conductor, and writes it to the
whole disk or to a root partition that it makes, beside those for swap and ephemeral data.

Source of the names: Ironic's instance_info, and ironic-python-agent's prepare_image.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors, fetching, parsing, secrets
from bloomery.conf import Conf
from bloomery.drivers.agent import image_format, oci, raid
from bloomery.drivers.agent_boot import sources
from bloomery.drivers.base import DriverTask
from bloomery.model import architectures, capabilities

Json = dict[str, Any]

FORMATS: Final = ("raw", "qcow2")  # that agents write
HTTP, LOCAL = "http", "local"
ROOT_UUID: Final = "image_rootfs_uuid"  # in instance_info: of the image's root file system
DIGITS: Final = {"md5": 32, "sha256": 64, "sha512": 128}  # of a checksum, in hexadecimal
_ALGORITHMS: Final = ", ".join(DIGITS)
_PROXIES: Final = {"http": "image_http_proxy", "https": "image_https_proxy"}
_NO_PROXY: Final = "image_no_proxy"
_DOWNLOAD_SOURCE: Final = "image_download_source"
PROPERTIES: Final = {
    _PROXIES["http"]: "URL of the proxy by which agents fetch images of http. Optional.",
    _PROXIES["https"]: "URL of the proxy by which agents fetch images of https. Optional.",
    _NO_PROXY: "Hosts, with commas between them, that agents reach without a proxy. Optional.",
    _DOWNLOAD_SOURCE: "http: the agent fetches the image; local: the conductor. instance_info "
    "overrides it; unset: [agent]image_download_source. Optional.",
    oci.PULL_SECRET: "Login at the container registry of images, as auth in Docker's config.json; "
    "instance_info overrides it; unset: [oci]authentication_config. Optional.",
}
_NETBOOT: Final = ("kernel", "ramdisk")  # of a boot over the network, which is not offered
_SIZES: Final = {"root_gb": 1, "swap_mb": 0, "ephemeral_gb": 0}  # name: least
_CHOICES: Final = {"boot_option": ("local",), "disk_label": ("gpt", "msdos")}
_EPHEMERAL_FORMAT: Final = "ext4"
_CHECKSUMS: Final = {  # in instance_info, and in the command
    "image_checksum": "checksum", "image_os_hash_algo": "os_hash_algo",
    "image_os_hash_value": "os_hash_value",
}  # fmt: skip
_LOGIN: Final = ("image_server_auth_strategy", "image_server_user", "image_server_password")
_MIB_OF_GIB: Final = 1024
_HINTS: Final = frozenset(
    {
        "by_path", "hctl", "model", "name", "rotational", "serial", "size", "vendor", "wwn",
        "wwn_vendor_extension", "wwn_with_extension",
    },
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An image at an address of the conductor; without ``sha256`` it is as instance_info says."""

    url: str
    disk_format: str | None = None
    sha256: str | None = None


def is_partition(info: Mapping[str, Any]) -> bool:
    """Return whether an instance_info names the image of a root partition.

    ``image_type`` decides; without it, a kernel or a ramdisk means a partition, as in Ironic.
    """
    kind = info.get("image_type")
    return str(kind).startswith("partition") if kind else any(map(info.get, _NETBOOT))


def boot_mode(task: DriverTask, conf: Conf) -> str:
    """Return the requested boot mode, else the current one, else the default."""
    node = task.node
    requested = capabilities.boot_mode(node.instance_info, node.properties)
    is_arm = architectures.of(node.properties) == architectures.AARCH64
    return requested or node.boot_mode or ("uefi" if is_arm else conf.deploy.default_boot_mode)


def check(task: DriverTask, conf: Conf) -> None:
    """Raise unless an agent can write the image of the node's instance_info.

    Raises MissingParameterValue, InvalidParameterValue.
    """
    info = task.opened(task.node.instance_info)
    _check_source(info.get("image_source"), conf)
    if is_oci(info["image_source"]):
        registry = oci.parse(info["image_source"]).registry
        oci.login_of(conf.oci, registry, pull_secret(task))
    if is_partition(info):
        _check_partitions(info)
    # The agent would have to run the GRUB of the image.  Without the option it writes the image,
    # and then fails, with UEFI as well as with BIOS.
    on_mirror = raid.is_on_software_raid(task) and boot_mode(task, conf) == "bios"
    needs_loader = is_partition(info) or (on_mirror and info.get(ROOT_UUID))
    if needs_loader and not conf.agent.enable_bios_bootloader_install:
        raise errors.InvalidParameterValue(
            reason="an image of a partition, or of software RAID in boot mode bios, gets its boot "
            "loader from the agent: set [agent]enable_bios_bootloader_install = true, or take an "
            "image of a whole disk in boot mode uefi",
        )
    name, source = info.get("image_disk_format"), download_source(task, conf)
    formats = image_format.FORMATS if source == LOCAL else FORMATS
    if name is not None and name not in formats:
        raise errors.InvalidParameterValue(
            reason=f"instance_info/image_disk_format takes {' or '.join(formats)}, not {name!r}"
            + (f"; image_download_source = {LOCAL} takes {', '.join(image_format.CONVERTED)}, too"
               if source == HTTP else ""),
        )  # fmt: skip
    if source == LOCAL and image_format.is_converted(name, conf.default):
        image_format.check_tool()
    _check_checksum(info, conf)
    check_root_device(task.node.properties, info)
    for key in _PROXIES.values():
        if task.driver_info.get(key) is not None:
            _check_url(f"driver_info/{key}", task.driver_info[key])


def check_root_device(properties: Mapping[str, Any], info: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for hints of a node or an instance that no agent knows."""
    for hints in (properties.get("root_device"), info.get("root_device")):
        unknown = sorted(set(hints) - _HINTS) if isinstance(hints, dict) else [str(hints)]
        if hints is not None and unknown:
            raise errors.InvalidParameterValue(
                reason=f"root_device takes an object with {', '.join(sorted(_HINTS))}, not "
                f"{', '.join(unknown)}",
            )


def download_source(task: DriverTask, conf: Conf) -> str:
    """Return who fetches the image: HTTP, the agent, or LOCAL, the conductor.

    The conductor fetches those of registries in any case.  Raises InvalidParameterValue.
    """
    where = (task.node.instance_info, task.driver_info)
    named = (info[_DOWNLOAD_SOURCE] for info in where if info.get(_DOWNLOAD_SOURCE))
    source: str = next(named, conf.agent.image_download_source)
    if source not in (HTTP, LOCAL):
        raise errors.InvalidParameterValue(
            reason=f"image_download_source {source!r} is not offered: set it to {HTTP}, where the "
            f"agent fetches the image, or to {LOCAL}, where the conductor does",
        )
    is_in_registry = is_oci(task.opened(task.node.instance_info).get("image_source"))
    return LOCAL if is_in_registry else source


def is_oci(source: Any) -> bool:
    """Return whether an image is in a container registry."""
    return isinstance(source, str) and source.startswith(oci.SCHEME)


def pull_secret(task: DriverTask) -> str | None:
    """Return the node's login at the registry of its image."""
    info = task.opened(task.node.instance_info)
    secret = info.get(oci.PULL_SECRET) or task.driver_info.get(oci.PULL_SECRET)
    return None if secret is None else str(secret)


def wish_of(task: DriverTask, disk_format: str | None) -> oci.Wish:
    """Return what the node needs of a registry."""
    arch = architectures.of(task.node.properties)
    return oci.Wish(arch=arch, disk_format=disk_format, secret=pull_secret(task))


def has_proxy(task: DriverTask, url: str) -> bool:
    """Return whether the node's agent reaches a URL by a proxy of its own."""
    name = _PROXIES.get(urllib.parse.urlsplit(url).scheme)
    return name is not None and task.driver_info.get(name) is not None


def parameters(task: DriverTask, conf: Conf, published: Published | None = None) -> Json:
    """Return the parameters of prepare_image: the image, and the config drive if any.

    ``published``: the image that the conductor hands out, if it does.
    """
    info = task.opened(task.node.instance_info)
    source = str(info["image_source"])
    if published is not None and published.sha256 is not None:
        info = info | {
            "image_disk_format": published.disk_format, "image_checksum": None,
            "image_os_hash_algo": "sha256", "image_os_hash_value": published.sha256,
        }  # fmt: skip
    image = {
        "id": name_of(source),
        "urls": [published.url if published else source],
        "container_format": "bare",
        "disk_format": info.get("image_disk_format"),
        "image_type": "whole-disk-image",
        "stream_raw_images": conf.agent.stream_raw_images,
        "node_uuid": task.node.uuid,
    }
    image |= {theirs: info[ours] for ours, theirs in _CHECKSUMS.items() if info.get(ours)}
    own = task.driver_info
    if proxies := {scheme: own[name] for scheme, name in _PROXIES.items() if own.get(name)}:
        image["proxies"] = proxies
        if own.get(_NO_PROXY):
            image["no_proxy"] = own[_NO_PROXY]
    if published is None and conf.deploy.image_server_auth_strategy != "noauth":
        image |= {name: getattr(conf.deploy, name) for name in _LOGIN}
    drive = info.get("configdrive")
    if is_partition(info):
        mode = boot_mode(task, conf)
        label = capabilities.of(info).get("disk_label") or ("gpt" if mode == "uefi" else "msdos")
        root_gb, ephemeral_gb = int(info["root_gb"]), int(info.get("ephemeral_gb") or 0)
        image |= {
            "image_type": "partition", "root_gb": root_gb, "root_mb": root_gb * _MIB_OF_GIB,
            "swap_mb": int(info.get("swap_mb") or 0), "ephemeral_mb": ephemeral_gb * _MIB_OF_GIB,
            "ephemeral_format": info.get("ephemeral_format") or _EPHEMERAL_FORMAT,
            "preserve_ephemeral": False, "boot_option": "local", "deploy_boot_mode": mode,
            "disk_label": label, "configdrive": drive,
        }  # fmt: skip
    return {"image_info": image} | ({"configdrive": drive} if drive else {})


def name_of(source: str) -> str:
    """Return the file name of an image."""
    return urllib.parse.urlsplit(source).path.rpartition("/")[2] or source


# ------------------------------------------------------------------------------------- checks


def _check_source(source: Any, conf: Conf) -> None:
    if source is None:
        raise errors.MissingParameterValue(
            reason="instance_info/image_source is missing: the URL of an image "
            f"({', '.join(FORMATS)})",
        )
    if is_oci(source):
        return
    if not str(source).startswith("file://"):
        _check_url("instance_info/image_source", source)
        return
    sources.check_url("image_source", source, conf.conductor.file_url_allowed_paths)
    path = sources.local_path(source)
    if path is None or not path.is_file():
        raise errors.InvalidParameterValue(
            reason=f"image_source names {path}, which is no file on this conductor's host",
        )


def _check_partitions(info: Mapping[str, Any]) -> None:
    """Raise unless the agent can make the partitions."""
    if info.get("root_gb") is None:
        raise errors.MissingParameterValue(
            reason="instance_info/root_gb is missing: the GiB of the root partition for the image; "
            "an image of a whole disk needs image_type = whole-disk, without kernel and ramdisk",
        )
    for name, least in _SIZES.items():
        size = info.get(name)
        if size is not None and (not str(size).isdecimal() or int(size) < least):
            raise errors.InvalidParameterValue(
                reason=f"instance_info/{name} takes a whole number from {least} on, not {size!r}",
            )
    if parsing.boolean(info.get("preserve_ephemeral")):
        raise errors.InvalidParameterValue(
            reason="instance_info/preserve_ephemeral is not offered: all partitions are made anew",
        )
    if not str(info.get("ephemeral_format") or _EPHEMERAL_FORMAT).isalnum():
        raise errors.InvalidParameterValue(
            reason="instance_info/ephemeral_format takes the name of a file system, such as "
            f"{_EPHEMERAL_FORMAT}",
        )
    for name, values in _CHOICES.items():
        value = capabilities.of(info).get(name)
        if value is not None and value not in values:
            raise errors.InvalidParameterValue(
                reason=f"the capability {name} of an image of a partition takes "
                f"{' or '.join(values)}, not {value!r}",
            )


def _check_checksum(info: Mapping[str, Any], conf: Conf) -> None:
    """Raise unless the image has a usable checksum."""
    checksum = info.get("image_checksum")
    algorithm, value = info.get("image_os_hash_algo"), info.get("image_os_hash_value")
    is_missing = checksum is None and (algorithm is None or value is None)
    if is_missing and not is_oci(info["image_source"]):  # a digest names those of registries
        raise errors.MissingParameterValue(
            reason="the image has no checksum: set instance_info/image_checksum, or "
            "image_os_hash_algo and image_os_hash_value",
        )
    if algorithm is not None and algorithm not in DIGITS:
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
    named = {a for a, digits in DIGITS.items() if is_hex and len(text) == digits}
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


def _check_url(name: str, url: Any) -> None:
    if not fetching.is_http(url):
        address = secrets.mask_address(url) if isinstance(url, str) else url
        raise errors.InvalidParameterValue(
            reason=f"{name} must be an http or https URL, not {address!r}; an image may also be at "
            "a URL of file or oci, and images of Glance are not written",
        )
