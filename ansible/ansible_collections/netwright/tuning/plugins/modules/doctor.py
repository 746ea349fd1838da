#!/usr/bin/python
# Copyright: the Netwright authors
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: doctor
short_description: Finds what limits a host's network
version_added: 0.1.0
description:
  - Watches the host's counters for a window and judges it by C(netwright doctor). It changes nothing.
options:
  window:
    description: How long to watch, such as C(5s).
    type: str
    default: 5s
  fail_on:
    description: Fail the task where a finding is at least this severe.
    type: str
    choices: [info, warning, critical]
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
- name: Diagnose
  netwright.tuning.doctor:
    window: 30s
    fail_on: critical
  register: diagnosis
"""

RETURN = r"""
rules:
  description: The rules of the findings, causes first.
  returned: always
  type: list
  elements: str
unknown:
  description: How many rules could not be judged.
  returned: always
  type: int
findings:
  description: What was found, causes first, as C(netwright schema doctor) describes it.
  returned: always
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.netwright.tuning.plugins.module_utils.program import COMMON, run

# Least severe first.
SEVERITIES = ["info", "warning", "critical"]


def main():
    arguments = dict(
        COMMON,
        window=dict(type="str", default="5s"),
        fail_on=dict(type="str", choices=SEVERITIES),
    )
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    _rc, document = run(module, ["doctor", "--window", module.params["window"]])
    findings = document["findings"]
    result = dict(
        changed=False,
        rules=[f["rule"] for f in findings],
        unknown=len(document["skipped"]),
        findings=findings,
    )
    least = module.params["fail_on"]
    if least:
        severe = SEVERITIES[SEVERITIES.index(least):]
        found = [f for f in findings if f["severity"] in severe]
        if found:
            title = "%s: %s" % (found[0]["subject"], found[0]["title"])
            module.fail_json(msg="%d findings at least %s; first: %s" % (len(found), least, title), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
