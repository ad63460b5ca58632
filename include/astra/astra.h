/*===- astra.h: the C ABI of the Astra runtime -----------------------------===
 * Takes:    bundles made by astra-compile.
 * Gives:    handles to load them, hold their state, and run their entries.
 * Keeps:    this is the one stable header: functions are never removed or changed, structs grow only at the end.
 * Does not: compile, trace, tune, print; touch threads, signals or the environment unless asked.
 *
 * Conventions
 *
 * Status.     Every function that can fail gives an astra_status; ASTRA_OK is 0. On failure every out-parameter is
 *             untouched, and a given astra_diag (it may always be NULL) holds one sentence: what was found, what was
 *             expected, what to do.
 * Handles.    astra_X_init(&x, ...) makes, astra_X_free(&x) frees and sets x to NULL. Freeing NULL is ASTRA_OK.
 *             Freeing what others still use is refused with ASTRA_IN_USE and changes nothing: free in the reverse
 *             order of making. Buffers and promises are counted and may be freed at any time.
 * Structs.    A struct that goes in or out begins with `size`: set it to sizeof(the struct) (ASTRA_INIT does). A newer
 *             library knows the older size. An older library refuses with ASTRA_NEWER_CLIENT a larger struct whose
 *             unknown tail is not zero.
 * Strings.    UTF-8, zero-terminated. Strings in come from the caller and are copied; strings out belong to the handle
 *             that they were asked from and live as long as it.
 * Numbers.    What an entry computes, bit for bit, is the numeric contract's: docs/numerics.md.
 * Threads.    Runtime, device, bundle, loaded, pool, buffer, promise: any thread. Session: one call in flight, a second
 *             gets ASTRA_BUSY. Stream: any thread may submit; the order is that of the submits.
 * Fork.       In a forked child every function that takes a handle of the parent refuses with ASTRA_FORKED.
 */
#ifndef ASTRA_ASTRA_H
#define ASTRA_ASTRA_H

#include <stddef.h>
#include <stdint.h>

#if defined(ASTRA_BUILDING_RUNTIME)
#define ASTRA_API __attribute__((visibility("default")))
#else
#define ASTRA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ASTRA_VERSION_MAJOR 1
#define ASTRA_VERSION_MINOR 0
/* Tensors have at most this many dims. */
#define ASTRA_MAX_RANK 16

/*===- Status ---------------------------------------------------------------===*/

typedef int32_t astra_status;
enum {
  ASTRA_OK = 0,
  /* The caller's arguments */
  ASTRA_INVALID_ARGUMENT = 1, /* a NULL, a size or a flag that makes no sense */
  ASTRA_NEWER_CLIENT = 2,     /* a struct uses fields that this library does not know: use a newer library */
  ASTRA_UNKNOWN_NAME = 3,     /* no such entry, input, param, state, dim, level or device */
  ASTRA_WRONG_DTYPE = 4,
  ASTRA_WRONG_RANK = 5,
  ASTRA_WRONG_SHAPE = 6,    /* an extent differs from what the entry says */
  ASTRA_OUT_OF_BOUNDS = 7,  /* a dim is outside its lo .. hi */
  ASTRA_EQUATION = 8,       /* a stated equation between dims does not hold */
  ASTRA_WRONG_STRIDES = 9,  /* not row-major, and the call does not allow a copy */
  ASTRA_OVERLAP = 10,       /* an output overlaps another tensor of a call in flight */
  ASTRA_CAPACITY = 11,      /* a buffer is smaller than the tensor in it */
  ASTRA_OVERFLOW = 12,      /* arithmetic on sizes left 64 bits */
  ASTRA_MISSING_VALUE = 13, /* a host dim or a param that the user must set was not set */
  /* The bundle */
  ASTRA_NOT_A_BUNDLE = 20,    /* wrong magic */
  ASTRA_TRUNCATED = 21,       /* shorter or longer than its header says */
  ASTRA_NEWER_FORMAT = 22,    /* made by a newer compiler: use a newer library */
  ASTRA_UNKNOWN_FEATURE = 23, /* needs a feature that this library does not have */
  ASTRA_CORRUPT = 24,         /* a hash does not match */
  ASTRA_MALFORMED = 25,       /* hashes match, but the content breaks a rule of the format */
  ASTRA_SIGNATURE = 26,       /* no signature, a wrong one, or no way to check it */
  ASTRA_WRONG_CONTRACT = 27,  /* built under another numeric contract than asked for */
  /* The machine */
  ASTRA_NO_TARGET = 30, /* no code in the bundle runs on this device */
  ASTRA_OUT_OF_MEMORY = 31,
  ASTRA_IO = 32,          /* a file could not be opened, read or mapped */
  ASTRA_UNSUPPORTED = 33, /* a device or an option that this library does not have */
  ASTRA_THREADS = 34,     /* a thread could not be made */
  ASTRA_DEVICE_LOST =
      35,            /* a GPU's context is broken, and so is every handle of the device: free them, make new ones */
  ASTRA_DRIVER = 36, /* a GPU's driver refuses a call; the sentence has the call and the driver's word for it */
  /* The moment */
  ASTRA_NOT_READY = 40,  /* from poll: still running; not an error */
  ASTRA_BUSY = 41,       /* a call is in flight: wait for its promise, or for a mark of its stream */
  ASTRA_IN_USE = 42,     /* others still use the handle: free them first */
  ASTRA_FORKED = 43,     /* the handle belongs to the parent process */
  ASTRA_STATE_LOST = 44, /* a call failed after its first launch: set or reset the state */
  /* The run */
  ASTRA_DATA_DIM = 50,        /* a size computed by the program left its bounds */
  ASTRA_DEPENDENCY = 51,      /* a promise that this call waits for failed */
  ASTRA_KERNEL_FAULT = 52,    /* the emulator found that a kernel does what none may */
  ASTRA_CANCELLED = 53,       /* it was cancelled before it began */
  ASTRA_FUNCTION_FAILED = 54, /* a function that the program registered failed; the sentence has its own */
  ASTRA_PEER_LOST = 55,       /* another rank of the job died, left or does not move (astra/ranks.h) */
  ASTRA_PEER_DIFFERS = 56     /* another rank is elsewhere, or has another bundle */
};

