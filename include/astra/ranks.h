/*===- ranks.h: one bundle on several processes ------------------------------===
 * Takes:    an engine that moves bytes between the ranks of a job: shared memory, MPI, or a table of the program's own.
 * Gives:    the collectives of bundles that were compiled for a mesh (docs/distributed.md), registered with a runtime.
 * Keeps:    the conventions of astra.h. Engines move bytes and nothing else: every sum is computed here, in the order
 *           of the mesh, so that the bits do not depend on the number of ranks or on the engine. The library needs libc
 *           and the loader alone; it opens MPI, NCCL and RCCL by name where it is asked for.
 * Does not: start processes (astra-launch, mpirun, srun and torchrun do), open sockets.
 *
 * A rank is one process (or one thread, see astra_ranks_init_threads) of a job of R; a mesh has M logical shards, and R
 * divides M. Rank r runs the shards r * M / R ... (r + 1) * M / R - 1.
 *
 * Failures. A rank that dies, leaves or does not move within the timeout ends what the others wait for with
 * ASTRA_PEER_LOST; ranks that are in different collectives, or have different bundles, get ASTRA_PEER_DIFFERS. After
 * either a handle serves for nothing but astra_ranks_free, and the other ranks are told.
 */
#ifndef ASTRA_RANKS_H
#define ASTRA_RANKS_H

#include "astra/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process among the ranks. Used by one thread at a time. */
typedef struct astra_ranks astra_ranks;

/*===- Engines ---------------------------------------------------------------===*/

/* A message to or from a rank that is not one's own. */
typedef struct astra_transfer {
  int32_t peer;
  void *data; /* a send only reads it */
  uint64_t bytes;
} astra_transfer;

/* What an engine has to do. */
typedef struct astra_engine {
  size_t size;
  void *self;
  const char *name;
  int32_t rank, ranks;
  /* Sends and receives all of these at once and returns when they are done: the memory is the caller's again. Of
   * messages between two ranks the first that is sent is the first that is received; both sides say the same number of
   * bytes, or get ASTRA_PEER_DIFFERS. ASTRA_PEER_LOST where nothing moves for `timeout` milliseconds, or a peer has
   * stopped; *peer is then the rank that is waited for. */
  astra_status (*exchange)(void *self, const astra_transfer *sends, uint32_t num_sends, const astra_transfer *receives,
                           uint32_t num_receives, int32_t timeout, int32_t *peer, astra_diag *diag);
  /* This rank gives up: whoever waits for it, now or later, is told if the engine can do that. */
  void (*stop)(void *self);
  /* The end; other ranks may still receive what was sent. */
  void (*close)(void *self);
  /* Of an engine that moves memory of GPUs; NULL, or a struct that ends before: it does not, and the runtime copies.
   * Puts the transfers, whose data is the GPU's memory, into the queue of `gpu` and returns; without any it may get
   * ready for them. All ranks call it the first time together. */
  astra_status (*exchange_gpu)(void *self, const astra_gpu_call *gpu, const astra_transfer *sends, uint32_t num_sends,
                               const astra_transfer *receives, uint32_t num_receives, int32_t timeout, int32_t *peer,
                               astra_diag *diag);
  /* Returns when all that was put into the queue has ended, or has been ended since it failed: as `exchange`, where
   * the time begins when the GPU comes to a transfer. */
  astra_status (*settle_gpu)(void *self, const astra_gpu_call *gpu, int32_t timeout, int32_t *peer, astra_diag *diag);
} astra_engine;

/*===- Ranks ------------------------------------------------------------------===*/

typedef struct astra_ranks_options {
  size_t size;
  /* "shm": shared memory of one machine. "mpi", "mpi:PATH": an MPI library (Open MPI, MPICH, or one with the standard
   * ABI). "nccl", "nccl:PATH", "rccl", "rccl:PATH": memory of NVIDIA's or AMD's GPUs by NCCL or RCCL, that of the host
   * by what fits the launcher. NULL: the environment's variable ASTRA_ENGINE, or what fits the launcher: MPI under
   * mpirun, shared memory under astra-launch, srun and torchrun, nothing for a program that was started alone, which is
   * the only rank. */
  const char *engine;
  /* The program's own, in place of a name; it must outlive the handle, which calls its close. */
  const astra_engine *table;
  int32_t timeout; /* milliseconds; 0: of the environment's ASTRA_RANKS_TIMEOUT, in seconds, or 5000 */
} astra_ranks_options;

/* Joins the job; returns when all ranks have. options may be NULL. */
ASTRA_API astra_status astra_ranks_init(astra_ranks **out, const astra_ranks_options *options, astra_diag *diag);
/* A job of `ranks` threads of this program: out[i] is for the i-th. Of the options it takes the timeout. */
ASTRA_API astra_status astra_ranks_init_threads(astra_ranks **out, int32_t ranks, const astra_ranks_options *options,
                                                astra_diag *diag);
/* Leaves the job, after the meshes that were made with it are free. */
ASTRA_API void astra_ranks_free(astra_ranks **ranks);

ASTRA_API int32_t astra_ranks_rank(const astra_ranks *ranks);
ASTRA_API int32_t astra_ranks_size(const astra_ranks *ranks);
/* "shm", "mpi (Open MPI v4.1.4)", "nccl 2.28.9, shm", "threads", "alone"; belongs to the handle. */
ASTRA_API const char *astra_ranks_engine(const astra_ranks *ranks);
/* The number of this process among those that the launcher has started on this machine, 0 if none has: of its GPU. -1:
 * the launcher does not say. */
