"""Kernels written for Triton, compiled ahead of time: `import astra.kernel.triton as triton` (docs/kernels-triton.md).

Takes:    functions in Triton's language, parsed and never executed; Triton need not be installed.
Gives:    kernels of Astra's, with its proofs, its bits and its targets.
Keeps:    files: _launch (arguments, results), _walk (what differs from the kernel language), _pointers (from pointers to blocks), _builtins and _random (tl).
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from . import language as language
from ._launch import JITFunction, TensorDescriptor, interpret


class Config:
    """Values of arguments that a kernel is tuned by. How many warps and stages it would have is no part of a plan here."""

    def __init__(self, kwargs: dict[str, Any], num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1, maxnreg: int | None = None, pre_hook: Any = None,
                 ir_override: Any = None) -> None:  # fmt: skip
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas, self.maxnreg, self.pre_hook = dict(kwargs), num_warps, num_stages, num_ctas, maxnreg, pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        return dict(self.kwargs)


class Autotuner(JITFunction):
    """A kernel with configurations: the first one is taken (of those that early_config_prune keeps), so that the same launch is the same program
    everywhere."""

    def __init__(self, inner: Any, configs: Sequence[Any], prune: Any = None) -> None:
        super().__init__(inner)
        self.inner, self.configs, self.prune = inner, list(configs), prune

    def chosen(self, values: dict[str, Any]) -> Any:
        """The configuration of a launch; None where there is none."""
        kept = self.configs if self.prune is None else self.prune(list(self.configs), dict(values), **values)
        return kept[0] if kept else None

    def settings(self, values: dict[str, Any]) -> dict[str, Any]:
        config = self.chosen(values)
        chosen = dict(config.kwargs) if config is not None else {}
        return {**self.inner.settings({**values, **chosen}), **chosen}

    def prepare(self, values: dict[str, Any]) -> None:
        config = self.chosen(values)
        if config is not None and config.pre_hook is not None:
            config.pre_hook(values)
        self.inner.prepare(values)


class Heuristics(JITFunction):
    """A kernel some of whose arguments are functions of the others."""

    def __init__(self, inner: Any, values: dict[str, Callable[..., Any]]) -> None:
        super().__init__(inner)
        self.inner, self.values = inner, dict(values)

    def settings(self, values: dict[str, Any]) -> dict[str, Any]:
        own = self.inner.settings(values)
        for name, f in self.values.items():
            own[name] = f({**values, **own})
        return own

    def prepare(self, values: dict[str, Any]) -> None:
        self.inner.prepare(values)


def jit(f: Any = None, **options: Any) -> Any:
    """A kernel, or a helper of kernels. Options of Triton's (launch_metadata, do_not_specialize, noinline, ...) change nothing. Kernels that Triton's own
    decorator has made are taken too, with their configurations."""
    if f is None:
        return lambda g: jit(g, **options)
    if isinstance(f, JITFunction):
        return f
    if hasattr(f, "configs") and hasattr(f, "fn"):
        return Autotuner(jit(f.fn), f.configs, getattr(f, "early_config_prune", None))
    if hasattr(f, "values") and hasattr(f, "fn"):
        return Heuristics(jit(f.fn), f.values)
    return JITFunction(f)


def autotune(configs: Sequence[Any], key: Sequence[str] = (), **options: Any) -> Callable[[Any], Any]:
    """Takes the first configuration. Tune by launching with others: plans are data (docs/tuning.md)."""
    return lambda f: Autotuner(jit(f), configs, (options.get("prune_configs_by") or {}).get("early_config_prune"))


def heuristics(values: dict[str, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Arguments that are functions of the others, which are given as a dict."""
    return lambda f: Heuristics(jit(f), values)


def cdiv(x: Any, y: Any) -> Any:
    """The quotient, rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """The least power of 2 that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


__all__ = ["Config", "JITFunction", "TensorDescriptor", "autotune", "cdiv", "heuristics", "interpret", "jit", "language", "next_power_of_2"]
