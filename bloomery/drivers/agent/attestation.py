"""The steps that let a machine prove what it has booted: ``deploy.verify_attestation`` and others.

The agent's ramdisk has the plug-in ``bloomery_attestation`` (contrib/agent), with two commands:

    attest.identify {} -> {"endorsement_key", "attestation_key", "endorsement_certificate"}
    attest.quote {"credential", "secret", "pcrs"} -> {"quote", "signature", "pcrs", "event_log"}

Keys are TPM2B_PUBLIC, and all but ``pcrs`` ({number: hexadecimal}) is in base64.  The certificate,
in DER, is left out where the TPM has none.  The challenge is
a secret that is encrypted for the endorsement key and bound to the attestation key.  The quote has
it as its nonce: so both keys are in one TPM, and the quote was made after the question.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import logging
from collections.abc import Mapping
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conf import Conf
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import commands
from bloomery.drivers.agent_boot import cache, measurements, sources
from bloomery.drivers.agent_boot.cache import BeingFetched, FileCache
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.model.node import Node
from bloomery.model.rules import agents
from bloomery.model.step import Step
from bloomery.outcome import Again, Done, Outcome

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

KEY, PCRS = "attestation_ek", "attestation_pcrs"  # in driver_info
RECORD: Final = "attestation"  # in driver_internal_info: the last success
PROPERTIES: Final = {
    KEY: "Endorsement key of the machine's TPM: its public key or certificate in PEM, or sha256: "
    "and the digest of the key. Agents must then prove what they have booted. Optional.",
    PCRS: "Values that further PCRs must have, as {number: SHA-256 or a list of them}. Optional.",
}
VERIFY, LEARN = STEPS = ("verify_attestation", "learn_endorsement_key")
_PRIORITIES: Final = {"clean": 200, "deploy": 99, "service": 0}  # before disks are written
_CHALLENGE: Final = "agent_challenge"  # in driver_internal_info, until it is answered
_LEARNS: Final = {
    "pcrs": {"description": "numbers of PCRs whose present values are enrolled, such as [0, 7]"}
}
_MOST_PCR: Final = 23
_FETCH_PAUSE_S: Final = 2.0


class Attestation:
    """The steps of all nodes of a conductor."""

    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        self._makers: Any = None
        if conf.agent.attestation_ca:
            from bloomery.drivers.attestation import makers  # late: cryptography

            self._makers = makers.Makers(conf.agent.attestation_ca)
        self._files = FileCache(cache.ramdisks(conf), HttpClient(conf.default))

    def is_asked(self, node: Node) -> bool:
        """Return whether the node's agents must prove what they have booted."""
        return bool(node.driver_info.get(KEY)) or self._conf.agent.require_attestation

    def list_steps(self, node: Node, phase: str) -> list[Step]:
        """Return the steps of the phase; verification is planned for nodes that must prove."""
        if phase not in _PRIORITIES:
            return []
        priority = _PRIORITIES[phase] if self.is_asked(node) else 0
        verify = Step(interface="deploy", step=VERIFY, priority=priority, resumable=True)
        learn = Step(interface="deploy", step=LEARN, argsinfo=_LEARNS, resumable=True)
        return [verify, learn] if phase == "clean" else [verify]

    def check(self, task: base.DriverTask) -> None:
        """Raise MissingParameterValue or InvalidParameterValue for a node that cannot prove."""
        _pinned(task)
        if not self.is_asked(task.node):
            return
        self._enrolled(task)
        _check_boot(task)

    def run(self, task: base.DriverTask, step: Step) -> Outcome:
        """Run a step of STEPS.  Raises as ``verify``."""
        if step.step == VERIFY:
            return self.verify(task)
        if not task.turn and task.driver_info.get(KEY):
            raise errors.StepFailure(
                reason=f"driver_info/{KEY} names an endorsement key already: remove it first, if "
                "the machine has got another TPM",
            )
        return self.verify(task, learns=_numbers(step.args.get("pcrs") or []))

    def ensure(self, task: base.DriverTask) -> Outcome | None:
        """Verify the agent, unless it need not prove anything or did so since it booted."""
        if self.is_asked(task.node) and not task.node.driver_internal_info.get(agents.ATTESTED):
            return self.verify(task)
        return None

    def verify(self, task: base.DriverTask, learns: list[int] | None = None) -> Outcome:
        """Ask the node's agent for a quote, and check it.

        ``learns``: enrol its endorsement key, and its values of these PCRs.  Raises StepFailure
        with what differs, else as ``commands.run``.
        """
        identify = functools.partial(self._challenge, task, learns is not None)
        check = functools.partial(self._check, task, learns)

        def ask_quote() -> Outcome:
            try:
                return commands.run(
                    task, self._conf, "attest.quote", lambda: self._question(task, learns),
                    "the TPM quotes what the machine has booted", store=check,
                )  # fmt: skip
            except BeingFetched:
                reason = "the agent's ramdisk is being fetched, for its digest"
                return Again(after_s=_FETCH_PAUSE_S, reason=reason)

        outcome = substeps.run_in_order(
            task,
            "agent_attestation",
            functools.partial(_check_boot, task),
            lambda: self._ask_keys(task, identify),
            ask_quote,
        )
        if isinstance(outcome, Done):
            commands.forget(task)
        return outcome

    # ------------------------------------------------------------------------------- its parts

    def _ask_keys(self, task: base.DriverTask, store: Any) -> Outcome:
        task.node.driver_internal_info.pop(RECORD, None)
        try:
            return commands.run(
                task, self._conf, "attest.identify", dict, "the TPM makes its keys", store=store
            )
        except errors.AgentRefused as exc:
            raise errors.StepFailure(
                reason=f"{exc}; an agent that proves what it has booted needs the plug-in "
                "bloomery_attestation in its ramdisk",
            ) from exc

    def _challenge(self, task: base.DriverTask, is_new: bool, answer: Json) -> None:
        """Check the keys of a machine, and keep a challenge for them."""
        from bloomery.drivers.attestation import tpm  # late: cryptography

        ek_area, ak_area = (
            _bytes(answer, f"{kind}_key") for kind in ("endorsement", "attestation")
        )
        ek = tpm.read_public(ek_area, "endorsement key")
        ak = tpm.read_public(ak_area, "attestation key")
        key = tpm.fingerprint(ek.key)
        if not is_new and key != (enrolled := self._enrolled(task)):
            raise errors.StepFailure(
                reason=f"the machine has another TPM: its endorsement key is {key}, and "
                f"driver_info/{KEY} names {enrolled}",
            )
        tpm.check_attestation_key(ak)
        enrols = key
        if is_new and self._makers is not None:
            enrols = self._certificate(answer, key)
        challenge = tpm.challenge(ek, ak)
        task.node.driver_internal_info[_CHALLENGE] = {
            "endorsement_key": key,
            "enrols": enrols,
            "attestation_key": answer["attestation_key"],
            "credential": base64.b64encode(challenge.credential).decode(),
            "secret": base64.b64encode(challenge.encrypted_secret).decode(),
            "answer": hashlib.sha256(challenge.secret).hexdigest(),
        }

    def _certificate(self, answer: Json, key: str) -> str:
        """Return the certificate in PEM of a key that is learnt.  Raises StepFailure."""
        from bloomery.drivers.attestation import tpm

        if not answer.get("endorsement_certificate"):
            raise errors.StepFailure(
                reason="[agent]attestation_ca asks for the certificate of the endorsement key, and "
                f"the machine's TPM shows none: set driver_info/{KEY} to that of its maker",
            )
        certificate = tpm.read_certificate(_bytes(answer, "endorsement_certificate"))
        try:
            self._makers.check(certificate)
        except errors.Invalid as exc:
            raise errors.StepFailure(reason=f"cannot learn the endorsement key: {exc}") from exc
        if tpm.enrolled_fingerprint(certificate) != key:
            raise errors.StepFailure(
                reason="the certificate that the machine's TPM shows is that of another key"
            )
        return certificate

    def _enrolled(self, task: base.DriverTask) -> str:
        """Return the fingerprint of the node's endorsement key.

        Raises MissingParameterValue, InvalidParameterValue.
        """
        from bloomery.drivers.attestation import tpm

        if not task.driver_info.get(KEY):
            raise errors.MissingParameterValue(
                reason=f"driver_info/{KEY} is missing, and [agent]require_attestation is true: "
                "enrol the endorsement key of the machine's TPM, or learn it by the clean step "
                f"{LEARN}",
            )
        key = tpm.enrolled_fingerprint(task.driver_info[KEY])
        if self._makers is not None:
            self._makers.check(task.driver_info[KEY])
        return key

    def _question(self, task: base.DriverTask, learns: list[int] | None) -> Json:
        challenge = task.node.driver_internal_info[_CHALLENGE]
        asked = {name: challenge[name] for name in ("credential", "secret")}
        return asked | {"pcrs": _selected(task, learns)}

    def _check(self, task: base.DriverTask, learns: list[int] | None, answer: Json) -> None:
        """Check a quote against the challenge and the node's boot files, and record it."""
        from bloomery.drivers.attestation import event_log, policy, tpm

        info = task.node.driver_internal_info
        challenge = info[_CHALLENGE]
        ak_area = base64.b64decode(challenge["attestation_key"])
        ak = tpm.read_public(ak_area, "attestation key")
        quote = tpm.read_quote(ak, _bytes(answer, "quote"), _bytes(answer, "signature"))
        nonce = hashlib.sha256(quote.nonce).hexdigest()
        if not hmac.compare_digest(nonce, challenge["answer"]):
            raise errors.StepFailure(
                reason="the agent's quote does not answer this challenge: it is an old one, or its "
                "attestation key is not of the TPM with the endorsement key",
            )
        values = _values(answer, _selected(task, learns))
        digest = hashlib.sha256(b"".join(values[pcr] for pcr in sorted(values))).digest()
        if quote.pcrs != tuple(sorted(values)) or quote.pcr_digest != digest:
            raise errors.StepFailure(
                reason="the agent's PCR values are not those that its TPM has quoted: they were "
                "altered, or extended meanwhile",
            )
        for pcr, allowed in _pinned(task).items():
            if values[pcr].hex() not in allowed:
                raise errors.StepFailure(
                    reason=f"PCR {pcr} is {values[pcr].hex()}, and driver_info/{PCRS} says "
                    f"{' or '.join(allowed)}: the firmware or its settings differ",
                )
        policy.check(event_log.read(_bytes(answer, "event_log")), values, self._expected(task))
        del info[_CHALLENGE]
        if learns is not None:
            enrolled: Json = {KEY: challenge["enrols"]}
            if learns:
                pinned = {str(pcr): values[pcr].hex() for pcr in learns}
                enrolled[PCRS] = (task.node.driver_info.get(PCRS) or {}) | pinned
            task.node.driver_info = task.node.driver_info | enrolled
        info[agents.ATTESTED] = True
        info[RECORD] = {
            "verified_at": clock.now().isoformat(),
            "endorsement_key": challenge["endorsement_key"],
            "pcrs": {str(pcr): values[pcr].hex() for pcr in sorted(values)},
        }
        LOG.info("node %s: its TPM proves what its agent has booted", task.node.uuid)

    def _expected(self, task: base.DriverTask) -> Any:
        """Return the digests of the node's boot files.  Raises StepFailure, BeingFetched."""
        from bloomery.drivers.attestation import boot_files, policy

        named = sources.of(task, self._conf.conductor, None, sources.purpose_of(task))
        others = boot_files.read_list(self._conf.agent.attestation_digests)
        with self._files.open(named.kernel) as file:
            kernel = boot_files.digests_of(file)
        with self._files.open(named.ramdisk) as file:
            ramdisk = boot_files.digests_of(file)
        if named.bootloader is not None:
            with self._files.open(named.bootloader) as file:
                programs = boot_files.digests_of(file).programs
            others |= {digest: f"{name} of the boot loader" for name, digest in programs}
        noted = measurements.noted(task)
        others |= {digest: name for name, digest in noted.items()}
        return policy.Expected(
            kernel=frozenset({kernel.file, *(digest for _, digest in kernel.programs)}),
            ramdisk=ramdisk.file, command_line=noted[measurements.COMMAND_LINE], others=others,
        )  # fmt: skip