ASTRA_API int32_t astra_ranks_local_rank(void);

/*===- A bundle on ranks -------------------------------------------------------===*/

/* A bundle's mesh, and how its tensors are cut. */
typedef struct astra_mesh astra_mesh;

/* Registers with `runtime` the collectives that a bundle calls, so that it can be loaded. Collective: all ranks have
 * the same bundle (ASTRA_PEER_DIFFERS). ASTRA_INVALID_ARGUMENT if the number of ranks does not divide that of the
 * shards. A bundle without a mesh has one shard and runs on one rank. Calls of what is loaded are then collective, too:
 * every rank makes the same calls in the same order, one at a time. `ranks` and the handle must outlive what is loaded.
 */
ASTRA_API astra_status astra_mesh_init(astra_mesh **out, astra_ranks *ranks, astra_runtime *runtime,
                                       const astra_bundle *bundle, astra_diag *diag);
ASTRA_API void astra_mesh_free(astra_mesh **mesh);

/* Logical shards of the mesh, and those that this rank runs: what the dim `shards` of the bundle is here. */
ASTRA_API int64_t astra_mesh_shards(const astra_mesh *mesh);
ASTRA_API int64_t astra_mesh_local_shards(const astra_mesh *mesh);
/* Its axes with their sizes, "data=8,model=2"; "" of a bundle without one. Belongs to the handle. */
ASTRA_API const char *astra_mesh_axes(const astra_mesh *mesh);

enum { ASTRA_MESH_INPUT = 0, ASTRA_MESH_OUTPUT = 1, ASTRA_MESH_STATE = 2 };

/* How a tensor is cut. A logical tensor of extents n[0] ... n[ndim - 1] is on a rank [local shards, n[0] / parts[0],
 * ...]; one that is whole is the same on every rank. */
typedef struct astra_mesh_cut {
  size_t size;
  int32_t is_whole;
  int32_t ndim;                  /* of the logical tensor, where it is cut */
  int64_t parts[ASTRA_MAX_RANK]; /* 1: the axis is not cut */
} astra_mesh_cut;
/* `entry` is NULL for a state. What the bundle says nothing of is whole. */
ASTRA_API astra_status astra_mesh_get_cut(const astra_mesh *mesh, int32_t kind, const char *entry, const char *name,
                                          astra_mesh_cut *out);
/* The part of this rank, of a logical tensor in row-major order, `element` bytes each. A tensor that is whole is
 * copied. ASTRA_WRONG_SHAPE: the parts do not divide the extents. ASTRA_CAPACITY: `local_bytes` are too few; where
 * several shards have the same part, those of a rank may have more bytes than the logical tensor. */
ASTRA_API astra_status astra_mesh_take(const astra_mesh *mesh, int32_t kind, const char *entry, const char *name,
                                       uint32_t element, int32_t ndim, const int64_t *shape, const void *logical,
                                       void *local, uint64_t local_bytes, astra_diag *diag);
/* The logical tensor of all ranks' parts, on every rank. Collective. `shape` is the logical one. */
ASTRA_API astra_status astra_mesh_join(astra_mesh *mesh, int32_t kind, const char *entry, const char *name,
                                       uint32_t element, int32_t ndim, const int64_t *shape, const void *local,
                                       void *logical, uint64_t logical_bytes, astra_diag *diag);

/*===- For the program ---------------------------------------------------------===*/

/* Each rank gives `bytes` and gets those of all, in the order of the ranks. */
ASTRA_API astra_status astra_ranks_gather(astra_ranks *ranks, const void *data, uint64_t bytes, void *all,
                                          astra_diag *diag);
/* The sum of all ranks' `count` elements (floats or integers), on every rank, by the tree over the ranks: as a
 * collective of a mesh that has one shard a rank. */
ASTRA_API astra_status astra_ranks_sum(astra_ranks *ranks, int32_t dtype, uint64_t count, const void *data, void *sum,
                                       astra_diag *diag);
/* Returns when all ranks have called it. */
ASTRA_API astra_status astra_ranks_barrier(astra_ranks *ranks, astra_diag *diag);

/* What has moved since the beginning. */
typedef struct astra_ranks_counters {
  size_t size;
  uint64_t collectives;
  uint64_t sent, received; /* bytes of tensors, without headers */
  uint64_t nanoseconds;    /* in collectives, waiting included */
} astra_ranks_counters;
ASTRA_API astra_status astra_ranks_get_counters(const astra_ranks *ranks, astra_ranks_counters *out);

/* What a rank sends for one call of a collective, without any rank: to plan. `function` is the name that a bundle
 * calls, `bytes` those of one shard's operand (of reduce_scatter and all_to_all of one block of it), `element` those of
 * an element, `per_node` how many ranks that follow each other are on one machine. */
typedef struct astra_traffic {
  size_t size;
  uint64_t sent, sent_outside; /* bytes; of them those that leave the machine */
  uint32_t rounds;             /* one after another */
} astra_traffic;
ASTRA_API astra_status astra_collective_traffic(const char *function, uint64_t bytes, uint32_t element, int32_t ranks,
                                                int32_t rank, int32_t per_node, astra_traffic *out, astra_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
