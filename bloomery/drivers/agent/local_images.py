"""Images that the conductor fetches, checks and hands out to agents.

    images.publish(task)    # the address for the agent; BeingFetched while another node fetches

The cache keeps an image as the agent gets it.  The note beside the file has the checksums of the
source (``digests``), its format, and the checksum and the format of the file.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import urllib3

from bloomery import boot_files, errors, secrets
from bloomery.conf import Conf
from bloomery.drivers import autodetect
from bloomery.drivers.agent import image, image_format, oci
from bloomery.drivers.agent_boot import cache, http_client, sources
from bloomery.drivers.agent_boot.cache import FileCache, MakeRoom, Treatment
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.drivers.agent_boot.publication import Publication
from bloomery.drivers.base import DriverTask, RemoteFile

Json = dict[str, Any]

_MIB: Final = 1 << 20
_PIECE: Final = 1 << 20
_MOST_CHECKSUMS: Final = 1 << 20  # bytes of a checksum file
_BSD: Final = re.compile(r"[\w/-]+ ?\((?P<name>.+)\) ?= ?(?P<digest>[0-9a-f]+)", re.IGNORECASE)
_COREUTILS: Final = re.compile(r"(?P<digest>[0-9a-f]+)(?:\s+\*?(?P<name>.+))?", re.IGNORECASE)
_MOST_S: Final = 7200.0  # of a download


class LocalImages:
    def __init__(self, conf: Conf, publication: Publication) -> None:
        """Raises CannotStart for unusable options."""
        self._conf, self._publication = conf, publication
        self._client = HttpClient(conf.default, keeps_scheme=True)
        self._allows_md5 = conf.agent.allow_md5_checksum
        pxe = conf.pxe
        cache_conf = cache.CacheConf(
            folder=pxe.instance_master_path, path_option="[pxe]instance_master_path",
            size_mib=pxe.image_cache_size, size_option="[pxe]image_cache_size",
            ttl_min=pxe.image_cache_ttl, most_bytes=pxe.image_cache_size * _MIB, most_s=_MOST_S,
            at_once=conf.default.image_download_concurrency,
            allowed=conf.conductor.file_url_allowed_paths,
        )  # fmt: skip
        self._cache = FileCache(cache_conf, self._client)
        self._registries = oci.Registries(conf.oci, self._client)

    def remote_files(self, task: DriverTask) -> list[RemoteFile]:
        """Return the node's image and its file of checksums, unless a proxy leads to them."""
        info = task.opened(task.node.instance_info)
        keys = ("image_checksum", "image_os_hash_value")
        urls = {key: str(info[key]) for key in keys if "://" in str(info.get(key))}
        reads: dict[str, Callable[[HttpClient], object]] = dict.fromkeys(
            urls, functools.partial(_named_checksums, info, allows_md5=self._allows_md5)
        )
        urls = {"image_source": str(info["image_source"])} | urls
        if image.is_oci(urls["image_source"]):
            wish = image.wish_of(task, info.get("image_disk_format"))
            takes_both = autodetect.is_asked(task.node)

            def look(client: HttpClient) -> str:
                kind = oci.Registries(self._conf.oci, client).look(urls["image_source"], wish)
                if kind == oci.CONTAINER and not takes_both:
                    raise errors.StepFailure(
                        reason="it is a container, which deploy interface bootc installs, and no "
                        "image of a disk",
                    )
                return kind

            reads["image_source"] = look
        fetches = image.download_source(task, self._conf) == image.LOCAL
        return [
            RemoteFile(name=f"instance_info/{key}", url=url, headers=self._login(url),
                       read=reads.get(key))
            for key, url in urls.items()
            if fetches or not image.has_proxy(task, url)
        ]  # fmt: skip

    def publish(self, task: DriverTask) -> image.Published:
        """Publish the node's image.  Raises StepFailure, BeingFetched."""
        from bloomery.drivers.agent_boot import machine_code  # late: no start boots a machine

        info = task.opened(task.node.instance_info)
        url, format_named = str(info["image_source"]), info.get("image_disk_format")
        local = sources.open_local(url, self._conf.conductor.file_url_allowed_paths)
        if local is not None:
            with local:
                if not self._is_converted(_header(sources.path_of(local), format_named).format):
                    return self._publish_open(task, local)
        digests: tuple[str, ...] = ()  # SHA-256 that a registry names
        headers = self._login(url)
        if image.is_oci(url):
            blob = self._registries.find(url, image.wish_of(task, format_named))
            url, headers, digests = blob.url, blob.headers, (blob.sha256,)

        @functools.cache
        def named_checksums() -> list[str]:
            named = _named_checksums(info, self._client, allows_md5=self._allows_md5)
            return [*digests, *named]

        def accepts(note: Json) -> bool:
            named = set(named_checksums())  # before the image is fetched
            if not note or not named <= set(note["digests"].values()):
                return False
            return note["disk_format"] == image_format.RAW or not self._is_converted(note["format"])

        work = functools.partial(self._work, named_checksums, format_named)
        treatment = Treatment(headers=headers, accepts=accepts, work=work)
        with self._cache.current(url, treatment) as (path, note):
            _check_format(note["format"], format_named)
            machine_code.check_disk(task, set(note.get("architectures", ())))
            link = self._publication.publish_cached(task, boot_files.IMAGE, path)
        return image.Published(url=link, disk_format=note["disk_format"], sha256=note["sha256"])

    def publish_local(self, task: DriverTask) -> image.Published | None:
        """Publish an image of this host as it is; return None for another.  Raises StepFailure."""
        url = str(task.opened(task.node.instance_info["image_source"]))
        local = sources.open_local(url, self._conf.conductor.file_url_allowed_paths)
        if local is None:
            return None
        with local:
            return self._publish_open(task, local)

    def _publish_open(self, task: DriverTask, file: BinaryIO) -> image.Published:
        from bloomery.drivers.agent_boot import machine_code  # late: no start boots a machine

        machine_code.check_disk(task, machine_code.of_disk(file))
        return image.Published(url=self._publication.publish_open(task, boot_files.IMAGE, file))

    def _work(
        self,
        checksums_named: Callable[[], list[str]],
        format_named: str | None,
        source: Path,
        target: Path,
        make_room: MakeRoom,
    ) -> tuple[Path, Json]:
        """Check an image that has come, and convert it where that is needed.

        A message has no checksum of the file, which the user of its URL may not be able to read.
        """
        digests, named = _checksums_of(source), checksums_named()
        if not set(named) <= set(digests.values()):
            raise errors.StepFailure(
                reason=f"the image has other checksums than the node names: {', '.join(named)}",
            )
        header = _header(source, format_named)
        note = {
            "digests": digests, "format": header.format, "disk_format": header.format,
            "sha256": digests["sha256"],
        }  # fmt: skip
        if not self._is_converted(header.format):
            return source, note | _architectures(source)
        make_room(header.size)
        image_format.convert(source, header.format, target, self._conf.disk_utils)
        raw = {"disk_format": image_format.RAW, "sha256": _checksums_of(target)["sha256"]}
        return target, note | raw | _architectures(target)

    def _is_converted(self, name: str) -> bool:
        return image_format.is_converted(name, self._conf.default)

    def _login(self, url: str) -> http_client.Headers:
        """Return the header with the login of the image server; that of a URL comes first."""
        deploy = self._conf.deploy
        if deploy.image_server_auth_strategy == "noauth" or http_client.login(url):
            return {}
        user = f"{deploy.image_server_user}:{deploy.image_server_password}"
        return urllib3.make_headers(basic_auth=user)


