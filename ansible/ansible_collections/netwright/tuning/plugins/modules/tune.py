#!/usr/bin/python
# Copyright: the Netwright authors
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: tune
short_description: Changes a host's network settings, reversibly
version_added: 0.1.0
description:
  - Makes changes by C(netwright tune apply). Each old value is in the journal before it is changed, each new value is
    read back, and the first failure undoes all of them.
  - In check mode it plans by C(netwright tune plan) and writes nothing.
options:
  settings:
    description:
      - The changes, as a value for each knob, for example C(sysctl.net.core.somaxconn).
      - A setting that has its value already is no change.
      - Not together with C(profile).
    type: dict
  profile:
    description: A profile of C(netwright tune profiles); its lines that do not apply to the host are left out.
    type: str
  nics:
    description: The interfaces that the profile's C(nic.*) stands for.
    type: list
    elements: str
    default: []
  state:
    description:
      - C(present) makes the changes.
      - C(confirmed) confirms the change that waits, in a task of its own that shows that the host can be reached.
      - C(rolled_back) puts back the values from before a change.
    type: str
    choices: [present, confirmed, rolled_back]
    default: present
  confirm:
    description:
      - Undo all on the host unless a later task confirms within this time, such as C(2m).
      - Without it the program itself demands a confirmation for a change that may cut the connection, and the task fails
        after it was undone.
    type: str
  id:
    description: The change to confirm or to roll back; all changes that are in force by default of C(rolled_back).
    type: int
  force:
    description: Roll back also values that another program has changed since.
    type: bool
    default: false
  understood:
    description: Take values that lower something, do nothing or belong to settings that netwright does not know.
    type: bool
    default: false
  executable:
    description: The program; a name is looked up in the path.
    type: path
    default: netwright
  netns:
    description: Change this network namespace, a name or a path.
    type: str
  state_dir:
    description: Directory of the journal.
    type: path
attributes:
  check_mode:
    description: It plans and writes nothing.
    support: full
  diff_mode:
    description: The old and the new value of each setting.
    support: full
author:
  - The Netwright authors (@netwright)
"""

EXAMPLES = r"""
- name: Larger queue of new connections, undone by the host itself unless it is confirmed
  netwright.tuning.tune:
    settings:
      sysctl.net.core.somaxconn: 8192
      sysctl.net.ipv4.tcp_max_syn_backlog: 8192
    confirm: 2m
  register: change

- name: The host can still be reached
  netwright.tuning.tune:
    state: confirmed
    id: "{{ change.id }}"
  when: change.id is defined

- name: Everything as it was
  netwright.tuning.tune:
    state: rolled_back
"""

RETURN = r"""
id:
  description: The change in the host's journal.
  returned: where something was changed
  type: int
changes:
  description: The changes with old and new value, unit, what each disrupts, and how it is undone.
  returned: always
  type: list
  elements: dict
refused:
  description: Lines of the profile that were refused, each with its reason. A refused setting fails the task.
  returned: state is present
  type: list
  elements: dict
drifted:
  description: Values that another program has changed since.
  returned: state is rolled_back
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.netwright.tuning.plugins.module_utils.program import COMMON, run


def tune(module, args, accept=(0,)):
    """Runs `netwright tune ARGS` in the namespace and with the journal of the task."""
    for flag in ("netns", "state_dir"):
        if module.params[flag]:
            args = args + ["--" + flag.replace("_", "-"), module.params[flag]]
    return run(module, ["tune"] + args, accept=accept)


def requests(module):
    """The changes as the program's arguments take them."""
    asked = module.params["settings"] or {}
    for knob, value in asked.items():
        if isinstance(value, (dict, list)) or value is None:
            module.fail_json(msg="settings: %s needs one value, not %r" % (knob, value))
    args = ["%s=%s" % (knob, worded(value)) for knob, value in sorted(asked.items())]
    if module.params["profile"]:
        args += ["--profile", module.params["profile"]]
    if module.params["nics"]:
        args += ["--nic", ",".join(module.params["nics"])]
    if module.params["understood"]:
        args += ["--i-understand"]
    if not args:
        module.fail_json(msg="state present needs settings or a profile")
    return args


