"""What the numeric contract says in numbers, carried out.

Takes:    the tree, a build folder, an empty folder to work in.
Gives:    exit code 0; a sentence for each difference and 1 where docs/numerics.md is not right.
Keeps:    - every line of an `examples` block and every entry of a `uop` block gives the bits that stand there: by the
            evaluator, by the evaluator behind the numerics stage, and by compiled code;
          - every function of a `python` block gives the evaluator's bits on numbers whose sums depend on their order.
            Arithmetic there is NumPy's, a fused multiply-add that of test/vectors/formats.py: exact, rounded once.

    build/venv/bin/python test/Numerics/Inputs/document.py . build FOLDER
"""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT, BUILD, WORK = (Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(ROOT / "test/vectors"))
import formats  # noqa: E402

F32 = np.float32
DOCUMENT = "docs/numerics.md"
DTYPES = {"bool": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "complex64": np.complex64}
DTYPES |= {f"{k}{b}": getattr(np, f"{'u' if k == 'u' else ''}int{b}") for k in "iu" for b in (8, 16, 32, 64)}
BYTES = {"bf16": 2}  # of types that NumPy lacks; those of less than a byte have one for each element
BYTES |= {t: 1 for t in ("f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "e8m0", "i2", "u2", "i4", "u4", "f4e2m1")}
KIND = {"f": "f32", "c": "complex64", "u": "u32"}
errors = []


def bits(x):
    return int(np.float32(x).view(np.int32))


def fma(x, y, z):
    exact = [formats.decode("f32", bits(v) & 0xFFFFFFFF) for v in (x, y, z)]
    return np.uint32(formats.encode("f32", formats.f_fma(*exact))).view(np.float32)


def size_of(dtype):
    return BYTES.get(dtype) or np.dtype(DTYPES[dtype]).itemsize


def array_of(dtype, codes, shape):
    """The elements of these bits, as files of tensors hold them."""
    size = size_of(dtype)
    raw = b"".join(c.to_bytes(size, "little") for c in codes)
    return np.frombuffer(raw, DTYPES.get(dtype, np.dtype(f"u{size}"))).reshape(shape)


def codes_of(dtype, array):
    raw, size = np.ascontiguousarray(array).tobytes(), size_of(dtype)
    return [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]


def shown(dtype, codes):
    text = [f"{c:0{2 * size_of(dtype)}x}" for c in codes]
    return " ".join(text[:8]) + (" ..." if len(text) > 8 else "")


# ---- the document: entries (name, text, inputs, expected outputs), both name -> (dtype, shape, codes)
def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


COMPARE = ("lt", "le", "eq", "ne")


def example_entry(text):
    """All lines of `examples` blocks as one entry; those of one op and type are elements of one tensor."""
    groups = {}
    for line in "".join(blocks(text, "examples")).splitlines():
        line = line.split("//")[0].strip()
        if not (found := re.fullmatch(r"(\w+) (\w+)(?: to (\w+))?((?: \w+=\w+)*): ([0-9a-f ]+) -> ([0-9a-f]+)", line)):
            sys.exit(f"{DOCUMENT}: not an example: {line}")
        op, dtype, to, attributes, operands, result = found.groups()
        groups.setdefault((op, dtype, to, attributes), []).append(([int(w, 16) for w in operands.split()], int(result, 16)))
    arguments, statements, results, inputs, outputs = [], [], [], {}, {}
    for i, ((op, dtype, to, attributes), rows) in enumerate(groups.items()):
        n, count = len(rows), len(rows[0][0])
        types = {"select": ["bool", dtype, dtype], "scale2": [dtype, "i32"]}.get(op, [dtype] * count)
        for k, t in enumerate(types):
            arguments.append(f"%x{i}_{k} : {t}[{n}]")
            inputs[f"x{i}_{k}"] = (t, [n], [r[0][k] for r in rows])
        given = to or ("bool" if op in COMPARE else dtype)
        statements.append(f"%y{i} = {op} {', '.join(f'%x{i}_{k}' for k in range(count))}{attributes} : {given}[{n}]")
        results.append(f"%y{i} : {given}[{n}]")
        outputs[f"y{i}"] = (given, [n], [r[1] for r in rows], f"{op} {dtype}")
    body = "\n    ".join(statements)
    return "examples", f"  entry @examples({', '.join(arguments)}) -> ({', '.join(results)}) {{\n    {body}\n  }}\n", inputs, outputs


def written(words):
    codes = []
    for word, times in re.findall(r"([0-9a-f:]+)(?: \* (\d+))?", words):
        parts = [int(p, 16) for p in word.split(":")]
        codes += [parts[0] if len(parts) == 1 else parts[0] | parts[1] << 32] * int(times or 1)
    return codes


def entries_of(text):
    for block in blocks(text, "uop"):
        name = re.search(r"^entry @(\w+)", block, re.M)[1]
        types = {n: (t, [int(d) for d in (s or "").split(",") if d]) for n, t, s in
                 re.findall(r"%(\w+) : (\w+)(?:\[([\d, ]*)\])?", re.search(r"^entry.*$", block, re.M)[0])}  # fmt: skip
        values = {way: {n: (*types[n], written(w)) for n, w in re.findall(rf"^// {way} (\w+) = (.*)$", block, re.M)}
                  for way in ("in", "out")}  # fmt: skip
        yield name, block, values["in"], values["out"]


# ---- the Python, beside the evaluator
def rough(count, seed):
    """Floats of 16 exponents around 1: another order of their sum gives other bits."""
    r = np.random.default_rng(seed)
    return (r.uniform(-1, 1, count) * np.exp2(r.integers(-8, 8, count))).astype(F32)


def python_entry(text):
    """One entry with an output for each case."""
    code = {"F32": F32, "np": np, "itertools": itertools, "fma": fma, "bits": bits, "hexf": lambda s: F32(float.fromhex(s))}
    for block in blocks(text, "python"):
        exec(block, code)
    add, multiply = (lambda a, b: a + b), (lambda a, b: a * b)
    sum0, prod0 = F32(-0.0), F32(1.0)

    inputs, statements, outputs = {}, [], {}

    def case(name, statement, given, y):
        """given: f32, complex64 or u32 arrays; y: the expected one."""
        for n, a in given.items():
            inputs[f"{name}_{n}"] = (KIND[a.dtype.kind], list(a.shape), codes_of(KIND[a.dtype.kind], a))
        statements.append(f"%{name} = " + re.sub(r"%(\w+)", rf"%{name}_\1", statement))
        outputs[name] = (KIND[y.dtype.kind], list(y.shape), codes_of(KIND[y.dtype.kind], y))

    x, w = rough(2 * 1100, 1).reshape(2, 1100), rough(1100 * 2, 2).reshape(1100, 2)
    y = np.array([[code["chain512"]([1100], lambda p: (x[i, p[0]], w[p[0], j])) for j in range(2)] for i in range(2)])
    case("matmul", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]", {"x": x, "w": w}, y)
    # Three labels: blocks of 512 and, of what is left of 8192, 16 and 1.
    x, w = rough(2 * 20 * 530, 3).reshape(2, 20, 530), rough(2 * 20 * 530, 4).reshape(2, 20, 530)
    y = np.array(code["chain512"]([2, 20, 530], lambda p: (x[p], w[p])))
    case("labels", "contract %x[a, b, c], %w[a, b, c] -> [] sum [a, b, c]", {"x": x, "w": w}, y)
    # Padding takes part, holes and what is outside of the domain do not.
    x, w = rough(40, 5), rough(9, 6)
    inside = lambda v: x[v] if 0 <= v < len(x) else F32(0.0)
    y = np.array([code["chain512"]([9], lambda p: (inside(o + p[0] - 4), w[p[0]])) for o in range(40)])
    case("padded", "contract %x[o + k - 4], %w[k] -> [o: 40] sum [k]", {"x": x, "w": w}, y)
    holes = lambda o, k: None if (o + 3 - k) % 2 else (inside((o + 3 - k) // 2), w[k])
    y = np.array([code["chain512"]([9], lambda p: holes(o, p[0])) for o in range(79)])
    case("transposed", "contract %x[(o + 3 - k)/2], %w[k] -> [o: 79] sum [k]", {"x": x, "w": w}, y)
    x, w = rough(30 * 30, 7).reshape(30, 30), rough(30, 8)
    y = np.array([code["chain512"]([30], lambda p: (x[i, p[0]], w[p[0]]) if p[0] <= i else None) for i in range(30)])
    case("causal", "contract %x[i, j], %w[j] -> [i] sum [j] where j <= i", {"x": x, "w": w}, y)
    for n in (1, 2, 65, 4097, 9000):
        x = rough(n, n)
        y = np.array(code["lane64"](add, sum0, list(x)))
        case(f"sum{n}", "reduce %x kind=sum order=lane64 axes=[0]", {"x": x}, y)
    x = rough(3 * 2 * 5 * 40, 9).reshape(3, 2, 5, 40)
    y = code["reduce_lane64"](add, sum0, F32(0.0), x, [0, 2, 3])
    case("axes", "reduce %x kind=sum order=lane64 axes=[0, 2, 3]", {"x": x}, y)
    y = code["reduce_lane64"](multiply, prod0, prod0, x, [1, 2])
    case("products", "reduce %x kind=prod order=lane64 axes=[1, 2]", {"x": x}, y)
    x = rough(0, 0).reshape(2, 3, 0)
    y = code["reduce_lane64"](add, sum0, F32(0.0), x, [0, 2])
    case("nothing", "reduce %x kind=sum order=lane64 axes=[0, 2]", {"x": x}, y)
    for kind, op in (("sum", add), ("prod", multiply)):
        x = rough(37, 10)
        case(f"running_{kind}", f"cumulate %x kind={kind} axis=0", {"x": x}, np.array(code["running"](op, x, True)))
        x = rough(37 * 2, 11).reshape(37, 2)
        y = np.stack([code["running"](op, x[:, i], False) for i in range(2)], 1)
        case(f"running_{kind}_outer", f"cumulate %x kind={kind} axis=0", {"x": x}, y)
    a, b = (rough(80, s).view(np.complex64) for s in (12, 13))
    pairs = [[(F32(v.real), F32(v.imag)) for v in c] for c in (a, b)]
    together = lambda values: np.array(values, F32).reshape(-1).view(np.complex64)
    case("products_of_complex", "mul %a, %b", {"a": a, "b": b}, together([*map(code["complex_mul"], *pairs)]))
    case("quotients_of_complex", "div %a, %b", {"a": a, "b": b}, together([*map(code["complex_div"], *pairs)]))
    case("magnitudes", "abs %a", {"a": a}, np.array([*map(code["complex_abs"], pairs[0])]))
    a = a[:13]  # an odd number, and odd numbers on the way
    product = together([code["complex_product"](pairs[0][:13])])[0]
    case("product_in_pairs", "reduce %a kind=prod order=pairs axes=[0]", {"a": a}, np.array(product))
    x = np.concatenate([np.linspace(-110, 95, 300, dtype=F32), rough(100, 14), F32([-0.0, np.inf, -np.inf])])
    case("exponentials", "exp %x", {"x": x}, np.array([code["exp_f32"](v) for v in x]))
    key = {"seed": np.array(0x9E3779B9, np.uint32), "stream": np.array(7, np.uint32)}
    y = np.array([code["threefry"](0x9E3779B9, 7, i) for i in range(9)], np.uint32)
    case("words", "random %seed, %stream [9]", key, y)
    typed = lambda tensors: ", ".join(f"%{n} : {t}[{', '.join(map(str, s))}]".replace("[]", "") for n, (t, s, _) in tensors.items())
    body = "\n  ".join(statements)
    return "python", f"entry @python({typed(inputs)}) -> ({typed(outputs)}) {{\n  {body}\n}}\n", inputs, outputs


# ---- running
def command(*words):
    done = subprocess.run([*map(str, words)], cwd=WORK, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")


def check(way, entry, program):
    name, _, inputs, outputs = entry
    command(*program, f"--entry={name}", *(f"--input={n}={name}.{n}.npy" for n in inputs),
            *(f"--output={n}={name}.{n}.npy" for n in outputs))  # fmt: skip
    for n, (dtype, _, codes, *what) in outputs.items():
        got = codes_of(dtype, np.load(WORK / f"{name}.{n}.npy"))
        if got != codes:
            at = next((i for i, (g, c) in enumerate(zip(got, codes)) if g != c), len(codes))
            errors.append(f"{DOCUMENT}: {' '.join(what) or name}, {n}, element {at}: {way} gives {shown(dtype, got[at:])}"
                          f" and not {shown(dtype, codes[at:])}")  # fmt: skip


with np.errstate(all="ignore"):
    document = (ROOT / DOCUMENT).read_text()
    entries = [example_entry(document), *entries_of(document), python_entry(document)]
assert len(entries) > 10 and all(len(e[3]) > 20 for e in (entries[0], entries[-1])), "the document has lost its examples"
(WORK / "numerics.uop").write_text("module @numerics {\n" + "".join(e[1] for e in entries) + "}\n")
command(BUILD / "bin/astra-compile", "numerics.uop", "-o", "numerics.astra", "--target=cpu:x86-64-v3")
for entry in entries:
    for n, (dtype, shape, codes) in entry[2].items():
        np.save(WORK / f"{entry[0]}.{n}.npy", array_of(dtype, codes, shape))
    check("the evaluator", entry, [BUILD / "bin/astra-opt", "numerics.uop", "--eval"])
    check("the evaluator behind the numerics stage", entry, [BUILD / "bin/astra-opt", "numerics.uop", "--passes=numerics", "--eval"])
    check("compiled code", entry, [BUILD / "bin/astra-run", "numerics.astra"])
count = sum(len(o[2]) for o in entries[0][3].values())
print("\n".join(errors) or f"{count} examples, {len(entries) - 2} entries, {len(entries[-1][3])} cases of the Python")
sys.exit(bool(errors))