def _architectures(path: Path) -> Json:
    """Return the part of a note that says which machines boot a raw image; [] where unknown."""
    from bloomery.drivers.agent_boot import machine_code  # late: no start boots a machine

    with path.open("rb") as file:
        return {"architectures": sorted(machine_code.of_disk(file))}


def _header(path: Path, named: str | None) -> image_format.Header:
    """Return the header of an image.  Raises StepFailure for another format than the named one."""
    try:
        header = image_format.read(path)
    except OSError as exc:
        raise errors.StepFailure(reason=f"cannot read {path}: {exc.strerror}") from exc
    _check_format(header.format, named)
    return header


def _check_format(in_header: str, named: str | None) -> None:
    if named is not None and in_header != named:
        raise errors.StepFailure(
            reason=f"the header of the image says {in_header}, and instance_info/image_disk_format "
            f"says {named}: correct it, or leave it out",
        )


# -------------------------------------------------------------------------------- checksums


def _checksums_of(path: Path) -> dict[str, str]:
    """Return the checksums of a file, by algorithm."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in image.DIGITS}
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            for each in hashes.values():
                each.update(piece)
    return {name: each.hexdigest() for name, each in hashes.items()}


def _named_checksums(info: Mapping[str, Any], client: HttpClient, *, allows_md5: bool) -> list[str]:
    """Return the checksums that an instance_info names; files of checksums are fetched.

    Raises StepFailure.
    """
    name = image.name_of(str(info["image_source"]))
    values = (info.get("image_checksum"), info.get("image_os_hash_value"))
    algorithms = (None, info.get("image_os_hash_algo"))
    digests = []
    for value, algorithm in zip(values, algorithms, strict=True):
        if "://" in str(value):
            digests.append(_fetch_checksum(str(value), name, algorithm, client))
        elif value:
            digests.append(str(value).lower())
    if not allows_md5 and any(len(digest) == image.DIGITS["md5"] for digest in digests):
        raise errors.StepFailure(
            reason="the file of checksums has MD5 alone, and [agent]allow_md5_checksum is false: "
            "take sha256 or sha512",
        )
    return digests


def _fetch_checksum(url: str, name: str, algorithm: str | None, client: HttpClient) -> str:
    """Return the checksum of the image ``name`` from a checksum file.  Raises StepFailure.

    The file has lines of coreutils (``DIGEST  NAME``), of BSD (``SHA256 (NAME) = DIGEST``), or one
    checksum alone.
    """
    status, _headers, body = client.read(url, {}, _MOST_CHECKSUMS)
    address = secrets.mask_address(url)
    if status != 200:
        raise errors.StepFailure(reason=f"cannot fetch {address}: HTTP {status}")
    texts = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
    matches = [_BSD.fullmatch(text) or _COREUTILS.fullmatch(text) for text in texts]
    lines = [(match["digest"].lower(), match["name"] or "") for match in matches if match]
    digits = [image.DIGITS[algorithm]] if algorithm else sorted(image.DIGITS.values())
    alone = len(lines) == 1
    fitting = [
        digest for digest, of in lines
        if len(digest) in digits and (alone or of.rpartition("/")[2] == name)
    ]  # fmt: skip
    if not fitting:
        raise errors.StepFailure(reason=f"{address} has no checksum of {name} of a known algorithm")
    return max(fitting, key=len)
