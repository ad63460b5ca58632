//===- Bind.h: from C++ functions over a Composer to Python -----------------===//
// Takes:    a function whose first parameter is a Composer &.
// Gives:    a callable for nanobind, whose parameters are what Python has: lists for ArrayRef, str for StringRef.
// Keeps:    a failure of the Composer becomes an exception, and the Composer is usable again.
#pragma once
#include "Graph.h"
#include "astra/IR/Eval.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

namespace astra::python {
namespace nb = nanobind;

using Nodes = std::vector<UOpRef>;
using Numbers = std::vector<int64_t>;
/// Nodes belong to the graph.
constexpr auto inside = nb::rv_policy::reference;

/// What has a meaning and is not supported; every other refusal is a std::invalid_argument: ValueError.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws what went wrong since the last call, if something did.
void check(Graph &g);
/// The same for an error of LLVM's.
[[noreturn]] void raise(llvm::Error e);
template <typename T> T taken(llvm::Expected<T> x) {
  if (!x) raise(x.takeError());
  return std::move(*x);
}

/// The dtype of a name; throws where there is none.
DType dtypeOf(const std::string &name);
/// What a table has for a name; throws where it has nothing.
template <typename T>
T named(const std::string &name, std::initializer_list<std::pair<const char *, T>> table, const char *what) {
  std::string names;
  for (const auto &[n, value] : table) {
    if (name == n) return value;
    names += std::string(names.empty() ? "" : ", ") + n;
  }
  throw std::invalid_argument(std::string("there is no ") + what + " '" + name + "'; there are " + names);
}

/// How a parameter comes from Python.
template <typename T> struct From {
  using type = std::decay_t<T>;
};
template <typename T> struct From<llvm::ArrayRef<T>> {
  using type = std::vector<T>;
};
template <> struct From<llvm::StringRef> {
  using type = std::string;
};
template <> struct From<DType> {
  using type = std::string;
};
template <typename T, typename U> decltype(auto) given(U &x) {
  if constexpr (std::is_same_v<T, DType>)
    return dtypeOf(x);
  else if constexpr (std::is_same_v<T, llvm::StringRef>)
    return llvm::StringRef(x);
  else if constexpr (std::is_same_v<T, std::decay_t<T>> && !std::is_same_v<T, typename From<T>::type>)
    return T(x);
  else
    return (x);
}

template <typename R, typename... Args> auto checked(R (*f)(compose::Composer &, Args...)) {
  return [f](Graph &g, typename From<std::decay_t<Args>>::type... args) {
    R out = f(g, given<std::decay_t<Args>>(args)...);
    check(g);
    return out;
  };
}
/// The same for a lambda that takes the Graph first and what Python gives.
template <typename F, typename R, typename... Args> auto guardedAs(F f, R (F::*)(Graph &, Args...) const) {
  return [f](Graph &g, Args... args) {
    R out = f(g, std::move(args)...);
    check(g);
    return out;
  };
}
template <typename F> auto guarded(F f) { return guardedAs(f, &F::operator()); }

void bindGraph(nb::module_ &m);
void bindModule(nb::module_ &m);
void bindCompose(nb::module_ &m);
void bindNetworks(nb::module_ &m);
void bindTraining(nb::module_ &m);
void bindImport(nb::module_ &m);
void bindBundle(nb::module_ &m);
void bindLinalg(nb::module_ &m);
void bindGuards(nb::module_ &m);
void bindQuantize(nb::module_ &m);
void bindExternal(nb::module_ &m);

/// The functions that roots call and Python has registered, for the evaluator. With the GIL; they take it themselves.
void addExternals(EvalOptions &options, llvm::ArrayRef<UOpRef> roots);

} // namespace astra::python
