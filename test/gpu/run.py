"""Tests of scripts/gpu-report, and what the code of strict f32 products must be like on GPUs that are not here.

usage: test/gpu/run.py [BIN]

Takes:    the tools of BIN, build/bin if not given; listings in snippets/, written by hand.
Checks:   what is read of a listing: instructions, branches, stalls, loops, mixes; occupancy, beside docs/gpu-kernels.md. Gates: the
          product of 4096 for sm_80, sm_90 and gfx942, by itself and under plans with rings. What the driver is told of shared memory. Sentences of what is refused.
Gives:    "N passed, N failed"; "skipped: ..." where ptxas or nvdisasm is not here.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import gpu_figures  # noqa: E402
import gpu_listing  # noqa: E402

PRODUCT = """module @product {
  entry @main(%a : f32[4096, 4096], %b : f32[4096, 4096]) -> (%c : f32[4096, 4096]) {
    %c = contract %a[i, k], %b[k, j] -> [i, j] sum [k]
  }
}
"""
def rows_of(lines, inputs=""):
    return f"module @rows {{\n  entry @main(%x : f32[8192, 4096]{inputs}) -> (%y : f32[8192, 4096]) {{\n{lines}  }}\n}}\n"


def spread(name, of):
    return f"    %{name}1 = reshape %{of} [8192, 1]\n    %{name} = expand %{name}1 [8192, 4096]\n"


SUM = "kind=sum order=lane64 axes=[1]\n"
ROWS = {
    "softmax": rows_of("    %m = reduce %x kind=max order=exact axes=[1]\n" + spread("ms", "m") + "    %d = sub %x, %ms\n    %e = exp %d\n    %t = reduce %e " + SUM
                       + spread("ts", "t") + "    %y = div %e, %ts\n"),
    "norm": rows_of("    %n = const 4096.0 : f32\n    %n1 = reshape %n [1]\n    %n2 = expand %n1 [8192]\n    %s = reduce %x " + SUM + "    %m = div %s, %n2\n"
                    + spread("ms", "m") + "    %d = sub %x, %ms\n    %q = mul %d, %d\n    %t = reduce %q " + SUM + "    %v = div %t, %n2\n    %r = sqrt %v\n"
                    + spread("rs", "r") + "    %y = div %d, %rs\n"),
}  # fmt: skip
ATTENTION = """module @attention {
  entry @main(%q : f32[96, 512, 64], %k : f32[96, 512, 64], %v : f32[96, 512, 64]) -> (%y : f32[96, 512, 64]) {
    %s = contract %q[h, i, d], %k[h, j, d] -> [h, i, j] sum [d]
    %m = reduce %s kind=max order=exact axes=[2]
    %m1 = reshape %m [96, 512, 1]
    %m2 = expand %m1 [96, 512, 512]
    %d = sub %s, %m2
    %e = exp %d
    %t = reduce %e kind=sum order=lane64 axes=[2]
    %t1 = reshape %t [96, 512, 1]
    %t2 = expand %t1 [96, 512, 512]
    %p = div %e, %t2
    %y = contract %p[h, i, j], %v[h, j, d] -> [h, i, d] sum [j]
  }
}
"""
# Of rows of 4096: warps of a hundred that a unit holds; instructions of a thread for each of its elements, at most.
ROW_GATES = [(name, target, *figures) for name, figures in (("softmax", (60, 80)), ("norm", (75, 75))) for target in ("cuda:sm_80", "cuda:sm_90")]
ROW_GATES += [(name, "hip:gfx942", 35, 80) for name in ("softmax", "norm")]
# Of the main loop: fused multiply-adds of a hundred instructions, at least. On AMD of a hundred vector instructions.
GATES = {"cuda:sm_80": ("fma_share", 0.93), "cuda:sm_90": ("fma_share", 0.93), "hip:gfx942": ("issue_bound", 0.98)}
UNIT_PRODUCT = """module @product {
  entry @main(%%a : %(type)s[4096, 4096], %%b : %(type)s[4096, 4096]) -> (%%c : %(type)s[4096, 4096]) {
    %%c = contract %%a[i, k], %%b[k, j] -> [i, j] sum [k] order="%(unit)s %(type)s"
  }
}
"""
# Of the main loop of a matrix unit's product: its instructions of a hundred, at least.
UNIT_GATES = {("cuda:sm_90a", "hopper16", "bf16"): 0.05, ("cuda:sm_90a", "hopper16", "f16"): 0.05,
              ("cuda:sm_90", "hopper16", "bf16"): 0.34, ("cuda:sm_90", "hopper16", "f16"): 0.34, ("cuda:sm_80", "ampere8", "bf16"): 0.50,
              ("hip:gfx942", "cdna3-8", "bf16"): 0.14, ("hip:gfx942", "cdna3-8", "f16"): 0.14, ("hip:gfx90a", "cdna2", "bf16"): 0.14}  # fmt: skip
# The same of products whose operands come through a ring of asynchronous copies, of the loop of steps and with the loop around it, which copies.
RINGS = [
    ("cuda:sm_80", "mr 16; vector 4; nr 2; row-block 8; threads 128; mc 8; kc 32; unroll-k 16; spill-sums 1; stages 2", 0.95, 0.93, 6),
    ("cuda:sm_90", "mr 8; vector 4; nr 4; row-block 8; threads 256; mc 16; kc 32; unroll-k 16; spill-sums 1; stages 2", 0.95, 0.93, 12),
    ("cuda:sm_90", "mr 8; vector 4; nr 4; row-block 8; threads 256; mc 16; kc 16; unroll-k 16; spill-sums 1; stages 3", 0.93, 0.93, 12),
    ("cuda:sm_90", "mr 8; vector 4; nr 2; row-block 8; threads 256; mc 16; kc 16; unroll-k 8; spill-sums 1; stages 3", 0.925, 0.87, 25),
]


def snippet(name):
    return (pathlib.Path(__file__).parent / "snippets" / name).read_text()


def reads_sass():
    kernels = gpu_listing.parse_sass(snippet("two.sass"))
    assert list(kernels) == ["two", "straight"], list(kernels)
    code = kernels["two"]
    assert [i.opcode for i in code[:4]] == ["S2R", "ISETP.GE.U32.AND", "EXIT", "LDG.E.128.CONSTANT"], code[:4]
    assert [i.stall for i in code[:3]] == [2, 13, 5], code[:3]
    assert code[8].operands == "R24, R12, R16.reuse, R24", code[8]
    assert code[2].falls and not code[-2].falls  # @P0 EXIT; EXIT
    branches = [(i.address, i.target, i.falls) for i in code if i.opcode == "BRA"]
    assert branches == [(0xC0, 0x60, True), (0xF0, 0x30, True), (0x110, 0x110, False)], branches


def finds_loops_of_sass():
    kernels = gpu_listing.parse_sass(snippet("two.sass"))
    loops = gpu_listing.loops_of(kernels["two"])
    assert [(x.head, x.depth, len(x.body), len(x.own(loops))) for x in loops] == [(0x30, 1, 13, 6), (0x60, 2, 7, 7)], loops
    assert gpu_listing.main_loop(loops).head == 0x60
    assert gpu_listing.loops_of(kernels["straight"]) == [] and gpu_listing.main_loop([]) is None


def counts_a_mix_of_sass():
    main = gpu_listing.main_loop(gpu_listing.loops_of(gpu_listing.parse_sass(snippet("two.sass"))["two"]))
    mix = gpu_figures.mix_of("cuda:sm_90", main.body)
    assert mix.kinds == {"fma": 2, "shared load": 2, "branch": 1, "move": 1, "integer": 1}, mix.kinds
    assert mix.widths == {"shared load": {8: 1, 16: 1}}, mix.widths
    assert (mix.instructions, mix.fma_share, mix.issue_bound, mix.stalls) == (7, 2 / 7, 2 / 7, 13), mix
    assert gpu_figures.mix_of("cuda:sm_80", main.body).issue_bound == 4 / 7  # a fused multiply-add takes two cycles there


def reads_amd():
    code = gpu_listing.parse_amd(snippet("two.s"))["two"]
    assert (code[0].address, code[0].opcode, code[0].operands) == (0x1600, "s_load_dwordx2", "s[2:3], s[0:1], 0x0"), code[0]
    loops = gpu_listing.loops_of(code)
    assert [(x.head, x.depth, len(x.body)) for x in loops] == [(0x160C, 1, 14), (0x1620, 2, 9)], loops
    mix = gpu_figures.mix_of("hip:gfx942", gpu_listing.main_loop(loops).body)
    assert mix.kinds == {"fma": 2, "shared load": 2, "barrier": 1, "branch": 1, "move": 1, "integer": 2}, mix.kinds
    assert mix.issue_bound == 2 / 3, mix
    assert [i.opcode for i in code if gpu_figures.kind_of("hip", i.opcode) == "local"] == ["scratch_store_dword"]


def knows_widths():
    for opcode, width in {"LDG.E.64": 8, "LDG.E.U8": 1, "STS": 4, "LDS.U.128": 16, "LDG.E.S16.CONSTANT": 2}.items():
        assert gpu_figures.width_of("cuda", opcode) == width, opcode
    for opcode, width in {"global_load_dwordx2": 8, "ds_read_b32": 4, "ds_read_b128": 16, "global_load_ubyte": 1, "ds_write_b16": 2,
                          "global_load_b128": 16, "global_load_dword": 4, "global_load_sshort": 2}.items():  # fmt: skip
        assert gpu_figures.width_of("hip", opcode) == width, opcode


def counts_occupancy_as_the_compiler_does():
    limits, rows = gpu_figures.targets(), 0
    for line in (ROOT / "docs/gpu-kernels.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 9 and cells[2] in limits:
            full, _ = gpu_figures.occupancy(limits[cells[2]], *(int(c) for c in cells[3:6]))
            assert f"{full} %" == cells[8], line
            rows += 1
    assert rows >= 300, rows


def refuses(tools):
    with tempfile.TemporaryDirectory() as folder:
        affine = str(ROOT / "examples/affine/affine.uop")
        cpu = f"{folder}/cpu.astra"
        subprocess.run([f"{tools}/astra-compile", affine, "-o", cpu, "--target=cpu:x86-64-v3", "--quiet"], check=True)
        for arguments, code, part in [
            ([], 2, "expected one bundle or model"),
            (["/nowhere.astra"], 1, "there is no /nowhere.astra"),
            ([affine, "--target=cuda:sm_1"], 3, "--target=cuda:sm_1 is no GPU; there are cuda:sm_75"),
            ([affine, "--color"], 2, "--color is no option, or has no value"),
            ([affine, "--kernel=("], 2, "--kernel: "),
            ([cpu], 3, "the bundle has no code for GPUs"),
            ([cpu, "--", "--dim", "n=1"], 2, "a bundle is compiled already"),
            ([str(ROOT / "README.md"), "--target=hip:gfx942"], None, "gpu-report: astra-compile failed: "),
        ]:
            done = subprocess.run([sys.executable, ROOT / "scripts/gpu-report", f"--bin={tools}", *arguments], capture_output=True, text=True)
            assert done.returncode and (code is None or done.returncode == code), (arguments, done.returncode, done.stderr)
            assert part in done.stderr and len(done.stderr.strip().splitlines()) == 1, (arguments, done.stderr)


def report(tools, target, text, *options, plan=None):
    """The one kernel of a model."""
    with tempfile.TemporaryDirectory() as folder:
        model, plans = pathlib.Path(folder) / "product.uop", pathlib.Path(folder) / "plans"
        model.write_text(text)
        plans.write_text(f"k0_contract: contract: n 1; m 0; {plan}\n")
        options = [*options, "--", f"--plans={plans}"] if plan else options
        done = subprocess.run([sys.executable, ROOT / "scripts/gpu-report", f"--bin={tools}", model, f"--target={target}", "--json", *options], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    return row


def unit_gate(tools, target, unit, kind):
    row = report(tools, target, UNIT_PRODUCT % {"unit": unit, "type": kind}, "--kernel=contract")
    kinds = row["loop"]["kinds"]
    share = kinds.get("matrix", 0) / sum(kinds.values())
    assert share >= UNIT_GATES[target, unit, kind], f"matrix instructions are {share:.4f} of the loop: {kinds}"
    assert row["spills"] == row["stack"] == row["local"] == 0, row
    if target in ("cuda:sm_80", "cuda:sm_90"):  # lines that ldmatrix reads
        near = [a for a in row["accesses"] if "words_in_a_bank" in a]
        assert near and all(a["words_in_a_bank"] == 1 and a["bytes"] == 16 for a in near), near
        assert kinds["shared load"] * 2 <= kinds["matrix"], kinds
    if target == "cuda:sm_90a":  # a turn multiplies a box of 4 steps, which another loop asks for
        assert kinds["matrix"] == 4 and not {"shared load", "shared store", "global load", "local"} & set(kinds), kinds
        assert any(x["own"]["kinds"].get("async copy") == 2 for x in row["loops"]), row["loops"]


def gate(tools, target):
    figure, least = GATES[target]
    row = report(tools, target, PRODUCT)
    loop = row["loop"]
    assert loop[figure] >= least, f"{figure} is {loop[figure]:.4f}, expected {least}: {loop['kinds']}"
    assert row["spills"] == row["stack"] == row["local"] == 0, row
    assert set(loop["widths"]["shared load"]) == {"16"}, loop["widths"]
    for access in row["accesses"]:
        if "words_in_a_bank" in access:  # only operands that are turned on their way meet, two words at a time
            assert access["words_in_a_bank"] <= (2 if access["kind"] == "store" else 1), access
        else:
            assert access["by_those_needed"] == 1 and access["bytes"] == 16, access


def ring_gate(tools, target, plan, least, with_copies, occupancy):
    row = report(tools, target, PRODUCT, plan=plan)
    loop, turns = row["loop"], int(plan.split("kc ")[1].split(";")[0]) // int(plan.split("unroll-k ")[1].split(";")[0])
    assert loop["fma_share"] >= least, f"{loop['fma_share']:.4f}, expected {least}: {loop['kinds']}"
    assert row["spills"] == row["stack"] == row["local"] == 0, row
    assert row["occupancy"] >= occupancy, row["occupancy"]
    if turns == 1:  # a turn of the ring is one of the loop of steps: the copies are in it
        assert loop["fma_share"] >= with_copies and loop["kinds"]["async copy"], loop["kinds"]
        return
    (around,) = [x["own"] for x in row["loops"] if x["own"]["kinds"].get("async copy") and x["depth"] == 2]
    kinds = around["kinds"]
    assert not {"global load", "shared store"} & set(kinds), f"a turn of the ring goes through registers: {kinds}"
    fma, all_of = turns * loop["kinds"]["fma"], turns * loop["instructions"] + around["instructions"]
    assert fma / all_of >= with_copies, f"with the copies {fma / all_of:.4f}, expected {with_copies}: {kinds}"


def rows_gate(tools, target, text, occupancy, most):
    """One kernel, whose warps touch no sector for nothing, and that keeps nothing in memory but the row, which is read and written once, by 16 bytes."""
    row = report(tools, target, text)
    assert row["spills"] == row["stack"] == row["local"] == 0 and row["occupancy"] >= occupancy, row
    far = [a for a in row["accesses"] if "words_in_a_bank" not in a]
    assert far and all(a["by_those_needed"] == 1 and a["bytes"] == 16 for a in far), far
    moved = {kind: sum(a["moved"] * a["times"] for a in far if a["kind"] == kind) for kind in ("load", "store")}
    assert moved == {"load": 4096 * 4, "store": 4096 * 4}, moved
    slots = row["instructions"] * row["threads"] / 4096  # of an element, the passes that are not unrolled apart
    assert slots <= most, slots
    assert all(a["words_in_a_bank"] == 1 for a in row["accesses"] if a not in far), row["accesses"]
    assert row["shared"] <= 4096 * 4 + 1024, row["shared"]


def attention_gate(tools, target):
    """One kernel, that writes its results and no scores."""
    row = report(tools, target, ATTENTION, "--kernel=joined")
    assert row["spills"] == row["stack"] == row["local"] == 0, row
    rows = int(row["plan"].split("; join ")[1])
    far = [a for a in row["accesses"] if "words_in_a_bank" not in a]
    assert far and all(a["by_those_needed"] == 1 and a["bytes"] == 16 for a in far), far
    moved = {kind: sum(a["moved"] * a["times"] for a in far if a["kind"] == kind) for kind in ("load", "store")}
    assert moved["store"] == rows * 64 * 4, moved
    assert row["shared"] >= rows * 512 * 4, row["shared"]  # where the scores are


def launches_what_takes_much_shared_memory(tools):
    """More than code for NVIDIA states by itself: the driver must be told, when the bundle is loaded and at the launch."""
    with tempfile.TemporaryDirectory() as folder:
        model, plans, bundle = (f"{folder}/{name}" for name in ("product.uop", "plans", "product.astra"))
        pathlib.Path(model).write_text(PRODUCT.replace("4096", "132"))
        plan = "mr 4; vector 4; nr 2; threads 64; mc 8; kc 32; spill-sums 1; stages 4"
        pathlib.Path(plans).write_text(f"k0_contract: contract: n 1; m 0; {plan}\n")
        made, results, random = [], [], numpy.random.default_rng(5)
        for name in "ab":
            numpy.save(f"{folder}/{name}.npy", random.standard_normal((132, 132), numpy.float32))
            made.append(f"--input={name}={folder}/{name}.npy")
        for bundle_targets, options in [("cpu:x86-64-v3", []), ("cuda:sm_90,emu:cuda:sm_90", ["--emulate=cuda:sm_90"]),
                                        ("cuda:sm_90,emu:cuda:sm_90", ["--device=cuda:0", f"--driver={tools.parent}/lib/libastra-stand-in.so"])]:  # fmt: skip
            given = [f"--plans={plans}"] if "cuda" in bundle_targets else []
            subprocess.run([f"{tools}/astra-compile", model, "-o", bundle, "--quiet", f"--target={bundle_targets}", *given], check=True)
            out = f"{folder}/c.npy"
            done = subprocess.run([f"{tools}/astra-run", bundle, *made, f"--output=c={out}", *options], capture_output=True, text=True, env={**os.environ, "ASTRA_STAND_IN_BUNDLE": bundle})  # fmt: skip
            assert done.returncode == 0, (options, done.stderr)
            results.append(pathlib.Path(out).read_bytes())
        described = json.loads(subprocess.run([f"{tools}/astra-inspect", bundle, "--json"], capture_output=True, text=True, check=True).stdout)
    shared = [code["gpu"]["shared"] for code in described["manifest"]["kernels"][0]["code"]]
    assert min(shared) > 49152, shared
    assert results[0] == results[1] == results[2], [len(x) for x in results]


def one_bundle_for_two_kinds_of_code(tools):
    """sm_90 and sm_90a in one bundle: the one by mma.sync, the other by warp groups; a device of 9.0 takes the latter. One result."""
    with tempfile.TemporaryDirectory() as folder:
        model, bundle = f"{folder}/product.uop", f"{folder}/product.astra"
        pathlib.Path(model).write_text(UNIT_PRODUCT.replace("4096", "96") % {"unit": "hopper16", "type": "bf16"})
        bits = numpy.random.default_rng(5).integers(0x3E00, 0x4100, (2, 96, 96)).astype(numpy.uint16)
        made = []
        for name, x in zip("ab", bits):
            numpy.save(f"{folder}/{name}.npy", x)
            made.append(f"--input={name}={folder}/{name}.npy")
        targets = "cpu:x86-64-v3,cuda:sm_90,cuda:sm_90a,emu:cuda:sm_90,emu:cuda:sm_90a"
        subprocess.run([f"{tools}/astra-compile", model, "-o", bundle, "--quiet", f"--target={targets}"], check=True)
        results = []
        for options in ([], ["--emulate=cuda:sm_90"], ["--emulate=cuda:sm_90a"], ["--device=cuda:0", f"--driver={tools.parent}/lib/libastra-stand-in.so"]):
            done = subprocess.run([f"{tools}/astra-run", bundle, *made, f"--output=c={folder}/c.npy", "--repeat=2", *options], capture_output=True, text=True, env={**os.environ, "ASTRA_STAND_IN_BUNDLE": bundle})  # fmt: skip
            assert done.returncode == 0, (options, done.stderr)
            results.append(pathlib.Path(f"{folder}/c.npy").read_bytes())
            assert "--device=cuda:0" not in options or done.stdout.startswith("cuda:sm_90a, "), done.stdout
        described = json.loads(subprocess.run([f"{tools}/astra-inspect", bundle, "--json"], capture_output=True, text=True, check=True).stdout)
    names = [t["name"] for t in described["manifest"]["targets"]]
    (kernel,) = [k for k in described["manifest"]["kernels"] if "contract" in k["name"]]
    threads = {n: c["gpu"]["threads"] for n, c in zip(names, kernel["code"]) if n.startswith("cuda")}
    shared = {n: c["gpu"]["shared"] for n, c in zip(names, kernel["code"]) if n.startswith("cuda")}
    assert threads["cuda:sm_90a"] == 256 and min(shared.values()) > 0, (threads, shared)  # a group that brings operands; tiles of both
    assert len(set(results)) == 1, [len(x) for x in results]


def main():
    tools = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/bin").resolve()
    tests = [reads_sass, finds_loops_of_sass, counts_a_mix_of_sass, reads_amd, knows_widths, counts_occupancy_as_the_compiler_does]
    tests = [(t.__name__, t) for t in tests] + [("refuses", lambda: refuses(tools))]
    here = subprocess.run(["sh", "-c", "command -v ptxas || ls /usr/local/cuda/bin/ptxas"], capture_output=True).returncode == 0
    disassembler = list(ROOT.glob("build/venv/lib/python*/site-packages/nvidia/*/bin/nvdisasm"))
    gates = [(t, lambda t=t: gate(tools, t)) for t in GATES] + [(" ".join(row), lambda row=row: unit_gate(tools, *row)) for row in UNIT_GATES]
    for target, test in gates:
        if target.startswith("cuda") and not (here and disassembler):
            print(f"skipped: the gate of {target}: there is no {'nvdisasm' if here else 'ptxas'} here")
        else:
            tests.append((f"gate {target}", test))
    for number, (target, *ring) in enumerate(RINGS):
        if here and disassembler:
            tests.append((f"ring {number} {target}", lambda target=target, ring=ring: ring_gate(tools, target, *ring)))
    for name, target, *figures in ROW_GATES:
        if target.startswith("hip") or (here and disassembler):
            tests.append((f"gate {name} {target}", lambda name=name, target=target, figures=figures: rows_gate(tools, target, ROWS[name], *figures)))
    for target in ("cuda:sm_80", "cuda:sm_90", "hip:gfx942"):
        if target.startswith("hip") or (here and disassembler):
            tests.append((f"attention {target}", lambda target=target: attention_gate(tools, target)))
    if here:
        tests.append(("one_bundle_for_two_kinds_of_code", lambda: one_bundle_for_two_kinds_of_code(tools)))
        tests.append(("launches_what_takes_much_shared_memory", lambda: launches_what_takes_much_shared_memory(tools)))
    failed = 0
    for name, test in tests:
        try:
            test()
        except (AssertionError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"FAIL {name}: {type(error).__name__} {error}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
