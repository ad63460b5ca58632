//===- call.h: kernels of Metal called with their arguments in an array ----===//
#pragma once
#include <metal_stdlib>
#include <utility>

extern "C" MetalHost metalHost = {nullptr, nullptr};

template <class T, std::size_t I, std::size_t N> struct Argument {
  static T of(void **all, uint, uint) { return static_cast<T>(all[I]); }
};
template <std::size_t I, std::size_t N> struct Argument<uint, I, N> {
  static uint of(void **, uint thread, uint block) { return I + 2 == N ? thread : block; }
};
template <class... A, std::size_t... I>
void callWith(void (*f)(A...), void **all, uint thread, uint block, std::index_sequence<I...>) {
  f(Argument<A, I, sizeof...(A)>::of(all, thread, block)...);
}
template <class... A> void call(void (*f)(A...), void **all, uint thread, uint block) {
  callWith(f, all, thread, block, std::make_index_sequence<sizeof...(A)>());
}
/// CALL(k) defines call_k(arguments, thread, block).
#define CALL(k)                                                                                                        \
  extern "C" __attribute__((visibility("default"))) void call_##k(void **all, uint thread, uint block) {               \
    call(k, all, thread, block);                                                                                       \
  }
