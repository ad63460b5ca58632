"""Models whose structure is the test: control flow, functions, opsets of functions, sparse and external initializers.

Takes:    a build folder; ONNX Runtime for what the result should be.
Gives:    a line for each model and "N passed, N failed"; exit code 1 if one fails.
Keeps:    bytes equal on every level of this machine and in the reference evaluator; values within 1e-5 of ONNX Runtime
          (or of what the table says, where ONNX Runtime refuses the model). What must be refused is refused by the
          sentence in the table.
Does not: test ops (run.py).

    build/venv/bin/python test/onnx/structure.py [--large]     --large: weights of more than 2 GiB too
"""

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

os.environ["ASTRA_EVAL"] = "1"
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.parser  # noqa: E402
import onnxruntime  # noqa: E402
from backend import BUILD, AstraBackend, Failed, command  # noqa: E402
from harness import run  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def i64(value):
    return np.array(value, np.int64)


X23, W33 = f32(2, 3), f32(3, 3)


def rows_summed(x):
    """What a Loop of v = tanh(v) + row gives; its conditions are of shape [1], which ONNX Runtime refuses."""
    v = np.zeros(3, np.float32)
    for row in x:
        v = np.tanh(v) + row
    return [v]


# name, model in ONNX's text form, calls (inputs of each), flags, the outputs where ONNX Runtime refuses the model
MODELS = [
    ("if-both-ways", """
     g (bool p, float[2, 3] x, float[2, 3] w) => (float[2, 3] y) {
       e = Exp(w)
       y = If (p) <then_branch = a () => (float[2, 3] t) { t0 = Add(x, e) t = Tanh(t0) },
                   else_branch = b () => (float[2, 3] t) { t = Mul(x, w) }>
     }""", [[np.array(True), X23, f32(2, 3)], [np.array(False), X23, f32(2, 3)]]),
    ("if-returns-what-is-around", """
     g (bool[1] p, float[3] x) => (float[3] y, float[3] z) {
       y, z = If (p) <then_branch = a () => (float[3] j, float[3] k) { j = Identity(x)  k = Constant<value = float[3] {1., 2., 3.}>() },
                      else_branch = b () => (float[3] k, float[3] j) { k = Relu(x)  j = Identity(x) }>
     }""", [[np.array([True]), f32(3)], [np.array([False]), f32(3)]]),
    ("if-known", """
     g (float[2, 3] x) => (float[2, 3] y) {
       s = Shape(x)  z = Constant<value = int64 {0}>()  one = Constant<value = int64 {2}>()
       n = Gather(s, z)  p = Equal(n, one)
       y = If (p) <then_branch = a () => (float[2, 3] t) { t = Neg(x) },
                   else_branch = b () => (float[1] t) { t = Unheard(x) }>
     }""", [[X23]], [], lambda x: [-x]),
    ("if-nested-in-loop", """
     g (int64 n, float[4] x) => (float[4] y, float[k, 4] all) {
       c = Constant<value = bool {1}>()
       y, all = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo, float[4] row) {
         co = Identity(ci)
         two = Constant<value = int64 {2}>()  zero = Constant<value = int64 {0}>()
         r = Mod(i, two)  even = Equal(r, zero)
         vo = If (even) <then_branch = t () => (float[4] o) { o = Add(v, x) },
                         else_branch = e () => (float[4] o) { h = Constant<value = float {0.5}>() o = Mul(v, h) }>
         row = Identity(v)
       }>
     }""", [[i64(k), f32(4)] for k in (0, 1, 5)], ["--dim=y_trips=0..8"]),
    ("loop-count-known", """
     g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y, float[6, 2] sums) {
       n = Constant<value = int64 {6}>()  c = Constant<value = bool {1}>()
       y, sums = Loop (n, c, x) <body = b (int64 i, bool ci, float[2, 3] v) => (bool co, float[2, 3] vo, float[2] s) {
         co = Identity(ci)  m = MatMul(v, w)  vo = Tanh(m)
         axis = Constant<value = int64[1] {1}>()
         s0 = ReduceSum<keepdims = 0>(vo, axis)  f = Cast<to = 1>(i)  s = Add(s0, f)
       }>
     }""", [[X23, W33]]),
    ("loop-until", """
     g (float[3] x, float limit) => (float[3] y, int64 trips) {
       c = Constant<value = bool {1}>()  zero = Constant<value = int64 {0}>()
       y, trips = Loop ("", c, x, zero) <body = b (int64 i, bool ci, float[3] v, int64 k) => (bool co, float[3] vo, int64 ko) {
         two = Constant<value = float {2.0}>()  vo = Mul(v, two)
         one = Constant<value = int64 {1}>()  ko = Add(k, one)
         m = ReduceMax<keepdims = 0>(vo)  co = Less(m, limit)
       }>
     }""", [[np.array([.1, .2, .3], np.float32), np.array(l, np.float32)] for l in (0.0, 1.0, 100.0)]),
    ("loop-condition-false-at-once", """
     g (bool c, float[3] x) => (float[3] y) {
       n = Constant<value = int64 {3}>()
       y = Loop (n, c, x) <body = b (int64 i, bool ci, float[3] v) => (bool co, float[3] vo) {
         co = Identity(ci)  vo = Add(v, v) }>
     }""", [[np.array(p), f32(3)] for p in (True, False)]),
    ("loop-growing", """
     g (float[1, 4] x) => (float[k, 4] y) {
       n = Constant<value = int64 {100}>()  c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = b (int64 i, bool ci, float[t, 4] v) => (bool co, float[u, 4] vo) {
         axes = Constant<value = int64[1] {0}>()
         m = ReduceMean<keepdims = 1>(v, axes)  one = Constant<value = float {1.0}>()  r = Add(m, one)
         vo = Concat<axis = 0>(v, r)
         s = Shape(v)  z = Constant<value = int64 {0}>()  k = Gather(s, z)  most = Constant<value = int64 {40}>()
         co = Less(k, most)
       }>
     }""", [[f32(1, 4)]]),
    ("loop-that-doubles", """
     g (float[2, 3] x) => (float[k, 3] y) {
       n = Constant<value = int64 {5}>()  c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = b (int64 i, bool ci, float[t, 3] v) => (bool co, float[u, 3] vo) {
         co = Identity(ci)  m = Neg(v)  vo = Concat<axis = 0>(v, m) }>
     }""", [[f32(2, 3)]]),
    ("loop-values-that-part", """
     g (int64 n, int64[1, t] ids) => (int64[1, a] y, float[1, b] z) {
       c = Constant<value = bool {1}>()  h = Cast<to = 1>(ids)
       y, z = Loop (n, c, ids, h) <body = b (int64 i, bool ci, int64[1, t] v, float[1, t] w) => (bool co, int64[1, u] vo, float[1, u] wo) {
         co = Identity(ci)  axes = Constant<value = int64[1] {1}>()  s = ReduceSum<keepdims = 1>(v, axes)  m = ReduceMax<keepdims = 1>(w, axes)
         f = Cast<to = 1>(v)  wo = Add(f, m)  vo = Concat<axis = 1>(v, s)
       }>
     }""", [[np.array(n, np.int64), np.array([ids], np.int64)] for n in (0, 1, 2, 5) for ids in ([3], [1, 2, 3])], ("--dim=t=1..3", "--dim=t_2=1..8")),
    ("loop-values-that-nobody-reads", """
     g (int64 n, float[k, 3] x) => (float[a, 3] y, float[b, 3] z, float[d, 2] w) {
       c = Constant<value = bool {1}>()  none = Constant<value = float[1, 2] {0.5, 2.0}>()
       y, z, w = Loop (n, c, x, x, none) <body = b (int64 i, bool ci, float[t, 3] v, float[q, 3] last, float[r, 2] l) => (bool co, float[u, 3] vo, float[q, 3] lo, float[r, 2] wo) {
         co = Identity(ci)  lo = Identity(v)  vo = Concat<axis = 0>(v, x)
         p = Constant<value = int64[2] {0, 1}>()  axis = Constant<value = int64 {1}>()  wo = Gather<axis = 1>(v, p)
       }>
     }""", [[np.array(n, np.int64), f32(k, 3)] for n in (0, 1, 4) for k in (1, 2)], ("--dim=k=1..2", "--dim=t=1..10")),
    ("loop-delay-line", """
     g (int64 n, float[2] x) => (float[a] y0, float[b] y1, float[d] y2, float[e] y3, float s) {
       c = Constant<value = bool {1}>()  start = Constant<value = float {0.}>()
       y0, y1, y2, y3, s = Loop (n, c, x, x, x, x, start) <body = b (int64 i, bool ci, float[p0] v0, float[p1] v1, float[p2] v2, float[p3] v3, float r)
                                                  => (bool co, float[q0] o0, float[q1] o1, float[q2] o2, float[q3] o3, float ro) {
         co = Identity(ci)  o1 = Identity(v0)  o2 = Identity(v1)  o3 = Identity(v2)
         zero = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()  h = Slice(v0, zero, one)  o0 = Concat<axis = 0>(v0, h)
         axes = Constant<value = int64[1] {0}>()  t = ReduceSum<keepdims = 0>(v3, axes)  k = Size(v3)  kf = Cast<to = 1>(k)  m = Div(t, kf)  ro = Add(r, m)
       }>
     }""", [[np.array(n, np.int64), f32(2)] for n in (0, 1, 3, 6)], ("--dim=p0=1..9",)),
    ("loop-growing-in-a-loop-that-grows", """
     g (int64 k, float[2] x) => (float[a] y, float s) {
       c = Constant<value = bool {1}>()  start = Constant<value = float {0.}>()
       y, s = Loop (k, c, x, start) <body = b (int64 i, bool ci, float[ot] w, float r) => (bool co, float[u] wo, float ro) {
         co = Identity(ci)  one = Constant<value = float[1] {1.}>()  wo = Concat<axis = 0>(w, one)
         v1, r1 = Loop (k, co, x, r) <body = d (int64 j, bool cj, float[t] v, float q) => (bool cu, float[p] vo, float qo) {
           cu = Identity(cj)  vo = Concat<axis = 0>(v, one)
           axes = Constant<value = int64[1] {0}>()  z = ReduceSum<keepdims = 0>(vo, axes)  n = Size(v)  nf = Cast<to = 1>(n)  m = Div(z, nf)  qo = Add(q, m)
         }>
         ro = Identity(r1)
       }>
     }""", [[np.array(k, np.int64), f32(2)] for k in (0, 1, 3)], ("--dim=t=1..8", "--dim=ot=1..8")),
    ("loop-bounds-that-follow", """
     g (int64 n, float[2, 3] w, float[1, 3] p) => (float[a, b] y, float[d, 3] z) {
       c = Constant<value = bool {1}>()
       y, z = Loop (n, c, w, p) <body = b (int64 i, bool ci, float[r, q] v, float[l, 3] last) => (bool co, float[ro, qo] vo, float[lo, 3] lo_) {
         co = Identity(ci)  one = Constant<value = float[1] {1.}>()  zero = Constant<value = int64[1] {0}>()  end = Constant<value = int64[1] {1}>()  three = Constant<value = int64[2] {0, 3}>()
         h = Slice(v, zero, end, zero)  g = Concat<axis = 0>(v, h)  gt = Transpose<perm = [1, 0]>(g)  m = MatMul(g, gt)  scale = Constant<value = float {0.01}>()  vo = Mul(m, scale)
         k = Constant<value = int64[3] {0, 1, 0}>()  t = Gather<axis = 1>(v, k)
         axes = Constant<value = int64[1] {0}>()  s = ReduceMax<keepdims = 1>(last, axes)  lo_ = Add(t, s)
       }>
     }""", [[np.array(k, np.int64), f32(2, 3), f32(1, 3)] for k in (0, 1, 2, 5)], ("--dim=r=1..12",)),
    ("loop-from-a-fixed-dim", """
     g (int64 n, int64[1, t] ids) => (int64[1, a] y) {
       c = Constant<value = bool {1}>()
       y = Loop (n, c, ids) <body = b (int64 i, bool ci, int64[1, t] v) => (bool co, int64[1, u] vo) {
         co = Identity(ci)  axes = Constant<value = int64[1] {1}>()  s = ReduceSum<keepdims = 1>(v, axes)  vo = Concat<axis = 1>(v, s)
       }>
     }""", [[np.array(n, np.int64), np.array([[3, 1, 2]], np.int64)] for n in (0, 2, 5)], ("--dim=t=3", "--dim=t_2=1..8")),
    ("pad-with-an-input", """
     g (float[2, n] x, float v) => (float[3, m] y) {
       pads = Constant<value = int64[4] {1, 0, 0, 2}>()
       y = Pad(x, pads, v)
     }""", [[f32(2, n), np.array(v, np.float32)] for n, v in ((1, 7), (4, -0.5))], ("--dim=n=1..4",)),
    ("sign-of-unsigned", """
     g (uint8[4] x, uint64[3] z) => (uint8[4] y, uint64[3] w) { y = Sign(x) w = Sign(z) }
     """, [[np.array([0, 1, 200, 255], np.uint8), np.array([0, 5, 1 << 63], np.uint64)]], (), [[np.array([0, 1, 1, 1], np.uint8), np.array([0, 1, 1], np.uint64)]]),
    ("loops-with-counters-in-both-directions", """
     g (float[T, b, 4] x, float[4, 4] w) => (float[T, b, 4] y, float[b, 4] last) {
       shape = Shape(x)  axis0 = Constant<value = int64 {0}>()  n64 = Gather(shape, axis0)  n = Cast<to = 6>(n64)  zero = Constant<value = int32 {0}>()  one = Constant<value = int32 {1}>()
       row = Constant<value = int64 {0}>()  x0 = Gather(x, row)  fz = Constant<value = float {0.}>()  h = Mul(x0, fz)
       a0 = Less(zero, n)  b0 = Less(zero, n)  go = And(a0, b0)
       fc, ft, fh, forward = Loop (n64, go, zero, zero, h) <body = f (int64 i, bool c, int32 k, int32 t, float[b, 4] s) => (bool co, int32 ko, int32 to, float[b, 4] so, float[b, 4] out) {
         ko = Add(k, one)  to = Add(t, one)  r = Gather(x, t)  m = MatMul(s, w)  a = Add(m, r)  so = Tanh(a)  out = Identity(so)
         l1 = Less(ko, n)  l2 = Less(to, n)  l = And(l1, l2)  co = Identity(l) }>
       up = Constant<value = int64 {1}>()  down = Constant<value = int64 {-1}>()  top = Sub(n64, up)  order = Range(top, down, down)  reversed = Gather(x, order)
       nf = Cast<to = 1>(n)  zf = Cast<to = 1>(zero)  gf = Less(zf, nf)
       bc, bt, bh, bn, backward = Loop (n64, gf, zero, zero, h, n) <body = e (int64 i, bool c, int32 k, int32 t, float[b, 4] s, int32 most) => (bool co, int32 ko, int32 to, float[b, 4] so, int32 mo, float[b, 4] out) {
         ko = Add(k, one)  to = Add(t, one)  r = Gather(reversed, t)  m = MatMul(s, w)  a = Sub(m, r)  so = Tanh(a)  out = Identity(so)
         mo = Identity(most)  mf = Cast<to = 1>(most)  tf = Cast<to = 1>(to)  co = Less(tf, mf) }>
       back = Gather(backward, order)  y = Add(forward, back)  last = Add(fh, bh)
     }""", [[f32(t, b, 4), f32(4, 4)] for t, b in ((1, 2), (5, 1), (9, 3))], ["--dim=T=1..9", "--dim=b=1..3"]),
    ("loops-whose-counters-end", """
     g (float[T, 3] x) => (float[a, 3] y, float[b, 3] z, float[c, 3] w, int64 last) {
       s = Shape(x)  axis = Constant<value = int64 {0}>()  n = Gather(s, axis)  zero = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()  two = Constant<value = int64 {2}>()  four = Constant<value = int64 {4}>()  v = Constant<value = float[3] {0., 0., 0.}>()  yes = Constant<value = bool {1}>()
       p, y = Loop (n, yes, v) <body = b0 (int64 i, bool c, float[3] s0) => (bool co, float[3] s1, float[3] o) {
         r = Gather(x, i)  s1 = Add(s0, r)  o = Identity(s1)  next = Add(i, one)  co = Less(next, four) }>
       go = Less(one, n)
       q, k, z = Loop ("", go, v, one) <body = b1 (int64 i, bool c, float[3] s0, int64 j) => (bool co, float[3] s1, int64 jo, float[3] o) {
         r = Gather(x, j)  s1 = Sub(s0, r)  o = Identity(s1)  jo = Add(j, two)  co = Less(jo, n) }>
       u, last, w = Loop ("", yes, v, n) <body = b2 (int64 i, bool c, float[3] s0, int64 j) => (bool co, float[3] s1, int64 jo, float[3] o) {
         jo = Sub(j, one)  r = Gather(x, jo)  s1 = Add(s0, r)  o = Identity(s1)  stop = LessOrEqual(jo, two)  co = Not(stop) }>
     }""", [[f32(t, 3)] for t in (1, 2, 3, 6, 7)], ["--dim=T=1..7"]),
    ("loop-whose-counter-slices", """
     g (float[4, 3] x) => (float[4, 3] y) {
       s = Shape(x)  axis = Constant<value = int64[1] {0}>()  n = Gather(s, axis)  start = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()  v = Constant<value = float[3] {0., 0., 0.}>()
       c0 = Less(start, n)  m = Squeeze(n)
       p, k, all = Loop (m, c0, v, start) <body = b (int64 i, bool[1] c, float[3] s0, int64[1] j) => (bool[1] co, float[3] s1, int64[1] jo, float[3] o) {
         jo = Add(j, one)  r = Slice(x, j, jo, axis)  f = Squeeze(r, axis)  s1 = Add(s0, f)  o = Identity(s1)  co = Less(jo, n) }>
       y = Add(all, x)
     }""", [[f32(4, 3)]], [], lambda x: [np.cumsum(x, 0) + x]),
    ("loop-unrolled", """
     g (float[5] x) => (float[5] y, float[s] z) {
       n = Constant<value = int64 {4}>()  c = Constant<value = bool {1}>()
       start = Constant<value = float[1] {0.5}>()
       y, z = Loop (n, c, x, start) <body = b (int64 i, bool ci, float[5] v, float[q] a) => (bool co, float[5] vo, float[w] ao) {
         co = Identity(ci)
         zero = Constant<value = int64[1] {0}>()  ia = Unsqueeze(i, zero)
         one = Constant<value = int64[1] {1}>()  ib = Add(ia, one)
         head = Slice(v, zero, ib)
         ao = Concat<axis = 0>(a, head)
         vo = Neg(v)
       }>
     }""", [[f32(5)]]),
    ("loop-slices-at-its-number", """
     g (float[7, 2] x) => (float[2] y, float[7] sums) {
       n = Constant<value = int64 {7}>()  c = Constant<value = bool {1}>()  zeros = Constant<value = float[2] {0., 0.}>()
       y, sums = Loop (n, c, zeros) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] vo, float s) {
         co = Identity(ci)
         zero = Constant<value = int64[1] {0}>()  one = Constant<value = int64[1] {1}>()
         begin = Unsqueeze(i, zero)  end = Add(begin, one)
         row = Slice(x, begin, end, zero)  flat = Squeeze(row, zero)  vo = Add(v, flat)
         head = Slice(x, zero, end, zero)  s = ReduceSum<keepdims = 0>(head)
       }>
     }""", [[f32(7, 2)]]),
    ("branches-of-different-extents", """
     g (bool p, float[n, 3] x) => (float[k, 3] y, float[l] z) {
       axis = Constant<value = int64[1] {1}>()
       t, z, s = If (p) <then_branch = a () => (float[k0, 3] at, float[2] au, float[k0] av) {
                           at = Concat<axis = 0>(x, x)  au = Constant<value = float[2] {1., 2.}>()  av = ReduceSum<keepdims = 0>(at, axis) },
                         else_branch = b () => (float[k1, 3] bt, float[3] bu, float[k1] bv) {
                           bt = Neg(x)  bu = Constant<value = float[3] {4., 5., 6.}>()  bv = ReduceSum<keepdims = 0>(bt, axis) }>
       w = Unsqueeze(s, axis)  y = Add(t, w)
     }""", [[np.array(p), f32(n, 3)] for p in (True, False) for n in (1, 4)], ["--dim=n=1..4"]),
    ("if-of-an-extent-that-bounds-decide", """
     g (float[n, k, 3] x) => (float[n, l, 3] y) {
       s = Shape<start = 1, end = 2>(x)  one = Constant<value = int64[1] {1}>()  c = Equal(s, one)
       y = If (c) <then_branch = a () => (float[n, 3] t) { t = Squeeze(x, one) }, else_branch = b () => (float[n, k, 3] t) { t = Identity(x) }>
     }""", [[f32(2, k, 3)] for k in (2, 4)], ["--dim=n=1..2", "--dim=k=2..4"]),
    ("if-of-data-whose-other-branch-does-not-fit", """
     g (float[2, 16] x, int64 rate) => (float[2, 2] y) {
       wide = Constant<value = int64 {16000}>()  p = Equal(rate, wide)
       y = If (p) <then_branch = a () => (float[2, 2] t) { s = Constant<value = int64[3] {2, 2, 8}>()  r = Reshape(x, s)  o = Constant<value = int64[1] {2}>()  t = ReduceSum<keepdims = 0>(r, o) },
                   else_branch = b () => (float[2, 2] t) { s = Constant<value = int64[3] {2, 3, 8}>()  r = Reshape(x, s)  o = Constant<value = int64[1] {2}>()  t = ReduceSum<keepdims = 0>(r, o) }>
     }""", [[f32(2, 16), i64(16000)]], []),
    ("if-without-detections", """
     g (float[8, 4] boxes, float[8] score) => (float[m, 4] y) {
       limit = Constant<value = float {0.5}>()  g0 = Greater(score, limit)  nz = NonZero(g0)  all = Constant<value = int64[1] {-1}>()  i = Reshape(nz, all)
       kept = Gather(boxes, i)  count = Size(kept)  zero = Constant<value = int64 {0}>()  none = Equal(count, zero)
       y = If (none) <then_branch = a () => (float[0, 4] t) { e = Constant<value = int64[2] {0, 4}>() t = ConstantOfShape(e) },
                      else_branch = b () => (float[q, 4] t) { two = Constant<value = float {2.}>()  t = Mul(kept, two) }>
     }""", [[f32(8, 4), np.array(s, np.float32)] for s in ([0] * 8, [1] * 8, [0, 1, 0, 1, 1, 0, 0, 0])]),
    ("branches-with-sizes-of-data", """
     g (float[6, 2] x, float[6] v) => (float[m, 2] y, float[k] z, int64[l] order) {
       zero = Constant<value = float {0.}>()  none = Constant<value = int64 {0}>()  pos = Greater(v, zero)
       kept = Compress<axis = 0>(x, pos)  w = Compress<axis = 0>(v, pos)  both = Concat<axis = 0>(kept, x, kept)  n = Size(w)  c = Greater(n, none)
       y, z, order = If (c) <then_branch = a () => (float[m0, 2] at, float[k0] az, int64[l0] ao) {
           half = Constant<value = float {0.5}>()  large = Greater(w, half)  at = Compress<axis = 0>(kept, large)
           ones = Constant<value = int64[1] {1}>()  az = ReduceSum<keepdims = 0>(both, ones)
           size = Shape(w)  top, ao = TopK<axis = 0>(w, size) },
         else_branch = b () => (float[m1, 2] bt, float[k1] bz, int64[l1] bo) {
           bt = Identity(both)  bz = Identity(v)  bo = Constant<value = int64[1] {7}>() }>
     }""", [[f32(6, 2), np.array(v, np.float32)] for v in ([-1] * 6, [.1, .9, -1, .7, .2, .8], [.6] * 6, [.1] * 6)]),
    ("branches-in-branches-with-sizes-of-data", """
     g (bool p, float[6] v) => (float[m] y) {
       zero = Constant<value = float {0.}>()  pos = Greater(v, zero)  w = Compress<axis = 0>(v, pos)  n = Size(w)  two = Constant<value = int64 {2}>()
       y = If (p) <then_branch = a () => (float[m0] t) {
           many = Greater(n, two)
           inner = If (many) <then_branch = c () => (float[m2] s) { s = Concat<axis = 0>(w, w) }, else_branch = d () => (float[m3] s) { s = Neg(w) }>
           t = Exp(inner) },
         else_branch = b () => (float[m1] t) { t = Concat<axis = 0>(w, v) }>
     }""", [[np.array(p), np.array(v, np.float32)] for p in (True, False) for v in ([-1] * 6, [1, 2, -3, -4, 5, 6], [-1, 2, -1, -1, -1, -1])]),
    ("elements-of-the-largest-few", """
     g (float[40] v) => (float[m] y) {
       zero = Constant<value = float {0.}>()  pos = Greater(v, zero)  w = Compress<axis = 0>(v, pos)  n = Shape(w)
       most = Constant<value = int64[1] {30}>()  k = Min(n, most)  top, at = TopK<axis = 0>(w, k)
       half = Constant<value = float {0.5}>()  large = Greater(top, half)  y = Compress<axis = 0>(top, large)
     }""", [[np.array(v, np.float32)] for v in ([-1] * 40, [1] * 40, np.sin(np.arange(40)))]),
    ("loop-that-reads-a-size-of-data", """
     g (float[6] v, int64 n) => (float y) {
       zero = Constant<value = float {0.}>()  pos = Greater(v, zero)  w = Compress<axis = 0>(v, pos)  c = Constant<value = bool {1}>()
       y = Loop (n, c, zero) <body = b (int64 i, bool ci, float s) => (bool co, float so) {
         f = Cast<to = 1>(i)  m = Mul(w, f)  r = ReduceSum<keepdims = 0>(m)  so = Add(s, r)  co = Identity(ci) }>
     }""", [[np.array(v, np.float32), i64(n)] for v in ([-1] * 6, [1, 2, -3, -4, 5, 6]) for n in (0, 3)]),
    ("branches-in-branches-of-extents", """
     g (float[n, t] input, float[2, m, 3] state, int64 rate, float[3, 1, 8] w, float[3, 1, 8] w2) => (float[n, 1] y, float[2, n, 3] next) {
       wide = Constant<value = int64 {16000}>()  p = Equal(rate, wide)  zero = Constant<value = int64 {0}>()  one = Constant<value = int64[1] {1}>()  last = Constant<value = int64[1] {-1}>()  two = Constant<value = int64 {2}>()
       signal = Unsqueeze(input, one)
       y, next = If (p) <then_branch = a () => (float[n, 1] ay, float[2, n, 3] an) {
           af = Conv<strides = [8]>(signal, w)  asz = Shape(af)  al = Gather(asz, last)  ac = Equal(al, one)
           aq = If (ac) <then_branch = c () => (float[n, 3] s) { s = Squeeze(af, last) }, else_branch = d () => (float[n, 3, l] s) { s = Identity(af) }>
           ar = Shape(aq)  ak = Size(ar)  a2 = Equal(ak, two)  an2 = Not(a2)
           ah = Gather(state, zero)
           au = If (an2) <then_branch = e () => (float[1, 3, n] s) { s = Transpose<perm = [2, 1, 0]>(aq) }, else_branch = f () => (float[n, 3] s) { s = Tanh(aq) }>
           ax = Add(au, ah)  first = Constant<value = int64[1] {0}>()  a1 = Unsqueeze(ax, first)  an = Concat<axis = 0>(a1, a1)  ay = ReduceSum(ax, one) },
         else_branch = b () => (float[n, 1] by, float[2, n, 3] bn) {
           bf = Conv<strides = [8]>(signal, w2)  bq = Squeeze(bf, last)  bh = Gather(state, zero)  bx = Sub(bq, bh)  by = ReduceSum(bx, one)  bn = Exp(state) }>
     }""", [[f32(n, t), f32(2, n, 3), i64(rate), f32(3, 1, 8), f32(3, 1, 8)] for n, t in ((1, 8), (3, 15)) for rate in (16000, 8000)], ["--dim=n=1..3", "--dim=t=8..15", "--dim=m=n"]),
    ("branch-with-a-count-as-a-float", """
     g (bool p, int64 m, float[4] x) => (float y) {
       y = If (p) <then_branch = a () => (float t) {
         mm = Cast<to = 1>(m)  r = Relu(x)  nz = NonZero(r)  n = Size(nz)  f = Cast<to = 1>(n)  t = Add(mm, f) },
                   else_branch = b () => (float t) { t = Constant<value = float {0.5}>() }>
     }""", [[np.array(p), i64(3), f32(4)] for p in (True, False)]),
    ("loop-that-carries-a-size-of-data", """
     g (float[6, 2] x, float[6] v, int64 n) => (float[m, 2] y, float[k] z, float[t, m, 2] all) {
       zero = Constant<value = float {0.}>()  pos = Greater(v, zero)  w = Compress<axis = 0>(x, pos)  c = Constant<value = bool {1}>()  both = Concat<axis = 0>(w, w)  u = Compress<axis = 0>(v, pos)
       p, q, all = Loop (n, c, w, u) <body = b (int64 i, bool ci, float[m0, 2] s, float[k0] l) => (bool co, float[m1, 2] so, float[k1] lo, float[m2, 2] row) {
         f = Cast<to = 1>(i)  d = Mul(s, f)  so = Add(d, w)  row = Neg(so)  lo = Concat<axis = 0>(l, u)  co = Identity(ci) }>
       y = Add(p, w)  a = Concat<axis = 0>(q, u)  z = Tanh(a)
     }""", [[f32(6, 2), np.array(v, np.float32), i64(n)] for v in ([-1] * 6, [1, 2, -3, -4, 5, 6]) for n in (1, 3)], ["--dim=p_trips=0..3", "--dim=k0=0..24"]),
    ("loop-over-the-rows-of-a-dynamic-tensor", """
     g (float[n, 3] x) => (float[3] y) {
       s = Shape(x)  z = Constant<value = int64 {0}>()  count = Gather(s, z)  c = Constant<value = bool[1] {1}>()
       zeros = Constant<value = float[3] {0., 0., 0.}>()
       y = Loop (count, c, zeros) <body = b (int64 i, bool ci, float[3] v) => (bool[1] co, float[3] vo) {
         row = Gather(x, i)  t = Tanh(v)  vo = Add(t, row)  co = Constant<value = bool[1] {1}>() }>
     }""", [[f32(k, 3)] for k in (1, 4, 9)], [], rows_summed),
    ("constants-shared-with-a-branch", """
     g (bool p, float[3] x) => (float[3] y) {
       q = If (p) <then_branch = a () => (float[3] t) { t = Constant<value = float[3] {5., 5., 5.}>() },
                   else_branch = b () => (float[3] t) { t = Neg(x) }>
       k = Constant<value = float[3] {5., 5., 5.}>()  y = Add(k, q)
     }""", [[np.array(p), f32(3)] for p in (True, False)]),
    ("loop-in-loop-without-a-trip", """
     g (int64 n, float[3] x) => (float[3] y) {
       c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = outer (int64 i, bool ci, float[3] v) => (bool co, float[3] vo) {
         co = Constant<value = bool {1}>()
         vo = Loop (i, co, v) <body = inner (int64 j, bool cj, float[3] u) => (bool cu, float[3] uo) {
           cu = Constant<value = bool {1}>()  uo = Add(u, x) }>
       }>
     }""", [[i64(k), f32(3)] for k in (0, 1, 4)]),
    ("loop-in-loop", """
     g (float[3] x) => (float[3] y) {
       n = Constant<value = int64 {3}>()  c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = outer (int64 i, bool ci, float[3] v) => (bool co, float[3] vo) {
         co = Identity(ci)  k = Constant<value = float {0.25}>()
         w = Mul(v, k)
         vo = Loop (i, ci, v) <body = inner (int64 j, bool cj, float[3] u) => (bool cu, float[3] uo) {
           cu = Identity(cj)  f = Cast<to = 1>(j)  uf = Add(u, f)  uo = Sub(uf, w)
         }>
       }>
     }""", [[f32(3)]]),
    ("elements-of-splits", """
     g (float[7, 4] x) => (float[3, 4] a, float[1, 4] b, float[7, 1] c, float[7, 3] d, float[7] e, float[7, 1] f) {
       zero = Constant<value = int64 {0}>()  last = Constant<value = int64 {-1}>()
       three = Constant<value = int64 {3}>()  rows = SplitToSequence<axis = 0>(x, three)
       a = SequenceAt(rows, zero)  b = SequenceAt(rows, last)
       sizes = Constant<value = int64[2] {1, 3}>()  columns = SplitToSequence<axis = 1>(x, sizes)
       c = SequenceAt(columns, zero)  d = SequenceAt(columns, last)
       flat = SplitToSequence<axis = -1, keepdims = 0>(x)  e = SequenceAt(flat, three)
       kept = SplitToSequence<axis = -1>(x)  f = SequenceAt(kept, last)
     }""", [[f32(7, 4)]]),
    ("elements-of-a-split-of-dynamic-rows", """
     g (float[n, 6] x) => (float[n, 2] y, float[m, 6] z) {
       one = Constant<value = int64 {1}>()  four = Constant<value = int64 {4}>()
       halves = SplitToSequence<axis = 1>(x, four)  y = SequenceAt(halves, one)
       parts = SplitToSequence(x, four)  z = SequenceAt(parts, one)
     }""", [[f32(n, 6)] for n in (5, 7, 9)], ["--dim=n=5..9"]),
    ("scan-axes-and-directions", """
     g (float[2] h, float[2, 5, 3] x) => (float[2] last, float[2, 5] rows) {
       last, rows = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                          scan_output_axes = [1], scan_output_directions = [1],
                          body = b (float[2] c, float[2, 3] s) => (float[2] co, float[2] r) {
         axis = Constant<value = int64[1] {1}>()
         m = ReduceSum<keepdims = 0>(s, axis)  co0 = Add(c, m)  co = Tanh(co0)  r = Sub(m, c)
       }>(h, x)
     }""", [[f32(2), f32(2, 5, 3)]]),
    ("scan-of-a-dynamic-length", """
     g (float[4] h, float[T, 4] x) => (float[4] last, float[T, 4] all) {
       last, all = Scan <num_scan_inputs = 1, body = b (float[4] c, float[4] s) => (float[4] co, float[4] r) {
         co = Add(c, s)  r = Identity(co) }>(h, x)
     }""", [[f32(4), f32(n, 4)] for n in (1, 2, 7)]),
    ("function-with-attribute-and-default", """
     g (float[2, 3] x) => (float[2, 3] y) {
       a = own.scaled<by = 2.5>(x)
       b = own.scaled(a)
       y = own.twice(b)
     }
     <domain: "own", opset_import: ["" : 18]> scaled <by: float = 0.5> (x) => (y) {
       k = Constant<value_float: float = @by>()  y = Mul(x, k) }
     <domain: "own", opset_import: ["" : 18, "own" : 1]> twice (x) => (y) {
       a = own.scaled<by = 3.0>(x)  y = Add(a, x) }""", [[X23]]),
    ("function-of-another-opset", """
     g (float[2, 3] x) => (float[2] y) { y = own.total(x) }
     <domain: "own", opset_import: ["" : 11]> total (x) => (y) { y = ReduceSum<axes = [1], keepdims = 0>(x) }""", [[X23]],
     [], lambda x: [x.sum(1)]),
    ("nodes-in-reverse-order", """
     g (float[2, 3] x) => (float[2, 3] y) { y = Add(c, a)  c = Mul(b, x)  b = Tanh(a)  a = Exp(x) }""", [[X23]]),
    ("bodies-and-functions-that-are-not-sorted", """
     g (bool p, float[2, 3] x) => (float[2, 3] y) {
       z = own.f(r)
       y = Neg(z)
       r = If (p) <then_branch = a () => (float[2, 3] t) { t = Add(u, late)  u = Tanh(late) },
                   else_branch = b () => (float[2, 3] t) { t = Mul(x, late) }>
       late = Exp(x)
     }
     <domain: "own", opset_import: ["" : 18]> f (v) => (w) { w = Add(u, v)  u = Sqrt(t)  t = Abs(v) }""",
     [[np.array(p), X23] for p in (True, False)], [],
     lambda p, x: [-(np.sqrt(np.abs(r := np.tanh(np.exp(x)) + np.exp(x) if p else x * np.exp(x))) + r)]),
    ("sequences", """
     g (float[2, 3] x, float[1, 3] z, float[n, 3] w) => (float[k, 3] y, float[3] row, int64 count, float[j, 3] part) {
       s = SequenceConstruct(x, z)  minus = Constant<value = int64 {-2}>()  one = Constant<value = int64 {1}>()
       t = SequenceInsert(s, w, minus)  u = SequenceInsert(t, z)  v = SequenceErase(u, one)  same = Identity(v)
       y = ConcatFromSequence<axis = -2>(same)  count = SequenceLength(v)
       rows = SplitToSequence<keepdims = 0>(x)  row = SequenceAt(rows, one)
       pieces = SplitToSequence(y, one)  part = SequenceAt(pieces, one)
     }""", [[X23, f32(1, 3), f32(k, 3)] for k in (1, 4)], ["--dim=n=1..4"]),
    ("sequences-as-inputs-and-outputs", """
     g (seq(float[n]) x, optional(float[3]) o, optional(seq(float[3])) p) => (seq(float[n]) y, float[3] z, bool has, bool lacks) {
       y = SequenceMap<body = m (float[n] e) => (float[n] r) { r = Tanh(e) }>(x)
       has = OptionalHasElement(o)  lacks = OptionalHasElement(p)
       z = If (has) <then_branch = a () => (float[3] t) { u = OptionalGetElement(o)  t = Neg(u) },
                     else_branch = b () => (float[3] t) { t = SequenceAt(p, p) }>
     }""", [[[f32(4), f32(2)], f32(3), None]], [],
     lambda x, o, p: [[np.tanh(e) for e in x], -o, np.array(True), np.array(False)]),
    ("sequences-of-dynamic-elements", """
     g (seq(float[]) x) => (seq(float[]) y, float[k, 3] z) { z = ConcatFromSequence<axis = 0>(x)  y = SequenceInsert(x, z) }""",
     [[[f32(2, 3), f32(k, 3)]] for k in (1, 4)], ["--elements=x=[2,3],[n,3]", "--dim=n=1..4"],
     lambda x: [[*x, np.concatenate(x)], np.concatenate(x)]),
    ("sequences-that-branches-give", """
     g (bool p, float[3] x, float[n] z) => (float[k] y) {
       s = If (p) <then_branch = a () => (seq(float[]) t) { t = SequenceConstruct(x, z) }, else_branch = b () => (seq(float[]) t) { t = SequenceConstruct(z, x) }>
       y = ConcatFromSequence<axis = 0>(s)
     }""", [[np.array(p), f32(3), f32(k)] for p in (True, False) for k in (1, 4)], ["--dim=n=1..4"]),
    ("column_stack-and-dstack", """
     g (float[3] a, float[3, 2] b) => (float[3, 3] y, float[3, 3, 1] z) {
       s = SequenceConstruct(a, b)
       columns = SequenceMap<body = m (float[] e) => (float[] r) {
         shape = Shape(e)  rank = Size(shape)  one = Constant<value = int64 {1}>()  flat = Equal(rank, one)
         r = If (flat) <then_branch = yes () => (float[k, 1] t) { to = Constant<value_ints = [-1, 1]>()  t = Reshape(e, to) },
                        else_branch = no () => (float[k, l] t) { t = Identity(e) }>
       }>(s)
       y = ConcatFromSequence<axis = 1>(columns)
       axis = Constant<value_ints = [2]>()
       deep = SequenceMap<body = d (float[k, l] e) => (float[k, l, 1] r) { r = Unsqueeze(e, axis) }>(columns)
       z = ConcatFromSequence<axis = 1>(deep)
     }""", [[f32(3), f32(3, 2)]], [], lambda a, b: [np.column_stack([a, b]), np.column_stack([a, b])[..., None]]),
    ("sequences-in-functions-and-maps-of-several", """
     g (float[4, 3] x, float[3] z) => (float[4, 3] y) { y = own.f(x, z) }
     <domain: "own", opset_import: ["" : 18, "own" : 1]> f (x, z) => (y) {
       two = Constant<value = int64 {2}>()  s = SplitToSequence<axis = 0>(x, two)  r = own.reversed(s)
       m = SequenceMap<body = b (float[2, 3] a, float[2, 3] b, float[3] c) => (float[2, 3] o) { p = Mul(a, c)  o = Sub(p, b) }>(s, r, z)
       y = ConcatFromSequence<axis = 0>(m)
     }
     <domain: "own", opset_import: ["" : 18]> reversed (s) => (r) {
       zero = Constant<value = int64 {0}>()  one = Constant<value = int64 {1}>()
       a = SequenceAt(s, zero)  b = SequenceAt(s, one)
       e = SequenceEmpty<dtype = 1>()  f = SequenceInsert(e, b)  r = SequenceInsert(f, a)
     }""", [[f32(4, 3), f32(3)]], [], lambda x, z: [x * z - np.concatenate([x[2:], x[:2]])]),
    ("elements-stacked-and-captured", """
     g (bool p, float[3] a, float[3] b) => (float[3, 2] y) {
       s = SequenceConstruct(a, b)  zero = Constant<value = int64 {0}>()
       y = If (p) <then_branch = t () => (float[3, 2] r) { r = ConcatFromSequence<axis = -1, new_axis = 1>(s) },
                   else_branch = e () => (float[3, 2] r) { f = SequenceAt(s, zero)  g = SequenceConstruct(f, f)
                                                           r = ConcatFromSequence<axis = 1, new_axis = 1>(g) }>
     }""", [[np.array(p), f32(3), f32(3)] for p in (True, False)]),
    ("shapes-from-counts-of-a-mask", """
     g (float[n, 5] x, bool[n] m, float v, float[n, 5] w) => (float[n, 5] y, float[n, 5] z, float[k, 5] head) {
       i = NonZero(m)  it = Transpose(i)  five = Constant<value_ints = [5]>()  mi = Cast<to = 7>(m)  s = ReduceSum(mi)
       shape = Concat<axis = 0>(s, five)  e = Expand(v, shape)  y = ScatterND(x, it, e)
       zero = Constant<value_ints = [0]>()  head = Slice(x, zero, s)
       bits = Greater(w, x)  j = NonZero(bits)  jt = Transpose(j)  bi = Cast<to = 6>(bits)  t = ReduceSum<keepdims = 0>(bi)
       tl = Cast<to = 7>(t)  t1 = Unsqueeze(tl, zero)  f = Expand(v, t1)  z = ScatterND(x, jt, f)
     }""", [[f32(n, 5), np.array([bool(k >> i & 1) for i in range(n)]), np.array(7, np.float32), f32(n, 5)] for n in (1, 4) for k in (0, 5, 15)],
     ["--dim=n=1..9"]),
    ("slices-by-data", """
     g (float[n, 5] x, int64[1] a, int64[1] b) => (float[k, 5] y, float[j, 5] z, float[l, 5] w, float[m, 2] v) {
       zero = Constant<value_ints = [0]>()  y = Slice(x, zero, a)  z = Slice(x, a, b)
       back = Constant<value_ints = [-2]>()  w = Slice(x, a, b, zero, back)
       both = Concat<axis = 0>(a, zero)  two = Constant<value_ints = [2]>()  ends = Concat<axis = 0>(b, two)
       v = Slice(x, both, ends)
     }""", [[f32(n, 5), i64([a]), i64([b])] for n in (0, 1, 7) for a, b in
            ((0, 3), (2, 99), (-2, 5), (5, -1), (3, -(2**63)), (2**63 - 1, 0), (-99, 2), (1, 1))], ["--dim=n=0..9"]),
    ("tensor_split", """
     g (float[2, n] x, int64[2] at) => (float[2, a] p, float[2, b] q, float[2, c] r) {
       zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()  two = Constant<value_ints = [2]>()
       far = Constant<value_ints = [9223372036854775807]>()
       i = Slice(at, zero, one, zero)  j = Slice(at, one, two, zero)
       p = Slice(x, zero, i, one)  q = Slice(x, i, j, one)  r0 = Slice(x, j, far, one)  r = Neg(r0)
     }""", [[f32(2, n), i64(at)] for n in (3, 8) for at in ([1, 3], [0, 0], [4, 2], [-2, -1])], ["--dim=n=1..8"]),
    ("function-with-control-inside", """
     g (bool p, float[3] x) => (float[3] y) { y = own.choose(p, x) }
     <domain: "own", opset_import: ["" : 18]> choose (p, x) => (y) {
       y = If (p) <then_branch = a () => (float[3] t) { t = Neg(x) }, else_branch = b () => (float[3] t) { t = Exp(x) }>
     }""", [[np.array(p), f32(3)] for p in (True, False)]),
]  # fmt: skip

