//===- tensor.hpp: views of tensors in C++ --------------------------------===//
// Takes:    tensor.h.
// Gives:    astra::View, a value without heap memory; its elements by index (as std::mdspan does), as a std::span.
// Keeps:    one method per function of tensor.h (scripts/check_style.py looks); refusals are astra::Error.
// Does not: own memory, but for astra::OwnedView.
//
//   astra::Tensor<float> matrix({3, 4});
//   astra::View all(matrix), column = all.index(1, 2);
//   astra::Access<float, 2> a(all);
//   a(1, 2) = 5;                                                   // also the second element of `column`
//   astra::Call(session, "main").input(column.describe()).output(y).allowCopy().run(stream);
#pragma once

#include "astra/astra.hpp"
#include "astra/tensor.h"

#include <array>
#include <initializer_list>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace astra {

/// Numbers per axis: `{2, 3}`, or a vector.
class Numbers {
public:
  Numbers(std::initializer_list<int64_t> list) : Numbers(list.begin(), list.size()) {}
  Numbers(const std::vector<int64_t> &list) : Numbers(list.data(), list.size()) {}
  const int64_t *data() const { return values.data(); }
  size_t size() const { return count; }

private:
  Numbers(const int64_t *first, size_t size) : count(size) {
    if (size > ASTRA_MAX_RANK) throw Error(ASTRA_WRONG_RANK);
    for (size_t i = 0; i < size; i++) values[i] = first[i];
  }
  std::array<int64_t, ASTRA_MAX_RANK> values{};
  size_t count;
};

/// A view of memory that somebody else owns and that must outlive it.
class View {
public:
  View() : view(ASTRA_INIT(astra_view)) {}
  explicit View(const astra_view &raw) : view(raw) {}
  explicit View(const astra_tensor &tensor) : View() {
    check([&](astra_diag *d) { return astra_view_init(&view, &tensor, d); });
  }
  /// All of a tensor, which must not change its shape meanwhile.
  template <typename T> explicit View(Tensor<T> &tensor) : View(tensor.describe()) {}

  View permute(std::initializer_list<int32_t> axes) const {
    needs(axes.size());
    return made([&](astra_view *out, astra_diag *d) { return astra_view_permute(out, &view, axes.begin(), d); });
  }
  View slice(int32_t axis, int64_t start, int64_t count, int64_t step = 1) const {
    return made(
        [&](astra_view *out, astra_diag *d) { return astra_view_slice(out, &view, axis, start, count, step, d); });
  }
  View index(int32_t axis, int64_t place) const {
    return made([&](astra_view *out, astra_diag *d) { return astra_view_index(out, &view, axis, place, d); });
  }
  View expand(Numbers shape) const {
    return made([&](astra_view *out, astra_diag *d) {
      return astra_view_expand(out, &view, int32_t(shape.size()), shape.data(), d);
    });
  }
  View diagonal(int32_t axisA = 0, int32_t axisB = 1, int64_t offset = 0) const {
    return made(
        [&](astra_view *out, astra_diag *d) { return astra_view_diagonal(out, &view, axisA, axisB, offset, d); });
  }
  View reshape(Numbers shape) const {
    return made([&](astra_view *out, astra_diag *d) {
      return astra_view_reshape(out, &view, int32_t(shape.size()), shape.data(), d);
    });
  }
  View conjugate() const {
    return made([&](astra_view *out, astra_diag *d) { return astra_view_conjugate(out, &view, d); });
  }
  View part(int32_t axis, int64_t place, int64_t parts) const {
    return made([&](astra_view *out, astra_diag *d) { return astra_view_part(out, &view, axis, place, parts, d); });
  }
  View interleaved(int32_t axis, int64_t place, int64_t parts) const {
    return made(
        [&](astra_view *out, astra_diag *d) { return astra_view_interleaved(out, &view, axis, place, parts, d); });
  }
  View tile(Numbers extents, Numbers place) const {
    needs(extents.size()), needs(place.size());
    return made(
        [&](astra_view *out, astra_diag *d) { return astra_view_tile(out, &view, extents.data(), place.data(), d); });
  }

  bool isRowMajor() const { return astra_view_is_row_major(&view) == 1; }
  bool isDisjoint(const View &other) const {
    int32_t out = 0;
    check([&](astra_diag *d) { return astra_view_is_disjoint(&view, &other.view, &out, d); });
    return out;
  }
  void *address(Numbers place) const {
    needs(place.size());
    void *out = nullptr;
    check([&](astra_diag *d) { return astra_view_address(&view, place.data(), &out, d); });
    return out;
  }
  /// Of one dtype and shape; the two share no byte.
  void copyFrom(const View &other) const {
    check([&](astra_diag *d) { return astra_view_copy(&view, &other.view, d); });
  }
  /// For a call; good as long as this view lives and is not assigned to.
  astra_tensor describe() const && = delete;
  astra_tensor describe() const & {
    astra_tensor out = ASTRA_INIT(astra_tensor);
    check([&](astra_diag *d) { return astra_view_describe(&view, &out, d); });
    return out;
  }

