"""The most memory that a program has held since it began, as the program itself can tell.

Linux only. `getrusage` would not do: its figure survives the start of a program, so a small process that a
large one started reports the size of the large one, and growth below that is not seen.
"""

from __future__ import annotations

PEAK_BYTES = """
def peak_bytes():
    with open("/proc/self/status") as status:
        return int(status.read().partition("VmHWM:")[2].split()[0]) * 1024
"""
"""A function for the text of a program: the highest resident size, as the kernel counts it for this program."""
