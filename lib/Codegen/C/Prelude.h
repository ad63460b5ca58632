//===- Prelude.h: the macros at the head of emitted C ----------------------===//
// Gives:    what differs between clang and gcc, and the names of scalar types. C11; no header is included.
#pragma once

namespace astra::cemit {

/// Stands before each kernel: what is between two of them needs only the text before the first.
inline constexpr const char kernelMark[] = "\n/* ---- a kernel ---- */\n";

inline constexpr const char prelude[] =
    R"c(/* Made by Astra. C11 with vector extensions, for clang and gcc; needs nothing but fmaf and fma of libm, and
   those only where the machine has no fused multiply-add. Floating point is strict: compile without -ffast-math. */
typedef __INT8_TYPE__ i8;
typedef __INT16_TYPE__ i16;
typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef u16 f16;  /* the bits */
typedef u16 bf16; /* the bits */
typedef float f32;
typedef double f64;
typedef _Bool b1;
#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define VECTOR(T, N) T __attribute__((ext_vector_type(N)))
#define SPLAT(T, s) ((T)(s))
#define SEL(T, m, a, b) ((m) ? (a) : (b))
#define SOME(m) __builtin_reduce_or(m)
#else
#pragma GCC optimize("fp-contract=off", "no-math-errno", "wrapv")
#pragma GCC diagnostic ignored "-Wpsabi"
#define VECTOR(T, N) T __attribute__((vector_size(sizeof(T) * N)))
#define SPLAT(T, s) ((s) - (T){0})
#define SEL(T, m, a, b) ((T)(((__typeof__(m))(a) & (m)) | ((__typeof__(m))(b) & ~(m))))
#endif
#if defined(__clang__) && (defined(__SSE4_1__) || defined(__aarch64__))
#define ROUNDS_IN_ONE 1
#endif
#if defined(__clang__) && (defined(__F16C__) || defined(__aarch64__))
#define HALVES_IN_ONE 1
#endif
/* The same for scalars; AS keeps the bits, CVT the value. */
#define SPLAT1(T, s) ((T)(s))
#define SEL1(T, m, a, b) ((m) ? (a) : (b))
#define AS(T, x) ((T)(x))
#define CVT(T, x) __builtin_convertvector(x, T)
#define CVT1(T, x) ((T)(x))
#if defined(__AVX512F__)
typedef VECTOR(f32, 16) reg_f32;
typedef VECTOR(f64, 8) reg_f64;
#define SCALES_IN_ONE 1
/* r = a * 2^n, register by register; what fills the last one is not looked at. */
#define SCALE_f32(r, a, n) SCALE(reg_f32, __builtin_ia32_scalefps512_mask, r, a, n)
#define SCALE_f64(r, a, n) SCALE(reg_f64, __builtin_ia32_scalefpd512_mask, r, a, n)
#define SCALE(T, f, r, a, n) \
  for (unsigned i = 0; i < sizeof r; i += 64) { \
    T x = {0}, y = {0}; \
    __builtin_memcpy(&x, (const i8 *)&a + i, sizeof r < 64 ? sizeof r : 64); \
    __builtin_memcpy(&y, (const i8 *)&n + i, sizeof r < 64 ? sizeof r : 64); \
    x = f(x, y, x, -1, 4); \
    __builtin_memcpy((i8 *)&r + i, &x, sizeof r < 64 ? sizeof r : 64); \
  }
#endif
#if defined(__AVX512DQ__)
#define RANGES_IN_ONE 1
/* r = the greater of a and b (way 5) or the less (4), whole registers without NaNs. */
#define RANGE_f32(r, a, b, way) RANGE(reg_f32, __builtin_ia32_rangeps512_mask, r, a, b, way)
#define RANGE_f64(r, a, b, way) RANGE(reg_f64, __builtin_ia32_rangepd512_mask, r, a, b, way)
#define RANGE(T, f, r, a, b, way) \
  for (unsigned i = 0; i < sizeof r; i += 64) { \
    T x, y; \
    __builtin_memcpy(&x, (const i8 *)&a + i, 64); \
    __builtin_memcpy(&y, (const i8 *)&b + i, 64); \
    x = f(x, y, way, x, -1, 4); \
    __builtin_memcpy((i8 *)&r + i, &x, 64); \
  }
#endif
#if defined(__AVX512BW__)
typedef VECTOR(i32, 16) dot_i32;
typedef VECTOR(u32, 16) dot_u32;
typedef VECTOR(i16, 32) dot_i16;
typedef VECTOR(u16, 32) dot_u16;
#elif defined(__AVX2__)
typedef VECTOR(i32, 8) dot_i32;
typedef VECTOR(u32, 8) dot_u32;
typedef VECTOR(i16, 16) dot_i16;
typedef VECTOR(u16, 16) dot_u16;
#endif
/* c + the products of the bytes of a, unsigned, and of b, signed, of one register. */
#if defined(__AVX512VNNI__) && defined(__clang__)
typedef VECTOR(u8, 64) dot_u8;
typedef VECTOR(i8, 64) dot_i8;
#define DOT4_ONE(c, a, b) __builtin_ia32_vpdpbusd512(c, (dot_u8)(a), (dot_i8)(b))
#elif defined(__AVX512VNNI__)
#define DOT4_ONE(c, a, b) __builtin_ia32_vpdpbusd_v16si(c, a, b)
#elif defined(__AVX512BW__) && defined(__clang__)
#define PAIRS(a, b) (dot_i32) __builtin_ia32_pmaddwd512(a, b)
#elif defined(__AVX512BW__)
#define PAIRS(a, b) (dot_i32) __builtin_ia32_pmaddwd512_mask(a, b, (dot_i32){0}, -1)
#elif defined(__AVX2__)
#define PAIRS(a, b) (dot_i32) __builtin_ia32_pmaddwd256(a, b)
#endif
#if defined(PAIRS) /* those of even bytes and those of odd ones, as 16 bits */
#define DOT4_ONE(c, a, b) \
  (dot_i32)((dot_u32)c + (dot_u32)PAIRS((dot_i16)((dot_u16)a & 255), (dot_i16)((dot_u16)b << 8) >> 8) + \
            (dot_u32)PAIRS((dot_i16)((dot_u16)a >> 8), (dot_i16)b >> 8))
#endif
#if defined(DOT4_ONE)
#define DOT4(r, a, b, c) \
  for (unsigned i = 0; i < sizeof r; i += sizeof(dot_i32)) { \
    dot_i32 x = {0}, y = {0}, z = {0}; \
    __builtin_memcpy(&x, (const i8 *)&a + i, sizeof r < sizeof x ? sizeof r : sizeof x); \
    __builtin_memcpy(&y, (const i8 *)&b + i, sizeof r < sizeof x ? sizeof r : sizeof x); \
    __builtin_memcpy(&z, (const i8 *)&c + i, sizeof r < sizeof x ? sizeof r : sizeof x); \
    z = DOT4_ONE(z, x, y); \
    __builtin_memcpy((i8 *)&r + i, &z, sizeof r < sizeof x ? sizeof r : sizeof x); \
  }
#endif
/* c + the products of the pairs of bf16 of a and b, those in the higher halves first, of one register. */
#if defined(__AVX512BF16__) && defined(__clang__)
typedef VECTOR(__bf16, 32) pair_bf16;
#define DPBF16(r, a, b, c) \
  for (unsigned i = 0; i < sizeof r; i += 64) { \
    pair_bf16 x = {0}, y = {0}; \
    reg_f32 z = {0}; \
    __builtin_memcpy(&x, (const i8 *)&a + i, sizeof r < 64 ? sizeof r : 64); \
    __builtin_memcpy(&y, (const i8 *)&b + i, sizeof r < 64 ? sizeof r : 64); \
    __builtin_memcpy(&z, (const i8 *)&c + i, sizeof r < 64 ? sizeof r : 64); \
    z = __builtin_ia32_dpbf16ps_512(z, x, y); \
    __builtin_memcpy((i8 *)&r + i, &z, sizeof r < 64 ? sizeof r : 64); \
  }
#endif
/* Tiles of AMX, registers by number. What does without it gives the macros beforehand. */
#if defined(__AMX_BF16__) && defined(__clang__) && !defined(TILE_DOT)
#define TILE_SHAPE(p) __builtin_ia32_tile_loadconfig(p)
#define TILE_LOAD(t, p, step) __builtin_ia32_tileloadd64(t, p, step)
#define TILE_STORE(t, p, step) __builtin_ia32_tilestored64(t, p, step)
#define TILE_DOT(c, a, b) __builtin_ia32_tdpbf16ps(c, a, b)
#define TILE_RELEASE() __builtin_ia32_tilerelease()
#endif
/* Element i is wanted soon. It need not exist: the address is a number. */
#define PREFETCH(p, i) __builtin_prefetch((const void *)((u64)(p) + (u64)(i) * sizeof *(p)))
/* A whole line is stored without a place in the caches, if it begins at this address; at the end stores are ordered. */
#if defined(__AVX512F__) && defined(__clang__)
#define NON_TEMPORAL(T, AT, p, v) \
  if ((u64)(p) % 64) \
    *(AT *)(p) = v; \
  else \
    __builtin_nontemporal_store(v, (T *)(p))
#define NON_TEMPORAL_END __builtin_ia32_sfence()
#else
#define NON_TEMPORAL(T, AT, p, v) *(AT *)(p) = v
#define NON_TEMPORAL_END
#endif
/* What was read before is read again where it is used next: it has no register to stay in. */
#define REREAD __asm__ volatile("" : : : "memory")
/* How p was computed is forgotten: it stays in a register. */
#define POINTER(p) __asm__("" : "+r"(p))
/* Vectors that are needed later are not in registers here: of those a loop that follows has none left over. */
#if defined(__AVX__) && !defined(__AVX512F__)
#define SPILL_VECTORS \
  __asm__ volatile("" : : : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#else
#define SPILL_VECTORS
#endif
/* Before a loop that is not to be unrolled. */
#if defined(__clang__)
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define ROLLED
#endif
/* Of a loop's n items, how many belong to the first ones of all: never fewer for more, exact at both ends. */
INLINE i64 share(i64 first, i64 n, i64 all) {
  if (first >= all) return n;
  i64 s = (i64)((f64)first * ((f64)n / (f64)all));
  return s < n ? s : n;
}
INLINE u32 bits_f32(f32 a) {
  union { f32 f; u32 u; } x = {a};
  return x.u;
}
INLINE u64 bits_f64(f64 a) {
  union { f64 f; u64 u; } x = {a};
  return x.u;
}
INLINE f32 f32_bits(u32 a) {
  union { u32 u; f32 f; } x = {a};
  return x.f;
}
INLINE f64 f64_bits(u64 a) {
  union { u64 u; f64 f; } x = {a};
  return x.f;
}
)c";

} // namespace astra::cemit
