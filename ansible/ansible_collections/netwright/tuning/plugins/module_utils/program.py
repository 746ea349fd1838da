# Copyright: the Netwright authors
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs netwright for the modules of this collection, and reads its JSON document."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

# The argument of every module: which program.
COMMON = dict(executable=dict(type="path", default="netwright"))

# Exit codes as `netwright help` lists them.
MEANING = {
    1: "the answer is no",
    2: "wrong usage",
    3: "not permitted: become root",
    4: "runtime error",
    5: "internal error",
}


def reasons(out):
    """Why a plan refuses each request, where that is what was printed."""
    try:
        return ["%s: %s" % (r["knob"], r["why"]) for r in json.loads(out)["refused"]]
    except (ValueError, KeyError, TypeError):
        return []


def run(module, args, data=None, accept=(0,)):
    """Runs `netwright ARGS --json`; returns its exit code and its document.

    Fails the task with the program's own line where the exit code is none of `accept`, or where no
    document can be read.
    """
    program = module.params["executable"]
    if os.sep not in program:
        program = module.get_bin_path(program, required=True)
    argv = [program] + args + ["--json"]
    rc, out, err = module.run_command(argv, data=data)
    if rc not in accept:
        said = reasons(out) or (err.strip() or out.strip()).splitlines()
        line = "; ".join(said) or "it said nothing"
        what = MEANING.get(rc, "ended by a signal" if rc < 0 else "unknown exit code")
        module.fail_json(msg="%s (exit code %d, %s)" % (line, rc, what), rc=rc, stderr=err, cmd=argv)
    try:
        return rc, json.loads(out)
    except ValueError as e:
        module.fail_json(msg="no JSON document from %s: %s" % (program, e), rc=rc, stdout=out, stderr=err)
