"""Figures of GPU kernels: what a loop is made of, what its issue slots allow, how full a unit is.

Takes:    instructions (gpu_listing.py); the rows of lib/Codegen/GPU/GpuTarget.cpp.
Gives:    an instruction's kind; the mix of a loop; the bound of its issue slots; occupancy and what limits it.
Keeps:    every instruction counted once. What is guarded counts as executed.
Does not: model latencies, caches or the memory's speed: a bound says what cannot be passed, not what will be reached.
"""

import dataclasses
import pathlib
import re

TARGETS = pathlib.Path(__file__).resolve().parent.parent / "lib/Codegen/GPU/GpuTarget.cpp"
FIELDS = ("warp", "threads", "shared", "parts", "part_warps", "lane_registers", "registers_at_once", "unit_shared", "block_shared")

# Kinds of instructions: the first row whose expression matches the beginning of an opcode.
NVIDIA = (
    ("matrix", r"(HGMMA|HMMA|IMMA|QGMMA|QMMA|IGMMA|BGMMA|DMMA|OMMA|UTC\w*MMA)\b"),
    ("fma", r"(FFMA2?|DFMA)\b|HFMA2(?!\.MMA)(\.\w+)*$"),
    ("shared load", r"(LDS|LDSM|LDTM)\b"),
    ("shared store", r"(STS|STSM)\b"),
    ("async copy", r"(LDGSTS|UTMALDG|UTMASTG|UBLKCP)\b"),
    ("global load", r"(LDG|LD)\b"),
    ("global store", r"(STG|ST)\b"),
    ("local", r"(LDL|STL)\b"),
    ("barrier", r"(BAR|SYNCS|DEPBAR|LDGDEPBAR|MEMBAR|FENCE|WARPSYNC|UCGABAR\w*|WARPGROUP)\b"),
    ("exchange", r"(SHFL|VOTE|MATCH|REDUX)\b"),
    ("float", r"(F(ADD2?|MUL2?|MNMX3?|SEL|SETP?|CHK|SWZADD)|D(ADD|MUL|SETP|MNMX)|H(ADD2|MUL2|SET2|SETP2|MNMX2)|MUFU|[FI]2[FI]P?|I2FP|F2FP|FRND)\b"),
    ("branch", r"(BRA|BRX|JMP|CALL|RET|EXIT|BSSY|BSYNC|BREAK|YIELD|NANOSLEEP)\b"),
    ("move", r"(MOV|UMOV|CS2R|S2U?R|R2UR|PRMT|SEL|USEL|LDC|ULDC|LDCU|IMAD\.MOV|HFMA2\.MMA|PLOP3|P2R|R2P)\b"),
    ("integer", r"(U?I(MAD|ADD3?|MUL|SETP|MNMX|ABS|SCADD)|V(IADD|IMNMX)3?|U?LEA|U?LOP3|U?SHF|U?SHL|U?SHR|U?SGXT|BMSK|FLO|POPC|BREV|LEPC)\w*\b|UPLOP3\b"),
)
AMD = (
    ("matrix", r"v_s?mfmac?_|v_wmma_"),
    ("fma", r"v_(pk_)?(fma|fmac|fmaak|fmamk|mad|mac)_f|v_dual_fma"),
    ("shared load", r"ds_(read|load)"),
    ("shared store", r"ds_(write|store)"),
    ("exchange", r"ds_(bpermute|permute|swizzle)|v_(readlane|readfirstlane|writelane|permlane)"),
    ("local", r"(scratch|buffer)_(load|store)"),
    ("async copy", r"global_load_lds"),
    ("global load", r"(global|flat)_load"),
    ("global store", r"(global|flat)_store"),
    ("barrier", r"s_(barrier|waitcnt|wait_|sleep)"),
    ("branch", r"s_(c?branch|endpgm|setpc|nop|delay|clause)"),
    ("float", r"v_(pk_|dual_)?(add|mul|sub|subrev|max|min|rcp|rsq|sqrt|exp|log|div_\w+|cmp\w*|cvt|trunc|ceil|floor|rndne|fract|ldexp|cndmask)\w*_(f16|f32|f64|bf16)"),
    ("move", r"[vs]_(mov|cndmask|cselect|accvgpr)|s_load|v_dual_mov"),
    ("integer", r"[vs]_"),
)
KINDS = tuple(dict.fromkeys([name for name, _ in NVIDIA + AMD] + ["other"]))
TABLES = {"cuda": [(n, re.compile(e)) for n, e in NVIDIA], "hip": [(n, re.compile(e)) for n, e in AMD]}

