"""Runs the test suite of the Array API on `astra`.

usage: ASTRA_ARRAY_API_TESTS=FOLDER python python/tests/array_api.py [ARGUMENTS OF PYTEST...]
FOLDER is a checkout of data-apis/array-api-tests with its submodule; the packages hypothesis, ndindex and pytest-json-report are
needed. Tests that are not run are in astra/array-api-skips.txt, each behind its reason; at most 25 of them. Without FOLDER it says that
it was skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_SKIPS = 25


def main():
    folder = os.environ.get("ASTRA_ARRAY_API_TESTS")
    if not folder:
        print("skipped: ASTRA_ARRAY_API_TESTS names no checkout of data-apis/array-api-tests")
        return 0
    skips = HERE / "astra/array-api-skips.txt"
    names = [line for line in skips.read_text().splitlines() if line and not line.startswith("#")]
    if len(names) > MOST_SKIPS:
        print(f"{skips}: {len(names)} tests are skipped; at most {MOST_SKIPS} may be")
        return 1
    env = dict(os.environ, ARRAY_API_TESTS_MODULE="astra", ARRAY_API_TESTS_VERSION="2025.12")
    command = [sys.executable, "-m", "pytest", "-q", "array_api_tests", "-p", "no:cacheprovider", "--disable-deadline", "--skips-file", skips]
    return subprocess.run([*command, *sys.argv[1:]], cwd=folder, env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
