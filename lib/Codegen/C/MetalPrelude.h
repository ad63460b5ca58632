//===- MetalPrelude.h: the head of emitted Metal --------------------------===//
// Gives:    the names that helpers and kernels are written in, in the Metal Shading Language.
#pragma once

namespace astra::cemit {

inline constexpr const char metalPrelude[] =
    R"c(/* Made by Astra. Metal Shading Language, 2.1 or later. Floating point is strict: compile with -fno-fast-math and
   -ffp-contract=off, or with MTLMathModeSafe and MTLMathFloatingPointFunctionsPrecise; the pragmas below say the same to
   compilers that know them. A SIMD group has 32 threads (threadExecutionWidth). The language leaves it to a device
   whether subnormal numbers are flushed to zero: where they are, results that meet them differ from other targets'. */
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef u16 f16;  /* the bits */
typedef u16 bf16; /* the bits */
typedef float f32;
typedef bool b1;
#define INLINE static inline __attribute__((always_inline))
#define SPLAT1(T, s) ((T)(s))
#define SEL1(T, m, a, b) ((m) ? (a) : (b))
#define AS(T, x) ((T)(x))
#define CVT1(T, x) ((T)(x))
INLINE u32 bits_f32(f32 a) { return as_type<u32>(a); }
INLINE f32 f32_bits(u32 a) { return as_type<f32>(a); }
)c";

} // namespace astra::cemit
