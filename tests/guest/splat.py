# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Recognise a kernel's cry for help in its log."""

import re

SPLAT = re.compile("|".join((
    r"\bBUG:", r"kernel BUG at", r"\bWARNING:", r"\bOops\b", r"general protection fault(?! ip:)",
    r"unable to handle", r"\bKASAN\b", r"\bUBSAN\b", r"\bKFENCE\b", r"\bKMSAN\b", r"\bKCSAN\b",
    r"INFO: (task .* blocked|possible|suspicious|lockdep|rcu)", r"possible recursive locking",
    r"possible circular locking", r"inconsistent lock state", r"suspicious RCU usage",
    r"rcu: INFO:", r"soft lockup", r"hard LOCKUP", r"hung_task", r"blocked for more than",
    r"refcount_t:", r"\bleaked\b", r"leak detected", r"unreferenced object",
    r"DMA-API: (?!preallocated|debugging)", r"list_(add|del) corruption", r"Bad page state", r"Bad rss-counter",
    r"scheduling while atomic", r"sleeping function called from invalid context",
    r"stack-protector", r"Kernel panic", r"workqueue: .* flushing",
    r"unregister_netdevice: waiting for", r"IRQ .*nobody cared", r"Call Trace:",
    r"ODEBUG:", r"Unable to mount root",
)))


def find(lines, allowed=()):
    """Return the lines that report a kernel fault, without those that match an `allowed` regex."""
    skip = [re.compile(a) for a in allowed]
    return [s for s in lines if SPLAT.search(s) and "ommand line: " not in s
            and not any(a.search(s) for a in skip)]