/* The name of a status, e.g. "ASTRA_WRONG_SHAPE". Never NULL. */
ASTRA_API const char *astra_status_name(astra_status status);

/* Owned by the caller. Filled only on failure. */
typedef struct astra_diag {
  size_t size;
  astra_status status;
  char text[500]; /* lower case, no period, zero-terminated */
} astra_diag;

/* major << 16 | minor of the library that is running. */
ASTRA_API uint32_t astra_version(void);

/*===- Types ----------------------------------------------------------------===*/

typedef enum astra_dtype {
  ASTRA_BOOL = 1,
  ASTRA_I8 = 2,
  ASTRA_I16 = 3,
  ASTRA_I32 = 4,
  ASTRA_I64 = 5,
  ASTRA_U8 = 6,
  ASTRA_U16 = 7,
  ASTRA_U32 = 8,
  ASTRA_U64 = 9,
  ASTRA_F16 = 10,
  ASTRA_BF16 = 11,
  ASTRA_F32 = 12,
  ASTRA_F64 = 13,
  ASTRA_C64 = 14,
  ASTRA_C128 = 15,
  /* Storage only. Sub-byte elements are packed low bits first along the last axis, rows padded to bytes. */
  ASTRA_I2 = 16,
  ASTRA_U2 = 17,
  ASTRA_I4 = 18,
  ASTRA_U4 = 19,
  ASTRA_F4E2M1 = 20,
  ASTRA_F8E4M3FN = 21,
  ASTRA_F8E5M2 = 22,
  ASTRA_F8E4M3FNUZ = 23,
  ASTRA_F8E5M2FNUZ = 24,
  ASTRA_F8E8M0 = 25
} astra_dtype;

/* "f32", ...; NULL for a number that is no dtype. */
ASTRA_API const char *astra_dtype_name(int32_t dtype);
/* Bits of one element; 0 for a number that is no dtype. */
ASTRA_API uint32_t astra_dtype_bits(int32_t dtype);

typedef struct astra_runtime astra_runtime; /* host hooks, and functions by name; owns nothing else */
typedef struct astra_device astra_device;   /* one CPU with its workers, or one GPU */
typedef struct astra_stream astra_stream;   /* FIFO queue of calls on a device */
typedef struct astra_pool astra_pool;       /* recycled memory of a device */
typedef struct astra_buffer astra_buffer;   /* a block, or a view into one */
typedef struct astra_bundle astra_bundle;   /* an immutable file */
typedef struct astra_loaded astra_loaded;   /* a bundle on a device: code and weights; shared by threads */
typedef struct astra_session astra_session; /* state, arena, dim values; one call in flight */
typedef struct astra_promise astra_promise; /* the end of a call, or a mark in a stream */
typedef struct astra_entry astra_entry;     /* a function of a bundle; belongs to the bundle, is not freed */

/*===- Runtime and its hooks ------------------------------------------------===*/

/* Memory for everything except mapped files; called from any thread. alignment is a power of two, at most 4096; release
 * gets the same numbers.
 */
typedef struct astra_allocator {
  size_t size;
  void *self;
  void *(*allocate)(void *self, size_t bytes, size_t alignment); /* NULL when there is none */
  void (*release)(void *self, void *memory, size_t bytes, size_t alignment);
} astra_allocator;

/* What a host may want to know and no status says; text is one line. Called from any thread. */
enum { ASTRA_LOG_WARNING = 1, ASTRA_LOG_INFO = 2 };

typedef struct astra_logger {
  size_t size;
  void *self;
  void (*log)(void *self, int32_t level, const char *text);
} astra_logger;

/* ed25519: gives 0 if `signature` (64 bytes) is right for `message` under `public_key` (32 bytes). libastra_verify has
 * one that uses libsodium: astra_verify_ed25519. */
typedef int (*astra_verify_fn)(const uint8_t *signature, const uint8_t *message, size_t message_bytes,
                               const uint8_t *public_key);

