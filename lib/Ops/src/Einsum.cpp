//===- Einsum.cpp: Einstein sums of tensors without a model -----------------===//
// Takes:    an equation with the order of contraction behind it, which may be wrong in every way, and operands.
// Gives:    operations of this library, pair by pair: a diagonal is a view, labels of one operand alone are a sum, and
//           a pair is a product of matrices, or of elements where nothing is summed.
// Keeps:    the steps of compose::einsum (lib/Compose/Einsum.cpp). Labels that a pair sums are one axis of its product,
//           in the order in which they first occur.
// Does not: choose an order, or slice.
#include "Ops.h"

namespace astra::ops {

namespace {

constexpr uint32_t kMostOperands = 32, kMostLabels = 52 + ASTRA_MAX_RANK, kEllipsis = 128;

/// Labels in an order, each by its number.
struct Labels {
  uint32_t count = 0, at[ASTRA_MAX_RANK];
  bool has(uint32_t label) const { return find(label) < count; }
  uint32_t find(uint32_t label) const {
    uint32_t i = 0;
    while (i < count && at[i] != label) i++;
    return i;
  }
  /// False where there is no room.
  bool add(uint32_t label) { return count < ASTRA_MAX_RANK && (at[count++] = label, true); }
};

/// An operand or what a step gave: its axes have labels, each once when it is contracted.
struct Labelled {
  Labels labels;
  View view = ASTRA_INIT(View);
  bool owns = false;
  Labelled() = default;
  Labelled(const Labelled &) = delete;
  ~Labelled() { drop(); }
  void drop() {
    if (owns) astra_buffer_free(&view.buffer);
    owns = false;
  }
  void become(const View &v, bool isOwn) {
    drop();
    view = v, owns = isOwn;
  }
  void take(Labelled &other) {
    become(other.view, other.owns);
    labels = other.labels, other.owns = false;
  }
};

struct Einsum {
  astra_ops *ops;
  astra_stream *stream;
  const char *text;
  astra_diag *diag;
  Labelled left[kMostOperands];
  uint32_t numLeft = 0;
  Labels result;
  int64_t extents[kMostLabels];
  uint32_t holders[kMostLabels] = {}; ///< operands that are left and have the label
  uint32_t names[kMostLabels], numLabels = 0;

  Einsum(astra_ops *ops, astra_stream *stream, const char *text, astra_diag *diag)
      : ops(ops), stream(stream), text(text), diag(diag) {}

  //===- What the text says --------------------------------------------------===//

  static bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
  uint32_t numberOf(uint32_t name) {
    uint32_t l = 0;
    while (l < numLabels && names[l] != name) l++;
    return l;
  }
  /// "ab...c" up to a comma, an arrow, a word behind a space or the end: names of axes, `places` of the ellipsis.
  Status readTerm(const char *&at, int32_t places, Labels &out, int32_t &letters, bool &isOpen) {
    out.count = 0, letters = 0, isOpen = false;
    for (;; at++) {
      if (*at == ' ' && !isWord(at)) continue;
      if (!*at || *at == ',' || *at == '-' || *at == ' ') return ASTRA_OK;
      bool isRoom = true;
      if (isLetter(*at)) {
        letters++, isRoom = out.add(uint32_t(*at));
      } else if (at[0] == '.' && at[1] == '.' && at[2] == '.' && !isOpen) {
        isOpen = true, at += 2;
        for (int32_t i = places; i-- > 0 && isRoom;) isRoom = out.add(kEllipsis + uint32_t(i));
      } else {
        return fail(diag, ASTRA_INVALID_ARGUMENT,
                    "einsum: '%.16s' in the equation is no letter, and no ellipsis that is the only one", at);
      }
      if (!isRoom)
        return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: a part of the equation names more than %d axes",
                    ASTRA_MAX_RANK);
    }
  }
  /// Whether what follows a space is the end of the equation.
  static bool isWord(const char *at) {
    while (*at == ' ') at++;
    const char *word = at;
    while (isLetter(*at)) at++;
    return !*word || (at > word && *at == '=');
  }

