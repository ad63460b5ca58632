"""astra-compare: the same inputs through a bundle and through ONNX Runtime.

Takes:    a model, and a command line.
Gives:    a table of the differences of every output, and of every node on request; JSON.
Keeps:    exit codes as every tool has them: 0 all within the tolerance, 1 failed, 2 usage, 3 unsupported, 4 a difference.
Does not: run a model (sides.py) or judge a difference (report.py).
"""

import argparse
import math
import sys
import tempfile

from table import table

MOST_THREADS = 4096  # of the runtime


def parser():
    p = argparse.ArgumentParser(
        prog="astra-compare",
        usage="astra-compare MODEL.onnx [options]",
        description="Compiles a model, runs the bundle and ONNX Runtime on the same inputs, and tells by how much every "
        "output differs. Inputs are random unless they are given.",
        epilog="exit codes:\n"
        "  0  every difference is within the tolerance\n"
        "  1  failed: the sentence on stderr says what to do\n"
        "  2  the command line is wrong\n"
        "  3  the model needs something that is not supported\n"
        "  4  a difference is beyond the tolerance\n\n"
        "examples:\n"
        "  astra-compare resnet50.onnx --dim batch=1..8\n"
        "  astra-compare bert.onnx --dim batch=1..8 --dim seq=1..128 --at seq=7,128 --range input_ids=0..30521 --nodes\n"
        "  astra-compare model.onnx --input x=x.npy --tolerance 1e-6 --json report.json\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = p.add_argument
    add("model", nargs="?", metavar="MODEL.onnx", help="the model that is compiled")
    add("--dim", action="append", default=[], metavar="NAME=LO..HI", help="bounds of a dynamic dim, or "
        "arithmetic of others, as astra-compile takes them; once for each")  # fmt: skip
    add("--at", action="append", default=[], metavar="NAME=N,N,..", help="sizes of a dynamic dim to run at; its least, "
        "middle and greatest if not given. The k-th run takes the k-th size of each dim")  # fmt: skip
    add("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input instead of random values")
    add("--constant", action="append", default=[], metavar="NAME=FILE.npy", help="an input that is a constant of the "
        "bundle, as astra-compile takes it")  # fmt: skip
    add("--range", action="append", default=[], metavar="NAME=LO..HI", help="random values of an input are in LO..HI. If "
        "not given: integers that look up in a table of the model are its rows, 8-bit ones all values, others 0 or 1; "
        "floats are normal")  # fmt: skip
    add("--seed", type=int, default=1, metavar="N", help="of the random inputs; 1 if not given")
    add("--tolerance", type=float, metavar="T", help="of floats: the difference over the largest magnitude of the "
        "reference's value; 1e-4 if not given (f16 1e-2, bf16 5e-2). Integers must be equal")  # fmt: skip
    add("--nodes", action="store_true", help="compares the value of every node and names the first, in the file's order, "
        "that is beyond the tolerance; inside branches, bodies and functions the outer node is named. Keeps all values in memory")  # fmt: skip
    add("--all", action="store_true", help="with --nodes: a line for every node, not only for those beyond")
    add("--reference", metavar="OTHER.onnx", help="the model that ONNX Runtime runs; the same one if not given")
    add("--level", choices=["x86-64-v3", "x86-64-v4"], help="the CPU level; the best of this machine if not given")
    add("--threads", type=int, default=1, metavar="N", help="on either side; 1 if not given")
    add("--json", metavar="FILE", help="writes the report as JSON too; - is stdout, and then there is no table")
    add("--version", action="store_true", help="prints the version")
    return p


def pairs(words, flag):
    """NAME=VALUE words as a dict."""
    result = {}
    for word in words:
        name, found, value = word.partition("=")
        if not name or not found or not value:
            raise Usage(f"{flag} {word}: expected NAME=VALUE")
        if name in result:
            raise Usage(f"{flag}: '{name}' is given twice")
        result[name] = value
    return result


def check_numbers(options):
    if options.tolerance is not None and not 0 <= options.tolerance < math.inf:
        raise Usage(f"--tolerance {options.tolerance:g}: expected a number from 0 on")
    if options.seed < 0:
        raise Usage(f"--seed {options.seed}: expected an integer from 0 on")
    if not 1 <= options.threads <= MOST_THREADS:
        raise Usage(f"--threads {options.threads}: expected 1 to {MOST_THREADS}")


def bounds(word, flag, kind):
    low, dots, high = word.partition("..")
    try:
        pair = kind(low), kind(high if dots else low)
    except ValueError:
        raise Usage(f"{flag}: '{word}' is not LO..HI") from None
    if not math.isfinite(pair[1] - pair[0]):
        raise Usage(f"{flag}: '{word}' has an end that is not finite, or ends too far apart")
    if pair[0] > pair[1]:
        raise Usage(f"{flag}: '{word}' is empty")
    return pair


def sizes_to_run(options, values, given):
    """One dict of sizes per run; a dim of an array that is given has that array's size."""
    said = pairs(options.dim, "--dim")
    if others := said.pop("*", None):  # the compiler reads it too
        texts = [e for value in values for e in value.extents if isinstance(e, str)]
        said |= {name: others for text in texts for name in extents.names(text) or [text] if name not in said}
    written = {name: word for name, word in said.items() if extents.names(word)}
    dims = {name: bounds(word, f"--dim {name}", int) for name, word in said.items() if name not in written}
    lists = {}
    for name, word in pairs(options.at, "--at").items():
        if name not in dims:
            raise Usage(f"--at {name}: give the dim's bounds too, --dim {name}=LO..HI")
        lists[name] = [bounds(n, f"--at {name}", int)[0] for n in word.split(",")]
        if wrong := [n for n in lists[name] if not dims[name][0] <= n <= dims[name][1]]:
            raise Usage(f"--at {name}={wrong[0]}: a size must be in {dims[name][0]} .. {dims[name][1]}, as --dim {name} says")
    for name, (size, flag) in sizes_given(values, given, written).items():
        low, high = dims.get(name, (size, size))
        if not low <= size <= high:
            raise Usage(f"{flag}: the dim '{name}' has the size {size} there, and --dim says {low} .. {high}")
        if set(lists.get(name, [size])) != {size}:
            raise Usage(f"{flag}: the dim '{name}' has the size {size} there: --at can give no other")
        lists[name] = [size]
    used = {e for value in values for e in value.extents if isinstance(e, str)}
    used |= {name for text in [*used, *written.values()] for name in extents.names(text)}
    for name, (low, high) in dims.items():
        default = [low, (low + high) // 2, high] if name in used else [low]
        lists.setdefault(name, list(dict.fromkeys(default)))
    runs = max((len(sizes) for sizes in lists.values()), default=1)
    result = [{name: sizes[min(k, len(sizes) - 1)] for name, sizes in lists.items()} for k in range(runs)]
    for sizes in result:
        for _ in written:  # one may be written with another
            sizes |= {name: size for name, text in written.items() if (size := extents.value(text, sizes)) is not None}
    return result


def compare(options):
    try:
        model = onnx.load(options.model, load_external_data=False)
        other = onnx.load(options.reference, load_external_data=False) if options.reference else model
    except Exception as wrong:  # protobuf's and the file system's
        raise Refusal(f"{wrong}") from None
    constants = pairs(options.constant, "--constant")
    values = inputs_of(model)
    files = pairs(options.input, "--input")
    dims_of = {value.name: value for value in values}
    ranges = {n: bounds(w, f"--range {n}", float) for n, w in pairs(options.range, "--range").items()}
    for flag, names in (("--input", files), ("--range", ranges), ("--constant", constants)):
        for name in names:
            if name not in dims_of:
                raise Usage(f"{flag} {name}: the model has no such input; it has " + ", ".join(v.name for v in values))
    files |= constants
    given = {name: load(path, dims_of[name]) for name, path in files.items()}
    runs = sizes_to_run(options, values, given)
    if len(given) == len(values):
        runs = runs[:1]

    nodes = {name: f"{n.name or 'number ' + str(i)} ({n.op_type})"
             for i, n in enumerate(model.graph.node) for name in n.output}  # fmt: skip
    order = {name: place for place, name in enumerate(nodes)}
    cases, quiet = [], options.json == "-"
    with tempfile.TemporaryDirectory(prefix="astra-compare-") as folder:
        ours = AstraSide(options.model, folder, options, options.nodes)
        theirs = ReferenceSide(options.reference or options.model, other, values, ours.taps, options.threads)
        for sizes in runs:
            inputs = make_inputs(model, values, sizes, given, ranges, options.seed)
            found, expected = ours.run(inputs), theirs.run(inputs)
            if missing := [name for name in ours.outputs if name not in expected]:
                raise Refusal(f"the reference has no output '{missing[0]}'")
            difference = lambda name: Difference(name, found[name], expected[name], options.tolerance, nodes.get(name))
            outputs = [difference(name) for name in ours.outputs]
            every = sorted(ours.taps + [n for n in ours.outputs if n in order], key=order.get) if options.nodes else []
            case = {"sizes": sizes, "outputs": outputs, "nodes": [difference(name) for name in every]}
            cases.append(case)
            if not quiet:
                show(case, options)
    return cases


def show(case, options):
    shapes = ", ".join(f"{name}={size}" for name, size in case["sizes"].items())
    print(f"{options.model}{' at ' + shapes if shapes else ''}")
    print_table([d.row() for d in case["outputs"]])
    if not options.nodes:
        return
    beyond = [d for d in case["nodes"] if not d.within]
    listed = case["nodes"] if options.all else beyond[:10]
    if listed:
        print_table([[d.node + ": " + d.name, *d.row()[1:]] for d in listed])
    if beyond:
        print(f"first node beyond the tolerance: {beyond[0].node}, value {beyond[0].name}; "
              f"{len(beyond)} of {len(case['nodes'])} values are")  # fmt: skip
    elif len(case["nodes"]) > 1:
        print(f"all {len(case['nodes'])} values of nodes are within the tolerance")


def as_json(options, cases):
    rows = []
    for case in cases:
        row = {"sizes": case["sizes"], "outputs": [d.as_json() for d in case["outputs"]]}
        if options.nodes:
            beyond = [d for d in case["nodes"] if not d.within]
            row["nodes"] = [d.as_json() for d in case["nodes"]]
            row["first_node"] = beyond[0].as_json() if beyond else None
        rows.append(row)
    return {"model": options.model, "reference": options.reference or options.model, "seed": options.seed,
            "agrees": agrees(cases), "cases": rows}  # fmt: skip


def agrees(cases):
    return all(d.within for case in cases for d in case["outputs"] + case["nodes"])


def main():
    options = parser().parse_args()
    if options.version:
        print(f"astra-compare {version()}")
        return 0
    try:
        if not options.model:
            raise Usage("no model is given")
        check_numbers(options)
        cases = compare(options)
        if options.json:
            write_json(options.json, as_json(options, cases))
    except Usage as wrong:
        print(f"astra-compare: {wrong} (see astra-compare --help)", file=sys.stderr)
        return 2
    except Refusal as refusal:
        print(f"astra-compare: {refusal}", file=sys.stderr)
        return 3 if refusal.unsupported else 1
    return 0 if agrees(cases) else 4


if sys.argv[1:] == ["--table"]:  # the build asks
    sys.stdout.write(table(parser(), "compare a bundle with ONNX Runtime", [".onnx"]))
    sys.exit()
if {"--help", "-h"} & set(sys.argv[1:]):  # needs no package
    parser().parse_args()
try:
    import onnx

    import extents
    from inputs import inputs_of, load, make_inputs, sizes_given
    from report import Difference, Refusal, Usage, print_table, write_json
    from sides import AstraSide, ReferenceSide, version
except ImportError as missing:
    sys.exit(f"astra-compare: the Python package {missing.name} is not there: run scripts/setup, or name a Python that has "
             "onnx, onnxruntime and NumPy in ASTRA_PYTHON")  # fmt: skip
sys.exit(main())