typedef struct astra_runtime_options {
  size_t size;
  const astra_allocator *allocator; /* NULL: malloc; from 4 MiB on mappings that ask for huge pages */
  const astra_logger *logger;       /* NULL: silence */
  astra_verify_fn verify;           /* NULL: a demand to check a signature is refused */
} astra_runtime_options;

/* options may be NULL. The hooks are copied; what their `self` points to must outlive the runtime. */
ASTRA_API astra_status astra_runtime_init(astra_runtime **out, const astra_runtime_options *options, astra_diag *diag);
ASTRA_API astra_status astra_runtime_free(astra_runtime **runtime);

/*===- Device ---------------------------------------------------------------===*/

/* Threads lent by the host. */
typedef struct astra_executor {
  size_t size;
  void *self;
  uint32_t num_workers; /* how many calls of fn may run at once, at least 1 */
  /* Calls fn(arg, 0) ... fn(arg, n - 1), each once, on any threads, and returns when all have returned. It is called
   * from workers too, so it must make progress on the calling thread alone. */
  void (*parallel_for)(void *self, size_t n, void (*fn)(void *arg, size_t index), void *arg);
  /* Optional: calls fn(arg) once, soon, on some worker, and returns at once. Gives 0, or not 0 if it cannot (fn is then
   * not called). NULL: calls run inside submit. */
  int (*enqueue)(void *self, void (*fn)(void *arg), void *arg);
} astra_executor;

/* All of a buffer of a launch as `lines` lines of `words` words of 32 bits, of which a kernel reads boxes: 32 words of
 * `box` lines. */
typedef struct astra_tensor_map {
  uint32_t buffer, box;
  uint64_t words, lines;
} astra_tensor_map;

/* A launch of the host build of a GPU kernel: code without imports that an emulator runs thread by thread. Whoever
 * writes an emulator finds what code and emulator agree on in lib/Emulator/Thread.h. */
typedef struct astra_emulated_launch {
  size_t size;
  const char *kernel; /* its name, for sentences */
  const void *code;   /* its first instruction */
  void *const *buffers;
  const uint64_t *buffer_bytes;
  const uint8_t *writes; /* per buffer: whether the kernel may write to it */
  uint32_t num_buffers;
  const int64_t *dims; /* its arguments behind the buffers */
  uint32_t num_dims;
  int64_t items;                 /* above 0 */
  uint32_t threads, group, warp; /* of a block; of an item; that go in step */
  uint64_t shared_bytes;         /* of a block */
  const astra_tensor_map *maps;  /* its arguments behind the dims */
  uint32_t num_maps;
} astra_emulated_launch;

/* What runs the targets "emu:..." of a bundle. It is no part of this library; astra-run brings one. Calls that run at
 * once call it at once. On failure it fills diag, as every function does. */
typedef struct astra_emulator {
  size_t size;
  void *self;
  astra_status (*launch)(void *self, const astra_emulated_launch *launch, astra_diag *diag);
} astra_emulator;

/* ASTRA_DEVICE_ALLOW_PTX: where a bundle has no machine code for a GPU, its driver may compile the bundle's PTX. What
 * it makes of it is no part of the bundle and of no test.
 * ASTRA_DEVICE_ON_NODE: of "cpu" with num_threads > 1: the threads stay on the CPUs of NUMA node `node`. */
enum { ASTRA_DEVICE_ALLOW_PTX = 1, ASTRA_DEVICE_ON_NODE = 2 };

typedef struct astra_device_options {
  size_t size;
  const astra_executor *executor; /* NULL: num_threads decides */
  uint32_t num_threads; /* without an executor: 0 or 1 makes no thread (calls run inside submit on the caller's
                           thread); n > 1 makes a pool of n threads, of which n - 1 look for work for spin_ns before
                           they sleep; calls of about a microsecond run inside submit all the same */
  const char *level;    /* NULL: the best that the CPU has. "x86-64-v3": that one or ASTRA_NO_TARGET */
  const astra_emulator *emulator; /* of a device "emu:...", and of it alone */
  const char *driver;             /* of a GPU: the driver's library to open; NULL: libcuda.so.1, libamdhip64.so */
  uint32_t flags;                 /* of a GPU ASTRA_DEVICE_ALLOW_PTX, of a CPU ASTRA_DEVICE_ON_NODE */
  int64_t spin_ns; /* of num_threads > 1: how long a thread that waits, for another or for work, looks before it sleeps,
                      to some 10,000; 0: 100,000, or no time where the threads are more than the CPUs; negative: none.
                      Longer takes CPU time from others, shorter makes a launch wait until the system has woken one */
  uint32_t node;   /* with ASTRA_DEVICE_ON_NODE; astra_nodes says which there are */
  const char *sysfs; /* where the system describes its nodes; NULL: /sys */
} astra_device_options;

/* name: "cpu"; "cuda:0", "hip:1": the GPU of that number, whose driver is opened now; or "emu:cuda:sm_90": the target
 * of that name in an emulator. options may be NULL but for "emu:...". A GPU's calls run behind submit, which waits only
 * where the program decides by what it computed; with an executor or threads it waits on those. The context that is
 * current on a thread stays current. */