# name, model, a part of the sentence, flags
REFUSALS = [
    ("every-op-that-is-not-there", """
     g (float[3] x) => (float[3] y) { a = Unheard(x)  b = Unknown(a)  c = Unheard(b)  d = Reshape(x, x)  y = Add(c, d) }""",
     "node number 0 (Unheard, opset 18): this op is not supported at any opset (2 nodes are of it)"),
    ("function-that-calls-itself", """
     g (float[3] x) => (float[3] y) { y = own.f(x) }
     <domain: "own", opset_import: ["" : 18, "own" : 1]> f (x) => (y) { y = own.f(x) }""", "nest deeper than 32"),
    ("function-that-explodes", """
     g (float[3] x) => (float[3] y) { y = own.f0(x) }
     """ + "".join(f"""<domain: "own", opset_import: ["" : 18, "own" : 1]> f{k} (x) => (y)
       {{ a = own.f{k + 1}(x) b = own.f{k + 1}(a) c = own.f{k + 1}(b) y = own.f{k + 1}(c) }}
     """ for k in range(20)) + """<domain: "own", opset_import: ["" : 18]> f20 (x) => (y) { y = Neg(x) }""",
     "expand to more than"),
    ("branches-of-different-ranks", """
     g (bool p, float[3] x) => (float[k] y) {
       y = If (p) <then_branch = a () => (float[3] t) { t = Neg(x) },
                   else_branch = b () => (float[1, 3] t) { t = Constant<value = float[1, 3] {1., 2., 3.}>() }>
     }""", "types and ranks must be equal where the condition is not known; if it is the same in every call, give --constant p=FILE.npy"),
    ("branches-of-different-ranks-by-an-extent", """
     g (float[n, k, 3] x) => (float[n, 3] y) {
       s = Shape<start = 1, end = 2>(x)  one = Constant<value = int64[1] {1}>()  c = Equal(s, one)
       y = If (c) <then_branch = a () => (float[n, 3] t) { t = Squeeze(x, one) }, else_branch = b () => (float[n, k, 3] t) { t = Identity(x) }>
     }""", "If 'y': both branches are compiled, because its condition is not known; it is known with --dim k=1 or --dim k=2..4",
     "--dim=n=1..2", "--dim=k=1..4"),
    ("loop-whose-body-has-two-extents-that-are-one", """
     g (float[a, 4] x, float[b, 4] h) => (float[a, 4] y) {
       n = Constant<value = int64 {3}>()  c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = q (int64 i, bool ci, float[a, 4] v) => (bool co, float[a, 4] vo) { co = Identity(ci)  vo = Add(v, h) }>
     }""", "with these flags the model is read, in place of every --dim given: --dim a=b --dim b=1..4", "--dim=a=1..4", "--dim=b=1..4"),
    ("scan-whose-body-has-two-extents-that-are-one", """
     g (float[a, 4] x, float[b, 4] h, float[5, 4] s) => (float[a, 4] y, float[5, a, 4] z) {
       y, z = Scan <num_scan_inputs = 1, body = q (float[a, 4] v, float[4] r) => (float[a, 4] vo, float[a, 4] zo) {
         t = Add(v, h)  vo = Add(t, r)  zo = Neg(vo) }> (x, s)
     }""", "with these flags the model is read, in place of every --dim given: --dim a=b --dim b=1..4", "--dim=a=1..4", "--dim=b=1..4"),
    ("everything-beside-a-dim-without-bounds", """
     g (float[n, 3] x) => (float[n, 3] y, float[n, 3] z) { y = Unheard(x) z = Softmax<axis = 7>(x) }
     """, "Softmax"),
    ("loop-without-a-bound", """
     g (int64 n, float[3] x) => (float[3] y, float[k, 3] all) {
       c = Constant<value = bool {1}>()
       y, all = Loop (n, c, x) <body = b (int64 i, bool ci, float[3] v) => (bool co, float[3] vo, float[3] r) {
         co = Identity(ci)  vo = Neg(v)  r = Neg(v) }>
     }""", "--dim y_trips=0..100"),
    ("loop-that-doubles-until", """
     g (int64 n, float[2, 3] x) => (float[k, 3] y) {
       c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = b (int64 i, bool ci, float[t, 3] v) => (bool co, float[u, 3] vo) {
         co = Identity(ci)  m = Neg(v)  vo = Concat<axis = 0>(v, m) }>
     }""", "changes its extent along axis 0 from trip to trip, and needs bounds: give --dim t=1..64"),
    ("loop-that-reads-a-shape-alone", """
     g (int64 n, float[2, 3] x) => (float[k, 3] y) {
       c = Constant<value = bool {1}>()
       y = Loop (n, c, x) <body = b (int64 i, bool ci, float[t, 3] v) => (bool co, float[u, 3] vo) {
         co = Identity(ci)  s = Shape(v)  more = Constant<value = int64[2] {1, 0}>()  to = Add(s, more)
         vo = ConstantOfShape(to) }>
     }""", "changes its extent 't' from trip to trip, and the body reads none of its elements", "--dim=t=1..64"),
    ("split-without-such-an-element", """
     g (float[7] x) => (float[k] y) {
       three = Constant<value = int64 {3}>()  s = SplitToSequence(x, three)  y = SequenceAt(s, three) }""",
     "the position is 3, and the sequence has 3 elements"),
    ("split-that-may-lack-an-element", """
     g (float[n] x) => (float[k] y) {
       three = Constant<value = int64 {3}>()  s = SplitToSequence(x, three)  y = SequenceAt(s, three) }""",
     "and perhaps none at position 3; give --dim n=10..99", "--dim=n=1..99"),
    ("split-whose-sizes-are-others", """
     g (float[7] x) => (float[k] y) {
       sizes = Constant<value = int64[2] {3, 3}>()  one = Constant<value = int64 {1}>()
       s = SplitToSequence(x, sizes)  y = SequenceAt(s, one) }""", "all pieces and of what is split are not equal"),
    ("element-at-a-position-of-data", """
     g (float[7] x, int64 i) => (float[k] y) {
       three = Constant<value = int64 {3}>()  s = SplitToSequence(x, three)  y = SequenceAt(s, i) }""",
     "the position (input 1) depends on data"),
    ("length-of-data", """
     g (float[n] x) => (float[k] y) {
       three = Constant<value = int64 {3}>()  s = SplitToSequence(x, three)  e = SequenceErase(s)  y = ConcatFromSequence<axis = 0>(e) }""",
     "the sequence has floordiv(n + 2, 3) elements, a constant is needed; fix n with --dim n=N", "--dim=n=7..10"),
    ("sequence-as-a-tensor", """
     g (float[7] x) => (float[k] y) { s = SequenceConstruct(x, x)  y = Relu(s) }""",
     "input 's' is a sequence, which is not supported here"),
    ("tensor-as-a-sequence", """
     g (float[7] x) => (int64 y) { y = SequenceLength(x) }""", "input 0 is a tensor, expected a sequence"),
    ("sequence-of-two-types", """
     g (float[7] x, int64[7] z) => (int64 y) { s = SequenceConstruct(x, z)  y = SequenceLength(s) }""",
     "an element is of type i64, the sequence of f32"),
    ("sequence-of-unknown-length-as-an-output", """
     g (float[n] x) => (seq(float[k]) y) { three = Constant<value = int64 {3}>()  y = SplitToSequence(x, three) }""",
     "output 'y': the sequence has floordiv(n + 2, 3) elements, a constant is needed; fix n with --dim n=N", "--dim=n=7..10"),
    ("nothing-as-an-output", """
     g (float[7] x) => (seq(float[7]) y) { y = SequenceEmpty<dtype = 1>() }""", "no output of the model has an element"),
    ("nothing-as-a-tensor", """
     g (float[7] x) => (float[7] y) { o = Optional()  y = Add(o, x) }""", "input 0 is missing"),
    ("element-of-nothing", """
     g (float[7] x) => (float[7] y) { o = Optional()  y = OptionalGetElement(o) }""", "the optional value has no element"),
    ("sequence-as-an-input", """
     g (seq(float[n]) x) => (float[k] y) { y = ConcatFromSequence<axis = 0>(x) }""",
     "as --elements 'x=[2,3],[n,3]', or, where the model declares the shape of each, their number, as --elements x=2"),
    ("elements-of-no-input", """
     g (float[7] x) => (float[7] y) { y = Neg(x) }""",
     "--elements x: the model has no input of this name that is a sequence", "--elements=x=2"),
    ("elements-that-nobody-understands", """
     g (seq(float[3]) x) => (float[k] y) { y = ConcatFromSequence<axis = 0>(x) }""",
     "--elements 'x=[2,': expected none, a number of elements up to 4096, or the shape of each", "--elements=x=[2,"),
    ("no-sequence", """
     g (seq(float[3]) x) => (float[k] y) { y = ConcatFromSequence<axis = 0>(x) }""",
     "the input is no optional value; a sequence without elements is =0", "--elements=x=none"),
    ("loop-that-carries-a-sequence", """
     g (int64 trips, float[3] x) => (float[k] y) {
       s = SequenceConstruct(x)  true = Constant<value = bool {1}>()
       t = Loop(trips, true, s) <body = b (int64 i, bool c, seq(float[3]) v) => (bool d, seq(float[3]) w) { d = Identity(c)  w = SequenceInsert(v, x) }>
       y = ConcatFromSequence<axis = 0>(t) }""",
     "it carries a sequence or an optional value: its limit must be known and at most 64, its conditions known; if it is the same in every call, give --constant trips=FILE.npy"),
    ("sequence-that-a-branch-gives", """
     g (bool p, float[7] x) => (int64 y) {
       s = If (p) <then_branch = a () => (seq(float[7]) t) { t = SequenceConstruct(x, x) }, else_branch = b () => (seq(float[7]) t) { t = SequenceConstruct(x) }>
       y = SequenceLength(s) }""", "the branches give a sequence of 2 elements and a sequence of 1 elements: both must be of one form where the condition is not known"),
    ("cycle", """
     g (float[3] x) => (float[3] y) { a = Add(x, c)  b = Neg(a)  c = Tanh(b)  y = Exp(c)  z = Neg(x) }""",
     "nodes number 0 (Add), number 2 (Tanh) and number 1 (Neg) form a cycle, in which each reads an output of the next"),
    ("cycle-of-one", """
     g (float[3] x) => (float[3] y) { y = own.f(x) }
     <domain: "own", opset_import: ["" : 18]> f (v) => (w) { w = Add(w, v) }""",
     "node number 0 (own::f, opset 1): node number 0 (Add) reads its own output: a graph has no cycles"),
    ("cycle-through-a-body", """
     g (bool p, float[3] x) => (float[3] y) {
       y = If (p) <then_branch = a () => (float[3] t) { t = Neg(z) }, else_branch = b () => (float[3] t) { t = Neg(x) }>
       z = Exp(y) }""", "nodes number 0 (If) and number 1 (Exp) form a cycle"),
    ("window-that-may-not-fit", """
     g (float[1, 1, t] x, float[1, 1, 3] w) => (float[1, 1, k] y) { y = Conv(x, w) }""",
     "extent t of a spatial axis may be smaller than the window of 3 allows; give --dim t=3..8", "--dim=t=0..8"),
    ("window-that-does-not-fit", """
     g (float[1, 1, 2] x) => (float[1, 1, k] y) { y = MaxPool<kernel_shape = [5], strides = [2]>(x) }""",
     "extent 2 of a spatial axis is smaller than the window of 5 allows"),
    ("transposed-to-a-negative-extent", """
     g (float[1, 1, t] x, float[1, 1, 3] w) => (float[1, 1, k] y) { y = ConvTranspose<pads = [2, 2], strides = [2]>(x, w) }""",
     "the result's extent t*2 - 3 may be negative; give --dim t=2..8", "--dim=t=0..8"),
    ("reflection-of-too-little", """
     g (float[t] x) => (float[k] y) { p = Constant<value_ints = [2, 1]>()  y = Pad<mode = "reflect">(x, p) }""",
     "mode 'reflect' needs it; give --dim t=3..8", "--dim=t=1..8"),
    ("body-with-unknown-op", """
     g (bool p, float[3] x) => (float[3] y) {
       y = If (p) <then_branch = a () => (float[3] t) { t = Unheard(x) }, else_branch = b () => (float[3] t) { t = Neg(x) }>
     }""", "then_branch: node number 0 (Unheard, opset 18): this op is not supported"),
]  # fmt: skip


