//===- Ranks.h: what the files of libastra_ranks share ---------------------===//
// Takes:    the C ABI of the runtime, and nothing of what lies behind it.
// Gives:    a rank; engines by name; the collective that a name says; exchanges with a header.
// Keeps:    no global state, no exception; libstdc++ is used for headers only.
#pragma once

#include "JobName.h"
#include "astra/ranks.h"
#include <cstdlib>
#include <cstring>

namespace astra::ranks {

using Status = astra_status;

/// Fills `diag` (may be null) with the sentence and gives `status`.
[[gnu::cold, gnu::format(printf, 3, 4)]] Status fail(astra_diag *diag, Status status, const char *format, ...);

/// A growing array of plain elements. Where memory is short `failed` is set, and what is added is lost.
template <typename T> class List {
public:
  List() = default;
  List(const List &) = delete;
  List &operator=(const List &) = delete;
  ~List() { free(items); }
  void add(const T &item) {
    if (length == room && !grow(length + 1)) return;
    items[length++] = item;
  }
  /// `count` elements, those that are new of zeros.
  bool resize(size_t count) {
    if (count > room && !grow(count)) return false;
    if (count > length) memset(static_cast<void *>(items + length), 0, (count - length) * sizeof(T));
    length = count;
    return true;
  }
  void clear() { length = 0; }
  size_t size() const { return length; }
  T *data() { return items; }
  T &operator[](size_t i) { return items[i]; }
  T *begin() { return items; }
  T *end() { return items + length; }
  bool failed = false;

private:
  bool grow(size_t count) {
    size_t want = count < 2 * room ? 2 * room : count < 16 ? 16 : count;
    void *grown = want > PTRDIFF_MAX / sizeof(T) ? nullptr : realloc(items, want * sizeof(T));
    if (!grown) return !(failed = true);
    items = static_cast<T *>(grown), room = want;
    return true;
  }
  T *items = nullptr;
  size_t length = 0, room = 0;
};

//===- Engines: Channels.cpp, Mpi.cpp, Nccl.cpp -----------------------------===//

/// Shared memory of one machine, of this name.
Status openShared(astra_engine *out, int32_t rank, int32_t ranks, const char *name, astra_diag *diag);
/// The same memory among threads: all engines at once.
Status openThreads(astra_engine *out, int32_t ranks, astra_diag *diag);
/// An MPI library, `path` or, if that is null, those that Debian has.
Status openMpi(astra_engine *out, const char *path, astra_diag *diag);
/// NCCL or RCCL, as `text` begins ("nccl", "nccl:PATH", "rccl:PATH"), for memory of GPUs; `host` for that of the host,
/// which is closed with it, or on failure.
Status openNccl(astra_engine *out, const char *text, const astra_engine &host, astra_diag *diag);
bool isNccl(const char *text);

//===- Launch.cpp -----------------------------------------------------------===//

/// Who started this process, by the variables that it set.
struct Launch {
  const char *launcher; ///< null: nobody
  int32_t rank, ranks;
  int32_t local; ///< among the ranks of this machine; -1: not known
  bool oneMachine;
  bool mpi; ///< the launcher is MPI's
  JobName memory;
};
Status readLaunch(Launch *out, astra_diag *diag);
/// Whether the launcher says that a rank of the job has failed: one that had not come yet is missed by nobody else.
bool jobHasFailed();

//===- Names.cpp ------------------------------------------------------------===//

enum class Op { AllReduce, ReduceScatter, AllGather, AllToAll, Permute, Index };
enum class Kind { Sum, Prod, Max, Min };

inline constexpr int32_t kMostAxes = 8;
inline constexpr int64_t kMostShards = 1 << 16;

/// A piece of a text.
struct Piece {
  const char *text;
  size_t size;
  bool is(const char *word) const { return strlen(word) == size && !memcmp(text, word, size); }
};
/// Takes the text up to one of `stops` or its end from the front, and what stopped it.
Piece next(Piece &rest, const char *stops);

/// A mesh: shards are numbered row-major along its axes.
struct Mesh {
  int32_t axes = 0;
  int64_t size[kMostAxes] = {};
  int64_t shards = 1;

  /// The index of a shard along the axes of `over`, row-major, and how many there are.
  int64_t indexOf(int64_t shard, const bool *over) const;
  int64_t count(const bool *over) const;
};
/// "data=8,model=2"; `names` (kMostAxes) points into the text.
bool readMesh(Piece text, Mesh *mesh, Piece *names);
/// "data+model": axes of a mesh, in its order.
bool readAxes(Piece text, const Mesh &mesh, const Piece *names, bool *over);

/// The collective that a function's name says: "astra.mesh.OP/AXES/OVER/KIND".
struct Collective {
  char name[256];
  Op op;
  Kind kind;
  bool one;      ///< the result is equal in all shards, and there once
  int64_t shift; ///< of a permute
  bool wrap;
  Mesh mesh;
  bool over[kMostAxes];
  int64_t group; ///< its size
  astra_ranks *ranks;
  int64_t *places; ///< of an index on a GPU: what goes there; owned

