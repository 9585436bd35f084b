"""The table of provision states, as the specification has it, typed a second time.

``TRANSITIONS``: from, event, to, target afterwards.  ``CLASSES``: value, class, own target.
"""

from __future__ import annotations

from typing import Final


def _lines(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split("|")) for line in text.strip().splitlines()]


TRANSITIONS: Final = _lines("""
enroll | manage | verifying | manageable
verifying | done | manageable | none
verifying | fail | enroll | none
manageable | provide | cleaning | available
manageable | clean | cleaning | available
manageable | inspect | inspecting | manageable
manageable | adopt | adopting | active
available | deploy | deploying | active
available | manage | manageable | none
deploying | wait | wait call-back | active
deploying | hold | deploy hold | active
deploying | fail | deploy failed | active
deploying | done | active | none
wait call-back | resume | deploying | active
wait call-back | hold | deploy hold | active
wait call-back | fail | deploy failed | active
wait call-back | abort | deploy failed | active
wait call-back | delete | deleting | available
deploy hold | unhold | wait call-back | active
deploy hold | abort | deploy failed | active
deploy failed | rebuild | deploying | active
deploy failed | deploy | deploying | active
deploy failed | delete | deleting | available
active | rebuild | deploying | active
active | delete | deleting | available
active | rescue | rescuing | rescue
active | service | servicing | active
error | rebuild | deploying | active
error | delete | deleting | available
deleting | fail | error | none
deleting | clean | cleaning | available
cleaning | done | available | none
cleaning | manage | manageable | none
cleaning | wait | clean wait | available
cleaning | hold | clean hold | available
cleaning | fail | clean failed | available
clean wait | resume | cleaning | available
clean wait | hold | clean hold | available
clean wait | fail | clean failed | available
clean wait | abort | clean failed | available
clean hold | unhold | clean wait | available
clean hold | abort | clean failed | available
clean failed | manage | manageable | none
inspecting | done | manageable | none
inspecting | wait | inspect wait | manageable
inspecting | fail | inspect failed | manageable
inspect wait | done | manageable | none
inspect wait | resume | inspecting | manageable
inspect wait | fail | inspect failed | manageable
inspect wait | abort | inspect failed | manageable
inspect failed | manage | manageable | none
inspect failed | inspect | inspecting | manageable
adopting | done | active | none
adopting | fail | adopt failed | active
adopt failed | adopt | adopting | active
adopt failed | manage | manageable | none
rescuing | done | rescue | none
rescuing | wait | rescue wait | rescue
rescuing | fail | rescue failed | rescue
rescue wait | resume | rescuing | rescue
rescue wait | fail | rescue failed | rescue
rescue wait | abort | rescue failed | rescue
rescue wait | delete | deleting | available
rescue | rescue | rescuing | rescue
rescue | unrescue | unrescuing | active
rescue | delete | deleting | available
rescue failed | rescue | rescuing | rescue
rescue failed | unrescue | unrescuing | active
rescue failed | delete | deleting | available
unrescuing | done | active | none
unrescuing | fail | unrescue failed | active
unrescue failed | rescue | rescuing | rescue
unrescue failed | unrescue | unrescuing | active
unrescue failed | delete | deleting | available
servicing | done | active | none
servicing | wait | service wait | active
servicing | hold | service hold | active
servicing | fail | service failed | active
service wait | resume | servicing | active
service wait | hold | service hold | active
service wait | fail | service failed | active
service wait | abort | service failed | active
service wait | delete | deleting | available
service hold | service | servicing | active
service hold | unhold | service wait | active
service hold | fail | service failed | active
service hold | abort | service failed | active
service failed | service | servicing | active
service failed | rescue | rescuing | rescue
service failed | wait | service wait | active
service failed | hold | service hold | active
service failed | delete | deleting | available
service failed | abort | active | none
""")

CLASSES: Final = _lines("""
enroll | stable | none
verifying | unstable | manageable
manageable | stable | none
available | stable | none
active | stable | none
deploying | unstable | active
wait call-back | unstable, wait | active
deploy failed | failed | active
deploy hold | hold | active
deleting | unstable | available
cleaning | unstable | available
clean wait | unstable, wait | available
clean failed | failed | available
clean hold | hold | available
error | stable | none
inspecting | unstable | manageable
inspect wait | unstable, wait | manageable
inspect failed | failed | manageable
adopting | unstable | active
adopt failed | failed | active
rescue | stable | none
rescuing | unstable | rescue
rescue wait | unstable, wait | rescue
rescue failed | failed | rescue
unrescuing | unstable | active
unrescue failed | failed | active
servicing | unstable | active
service wait | unstable, wait | active
service failed | failed | active
service hold | hold | active
""")

# Sets that are no class of the table above.
SETS: Final = {
    "SERVICING_STATES": "servicing, service wait, service failed, service hold",
    "INSPECTION_STATES": "inspecting, inspect wait, inspect failed",
    "UPDATE_ALLOWED_STATES": "deploy failed, inspecting, inspect failed, inspect wait, "
    "clean failed, error, verifying, adopt failed, rescue failed, unrescue failed, service hold, "
    "service failed",
    "DELETE_ALLOWED_STATES": "manageable, enroll, adopt failed",
    "STUCK_STATES_TREATED_AS_FAIL": "deploying, cleaning, verifying, inspecting, adopting, "
    "rescuing, unrescuing, deleting, servicing",
    "LOOKUP_ALLOWED_STATES": "deploying, wait call-back, cleaning, clean wait, inspecting, "
    "inspect wait, rescuing, rescue wait, service wait",
    "FASTTRACK_LOOKUP_ALLOWED_STATES": "deploying, wait call-back, cleaning, clean wait, "
    "inspecting, inspect wait, rescuing, rescue wait, service wait, enroll, manageable, "
    "available, servicing, service hold",
    "POWER_SYNC_EXCLUDED_STATES": "wait call-back, clean wait, enroll, adopt failed",
}

# Verb, event, states that admit it (spec: verbs of PUT provision).
VERBS: Final = _lines("""
active | deploy | available, deploy failed
deploy | deploy | available, deploy failed
rebuild | rebuild | active, deploy failed, error
deleted | delete | active, wait call-back, deploy failed, error, rescue, rescue wait, rescue failed, unrescue failed, service wait, service failed
undeploy | delete | active, wait call-back, deploy failed, error, rescue, rescue wait, rescue failed, unrescue failed, service wait, service failed
manage | manage | enroll, available, clean failed, inspect failed, adopt failed, cleaning
provide | provide | manageable
inspect | inspect | manageable, inspect failed
abort | abort | clean wait, clean hold, inspect wait, rescue wait, deploy hold, wait call-back, service wait, service hold, service failed
clean | clean | manageable, deleting
adopt | adopt | manageable, adopt failed
rescue | rescue | active, rescue, rescue failed, unrescue failed, service failed
unrescue | unrescue | rescue, rescue failed, unrescue failed
unhold | unhold | deploy hold, clean hold, service hold
service | service | active, service hold, service failed
""")  # noqa: E501  long is fine for a table
