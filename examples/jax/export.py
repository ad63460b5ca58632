"""Exports a function of JAX as the text that astra-compile reads.

usage: export.py [FILE.mlir]
"""
import sys

import jax
import jax.numpy as jnp
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir


def classify(w, b, image):
    """Probabilities of ten classes."""
    hidden = jax.nn.relu(image @ w["hidden"] + b["hidden"])
    return {"probabilities": jax.nn.softmax(hidden @ w["out"] + b["out"])}


def text(exported):
    """MLIR's generic form, with the names of arguments and the lines of this file."""
    with mlir.make_ir_context():
        module = ir.Module.parse(exported.mlir_module())
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


def main():
    scope = export.SymbolicScope()
    shape = lambda text: jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), jnp.float32)
    w = {"hidden": shape("64, 32"), "out": shape("32, 10")}
    b = {"hidden": shape("32"), "out": shape("10")}
    exported = export.export(jax.jit(classify))(w, b, shape("batch, 64"))
    with open(sys.argv[1] if len(sys.argv) > 1 else "classify.mlir", "w") as file:
        file.write(text(exported))


if __name__ == "__main__":
    main()
