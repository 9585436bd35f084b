"""An agent boots from a CD that the service has built of a kernel and a ramdisk, and serves."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pycdlib
import pytest

from bloomery import boot_files
from bloomery.api import app, server
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.drivers import registry
from bloomery.drivers.redfish import media
from bloomery.lab.rack import Machine
from tests.functional.redfish.conftest import BUDGET_S, conf, manageable
from tests.kit.machines import programs
from tests.kit.machines.agent import Agent
from tests.kit.machines.driver_task import FakeTask, walk
from tests.kit.servers import web
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.servers.stories import Stage

MAC = "52:54:00:00:00:77"
FILES = {"/kernel": b"k" * 5000, "/ramdisk": b"r" * 70_000, "/esp": b"e" * 40_000}
ARM_KERNEL = programs.efi_program("aarch64")

NETWORK = {
    "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": MAC}],
    "networks": [], "services": [],
}  # fmt: skip


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@pytest.fixture
def images() -> Iterator[web.Site]:
    files = FILES | {"/arm-kernel": ARM_KERNEL}
    with web.serving({path: web.text(body, ETag='"1"') for path, body in files.items()}) as site:
        yield site


@pytest.fixture
def host(request: pytest.FixtureRequest) -> str:
    """The address of the API and of the BMC."""
    return str(getattr(request, "param", "127.0.0.1"))


@pytest.fixture
def settings(tmp_path: Path, images: web.Site, host: str) -> Conf:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        one.bind((host, 0))
        port = one.getsockname()[1]
    plain = conf()
    return dataclasses.replace(
        plain,
        api=Api(host_ip=host, port=port, public_endpoint=f"http://{in_url(host)}:{port}/v1/"),
        default=dataclasses.replace(
            plain.default, enabled_inspect_interfaces=("agent", "redfish"), isolinux_bin="/none"
        ),
        conductor=dataclasses.replace(
            plain.conductor,
            deploy_kernel=images.url("/kernel"),
            deploy_ramdisk=images.url("/ramdisk"),
            bootloader=images.url("/esp"),
        ),
        deploy=Deploy(http_root=str(tmp_path / "http"), ramdisk_cache_path=str(tmp_path / "cache")),
    )


@pytest.fixture
def stage(make_site: Callable[..., Site], settings: Conf) -> Iterator[Stage]:
    loaded = registry.load(settings)
    made = Stage(make_site(registry=loaded, bmc_outage_budget=int(BUDGET_S)))
    for group in ("api", "deploy"):
        made.configure(group, **dataclasses.asdict(getattr(settings, group)))
    serving = server.make(app.make_app(made.services), settings)
    serving.start()
    yield made
    serving.stop()
    assert made.nothing_is_left(), "a reservation is left"


@pytest.fixture
def machine(make_rack: Any, host: str) -> Machine:
    """One whose BMC really fetches what it is told to insert."""
    machine: Machine = make_rack(power_s=0.1, fetch=True, host=host).machines[0]
    return machine


def enrolled(stage: Stage, machine: Machine, **driver_info: Any) -> str:
    node = manageable(stage, machine, **driver_info)
    stage.patch(node, inspect_interface="agent")
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    return node


def waiting(stage: Stage, machine: Machine, **driver_info: Any) -> str:
    """Return a node whose machine has booted its agent."""
    node = enrolled(stage, machine, **driver_info)
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    return node


def left(settings: Conf) -> list[Path]:
    return boot_files.list_files(settings.deploy.http_root)


def opened(url: str) -> pycdlib.PyCdlib:
    iso = pycdlib.PyCdlib()
    with urllib.request.urlopen(url, timeout=10) as answer:
        iso.open_fp(io.BytesIO(answer.read()))
    return iso


def content(iso: pycdlib.PyCdlib, path: str) -> bytes:
    into = io.BytesIO()
    iso.get_file_from_iso_fp(into, rr_path=path)
    return into.getvalue()


def kernel_line(iso: pycdlib.PyCdlib) -> str:
    """Return what GRUB gives the kernel."""
    script = content(iso, "/EFI/BOOT/grub.cfg").decode()
    [line] = [words for words in script.splitlines() if "linux /vmlinuz" in words]
    return line.replace("'", "")


def test_a_machine_without_dhcp_finds_its_network_on_the_cd_at_an_address_for_its_bmc(
    stage: Stage, machine: Machine, settings: Conf
) -> None:
    external = f"http://localhost:{settings.api.port}"
    node = enrolled(
        stage, machine, external_http_url=external, force_persistent_boot_device="Always"
    )
    stage.patch(node, network_data=NETWORK)
    assert stage.api.get(f"/v1/nodes/{node}/validate").json["boot"] == {"result": True}
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    url = str(machine.system.media["Cd"])
    assert url.startswith(f"{external}/{boot_files.FOLDER}/{node}-")
    iso = opened(url)
    assert iso.pvd.volume_identifier.strip() == b"config-2"
    assert json.loads(content(iso, "/openstack/latest/network_data.json")) == NETWORK
    assert json.loads(content(iso, "/openstack/latest/meta_data.json")) == {"uuid": node}
    assert (machine.system.boot["target"], machine.system.boot["enabled"]) == ("Cd", "Continuous")


def test_a_kernel_of_another_architecture_fails_before_the_machine_boots(
    stage: Stage, machine: Machine, settings: Conf, images: web.Site
) -> None:
    node = enrolled(stage, machine, deploy_kernel=images.url("/arm-kernel"))
    stage.patch(node, properties={"cpu_arch": "x86_64"})
    stage.ask(node, "inspect")
    reason = stage.wait_for(node, "inspect failed")["last_error"]
    assert "arm-kernel is for aarch64, and properties/cpu_arch is x86_64; name one" in reason
    assert "reset On" not in machine.system.happened
    assert left(settings) == []
    stage.patch(node, properties={"cpu_arch": "arm64"})
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    iso = opened(str(machine.system.media["Cd"]))
    assert content(iso, "/vmlinuz") == ARM_KERNEL


@pytest.mark.parametrize("host", ["::1"], indirect=True)
def test_bmc_and_api_may_have_addresses_of_ipv6(
    stage: Stage, machine: Machine, settings: Conf
) -> None:
    assert machine.address.startswith("http://[::1]:")
    node = waiting(stage, machine)
    url = str(machine.system.media["Cd"])
    root = f"http://[::1]:{settings.api.port}"
    assert url.startswith(f"{root}/{boot_files.FOLDER}/{node}-")
    iso = opened(url)
    assert f"ipa-api-url={root} " in kernel_line(iso)
    assert content(iso, "/vmlinuz") == FILES["/kernel"]
    agent = Agent(stage.api, [MAC])
    agent.boot(kernel_line(iso))
    agent.look_up()
    assert agent.call(callback_url="https://[::1]:9999").status == 202


def test_the_machine_boots_a_cd_of_its_own_that_goes_with_the_agent(
    stage: Stage, machine: Machine, settings: Conf
) -> None:
    node = waiting(stage, machine, kernel_append_params="%default% console=ttyS0")
    url = machine.system.media["Cd"]
    assert url is not None
    assert url.startswith(f"http://127.0.0.1:{settings.api.port}/{boot_files.FOLDER}/{node}-")
    happened = machine.system.happened
    assert happened.index(f"media inserted: {url}") < happened.index("reset On")
    iso = opened(url)
    assert content(iso, "/vmlinuz") == FILES["/kernel"]
    assert content(iso, "/initrd") == FILES["/ramdisk"]
    root = f"http://127.0.0.1:{settings.api.port}"
    agent = Agent(stage.api, [MAC])
    agent.boot(kernel_line(iso))
    words = (
        "nofb", "vga=normal", "console=ttyS0", f"ipa-api-url={root}",
        f"ipa-inspection-callback-url={root}/v1/continue_inspection",
        "boot_method=vmedia", "BOOTIF=01-52-54-00-00-00-77", f"ipa-agent-token={agent.token}",
    )  # fmt: skip
    line = " ".join(f"'{word}'" for word in words)
    assert f"linux /vmlinuz {line}\n" in content(iso, "/EFI/BOOT/grub.cfg").decode()
    agent.expect(agent.try_to_hand_in(), 202)
    assert stage.wait_for(node, "manageable")["last_error"] is None
    assert (machine.system.media, left(settings)) == ({"Cd": None}, [])


def test_firmware_fetches_the_iso_where_the_bmc_has_no_drive(
    stage: Stage, machine: Machine, settings: Conf
) -> None:
    node = enrolled(stage, machine)
    stage.patch(node, boot_interface="redfish-https")
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    system = machine.system
    url = str(system.booted["image"])
    assert url.startswith(f"http://127.0.0.1:{settings.api.port}/{boot_files.FOLDER}/{node}-")
    assert (system.booted["target"], system.media) == ("UefiHttp", {"Cd": None})
    line = kernel_line(opened(url))
    assert "boot_method" not in line
    agent = Agent(stage.api, [MAC])
    agent.boot(line)
    agent.expect(agent.try_to_hand_in(), 202)
    assert stage.wait_for(node, "manageable")["last_error"] is None
    assert left(settings) == []
    bodies = [stage.api.get(f"/v1/nodes/{node}{part}").body for part in ("", "/history")]
    secret = boot_files.secret_of(url)
    assert secret
    assert not any(secret.encode() in body for body in bodies)


def test_the_agents_token_is_on_its_cd_and_given_to_nobody_who_asks(
    stage: Stage, machine: Machine
) -> None:
    node = waiting(stage, machine)
    stranger = Agent(stage.api, [MAC])
    stranger.look_up()
    assert (stranger.token, stranger.call().status) == ("******", 400)
    agent = Agent(stage.api, [MAC])
    agent.boot(kernel_line(opened(str(machine.system.media["Cd"]))))
    agent.look_up()
    assert agent.call().status == 202
    told = [stage.api.get(f"/v1/nodes/{node}{part}").body for part in ("", "/history")]
    assert not any(str(agent.token).encode() in body for body in told)
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")
    assert agent.call().status == 400


def test_a_lookup_of_an_agent_whose_cd_has_the_token_is_no_warning(
    stage: Stage, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    node = waiting(stage, machine)
    caplog.set_level(logging.INFO, "bloomery.operations.agents")
    agent = Agent(stage.api, [MAC])
    agent.boot(kernel_line(opened(str(machine.system.media["Cd"]))))
    agent.look_up()
    line = f"node {node}: 127.0.0.1 gets no token: the agent's kernel has it"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", line)
    ]


def test_abort_takes_it_away_too(stage: Stage, machine: Machine, settings: Conf) -> None:
    node = waiting(stage, machine)
    assert len(left(settings)) == 1
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")
    assert (machine.system.media, left(settings)) == ({"Cd": None}, [])


def test_each_boot_has_a_name_of_its_own_and_the_files_are_fetched_once(
    stage: Stage, machine: Machine, images: web.Site
) -> None:
    names = set()
    node = enrolled(stage, machine)
    for _ in range(2):
        stage.ask(node, "inspect")
        stage.wait_for(node, "inspect wait")
        names.add(machine.system.media["Cd"])
        stage.ask(node, "abort")
        stage.wait_for(node, "inspect failed")
    assert len(names) == 2
    assert sorted(images.asked) == sorted([*FILES, *FILES]), "asked anew for each boot"


def test_a_ready_iso_wins(stage: Stage, machine: Machine, images: web.Site, settings: Conf) -> None:
    node = waiting(stage, machine, deploy_iso=images.url("/esp"))
    assert machine.system.media == {"Cd": images.url("/esp")}
    assert left(settings) == []
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")


def test_nobody_reads_the_name_of_a_cd_at_the_api(stage: Stage, machine: Machine) -> None:
    node = waiting(stage, machine)
    secret = boot_files.secret_of(str(machine.system.media["Cd"]))
    assert secret
    shown = stage.api.get(f"/v1/nodes/{node}/vmedia")
    assert (shown.status, boot_files.FOLDER in shown.body.decode()) == (200, True)
    told = [stage.api.get(f"/v1/nodes/{node}{part}").body for part in ("", "/vmedia", "/history")]
    told.append(stage.api.get(f"/ext/v1/nodes/{node}/why").body)
    assert not any(secret.encode() in body for body in told)
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")


def test_a_bmc_that_cannot_fetch_it_is_quoted_without_its_name(
    stage: Stage, machine: Machine, settings: Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomery.api.boot_files.boot_files.find", lambda *_: None)
    monkeypatch.setattr("bloomery.drivers.redfish.bmc_write._TRY_PAUSE_S", 0.01)
    node = enrolled(stage, machine)
    stage.ask(node, "inspect")
    error = stage.wait_for(node, "inspect failed")["last_error"]
    assert "cannot fetch" in error
    assert "***" in error
    assert f"{node}-" in error
    assert left(settings) == []


@pytest.mark.parametrize(
    ("option", "changes", "reason"),
    [
        ("conductor", {"deploy_ramdisk": None}, "lacks deploy_ramdisk"),
        ("conductor", {"bootloader": None}, "lacks bootloader"),
        ("conductor", {"deploy_kernel": "file:///etc/shadow"}, "file_url_allowed_paths"),
        ("api", {"public_endpoint": None}, r"[api]public_endpoint"),
        ("default", {"rpc_transport": "json-rpc"}, r"[deploy]http_url"),
    ],
    ids=str,
)
def test_what_is_missing_is_named_before_anything_is_touched(
    make_site: Any, settings: Conf, machine: Machine, option: str, changes: Any, reason: str
) -> None:
    group = dataclasses.replace(getattr(settings, option), **changes)
    loaded = registry.load(dataclasses.replace(settings, **{option: group}))
    stage = Stage(make_site(registry=loaded))
    node = enrolled(stage, machine)
    answer = stage.try_to(node, "inspect")
    assert (answer.status, reason in answer.said) == (400, True), answer.said
    assert stage.standing(node) == ("manageable", None)


@pytest.mark.parametrize("instance", [{}, {"boot_iso": "http://images.test/os.iso"}], ids=str)
def test_a_boot_of_the_instance_takes_the_agents_cd_away(
    settings: Conf, make_rack: Any, instance: dict[str, str]
) -> None:
    """Whether the instance boots from its disk or from an ISO of its own."""
    machine = make_rack().machines[0]
    boot = registry.load(settings).interfaces["boot"]["redfish-virtual-media"]
    power = SimpleNamespace(set_power_state=lambda *_: None)
    task: Any = FakeTask(machine.driver_info, instance_info=instance)
    task.driver = SimpleNamespace(power=power)
    walk(task, lambda: boot.prepare_ramdisk(task, {}))
    [path] = left(settings)
    assert str(machine.system.media["Cd"]).endswith(path.name)
    walk(task, lambda: boot.prepare_instance(task))
    assert (left(settings), machine.system.media["Cd"]) == ([], instance.get("boot_iso"))


def test_a_web_server_of_the_site_may_hand_it_out(
    make_site: Any, settings: Conf, make_rack: Any
) -> None:
    deploy = dataclasses.replace(settings.deploy, http_url="http://web.test/files/")
    default = dataclasses.replace(settings.default, rpc_transport="json-rpc")
    loaded = registry.load(dataclasses.replace(settings, deploy=deploy, default=default))
    stage, machine = Stage(make_site(registry=loaded)), make_rack().machines[0]
    node = waiting(stage, machine)
    [path] = left(settings)
    assert machine.system.media["Cd"] == f"http://web.test/files/{boot_files.FOLDER}/{path.name}"
    assert path.stat().st_mode & 0o777 == 0o644, "another user may serve it"
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")


def test_a_crash_between_build_and_boot_leaves_nothing_in_the_end(
    tmp_path: Path, settings: Conf, make_rack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, machine = tmp_path / "mortal.sqlite", make_rack().machines[0]
    db = database(path, Mortal)
    assert isinstance(db, Mortal)
    dead = Stage(Site(path, db=db, registry=registry.load(settings)))
    node = enrolled(dead, machine)

    def die(*_: Any, **_more: Any) -> None:
        db.lives = db.commits
        db.died.set()
        raise Dead

    with monkeypatch.context() as patch:
        patch.setattr(media, "insert", die)
        dead.ask(node, "inspect")
        assert db.died.wait(10)
        before = left(settings)
        assert len(before) == 1
        heir = Stage(dead.site.restarted())
    heir.wait_for(node, "inspect wait")
    [fresh] = left(settings)
    assert fresh not in before
    heir.ask(node, "abort")
    heir.wait_for(node, "inspect failed")
    assert left(settings) == []
    heir.site.close()
