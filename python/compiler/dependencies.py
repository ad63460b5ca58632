"""What the wheel astra-compiler depends on, for scikit-build-core.

The runtime is of the same version. Where a tree is installed (`pip install .`) it is the tree's own, by its path; with
ASTRA_RELEASE=1, for a wheel that goes elsewhere, it is the wheel of that name.
"""

import os
import pathlib
import re
from typing import Any, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHERS = ["numpy>=1.23", "nanobind-backend==1.0.0", "optree>=0.20"]


def dynamic_metadata(field: str, settings: Mapping[str, Any], project: Mapping[str, Any] | None = None) -> list[str]:
    """The list of dependencies."""
    if field != "dependencies" or settings:
        raise RuntimeError("this provider gives 'dependencies' and takes no settings")
    version = re.search(r"set\(ASTRA_VERSION ([0-9.]+)\)", (ROOT / "cmake/Version.cmake").read_text())
    assert version is not None
    release = os.environ.get("ASTRA_RELEASE", "") not in ("", "0")
    runtime = f"astra-rt=={version[1]}" if release else f"astra-rt @ {(ROOT / 'python/rt').as_uri()}"
    return [runtime, *OTHERS]
