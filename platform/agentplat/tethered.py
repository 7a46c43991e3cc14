"""Runs a program that ends when its parent does: ``python -m agentplat.tethered PARENT PROGRAM ARGUMENT…``.

Without it, the graph service of `agentplat up` would outlive an `up` that was killed, and keep its address from the next one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask Linux for SIGTERM at the parent's end, then become the program. Elsewhere it just becomes the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the wish was filed
            sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