ASTRA_API astra_status astra_device_init(astra_device **out, astra_runtime *runtime, const char *name,
                                         const astra_device_options *options, astra_diag *diag);
ASTRA_API astra_status astra_device_free(astra_device **device);
/* Whether this CPU has a feature by the name that bundles use ("avx2", "asimd"); 1, 0, or -1 for a name not known. */
ASTRA_API int32_t astra_device_has_feature(const astra_device *device, const char *feature);

/* The NUMA nodes that have memory, in ascending order, as the folder `sysfs` (NULL: /sys) says. `count` is how many
 * numbers `nodes` has room for, and becomes how many nodes there are; ASTRA_CAPACITY if those are more, and then only
 * `count` is set. ASTRA_UNSUPPORTED where the system knows of no nodes. */
ASTRA_API astra_status astra_nodes(const char *sysfs, uint32_t *nodes, uint32_t *count, astra_diag *diag);

/*===- Pool and buffer ------------------------------------------------------===*/

/* ASTRA_POOL_ON_NODE: of a CPU: memory of NUMA node `node` alone, whichever thread touches it first. It comes from the
 * system, not from the allocator of the runtime.
 * ASTRA_POOL_PINNED: of a GPU: memory of the host that its driver has pinned, so that copies run beside other work.
 * astra_buffer_data gives its address, and tensors in it are tensors of the host; streams copy to and from it as they
 * do of other host memory. */
enum { ASTRA_POOL_ON_NODE = 1, ASTRA_POOL_PINNED = 2 };

typedef struct astra_pool_options {
  size_t size;
  uint64_t max_bytes; /* 0: no limit; more is ASTRA_OUT_OF_MEMORY */
  uint32_t flags;     /* ASTRA_POOL_ON_NODE, ASTRA_POOL_PINNED */
  uint32_t node;      /* with ASTRA_POOL_ON_NODE */
  const char *sysfs;  /* as in astra_device_options */
} astra_pool_options;

typedef struct astra_pool_stats {
  size_t size;
  uint64_t bytes_held;   /* taken from the allocator */
  uint64_t bytes_in_use; /* of them, in buffers that live or that a call in flight still uses */
  uint64_t peak_in_use;
  uint64_t fresh;    /* requests that took new memory */
  uint64_t recycled; /* requests served by a block used before */
  uint64_t in_order; /* of them, by a block that calls in flight still have (astra_buffer_init_on) */
} astra_pool_stats;

/* A freed block serves later requests of its size or less; a block that a call in flight uses is not reused before the
 * call has ended. options may be NULL. */
ASTRA_API astra_status astra_pool_init(astra_pool **out, astra_device *device, const astra_pool_options *options,
                                       astra_diag *diag);
ASTRA_API astra_status astra_pool_free(astra_pool **pool);
ASTRA_API astra_status astra_pool_get_stats(astra_pool *pool, astra_pool_stats *out);
/* Gives unused blocks back to the allocator. */
ASTRA_API astra_status astra_pool_trim(astra_pool *pool);

/* 64-byte aligned, content undefined. bytes may be 0. Of a GPU it is memory of the GPU. */
ASTRA_API astra_status astra_buffer_init(astra_buffer **out, astra_pool *pool, uint64_t bytes, astra_diag *diag);
/* The same for what `stream` does next: a freed block that calls in flight still use serves too, if all of these end
 * before, as the order of streams and promises says; nobody waits. Its memory is yours once a call or copy has written
 * it: what comes before on the stream may still use it, so the host does not touch it by its address, and calls of
 * other streams come after that one. */
ASTRA_API astra_status astra_buffer_init_on(astra_buffer **out, astra_pool *pool, astra_stream *stream, uint64_t bytes,
                                            astra_diag *diag);
/* A view of bytes offset .. offset + bytes; it keeps the block alive. Views of one block that do not overlap may be
 * written by several streams at once. */
ASTRA_API astra_status astra_buffer_init_view(astra_buffer **out, astra_buffer *parent, uint64_t offset, uint64_t bytes,
                                              astra_diag *diag);
ASTRA_API astra_status astra_buffer_free(astra_buffer **buffer);
/* The address on the host, NULL for a GPU's buffer (astra_stream_write and astra_stream_read copy); the size. The
 * caller must not touch what a call in flight writes. */
ASTRA_API void *astra_buffer_data(astra_buffer *buffer);
ASTRA_API uint64_t astra_buffer_bytes(const astra_buffer *buffer);

/*===- Tensors --------------------------------------------------------------===*/

/* ASTRA_TENSOR_DONATED: the call takes over the caller's count of `buffer` if submit succeeds: as if freed when the
 * call has ended; the program may use its memory. Inputs only.
 * ASTRA_TENSOR_CONJUGATE: the elements are the conjugates of what is in memory; complex types only; it is copied as
 * what is not row-major is. */
enum { ASTRA_TENSOR_DONATED = 1, ASTRA_TENSOR_CONJUGATE = 2 };

