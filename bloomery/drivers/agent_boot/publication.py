"""Boot files of nodes: publish, find, remove.

The folder is the only record: a successor on another host builds its own files.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from bloomery import boot_files, errors
from bloomery.conf import Conf, default
from bloomery.drivers.base import DriverTask

_MODE: Final = 0o644  # a web server may run as another user
_PIECE: Final = 1 << 20
_NOT_LINKED: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK)  # another disk; another's file


class Publication:
    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        self._root = conf.deploy.http_root

    def publish(self, task: DriverTask, kind: str, write: Callable[[BinaryIO], object]) -> str:
        """Write a file of the node by ``write``; return its URL.  Raises StepFailure."""
        name = boot_files.new_name(task.node.uuid, kind)
        try:
            self._replace(Path(boot_files.FOLDER, name), write)
        except OSError as exc:
            self.remove(task)
            raise self._failure(exc) from exc
        return self._url_of(name)

    def publish_cached(self, task: DriverTask, kind: str, target: Path) -> str:
        """Publish a file that its cache may remove; return its URL.  Raises StepFailure."""
        name = boot_files.new_name(task.node.uuid, kind)
        try:
            target.chmod(_MODE)
            self._new_path(name).hardlink_to(target)
        except OSError as exc:
            raise self._failure(exc) from exc
        return self._url_of(name)

    def publish_open(self, task: DriverTask, kind: str, file: BinaryIO) -> str:
        """Publish an open file by a hard link, or else a copy; return its URL.

        A symbolic link would be followed later, when another file may have the name.  Raises
        StepFailure.
        """
        name = boot_files.new_name(task.node.uuid, kind)
        try:
            path = self._new_path(name)
            # Python calls linkat(2), which follows the link in /proc, where a folder is given.
            os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno())
        except OSError as exc:
            if exc.errno not in _NOT_LINKED:
                raise self._failure(exc) from exc
            file.seek(0)
            return self.publish(task, kind, lambda out: shutil.copyfileobj(file, out, _PIECE))
        return self._url_of(name)

    def _new_path(self, name: str) -> Path:
        path = self._folder() / boot_files.FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def has_entry(self, name: str) -> bool:
        return self._root is not None and Path(self._root, name).exists()

    def write_entry(self, name: str, text: str) -> None:
        """Write the entry script of a boot loader.  Raises StepFailure."""
        try:
            self._replace(Path(name), lambda out: out.write(text.encode("ascii")))
        except OSError as exc:
            raise self._failure(exc) from exc

    def lead(self, links: list[str], url: str) -> None:
        """Lead machines by ``links`` to their script at ``url``.  Raises StepFailure."""
        target = Path("..", boot_files.FOLDER, url.rpartition("/")[2])
        try:
            for name in links:
                link = self._folder() / boot_files.LINKS / name
                part = link.with_name(link.name + boot_files.PART)
                link.parent.mkdir(exist_ok=True)
                part.unlink(missing_ok=True)
                part.symlink_to(target)
                part.replace(link)
        except OSError as exc:
            raise self._failure(exc) from exc

    def _replace(self, name: Path, write: Callable[[BinaryIO], object]) -> None:
        """Write the file atomically; concurrent writers do not disturb each other."""
        path = self._folder() / name
        part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{boot_files.PART}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as out:
            os.fchmod(out.fileno(), _MODE)
            write(out)
        part.replace(path)

    def url(self, task: DriverTask, kind: str, external: str | None = None) -> str | None:
        """Return the URL of a file of the node, or None where this host has none.

        ``external``: the URL of the folder, where it is another for the file's readers.
        """
        for path in boot_files.list_files(self._root):
            if path.suffix == f".{kind}" and boot_files.owner(path) == task.node.uuid:
                return self._url_of(path.name, external)
        return None

    def remove(self, task: DriverTask) -> None:
        """Remove the node's boot files, if any."""
        for path in (*boot_files.list_links(self._root), *boot_files.list_files(self._root)):
            if boot_files.owner(path) == task.node.uuid:
                path.unlink(missing_ok=True)

    def _url_of(self, name: str, external: str | None = None) -> str:
        return f"{self.base_url(external)}/{boot_files.FOLDER}/{name}"

    def base_url(self, external: str | None = None) -> str:
        """Return the URL of the folder.  Raises MissingParameterValue.

        The API serves the folder where it runs in the conductor's process.
        """
        url = external or self._conf.deploy.http_url
        if url is None and self._conf.default.rpc_transport == default.NONE:
            url = self._conf.api.public_root
        if not url:
            raise errors.MissingParameterValue(
                reason="machines have no address for boot files: set [api]public_endpoint where "
                "API and conductor are one process, else [deploy]http_url to that of a web server "
                "that hands out [deploy]http_root",
            )
        return url.rstrip("/")

    def _folder(self) -> Path:
        if self._root is None:
            raise errors.Unavailable(reason="[deploy]http_root names no folder")
        return Path(self._root)

    def _failure(self, exc: OSError) -> errors.StepFailure:
        if exc.errno == errno.EXDEV:
            return errors.StepFailure(
                reason=f"cannot hand out an image: [deploy]http_root, {self._root}, and "
                "[pxe]instance_master_path are on different file systems; move one of them",
            )
        return errors.StepFailure(
            reason=f"cannot write boot files to {self._root}: {exc.strerror}",
        )
