"""``bloomery dhcp``: a configuration of dnsmasq, and the machines that dnsmasq answers."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from bloomery import boot_files, conf, errors
from bloomery.cli import cloud, groups
from bloomery.cli.client import Client
from bloomery.cli.service import options
from bloomery.drivers.agent_boot.publication import Publication

_IPXE, _GRUB = _LOADERS = ("ipxe", "grub")
_PATH: Final = re.compile(r"/[!-~]*")
_ODD: Final = re.compile(r"[,\"#\\]")  # dnsmasq would act on them
_ARCHITECTURES: Final = {  # dnsmasq's tag: numbers of firmware, the last boots by HTTP
    "efi": (7, 9, 16),
    "arm64": (11, 19),
}  # IANA, Processor Architecture Types of DHCPv6 (RFC 5970)
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
@options.config_file
def print_(
    loader: str,
    tftp_root: str,
    addresses: str | None,
    hosts_dir: str | None,
    config_files: tuple[str, ...],
) -> None:
    """Print the configuration of dnsmasq, as DHCP and TFTP server of this site."""
    base_url = Publication(conf.load(config_files)).base_url()
    if _ODD.search(base_url):
        raise errors.CannotStart(reason=f"dnsmasq cannot hand out the address {base_url}")
    matches = [
        f"dhcp-match=set:{tag},option:client-arch,{number}"
        for tag, numbers in _ARCHITECTURES.items()
        for number in numbers
    ]
    parts = urllib.parse.urlsplit(base_url)
    if loader == _IPXE:
        boots = [
            "dhcp-match=set:ipxe,175",
            *matches,
            "dhcp-boot=tag:!ipxe,tag:!efi,tag:!arm64,undionly.kpxe",
            "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi",
            "dhcp-boot=tag:!ipxe,tag:arm64,snponly-arm64.efi",
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
        boots += [*matches, "dhcp-boot=tag:efi,bootx64.efi", "dhcp-boot=tag:arm64,bootaa64.efi"]
    lines = [
        *((f"dhcp-range={addresses}",) if addresses else _NO_RANGE),
        *((f"dhcp-hostsdir={hosts_dir}", "dhcp-ignore=tag:!known") if hosts_dir else ()),
        *boots,
        "enable-tftp",
        f"tftp-root={tftp_root}",
    ]
    click.echo("\n".join(lines))


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
