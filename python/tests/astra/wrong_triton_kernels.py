"""Kernels of Triton's that are wrong, or that are not taken, each with the sentence that refuses it and what stands at the column that it names.

The line that the sentence names ends in "# here". All are launched with four programs on x (float32, 1000 elements), out (float32, 1000), counts (int32, 8),
index (int32, 1000), pointers (int64, 4).
"""

import astra.kernel.triton as triton
import astra.kernel.triton.language as tl

WRONG = []


def wrong(sentence, at="tl."):
    """A row of the table."""

    def row(f):
        WRONG.append((triton.jit(f), sentence, at))
        return f

    return row


@triton.jit
def at_of(BLOCK: tl.constexpr):
    return tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)


# ---- outside


@wrong("program (3,): the load from 'x' is outside: element 1023 of 1000; give a mask if that is meant")
def unmasked_load(x, out, counts, index, pointers):
    at = at_of(256)
    tl.store(out + at, tl.load(x + at), mask=at < 1000)  # here


@wrong("program (3,): the store into 'out' is outside: element 1023 of 1000; give a mask if that is meant")
def unmasked_store(x, out, counts, index, pointers):
    at = at_of(256)
    t = tl.load(x + at, mask=at < 1000)
    tl.store(out + at, t)  # here


@wrong("program (3,): the load from 'x' is outside: element 1000 of 1000; give a mask if that is meant")
def a_mask_of_another_size(x, out, counts, index, pointers):
    at = at_of(256)
    t = tl.load(x + at, mask=at < 1001)  # here
    tl.store(out + at, t, mask=at < 1000)


@wrong("program (0,): the load from 'x' is outside: element -1 of 1000; give a mask if that is meant")
def before_the_first(x, out, counts, index, pointers):
    at = at_of(250)
    tl.store(out + at, tl.load(x + at - 1))  # here


@wrong("program (0,): the load from 'x' is outside: element -3 of 1000; give a mask if that is meant")
def a_mask_of_one_side(x, out, counts, index, pointers):
    at = at_of(256) - 3
    tl.store(out + at, tl.load(x + at, mask=at < 1000), mask=(at >= 0) & (at < 1000))  # here


@wrong("program (0,) where k = 200: the load from 'x' is outside: element 1000 of 1000; give a mask if that is meant")
def one_step_too_many(x, out, counts, index, pointers):
    total = tl.zeros([5], dtype=tl.float32)
    for k in range(201):
        total += tl.load(x + k * 5 + tl.arange(0, 5))  # here
    tl.store(out + tl.program_id(0) * 5 + tl.arange(0, 5), total)


@wrong("program (0,) where a value that was read = -2147483648: the load from 'x' is outside: element -2147483648 of 1000; give a mask if that is meant")
def an_index_that_is_read(x, out, counts, index, pointers):
    at = at_of(250)
    tl.store(out + at, tl.load(x + tl.load(index + at)))  # here


@wrong("program (0,): the load from 'x' is outside: element 1023 of 1000; give a mask if that is meant")
def a_block_without_a_check(x, out, counts, index, pointers):
    block = tl.make_block_ptr(x, (30, 30), (33, 1), (16, 0), (16, 32), (1, 0))
    tl.store(out + tl.program_id(0) * 16 + tl.arange(0, 16), tl.sum(tl.load(block), axis=1))  # here


# ---- races and order


@wrong("program (0,) and program (1,) both write element (125) of 'out': the store into it is a race")
def programs_that_meet(x, out, counts, index, pointers):
    at = tl.program_id(0) * 125 + tl.arange(0, 250)
    tl.store(out + at, tl.load(x + at))  # here


@wrong("program (0,) and program (1,) both write element (7) of 'out': the store into it is a race")
def programs_that_write_one_element(x, out, counts, index, pointers):
    tl.store(out + 7, tl.load(x + tl.program_id(0)))  # here


