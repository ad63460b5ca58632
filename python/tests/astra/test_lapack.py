"""backend="vendor" of astra.linalg beside NumPy, as bundles and as what strict ones refuse.

Takes:    a LAPACK that libastra_lapack opens: libopenblas.so.0 or liblapack.so.3; without one all but the refusals is skipped.
"""

import os
import subprocess
import sys

import astra
import astra_rt
import numpy as np
import pytest

try:
    astra.linalg.register_lapack()
    MISSING = ""
except astra.UnsupportedError as error:
    MISSING = str(error)
needed = pytest.mark.skipif(bool(MISSING), reason=MISSING)
v = {"backend": "vendor"}


def matrices(dtype):
    r = np.random.default_rng(0)
    a = r.standard_normal((2, 3, 5, 5)).astype(dtype)
    return a, (a @ a.swapaxes(-1, -2) + 5 * np.eye(5)).astype(dtype), r.standard_normal((2, 3, 5, 4)).astype(dtype)


@needed
@pytest.mark.parametrize("dtype, close", [("float64", 1e-11), ("float32", 1e-3)])
def test_results_are_lapacks(dtype, close):
    a, s, b = matrices(dtype)
    t, u = astra.linalg, np.linalg
    same = lambda x, y: np.testing.assert_allclose(np.asarray(x), y, rtol=close, atol=close)  # noqa: E731
    same(t.cholesky(s, **v), u.cholesky(s))
    same(t.cholesky(s, upper=True, **v), u.cholesky(s).swapaxes(-1, -2))
    same(t.solve(s, b, **v), u.solve(s, b))
    same(t.solve(s[0, 0], b[0, 0, :, 0], **v), u.solve(s[0, 0], b[0, 0, :, 0]))
    same(t.inv(s, **v), u.inv(s))
    same(t.lu_solve(t.lu_factor(a, **v), b), u.solve(a, b))
    for x in (b, b.swapaxes(-1, -2)):
        q, r = (np.asarray(y) for y in t.qr(x, **v))
        same(q @ r, x)
        same(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, 3, q.shape[-1], q.shape[-1])))
        for full in (False, True):
            p, w, h = (np.asarray(y) for y in t.svd(x, full_matrices=full, **v))
            same(w, u.svd(x, compute_uv=False))
            same((p[..., :4] * w[..., None, :]) @ h[..., :4, :], x)
    w, x = (np.asarray(y) for y in t.eigh(s, **v))
    same(w, u.eigvalsh(s))
    same(s @ x, x * w[..., None, :])
    w, x = (np.asarray(y) for y in t.eig(a, **v))
    same(a @ x, x * w[..., None, :])
    assert np.isnan(np.asarray(t.cholesky(-s, **v))).any() and np.isnan(np.asarray(t.inv(np.zeros((2, 2)), **v))).all()


@needed
def test_a_bundle_that_calls_it_says_so_and_is_not_strict(tmp_path):
    _, s, _ = matrices("float64")
    model = astra.trace(lambda x: astra.linalg.cholesky(x, backend="vendor") * 2, astra.spec((2, 3, 5, 5), "float64"))
    data = tmp_path / "m.astra"
    model.lower().compile("cpu:x86-64-v3").save(data)
    np.testing.assert_allclose(np.asarray(astra_rt.load(data)(s)), 2 * np.linalg.cholesky(s), rtol=1e-12)
    with pytest.raises(astra_rt.Error, match="lapack.cholesky"):
        astra_rt.load(data, strict=True)
    # where nobody registered it, it is refused when it is loaded
    code = "import sys, astra_rt; astra_rt.load(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, data], capture_output=True)
    assert done.returncode and b"'lapack.cholesky', which is not registered" in done.stderr


def test_refusals():
    z = np.eye(2) + 0j
    with pytest.raises(astra.UnsupportedError, match="float32 and float64, not complex128"):
        astra.linalg.solve(z, z, backend="vendor")
    with pytest.raises(astra.UnsupportedError, match="the LAPACK of the host"):
        astra.linalg.inv(np.eye(2), backend="cusolver")
    with pytest.raises(ValueError, match="backend is None or 'vendor'"):
        astra.linalg.inv(np.eye(2), backend="blas")
    code = "import astra; astra.linalg.inv(astra.eye(2), backend='vendor')"
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, ASTRA_LAPACK="no-such-library.so"), capture_output=True)
    assert b"the LAPACK 'no-such-library.so' cannot be opened" in done.stderr
