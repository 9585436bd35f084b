"""A rack of machines as somebody would write it, in each dialect, validated as a whole."""

from __future__ import annotations

import pytest

from bloomery import errors
from tests.unit.orchestration.stack import kit

HOT = """
description: Two kinds of machines behind one address plan.

parameter_groups:
- label: Size
  description: How much of everything.
  parameters: [machines, names]
- label: Access
  parameters: [password]

parameters:
  machines:
    type: number
    default: 2
    constraints:
    - range: {min: 0, max: 20}
      description: Zero to twenty workers fit into the rack.
  names:
    type: comma_delimited_list
    default: [alpha, beta]
  plan:
    type: json
    default: {net: 10.0.0.0/24, gateway: 10.0.0.1, tags: [rack, lab]}
  zone:
    type: string
    default: lab
    constraints:
    - allowed_values: [lab, prod]
  password:
    type: string
    hidden: true
    default: ""
    constraints:
    - length: {max: 64}
    - allowed_pattern: "[A-Za-z0-9]*"

conditions:
  prod: {equals: [{get_param: zone}, prod]}
  guarded: {and: [prod, {not: {equals: [{get_param: password}, ""]}}]}
  large:
    or:
    - prod
    - yaql:
        expression: $.data > 10
        data: {get_param: machines}

resources:
  secret:
    type: OS::Heat::RandomString
    properties:
      length: 16
      character_classes:
      - {class: letters, min: 4}
      - {class: digits, min: 2}

  hostnames:
    type: OS::Heat::Value
    properties:
      type: comma_delimited_list
      value:
        repeat:
          template: <name>-<n>
          for_each:
            <name>: {get_param: names}
            <n>: ['1', '2']

  settings:
    type: OS::Heat::Value
    properties:
      type: json
      value:
        map_merge:
        - {get_param: plan}
        - secret: {get_attr: [secret, value]}
          hosts: {list_join: [' ', {get_attr: [hostnames, value]}]}
          motd:
            str_replace:
              template: {get_file: motd.txt}
              params:
                ZONE: {get_param: zone}
                FIRST: {get_attr: [hostnames, value, 0]}
        - if: [guarded, {password: {get_param: password}}, {}]

  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config:
        str_replace_strict:
          template: "#!/bin/sh\\necho GATEWAY\\n"
          params: {GATEWAY: {get_param: [plan, gateway]}}

  workers:
    type: OS::Heat::ResourceGroup
    depends_on: warm-up
    update_policy:
      rolling_update: {max_batch_size: 2, min_in_service: 1, pause_time: 10}
    properties:
      count: {get_param: machines}
      removal_policies: [{resource_list: ['1']}]
      resource_def:
        type: Rack::Machine
        properties:
          name: worker-%index%
          settings: {get_attr: [settings, value]}

  head:
    type: Rack::Machine
    condition: prod
    deletion_policy: retain
    metadata: {role: head, config: {get_resource: config}}
    properties:
      name: head
      settings: {get_attr: [settings, value]}

  warm-up:
    type: OS::Heat::Delay
    condition: {not: large}
    properties: {min_wait: 5, actions: [CREATE, DELETE]}

  existing:
    type: OS::Heat::Value
    external_id: {list_join: ['-', [{get_param: OS::stack_name}, old]]}

outputs:
  secret:
    description: What the machines share.
    value: {get_attr: [secret, value]}
  motd:
    value: {get_attr: [settings, value, motd]}
  digest:
    value: {digest: [sha256, {get_attr: [secret, value]}]}
  workers:
    value: {get_attr: [workers, refs]}
  first:
    value: {get_attr: [workers, resource.0, name]}
  head:
    condition: prod
    value: {get_attr: [head, url]}
  everything:
    value: {get_attr: [settings]}
"""
MACHINE = """
heat_template_version: rocky
parameters:
  name: {type: string}
  settings: {type: json}
resources:
  disk: {type: OS::Heat::TestResource, properties: {value: {get_param: name}}}
  machine:
    type: OS::Heat::TestResource
    properties:
      value:
        make_url:
          scheme: https
          host: {get_param: name}
          query: {disk: {get_resource: disk}, size: {get_attr: [disk, output]}}
outputs:
  OS::stack_id: {value: {get_resource: machine}}
  url: {value: {get_attr: [machine, output]}}
  name: {value: {get_param: name}}
"""
ENV = {
    "resource_registry": {
        "Rack::Machine": "machine.yaml",
        "resources": {"head": {"hooks": "pre-create"}},
    },
    "parameter_defaults": {"names": "a,b,c"},
}
FILES = {"machine.yaml": MACHINE, "motd.txt": "Welcome to ZONE, FIRST is yours."}