# Cycles for which a warp's f32 fused multiply-add keeps its part of a unit: 16 lanes of f32 a part on sm_75 and sm_80, 32 on the others
# (CUDA C++ Programming Guide, "Arithmetic Instructions": 64 or 128 results a cycle and multiprocessor of four parts).
FMA_CYCLES = {"sm_75": 2, "sm_80": 2}


def kind_of(flavour, opcode):
    for name, expression in TABLES[flavour]:
        if expression.match(opcode):
            return name
    return "other"


def width_of(flavour, opcode):
    """Bytes that a thread loads or stores at once."""
    if flavour == "cuda":
        match = re.search(r"\.(?:[US]?(8|16)|(32|64|128))(?:\.|$)", opcode)
        return int(match[1] or match[2]) // 8 if match else 4
    if match := re.search(r"(?:dword|b32_?)x(\d)|_(?:[bui]|sbyte|ubyte|short|ushort)(\d+)?(?:_|$)", opcode):
        if match[1]:
            return 4 * int(match[1])
        if match[2]:
            return int(match[2]) // 8
    for word, bytes_ in (("byte", 1), ("short", 2), ("_b8", 1), ("_u8", 1), ("_i8", 1)):
        if word in opcode:
            return bytes_
    return 4


def fmas_of(flavour, opcode):
    """Fused multiply-adds of a lane."""
    return 2 if re.match(r"FFMA2|HFMA2|v_pk_|v_dual_fma\w+ ?.*v_dual_fma", opcode) else 1


@dataclasses.dataclass
class Mix:
    """What a loop is made of, a turn of it."""

    instructions: int
    kinds: dict  # kind: number
    widths: dict  # "shared load", ...: {bytes: number}
    fma_share: float  # of all instructions
    matrix_share: float
    issue_bound: float  # the greatest part of the peak of fused multiply-adds that its issue slots allow
    stalls: int  # cycles that one warp takes alone, when nothing that it waits for is late; 0: the code does not say


def mix_of(target, code):
    flavour, chip = target.split(":")
    kinds, widths = dict.fromkeys(KINDS, 0), {}
    for i in code:
        kind = kind_of(flavour, i.opcode)
        kinds[kind] += 1
        if "load" in kind or "store" in kind or kind == "async copy":
            of_kind = widths.setdefault(kind, {})
            width = width_of(flavour, i.opcode)
            of_kind[width] = of_kind.get(width, 0) + 1
    total = len(code)
    fma, matrix = kinds["fma"], kinds["matrix"]
    if flavour == "cuda":
        busy = fma * FMA_CYCLES.get(chip, 1)
        slots = max(busy, total)
    else:  # a wave's vector instructions share one port; scalar ones, memory and branches have others
        busy = fma
        slots = sum(1 for i in code if i.opcode.startswith("v_"))
    stalls = sum(max(i.stall, 1) for i in code) if any(i.stall for i in code) else 0
    return Mix(total, {k: n for k, n in kinds.items() if n}, {k: dict(sorted(w.items())) for k, w in sorted(widths.items())},
               fma / total if total else 0.0, matrix / total if total else 0.0, busy / slots if slots else 0.0, stalls)  # fmt: skip


def targets():
    """{name: its limits}, of the table that the compiler plans with."""
    rows = {}
    for name, rest in re.findall(r'\{"((?:cuda|hip):\w+)", GpuFlavour::\w+, "\w+", "[^"]*", ([^}]*)\}', TARGETS.read_text()):
        numbers = [eval_product(part) for part in re.sub(r",\s*true", "", rest).split(",")]
        rows[name] = dict(zip(FIELDS, numbers, strict=True))
    return rows


def eval_product(text):
    value = 1
    for factor in text.replace("KiB", "1024").split("*"):
        value *= int(factor)
    return value


def occupancy(limits, threads, registers, shared):
    """Of the warps that a unit holds how many of a hundred it has when it is full of such blocks; what limits it."""
    warps, most = -(-threads // limits["warp"]), limits["parts"] * limits["part_warps"]
    step = limits["registers_at_once"]
    each = -(-max(registers, 1) // step) * step
    by_warps, by_registers = most // warps, limits["parts"] * min(limits["part_warps"], limits["lane_registers"] // each) // warps
    blocks, why = by_registers, "registers" if by_registers < by_warps else "warps"
    taken = shared + limits["block_shared"]
    if taken and limits["unit_shared"] // taken < blocks:
        blocks, why = limits["unit_shared"] // taken, "shared memory"
    return blocks * warps * 100 // most, why
