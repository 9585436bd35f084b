"""``bloomery dhcp``: a configuration of dnsmasq, and the machines that dnsmasq answers."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from bloomery import boot_files, conf, errors
from bloomery.cli import cloud, groups
from bloomery.cli.client import Client
from bloomery.cli.service import options
from bloomery.conf.agent import Pxe
from bloomery.drivers.agent_boot import machine_code
from bloomery.drivers.agent_boot.publication import Publication
from bloomery.model import architectures

_IPXE, _GRUB = _LOADERS = ("ipxe", "grub")
_PATH: Final = re.compile(r"/[!-~]*")
_URL: Final = re.compile(r"https?://[!-~]+")
_FILE: Final = re.compile(r"[!-~]+")
_ODD: Final = re.compile(r"[,\"#\\]")  # dnsmasq would act on them
_EFI: Final = ("efi", architectures.X86_64, (7, 9, 16))
_ARM: Final = ("arm64", architectures.AARCH64, (11, 19))
_FIRMWARES: Final = (_EFI, _ARM)  # dnsmasq's tag, cpu_arch, numbers; the last boots by HTTP
# Source of the numbers: IANA, Processor Architecture Types of DHCPv6 (RFC 5970).
_ARM_FILES: Final = {_IPXE: "snponly-arm64.efi", _GRUB: "bootaa64.efi"}
_NO_RANGE: Final = (
    "# Replace FIRST and LAST with addresses for machines, and remove the mark of the comment:",
    "#dhcp-range=FIRST,LAST",
)
_MODE: Final = 0o644  # dnsmasq runs as another user
_HOST: Final = re.compile(r"[0-9a-f]{2}(-[0-9a-f]{2}){5}")  # the names of hosts' files


@click.group(cls=groups.Group)
def dhcp() -> None:
    """Write dnsmasq's configuration for boots from the network."""


def _check_path(_ctx: click.Context, _param: click.Parameter, path: str | None) -> str | None:
    if path is not None and (_ODD.search(path) or not _PATH.fullmatch(path)):
        raise click.BadParameter(
            "dnsmasq needs an absolute path, without spaces, commas, quotes, # and backslashes"
        )
    return path