  Status readOperands(const char *&at, const View *const *operands, uint32_t count) {
    if (!count || count > kMostOperands)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: %u operands; 1 to %u are allowed", count, kMostOperands);
    int32_t places = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (!operands[i] || operands[i]->size < sizeof(View))
        return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: operand %u is NULL or its size is not set", i);
      const View &v = *operands[i];
      astra_tensor described = ASTRA_INIT(astra_tensor);
      if (Status s = astra_view_describe(&v, &described, diag)) return s;
      if (v.dtype != operands[0]->dtype)
        return fail(diag, ASTRA_WRONG_DTYPE, "einsum: operand %u is %s and operand 0 %s; cast one", i,
                    astra_dtype_name(v.dtype), astra_dtype_name(operands[0]->dtype));
      if (i && *at++ != ',')
        return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the equation has %u operands, and %u are given", i, count);
      const char *begin = at;
      int32_t letters;
      bool isOpen;
      Labels axes;
      if (Status s = readTerm(at, 0, axes, letters, isOpen)) return s;
      if (isOpen ? v.ndim < letters : v.ndim != letters)
        return fail(diag, ASTRA_WRONG_RANK, "einsum: operand %u has %d axes, its part of the equation names %d", i,
                    v.ndim, letters);
      if (v.ndim - letters > places) places = v.ndim - letters;
      at = begin;
      if (Status s = readTerm(at, v.ndim - letters, axes, letters, isOpen)) return s;
      for (uint32_t k = 0; k < axes.count; k++) {
        uint32_t l = numberOf(axes.at[k]);
        if (l == numLabels) names[l] = axes.at[k], extents[l] = 1, numLabels++;
        int64_t n = v.shape[k];
        if (n != 1 && extents[l] != 1 && extents[l] != n)
          return fail(diag, ASTRA_WRONG_SHAPE, "einsum: axis %u of operand %u has %lld elements; it must have %lld", k,
                      i, static_cast<long long>(n), static_cast<long long>(extents[l]));
        for (uint32_t before = 0; before < k; before++)
          if (axes.at[before] == axes.at[k] && v.shape[before] != n)
            return fail(diag, ASTRA_WRONG_SHAPE,
                        "einsum: axes %u and %u of operand %u are a diagonal, of %lld and %lld", before, k, i,
                        static_cast<long long>(v.shape[before]), static_cast<long long>(n));
        if (n != 1) extents[l] = n;
        left[i].labels.add(l);
      }
      left[i].view = v;
    }
    numLeft = count;
    if (*at == ',')
      return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the equation has more than the %u operands that are given",
                  count);
    return readResult(at, places);
  }

  Status readResult(const char *&at, int32_t places) {
    Labels axes;
    int32_t letters;
    bool isOpen = places > 0;
    if (at[0] == '-' && at[1] == '>') {
      at += 2;
      if (Status s = readTerm(at, places, axes, letters, isOpen)) return s;
      if (places && !isOpen)
        return fail(diag, ASTRA_INVALID_ARGUMENT,
                    "einsum: the operands of the equation have an ellipsis, its result has none");
      if (*at == ',' || *at == '-') return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: an equation has one result");
    } else if (*at == '-') {
      return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: '%.16s' in the equation is no arrow", at);
    } else {
      for (int32_t i = places; i-- > 0;) axes.add(kEllipsis + uint32_t(i));
      for (uint32_t name = 'A'; name <= 'z'; name++) {
        uint32_t l = numberOf(name), times = 0;
        for (uint32_t i = 0; l < numLabels && i < numLeft; i++)
          for (uint32_t k = 0; k < left[i].labels.count; k++) times += left[i].labels.at[k] == l;
        if (times == 1 && !axes.add(name))
          return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the result has more than %d axes", ASTRA_MAX_RANK);
      }
    }
    for (uint32_t i = 0; i < axes.count; i++) {
      uint32_t l = numberOf(axes.at[i]);
      if (l == numLabels)
        return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: axis '%c' of the result is in no operand", char(axes.at[i]));
      if (result.has(l)) return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the result names an axis twice");
      result.add(l);
    }
    return ASTRA_OK;
  }

  //===- Steps ---------------------------------------------------------------===//

  /// Diagonals are taken, axes of one element that others repeat go, and so do, summed, labels of this operand alone.
  Status alone(Labelled &x) {
    for (uint32_t i = 0; i < x.labels.count; i++)
      for (uint32_t k = x.labels.count; k-- > i + 1;) {
        if (x.labels.at[i] != x.labels.at[k]) continue;
        View diagonal = ASTRA_INIT(View); // its axis is the last one
        if (Status s = astra_view_diagonal(&diagonal, &x.view, int32_t(i), int32_t(k), 0, diag)) return s;
        x.view = moved(diagonal, diagonal.ndim - 1, int32_t(i));
        remove(x.labels, k);
      }
    int32_t summed[ASTRA_MAX_RANK];
    uint32_t numSummed = 0;
    for (uint32_t i = x.labels.count; i-- > 0;) {
      uint32_t l = x.labels.at[i];
      if (x.view.shape[i] == extents[l]) continue;
      x.view = moved(x.view, int32_t(i), x.view.ndim - 1);
      x.view.ndim--;
      remove(x.labels, i);
    }
    for (uint32_t i = 0; i < x.labels.count; i++)
      if (holders[x.labels.at[i]] == 1 && !result.has(x.labels.at[i])) summed[numSummed++] = int32_t(i);
    if (!numSummed) return ASTRA_OK;
    View sum = ASTRA_INIT(View);
    if (Status s = astra_op_sum(ops, stream, &x.view, summed, numSummed, 0, &sum, diag)) return s;
    x.become(sum, true);
    while (numSummed) remove(x.labels, uint32_t(summed[--numSummed]));
    return ASTRA_OK;
  }
  static void remove(Labels &labels, uint32_t i) {
    for (labels.count--; i < labels.count; i++) labels.at[i] = labels.at[i + 1];
  }

  /// The view with these labels for axes; one that it has not is an axis of one element.
  static View ordered(const Labelled &x, const Labels &order) {
    View v = x.view;
    v.ndim = int32_t(order.count);
    for (uint32_t i = 0; i < order.count; i++) {
      uint32_t k = x.labels.find(order.at[i]);
      bool isThere = k < x.labels.count;
      v.shape[i] = isThere ? x.view.shape[k] : 1, v.strides[i] = isThere ? x.view.strides[k] : 0;
    }
    return v;
  }
  bool lengthOf(const Labels &labels, int64_t &n) const {
    n = 1;
    for (uint32_t i = 0; i < labels.count; i++)
      if (__builtin_mul_overflow(n, extents[labels.at[i]], &n)) return false;
    return true;
  }
  /// x as a stack of matrices [a, b, c], each of several labels.
  Status asStack(const Labelled &x, const Labels *const (&parts)[3], Temporary &packed, View &out) {
    Labels order;
    int64_t shape[3];
    for (int i = 0; i < 3; i++) {
      for (uint32_t k = 0; k < parts[i]->count; k++) order.add(parts[i]->at[k]);
      if (!lengthOf(*parts[i], shape[i]))
        return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: an operand has too many elements");
    }
    View v = ordered(x, order);
    astra_diag quiet = ASTRA_INIT(astra_diag);
    out = ASTRA_INIT(View);
    if (astra_view_reshape(&out, &v, 3, shape, &quiet) == ASTRA_OK) return ASTRA_OK;
    if (Status s = astra_op_copy(ops, stream, &v, &packed.view, diag)) return s;
    return astra_view_reshape(&out, &packed.view, 3, shape, diag);
  }

  /// x becomes the product of both, summed over what is not kept.
  Status product(Labelled &x, Labelled &y, const Labels &kept) {
    View z = ASTRA_INIT(View);
    Labels batch, rows, columns, summed;
    for (uint32_t l = 0; l < numLabels; l++)
      if (x.labels.has(l) && y.labels.has(l) && !kept.has(l)) summed.add(l);
    if (!summed.count) {
      View a = ordered(x, kept), b = ordered(y, kept);
      if (Status s = astra_op_mul(ops, stream, &a, &b, &z, diag)) return s;
      x.labels = kept;
    } else {
      for (uint32_t i = 0; i < kept.count; i++) {
        uint32_t l = kept.at[i];
        (x.labels.has(l) && y.labels.has(l) ? batch : x.labels.has(l) ? rows : columns).add(l);
      }
      Temporary packedA, packedB;
      View a, b;
      if (Status s = asStack(x, {&batch, &rows, &summed}, packedA, a)) return s;
      if (Status s = asStack(y, {&batch, &summed, &columns}, packedB, b)) return s;
      if (Status s = astra_op_matmul(ops, stream, &a, &b, &z, diag)) return s;
      x.labels = batch;
      for (const Labels *part : {&rows, &columns})
        for (uint32_t i = 0; i < part->count; i++) x.labels.add(part->at[i]);
      int64_t shape[ASTRA_MAX_RANK];
      for (uint32_t i = 0; i < x.labels.count; i++) shape[i] = extents[x.labels.at[i]];
      setDense(z, int32_t(x.labels.count), shape);
    }
    x.become(z, true);
    return ASTRA_OK;
  }

  /// Operands of these places, from the left; what they give goes behind the others.
  Status step(const uint32_t *places, uint32_t count) {
    Labelled acc;
    acc.take(left[places[0]]);
    for (uint32_t i = 1; i < count; i++) {
      Labelled &y = left[places[i]];
      Labels kept;
      for (const Labels *of : {&acc.labels, &y.labels})
        for (uint32_t k = 0; k < of->count; k++) {
          uint32_t l = of->at[k], in = uint32_t(acc.labels.has(l)) + y.labels.has(l);
          if (kept.has(l) || (!result.has(l) && holders[l] <= in)) continue;
          if (!kept.add(l))
            return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: what a step gives has more than %d axes",
                        ASTRA_MAX_RANK);
          if (in == 2) holders[l]--;
        }
      if (Status s = product(acc, y, kept)) return s;
      y.drop();
    }
    uint32_t to = 0;
    for (uint32_t i = 0, next = 0; i < numLeft; i++)
      if (next < count && places[next] == i)
        next++;
      else if (to++ != i)
        left[to - 1].take(left[i]);
    left[to].take(acc);
    numLeft = to + 1;
    return ASTRA_OK;
  }

  /// "[(0, 1), (0, 2)]", done while it is read.
  Status walk(const char *at) {
    auto eat = [&](char c) {
      while (*at == ' ') at++;
      return *at == c && (at++, true);
    };
    const char *begin = at;
    auto malformed = [&] {
      return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the path '%.60s' is not written as [(0, 1), (0, 2)]", begin);
    };
    if (!eat('[')) return malformed();
    for (bool more = true; !eat(']'); more = eat(',')) {
      if (!more || !eat('(')) return malformed();
      uint32_t places[kMostOperands], count = 0;
      for (bool another = true; !eat(')'); another = eat(',')) {
        while (*at == ' ') at++;
        if (!another || *at < '0' || *at > '9' || count == kMostOperands) return malformed();
        uint32_t place = 0;
        for (; *at >= '0' && *at <= '9'; at++) place = place < 1000 ? place * 10 + uint32_t(*at - '0') : place;
        if (place >= numLeft)
          return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: a step of the path names operand %u, and %u are left",
                      place, numLeft);
        uint32_t to = count++;
        for (; to && places[to - 1] > place; to--) places[to] = places[to - 1];
        places[to] = place;
        if (to && places[to - 1] == place)
          return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: a step of the path names operand %u twice", place);
      }
      if (!count) return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: a step of the path names no operand");
      if (Status s = step(places, count)) return s;
    }
    while (*at == ' ') at++;
    if (*at) return malformed();
    return numLeft == 1 ? ASTRA_OK
                        : fail(diag, ASTRA_INVALID_ARGUMENT,
                               "einsum: the path leaves %u operands, and one is the result", numLeft);
  }

  Status run(const View *const *operands, uint32_t count, View *out) {
    const char *at = text;
    if (Status s = readOperands(at, operands, count)) return s;
    for (uint32_t i = 0; i < count && (out->buffer || out->data); i++) {
      int32_t disjoint = 0;
      if (Status s = astra_view_is_disjoint(out, operands[i], &disjoint, diag)) return s;
      if (!disjoint)
        return fail(diag, ASTRA_OVERLAP, "einsum: the result overlaps operand %u; give it memory of its own", i);
    }
    while (*at == ' ') at++;
    const char *path = strncmp(at, "path=", 5) ? nullptr : at + 5;
    if (*at && !path)
      return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: '%.32s' behind the equation; libastra_ops takes a path alone",
                  at);
    if (!path && count > 2)
      return fail(diag, ASTRA_INVALID_ARGUMENT,
                  "einsum: %u operands need an order, as path=[(0, 1), (0, 1)]; a compiled model has it chosen", count);
    const int32_t dtype = operands[0]->dtype;
    if (dtype == ASTRA_BOOL) return fail(diag, ASTRA_WRONG_DTYPE, "einsum: it takes no bool; cast the operands to i32");
    for (uint32_t i = 0; i < count; i++) {
      Labels seen;
      for (uint32_t k = 0; k < left[i].labels.count; k++) {
        uint32_t l = left[i].labels.at[k];
        if (left[i].view.shape[k] == extents[l] && !seen.has(l)) seen.add(l), holders[l]++;
      }
    }
    bool several = count > 2;
    for (uint32_t i = 0; i < count; i++)
      for (uint32_t k = 0; k < left[i].labels.count; k++) {
        uint32_t l = left[i].labels.at[k];
        several |=
            left[i].view.shape[k] != extents[l] || left[i].labels.find(l) < k || (holders[l] == 1 && !result.has(l));
      }
    // Narrow floats are rounded once: more than one step is taken in f32.
    const bool isWide = several && (dtype == ASTRA_F16 || dtype == ASTRA_BF16);
    for (uint32_t i = 0; i < count; i++) {
      if (isWide) {
        View wide = ASTRA_INIT(View);
        if (Status s = astra_op_cast(ops, stream, &left[i].view, ASTRA_F32, &wide, diag)) return s;
        left[i].become(wide, true);
      }
      if (Status s = alone(left[i])) return s;
    }
    constexpr uint32_t both[] = {0, 1};
    if (Status s = path ? walk(path) : count == 2 ? step(both, 2) : ASTRA_OK) return s;
    View last = ordered(left[0], result);
    if (isWide) return astra_op_cast(ops, stream, &last, dtype, out, diag);
    if (left[0].owns && isDense(last) && !out->buffer && !out->data) {
      *out = last, left[0].owns = false;
      return ASTRA_OK;
    }
    return astra_op_copy(ops, stream, &last, out, diag);
  }
};

} // namespace

} // namespace astra::ops

astra_status astra_ops_einsum(astra_ops *ops, astra_stream *stream, const char *text, const astra_view *const *operands,
                              uint32_t count, astra_view *out, astra_diag *diag) {
  using namespace astra::ops;
  if (!ops || !stream || !text || !operands)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "einsum: the operations, the stream, the text or the operands are NULL");
  if (!out || out->size < sizeof(View))
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "einsum: out is NULL or its size is not set; begin with ASTRA_INIT(astra_view)");
  Einsum e(ops, stream, text, diag);
  return e.run(operands, count, out);
}
