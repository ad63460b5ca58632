"""One row with one number of threads: ours and the peers, checked, then timed in turns.

Takes:    a row, the peers' processes, our programs.
Gives:    a record (a dictionary for the JSON file).
Keeps:    results are compared before anything is timed. In a round each contestant runs once, ours between two
          measurements of what the machine can do; the order turns from round to round. A round's figure is the median of
          its parts, each of at least one call; everything reported is a median over rounds; ratios are taken within a
          round. A peer that needs seconds for a call has one round of one call.
Does not: choose rows or print tables.
"""

import hashlib
import os
import statistics
import subprocess

import numpy as np
import onnx
import rows
from process import Failed, OursProcess

LOAD_SECONDS = 420
PARTS = 3  # of a round
SLOW = 3  # seconds: a peer that takes longer for a call runs in the first round alone


class Setting:
    """What is the same for all rows: programs, folders, how long a round is."""

    def __init__(self, build, kept, scratch, program, rounds, slice_seconds, log):
        self.build, self.folder, self.program, self.rounds, self.slice, self.log = build, scratch, program, rounds, slice_seconds, log
        self.models, self.bundles = kept / "models", kept / "bundles"
        for place in (self.models, self.bundles):
            place.mkdir(parents=True, exist_ok=True)
        compiler = build / "bin/astra-compile"
        self.compiler_hash = hashlib.sha256(compiler.read_bytes()).hexdigest()

    def model(self, row, case):
        """The ONNX file of a row."""
        place = self.models / "".join(c if c.isalnum() else "_" for c in f"{row.family} {row.name}")
        path = place.with_suffix(".onnx")
        if row.file:
            return row.file()
        if row.family == "train":
            import torch
            from rows import train

            train.export(torch, row, case, path)
        elif row.path:
            from rows import networks

            networks.fixed(row.path, path)
        else:
            onnx.save(rows.model(case), path)
        return path

    def bundle(self, row, model):
        """Our bundle of it, kept while compiler, model and options are the same."""
        from machine import integer_level, level

        options = [f"--target=cpu:{integer_level() if row.family == 'quantized' else level()}", *(f"--dim={name}={bounds}" for name, bounds in row.dims.items()), *row.options]
        weights = [f"{w.stat().st_size} {w.stat().st_mtime_ns}" for w in sorted(model.parent.glob(f"{row.path}.weights"))] if row.path else []
        key = hashlib.sha256(self.compiler_hash.encode() + model.read_bytes() + " ".join([*options, *weights]).encode()).hexdigest()[:24]
        path = self.bundles / f"{key}.astra"
        if not path.exists():
            words = [self.build / "bin/astra-compile", model, "-o", path, "--quiet", "-j2", *options]
            done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
            if done.returncode:
                raise Failed(f"does not compile: {done.stderr.strip().splitlines()[0]}")
        return path


def in_turns(bundles, entry, inputs, outputs, setting, threads, name):
    """Seconds of the entry in each round, by bundle: the same call of several bundles, whose results are equal to the byte."""
    contestants, results = {}, []
    try:
        for bundle, path in bundles.items():
            (setting.folder / bundle).mkdir(exist_ok=True)
            ours = contestants[bundle] = OursProcess(setting.program, path, entry, threads, inputs, setting.folder / bundle, setting.log)
            ours.open()
            results.append([ours.output(output).tobytes() for output in outputs])
        if any(result != results[0] for result in results):
            raise SystemExit(f"{name}: {' and '.join(bundles)} give other bytes")
        times, _, absent = rounds_of(contestants, setting, None)
        if absent:
            raise SystemExit(f"{name}: {absent}")
    finally:
        for ours in contestants.values():
            ours.close()
    return times


def difference(found, wanted):
    """Over the largest magnitude; of integers, whether any differs."""
    if found.shape != wanted.shape:
        return float("inf")
    if found.size == 0:
        return 0.0
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    most = np.abs(wanted.astype(np.float64)).max()
    return float(np.abs(found.astype(np.float64) - wanted).max() / most) if most else float(np.abs(found).max())


def calls_per_part(contestant, seconds):
    """How many calls make a part of about that length."""
    once = contestant.seconds(1)
    if once < seconds / 4:
        once = contestant.seconds(max(1, int(seconds / 4 / once)))
    return max(1, round(seconds / once))


