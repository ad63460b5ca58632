"""Runs the test suite of the Array API on `astra`.

usage: python python/tests/array_api.py [--get [SUITE SPECIFICATION]] [ARGUMENTS OF PYTEST...]
Takes:    a checkout of data-apis/array-api-tests with its submodule: the folder that ASTRA_ARRAY_API_TESTS names, or
          build/array-api-tests, where --get puts one, of the commits below, from GitHub or from the two repositories given. The packages
          hypothesis, ndindex and pytest-json-report (scripts/requirements.txt).
Gives:    pytest's report; a failure, too, where a test that is skipped is not there, or more than 25 are. Where there is no checkout it
          says that it was skipped.
Keeps:    by day each property is tried with few examples, always the same ones; at night (ASTRA_NIGHTLY=1) with the suite's own number.
Does not: choose what is skipped: astra/array-api-skips.txt does, each behind its reason.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPS = HERE / "astra/array-api-skips.txt"
MOST_SKIPS = 25
PLACE = ROOT / "build/array-api-tests"
PARTS = [  # folder, repository, commit: the suite and the text of the standard, which is its submodule
    (PLACE, "https://github.com/data-apis/array-api-tests", "55fcc60179efa2680ddd6cd926ddf17b83530e2b"),
    (PLACE / "array-api", "https://github.com/data-apis/array-api", "5f847a3858875c682ae901aa22b0413bf24be9da"),
]
DAILY = ["--max-examples=8", "--derandomize"]


def get(sources):
    """The checkout."""
    for (folder, repository, commit), source in zip(PARTS, sources or [repository for _, repository, _ in PARTS]):
        if not (folder / ".git").exists():
            subprocess.run(["git", "clone", "--quiet", source, folder], check=True)
        subprocess.run(["git", "-C", folder, "checkout", "--quiet", commit], check=True)
    return 0


def main(arguments):
    if arguments[:1] == ["--get"]:
        return get(arguments[1:])
    folder = Path(os.environ.get("ASTRA_ARRAY_API_TESTS") or PLACE).resolve()
    if not (folder / "array-api/spec").is_dir():
        print(f"skipped: the suite of the Array API: {folder} has no checkout (python/tests/array_api.py --get)")
        return 0
    names = [line for line in SKIPS.read_text().splitlines() if line and not line.startswith("#")]
    if len(names) > MOST_SKIPS:
        print(f"{SKIPS}: {len(names)} tests are skipped; at most {MOST_SKIPS} may be")
        return 1
    env = dict(os.environ, ARRAY_API_TESTS_MODULE="astra", ARRAY_API_TESTS_VERSION="2025.12",
               HYPOTHESIS_STORAGE_DIRECTORY=str(ROOT / "build/hypothesis"))  # fmt: skip
    few = [] if env.get("ASTRA_NIGHTLY", "") not in ("", "0") else DAILY
    # A name that is skipped and not there is a warning of the suite's.
    command = [sys.executable, "-m", "pytest", "-q", "array_api_tests", "--rootdir=.", "-p", "no:cacheprovider", "--disable-deadline",
               f"--skips-file={SKIPS}", "-W", "error::UserWarning:conftest", *few]  # fmt: skip
    return subprocess.run([*command, *arguments], cwd=folder, env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