/* A description of memory; it owns nothing. Either `buffer`, or `data` and `data_bytes` (host memory that must stay as
 * it is until the call has ended). The element [0, ..., 0] is at byte_offset. A GPU's calls copy what is in host memory
 * there and back; what lies in its own buffers at a multiple of 16 bytes is used in place. */
typedef struct astra_tensor {
  size_t size;
  astra_buffer *buffer;
  void *data;
  uint64_t data_bytes;
  uint64_t byte_offset;
  int32_t dtype;
  int32_t ndim;
  const int64_t *shape;   /* ndim numbers */
  const int64_t *strides; /* ndim numbers, in elements; NULL: row-major */
  uint32_t flags;
} astra_tensor;

/*===- Functions of the program ---------------------------------------------===*/

/* How a function is declared. A bundle says for each of its functions whether its calls are declared so.
 * ASTRA_FUNCTION_DETERMINISTIC: equal inputs give equal bits, whenever, wherever and by whomever it is called. Without
 *   it no bundle that calls it as a deterministic one is loaded; a bundle that calls one without is no strict one
 *   (ASTRA_REQUIRE_STRICT).
 * ASTRA_FUNCTION_EFFECTS: it does more than give its outputs (it prints, counts, keeps something). No bundle that calls
 *   it as one without is loaded: equal calls of such a one may be one, and what nobody reads is not called. */
enum { ASTRA_FUNCTION_DETERMINISTIC = 1, ASTRA_FUNCTION_EFFECTS = 2 };

/* What a bundle calls. Inputs and outputs are tensors on the host, row-major (strides and buffer are NULL), of the
 * dtypes and shapes that the bundle says (a function that takes several sees which by the tensors themselves); their
 * structs, shapes and data are there until it returns. It reads the inputs, writes every element of the outputs (a bool
 * is 0 or 1) and nothing else. ASTRA_OK, or any other status: the call that it is part of ends with
 * ASTRA_FUNCTION_FAILED (ASTRA_PEER_LOST and ASTRA_PEER_DIFFERS stay), and states that it writes are lost. Then diag,
 * which is not NULL, may have a sentence.
 *
 * It is called on the thread that runs the call: the caller's inside submit, a worker, or whoever waits there; by
 * several threads at once where several calls are in flight. It must not throw, and must not call functions that wait
 * for calls, or those of the session at hand. Calls of a GPU wait, copy its inputs to the host and its outputs back,
 * unless it has a way of its own there (astra/gpu.h). */
typedef astra_status (*astra_function_fn)(void *self, const astra_tensor *inputs, uint32_t num_inputs,
                                          const astra_tensor *outputs, uint32_t num_outputs, astra_diag *diag);
/* From now on bundles that call the function `name` are loaded with this one, in place of one that was registered
 * before; with fn NULL they are refused again. Those that are loaded keep theirs, so that `self` and fn must outlive
 * them. A bundle that calls a function that is not registered is refused by astra_loaded_init (ASTRA_UNKNOWN_NAME). */
ASTRA_API astra_status astra_runtime_register(astra_runtime *runtime, const char *name, astra_function_fn fn,
                                              void *self, uint32_t flags, astra_diag *diag);

/*===- Bundle ---------------------------------------------------------------===*/

enum {
  ASTRA_VERIFY_ALL = 1,       /* hash all code and the weights too */
  ASTRA_VERIFY_SIGNATURE = 2, /* refuse unless signed by public_key; altered weights: with ASTRA_VERIFY_ALL */
  ASTRA_REQUIRE_STRICT = 4    /* refuse unless built under the strict numeric contract, and what it calls of the
                                 program's functions is declared deterministic */
};

typedef struct astra_bundle_options {
  size_t size;
  uint32_t flags;
  const uint8_t *public_key; /* 32 bytes, with ASTRA_VERIFY_SIGNATURE */
} astra_bundle_options;

/* Opens and checks a file; it is mapped, not read, and must not change while the bundle lives. options may be NULL. */
ASTRA_API astra_status astra_bundle_init_file(astra_bundle **out, astra_runtime *runtime, const char *path,
                                              const astra_bundle_options *options, astra_diag *diag);
/* The same from memory, 64-byte aligned, borrowed: it must outlive the bundle unchanged. */
ASTRA_API astra_status astra_bundle_init_memory(astra_bundle **out, astra_runtime *runtime, const void *data,
                                                size_t bytes, const astra_bundle_options *options, astra_diag *diag);
ASTRA_API astra_status astra_bundle_free(astra_bundle **bundle);

/* What is in a bundle. Strings and arrays belong to the bundle. */
typedef struct astra_tensor_info {
  size_t size;
  const char *name;
  int32_t dtype;
  int32_t ndim;
  const int64_t *lower; /* ndim numbers: the least extent that is legal */
  const int64_t *upper; /* the largest; equal to lower where the extent is constant */
  int32_t is_tap;       /* outputs: exists because --taps asked for it */
} astra_tensor_info;

typedef struct astra_dim_info {
  size_t size;
  const char *name;
  int64_t lower;
  int64_t upper;
  int32_t is_host;    /* set by astra_session_set_dim */
  int32_t is_session; /* given when the session is made */
} astra_dim_info;

