# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The one exception the lab raises for anything a user can act on.

A LabError's text is a single line that says what went wrong and what to do;
scripts/lab prints it and exits with 1.  Everything else that escapes is a bug
of the lab and keeps its traceback.
"""


class LabError(Exception):
    """A failure that the user can act on, told in one line."""


class Timeout(LabError):
    """Something did not happen within the time it was given."""
