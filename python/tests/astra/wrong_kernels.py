"""Kernels that are wrong, each with the sentence that refuses it, what stands at the column that it names, and what it is called with.

The line that the sentence names ends in "# here"; a program without one is refused at its call, where no line of it is named.
"""

import numpy as np

import astra

kernel = astra.kernel
WRONG = []
X = np.arange(8, dtype=np.float32)
OUTSIDE = astra.tensor([1.0, 2.0])
ARRAY = np.ones(2)


def wrong(sentence, at="", **given):
    """A row of the table."""

    def row(f):
        WRONG.append((f, sentence, at, given))
        return f

    return row


@astra.kernel.function
def twice(t):
    return t + t


@astra.kernel.function
def endless(t):
    return endless(t) + 1.0


@astra.kernel.function
def early(t):
    if True:
        return t
    return t + t


@astra.kernel
def another(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


# ---- names and calls


@wrong("the name 'tile' is not known here; is 'tiles' meant?", "tile")
def unknown_name(x, out):
    tiles = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), tile)  # noqa: F821  # here


@wrong("astra.kernel has no 'laod'; is 'load' meant?", "kernel.laod")
def unknown_primitive(x, out):
    kernel.store(out, (0,), kernel.laod(x, (0,), (8,)))  # here


@wrong("load(view, at, shape, *, fill=None): missing a required argument: 'shape'", "kernel.load")
def too_few_arguments(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,)))  # here


@wrong("exp(x): too many positional arguments", "kernel.exp")
def too_many_arguments(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), kernel.exp(t, t))  # here


@wrong("load(view, at, shape, *, fill=None): got an unexpected keyword argument 'mask'", "kernel.load")
def unknown_keyword(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,), mask=True))  # here


@wrong("twice(t): too many positional arguments", "twice")
def wrong_arity_of_a_helper(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), twice(t, t))  # here


@wrong("'endless' calls itself, which a kernel cannot: recursion -> endless -> endless", "endless")
def recursion(x, out):
    kernel.store(out, (0,), endless(kernel.load(x, (0,), (8,))))


@wrong("a helper returns in its last statement alone", "return")
def early_return(x, out):
    kernel.store(out, (0,), early(kernel.load(x, (0,), (8,))))


@wrong("'another' is a kernel: a kernel calls helpers, which are under @astra.kernel.function", "another")
def kernel_in_a_kernel(x, out):
    another(x, out)  # here


@wrong("sum cannot be called in a kernel: it calls primitives of astra.kernel and helpers under @astra.kernel.function", "sum")
def function_of_python(x, out):
    kernel.store(out, (0,), sum(kernel.load(x, (0,), (8,))))  # here


@wrong("matmul cannot be called in a kernel: it calls primitives of astra.kernel and helpers under @astra.kernel.function", "astra.matmul")
def function_of_the_package(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), astra.matmul(t, t))  # here


# ---- closures


@wrong("'OUTSIDE' is a tensor outside of the kernel: pass it as an argument", "OUTSIDE")
def closure_over_a_tensor(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)) * OUTSIDE)  # here


@wrong("'ARRAY' is a tensor outside of the kernel: pass it as an argument", "ARRAY")
def closure_over_an_array(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)) * ARRAY)  # here


# ---- statements


@wrong("a kernel has no `return`: it stores its results into outputs; a helper returns in its last statement", "return")
def returns(x, out):
    return kernel.load(x, (0,), (8,))  # here


@wrong("`break` is not part of the kernel language: a `for` runs to its end, a `while` until its condition is false", "break")
def breaks(x, out):
    for i in range(8):
        break  # here


@wrong("`continue` is not part of the kernel language: use `if` or kernel.where", "continue")
def continues(x, out):
    for i in range(8):
        continue  # here


@wrong("`try` is not part of the kernel language: a kernel raises nothing", "try")
def tries(x, out):
    try:  # here
        pass
    finally:
        pass


@wrong("a kernel raises nothing; use `assert`, which the interpreter checks", "raise")
def raises(x, out):
    raise ValueError  # here


@wrong("`with` is not part of the kernel language", "with")
def with_statement(x, out):
    with x:  # here
        pass


@wrong("`import` stands outside of the kernel", "import")
def imports(x, out):
    import math  # noqa: F401  # here


@wrong("`del` is not part of the kernel language", "del")
def deletes(x, out):
    t = kernel.load(x, (0,), (8,))
    del t  # here