def _check_range(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        first, last = map(ipaddress.IPv4Address, text.split(","))
    except ValueError:
        first, last = ipaddress.IPv4Address(1), ipaddress.IPv4Address(0)
    if first > last:
        raise click.BadParameter("write two IPv4 addresses, as in 192.0.2.100,192.0.2.199")
    return f"{first},{last}"


def _check_http_url(_ctx: click.Context, _param: click.Parameter, url: str | None) -> str | None:
    if url is not None and (_ODD.search(url) or not _URL.fullmatch(url)):
        raise click.BadParameter("write an http or https URL, as in http://192.0.2.1/loaders")
    return url and url.rstrip("/")


@dhcp.command(name="print")
@click.option(
    "--loader", type=click.Choice(_LOADERS), default=_IPXE, show_default=True,
    help="What the firmware gets: iPXE for the boot interface ipxe, shim and GRUB for pxe.",
)  # fmt: skip
@click.option(
    "--tftp-root", metavar="DIR", callback=_check_path, default="/srv/tftp", show_default=True,
    help="The folder of the loader's files.",
)  # fmt: skip
@click.option(
    "--range", "addresses", metavar="FIRST,LAST", callback=_check_range,
    help="The addresses for machines.  [default: a comment to fill in]",
)  # fmt: skip
@click.option(
    "--hosts-dir", metavar="DIR", callback=_check_path,
    help="Answer only the machines that bloomery dhcp hosts writes there.",
)  # fmt: skip
@click.option(
    "--http-url", metavar="URL", callback=_check_http_url,
    help="The folder of the loader's files on a web server, for firmware that boots by HTTP.",
)  # fmt: skip
@options.config_file
def print_(
    loader: str,
    tftp_root: str,
    http_url: str | None,
    addresses: str | None,
    hosts_dir: str | None,
    config_files: tuple[str, ...],
) -> None:
    """Print the configuration of dnsmasq, as DHCP and TFTP server of this site."""
    settings = conf.load(config_files)
    base_url = Publication(settings).base_url()
    if _ODD.search(base_url):
        raise errors.CannotStart(reason=f"dnsmasq cannot hand out the address {base_url}")
    matches = [
        f"dhcp-match=set:{tag},option:client-arch,{number}"
        for tag, _arch, numbers in _FIRMWARES
        for number in numbers
    ]
    bios, x86, arm = _list_files(settings.pxe, loader)
    _warn_of_other_architectures(Path(tftp_root), {x86: _EFI[1], arm: _ARM[1]})
    parts = urllib.parse.urlsplit(base_url)
    tftp = "" if http_url is None else "tag:!http,"
    if loader == _IPXE:
        boots = [
            "dhcp-match=set:ipxe,175",
            *matches,
            f"dhcp-boot=tag:!ipxe,tag:!efi,tag:!arm64,{bios}",
            f"dhcp-boot=tag:!ipxe,{tftp}tag:efi,{x86}",
            f"dhcp-boot=tag:!ipxe,{tftp}tag:arm64,{arm}",
            f"dhcp-boot=tag:ipxe,{base_url}/{boot_files.IPXE_ENTRY}",
        ]
    else:
        boots = [f"# GRUB cannot fetch {base_url}: it speaks HTTP without TLS, and TFTP."]
        if parts.scheme == "http":
            boots = [
                f"# {tftp_root}/grub/grub.cfg takes these two lines; Red Hat's family: grub.cfg:",
                f"#   set root=(http,{parts.netloc})",
                f"#   configfile {parts.path}/{boot_files.GRUB_ENTRY}",
            ]
        boots += [*matches, f"dhcp-boot={tftp}tag:efi,{x86}", f"dhcp-boot={tftp}tag:arm64,{arm}"]
    if http_url is not None:
        firmware = "tag:!ipxe,tag:http" if loader == _IPXE else "tag:http"
        boots += [
            "dhcp-vendorclass=set:http,HTTPClient",
            "dhcp-option-force=tag:http,60,HTTPClient",
            f"dhcp-boot={firmware},tag:!arm64,{http_url}/{x86}",
            f"dhcp-boot={firmware},tag:arm64,{http_url}/{arm}",
        ]
    lines = [
        *((f"dhcp-range={addresses}",) if addresses else _NO_RANGE),
        *((f"dhcp-hostsdir={hosts_dir}", "dhcp-ignore=tag:!known") if hosts_dir else ()),
        *boots,
        "enable-tftp",
        f"tftp-root={tftp_root}",
    ]
    click.echo("\n".join(lines))


def _list_files(pxe: Pxe, loader: str) -> tuple[str, str, str]:
    """Return the loader's files for BIOS, and for UEFI of x86 and of ARM.  Raises CannotStart."""
    options, default = pxe.ipxe_bootfile_name_by_arch, pxe.uefi_ipxe_bootfile_name
    if loader == _GRUB:
        options, default = pxe.pxe_bootfile_name_by_arch, pxe.uefi_pxe_bootfile_name
    by_arch = {}
    exact_last = sorted(options.items(), key=lambda option: option[0].endswith("-uefi"))
    for name, file in exact_last:  # Ironic's keys are "aarch64" and "aarch64-uefi"
        if not name.endswith("-bios"):
            by_arch[architectures.canonical(name.removesuffix("-uefi"))] = file
    files = (
        pxe.ipxe_bootfile_name,
        by_arch.get(architectures.X86_64, default),
        by_arch.get(architectures.AARCH64, _ARM_FILES[loader]),
    )
    for file in files:
        if _ODD.search(file) or not _FILE.fullmatch(file):
            raise errors.CannotStart(
                reason=f"dnsmasq cannot hand out the file {file!r} that [pxe] names"
            )
    return files


def _warn_of_other_architectures(folder: Path, files: Mapping[str, str]) -> None:
    """Warn of files in the TFTP folder that the machines of their line cannot run."""
    for name, wanted in files.items():
        try:
            with (folder / name).open("rb") as file:
                built_for = machine_code.of_kernel(file)
        except OSError:  # on another host, or not there yet
            continue
        if built_for not in (None, wanted):
            click.echo(
                f"warning: {folder / name} is for {built_for}, and machines of {wanted} get it",
                err=True,
            )


@dhcp.command()
@click.option(
    "--dir", "folder", required=True, metavar="DIR", help="The folder of dhcp print --hosts-dir.",
    type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
)  # fmt: skip
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
def hosts(folder: Path, name: str | None) -> None:
    """Write a file for each port with pxe_enabled, and remove those of ports that are gone."""
    files = {
        boot_files.ipxe_link(mac): f"{mac},set:bloomery\n".encode()
        for mac in _list_macs(cloud.find_nodes(name))
    }
    try:
        former = {path.name: path for path in folder.iterdir() if _HOST.fullmatch(path.name)}
        changed = [host for host, line in files.items()
                   if host not in former or former[host].read_bytes() != line]  # fmt: skip
        for host in changed:
            fresh = folder / f".{host}"  # dnsmasq skips the names of hidden files
            fresh.write_bytes(files[host])
            fresh.chmod(_MODE)
            fresh.replace(folder / host)
        gone = former.keys() - files.keys()
        for host in gone:
            former[host].unlink()
    except OSError as exc:
        raise click.ClickException(f"cannot write to {folder}: {exc.strerror}") from exc
    click.echo(f"{len(files)} machines: {len(changed)} written, {len(gone)} removed", err=True)


def _list_macs(client: Client) -> Iterator[str]:
    """Yield the MAC addresses of ports with pxe_enabled, from all pages."""
    path: str | None = "/v1/ports?fields=uuid,address,pxe_enabled"
    while path:
        document = client.get(path)
        yield from (port["address"] for port in document["ports"] if port["pxe_enabled"])
        following = document.get("next")
        path = f"/v1/ports?{urllib.parse.urlsplit(following).query}" if following else None