typedef struct astra_target_info {
  size_t size;
  const char *name; /* "cpu:x86-64-v3" */
  const char
      *lacks; /* the first CPU feature that this machine lacks, the architecture if that differs, NULL if it runs */
} astra_target_info;

typedef struct astra_bundle_info {
  size_t size;
  const char *module;
  const char *contract; /* "astra-num/1" */
  const char *numerics; /* "strict"; "device:hopper16" where matrix units add: their names, with commas */
  uint32_t num_entries;
  uint32_t num_params;
  uint32_t num_states;
  uint32_t num_dims;
  uint32_t num_targets;
  uint32_t num_kernels;
} astra_bundle_info;

typedef struct astra_entry_info {
  size_t size;
  const char *name;
  uint32_t num_inputs;
  uint32_t num_outputs;
  int32_t waits_on_host; /* has loops or branches decided on the host, or calls functions of the program */
} astra_entry_info;

ASTRA_API astra_status astra_bundle_get_info(const astra_bundle *bundle, astra_bundle_info *out);
ASTRA_API astra_status astra_bundle_get_target(const astra_bundle *bundle, uint32_t index, astra_target_info *out);
ASTRA_API astra_status astra_bundle_get_dim(const astra_bundle *bundle, uint32_t index, astra_dim_info *out);
/* Params that a user may replace, and states, by index. The shape of a param is constant. */
ASTRA_API astra_status astra_bundle_get_param(const astra_bundle *bundle, uint32_t index, astra_tensor_info *out);
ASTRA_API astra_status astra_bundle_get_state(const astra_bundle *bundle, uint32_t index, astra_tensor_info *out);
ASTRA_API astra_status astra_bundle_get_entry(const astra_bundle *bundle, uint32_t index, const astra_entry **out);
ASTRA_API astra_status astra_bundle_find_entry(const astra_bundle *bundle, const char *name, const astra_entry **out,
                                               astra_diag *diag);
ASTRA_API astra_status astra_entry_get_info(const astra_entry *entry, astra_entry_info *out);
ASTRA_API astra_status astra_entry_get_input(const astra_entry *entry, uint32_t index, astra_tensor_info *out);
ASTRA_API astra_status astra_entry_get_output(const astra_entry *entry, uint32_t index, astra_tensor_info *out);
ASTRA_API astra_status astra_entry_find_input(const astra_entry *entry, const char *name, uint32_t *index,
                                              astra_diag *diag);
ASTRA_API astra_status astra_entry_find_output(const astra_entry *entry, const char *name, uint32_t *index,
                                               astra_diag *diag);
/* Whether the entry reads or writes the state of this index: 1, 0, or -1 for an index that there is not. After
 * training, the weights are what the entry for inference uses; the rest is the optimizer's. */
ASTRA_API int32_t astra_entry_uses_state(const astra_entry *entry, uint32_t state);

/* The name of a function of the program that the bundle calls (astra_runtime_register); NULL for an index that there is
 * not. */
ASTRA_API const char *astra_bundle_function_name(const astra_bundle *bundle, uint32_t index);
/* 32 bytes that tell bundles apart: the SHA-256 of the file's table of hashes. */
ASTRA_API astra_status astra_bundle_get_digest(const astra_bundle *bundle, uint8_t *digest);

/*===- Assets ---------------------------------------------------------------===*/

/* Files that came with the model, e.g. a tokenizer (astra/text.h). */
ASTRA_API uint32_t astra_bundle_num_assets(const astra_bundle *bundle);
/* NULL for an index that there is not. */
ASTRA_API const char *astra_bundle_asset_name(const astra_bundle *bundle, uint32_t index);
/* The bytes begin at a multiple of 64 and live as long as the bundle. Each call checks their hash (ASTRA_CORRUPT). */
ASTRA_API astra_status astra_bundle_find_asset(const astra_bundle *bundle, const char *name, const void **data,
                                               uint64_t *bytes, astra_diag *diag);

/*===- Loaded ---------------------------------------------------------------===*/

/* Puts a bundle on devices (one, for now): chooses the level, maps the code. Weights are shared by all that load the
 * bundle. */
ASTRA_API astra_status astra_loaded_init(astra_loaded **out, astra_bundle *bundle, astra_device *const *devices,
                                         uint32_t num_devices, astra_diag *diag);
ASTRA_API astra_status astra_loaded_free(astra_loaded **loaded);
/* The name of the target that was chosen, e.g. "cpu:x86-64-v4". */
ASTRA_API const char *astra_loaded_target(const astra_loaded *loaded);
/* Replaces a param for every session, from the next call on. The tensor is row-major (or any strides: it is copied), of
 * the param's dtype and shape; its prepare program runs now, and what the compiler computed from it is computed again.
 * ASTRA_BUSY while a call is in flight. */
ASTRA_API astra_status astra_loaded_set_param(astra_loaded *loaded, const char *name, const astra_tensor *value,
                                              astra_diag *diag);

/*===- Session --------------------------------------------------------------===*/

typedef struct astra_dim_value {
  const char *name;
  int64_t value;
} astra_dim_value;