  int32_t dtype() const { return view.dtype; }
  int32_t rank() const { return view.ndim; }
  int64_t extent(int32_t axis) const { return view.shape[axis]; }
  int64_t stride(int32_t axis) const { return view.strides[axis]; }
  bool isConjugated() const { return view.flags & ASTRA_VIEW_CONJUGATE; }
  int64_t size() const {
    int64_t n = 1;
    for (int32_t i = 0; i < view.ndim; i++) n *= view.shape[i];
    return n;
  }
  const astra_view &raw() const { return view; }

#if __cplusplus >= 202002L
  /// All elements of a row-major view, in order.
  template <typename T> std::span<T> span() const {
    if (!isRowMajor()) throw Error(ASTRA_WRONG_STRIDES);
    if (view.dtype != dtypeOf<std::remove_const_t<T>>) throw Error(ASTRA_WRONG_DTYPE);
    if (size() == 0) return {};
    const int64_t zeros[ASTRA_MAX_RANK] = {};
    void *first = nullptr;
    check([&](astra_diag *d) { return astra_view_address(&view, zeros, &first, d); });
    return {static_cast<T *>(first), size_t(size())};
  }
#endif

protected:
  void needs(size_t count) const {
    if (count != size_t(view.ndim)) throw Error(ASTRA_WRONG_RANK);
  }
  template <typename Fn> static View made(Fn fn) {
    View out;
    check([&](astra_diag *d) { return fn(&out.view, d); });
    return out;
  }
  astra_view view;
};

/// Throws unless all of them may be written at once.
inline void checkParts(const std::vector<View> &parts) {
  static_assert(sizeof(View) == sizeof(astra_view));
  const astra_view *first = parts.empty() ? nullptr : &parts[0].raw();
  check([&](astra_diag *d) { return astra_view_check_parts(first, uint32_t(parts.size()), d); });
}

/// Memory of a pool, and the row-major view of all of it.
class OwnedView : public View {
public:
  OwnedView(const Pool &pool, int32_t dtype, Numbers shape) {
    astra_buffer *made = nullptr;
    check([&](astra_diag *d) {
      return astra_view_init_pool(&view, &made, pool.get(), dtype, int32_t(shape.size()), shape.data(), d);
    });
    memory = Buffer(made);
  }
  /// Takes over a view and the buffer that it is of.
  explicit OwnedView(const astra_view &raw) : View(raw), memory(raw.buffer) {}
  const Buffer &buffer() const { return memory; }

private:
  Buffer memory;
};

/// Elements by index, as std::mdspan gives them: operator() trusts its indices, at() checks them. T may be const. A
/// conjugated view has none: its elements are not in memory.
template <typename T, size_t Rank> class Access {
public:
  using Element = std::remove_const_t<T>;
  explicit Access(const View &view) {
    static_assert(dtypeOf<Element> != 0, "no dtype for this type");
    if (view.dtype() != dtypeOf<Element> || view.isConjugated()) throw Error(ASTRA_WRONG_DTYPE);
    if (view.rank() != int32_t(Rank)) throw Error(ASTRA_WRONG_RANK);
    const int64_t zeros[ASTRA_MAX_RANK] = {};
    void *at = nullptr;
    if (view.size()) check([&](astra_diag *d) { return astra_view_address(&view.raw(), zeros, &at, d); });
    first = static_cast<T *>(at);
    for (size_t i = 0; i < Rank; i++) extents[i] = view.extent(int32_t(i)), strides[i] = view.stride(int32_t(i));
  }
  static constexpr size_t rank() { return Rank; }
  int64_t extent(size_t axis) const { return extents[axis]; }
  int64_t stride(size_t axis) const { return strides[axis]; }
  T *data_handle() const { return first; }
  template <typename... Indices> T &operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == Rank, "one index per axis");
    size_t axis = 0;
    int64_t place = 0;
    ((place += int64_t(indices) * strides[axis++]), ...);
    return first[place];
  }
  template <typename... Indices> T &at(Indices... indices) const {
    size_t axis = 0;
    bool isInside = ((int64_t(indices) >= 0 && int64_t(indices) < extents[axis++]) && ...);
    if (!isInside) throw std::out_of_range("an index is outside of its axis");
    return (*this)(indices...);
  }

private:
  T *first;
  std::array<int64_t, Rank> extents{}, strides{};
};

} // namespace astra
