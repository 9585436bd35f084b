"""What makes single faults of BMCs harmless is switched off in turn, and a trial notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from bloomery.drivers import secure_boot
from bloomery.drivers.redfish import firmware, media, power, wire
from bloomery.drivers.redfish.access import Access
from tests.kit.machines import bmc_faults
from tests.kit.probes import bmc_probes

Patch = pytest.MonkeyPatch


def repetition_off(patch: Patch) -> None:
    """What may be repeated is asked for once."""
    patch.setattr(Access, "_repeated", Access._work)


def look_after_ejection_off(patch: Patch) -> None:
    """sushy's word is taken for it."""
    patch.setattr(media, "_take_out", lambda device: device.eject_media())


def impatience_off(patch: Patch) -> None:
    """An order that was taken is not given again."""
    patch.setattr(power.PowerOrder, "is_ignored", lambda order: False)


def page_check_off(patch: Patch) -> None:
    """A page of HTML is an answer."""
    patch.setattr(wire, "_require_no_page", lambda answer: None)


def recording_off(patch: Patch) -> None:
    """The driver leaves it to others to record the power state."""
    patch.setattr(power, "_recorded", lambda task, outcome, ends: outcome)


def adoption_off(patch: Patch) -> None:
    """A task that an order has begun whose answer was lost is not looked for."""
    patch.setattr(firmware._Update, "_find_begun", lambda update, system: (None, []))


class Mutant(NamedTuple):
    off: Callable[[Patch], None]
    operation: str
    request: str
    fault: str

    @property
    def cell(self) -> bmc_faults.Cell:
        return next(
            cell
            for cell in bmc_faults.single_cells()
            if (cell.operation.name, cell.request.name, cell.fault) == self[1:]
        )


MUTANTS = (
    Mutant(repetition_off, "set boot device", "PATCH of boot", "reset"),
    Mutant(look_after_ejection_off, "undeploy", "EjectMedia", "status 500"),
    Mutant(impatience_off, "soft power off", "Reset", "stuck"),
    Mutant(page_check_off, "deploy", "PATCH of boot", "nojson"),
    Mutant(adoption_off, "update firmware", "SimpleUpdate", "after"),
    Mutant(recording_off, "power on", "Reset", "after"),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.off.__name__)
def test_a_protection_that_is_off_is_noticed(tmp_path, mutant: Mutant) -> None:
    with bmc_faults.Trial(tmp_path) as trial:
        [row] = trial.run([mutant.cell])
        assert row.outcome == bmc_faults.DONE
        with pytest.MonkeyPatch.context() as patch:
            mutant.off(patch)
            [row] = trial.run([mutant.cell])
    assert row.hits
    assert row.outcome != bmc_faults.DONE


def test_secure_boot_follows_its_instance() -> None:
    bmc_probes.secure_boot_lasts_as_long_as_its_instance()


@pytest.mark.parametrize("off", ["prepare", "undo"])
def test_secure_boot_that_is_left_as_it_is_is_noticed(monkeypatch: Patch, off: str) -> None:
    monkeypatch.setattr(secure_boot, off, lambda task: None)
    with pytest.raises(AssertionError):
        bmc_probes.secure_boot_lasts_as_long_as_its_instance()
