"""The default policy rules, one per line.

Names and defaults are Ironic's, so that policy files of Ironic work here.  Checks are in the
language of oslo.policy: ``project_id:%(node.owner)s`` compares the caller's project with the
node's owner.  Rules that no operation checks are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from bloomery import parsing

ANY_SCOPE: Final = ("system", "project")
SYSTEM: Final = ("system",)


class Rule(NamedTuple):
    """A rule; ``scopes``: the accepted kinds of token, empty: all."""

    name: str
    check: str
    description: str
    scopes: tuple[str, ...] = ANY_SCOPE


def _any(*checks: str) -> str:
    return " or ".join(f"({check})" for check in checks)


_ADMIN: Final = "role:admin and system_scope:all"
_SERVICE: Final = "role:service and system_scope:all"
_OWNER: Final = "project_id:%(node.owner)s"
_LESSEE: Final = "project_id:%(node.lessee)s"
_OWNING_SERVICE: Final = f"role:service and {_OWNER}"
_TENANT: Final = f"({_OWNER} or {_LESSEE})"

# Checks: roles of the system first, then those of the node's projects.
MEMBER: Final = _any("role:member and system_scope:all", "rule:service_role")
READER: Final = _any("role:reader and system_scope:all", _SERVICE, "rule:service_role")
ANY_READER: Final = "role:reader or role:service"
TENANT_READER: Final = _any(READER, f"role:reader and {_TENANT}", _OWNING_SERVICE)
OWNER_READER: Final = _any(READER, f"role:reader and {_OWNER}", _OWNING_SERVICE)
TENANT_MEMBER: Final = _any(MEMBER, _SERVICE, f"role:member and {_TENANT}")
OWNER_MEMBER: Final = _any(MEMBER, _SERVICE, f"role:member and {_OWNER}", _OWNING_SERVICE)
OPERATOR: Final = _any(OWNER_MEMBER, f"(role:admin or role:manager) and {_LESSEE}")
_OWNER_ADMIN: Final = _any(f"(role:admin or role:manager) and {_OWNER}", _OWNING_SERVICE)
OWNER_ADMIN: Final = _any(MEMBER, _SERVICE, _OWNER_ADMIN)
ADMIN_OR_OWNER_ADMIN: Final = _any(_ADMIN, _SERVICE, _OWNER_ADMIN)
_VOLUME_ADMIN: Final = _any(
    MEMBER, _SERVICE, _OWNER_ADMIN, f"(role:admin or role:manager) and {_LESSEE}"
)
_RUNBOOK_OWNER: Final = "project_id:%(runbook.owner)s"
_RUNBOOK_SERVICE: Final = f"role:service and {_RUNBOOK_OWNER}"
_RUNBOOK_MANAGER: Final = _any(
    MEMBER, _SERVICE, f"role:manager and {_RUNBOOK_OWNER}", _RUNBOOK_SERVICE
)
_TRUSTED_PROJECT: Final = "role:service and project_name:%(config.service_project_name)s"
_ALLOCATION_OWNER: Final = "project_id:%(allocation.owner)s"
_ALLOCATION_MEMBER: Final = _any(MEMBER, f"role:member and {_ALLOCATION_OWNER}")
NOBODY: Final = "!"
# The rules that show secrets, by node field; they apply to every auth_strategy.
MASKS: Final = {
    "driver_info": "show_password",
    "driver_internal_info": "show_password",
    "instance_info": "show_instance_secrets",
}

# Rules for use in policy files, and the masks, which apply to every auth_strategy.
SHARED: Final = (
    Rule("service_role", _TRUSTED_PROJECT,
         "Services that [DEFAULT]rbac_service_role_elevated_access trusts", ()),
    Rule("admin_api", "role:admin or role:administrator", "Any admin (for old policy files)", ()),
    Rule("is_member", "(project_domain_id:default or project_domain_id:None) and "
         "(project_name:demo or project_name:baremetal)",
         "Members of two projects (for old policy files)", ()),
    Rule("is_observer", "rule:is_member and (role:observer or role:baremetal_observer)",
         "Readers (for old policy files)", ()),
    Rule("is_admin", "rule:admin_api or (rule:is_member and role:baremetal_admin)",
         "Admins (for old policy files)", ()),
    Rule("is_node_owner", _OWNER, "The project that owns the node", ()),
    Rule("is_node_lessee", _LESSEE, "The project that leases the node", ()),
    Rule("show_password", NOBODY, "Show secrets in driver_info and driver_internal_info", ()),
    Rule("show_instance_secrets", NOBODY, "Show secrets in instance_info", ()),
)  # fmt: skip

_NODE: Final = (
    ("create", _any(_ADMIN, _SERVICE), "Enroll a node of any owner"),
    ("create:self_owned_node", "role:admin or role:service", "Enroll a node in the own project"),
    ("import", _ADMIN, "Enroll a node in the state in which another service has left it"),
    ("list", ANY_READER, "List the nodes of the caller's project"),
    ("list_all", READER, "List the nodes of all projects"),
    ("get", TENANT_READER, "Read a node; callers without this rule get 404"),
    ("get:filter_threshold", READER, "Read nodes without the checks of the next four rules"),
    ("get:last_error", OWNER_READER, "Read last_error"),
    ("get:reservation", OWNER_READER, "Read the conductor that has reserved the node"),
    ("get:driver_internal_info", OWNER_READER, "Read driver_internal_info"),
    ("get:driver_info", OWNER_READER, "Read driver_info"),
    ("update", TENANT_MEMBER, "Change a field without a rule of its own"),
    ("update_extra", TENANT_MEMBER, "Change extra"),
    ("update_instance_info", OPERATOR, "Change instance_info or instance_name"),
    ("update_owner_provisioned", _ADMIN, "Change the owner of a node that is active"),
    ("update:driver_info", OWNER_MEMBER, "Change driver_info"),
    ("update:properties", OWNER_MEMBER, "Change properties"),
    ("update:chassis_uuid", _ADMIN, "Move a node to a chassis"),
    ("update:instance_uuid", OWNER_MEMBER, "Set or clear instance_uuid"),
    ("update:lessee", OWNER_MEMBER, "Set the lessee of a node"),
    ("update:owner", MEMBER, "Set the owner of a node"),
    ("update:driver_interfaces", OWNER_ADMIN, "Change the driver or an interface"),
    ("update:network_data", OWNER_MEMBER, "Change network_data"),
    ("update:conductor_group", MEMBER, "Change the conductor group of a node"),
    ("update:name", OWNER_MEMBER, "Rename a node"),
    ("update:retired", OWNER_MEMBER, "Set or clear retired and retired_reason"),
    ("update:shard", _ADMIN, "Change the shard of a node"),
    ("update:parent_node", MEMBER, "Set the parent of a node"),
    ("update:disable_power_off", _ADMIN, "Forbid or allow powering a node off"),
    ("disable_cleaning", _ADMIN, "Switch automated cleaning of a node off"),
    ("delete", _ADMIN, "Delete a node of any owner"),
    ("delete:self_owned_node", f"role:admin and {_OWNER}", "Delete a node of the caller's project"),
    ("forget", _ADMIN, "End all work on a node, and remove its record alone"),
    ("validate", OPERATOR, "Validate the settings of a node's interfaces"),
    ("set_maintenance", OPERATOR, "Begin maintenance"),
    ("clear_maintenance", OPERATOR, "End maintenance"),
    ("get_boot_device", OWNER_ADMIN, "Read the boot device and the supported ones"),
    ("set_boot_device", OWNER_ADMIN, "Set the boot device"),
    ("inject_nmi", OWNER_ADMIN, "Inject an NMI"),
    ("get_indicator_state", TENANT_READER, "Read indicators"),
    ("set_indicator_state", OWNER_MEMBER, "Set indicators"),
    ("get_states", TENANT_READER, "Read the states of a node"),
    ("set_power_state", TENANT_MEMBER, "Power a node on or off, or reboot it"),
    ("set_boot_mode", TENANT_MEMBER, "Set the boot mode"),
    ("set_secure_boot", TENANT_MEMBER, "Turn secure boot on or off"),
    ("set_raid_state", OWNER_MEMBER, "Set the target RAID configuration"),
    ("set_provision_state", OPERATOR, "Request a provision verb"),
    ("set_provision_state:clean_steps", OPERATOR, "Specify the steps of a cleaning"),
    ("set_provision_state:service_steps", OPERATOR, "Specify the steps of a service"),
    ("get_console", OWNER_MEMBER, "Read the connection details of the console"),
    ("set_console_state", OWNER_MEMBER, "Start or stop the console"),
    ("console:read", OWNER_READER, "Read what the machine writes to its console"),
    ("console:write", OWNER_MEMBER, "Type into the console"),
    ("vif:list", TENANT_READER, "List attached virtual interfaces"),
    ("vif:attach", OPERATOR, "Attach a virtual interface"),
    ("vif:detach", OPERATOR, "Detach a virtual interface"),
    ("vmedia:attach", TENANT_MEMBER, "Insert an image as virtual media"),
    ("vmedia:detach", TENANT_MEMBER, "Eject virtual media"),
    ("vmedia:get", TENANT_READER, "Read virtual media"),
    ("vendor_passthru", _ADMIN, "Call methods of the vendor interface of a node, or list them"),
    ("traits:list", TENANT_READER, "Read the traits of a node"),
    ("traits:set", OWNER_ADMIN, "Set or add traits"),
    ("traits:delete", OWNER_ADMIN, "Delete traits"),
    ("bios:get", TENANT_READER, "Read BIOS settings"),
    ("firmware:get", TENANT_READER, "Read firmware versions"),
    ("history:get", OWNER_READER, "Read the history of a node"),
    ("inventory:get", OWNER_READER, "Read the inventory of an inspection"),
)  # fmt: skip

# Stacks: Heat's rules for readers and members of a project.  Agents in instances have a role of
# their own with access to a few resources.
STACK_ADMIN: Final = "rule:context_is_admin"
STACK_READER: Final = _any(STACK_ADMIN, "role:reader and project_id:%(project_id)s")
STACK_MEMBER: Final = _any(STACK_ADMIN, "role:member and project_id:%(project_id)s")
INSTANCE_OR_READER: Final = _any(STACK_READER, "role:heat_stack_user")
TYPE_RULES: Final = "resource_types:"  # and the name of a type, or OS::Heat::*: those of a file
OPERATOR_KINDS: Final = (
    "DeployTemplate", "HardwareConfiguration", "Node", "Port", "PortGroup", "Runbook",
    "VolumeConnector", "VolumeTarget",
)  # of OS::Ironic  # fmt: skip
STEP_RULES: Final = "baremetal:step:execute:"  # and interface.step: those of a policy file

_STACKS: Final = {
    "stacks": (
        ("create", STACK_MEMBER, "Create or adopt a stack"),
        ("index", STACK_READER, "List stacks"),
        ("detail", STACK_READER, "List stacks in detail"),
        ("global_index", NOBODY, "List stacks of all projects"),
        ("lookup", INSTANCE_OR_READER, "Find a stack by name or ID"),
        ("show", STACK_READER, "Read a stack"),
        ("template", STACK_READER, "Read the template of a stack"),
        ("environment", STACK_READER, "Read the environment of a stack"),
        ("files", STACK_READER, "Read the files of a stack"),
        ("preview", STACK_READER, "Preview a stack"),
        ("update", STACK_MEMBER, "Update a stack"),
        ("update_patch", STACK_MEMBER, "Update parts of a stack"),
        ("update_no_change", "rule:stacks:update_patch", "Run a stack again without a change"),
        ("preview_update", STACK_MEMBER, "Preview an update"),
        ("preview_update_patch", STACK_MEMBER, "Preview an update of parts"),
        ("delete", STACK_MEMBER, "Delete a stack"),
        ("abandon", STACK_MEMBER, "Abandon a stack"),
        ("export", STACK_MEMBER, "Export a stack"),
        ("list_outputs", STACK_READER, "List the outputs of a stack"),
        ("show_output", STACK_READER, "Read an output of a stack"),
        ("override_plan_checks", STACK_ADMIN, "Update a stack past the operator's checks on plans"),
        ("list_revisions", STACK_READER, "List the revisions of a stack"),
        ("show_revision", STACK_READER, "Read a revision of a stack, or compare two"),
        ("snapshot", STACK_MEMBER, "Create a snapshot of a stack"),
        ("list_snapshots", STACK_READER, "List the snapshots of a stack"),
        ("show_snapshot", STACK_READER, "Read a snapshot of a stack"),
        ("delete_snapshot", STACK_MEMBER, "Delete a snapshot of a stack"),
        ("restore_snapshot", STACK_MEMBER, "Restore a stack from a snapshot"),
        ("validate_template", STACK_MEMBER, "Validate a template"),
        ("list_resource_types", STACK_READER, "List resource types"),
        ("resource_schema", STACK_READER, "Read the schema of a resource type"),
        ("generate_template", STACK_READER, "Generate a template of a resource type"),
        ("list_template_versions", STACK_READER, "List template versions"),
        ("list_template_functions", STACK_READER, "List the functions of templates"),
    ),
    "actions": (
        ("action", STACK_MEMBER, "Request an action on a stack without a rule of its own"),
        *((name, "rule:actions:action", f"Request {name} of a stack")
          for name in ("snapshot", "suspend", "resume", "check", "cancel_update",
                       "cancel_without_rollback")),
    ),
    "resource": (
        ("index", STACK_READER, "List the resources of a stack"),
        ("show", INSTANCE_OR_READER, "Read a resource"),
        ("metadata", INSTANCE_OR_READER, "Read the metadata of a resource"),
        ("signal", _any(STACK_MEMBER, "role:heat_stack_user"), "Signal a resource"),
        ("mark_unhealthy", STACK_MEMBER, "Mark a resource as unhealthy or healthy"),
    ),
    "events": (
        ("index", STACK_READER, "List the events of a stack"),
        ("show", STACK_READER, "Read an event of a stack"),
    ),
    "build_info": (("build_info", STACK_READER, "Read the release of the service"),),
    "service": (("index", STACK_ADMIN, "List the engines"),),
    "software_configs": (
        ("global_index", NOBODY, "List software configurations of all projects"),
        ("index", STACK_READER, "List software configurations"),
        ("show", STACK_READER, "Read a software configuration"),
        ("create", STACK_MEMBER, "Create a software configuration"),
        ("delete", STACK_MEMBER, "Delete a software configuration"),
    ),
    "software_deployments": (
        ("index", STACK_READER, "List software deployments"),
        ("show", STACK_READER, "Read a software deployment"),
        ("create", STACK_MEMBER, "Create a software deployment"),
        ("update", STACK_MEMBER, "Change a software deployment"),
        ("delete", STACK_MEMBER, "Delete a software deployment"),
        ("metadata", INSTANCE_OR_READER, "Read the software of a server"),
    ),
}  # fmt: skip

RULES: Final = (
    *SHARED,
    Rule("context_is_admin", _any(_ADMIN, "role:admin and is_admin_project:True"),
         "Access to the stacks of all projects", ()),
    *(Rule(f"{scope}:{name}", check, text, ())
      for scope, rules in _STACKS.items() for name, check, text in rules),
    *(Rule(f"baremetal:node:{name}", check, text,
           SYSTEM if name == "update_owner_provisioned" else ANY_SCOPE)
      for name, check, text in _NODE),
    *(Rule(f"baremetal:{noun}:{name}", check, text.format(noun=words))
      for noun, words in (("port", "port"), ("portgroup", "port group"))
      for name, check, text in (
          ("get", TENANT_READER, "Read a {noun}"),
          ("list", ANY_READER, "List the {noun}s of the nodes of the caller's project"),
          ("list_all", READER, "List the {noun}s of all projects"),
          ("create", ADMIN_OR_OWNER_ADMIN, "Add a {noun} to a node"),
          ("update", OWNER_ADMIN, "Change a {noun}"),
          ("delete", ADMIN_OR_OWNER_ADMIN, "Delete a {noun}"),
      )),
    Rule("baremetal:volume:get", TENANT_READER, "Read a volume connector or target"),
    Rule("baremetal:volume:list", ANY_READER, "List the volumes of the caller's project"),
    Rule("baremetal:volume:list_all", READER, "List the volumes of all projects"),
    Rule("baremetal:volume:view_target_properties", _any(READER, "role:admin"),
         "Read properties of volume targets, such as their connection details"),
    Rule("baremetal:volume:create", _VOLUME_ADMIN, "Add a connector or target to a node"),
    Rule("baremetal:volume:update", OPERATOR, "Change a connector or target"),
    Rule("baremetal:volume:delete", _VOLUME_ADMIN, "Delete a connector or target"),
    Rule("baremetal:deploy_template:get", READER, "Read deploy templates"),
    *(Rule(f"baremetal:deploy_template:{verb}", _any(_ADMIN, "rule:service_role"),
           f"{verb.capitalize()} a deploy template") for verb in ("create", "update", "delete")),
    Rule("baremetal:inspection_rule:get", READER, "Read inspection rules"),
    *(Rule(f"baremetal:inspection_rule:{verb}", _any(_ADMIN, "rule:service_role"),
           f"{verb.capitalize()} an inspection rule") for verb in ("create", "update", "delete")),
    Rule("baremetal:chassis:get", READER, "Read chassis", SYSTEM),
    Rule("baremetal:chassis:create", _ADMIN, "Create a chassis", SYSTEM),
    Rule("baremetal:chassis:update", MEMBER, "Change a chassis", SYSTEM),
    Rule("baremetal:chassis:delete", _ADMIN, "Delete a chassis", SYSTEM),
    Rule("baremetal:driver:get", READER, "Read drivers", SYSTEM),
    Rule("baremetal:driver:get_properties", READER, "Read the properties of a driver", SYSTEM),
    Rule("baremetal:driver:get_raid_logical_disk_properties", READER,
         "Read the properties of logical disks", SYSTEM),
    Rule("baremetal:driver:vendor_passthru", _ADMIN,
         "Call methods of the vendor interface of a driver, or list them", SYSTEM),
    Rule("baremetal:driver:ipa_lookup", "", "Look a node up, as its agent", ()),
    Rule("baremetal:node:ipa_heartbeat", "", "Send a heartbeat, as an agent", ()),
    Rule("baremetal:driver:ipa_continue_inspection", "", "Post an inventory, as an agent", ()),
    Rule("baremetal:caller:get", "@", "Read the caller's roles and granted rules", ()),
    Rule("baremetal:events:post", _ADMIN, "Post an event of a network port", SYSTEM),
    Rule("baremetal:events:list", ANY_READER,
         "Read events of the caller's project: its own and leased nodes, and its stacks"),
    Rule("baremetal:events:list_all", READER, "Read the events of all projects"),
    Rule("baremetal:webhook:get", _ADMIN, "Read webhooks", SYSTEM),
    Rule("baremetal:webhook:create", _ADMIN, "Create a webhook", SYSTEM),
    Rule("baremetal:webhook:update", _ADMIN, "Change, park or resume a webhook", SYSTEM),
    Rule("baremetal:webhook:delete", _ADMIN, "Delete a webhook", SYSTEM),
    Rule("baremetal:firmware_catalogue:get", READER, "Read the catalogue of firmware", SYSTEM),
    Rule("baremetal:firmware_catalogue:set", _ADMIN, "Replace or remove the catalogue of firmware",
         SYSTEM),
    Rule("baremetal:shards:get", READER, "Count the nodes of each shard", SYSTEM),
    Rule("baremetal:conductor:get", READER, "Read conductors"),
    Rule("baremetal:conductor:drain", _ADMIN, "Drain a conductor", SYSTEM),
    Rule("baremetal:audit:list", READER, "List who ordered what, of the record of a host", SYSTEM),
    Rule("baremetal:user:list", READER, "List who may log in", SYSTEM),
    Rule("baremetal:bmc:list", READER, "List the BMCs that a conductor calls", SYSTEM),
    Rule("baremetal:allocation:get", _any(READER, f"role:reader and {_ALLOCATION_OWNER}"),
         "Read an allocation; callers without this rule get 404"),
    Rule("baremetal:allocation:list", _any("role:reader", _SERVICE, _TRUSTED_PROJECT),
         "List the allocations of the caller's project"),
    Rule("baremetal:allocation:list_all", READER, "List the allocations of all projects"),
    Rule("baremetal:allocation:create", _any(MEMBER, "role:member"),
         "Allocate a node of the caller's project, or one leased to it"),
    Rule("baremetal:allocation:create_restricted", MEMBER, "Allocate a node for another project"),
    Rule("baremetal:allocation:update", _ALLOCATION_MEMBER, "Change an allocation"),
    Rule("baremetal:allocation:delete", _ALLOCATION_MEMBER, "Delete an allocation"),
    Rule("baremetal:runbook:get",
         _any(READER, f"role:reader and {_RUNBOOK_OWNER}", _RUNBOOK_SERVICE),
         "Read a private runbook; callers without this rule get 404"),
    Rule("baremetal:runbook:list", ANY_READER, "List public runbooks and own ones"),
    Rule("baremetal:runbook:list_all", READER, "List the runbooks of all projects"),
    Rule("baremetal:runbook:create", _any(MEMBER, "role:manager", "role:service"),
         "Create a runbook of the caller's project"),
    Rule("baremetal:runbook:update", _RUNBOOK_MANAGER, "Change a runbook"),
    Rule("baremetal:runbook:update:public", MEMBER, "Make a runbook public or private"),
    Rule("baremetal:runbook:update:owner", MEMBER, "Set the owner of a runbook"),
    Rule("baremetal:runbook:delete", _RUNBOOK_MANAGER, "Delete a runbook"),
    Rule("baremetal:runbook:use", _RUNBOOK_MANAGER, "Use a runbook in place of steps"),
    *(Rule(f"{TYPE_RULES}OS::Ironic::{kind}", "role:admin",
           f"Use resources of the type OS::Ironic::{kind} in stacks", ())
      for kind in OPERATOR_KINDS),
)  # fmt: skip

_OF_PATHS: Final = {
    "instance_info": "update_instance_info",
    "instance_name": "update_instance_info",
    "extra": "update_extra",
    "driver": "update:driver_interfaces",
    "retired_reason": "update:retired",
    **{
        name: f"update:{name}"
        for name in (
            "driver_info", "properties", "chassis_uuid", "instance_uuid", "lessee", "owner",
            "network_data", "conductor_group", "name", "retired", "shard", "parent_node",
            "disable_power_off",
        )
    },
}  # fmt: skip


def of_patch(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the policies of a patch, one per path; its paths may be any text."""
    suffixes = []
    for operation in patch:
        name = operation["path"].removeprefix("/").split("/")[0]
        suffix = _OF_PATHS.get(name, "update")
        if name.endswith("_interface"):
            suffix = "update:driver_interfaces"
        elif name == "automated_clean" and not parsing.boolean(
            operation.get("value"), default=True
        ):
            suffix = "disable_cleaning"  # by any word for false
        suffixes.append(suffix)
    return [f"baremetal:node:{suffix}" for suffix in dict.fromkeys(suffixes) or ("update",)]