def worded(value):
    """A value as the kernel spells it: YAML reads `on` as true."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def diff(changes, old="old", new="new"):
    def side(which):
        return "".join("%s = %s\n" % (c["knob"], c[which]) for c in changes)

    return dict(before=side(old), after=side(new))


def present(module):
    args = requests(module)
    _rc, plan = tune(module, ["plan"] + args)
    changes = plan["changes"]
    result = dict(changed=bool(changes), changes=changes, refused=plan["refused"], diff=diff(changes))
    if module.check_mode or not changes:
        module.exit_json(**result)
    confirm = ["--confirm", module.params["confirm"]] if module.params["confirm"] else []
    _rc, done = tune(module, ["apply"] + args + confirm)
    made = done["set"]
    if isinstance(made, dict) and "id" in made:
        result.update(id=made["id"], changes=made["changes"], diff=diff(made["changes"]))
    else:
        # Another program has set the values between plan and apply.
        result.update(changed=False, changes=[], diff=diff([]))
    module.exit_json(**result)


def confirmed(module):
    number = [] if module.params["id"] is None else [str(module.params["id"])]
    waits = [s for s in status(module)["sets"] if s["state"] == "awaiting_confirmation"]
    if number:
        waits = [s for s in waits if str(s["id"]) == number[0]]
    changes = [c for s in waits for c in s["changes"]]
    if not waits and number and is_in_force(module, number[0]):
        module.exit_json(changed=False, changes=[])
    if not waits:
        module.fail_json(msg="no change waits for a confirmation: it was undone, or never made", changes=[])
    if not module.check_mode:
        tune(module, ["confirm"] + number)
    module.exit_json(changed=True, changes=changes)


def status(module):
    # Exit code 1: something drifted or waits, which the document says too.
    return tune(module, ["status"], accept=(0, 1))[1]


def is_in_force(module, number):
    return any(str(s["id"]) == number and s["state"] == "in_force" for s in status(module)["sets"])


def rolled_back(module):
    which = ["--all"] if module.params["id"] is None else [str(module.params["id"])]
    before = status(module)
    # An interrupted change is rolled back too, also where it has no value in force.
    sets = [s for s in before["sets"] if module.params["id"] in (None, s["id"])]
    values = [v for v in before["values"] if module.params["id"] in (None, v["id"])]
    back = [dict(knob=v["knob"], old=v["now"], new=v["before"]) for v in values]
    result = dict(changed=bool(sets), changes=back, drifted=[], diff=diff(back))
    if module.check_mode or not sets:
        module.exit_json(**result)
    force = ["--force"] if module.params["force"] else []
    rc, done = tune(module, ["rollback"] + which + force, accept=(0, 1))
    result.update(drifted=done["drifted"])
    if rc:
        kept = ", ".join(d["knob"] for d in done["drifted"]) or "see the journal"
        module.fail_json(msg="not every value was put back: %s" % kept, **result)
    module.exit_json(**result)


def main():
    arguments = dict(
        COMMON,
        netns=dict(type="str"),
        state_dir=dict(type="path"),
        settings=dict(type="dict"),
        profile=dict(type="str"),
        nics=dict(type="list", elements="str", default=[]),
        state=dict(type="str", default="present", choices=["present", "confirmed", "rolled_back"]),
        confirm=dict(type="str"),
        id=dict(type="int"),
        force=dict(type="bool", default=False),
        understood=dict(type="bool", default=False),
    )
    apart = [("settings", "profile")]
    module = AnsibleModule(argument_spec=arguments, mutually_exclusive=apart, supports_check_mode=True)
    {"present": present, "confirmed": confirmed, "rolled_back": rolled_back}[module.params["state"]](module)


if __name__ == "__main__":
    main()