@wrong("a kernel changes nothing outside: `global` is not part of the language", "global")
def changes_a_global(x, out):
    global X  # here
    X = 1


@wrong("a function inside of a kernel is not supported: write a helper of its own, under @astra.kernel.function", "def")
def function_inside(x, out):
    def f():  # here
        pass


@wrong("a class inside of a kernel is not supported", "class")
def class_inside(x, out):
    class A:  # here
        pass


@wrong("`else` of a loop is not part of the kernel language", "pass")
def for_with_else(x, out):
    for i in range(8):
        pass
    else:
        pass  # here


@wrong("a `for` of a kernel goes over range(...) or kernel.static_for(...)", "(1, 2)")
def for_over_a_tuple(x, out):
    for i in (1, 2):  # here
        pass


@wrong("this expression does nothing: assign it, or store it", "x")
def expression_alone(x, out):
    x  # noqa: B018  # here


@wrong("the result of this call is not used: assign it, or store it", "kernel")
def result_not_used(x, out):
    kernel.load(x, (0,), (8,))  # here


# ---- expressions


@wrong("a `lambda` is not part of the kernel language: write a helper under @astra.kernel.function", "lambda")
def a_lambda(x, out):
    f = lambda t: t  # noqa: E731, F841  # here


@wrong("a list comprehension is not part of the kernel language: use kernel.static_for", "[")
def a_comprehension(x, out):
    t = [i for i in range(8)]  # noqa: F841  # here


@wrong("a list is not part of the kernel language: use a tuple", "[")
def a_list(x, out):
    kernel.store(out, [0], kernel.load(x, (0,), (8,)))  # here


@wrong("a dict is not part of the kernel language", "{")
def a_dict(x, out):
    t = {}  # noqa: F841  # here


@wrong("an f-string is not part of the kernel language: print(a, b) prints several values", 'f"')
def an_f_string(x, out):
    print(f"{x}")  # here


@wrong("`:=` is not part of the kernel language: use a statement", "t :=")
def a_walrus(x, out):
    kernel.store(out, (0,), (t := kernel.load(x, (0,), (8,))))  # noqa: F841  # here


@wrong("`a if c else b` is decided while the kernel is compiled; use kernel.where(c, a, b)", "t")
def a_conditional_of_data(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), t if kernel.any(t > 0.0) else -t)  # here


@wrong("`in` is not part of the kernel language", "1")
def membership(x, out):
    assert 1 in (1, 2)  # here


# ---- dtypes


@wrong("`+` of float32 and int32: both are of one dtype; cast one with kernel.cast", "kernel")
def two_dtypes(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)) + kernel.arange(8))  # here


@wrong("the number 0.5 beside a tile of int32: cast the tile, or write a number of its kind", "kernel.arange(8) * 0.5")
def a_fraction_beside_integers(x, out):
    kernel.store(out, (0,), kernel.arange(8) * 0.5)  # here


@wrong("`/` of integers (int32) would be a fraction: cast to a float, or use `//`", "kernel.arange(8) / 2")
def a_quotient_of_integers(x, out):
    kernel.store(out, (0,), kernel.arange(8) / 2)  # here


@wrong("the argument of exp is of floats, not of int32; cast it first: kernel.cast(x, astra.float32)", "kernel.exp")
def a_function_of_integers(x, out):
    kernel.store(out, (0,), kernel.exp(kernel.arange(8)))  # here


@wrong("a tile of int32 is stored into 'out', which is of float32: cast it with kernel.cast(x, out.dtype)", "kernel.store")
def a_store_of_another_dtype(x, out):
    kernel.store(out, (0,), kernel.arange(8))  # here


