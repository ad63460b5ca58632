"""What the tests beside run.py have in common: run each, say what became of it, count.

Takes:    names and functions without parameters.
Gives:    a line for each and "N passed, M failed"; the exit code.
Does not: know what a test is about.
"""

import traceback

from backend import Failed, Refused


def run(tests):
    """0 if all pass, 1 if one fails. `tests` may be a generator: each is made when its turn comes."""
    passed = failed = 0
    for name, test in tests:
        try:
            test()
            passed += 1
            print(f"ok    {name}", flush=True)
        except (Failed, Refused, AssertionError) as e:
            failed += 1
            print(f"FAIL  {name}: {e}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {name}:\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0