def _check_boot(task: base.DriverTask) -> None:
    """Raise unless the node's boot interface notes what its boot loader measures."""
    boot = task.driver.boot
    if not boot.is_measured or task.driver_info.get("deploy_iso"):
        what = "driver_info/deploy_iso is a ready ISO" if boot.is_measured else f"is {boot.name}"
        raise errors.InvalidParameterValue(
            reason="attestation needs a boot by GRUB from files that are published here, such as "
            f"by redfish-virtual-media, redfish-https, pxe or http; the node's boot {what}",
        )


def _pinned(task: base.DriverTask) -> dict[int, list[str]]:
    """Return the values that further PCRs may have.  Raises InvalidParameterValue."""
    given = task.driver_info.get(PCRS) or {}
    pinned: dict[int, list[str]] = {}
    for number, value in given.items() if isinstance(given, Mapping) else [("", given)]:
        values = [str(each).lower() for each in (value if isinstance(value, list) else [value])]
        is_pcr = str(number).isdecimal() and int(number) <= _MOST_PCR
        if not is_pcr or not all(_is_digest(each) for each in values):
            raise errors.InvalidParameterValue(
                reason=f"driver_info/{PCRS} takes an object of PCRs, 0 to {_MOST_PCR}, with a "
                f"SHA-256 of 64 hexadecimal digits or a list of them, not {number!r}: {value!r}",
            )
        pinned[int(number)] = values
    return pinned


