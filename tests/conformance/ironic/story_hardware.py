"""What is asked of one machine beyond power: RAID, NMI, lights, virtual media, vendor methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.conformance.ironic.script import MISSING, NEWEST, Script

DISK: Final = {"raid_level": "1", "size_gb": 100}
DISKS: Final = (
    [DISK],
    [],
    [{}],
    [DISK | {"is_root_volume": True}],
    [DISK | {"is_root_volume": True}] * 2,
    [DISK | {"is_root_volume": "yes"}],
    [DISK | {"size_gb": "MAX"}],
    [DISK | {"size_gb": "max"}],
    [DISK | {"size_gb": 0}],
    [DISK | {"size_gb": -1}],
    [DISK | {"size_gb": 1.5}],
    [DISK | {"size_gb": "7"}],
    *(
        [DISK | {"raid_level": level}]
        for level in ("JBOD", "0", "2", "5", "6", "1+0", "5+0", "6+0")
    ),
    *([DISK | {"raid_level": level}] for level in ("10", 1, "jbod", None)),
    [DISK | {"volume_name": "root"}],
    [DISK | {"volume_name": 7}],
    [DISK | {"share_physical_disks": True}],
    [DISK | {"share_physical_disks": 1}],
    [DISK | {"disk_type": "ssd"}],
    [DISK | {"disk_type": "nvme"}],
    [DISK | {"interface_type": "sas"}],
    [DISK | {"interface_type": "pcie"}],
    [DISK | {"number_of_physical_disks": 1}],
    [DISK | {"number_of_physical_disks": 0}],
    [DISK | {"number_of_physical_disks": "2"}],
    [DISK | {"controller": "software"}],
    [DISK | {"controller": 1}],
    [DISK | {"physical_disks": ["a"]}],
    [DISK | {"physical_disks": ["a"], "controller": "c"}],
    [DISK | {"physical_disks": [], "controller": "c"}],
    [DISK | {"physical_disks": [{"size": ">= 1"}], "controller": "software"}],
    [DISK | {"physical_disks": [{"size": ">= 1"}] * 2, "controller": "software"}],
    [DISK | {"physical_disks": ["a", {}], "controller": "software"}],
    [DISK | {"physical_disks": "a", "controller": "c"}],
    [DISK | {"colour": "red"}],
    [DISK, 7],
    7,
    None,
)


def raid(script: Script) -> None:
    node = script.node()
    path = f"/nodes/{node}/states/raid"
    for disks in DISKS:
        script.put(path, {"logical_disks": disks})
        script.get(f"/nodes/{node}/states")
    for body in (MISSING, {}, [], None, 7, "x", {"more": 1}, {"logical_disks": [DISK], "more": 1}):
        script.put(path, {"logical_disks": [DISK]})
        script.put(path, body)
        script.get(f"/nodes/{node}/states")
    for version in (11, 12):
        script.put(path, {"logical_disks": [DISK]}, version)
        script.get(f"/nodes/{node}/states", version)
    script.put(f"/nodes/{node}/states/raid/x", {})
    script.put(f"{path}?x=1", {})
    script.put("/nodes/unknown/states/raid", {"logical_disks": [DISK]})
    script.put("/nodes/unknown/states/raid", {"logical_disks": 7})
    script.patch(f"/nodes/{node}", [{"op": "add", "path": "/raid_interface", "value": "no-raid"}])
    script.put(path, {"logical_disks": [DISK]})
    script.put(path, {})
    for version in (11, 12, NEWEST):
        for driver in ("fake-hardware", "unknown"):
            for part in ("", "/logical_disk_properties", "/logical_disk_properties/x", "/x"):
                script.get(f"/drivers/{driver}/raid{part}", version)
    script.post("/drivers/fake-hardware/raid/logical_disk_properties", {})


def nmi_and_lights(script: Script) -> None:
    node = script.node()
    base = f"/nodes/{node}/management"
    for version in (1, 28, 29, NEWEST):
        for ident in (node, "unknown"):
            for body in (MISSING, {}, {"x": 1}, [], 7):
                script.put(f"/nodes/{ident}/management/inject_nmi", body, version)
    script.put(f"{base}/inject_nmi?x=1", {})
    script.put(f"{base}/inject_nmi/x", {})
    for version in (1, 62, 63, NEWEST):
        script.get(f"{base}/indicators", version)
        for light in ("led@system", "led-0@chassis", "led@chassis", "x@system", "led@x", "led",
                      "@", "led@", "@system", "a@b@system", "led@system@x"):  # fmt: skip
            script.get(f"{base}/indicators/{light}", version)
            script.put(f"{base}/indicators/{light}", {"state": "off"}, version)
    light = f"{base}/indicators/led@system"
    for body in (MISSING, {}, {"state": "on"}, {"state": "x"}, {"state": None}, {"state": 7},
                 {"state": ""}, {"state": "on", "x": 1}, [], 7):  # fmt: skip
        script.put(light, body)
        script.put(f"{base}/indicators/led-0@chassis", body)
    script.put(f"{light}?state=off")
    script.put(f"{base}/indicators", {"state": "on"})
    script.get(f"{light}/x")
    script.get(f"{light}?x=1")
    script.get(f"{base}/indicators?fields=name")
    for method in ("POST", "PATCH", "DELETE"):
        script.ask(method, light, {})
        script.ask(method, f"{base}/indicators", {})
    script.get("/nodes/unknown/management/indicators")
    script.get("/nodes/unknown/management/indicators/led@system")
    script.put("/nodes/unknown/management/indicators/led", {"state": "x"})


def vendor_methods(script: Script) -> None:
    node = script.node()
    base = f"/nodes/{node}/vendor_passthru"
    for version in (1, NEWEST):
        script.get(f"{base}/methods", version)
    script.get(f"{base}/methods/x")
    script.get(f"{base}/methods?x=1")
    script.post(f"{base}/methods", {})
    for method in ("second_method", "third_method_sync", "fourth_method_shared_lock",
                   "log_passthrough", "trigger_servicewait", "unknown"):  # fmt: skip
        for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            script.ask(verb, f"{base}/{method}", {"bar": "meow"})
            script.ask(verb, f"{base}?method={method}", {"bar": "meow"})
    sync = f"{base}/third_method_sync"
    for body in (MISSING, {}, {"bar": "meow"}, {"bar": ""}, {"bar": None}, {"bar": 0}, {"bar": 7},
                 {"bar": [1]}, {"bar": []}, {"bar": {}}, {"bar": "x", "more": 1}, [], 7, "x",
                 {"bar": False}, {"task": 1}, {"http_method": "x", "bar": 1},
                 {"method": "x", "bar": 1}):  # fmt: skip
        script.post(sync, body)
        script.post(f"{base}/second_method", body)
    script.post(f"{sync}?bar=meow")
    script.post(f"{sync}?method=second_method", {"bar": "meow"})
    script.post(f"{sync}/x", {"bar": "meow"})
    script.post(f"{base}?method=", {"bar": "meow"})
    script.post(base, {"bar": "meow"})
    script.post(base, {"bar": "meow", "method": "third_method_sync"})
    for verb in ("GET", "PUT", "PATCH", "DELETE"):
        script.ask(verb, base)
    for path in ("vendor_passthru", "vendor_passthru/x", "vendor_passthru/methods"):
        script.get(f"/nodes/unknown/{path}")
        script.post(f"/nodes/unknown/{path}", {})
    script.patch(
        f"/nodes/{node}", [{"op": "add", "path": "/vendor_interface", "value": "no-vendor"}]
    )
    script.get(f"{base}/methods")
    script.post(sync, {"bar": "meow"})


def vendor_methods_of_drivers(script: Script) -> None:
    for driver in ("fake-hardware", "unknown"):
        base = f"/drivers/{driver}/vendor_passthru"
        script.get(f"{base}/methods")
        script.get(f"{base}/methods/x")
        script.get(f"{base}/methods", 1)
        for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            script.ask(verb, base)
            script.ask(verb, f"{base}/x", {})
            script.ask(verb, f"{base}?method=x", {})


def media(script: Script) -> None:
    node = script.node()
    path = f"/nodes/{node}/vmedia"
    image = {"device_type": "cdrom", "image_url": "http://images.test/a.iso"}
    for body in (image | {"device_type": "tape"}, image | {"device_type": None},
                 image | {"image_url": 7}, image | {"image_url": None}, image | {"x": 1},
                 image | {"image_download_source": "x"}, image | {"image_download_source": None},
                 {"device_type": "cdrom"}, {"image_url": "x"}, {}, [], MISSING, 7):  # fmt: skip
        script.post(path, body)
        script.post("/nodes/unknown/vmedia", body)
    for version in (88, 89, 92, 93):
        script.get("/nodes/unknown/vmedia", version)
        for method in ("POST", "DELETE", "PUT", "PATCH"):
            script.ask(method, "/nodes/unknown/vmedia", image, at=version)
            script.ask(method, f"{path}/x", image, at=version)
        script.get(f"{path}/x", version)
    for query in ("x=1", "device_types=tape", "device_types=cdrom,tape"):
        script.ask("DELETE", f"{path}?{query}")
    script.get(f"{path}?x=1")


STORIES: Final = (raid, nmi_and_lights, vendor_methods, vendor_methods_of_drivers, media)


def draw(seed: int) -> Iterator[Script]:
    for tell in STORIES:
        script = Script(tell.__name__.replace("_", " "), seed)
        tell(script)
        yield script
