"""Listings of GPU code as instructions, and the loops that are in them.

Takes:    the text of nvdisasm -c -hex (SASS), or of llvm-objdump -d (AMD's code).
Gives:    the kernels of a listing with their instructions; the loops of a kernel, each with the instructions that belong to it
          and the loop around it; the main loop: the one that lies deepest, of these the one with most instructions.
Keeps:    the order of the listing. A line that is neither an instruction nor a label is passed over.
Does not: know what an instruction is for (gpu_figures.py), nor how often a loop turns, which the code does not say.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    opcode: str  # with its suffixes: "LDS.128", "v_fma_f32"
    operands: str
    target: int | None = None  # where a branch goes
    falls: bool = True  # the next instruction may follow
    stall: int = 0  # cycles until the warp may issue its next one, where the code says so


@dataclasses.dataclass(frozen=True)
class Loop:
    head: int  # the address that it begins at
    body: tuple  # its instructions, in their order; those of loops inside too
    depth: int  # 1: in no other loop

    def own(self, loops):
        """Its instructions that are in no loop inside of it."""
        inside = {i.address for other in loops if other.depth > self.depth for i in other.body}
        return [i for i in self.body if i.address not in inside]


SASS_KERNEL = re.compile(r"\.section\s+\.text\.([\w.$]+)")
SASS_LABEL = re.compile(r"^\s*(\.L_\w+):")
SASS_CODE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P[0-9T]+\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;\s*(?:\}\s*)?(?:/\* 0x([0-9a-f]{16}) \*/)?")
SASS_SECOND = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")
AMD_KERNEL = re.compile(r"^[0-9a-f]+ <([\w.$]+)>:")
AMD_CODE = re.compile(r"^\s+([a-z]\w*)\s*(.*?)\s*//\s*([0-9A-Fa-f]{6,}):(?:\s+[0-9A-Fa-f]{8})+(?:\s+<[\w.$]+(?:\+0x([0-9a-f]+))?>)?")

# Of the second word of an instruction of sm_70 and later: four bits from bit 41 on.
STALL_SHIFT, STALL_BITS = 41, 15


def parse_sass(text):
    """{kernel: instructions} of nvdisasm's listing."""
    kernels, labels, name = {}, {}, None
    waiting = []  # labels that stand before the next instruction
    for line in text.splitlines():
        if match := SASS_KERNEL.search(line):
            name, waiting = match[1], []
            kernels[name], labels[name] = [], {}
        elif name is None:
            continue
        elif match := SASS_LABEL.match(line):
            waiting.append(match[1])
        elif match := SASS_CODE.search(line):
            address, guard, opcode, operands = int(match[1], 16), (match[2] or "").strip(), match[3], match[4]
            labels[name].update((label, address) for label in waiting)
            waiting = []
            kernels[name].append([address, guard, opcode, operands, 0])
        elif (match := SASS_SECOND.match(line)) and kernels[name]:
            kernels[name][-1][4] = int(match[1], 16) >> STALL_SHIFT & STALL_BITS
    return {name: [sass_instruction(i, labels[name]) for i in code] for name, code in kernels.items()}


def sass_instruction(parts, labels):
    address, guard, opcode, operands, stall = parts
    base, target = opcode.split(".")[0], None
    if base in ("BRA", "JMP", "BRX", "CALL"):
        label = re.search(r"`\((\.L_\w+)\)|\b0x([0-9a-f]+)", operands)
        target = None if not label else labels.get(label[1]) if label[1] else int(label[2], 16)
    always = guard in ("", "@PT", "@UPT") and not re.match(r"!?U?P\d", operands)  # BRA may name its predicate itself
    return Instruction(address, opcode, operands, target, not (always and base in ("BRA", "JMP", "BRX", "EXIT", "RET")), stall)


def parse_amd(text):
    """{kernel: instructions} of llvm-objdump's listing."""
    kernels, name, start = {}, None, None
    for line in text.splitlines():
        if match := AMD_KERNEL.match(line):
            name, start = match[1], int(line.split()[0], 16)
            kernels[name] = []
        elif name is not None and (match := AMD_CODE.match(line)):
            opcode, branch = match[1], match[1].startswith(("s_branch", "s_cbranch"))
            target = start + int(match[4] or "0", 16) if branch and "<" in line else None
            kernels[name].append(Instruction(int(match[3], 16), opcode, match[2], target,
                                             opcode not in ("s_branch", "s_endpgm", "s_setpc_b64")))  # fmt: skip
    return kernels


def blocks_of(code):
    """Basic blocks: lists of instructions; for each the numbers of those that may follow."""
    starts = {code[0].address} if code else set()
    for here, following in zip(code, code[1:] + [None]):
        if here.target is not None:
            starts.add(here.target)
        if following and (here.target is not None or not here.falls):
            starts.add(following.address)
    blocks, number = [], {}
    for i in code:
        if i.address in starts or not blocks:
            number[i.address] = len(blocks)
            blocks.append([])
        blocks[-1].append(i)
    follow = []
    for n, block in enumerate(blocks):
        last, to = block[-1], []
        if last.falls and n + 1 < len(blocks):
            to.append(n + 1)
        if last.target in number and number[last.target] not in to:
            to.append(number[last.target])
        follow.append(to)
    return blocks, follow


def dominators(follow):
    """Of each block that can be reached the blocks that every way to it goes through, as a set of their numbers."""
    order, state = [], {}
    stack = [(0, iter(follow[0]))] if follow else []
    state[0] = True
    while stack:
        n, rest = stack[-1]
        for to in rest:
            if to not in state:
                state[to] = True
                stack.append((to, iter(follow[to])))
                break
        else:
            order.append(n)
            stack.pop()
    order.reverse()
    before = {n: [] for n in order}
    for n in order:
        for to in follow[n]:
            before[to].append(n)
    dominated = {n: None for n in order}
    changed = True
    while changed:
        changed = False
        for n in order:
            known = [dominated[p] for p in before[n] if dominated[p] is not None]
            new = {n} | (set.intersection(*known) if known else set()) if n != order[0] else {n}
            if new != dominated[n]:
                dominated[n], changed = new, True
    return dominated, before


def loops_of(code):
    """The natural loops of a kernel, by where they begin: a branch back to a block that every way to it goes through."""
    blocks, follow = blocks_of(code)
    if not blocks:
        return []
    dominated, before = dominators(follow)
    bodies = {}
    for n, known in dominated.items():
        for head in follow[n]:
            if head not in known:
                continue
            body, stack = bodies.setdefault(head, {head}), [n]
            while stack:
                m = stack.pop()
                if m not in body:
                    body.add(m)
                    stack.extend(before[m])
    # Behind a kernel's end there is a loop of one instruction, which nobody reaches; one that is an empty wait is none either.
    bodies = {head: body for head, body in bodies.items() if sum(len(blocks[n]) for n in body) > 1}
    loops = []
    for head, body in bodies.items():
        depth = 1 + sum(1 for other, outer in bodies.items() if other != head and body < outer)
        loops.append(Loop(blocks[head][0].address, tuple(i for n in sorted(body) for i in blocks[n]), depth))
    return sorted(loops, key=lambda loop: loop.head)


def only_waits(loop):
    """Whether its turns ask a barrier for a phase and do nothing else."""
    return len(loop.body) <= 8 and any(i.opcode.startswith("SYNCS.PHASECHK") for i in loop.body)


def main_loop(loops):
    """The loop that lies deepest, of these the one with most instructions; None where there is none. What only waits is none."""
    return max((loop for loop in loops if not only_waits(loop)), key=lambda loop: (loop.depth, len(loop.body), -loop.head), default=None)
