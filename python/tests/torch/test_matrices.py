"""Factorizations of matrices through `@astra`, values and gradients beside PyTorch."""

import pytest
import torch

from astra import UnsupportedError, astra


def definite(x):
    return x @ x.mT + 2 * torch.eye(x.shape[-1], dtype=x.dtype)


def signed(q):
    """Vectors in columns, of a sign that their greatest component gives."""
    return q * q.gather(-2, q.abs().argmax(-2, keepdim=True)).sign()


# Name: a function of matrices [2, 4, 4] and [2, 4, 3].
FUNCTIONS = {
    "cholesky": lambda a, b: torch.linalg.cholesky(definite(a)),
    "inverse": lambda a, b: torch.linalg.inv(a),
    "solve": lambda a, b: (torch.linalg.solve(a, b), torch.linalg.solve(a, b[..., 0]), torch.linalg.solve(a, b.mT, left=False)),
    "triangular": lambda a, b: torch.linalg.solve_triangular(definite(a), b, upper=True),
    "determinant": lambda a, b: (torch.linalg.det(a), *torch.linalg.slogdet(a)),
    "qr": lambda a, b: (*torch.linalg.qr(b), *torch.linalg.qr(a)),
    "eigh": lambda a, b: (torch.linalg.eigh(definite(a))[0], signed(torch.linalg.eigh(definite(a))[1]), torch.linalg.eigvalsh(definite(a))),
    "svd": lambda a, b: (lambda u, s, vh: (s, (u * s.unsqueeze(-2)) @ vh, signed(u)))(*torch.linalg.svd(b, full_matrices=False)),
    "singular values": lambda a, b: torch.linalg.svdvals(b),
    "exponential": lambda a, b: torch.linalg.matrix_exp(a / 4),
    "factors": lambda a, b: torch.linalg.lu_factor(a),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name):
    f = FUNCTIONS[name]
    a, b = (torch.randn(s, dtype=torch.float64) for s in ((2, 4, 4), (2, 4, 3)))
    wanted = name not in ("determinant", "factors", "solve")  # their gradients take linalg_lu_solve, which has no row
    a = (a + 3 * torch.eye(4, dtype=torch.float64)).requires_grad_(wanted)
    b.requires_grad_(wanted)
    compiled = astra(f)
    mine, theirs = (torch.utils._pytree.tree_leaves(g(a, b)) for g in (compiled, f))
    for x, y in zip(mine, theirs, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-9)
    if not wanted:
        return
    weights = [torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape) if y.requires_grad else None for y in theirs]
    found = [torch.autograd.grad(sum((y * w).sum() for y, w in zip(ys, weights) if w is not None), (a, b), allow_unused=True) for ys in (mine, theirs)]
    for x, y in zip(*found):
        if y is not None:
            torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-7)


def test_what_has_no_row_is_refused():
    with pytest.raises(UnsupportedError, match=r"aten\.linalg_eig.*test_matrices\.py:\d+.*no row"):
        astra(lambda x: torch.linalg.eig(x)[0].real)(torch.eye(2))