def _is_digest(text: str) -> bool:
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def _numbers(pcrs: Any) -> list[int]:
    if not isinstance(pcrs, list) or not all(
        type(pcr) is int and 0 <= pcr <= _MOST_PCR for pcr in pcrs
    ):
        raise errors.StepFailure(
            reason=f"argument pcrs takes a list of numbers from 0 to {_MOST_PCR}, not {pcrs!r}"
        )
    return sorted(set(pcrs))


def _selected(task: base.DriverTask, learns: list[int] | None) -> list[int]:
    """Return the PCRs of the quote: those of the boot, and those that the node names."""
    from bloomery.drivers.attestation import policy

    return sorted({*policy.PCRS, *_pinned(task), *(learns or ())})


def _bytes(answer: Json, name: str) -> bytes:
    try:
        return base64.b64decode(answer[name], validate=True)
    except (KeyError, TypeError, binascii.Error) as exc:
        raise errors.StepFailure(reason=f"the agent's answer has no {name} in base64") from exc


def _values(answer: Json, selected: list[int]) -> dict[int, bytes]:
    try:
        return {pcr: bytes.fromhex(answer["pcrs"][str(pcr)]) for pcr in selected}
    except (KeyError, TypeError, ValueError) as exc:
        raise errors.StepFailure(
            reason=f"the agent's answer lacks values of PCRs {', '.join(map(str, selected))}"
        ) from exc