@wrong("dot of float32 and int32: both are of one dtype, or of int8 and uint8", "kernel.dot")
def a_dot_of_two_dtypes(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    b = kernel.reshape(kernel.arange(8), (2, 4))
    kernel.store(out, (0,), kernel.dot(a, b))  # here


@wrong("tril is an integer of program ids and sizes, not True", "kernel.dot")
def a_tril_that_is_a_bool(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, tril=True)  # noqa: F841  # here


@wrong("tril is within -1099511627776..1099511627776; this one may be 4611686018427387904", "kernel.dot")
def a_tril_beyond_all(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, tril=1 << 62)  # noqa: F841  # here


@wrong("tril is of program ids and sizes; the counter of a loop that is not unrolled is in it: kernel.static_for unrolls one", "kernel.dot")
def a_tril_by_a_counter(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.zeros((4, 4))
    for k in range(8):
        t = kernel.dot(a, a.T, t, tril=k)  # here
    kernel.store(out, (0,), kernel.reshape(t, (16,)))


@wrong("there is no matrix unit 'chain512'; there are hopper16, hopper8-tf32, hopper32-fp8, ampere8, ampere4-tf32, cdna3-8, cdna2, dpbf16-2, amx32", "kernel.dot")
def unknown_order(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, order="chain512")  # noqa: F841  # here
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


@wrong("matrix unit amx32 does not take operands of 'f16'", "kernel.dot")
def order_of_a_type_that_the_unit_has_not(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, order="amx32 f16")  # noqa: F841  # here
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


@wrong("matrix unit hopper32-fp8 has no type that f32 is rounded to: name one behind it, as in 'hopper32-fp8 f8e4m3fn'", "kernel.dot")
def order_without_a_type(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, order="hopper32-fp8")  # noqa: F841  # here
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


@wrong("order names a matrix unit, as in order='hopper16 bf16', not 3", "kernel.dot")
def order_that_is_a_number(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, order=3)  # noqa: F841  # here
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


@wrong("matrix unit hopper16 does not add products of i32", "kernel.dot")
def order_of_integers(x, out):
    a = kernel.reshape(kernel.cast(kernel.load(x, (0,), (8,)), astra.int32), (4, 2))
    t = kernel.dot(a, a.T, order="hopper16")  # noqa: F841  # here
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))


@wrong("the accumulator of this dot is float32[4, 4], not int32[4, 4]", "kernel.dot")
def a_wrong_accumulator(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a.T, kernel.zeros((4, 4), astra.int32))  # noqa: F841  # here


@wrong("atomic_add into 'out', which is of float32: atomics are of integers, whose result no order changes; kernel.scatter(..., mode='add') combines floats in the "
       "order of programs", "kernel.atomic_add")  # fmt: skip
def an_atomic_of_floats(x, out):
    kernel.atomic_add(out, (kernel.arange(8),), kernel.load(x, (0,), (8,)))  # here


@wrong("`&` is of integers, not of float32", "t & t")
def bits_of_floats(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), t & t)  # here


@wrong("the condition of where is of bools, not of float32", "kernel.where")
def a_condition_of_floats(x, out):
    t = kernel.load(x, (0,), (8,))
    kernel.store(out, (0,), kernel.where(t, t, t))  # here


@wrong("a bitcast of float32, 32 bits, to int64, 64 bits", "kernel.bitcast")
def a_bitcast_to_another_width(x, out):
    t = kernel.bitcast(kernel.load(x, (0,), (8,)), astra.int64)  # noqa: F841  # here


@wrong("float8_e4m3fn is a type of storage: cast the tile before `+`, as with kernel.cast(x, astra.float32)", "t + t")
def arithmetic_in_storage(x, out):
    t = kernel.cast(kernel.load(x, (0,), (8,)), astra.float8_e4m3fn)
    kernel.store(out, (0,), t + t)  # here


@wrong("the fill of a load from 'x' is a number of the kind of float32, not True", "kernel.load")
def a_fill_of_another_kind(x, out):
    kernel.store(out, (0,), kernel.load(x, (4,), (8,), fill=True))  # here


# ---- shapes


@wrong("`+` of tiles of shapes (8,) and (4,), which do not broadcast", "kernel.load")
def two_shapes(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)) + kernel.load(x, (0,), (4,)))  # here


@wrong("a tile of shape (2, 4) is stored into 'out', which has 1 axes", "kernel.store")
def a_store_of_another_rank(x, out):
    kernel.store(out, (0,), kernel.reshape(kernel.load(x, (0,), (8,)), (2, 4)))  # here


@wrong("the place of a load has 2 indices; 'x' has 1 axes", "kernel.load")
def a_place_of_another_rank(x, out):
    kernel.store(out, (0,), kernel.load(x, (0, 0), (8,)))  # here


@wrong("a load of shape (2, 4) from 'x', which has 1 axes: extents of 1 where one element is wanted", "kernel.load")
def a_load_of_another_rank(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (2, 4)))  # here


@wrong("the shape of a load is of numbers and of sizes that are 1 at least; one that programs, counters or values decide is in it", "kernel.load", grid=2)
def a_shape_that_is_not_constant(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (kernel.program_id(0) + 1,)), drop=True)  # here


