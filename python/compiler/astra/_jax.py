"""Functions of JAX: from_jax.

Takes:    a function of JAX, and examples or specs of its arguments.
Gives:    a Model (astra.from_onnx gives one too): called, lowered, compiled, saved, a part of other functions.
Keeps:    jax.export's graph, read by the front door of StableHLO (docs/stablehlo.md): arrays that the function uses from outside are
          constants. JAX is needed here, not where the bundle runs.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from . import _core, _dims, _tree
from ._errors import ArgumentError, UnsupportedError
from ._onnx import Model, bounds_of
from ._tensor import Tensor, asarray, call
from ._trace import Spec


def generic_text(exported: Any) -> str:
    """MLIR's generic form of what jax.export gave, with the places in the user's code."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        return str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, large_elements_limit=None))


def _sharding(x: Any, jax: Any) -> Any:
    """How an argument lies on several devices, as names of a mesh; None of one on one device."""
    found = getattr(x, "sharding", None)
    if found is None or isinstance(found, (jax.sharding.NamedSharding, jax.sharding.SingleDeviceSharding)):
        return found if isinstance(found, jax.sharding.NamedSharding) else None
    raise UnsupportedError(f"an argument has the sharding {found}: jax.sharding.NamedSharding is read")


def _leaf(x: Any, jax: Any, scope: Any, bounds: dict[str, _dims.Dim]) -> Any:
    """What jax.export is given for an argument."""
    if isinstance(x, Spec):
        for n in x.shape:
            bounds.update(_dims.named(n))
        text = ", ".join(str(n).replace("//", "floordiv") if isinstance(n, _dims.Dim) else str(n) for n in x.shape)
        symbolic = any(isinstance(n, _dims.Dim) for n in x.shape)
        shape = jax.export.symbolic_shape(text, scope=scope) if symbolic else tuple(x.shape)
        return jax.ShapeDtypeStruct(shape, x.dtype.numpy)
    if isinstance(x, Tensor):
        x = asarray(x).numpy()
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=_sharding(x, jax)) if hasattr(x, "shape") else x


class JaxModel(Model):
    """A function of JAX: what `from_jax` gives. Its arguments and results have the function's trees."""

    def __init__(self, module: Any, notes: Any, in_tree: Any, kept: list[int], out_tree: Any) -> None:
        super().__init__(module, notes)
        self._in, self._kept, self._out = in_tree, kept, out_tree

    def __call__(self, *args: Any) -> Any:
        leaves, structure = _tree.flatten(args)
        if structure != self._in:
            raise ArgumentError(f"the arguments have the structure {structure}; the function was exported with {self._in}")
        made = super().__call__(*(leaves[i] for i in self._kept))
        return _tree.unflatten(self._out, made if isinstance(made, tuple) else (made,))


def from_jax(f: Callable[..., Any], *args: Any, dims: Mapping[str, Any] | None = None) -> JaxModel:
    """A function of JAX as a model. args: examples (arrays), or `astra.spec(shape, dtype)` with dims of `astra.dim`, in trees as the
    function takes them. Arrays that f uses from outside become constants of the model: give weights as arguments, or train in JAX
    first. dims: bounds of sizes that the specs do not name, as in `from_onnx`.

    NamedSharding of arguments, results and of jax.lax.with_sharding_constraint says the mesh of the module and how it is cut
    (docs/distributed.md): `lower().compile()` is a bundle for ranks; a call in this process is of whole tensors."""
    try:
        import jax
        import jax.export
    except ImportError:
        raise ArgumentError("from_jax needs JAX: pip install jax") from None
    scope = jax.export.SymbolicScope()
    bounds: dict[str, _dims.Dim] = {}
    leaves, structure = _tree.flatten(args)
    given = _tree.unflatten(structure, [_leaf(x, jax, scope, bounds) for x in leaves])
    try:
        exported = jax.export.export(jax.jit(f), platforms=["cpu"])(*given)
    except NotImplementedError as error:
        raise UnsupportedError(f"JAX cannot export the function: {error}") from None
    named = {**{n: d.bounds for n, d in bounds.items()}, **(dims or {})}
    name = getattr(f, "__name__", "function")
    module = call(_core.import_stablehlo, generic_text(exported), f"{name}.mlir", [bounds_of(n, v) for n, v in named.items()])
    out = jax.tree_util.tree_unflatten(exported.out_tree, range(len(exported.out_avals)))
    return JaxModel(module, (), structure, list(exported.module_kept_var_idx), _tree.flatten(out)[1])


__all__ = ["from_jax"]