def fits(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(fits, found, expected))
    return found.dtype == expected.dtype and found.shape == expected.shape and np.allclose(found, expected, 1e-5, 1e-5)


def check(name, model, calls, flags=(), expected=None):
    rep = AstraBackend.prepare(model, flags=flags)
    if callable(expected):
        expected = [expected(*inputs) for inputs in calls]
    session = None if expected else onnxruntime.InferenceSession(model.SerializeToString())
    for k, inputs in enumerate(calls):
        wanted = expected[k] if expected else session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs)))
        for found, right in zip(rep.run(inputs), wanted, strict=True):
            if not fits(found, right):
                raise Failed(f"call {k}: found {found}, expected {right}")


def refusal(model, flags=()):
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        done = command(BUILD / "bin/astra-compile", f"{folder}/model.onnx", "-o", f"{folder}/out", *flags)
        if done.returncode == 0:
            raise Failed("was compiled")
        return done.stderr


def flags_of(sentence):
    """The --dim flags that the first remedy of a refusal says to type."""
    remedy = re.search(r"say so with((?: --dim (?:'[^']*'|[^ ,']+))+)", sentence)
    if not remedy:
        raise Failed(f"no flags in: {sentence}")
    return [w for w in shlex.split(remedy[1]) if w != "--dim"]