@wrong("the shape of a load has an extent of 0; extents are 1 at least", "kernel.load")
def an_empty_tile(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (0,)))  # here


@wrong("the shape of a tile (8192, 8192) has 67108864 elements; 16777216 are the most of a tile", "kernel.zeros")
def a_tile_that_is_too_large(x, out):
    t = kernel.zeros((8192, 8192))  # noqa: F841  # here


@wrong("a tile of shape (8,) has 8 elements; (3, 3) has 9", "kernel.reshape")
def a_wrong_reshape(x, out):
    t = kernel.reshape(kernel.load(x, (0,), (8,)), (3, 3))  # noqa: F841  # here


@wrong("axes (0, 0) of a tile of 2 axes: each of 0 .. 1 once", "kernel.permute")
def a_wrong_permutation(x, out):
    t = kernel.permute(kernel.zeros((2, 4)), (0, 0))  # noqa: F841  # here


@wrong("broadcast of tiles of shapes (8,) and (2, 4), which do not broadcast", "kernel.broadcast")
def a_wrong_broadcast(x, out):
    t = kernel.broadcast(kernel.load(x, (0,), (8,)), (2, 4))  # noqa: F841  # here


@wrong("a tile of shape (2, 4) does not broadcast to (1, 4)", "kernel.broadcast")
def a_broadcast_that_loses_elements(x, out):
    t = kernel.broadcast(kernel.zeros((2, 4)), (1, 4))  # noqa: F841  # here


@wrong("axis 1 of a tile of 1 axes", "kernel.sum")
def a_wrong_axis(x, out):
    t = kernel.sum(kernel.load(x, (0,), (8,)), axis=1)  # noqa: F841  # here


@wrong("dot of tiles of shapes (4, 2) and (4, 2): the last extent of the first is the last but one of the second", "kernel.dot")
def a_dot_of_wrong_shapes(x, out):
    a = kernel.reshape(kernel.load(x, (0,), (8,)), (4, 2))
    t = kernel.dot(a, a)  # noqa: F841  # here


@wrong("the slice 6 .. 10 leaves a tile of shape (8,)", "kernel.slice")
def a_slice_outside(x, out):
    t = kernel.slice(kernel.load(x, (0,), (8,)), (6,), (4,))  # noqa: F841  # here


@wrong("axis 0 of a tile of shape (8,) in 3 equal parts", "kernel.split")
def a_split_in_unequal_parts(x, out):
    a, b, c = kernel.split(kernel.load(x, (0,), (8,)), 3)  # noqa: F841  # here


@wrong("a tuple of 2 cannot be taken apart into 3 names", "a, b, c")
def too_many_names(x, out):
    a, b, c = kernel.split(kernel.load(x, (0,), (8,)), 2)  # noqa: F841  # here


# ---- inputs and outputs


@wrong("'x' is an input: a kernel stores into outputs alone, arguments that are given as astra.spec(shape, dtype)", "kernel.store")
def a_store_into_an_input(x, out):
    kernel.store(x, (0,), kernel.load(x, (0,), (8,)))  # here


@wrong("'out' is an output: a kernel never reads what it writes; keep the value in a name, or make two kernels", "kernel.load")
def a_load_from_an_output(x, out):
    kernel.store(out, (0,), kernel.load(out, (0,), (8,)))  # here


@wrong("the input 'x' is a whole tensor in memory: load a tile of it with kernel.load(x, at, shape)", "x + 1.0")
def arithmetic_on_a_view(x, out):
    kernel.store(out, (0,), x + 1.0)  # here


@wrong("what is stored is a tile, not a view of the input 'x'", "kernel.store")
def a_subscript_of_a_view(x, out):
    kernel.store(out, (0,), x[0:8])  # here


@wrong("a view of the input 'x' is a whole tensor in memory: load a tile of it with kernel.load(x, at, shape)", "x[")
def arithmetic_of_a_view(x, out):
    kernel.store(out, (0,), x[0:8] + 1.0)  # here


@wrong("the bounds of a slice of a view are numbers: kernel.load and kernel.store have places", "kernel.program_id", grid=2)
def a_view_at_a_program(x, out):
    kernel.store(out, (0,), kernel.load(x[kernel.program_id(0) :], (0,), (8,)))  # here


@wrong("program (0,): the load from 'x[1:5]' is outside: elements 0 .. 7 along axis 0, whose extent is 4; give fill= if that is meant", "kernel.load")
def outside_of_the_domain_of_a_view(x, out):
    kernel.store(out, (0,), kernel.load(x[1:5], (0,), (8,)))  # here