def rounds_of(contestants, setting, limits):
    """Seconds of each contestant in each round, and the limits around ours."""
    calls, times, measured, absent, slow = {}, {name: [] for name in contestants}, [], {}, set()
    for name, contestant in contestants.items():
        try:
            once = contestant.seconds(1)
            calls[name] = calls_per_part(contestant, setting.slice / PARTS) if once < SLOW else 1
            if once >= SLOW and name != "ours":
                slow.add(name)
        except Failed as failed:
            absent[name] = f"failed while it ran: {failed}"
    names = list(calls)
    for number in range(setting.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if name in absent or (name in slow and number):
                continue
            try:
                if name == "ours":
                    before = limits.measure()
                times[name].append(contestants[name].seconds(calls[name], 1 if name in slow else PARTS))
                if name == "ours":
                    after = limits.measure()
                    measured.append({key: (before[key] + after[key]) / 2 for key in before})
            except Failed as failed:
                absent[name] = f"failed while it ran: {failed}"
    return {name: t for name, t in times.items() if name not in absent}, measured, absent


def floor(row, kernels, limits):
    """Seconds that the machine needs at least, given its limits at that moment; None where no number says."""
    if row.limit == "kernels":  # what is not known of a kernel, as a gather's bytes, is -1
        return sum(max(flops / limits["fma"], moved / limits["read"], 0) * 1e-9 for _, _, flops, moved in kernels)
    return {"": None, "fma": row.flops / limits["fma"] * 1e-9}.get(row.limit, row.bytes / limits.get(row.limit, 1) * 1e-9)


def compared(record, results, reference, tolerance):
    """The peers that give what we give; the others' sentence goes into the record."""
    agreeing = []
    for name, arrays in results.items():
        differences = [difference(a, b) for a, b in zip(arrays, reference)]
        if len(arrays) != len(reference):
            record["peers"][name] = {"absent": f"it gives {len(arrays)} outputs, {len(reference)} are expected"}
        elif all(d <= tolerance for d in differences):  # false for a NaN
            agreeing.append(name)
        else:
            record["peers"][name] = {"absent": f"its result is {max(differences):.1e} from ours"}
    return agreeing


def exact(row, case):
    """The row's function in f64 by PyTorch; None where there is none, or no PyTorch."""
    if row.family == "train" or not (row.torch or row.path):
        return None
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    wide = lambda v: v.double() if v.is_floating_point() else v
    values = {name: wide(torch.from_numpy(np.asarray(v))) for name, v in {**case.inputs, **case.weights}.items()}
    with torch.no_grad():
        if row.path:
            from rows import networks

            found = networks.module(torch, row.path).double()(*networks.call(values))
        else:
            found = row.torch(torch, values)
    flat = []
    for value in [found] if isinstance(found, torch.Tensor) else found:
        flat += [value] if isinstance(value, torch.Tensor) else value
    return [v.numpy() for v in flat]


def output_names(model):
    return [value.name for value in onnx.load(model, load_external_data=False).graph.output]


def measure(row, threads, peers, setting, limits):
    case = row.case()
    record = {"family": row.family, "row": row.name, "threads": threads, "load": round(os.getloadavg()[0], 2), "peers": {}}
    try:
        model = setting.model(row, case)
        bundle = setting.bundle(row, model)
        ours = OursProcess(setting.program, bundle, row.entry, threads, case.inputs, setting.folder, setting.log)
    except Failed as failed:
        return {**record, "failed": str(failed)}
    try:
        ours.open()
        reference = [ours.output(name) for name in (["loss"] if row.family == "train" else output_names(model))]
        if row.family == "open":
            ours.close()
            return opening(row, case, model, bundle, threads, peers, setting, record, reference)
        return timed(row, case, ours, reference, model, peers, setting, limits, record)
    except Failed as failed:
        return {**record, "failed": str(failed)}
    finally:
        ours.close()


def loaded(row, model, peers, setting, record):
    results = {}
    for name, peer in peers.items():
        try:
            results[name], _ = peer.load(row, model, setting.folder / "peer.npz", LOAD_SECONDS)
        except Failed as failed:
            record["peers"][name] = {"absent": str(failed)}
    return results


def timed(row, case, ours, reference, model, peers, setting, limits, record):
    weighed = row.family in ("networks", "quantized", "train")
    for peer in peers.values() if weighed else ():
        peer.close()  # what it still holds of other rows would not be counted
    results = loaded(row, model, peers, setting, record)
    truth = exact(row, case) if ours.threads == 1 else None
    if truth:
        record["errors"] = {name: max(map(difference, arrays, truth)) for name, arrays in {"ours": reference, **results}.items() if len(arrays) == len(truth)}
    contestants = {"ours": ours, **{name: peers[name] for name in compared(record, results, reference, row.tolerance)}}
    del results
    times, measured, absent = rounds_of(contestants, setting, limits)
    if "ours" in absent:
        raise Failed(absent["ours"])
    record["peers"] |= {name: {"absent": sentence} for name, sentence in absent.items()}
    if weighed:
        record["memory"] = {name: contestants[name].memory() for name in times}
    kernels = ours.kernels() if row.limit == "kernels" else []
    shares = [f / t for t, f in zip(times["ours"], (floor(row, kernels, limit) for limit in measured)) if f is not None]
    return summarized(record, times, measured, shares)


def summarized(record, times, measured, shares):
    record["ours"] = {"seconds": statistics.median(times["ours"]), "rounds": times["ours"]}
    record["limits"] = {key: statistics.median(m[key] for m in measured) for key in ("fma", "read", "copy")} if measured else {}
    record["share"] = statistics.median(shares) if shares else None
    for name, seconds in times.items():
        if name != "ours":
            ratio = statistics.median(theirs / ours for theirs, ours in zip(seconds, times["ours"]))
            record["peers"][name] = {"seconds": statistics.median(seconds), "ratio": ratio, "rounds": seconds}
    there = {name: peer for name, peer in record["peers"].items() if "ratio" in peer}
    record["best"] = min(there, key=lambda name: there[name]["ratio"]) if there else None
    record["ratio"] = there[record["best"]]["ratio"] if there else None
    return record


def opening(row, case, model, bundle, threads, peers, setting, record, reference):
    """Every repetition in a fresh process; the files are in memory by then."""
    times = {"ours": [], **{name: [] for name in peers}}
    agreeing = list(peers)
    for number in range(max(3, setting.rounds // 2)):
        ours = OursProcess(setting.program, bundle, row.entry, threads, case.inputs, setting.folder, setting.log)
        times["ours"].append(ours.open())
        ours.close()
        for name in list(agreeing):
            peers[name].close()
            try:
                found, seconds = peers[name].load(row, model, setting.folder / "peer.npz", LOAD_SECONDS)
                times[name].append(seconds)
                if number == 0 and not compared(record, {name: found}, reference, row.tolerance):
                    agreeing.remove(name)
            except Failed as failed:
                record["peers"][name] = {"absent": str(failed)}
                agreeing.remove(name)
            peers[name].close()
    return summarized(record, {name: t for name, t in times.items() if name in ["ours", *agreeing]}, [], [])