def remedied(name, text, calls):
    """A model that is refused until the user says what it says to: then it agrees at all sizes."""
    model = onnx.parser.parse_model(HEAD + text)
    given = {"H": "1..48", "W": "2..40", "n": "1..3"}
    for _ in range(4):
        flags = [f"--dim={d}={v}" for d, v in given.items()]
        try:
            sentence = refusal(model, flags)
        except Failed:
            return check(name, model, calls, flags)
        given |= dict(flag.split("=", 1) for flag in flags_of(sentence))
    raise Failed(f"still refused: {sentence}")


# name, model, calls: what holds for multiples alone
MULTIPLES = [
    ("u-net-of-dynamic-size", """
     g (float[n, 2, H, W] x, float[4, 2, 3, 3] a, float[4, 4, 3, 3] b, float[4, 4, 2, 2] u, float[4, 4, 2, 2] v,
        float[1, 6, 1, 1] o) => (float[n, c, h, w] y) {
       d1 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, a)  r1 = Relu(d1)
       d2 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(r1, b)  r2 = Relu(d2)
       u1 = ConvTranspose<strides = [2, 2]>(r2, u)  s1 = Add(u1, r1)
       u2 = ConvTranspose<strides = [2, 2]>(s1, v)
       all = Concat<axis = 1>(u2, x)  y = Conv(all, o)
     }""", [[f32(*x)] + [f32(*w) / 4 for w in [(4, 2, 3, 3), (4, 4, 3, 3), (4, 4, 2, 2), (4, 4, 2, 2), (1, 6, 1, 1)]]
             for x in [(1, 2, 8, 12), (3, 2, 4, 40), (2, 2, 48, 4)]]),
    ("windows-of-dynamic-images", """
     g (float[n, 3, H, W] x) => (float[n, 3, h, w] y) {
       k = Constant<value_ints = [8]>()  s = Shape(x)
       i0 = Constant<value_ints = [0]>()  i2 = Constant<value_ints = [2]>()  i3 = Constant<value_ints = [3]>()
       c = Constant<value_ints = [3]>()  one = Constant<value_ints = [-1]>()  area = Constant<value_ints = [64]>()
       n0 = Gather(s, i0)  h0 = Gather(s, i2)  w0 = Gather(s, i3)  h8 = Div(h0, k)  w8 = Div(w0, k)
       split = Concat<axis = 0>(n0, c, h8, k, w8, k)  x6 = Reshape(x, split)
       p = Transpose<perm = [0, 2, 4, 3, 5, 1]>(x6)
       rows = Concat<axis = 0>(one, area, c)  win = Reshape(p, rows)
       axes = Constant<value_ints = [1]>()  m = ReduceMean(win, axes)  z = Sub(win, m)
       back = Concat<axis = 0>(n0, h8, w8, k, k, c)  z6 = Reshape(z, back)
       q = Transpose<perm = [0, 5, 1, 3, 2, 4]>(z6)  y = Reshape(q, s)
     }""", [[f32(1, 3, 8, 8)], [f32(2, 3, 48, 16)], [f32(3, 3, 16, 40)]]),
    ("space-to-depth-of-dynamic-size", """
     g (float[n, 3, H, W] x) => (float[n, c, h, w] y) { y = SpaceToDepth<blocksize = 3>(x) }
     """, [[f32(1, 3, 3, 6)], [f32(2, 3, 48, 39)]]),
]  # fmt: skip


