"""The text of a function of JAX, as the StableHLO front door reads it."""
import jax
import numpy as np
from jax import export as jax_export


def generic(exported, locations=False):
    """MLIR's generic form of what jax.export gave."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=locations, large_elements_limit=None)


def export(f, args, shapes=None, platform="cpu"):
    """The text, which arguments it keeps, and the names of its results. `shapes`: symbolic ones, as "b, 4"; None: the argument's.
    platform: what the text is written for; matrices are calls of LAPACK on a CPU, ops of StableHLO elsewhere."""
    scope = jax_export.SymbolicScope()
    given = [jax_export.symbolic_shape(s, scope=scope) if s else a.shape for a, s in zip(args, shapes or [None] * len(args), strict=True)]
    exported = jax_export.export(jax.jit(f), platforms=[platform])(*[jax.ShapeDtypeStruct(s, a.dtype) for a, s in zip(args, given, strict=True)])
    count = len(exported.out_avals)
    paths = jax.tree_util.tree_flatten_with_path(jax.tree_util.tree_unflatten(exported.out_tree, range(count)))[0]
    names = ["result" + jax.tree_util.keystr(path) for path, _ in paths]
    return generic(exported), list(exported.module_kept_var_idx), names
