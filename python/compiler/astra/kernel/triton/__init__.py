"""Kernels written for Triton, compiled ahead of time: `import astra.kernel.triton as triton` (docs/kernels-triton.md).

Takes:    functions in Triton's language, parsed and never executed; Triton need not be installed.
Gives:    kernels of Astra's, with its proofs, its bits and its targets.
Keeps:    files: _launch (arguments, results), _walk (what differs from the kernel language), _pointers (from pointers to blocks), _builtins and _random (tl).
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import language as language
from ._launch import JITFunction, interpret


class Config:
    """Values of arguments that a kernel is tuned by. How many warps and stages it would have is no part of a plan here."""

    def __init__(self, kwargs: dict[str, Any], num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1, maxnreg: int | None = None, pre_hook: Any = None,
                 ir_override: Any = None) -> None:  # fmt: skip
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas, self.maxnreg, self.pre_hook = dict(kwargs), num_warps, num_stages, num_ctas, maxnreg, pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        return dict(self.kwargs)


class Autotuner(JITFunction):
    """A kernel with configurations: the first one is taken, so that the same launch is the same program everywhere."""

    def __init__(self, inner: Any, configs: Sequence[Any]) -> None:
        super().__init__(inner)
        self.inner, self.configs = inner, list(configs)

    def settings(self, values: dict[str, Any]) -> dict[str, Any]:
        chosen = dict(self.configs[0].kwargs) if self.configs else {}
        inner = self.inner.settings({**values, **chosen}) if isinstance(self.inner, JITFunction) else {}
        return {**inner, **chosen}


class Heuristics(JITFunction):
    """A kernel some of whose arguments are functions of the others."""

    def __init__(self, inner: Any, values: dict[str, Callable[..., Any]]) -> None:
        super().__init__(inner)
        self.inner, self.values = inner, dict(values)

    def settings(self, values: dict[str, Any]) -> dict[str, Any]:
        own = self.inner.settings(values) if isinstance(self.inner, JITFunction) else {}
        for name, f in self.values.items():
            own[name] = f({**values, **own})
        return own


def jit(f: Any = None, **options: Any) -> Any:
    """A kernel, or a helper of kernels. Options of Triton's (launch_metadata, do_not_specialize, noinline, ...) change nothing. Kernels that Triton's own
    decorator has made are taken too, with their configurations."""
    if f is None:
        return lambda g: jit(g, **options)
    if isinstance(f, JITFunction):
        return f
    if hasattr(f, "configs") and hasattr(f, "fn"):
        return Autotuner(jit(f.fn), f.configs)
    if hasattr(f, "values") and hasattr(f, "fn"):
        return Heuristics(jit(f.fn), f.values)
    return JITFunction(f)


def autotune(configs: Sequence[Any], key: Sequence[str] = (), **options: Any) -> Callable[[Any], Any]:
    """Takes the first configuration. Tune by launching with others: plans are data (docs/tuning.md)."""
    return lambda f: Autotuner(jit(f), configs)


def heuristics(values: dict[str, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Arguments that are functions of the others, which are given as a dict."""
    return lambda f: Heuristics(jit(f), values)


def cdiv(x: Any, y: Any) -> Any:
    """The quotient, rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """The least power of 2 that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


__all__ = ["Config", "JITFunction", "autotune", "cdiv", "heuristics", "interpret", "jit", "language", "next_power_of_2"]
