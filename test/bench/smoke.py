"""The bench runs: one small row, beside ONNX Runtime, which the tests have, and a peer that is not installed.

Takes:    the build folder.
Gives:    "N passed, N failed".
Keeps:    nothing about speed: figures are not looked at, only that they are there.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))


def main():
    failures, checks = [], 0

    def check(fine, what):
        nonlocal checks
        checks += 1
        if not fine:
            failures.append(what)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        words = ["--rows=mlp:64,open:none", "--peers=ort,iree", "--threads=1", "--quick", f"--json={path}", f"--build={sys.argv[1]}"]
        done = subprocess.run([sys.executable, ROOT / "bench/run.py", *words], capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        check(done.returncode == 0, f"bench/run.py ends with {done.returncode}")
        result = json.loads(path.read_text())
        (row,) = result["rows"]
        check(row["row"] == "3 layers of 64" and row["ours"]["seconds"] > 0, "the row has a time")
        check(len(row["ours"]["rounds"]) == result["rounds"], "as many rounds as the file says")
        check(all(rate > 0 for rate in row["limits"].values()) and set(row["limits"]) == {"fma", "read", "copy"}, "the machine's limits are there")
        check(row["best"] == "ort" and row["ratio"] == row["peers"]["ort"]["ratio"] > 0, "ONNX Runtime gave the same result and was measured")
        check("it does not start" in row["peers"]["iree"]["absent"], "a peer that is missing has a sentence")
        check("it does not start" in done.stdout and "not asked for" in done.stdout, "and the table says it")
        check(result["machine"]["cpu"] and result["machine"]["peers"]["ort"], "the machine's fingerprint is there")
        check(row["astra"] == result["machine"]["astra"], "the row says of which state of ours it is")

        def refused(sentence, *words, program="run.py"):
            done = subprocess.run([sys.executable, ROOT / "bench" / program, f"--build={sys.argv[1]}", *words], capture_output=True, text=True)
            check(done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr, f"{program} {' '.join(words)}: {sentence}")

        other = Path(folder) / "other.json"
        for key, value in (("cpu", "another"), ("cores", 999), ("peers", {**result["machine"]["peers"], "ort": "0.0.1"})):
            other.write_text(json.dumps({**result, "machine": {**result["machine"], key: value}}))
            refused("was measured elsewhere (", f"--json={other}")
        for wrong in ("", "[]", '{"rows": [{"x": 1}]}', json.dumps({**result, "rows": [{**row, "ours": {}}]})):
            other.write_text(wrong)
            refused("is no file of figures", f"--json={other}")
        refused("is a folder", f"--json={folder}")
        refused("there is no folder", f"--json={folder}/none/x.json")
        refused("cannot be made", f"--zoo={other}/zoo")
        refused("'0' is not a number from 1 on", "--rounds=0", program="scale.py")
        zoo = "import run; run.options(); from rows import networks; print(networks.ZOO)"
        words = [sys.executable, "-c", zoo, f"--zoo={folder}/zoo", f"--build={Path(sys.argv[1]).resolve()}"]
        check(subprocess.run(words, cwd=ROOT / "bench", capture_output=True, text=True).stdout.strip() == f"{folder}/zoo", "networks come from the folder of --zoo")
        # The page, of a loss and of a row that failed too: both are on it.
        import report

        result["rows"].append({**row, "threads": 2, "ratio": 0.5, "peers": {"ort": {"seconds": 1e-6, "ratio": 0.5, "rounds": []}}})
        result["rows"].append({"family": "mlp", "row": "3 layers of 256", "threads": 1, "astra": "abc1234", "load": 0, "peers": {}, "failed": "a reason"})
        report.page(result, Path(folder) / "benchmarks.md")
        page, picture = (Path(folder) / f"benchmarks.{kind}" for kind in ("md", "svg"))
        check("**0.50**" in page.read_text() and "a reason" in page.read_text(), "losses and failures are on the page")
        check("it does not start" in page.read_text(), "and who is missing")
        check("3 layers of 256 0.00" in page.read_text(), "a row that failed misses its goal")
        check("Rows of other states, by family: abc1234: mlp 1." in page.read_text(), "and of which states rows are")
        check("0.50 of ONNX Runtime" in picture.read_text(), "and the picture has the loss")
        told = ("<svg", "Astra beside other runtimes", f"Machine: {result['machine']['cpu']}", "Peers: ONNX Runtime; ", "Unit: time of", "Astra is faster, 1 thread", "the peer is faster, 2 threads",
                "geometric mean", f"{row['ratio']:.2f}, 0.50 ONNX Runtime")  # fmt: skip
        check(not [words for words in told if words not in picture.read_text()], "and says what it shows")
    scale = subprocess.run([sys.executable, ROOT / "bench/scale.py", "--most=80", "--rounds=1", "--no-networks", f"--build={sys.argv[1]}"], capture_output=True, text=True)
    sys.stderr.write(scale.stderr)
    rows = [line.split(" |")[0] for line in scale.stdout.splitlines()]  # what a row is of: 80 may be a speed too
    check(scale.returncode == 0 and rows.count("| 80") == 2 and rows.count("| 1024") == 1, "bench/scale.py measures its smallest graphs, and batch and length")
    with tempfile.TemporaryDirectory() as folder:
        # Of the same bundle; how fast the rows are, and so the exit code, is not looked at.
        for words in (["--keep", f"{folder}/kept.astra"], ["--against", f"{folder}/kept.astra"]):
            odd = subprocess.run([sys.executable, ROOT / "bench/odd.py", "--only=argmax|f16 to f32", "--rounds=1", f"--build={sys.argv[1]}", *words], capture_output=True, text=True)
            sys.stderr.write(odd.stderr)
            check(odd.stdout.count("argmax of") == 4 and odd.stdout.count("f16 to f32") == 1, f"bench/odd.py {words[0]} measures the rows that are named")
        check("5 rows: geometric mean" in odd.stdout, "and says how the two compare")
    import measure

    record, right = {"peers": {}}, np.array([1.0, 2.0], np.float32)
    results = {"ort": [right], "jax": [right + np.float32(1e-3)], "iree": [right, right], "tinygrad": [right * np.nan]}
    check(measure.compared(record, results, [right], 1e-4) == ["ort"], "who gives another result is not timed")
    check(set(record["peers"]) == {"jax", "iree", "tinygrad"} and all("absent" in peer for peer in record["peers"].values()), "and the table says so")
    for what in failures:
        print(f"FAILED: {what}")
    print(f"{checks - len(failures)} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