@wrong("two elements of a tile of program (0,) both write element (0) of 'out': the scatter into it is a race")
def elements_that_meet(x, out, counts, index, pointers):
    at = tl.arange(0, 256)
    tl.store(out + tl.program_id(0) * 64 + at // 2, tl.load(x + at))  # here


@wrong("the scatter into 'out' is not shown to write each element once: let each index be c * program_id + ... with c not below the extent of the tile, or use "
       "mode='add', 'max' or 'min'")  # fmt: skip
def places_that_data_decide(x, out, counts, index, pointers):
    at = at_of(250)
    i = tl.load(index + at)
    tl.store(out + i, tl.load(x + at), mask=(i >= 0) & (i < 1000))  # here


@wrong("'out' is loaded in line {line} and stored into, and it is not shown that a program loads only what it stores itself, afterwards: other programs may come "
       "before or behind; give the kernel an argument more", "")  # fmt: skip
def neighbours_that_are_written(x, out, counts, index, pointers):
    at = at_of(250)
    left = tl.load(out + at - 1, mask=at > 0)  # here
    tl.store(out + at, left + 1.0)


@wrong("'out' is loaded in line {line} and stored into, and it is not shown that a program loads only what it stores itself, afterwards: other programs may come "
       "before or behind; give the kernel an argument more", "")  # fmt: skip
def a_load_behind_the_store(x, out, counts, index, pointers):
    at = at_of(250)
    tl.store(out + at, tl.load(x + at))
    tl.store(counts + tl.program_id(0), tl.load(out + at).sum(axis=0).to(tl.int32))  # here


@wrong("'out' is stored into twice: a kernel has one store into each argument, or several (in a loop too) whose blocks follow each other along one axis")
def two_stores(x, out, counts, index, pointers):
    at = at_of(125)
    tl.store(out + at, tl.load(x + at))
    tl.store(out + at + 500, tl.load(x + at))  # here


@wrong("tl.atomic_add into 'out', which is of float32: atomics are of integers, whose result no order changes; give each program a place of its own, and add them up "
       "in a second kernel")  # fmt: skip
def a_float_atomic(x, out, counts, index, pointers):
    tl.atomic_add(out, 1.0)  # here


@wrong("tl.atomic_cas: locks make a result depend on the order of programs; give each program a place of its own, and add them up in a second kernel")
def a_lock(x, out, counts, index, pointers):
    while tl.atomic_cas(counts, 0, 1) == 1:  # here
        pass


@wrong("tl.atomic_xchg: locks make a result depend on the order of programs; give each program a place of its own, and add them up in a second kernel")
def a_lock_that_opens(x, out, counts, index, pointers):
    tl.atomic_xchg(counts, 0)  # here


@wrong("tl.atomic_max into 'counts', which has values: give it as astra.spec(shape, dtype), which begins as 0")
def a_maximum_of_what_was_there(x, out, counts, index, pointers):
    tl.atomic_max(counts + tl.arange(0, 8), tl.arange(0, 8))  # here


@wrong("tl.atomic_add beside a loop over range(program_id, n, num_programs), whose steps are programs of their own: give it a kernel of its own")
def a_count_of_persistent_programs(x, out, counts, index, pointers):
    tl.atomic_add(counts, 1)  # here
    for i in range(tl.program_id(0), 20, tl.num_programs(0)):
        at = i * 50 + tl.arange(0, 50)
        tl.store(out + at, tl.load(x + at))


@wrong("'total' is not known here: the steps of a loop over range(program_id, n, num_programs) are programs of their own, which hand nothing on", "total")
def a_sum_of_a_persistent_program(x, out, counts, index, pointers):
    total = tl.zeros([50], dtype=tl.float32)
    for i in range(tl.program_id(0), 20, tl.num_programs(0)):
        total += tl.load(x + i * 50 + tl.arange(0, 50))  # here
    tl.store(out + tl.program_id(0) * 50 + tl.arange(0, 50), total)


@wrong("the old value of tl.atomic_add depends on the order of programs: nothing can be done with it", "old")
def the_old_value(x, out, counts, index, pointers):
    old = tl.atomic_add(counts, 1)
    tl.store(out + old, 1.0)  # here


# ---- pointers


@wrong("an integer as a pointer: a kernel has pointers to its arguments alone; pass a tuple of tensors in place of their addresses")
def an_address(x, out, counts, index, pointers):
    p = tl.load(pointers + tl.program_id(0)).to(tl.pointer_type(tl.float32))  # here
    tl.store(out, tl.load(p))


@wrong("tl.load takes a pointer, which is a tensor among the kernel's arguments and offsets, not int32[250]")
def a_load_of_an_offset(x, out, counts, index, pointers):
    tl.store(out + at_of(250), tl.load(at_of(250)))  # here


@wrong("a pointer into 'x' and a pointer into 'out': a pointer is moved by integers, with + and -", "x + out")
def a_sum_of_pointers(x, out, counts, index, pointers):
    tl.store(x + out, 0.0)  # here


@wrong("the difference of two pointers: keep their offsets in names", "out - x")
def a_difference_of_pointers(x, out, counts, index, pointers):
    tl.store(out + (out - x), 0.0)  # here


@wrong("a pointer into 'x' and float32[250]: a pointer is moved by integers, with + and -", "x + ")
def an_offset_of_floats(x, out, counts, index, pointers):
    tl.store(out + at_of(250), tl.load(x + tl.zeros([250])))  # here


@wrong("a pointer into 'x' and 2.0: a pointer is moved by integers, with + and -", "x * 2")
def a_pointer_as_a_value(x, out, counts, index, pointers):
    tl.store(out + at_of(250), x * 2.0)  # here


@wrong("`other` without a mask")
def other_without_a_mask(x, out, counts, index, pointers):
    tl.store(out + at_of(250), tl.load(x + at_of(250), other=0.0))  # here


@wrong("a load through pointers of shape (250,) with a mask of shape (250, 1)")
def a_mask_of_another_shape(x, out, counts, index, pointers):
    at = at_of(250)
    tl.store(out + at, tl.load(x + at, mask=(at < 1000)[:, None]))  # here


@wrong("a store of tiles of shapes (250,) and (125,), which do not broadcast")
def a_value_of_another_shape(x, out, counts, index, pointers):
    tl.store(out + at_of(125), tl.load(x + at_of(250)))  # here


# ---- loops and returns


@wrong("'p' is not known here: the steps of a loop do not all add the same to it", "p + ")
def a_pointer_that_runs_away(x, out, counts, index, pointers):
    p = x
    total = tl.zeros([8], dtype=tl.float32)
    for k in range(8):
        total += tl.load(p + tl.arange(0, 8))  # here
        p += k
    tl.store(out + tl.program_id(0) * 8 + tl.arange(0, 8), total)


@wrong("a quotient of indices that is not shown to be of numbers that are not negative: Triton rounds it to zero", "(tl.program_id(0) - 2) // 2")
def a_quotient_below_zero(x, out, counts, index, pointers):
    i = (tl.program_id(0) - 2) // 2  # here
    tl.store(out + tl.program_id(0), i * 1.0)


@wrong("range takes integers known from sizes, program ids and counters, not int32[]", "n")
def a_length_that_is_read(x, out, counts, index, pointers):
    n = tl.load(counts)
    total = 0.0
    for k in range(n):  # here
        total += 1.0
    tl.store(out + tl.program_id(0), total)


@wrong("a `return` in an `if` on data: a kernel stores with a mask, a helper returns in its last statement", "if ")
def a_return_on_data(x, out, counts, index, pointers):
    if tl.load(x) > 0.0:  # here
        return
    tl.store(out + tl.program_id(0), 1.0)


# ---- the language


@wrong("astra.kernel.triton.language has no 'exq'")
def an_unknown_name(x, out, counts, index, pointers):
    tl.store(out + at_of(250), tl.exq(tl.load(x + at_of(250))))  # here


@wrong("tl.dot_scaled: it is not there yet")
def a_function_that_is_not_there(x, out, counts, index, pointers):
    tl.dot_scaled(x, x)  # here


@wrong("tl.inline_asm_elementwise: instructions of one machine are not part of the adapter")
def assembly(x, out, counts, index, pointers):
    tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)  # here


@wrong("the assertion does not hold: too wide")
def a_static_assertion(x, out, counts, index, pointers):
    tl.static_assert(4 < 3, "too wide")  # here


@wrong("tl.arange takes two numbers that are known while the kernel is compiled, the second one greater")
def an_empty_range(x, out, counts, index, pointers):
    tl.store(out + tl.arange(4, 4), 0.0)  # here


@wrong("tl.load(pointer, mask=None, other=None, boundary_check=(), padding_option='', cache_modifier='', eviction_policy='', volatile=False): got an unexpected keyword "
       "argument 'fill'")  # fmt: skip
def an_unknown_argument(x, out, counts, index, pointers):
    tl.store(out, tl.load(x, fill=0.0))  # here
