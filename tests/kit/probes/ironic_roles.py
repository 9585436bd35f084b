"""Whom each rule of Ironic lets pass by default: the answers of release 39.0.0 itself.

    allows("baremetal:node:get", "owner", "reader")         # True

A row says for each place where a token may be from who passes: S the system, O the project that
owns the object, L the one that the node is lent to, X any other.  Behind the place is the least
role: r reader, m member, g manager, a admin; each implies those before it.  s is role service,
which implies nothing.  ``Sm Ss Og`` reads: members of the whole system and services of the system,
and managers and admins of the owner.  ``show_password`` and its like let nobody pass.  Ironic lets
role service of any project pass to runbooks, too (why not here: doc/reference/differences.md).
"""

from __future__ import annotations

from typing import Final

PLACES: Final = {"system": "S", "owner": "O", "lessee": "L", "stranger": "X"}
ROLES: Final = {
    "nobody": "", "reader": "r", "member": "rm", "manager": "rmg", "admin": "rmga", "service": "s",
}  # fmt: skip

TABLE: Final = {
    "show_password": "",
    "show_instance_secrets": "",
    "baremetal:node:create": "Sa Ss",
    "baremetal:node:create:self_owned_node": "Sa Ss Oa Os La Ls Xa Xs",
    "baremetal:node:list": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:node:list_all": "Sr Ss",
    "baremetal:node:get": "Sr Ss Or Os Lr",
    "baremetal:node:get:filter_threshold": "Sr Ss",
    "baremetal:node:get:last_error": "Sr Ss Or Os",
    "baremetal:node:get:reservation": "Sr Ss Or Os",
    "baremetal:node:get:driver_internal_info": "Sr Ss Or Os",
    "baremetal:node:get:driver_info": "Sr Ss Or Os",
    "baremetal:node:update:driver_info": "Sm Ss Om Os",
    "baremetal:node:update:properties": "Sm Ss Om Os",
    "baremetal:node:update:chassis_uuid": "Sa",
    "baremetal:node:update:instance_uuid": "Sm Ss Om Os",
    "baremetal:node:update:lessee": "Sm Ss Om Os",
    "baremetal:node:update:owner": "Sm",
    "baremetal:node:update:driver_interfaces": "Sm Ss Og Os",
    "baremetal:node:update:network_data": "Sm Ss Om Os",
    "baremetal:node:update:conductor_group": "Sm",
    "baremetal:node:update:name": "Sm Ss Om Os",
    "baremetal:node:update:retired": "Sm Ss Om Os",
    "baremetal:node:update": "Sm Ss Om Lm",
    "baremetal:node:update_extra": "Sm Ss Om Lm",
    "baremetal:node:update_instance_info": "Sm Ss Om Os Lg",
    "baremetal:node:update_owner_provisioned": "Sa",
    "baremetal:node:delete": "Sa",
    "baremetal:node:forget": "Sa",  # ours
    "baremetal:node:import": "Sa",  # ours
    "baremetal:node:delete:self_owned_node": "Oa",
    "baremetal:node:validate": "Sm Ss Om Os Lg",
    "baremetal:node:set_maintenance": "Sm Ss Om Os Lg",
    "baremetal:node:clear_maintenance": "Sm Ss Om Os Lg",
    "baremetal:node:get_boot_device": "Sm Ss Og Os",
    "baremetal:node:set_boot_device": "Sm Ss Og Os",
    "baremetal:node:get_indicator_state": "Sr Ss Or Os Lr",
    "baremetal:node:set_indicator_state": "Sm Ss Om Os",
    "baremetal:node:inject_nmi": "Sm Ss Og Os",
    "baremetal:node:get_states": "Sr Ss Or Os Lr",
    "baremetal:node:set_power_state": "Sm Ss Om Lm",
    "baremetal:node:set_boot_mode": "Sm Ss Om Lm",
    "baremetal:node:set_secure_boot": "Sm Ss Om Lm",
    "baremetal:node:set_provision_state": "Sm Ss Om Os Lg",
    "baremetal:node:set_provision_state:clean_steps": "Sm Ss Om Os Lg",
    "baremetal:node:set_provision_state:service_steps": "Sm Ss Om Os Lg",
    "baremetal:node:set_raid_state": "Sm Ss Om Os",
    "baremetal:node:get_console": "Sm Ss Om Os",
    "baremetal:node:set_console_state": "Sm Ss Om Os",
    "baremetal:node:console:read": "Sr Ss Or Os",  # ours
    "baremetal:node:console:write": "Sm Ss Om Os",  # ours
    "baremetal:node:vif:list": "Sr Ss Or Os Lr",
    "baremetal:node:vif:attach": "Sm Ss Om Os Lg",
    "baremetal:node:vif:detach": "Sm Ss Om Os Lg",
    "baremetal:node:traits:list": "Sr Ss Or Os Lr",
    "baremetal:node:traits:set": "Sm Ss Og Os",
    "baremetal:node:traits:delete": "Sm Ss Og Os",
    "baremetal:node:bios:get": "Sr Ss Or Os Lr",
    "baremetal:node:disable_cleaning": "Sa",
    "baremetal:node:history:get": "Sr Ss Or Os",
    "baremetal:node:inventory:get": "Sr Ss Or Os",
    "baremetal:node:update:shard": "Sa",
    "baremetal:shards:get": "Sr Ss",
    "baremetal:node:update:parent_node": "Sm",
    "baremetal:node:update:disable_power_off": "Sa",
    "baremetal:node:firmware:get": "Sr Ss Or Os Lr",
    "baremetal:node:vmedia:attach": "Sm Ss Om Lm",
    "baremetal:node:vmedia:detach": "Sm Ss Om Lm",
    "baremetal:node:vmedia:get": "Sr Ss Or Os Lr",
    "baremetal:port:get": "Sr Ss Or Os Lr",
    "baremetal:port:list": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:port:list_all": "Sr Ss",
    "baremetal:port:create": "Sa Ss Og Os",
    "baremetal:port:delete": "Sa Ss Og Os",
    "baremetal:port:update": "Sm Ss Og Os",
    "baremetal:portgroup:get": "Sr Ss Or Os Lr",
    "baremetal:portgroup:create": "Sa Ss Og Os",
    "baremetal:portgroup:delete": "Sa Ss Og Os",
    "baremetal:portgroup:update": "Sm Ss Og Os",
    "baremetal:portgroup:list": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:portgroup:list_all": "Sr Ss",
    "baremetal:chassis:get": "Sr Ss",
    "baremetal:chassis:create": "Sa",
    "baremetal:chassis:delete": "Sa",
    "baremetal:chassis:update": "Sm",
    "baremetal:driver:get": "Sr Ss",
    "baremetal:driver:get_properties": "Sr Ss",
    "baremetal:driver:get_raid_logical_disk_properties": "Sr Ss",
    "baremetal:node:vendor_passthru": "Sa",
    "baremetal:driver:vendor_passthru": "Sa",
    "baremetal:node:ipa_heartbeat": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:driver:ipa_lookup": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:driver:ipa_continue_inspection": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:volume:list_all": "Sr Ss",
    "baremetal:volume:list": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:volume:get": "Sr Ss Or Os Lr",
    "baremetal:volume:create": "Sm Ss Og Os Lg",
    "baremetal:volume:delete": "Sm Ss Og Os Lg",
    "baremetal:volume:update": "Sm Ss Om Os Lg",
    "baremetal:volume:view_target_properties": "Sr Ss Oa La Xa",
    "baremetal:conductor:get": "Sr Ss",
    "baremetal:bmc:list": "Sr Ss",
    "baremetal:audit:list": "Sr Ss",
    "baremetal:user:list": "Sr Ss",
    "baremetal:conductor:drain": "Sa",
    "baremetal:allocation:get": "Sr Ss Or",
    "baremetal:allocation:list": "Sr Ss Or Lr Xr",
    "baremetal:allocation:list_all": "Sr Ss",
    "baremetal:allocation:create": "Sm Om Lm Xm",
    "baremetal:allocation:create_restricted": "Sm",
    "baremetal:allocation:delete": "Sm Om",
    "baremetal:allocation:update": "Sm Om",
    "baremetal:events:post": "Sa",
    "baremetal:events:list": "Sr Ss Or Os Lr Ls Xr Xs",  # ours, as the lists of Ironic
    "baremetal:events:list_all": "Sr Ss",
    "baremetal:firmware_catalogue:get": "Sr Ss",
    "baremetal:firmware_catalogue:set": "Sa",
    **{f"baremetal:webhook:{verb}": "Sa" for verb in ("get", "create", "update", "delete")},
    "baremetal:deploy_template:get": "Sr Ss",
    "baremetal:deploy_template:create": "Sa",
    "baremetal:deploy_template:delete": "Sa",
    "baremetal:deploy_template:update": "Sa",
    "baremetal:runbook:get": "Sr Ss Or Os",
    "baremetal:runbook:list": "Sr Ss Or Os Lr Ls Xr Xs",
    "baremetal:runbook:list_all": "Sr Ss",
    "baremetal:runbook:create": "Sm Ss Og Os Lg Ls Xg Xs",
    "baremetal:runbook:delete": "Sm Ss Og Os",
    "baremetal:runbook:update": "Sm Ss Og Os",
    "baremetal:runbook:update:public": "Sm",
    "baremetal:runbook:update:owner": "Sm",
    "baremetal:runbook:use": "Sm Ss Og Os",
    "baremetal:inspection_rule:get": "Sr Ss",
    "baremetal:inspection_rule:list_all": "Sr Ss",
    "baremetal:inspection_rule:create": "Sa",
    "baremetal:inspection_rule:update": "Sa",
    "baremetal:inspection_rule:delete": "Sa",
}


# Rules that let everybody pass: agents have no token at all.
ANYBODY: Final = (
    "baremetal:caller:get",  # ours
    "baremetal:node:ipa_heartbeat", "baremetal:driver:ipa_lookup",
    "baremetal:driver:ipa_continue_inspection",
)  # fmt: skip


def allows(rule: str, place: str, role: str) -> bool:
    """Raises KeyError for a rule that has no row."""
    if rule in ANYBODY:
        return True
    return any(f"{PLACES[place]}{letter}" in TABLE[rule].split() for letter in ROLES[role])