typedef struct astra_session_options {
  size_t size;
  const astra_dim_value *dims; /* values of session dims (and first values of host dims) */
  uint32_t num_dims;
} astra_session_options;

ASTRA_API astra_status astra_session_init(astra_session **out, astra_loaded *loaded,
                                          const astra_session_options *options, astra_diag *diag);
/* ASTRA_BUSY while a call is in flight. */
ASTRA_API astra_status astra_session_free(astra_session **session);
/* Sets a host dim for the calls submitted from now on. */
ASTRA_API astra_status astra_session_set_dim(astra_session *session, const char *name, int64_t value, astra_diag *diag);
/* Replaces a param for this session alone; as astra_loaded_set_param. */
ASTRA_API astra_status astra_session_set_param(astra_session *session, const char *name, const astra_tensor *value,
                                               astra_diag *diag);
/* Copies a tensor into a state (NaNs become canonical), or a state into a tensor. When a session is ASTRA_STATE_LOST,
 * set every state that its entries read, or reset. */
ASTRA_API astra_status astra_session_set_state(astra_session *session, const char *name, const astra_tensor *value,
                                               astra_diag *diag);
ASTRA_API astra_status astra_session_get_state(astra_session *session, const char *name, const astra_tensor *out,
                                               astra_diag *diag);
/* Lends the state's memory for reading, without a copy (of a GPU's state: a copy on the host): the session is
 * ASTRA_BUSY until it is returned. Row-major. */
ASTRA_API astra_status astra_session_lease_state(astra_session *session, const char *name, const void **data,
                                                 uint64_t *bytes, astra_diag *diag);
ASTRA_API astra_status astra_session_return_state(astra_session *session, const char *name, astra_diag *diag);
/* Every state gets its first value again. */
ASTRA_API astra_status astra_session_reset(astra_session *session, astra_diag *diag);

/* What ran, for traces. Called on the thread that ran it, right after it. */
typedef struct astra_trace_event {
  size_t size;
  const char *name;  /* the kernel; "copy" for a copy; "gather", "scatter": the copy of an input or output that is not
                        row-major, whose name is the origin */
  uint64_t begin_ns; /* CLOCK_MONOTONIC */
  uint64_t end_ns;
  int64_t items;
  int64_t bytes; /* -1: not known */
  int64_t flops; /* -1: not known */
  /* The nodes of the model that the kernel computes some of: names of ONNX nodes, "line 12" of a text. In order, at
   * most 8, there while the function runs; more_origins: how many there are beside them, at least. */
  const char *const *origins;
  uint32_t num_origins;
  uint32_t more_origins;
} astra_trace_event;
typedef void (*astra_trace_fn)(void *self, const astra_trace_event *event);
/* NULL: no trace. ASTRA_BUSY while a call is in flight. */
ASTRA_API astra_status astra_session_set_trace(astra_session *session, astra_trace_fn fn, void *self);

/* The capacity that output `output` of the entry needs for these inputs and the session's dims: `shape` gets the bound
 * of each axis (ASTRA_MAX_RANK numbers are enough), `ndim` their number, `bytes` the size. Of the inputs only dtype,
 * ndim and shape are read. shape, ndim, bytes may be NULL. */
ASTRA_API astra_status astra_entry_output_bound(const astra_entry *entry, astra_session *session,
                                                const astra_tensor *inputs, uint32_t num_inputs, uint32_t output,
                                                int64_t *shape, int32_t *ndim, uint64_t *bytes, astra_diag *diag);

/*===- Stream, call, promise ------------------------------------------------===*/

ASTRA_API astra_status astra_stream_init(astra_stream **out, astra_device *device, astra_diag *diag);
/* Waits for what was submitted to it. */
ASTRA_API astra_status astra_stream_free(astra_stream **stream);

enum {
  ASTRA_CALL_ALLOW_COPY = 1, /* inputs and outputs on the host with other strides than row-major are copied instead of
                                refused. An output that holds an element twice is refused all the same (ASTRA_OVERLAP).
                                astra/tensor.h makes such tensors. */
  ASTRA_CALL_ORDER = 2 /* the call starts after the calls in flight that it shares memory with which one of them writes,
                          as if `after` named them, instead of being refused with ASTRA_OVERLAP; so too where it is not
                          shown that they share none */
};

typedef struct astra_call {
  size_t size;
  const astra_entry *entry;
  const astra_tensor *inputs; /* in the entry's order */
  uint32_t num_inputs;
  const astra_tensor *outputs; /* in the entry's order; shape is the bound (astra_entry_output_bound) */
  uint32_t num_outputs;
  astra_promise *const *after; /* this call starts after these, whatever their stream or device */
  uint32_t num_after;
  uint32_t flags;
} astra_call;

/* Checks everything and queues the call; a refusal leaves session and tensors as they were. Errors of the run itself
 * surface at the promise. promise may be NULL when nobody asks; the session is ASTRA_BUSY until the call has ended all
 * the same, and astra_stream_mark gives a promise for that. The call keeps what it needs: buffers and promises may
 * be freed right away. */
ASTRA_API astra_status astra_session_submit(astra_session *session, astra_stream *stream, const astra_call *call,
                                            astra_promise **promise, astra_diag *diag);