  /// The place of a shard in its group, and the shard at a place of the group of `shard`.
  int64_t placeOf(int64_t shard) const { return mesh.indexOf(shard, over); }
  int64_t member(int64_t shard, int64_t place) const;
};
/// Whether the name is that of a collective, whatever follows.
bool isCollective(const char *name);
Status readName(Collective *out, const char *name, astra_diag *diag);

//===- Fold.cpp -------------------------------------------------------------===//

/// out[i] = a[i] KIND b[i] of `count` elements; out may be a or b. Null: a dtype that is not folded.
using CombineFn = void (*)(void *out, const void *a, const void *b, uint64_t count);
CombineFn combineOf(Kind kind, int32_t dtype);

/// A value of the members lo ... hi - 1 of a group, folded.
struct Part {
  int64_t lo, hi;
  const char *data;
};
/// A node of the tree over `group` members: at `lo`, the greatest one that ends at `hi` or before.
int64_t nodeEnd(int64_t lo, int64_t hi, int64_t group);
/// The value of the members lo ... hi - 1, which are a node: `parts` are nodes too and cover it, in order. Elements
/// `count`, of `bytes` each. False: no memory.
bool fold(void *out, const Part *parts, size_t numParts, int64_t lo, int64_t hi, uint64_t count, uint32_t bytes,
          CombineFn combine);
/// The same on a GPU by kernels of the bundle, whose entry adds (or what else) two vectors, `run` bytes of a node at a
/// time; `room` has as many bytes as foldRoom says.
Status foldOnGpu(const astra_gpu_call *gpu, const char *entry, void *out, const Part *parts, size_t numParts,
                 int64_t lo, int64_t hi, uint64_t count, uint32_t bytes, char *room, uint64_t run, astra_diag *diag);
/// Of values of up to `bytes`, and up to so many members.
uint64_t foldRun(uint64_t bytes);
uint64_t foldRoom(int64_t members, uint64_t bytes);

//===- Place.cpp -------------------------------------------------------------===//

/// Where the parts of a collective are: memory of the host, where everything happens at once, or of a GPU, where it
/// happens in the order of a queue. The first failure stays, and nothing is done behind it.
class Place {
public:
  Place(astra_ranks *ranks, const astra_gpu_call *gpu, astra_diag *diag) : ranks(ranks), gpu(gpu), diag(diag) {}
  void copy(void *to, const void *from, uint64_t bytes);
  void zero(void *to, uint64_t bytes);
  /// Memory until the next call of this; null after a failure. It has some more behind, to fold up to `members` values
  /// of up to `value` bytes.
  char *room(uint64_t bytes, int64_t members, uint64_t value);
  /// What a value of so many bytes takes of a room.
  uint64_t slot(uint64_t bytes) const { return gpu ? (bytes + 255) / 256 * 256 : bytes; }
  /// As the function above. `dtype` is that of the elements.
  void fold(void *out, const Part *parts, size_t numParts, int64_t lo, int64_t hi, uint64_t count, Kind kind,
            int32_t dtype);

  astra_ranks *const ranks;
  const astra_gpu_call *const gpu; ///< null: of the host
  astra_diag *const diag;
  Status status = ASTRA_OK;

private:
  char *behind = nullptr; ///< what folds on a GPU have of the room
  uint64_t run = 0;       ///< bytes of a node that they make at a time
};

/// Of a clock that only goes forward.
uint64_t nanoseconds();
inline uint64_t milliseconds() { return nanoseconds() / 1000000; }

//===- Exchange.cpp ---------------------------------------------------------===//

/// What goes to others and comes from them in one round of a collective, in the order in which it is added.
class Round {
public:
  explicit Round(const astra_gpu_call *gpu = nullptr) : gpu(gpu) {}
  void send(int32_t peer, const void *data, uint64_t bytes) {
    if (bytes) sends.add({peer, const_cast<void *>(data), bytes});
  }
  void receive(int32_t peer, void *data, uint64_t bytes) {
    if (bytes) receives.add({peer, data, bytes});
  }
  List<astra_transfer> sends, receives;
  const astra_gpu_call *const gpu; ///< whose memory it is; null: the host's
};

/// Begins a collective: `what` is its name. Rounds of it follow; the first one carries a header to and from each of its
/// peers, which says where the ranks are.
Status begin(astra_ranks *ranks, const char *what, uint64_t bytes, astra_diag *diag);
Status run(astra_ranks *ranks, Round &round, astra_diag *diag);
void end(astra_ranks *ranks);
/// An exchange has failed: the sentence says where, and the others are told.
Status broken(astra_ranks *ranks, Status status, astra_diag *diag);

//===- Collective.cpp -------------------------------------------------------===//

Status call(void *self, const astra_tensor *inputs, uint32_t numInputs, const astra_tensor *outputs,
            uint32_t numOutputs, astra_diag *diag);

Status callOnGpu(void *self, const astra_gpu_call *gpu, const astra_tensor *inputs, uint32_t numInputs,
                 const astra_tensor *outputs, uint32_t numOutputs, astra_diag *diag);
/// `self` are the ranks.
Status settleOnGpu(void *self, const astra_gpu_call *gpu, astra_diag *diag);

/// What each rank tells the others at the beginning of a collective.
struct Header {
  uint64_t magic, number, bytes;
  char what[256];
};

} // namespace astra::ranks

struct astra_ranks {
  astra_engine engine;
  int32_t timeout;
  bool broken; ///< a rank is lost, or differs
  bool fresh;  ///< no round of this collective has run
  int busy;    ///< a collective is running: __atomic
  uint64_t number, begun;
  astra::ranks::Header own;
  astra_ranks_counters counters;
  astra::ranks::List<char> scratch; ///< of sums: its memory stays, so that its pages are there
};