def sparse_model():
    """y = x + a sparse initializer in both forms of indices."""
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "s")
    by_place = helper.make_sparse_tensor(values, numpy_helper.from_array(i64([0, 4, 5])), [2, 3])
    values = numpy_helper.from_array(np.array([7], np.float32), "t")
    by_axes = helper.make_sparse_tensor(values, numpy_helper.from_array(i64([[1, 2]])), [2, 3])
    nodes = [helper.make_node("Add", ["x", "s"], ["a"]), helper.make_node("Add", ["a", "t"], ["y"])]
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], sparse_initializer=[by_place, by_axes])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
    dense = np.array([[1, 0, 0], [0, 2, 3 + 7]], np.float32)
    return model, [[X23]], [[X23 + dense]]


def large_model():
    """Weights of 2.1 GiB, nearly all in a hole of the external file: the last rows are read."""
    rows, last = 2200, f32(1, 1 << 18)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/w.bin", "wb") as file:
            file.seek((rows - 1) << 20)
            file.write(last.tobytes())
        w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, 1 << 18], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "w.bin"), ("offset", "0"), ("length", str(rows << 20))):
            w.external_data.add(key=key, value=value)
        graph = helper.make_graph(
            [helper.make_node("Gather", ["w", "i"], ["r"]), helper.make_node("ReduceSum", ["r"], ["y"], keepdims=0)], "g",
            [helper.make_tensor_value_info("i", TensorProto.INT64, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])], [w])  # fmt: skip
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
        Path(f"{folder}/m.onnx").write_bytes(model.SerializeToString())
        for words in (["astra-compile", "m.onnx", "-o", "m.astra", "--target=cpu:x86-64-v3"],
                      ["astra-run", "m.astra", f"--input=i={folder}/i.npy", f"--output=y={folder}/y.npy"]):  # fmt: skip
            np.save(f"{folder}/i.npy", i64([rows - 1]))
            words = [f"{folder}/{w}" if w.startswith("m.") else w for w in words]
            done = command(BUILD / "bin" / words[0], *words[1:])
            if done.returncode:
                raise Failed(f"{words[0]}: {done.stderr}")
        found = np.load(f"{folder}/y.npy")
        if not np.allclose(found, last.astype(np.float64).sum(), 1e-4, 1e-2):
            raise Failed(f"found {found}, expected {last.sum()}")


def main():
    tests = []
    for name, text, calls, *flags in MODELS:
        parsed = onnx.parser.parse_model(HEAD + text)
        tests.append((name, lambda n=name, m=parsed, c=calls, f=flags: check(n, m, c, *f)))
    for name, text, part, *flags in REFUSALS:
        def refused(text=text, part=part, flags=flags):
            sentence = refusal(onnx.parser.parse_model(HEAD + text), flags)
            if part not in sentence:
                raise Failed(f"refused with: {sentence}")
        tests.append((name, refused))
    for name, text, calls in MULTIPLES:
        tests.append((name, lambda n=name, t=text, c=calls: remedied(n, t, c)))
    model, calls, expected = sparse_model()
    tests.append(("sparse-initializers", lambda: check("sparse", model, calls, (), expected)))
    if "--large" in sys.argv[1:]:
        tests.append(("two-gigabytes", large_model))
    return run(tests)


if __name__ == "__main__":
    sys.exit(main())
