#!/usr/bin/python
# Copyright: the Netwright authors
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: host_facts
short_description: Facts of a host's packet path
version_added: 0.1.0
description:
  - Reads NICs, queues, interrupts, CPUs, nodes and settings by C(netwright inspect). It changes nothing.
options:
  executable:
    description: The program; a name is looked up in the path.
    type: path
    default: netwright
attributes:
  check_mode:
    description: It changes nothing in either mode.
    support: full
author:
  - The Netwright authors (@netwright)
"""

EXAMPLES = r"""
- name: Facts of the packet path
  netwright.tuning.host_facts:

- name: Refuse to go on where a NIC has one queue only
  ansible.builtin.assert:
    that: netwright.nics | selectattr('name', 'equalto', 'eth0') | map(attribute='queues') | first | length > 1
"""

RETURN = r"""
ansible_facts:
  description: The facts, under C(netwright), as C(netwright schema inspect) describes them.
  returned: always
  type: complex
  contains:
    netwright:
      description: The document of C(netwright inspect --json).
      type: dict
      returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.netwright.tuning.plugins.module_utils.program import COMMON, run


def main():
    module = AnsibleModule(argument_spec=COMMON, supports_check_mode=True)
    _rc, document = run(module, ["inspect"])
    module.exit_json(changed=False, ansible_facts={"netwright": document})


if __name__ == "__main__":
    main()