/* A promise for everything submitted to the stream so far (what other interfaces call an event). */
ASTRA_API astra_status astra_stream_mark(astra_stream *stream, astra_promise **out, astra_diag *diag);
/* What is submitted to the stream from now on starts after the promise. */
ASTRA_API astra_status astra_stream_wait(astra_stream *stream, astra_promise *promise, astra_diag *diag);

/* Queue a copy between host memory, which must stay until it has ended, and bytes offset .. offset + bytes of a buffer
 * of the stream's device. It is ordered by the stream and by promises, and not compared with calls in flight. promise
 * may be NULL. */
ASTRA_API astra_status astra_stream_write(astra_stream *stream, astra_buffer *to, uint64_t offset, const void *from,
                                          uint64_t bytes, astra_promise **promise, astra_diag *diag);
ASTRA_API astra_status astra_stream_read(astra_stream *stream, void *to, astra_buffer *from, uint64_t offset,
                                         uint64_t bytes, astra_promise **promise, astra_diag *diag);

/* How a stream is ordered with others. A wait is inserted where it is needed and nowhere else: not for what had ended
 * when it was named, and not for what is ordered before already, by the stream itself, by what it has waited for, or by
 * another promise of the same call. */
typedef struct astra_stream_stats {
  size_t size;
  uint64_t tasks;        /* calls, copies, marks and waits that were submitted to it */
  uint64_t dependencies; /* promises that they start after: named in `after`, in astra_stream_wait, or found for
                            ASTRA_CALL_ORDER */
  uint64_t waits;        /* of them, those that a wait was inserted for */
} astra_stream_stats;
ASTRA_API astra_status astra_stream_get_stats(astra_stream *stream, astra_stream_stats *out);

/* ASTRA_NOT_READY, ASTRA_OK, or what went wrong. */
ASTRA_API astra_status astra_promise_poll(astra_promise *promise, astra_diag *diag);
/* Blocks until the call has ended; gives ASTRA_OK or what went wrong. May be called again, and by several threads. On a
 * device with a pool of threads the calling thread works meanwhile: it runs kernels of calls in flight. */
ASTRA_API astra_status astra_promise_wait(astra_promise *promise, astra_diag *diag);
/* After a successful end: the actual extents of output `output` (data dims included) in `shape`. */
ASTRA_API astra_status astra_promise_output_shape(astra_promise *promise, uint32_t output, int64_t *shape,
                                                  int32_t *ndim, astra_diag *diag);
ASTRA_API astra_status astra_promise_free(astra_promise **promise);

/* What is called when a promise has ended; status is ASTRA_OK or what went wrong. */
typedef void (*astra_ready_fn)(void *self, astra_status status);
/* Calls fn(self, status) exactly once, when the promise has ended, also if the caller has freed it by then. Functions
 * of one promise are called in the order in which they came. If this is refused fn is not called.
 *
 * Which thread. Of a promise that has ended already the caller's, before this returns. Else the one that ends the call:
 * a worker of the device, or whoever submits, polls or waits there; of a GPU also a thread that the runtime makes for
 * the device when it is first asked to call somebody (ASTRA_THREADS if it cannot), and which sleeps while nothing is
 * in flight. A thread that waits for the promise may return before fn has.
 *
 * What fn may do. The session is free for its next call, the results may be read, and any function may be called but
 * those that wait for calls (astra_promise_wait, astra_stream_free, the copies of a GPU's params and states) and
 * astra_device_free: they could wait for the thread that fn is called on. It should be short, since what comes next
 * in the stream begins after it; longer work belongs to a thread of the host. It must not throw.
 *
 * It cannot be taken back, also not by astra_promise_cancel: what `self` points to stays until fn is called. Who may be
 * gone before shares a small state with fn, which the second of them frees (astra/async.hpp does). */
ASTRA_API astra_status astra_promise_on_ready(astra_promise *promise, astra_ready_fn fn, void *self, astra_diag *diag);
/* A descriptor that is ready for reading from the moment when the promise has ended (eventfd(2), closed on exec): for
 * poll(2), epoll(7) and event loops. It is the caller's, who closes it, at any time. The promise says how it ended. */
ASTRA_API astra_status astra_promise_fd(astra_promise *promise, int *out, astra_diag *diag);
/* Takes back what has not begun: it will not run, changes nothing, and its promise ends with ASTRA_CANCELLED, in its
 * turn: when what is before it in its stream, and what it waits for, has ended. ASTRA_BUSY if it has begun or ended,
 * and then nothing changes. */
ASTRA_API astra_status astra_promise_cancel(astra_promise *promise, astra_diag *diag);

#ifdef __cplusplus
}
#endif

/* A struct of all zeros with its size set: `astra_call call = ASTRA_INIT(astra_call);` */
#ifdef __cplusplus
template <typename T> inline T astraInitialized() {
  T value{};
  value.size = sizeof(T);
  return value;
}
#define ASTRA_INIT(type) astraInitialized<type>()
#else
#define ASTRA_INIT(type) {.size = sizeof(type)}
#endif

#endif