@wrong("program (0,): the store into 'out[::2]' is outside: elements 0 .. 7 along axis 0, whose extent is 4; give drop=True if that is meant", "kernel.store")
def a_store_outside_of_the_domain_of_a_view(x, out):
    kernel.store(out[::2], (0,), kernel.load(x, (0,), (8,)))  # here


@wrong("a view of an output goes forward: a step of -1", "out[")
def a_view_of_an_output_that_goes_back(x, out):
    kernel.store(out[::-1], (0,), kernel.load(x, (0,), (8,)))  # here


@wrong("'out' is an output: in a broadcast view of it several indices would be one element", "kernel.broadcast")
def a_broadcast_output(x, out):
    kernel.store(kernel.broadcast(out, (2, 8)), (0, 0), kernel.load(x[None], (0, 0), (1, 8)))  # here


@wrong("a scatter writes into an output itself, not into a view of it: compute the index", "kernel.scatter")
def a_scatter_into_a_view(x, out):
    kernel.scatter(out[::2], (kernel.arange(4),), kernel.load(x, (0,), (4,)))  # here


@wrong("index 8 along axis 0 of the output 'out', whose extent is 8", "out[")
def a_view_at_an_index_outside(x, out):
    kernel.store(out[8], (), kernel.load(x[0], (), ()))  # here


@wrong("program (0,) and program (1,) both write element (0) of 'out[::2]': the store into it is a race", "kernel.store", grid=2)
def a_race_in_a_view(x, out):
    kernel.store(out[::2], (0,), kernel.load(x, (0,), (4,)))  # here


@wrong("a tile never changes, and a view is written with kernel.store(out, at, value)", "out[")
def an_assignment_to_a_subscript(x, out):
    out[0] = 1.0  # here


@wrong("'x' is an argument of the kernel: give the value another name, or store it with kernel.store", "x =")
def an_assignment_to_an_argument(x, out):
    x = kernel.load(x, (0,), (8,))  # here


@wrong("nothing is stored into the output 'out'", "def")
def nothing_is_stored(x, out):  # here
    t = kernel.load(x, (0,), (8,))  # noqa: F841


@wrong("program (0,) and program (1,) both write element (0) of 'out': the store into it is a race", "kernel.store", grid=2)
def two_stores(x, out):
    t = kernel.load(x, (0,), (4,))
    kernel.store(out, (kernel.program_id(0) * 4,), t)
    kernel.store(out, (4 - kernel.program_id(0) * 4,), t)  # here


@wrong("'out' is stored into in two ways: stores of blocks go together, and scatters of one mode that combines", "kernel.scatter")
def a_store_and_a_scatter(x, out):
    kernel.store(out, (0,), kernel.load(x, (0,), (8,)))
    kernel.scatter(out, (kernel.arange(8),), kernel.load(x, (0,), (8,)), mode="add")  # here


@wrong("this store into 'out' and the one of line {-1} may write one element in different steps of a loop: let their places differ by a number that is not "
       "below the extent of the tile", "kernel.store")
def two_stores_of_a_loop_that_overlap(x, out):
    for k in range(3):
        kernel.store(out, (2 * k,), kernel.load(x, (2 * k,), (1,)))
        kernel.store(out, (k + 1,), kernel.load(x, (k,), (1,)))  # here


@wrong("this store into 'out' and the one of line {-1} are not shown to be apart: give them one view, or views that have no element in common", "kernel.store")
def two_views_that_meet(x, out):
    kernel.store(out[::2], (0,), kernel.load(x, (0,), (4,)))
    kernel.store(out[::3], (0,), kernel.load(x, (0,), (3,)))  # here


# ---- loops and branches


@wrong("'t' is float32[4] before the loop and float32[8] at the end of its body; both are of one type", "for")
def a_loop_that_changes_a_shape(x, out):
    t = kernel.zeros((4,))
    for i in range(3):  # here
        t = kernel.zeros((8,))
    kernel.store(out, (0,), t)


@wrong("'n' is int64[] before the loop and float32[] at the end of its body; both are of one type", "for")
def a_loop_that_changes_a_dtype(x, out):
    n = 0
    for i in range(3):  # here
        n = kernel.sum(kernel.load(x, (0,), (8,)))
    kernel.store(out, (0,), kernel.broadcast(n, (8,)))


