"""A pytest plugin for runs on a copy of the tree: ends the run when anything was imported from the checkout instead."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)  # in a worker of xdist: before it tells what it collected and gets tests to run
def pytest_collection_finish() -> None:
    checkout, libraries = Path(os.environ["MUTANTS_CHECKOUT"]), Path(sys.prefix)
    files = [Path(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]
    strays = [str(file) for file in files if file.is_relative_to(checkout) and not file.is_relative_to(libraries)]
    if strays:
        raise RuntimeError("imported from the checkout, not from the copy under test:\n" + "\n".join(sorted(strays)))