CFN = """
Description: The same in the words of another house.
Parameters:
  Zone: {Type: String, Default: lab, AllowedValues: [lab, prod]}
  Password: {Type: String, NoEcho: true, Default: '', MaxLength: 64}
  Names: {Type: CommaDelimitedList, Default: 'alpha,beta'}
  Count: {Type: Number, Default: 2, MinValue: 0, MaxValue: 20}
Mappings:
  Sizes:
    lab: {length: 8}
    prod: {length: 32}
Conditions:
  Prod: {Fn::Equals: [{Ref: Zone}, prod]}
  Guarded: {Fn::And: [Prod, {Fn::Not: [{Fn::Equals: [{Ref: Password}, '']}]}]}
Resources:
  Secret:
    Type: OS::Heat::RandomString
    Properties:
      length: {Fn::FindInMap: [Sizes, {Ref: Zone}, length]}
  Settings:
    Type: OS::Heat::Value
    DependsOn: [Secret, Head]
    Metadata: {stack: {Ref: 'AWS::StackName'}}
    Properties:
      value:
        Fn::Join:
        - ','
        - - {Fn::GetAtt: [Secret, value]}
          - {Fn::Select: [0, {Ref: Names}]}
          - {Fn::Replace: [{ZONE: {Ref: Zone}}, 'in ZONE']}
          - {Fn::If: [Guarded, {Ref: Password}, none]}
  Head:
    Type: machine.yaml
    Condition: Prod
    DeletionPolicy: Retain
    Properties: {name: head, settings: {}}
Outputs:
  Secret: {Value: {Fn::GetAtt: [Secret, value]}, Description: Shared.}
  Head: {Condition: Prod, Value: {Fn::GetAtt: [Head, url]}}
"""


@pytest.mark.parametrize("given", [{}, {"zone": "prod", "password": "abc"}, {"machines": 12}])
@pytest.mark.parametrize("strict", [True, False])
def test_a_rack_is_valid_however_it_is_used(given, strict):
    made = kit.validate(kit.hot(HOT), ENV, files=FILES, user_parameters=given, strict=strict)
    order = [*made.order]
    assert order.index("settings") < order.index("workers")
    assert ("head" in order) is (given.get("zone") == "prod")
    assert ("warm-up" in order) is (given == {})


@pytest.mark.parametrize("given", [{}, {"Zone": "prod", "Password": "abc"}])
@pytest.mark.parametrize("strict", [True, False])
def test_a_rack_in_the_other_dialect_is_valid(given, strict):
    made = kit.validate(kit.cfn(CFN), files=FILES, user_parameters=given, strict=strict)
    order = [*made.order]
    assert order.index("Secret") < order.index("Settings")
    assert ("Head" in order) is bool(given)


ERROR = "Property error: resources."
SLIPS = [
    (
        "get_param: [plan, gateway]",
        "get_attr: [plan, gateway]",
        "resources.config.properties.config.str_replace_strict.params.GATEWAY.get_attr: The spec",
    ),
    ("GATEWAY: {", "GATEWY: {", f"{ERROR}config.properties.config.str_replace_strict: "),
    (
        "    condition: prod\n    deletion",
        "    condition: prd\n    deletion",
        "resources.head.condition: Invalid condition \"prd\". Did you mean 'prod'?",
    ),
    (
        "digits, min: 2",
        "digit, min: 2",
        f"{ERROR}secret.properties.character_classes[1].class: ",
    ),
    ("digits, min: 2", "digits, min: 20", "resources.secret.properties: "),
    (
        "pause_time: 10",
        "pause_tim: 10",
        f"{ERROR}workers.update_policy.rolling_update: Unknown Property pause_tim. Did you mean",
    ),
    (
        "name: worker-%index%",
        "nam: worker-%index%",
        f"{ERROR}workers<nested_stack>.resources.0.properties: Unknown Property nam. Did you mean",
    ),
    (
        "get_file: motd.txt",
        "get_file: mot.txt",
        f"{ERROR}settings.properties.value.map_merge[1].motd.str_replace.template.get_file: No",
    ),
    (
        "[sha256, {get_attr: [secret, value",
        "[sha256, {get_attr: [secret, valu",
        "outputs.digest.value.digest[1].get_attr: The Referenced Attribute (secret valu)",
    ),
    ("default: lab", "default: lib", "parameters.zone.default: "),
    ("parameters: [password]", "parameters: [pasword]", "Parameter Groups error: "),
    ("machines:", "secret:", "resources.secret: Duplicate names 'secret'"),
]


@pytest.mark.parametrize(("old", "new", "begins"), SLIPS)
def test_one_slip_is_found_with_its_place(old, new, begins):
    assert HOT.count(old) == 1
    text = HOT.replace(old, new)
    if new == "secret:":
        text = text.replace("get_param: machines", "get_param: secret").replace(
            "[machines", "[secret"
        )
    with pytest.raises(errors.Misplaced) as told:
        kit.validate(kit.hot(text), ENV, files=FILES)
    assert str(told.value).startswith(begins)