@wrong("range takes integers known from sizes, program ids and counters, not float32[]", "kernel.sum")
def a_range_of_data(x, out):
    for i in range(kernel.sum(kernel.load(x, (0,), (8,)))):  # here
        pass


@wrong("the step of range is a number that is not 0", "range")
def a_step_of_0(x, out):
    for i in range(0, 8, 0):  # here
        pass


@wrong("the condition of this `while` is the number True while the kernel is compiled: a loop that never ends, or use kernel.static_for", "True")
def a_loop_for_ever(x, out):
    while True:  # here
        pass


@wrong("the body of this `while` changes nothing that its condition depends on: it never ends", "kernel.any")
def a_loop_that_does_not_end(x, out):
    t = kernel.load(x, (0,), (8,))
    u = t
    while kernel.any(t > 0.0):  # here
        u = u + 1.0
    kernel.store(out, (0,), u)


@wrong("the condition of `if` is one bool, not bool[8]; use kernel.where, kernel.any or kernel.all", "if")
def a_branch_on_a_tile(x, out):
    t = kernel.load(x, (0,), (8,))
    if t > 0.0:  # here
        t = -t
    kernel.store(out, (0,), t)


@wrong("'t' is float32[8] in one branch and float32[1] in the other; both are of one type", "if")
def branches_of_two_types(x, out):
    t = kernel.load(x, (0,), (8,))
    if kernel.any(t > 0.0):  # here
        t = t + 1.0
    else:
        t = kernel.zeros((1,))
    kernel.store(out, (0,), t)


@wrong("a store inside of an `if` or a `while` on data is not there yet: store kernel.where(...) after it", "kernel.store")
def a_store_in_a_branch(x, out):
    t = kernel.load(x, (0,), (8,))
    if kernel.any(t > 0.0):
        kernel.store(out, (0,), t)  # here


@wrong("static_for is unrolled while the kernel is compiled: its bounds are numbers", "kernel.static_for", grid=2)
def an_unrolled_loop_of_a_program_id(x, out):
    for i in kernel.static_for(kernel.program_id(0)):  # here
        pass


@wrong("the assertion does not hold: a block is not empty", "assert")
def a_wrong_assertion(x, out):
    assert x.shape[0] > 8, "a block is not empty"  # here


@wrong("the axes of a grid are 0, 1 and 2, not 3", "kernel.program_id")
def an_axis_of_the_grid(x, out):
    i = kernel.program_id(3)  # noqa: F841  # here


# ---- calls


@wrong("grid_that_is_negative: extent 1 of the grid is -1; 0 is the least", grid=(1, -1))
def grid_that_is_negative(x, out):
    pass


@wrong("grid_beyond_the_limit: extent 0 of the grid is 2147483648; 2147483647 is the most", grid=2**31)
def grid_beyond_the_limit(x, out):
    pass


@wrong("grid_beyond_the_second_limit: extent 1 of the grid is 65536; 65535 is the most", grid=(1, 65536))
def grid_beyond_the_second_limit(x, out):
    pass


@wrong("grid_beyond_the_third_limit: extent 2 of the grid is 70000; 65535 is the most", grid=(1, 1, 70000))
def grid_beyond_the_third_limit(x, out):
    pass


@wrong("grid_of_four_axes: a grid has one to three axes, not 4", grid=(1, 1, 1, 1))
def grid_of_four_axes(x, out):
    pass


@wrong("grid_of_fractions: extent 0 of the grid is a size, not a float", grid=1.5)
def grid_of_fractions(x, out):
    pass


@wrong("no_grid: say how many programs run: grid=(...), one to three sizes", grid=None)
def no_grid(x, out):
    pass


@wrong("missing_argument(x, y, out): missing a required argument: 'y'")
def missing_argument(x, y, out):
    pass


@wrong("no_output has no output: give one as astra.spec(shape, dtype)", out=None)
def no_output(x, out):
    pass


@wrong("output_without_axes: the output 'out' has no axes; give it the shape (1,)", out=astra.spec(()))
def output_without_axes(x, out):
    pass


@wrong("output_of_half_bytes: the output 'out' is of int4, several of which share a byte: that is not there yet", out=astra.spec((8,), "int4"))
def output_of_half_bytes(x, out):
    pass


@wrong("tensor_by_name: 'BLOCK' stands behind the `*`, so it is a number, a dtype or a tuple, known while the kernel is compiled; it is given a ndarray", BLOCK=X)
def tensor_by_name(x, out, *, BLOCK):
    pass
