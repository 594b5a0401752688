# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Guests on the device model: images, kernels, QEMU, and commands in them."""

from .agent import Result
from .errors import LabError, Timeout
from .lab import Host, Lab

__all__ = ["Host", "Lab", "LabError", "Result", "Timeout"]
