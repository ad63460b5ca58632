//===- Collective.cpp: the functions that bundles of a mesh call ------------===//
// Takes:    the parts of the shards that this rank runs, one behind another along the first axis.
// Gives:    the collective's results for them, in the order of the mesh, whatever the number of ranks is.
// Keeps:    ranks fold what is theirs by nodes of the tree; between them go nodes. Each step knows from the mesh alone
//           what every rank sends, so that nothing is negotiated.
// Does not: add in an engine.
#include "Ranks.h"

using namespace astra::ranks;

namespace {

/// A collective at work on one rank.
struct Work {
  const Collective &c;
  astra_ranks *ranks;
  astra_diag *diag;
  const char *x;
  char *y;
  uint64_t bytes;    ///< of a shard's part: of the operand, or of one of the G blocks of it
  uint64_t count;    ///< elements of it that are combined
  uint32_t width;    ///< bytes of such an element
  CombineFn combine; ///< null: nothing is

  int32_t perNode; ///< for traffic: so many ranks that follow each other are on one machine

  /// Notes that this rank sends bytes to another.
  void note(astra_traffic *out, int32_t peer, uint64_t more) const {
    out->sent += more;
    if (peer / perNode != ranks->engine.rank / perNode) out->sent_outside += more;
  }
  int64_t local() const { return c.mesh.shards / ranks->engine.ranks; }
  int64_t first() const { return local() * ranks->engine.rank; }
  int32_t owner(int64_t shard) const { return int32_t(shard / local()); }
  bool own(int64_t shard) const { return owner(shard) == ranks->engine.rank; }
  Status noMemory() const { return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the parts of '%.200s'", c.name); }
};

//===- What only moves ------------------------------------------------------===//

/// Result block (d, g) of shard d is block `block` of shard `shard`: that is all in which all_gather, all_to_all and
/// permute differ.
struct Source {
  int64_t shard, block;
};
Source sourceOf(const Collective &c, int64_t d, int64_t g) {
  switch (c.op) {
  case Op::AllGather: return {c.member(d, g), 0};
  case Op::AllToAll: return {c.member(d, g), c.placeOf(d)};
  default: { // Permute
    int64_t place = c.placeOf(d) - c.shift;
    if (c.wrap) place = (place % c.group + c.group) % c.group;
    return place < 0 || place >= c.group ? Source{-1, 0} : Source{c.member(d, place), 0};
  }
  }
}

/// Each block that another rank needs travels once, however many shards there read it.
class Movement {
public:
  explicit Movement(Work &w)
      : w(w), c(w.c), given(c.op == Op::AllToAll ? c.group : 1), taken(c.op == Op::Permute ? 1 : c.group),
        shards(c.one ? 1 : w.local()), blocks(w.local() * given) {}
  Status run();
  /// What `run` sends.
  Status traffic(astra_traffic *out);

private:
  /// Where in the results of rank `to` the blocks of rank `from` go first, + 1.
  bool places(int32_t from, int32_t to, List<int64_t> &at) const {
    at.clear();
    if (!at.resize(size_t(blocks))) return false;
    for (int64_t i = shards * taken - 1; i >= 0; --i) {
      Source s = sourceOf(c, w.local() * to + i / taken, i % taken);
      if (s.shard >= 0 && w.owner(s.shard) == from) at[size_t((s.shard - w.local() * from) * given + s.block)] = i + 1;
    }
    return true;
  }

  Work &w;
  const Collective &c;
  int64_t given, taken;   ///< blocks of a shard's operand, of its result
  int64_t shards, blocks; ///< of a rank: results, blocks of its operands
};

Status Movement::traffic(astra_traffic *out) {
  List<int64_t> at;
  for (int32_t peer = 0; peer < w.ranks->engine.ranks; peer++) {
    if (peer == w.ranks->engine.rank) continue;
    if (!places(w.ranks->engine.rank, peer, at)) return w.noMemory();
    for (int64_t b = 0; b < blocks; b++)
      if (at[size_t(b)]) w.note(out, peer, w.bytes);
  }
  out->rounds = 1;
  return ASTRA_OK;
}

Status Movement::run() {
  int32_t me = w.ranks->engine.rank;
  Round round;
  List<int64_t> at;
  for (int32_t peer = 0; peer < w.ranks->engine.ranks; peer++) {
    if (peer == me) continue;
    if (!places(me, peer, at)) return w.noMemory();
    for (int64_t b = 0; b < blocks; b++)
      if (at[size_t(b)]) round.send(peer, w.x + uint64_t(b) * w.bytes, w.bytes);
    if (!places(peer, me, at)) return w.noMemory();
    for (int64_t b = 0; b < blocks; b++)
      if (at[size_t(b)]) round.receive(peer, w.y + uint64_t(at[size_t(b)] - 1) * w.bytes, w.bytes);
  }
  if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;
  // What is here already, and what came for an earlier shard.
  List<int64_t> first;
  if (!first.resize(size_t(c.mesh.shards * given))) return w.noMemory();
  for (int64_t i = 0; i < shards * taken; i++) {
    Source s = sourceOf(c, w.first() + i / taken, i % taken);
    char *to = w.y + uint64_t(i) * w.bytes;
    if (s.shard < 0) {
      memset(to, 0, w.bytes);
    } else if (w.own(s.shard)) {
      memcpy(to, w.x + uint64_t((s.shard - w.first()) * given + s.block) * w.bytes, w.bytes);
    } else if (int64_t &known = first[size_t(s.shard * given + s.block)]; known) {
      memcpy(to, w.y + uint64_t(known - 1) * w.bytes, w.bytes);
    } else {
      known = i + 1;
    }
  }
  return ASTRA_OK;
}

//===- What is folded -------------------------------------------------------===//

/// The members lo ... hi - 1 of a group are shards of one rank.
struct Range {
  int32_t rank;
  int64_t lo, hi;
};

/// Bytes up to which each rank folds all of a sum, after one round, in place of a part of it, after two.
constexpr uint64_t kWhole = 16384;
/// Bytes of a part that a rank folds at a time: what it receives is still in its cache then.
constexpr uint64_t kRun = 512 << 10;

class Reduction {
public:
  explicit Reduction(Work &w)
      : w(w), c(w.c), me(w.ranks->engine.rank), blocks(c.op == Op::ReduceScatter ? c.group : 1),
        split(c.op == Op::AllReduce && w.bytes > kWhole) {}

  Status run() {
    int32_t ranks = w.ranks->engine.ranks;
    uint64_t most = ranks > 1 ? kRun / w.width * uint64_t(ranks) : w.count;
    do {
      count = w.count - from < most ? w.count - from : most, bytes = count * w.width;
      if (Status s = runOnce()) return s;
      from += count;
    } while (from < w.count);
    return ASTRA_OK;
  }

  /// What `run` sends.
  Status traffic(astra_traffic *out) {
    count = w.count, bytes = w.bytes;
    each([&] {
      jobs([&](const Job &j) {
        if (j.rank != me) return nodes(mine(), [&](int64_t, int64_t) { w.note(out, j.rank, j.bytes(w)); });
        for (const Range &r : ranges)
          if (split && r.rank != me) w.note(out, r.rank, j.bytes(w));
      });
    });
    uint64_t most = kRun / w.width * uint64_t(w.ranks->engine.ranks), runs = (w.count + most - 1) / most;
    out->rounds = uint32_t((split ? 2 : 1) * (runs ? runs : 1));
    return ranges.failed ? w.noMemory() : ASTRA_OK;
  }

private:
  Status runOnce() {
    uint64_t folded = 0, came = 0;
    each([&] {
      nodes(mine(), [&](int64_t lo, int64_t hi) { folded += hi > lo + 1; });
      jobs([&](const Job &j) {
        if (j.rank == me) came += incoming() * (j.to - j.from) * w.width;
      });
    });
    List<char> &ownRoom = w.ranks->scratch[0], &otherRoom = w.ranks->scratch[1];
    if ((ownRoom.size() < folded * bytes && !ownRoom.resize(folded * bytes)) ||
        (otherRoom.size() < came && !otherRoom.resize(came)))
      return w.noMemory();

    own.clear();
    char *room = ownRoom.data(), *other = otherRoom.data();
    bool good = true;
    each([&] { good &= foldOwn(room); });
    Round round;
    size_t at = 0;
    each([&] {
      size_t parts = 0;
      nodes(mine(), [&](int64_t, int64_t) { ++parts; });
      jobs([&](const Job &j) {
        if (j.rank == me) return receive(round, j, other);
        for (size_t i = 0; i < parts; i++) round.send(j.rank, own[at + i].data + j.from * w.width, j.bytes(w));
      });
      at += parts;
    });
    if (!good || own.failed || ranges.failed) return w.noMemory();
    if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;

    at = 0, other = otherRoom.data();
    each([&] {
      jobs([&](const Job &j) {
        if (j.rank == me) good &= finish(j, at, other);
      });
      nodes(mine(), [&](int64_t, int64_t) { ++at; });
    });
    if (!good) return w.noMemory();
    return c.op == Op::AllReduce ? share() : ASTRA_OK;
  }

  /// What one rank folds of the block at hand: the elements from ... to - 1.
  struct Job {
    int32_t rank;
    uint64_t from, to;
    uint64_t bytes(const Work &w) const { return (to - from) * w.width; }
  };

  /// fn() for each block of each group that this rank takes part in, in an order that all ranks have.
  template <typename F> void each(F fn) {
    for (base = 0; base < c.mesh.shards; base++) {
      if (c.placeOf(base) != 0) continue;
      ranges.clear();
      for (int64_t g = 0; g < c.group; g++) {
        int32_t rank = w.owner(c.member(base, g));
        if (ranges.size() && ranges[ranges.size() - 1].rank == rank)
          ranges[ranges.size() - 1].hi = g + 1;
        else
          ranges.add({rank, g, g + 1});
      }
      bool part = false;
      for (size_t i = 0; i < ranges.size(); i++)
        if (ranges[i].rank == me) part = true, myRange = i;
      for (block = 0; part && block < blocks; block++) fn();
    }
  }
  const Range &mine() { return ranges[myRange]; }

  /// fn(lo, hi) of each node that a rank has of the group at hand.
  template <typename F> void nodes(const Range &r, F fn) const {
    for (int64_t lo = r.lo, hi; lo < r.hi; lo = hi) fn(lo, hi = nodeEnd(lo, r.hi, c.group));
  }
  uint64_t incoming() {
    uint64_t count = 0;
    for (const Range &r : ranges)
      if (r.rank != me) nodes(r, [&](int64_t, int64_t) { ++count; });
    return count;
  }

  template <typename F> void jobs(F fn) {
    if (c.op == Op::ReduceScatter) return fn(Job{w.owner(c.member(base, block)), 0, count});
    uint64_t n = ranges.size(), grain = 64 / w.width;
    auto cut = [&](uint64_t k) {
      uint64_t at = (count / n * k + count % n * k / n + grain - 1) / grain * grain;
      return k == n || at > count ? count : at;
    };
    for (uint64_t i = 0; i < n; i++) fn(Job{ranges[i].rank, split ? cut(i) : 0, split ? cut(i + 1) : count});
  }

  /// The nodes of this rank's own shards; what is more than one shard's is folded into `room`.
  bool foldOwn(char *&room) {
    bool good = true;
    nodes(mine(), [&](int64_t lo, int64_t hi) {
      leaves.clear();
      for (int64_t g = lo; g < hi; g++)
        leaves.add(
            {g, g + 1, w.x + uint64_t((c.member(base, g) - w.first()) * blocks + block) * w.bytes + from * w.width});
      if (hi == lo + 1) return own.add(leaves[0]);
      good &= !leaves.failed && fold(room, leaves.data(), leaves.size(), lo, hi, count, w.width, w.combine);
      own.add({lo, hi, room});
      room += bytes;
    });
    return good;
  }
  void receive(Round &round, const Job &j, char *&other) {
    for (const Range &r : ranges)
      if (r.rank != me)
        nodes(r, [&](int64_t, int64_t) { round.receive(r.rank, other, j.bytes(w)), other += j.bytes(w); });
  }
  /// Where the result of the block at hand is: of the first of this rank's shards that has it.
  char *result() {
    int64_t shard = c.op == Op::ReduceScatter ? c.member(base, block) : c.member(base, mine().lo);
    return w.y + (c.one ? 0 : uint64_t(shard - w.first()) * w.bytes) + from * w.width;
  }
  bool finish(const Job &j, size_t at, char *&other) {
    leaves.clear();
    for (const Range &r : ranges)
      nodes(r, [&](int64_t lo, int64_t hi) {
        if (r.rank == me) return leaves.add({lo, hi, own[at++].data + j.from * w.width});
        leaves.add({lo, hi, other});
        other += j.bytes(w);
      });
    return !leaves.failed && fold(result() + j.from * w.width, leaves.data(), leaves.size(), 0, c.group, j.to - j.from,
                                  w.width, w.combine);
  }

  /// all_reduce: the pieces go to the others of the group, the whole to all shards of this rank.
  Status share() {
    Round round;
    if (split)
      each([&] {
        jobs([&](const Job &j) {
          if (j.rank != me) return round.receive(j.rank, result() + j.from * w.width, j.bytes(w));
          for (const Range &r : ranges)
            if (r.rank != me) round.send(r.rank, result() + j.from * w.width, j.bytes(w));
        });
      });
    if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;
    each([&] {
      for (int64_t g = mine().lo + 1; !c.one && g < mine().hi; g++)
        memcpy(w.y + uint64_t(c.member(base, g) - w.first()) * w.bytes + from * w.width, result(), bytes);
    });
    return ASTRA_OK;
  }

  Work &w;
  const Collective &c;
  int32_t me;
  int64_t blocks;
  bool split;
  uint64_t from = 0, count = 0, bytes = 0; ///< at hand: elements of a part from one on, their bytes
  int64_t base = 0, block = 0;             ///< at hand: a group by its first shard; a block of its operands
  List<Range> ranges;                      ///< of the group at hand
  size_t myRange = 0;
  List<Part> own, leaves;
};

//===- From tensors -----------------------------------------------------------===//

bool shapesFit(const Collective &c, int64_t local, const astra_tensor &x, const astra_tensor &y) {
  bool inBlocks = c.op == Op::AllToAll || c.op == Op::ReduceScatter,
       outBlocks = c.op == Op::AllToAll || c.op == Op::AllGather;
  if (c.op == Op::Index)
    return x.ndim == 1 && y.ndim == 1 && y.dtype == ASTRA_I64 && x.shape[0] == local && y.shape[0] == local;
  int32_t i = 0, o = 0;
  if (x.dtype != y.dtype || !x.ndim || x.shape[i++] != local) return false;
  if (!c.one && (!y.ndim || y.shape[o++] != local)) return false;
  if (inBlocks && (i >= x.ndim || x.shape[i++] != c.group)) return false;
  if (outBlocks && (o >= y.ndim || y.shape[o++] != c.group)) return false;
  if (x.ndim - i != y.ndim - o) return false;
  for (; i < x.ndim; i++, o++)
    if (x.shape[i] != y.shape[o]) return false;
  return true;
}

Status compute(const Collective &c, const astra_tensor &x, const astra_tensor &y, astra_diag *diag) {
  Work w{c, c.ranks, diag, static_cast<const char *>(x.data), static_cast<char *>(y.data), 0, 0, 0, nullptr, 1};
  if (!shapesFit(c, w.local(), x, y))
    return fail(diag, ASTRA_WRONG_SHAPE,
                "'%.200s' is called with shapes of another number of shards than the %lld of a rank", c.name,
                static_cast<long long>(w.local()));
  uint64_t blocks = c.op == Op::AllToAll || c.op == Op::ReduceScatter ? uint64_t(c.group) : 1;
  w.bytes = x.data_bytes / (uint64_t(w.local()) * blocks);
  if (Status s = begin(c.ranks, c.name, w.bytes, diag)) return s;
  Status s = ASTRA_OK;
  if (c.op == Op::Index) {
    for (int64_t i = 0; i < w.local(); i++) static_cast<int64_t *>(y.data)[i] = c.placeOf(w.first() + i);
  } else if (c.op == Op::AllReduce || c.op == Op::ReduceScatter) {
    int32_t dtype = x.dtype;
    if (c.kind == Kind::Sum && dtype == ASTRA_C64) dtype = ASTRA_F32; // part by part
    if (c.kind == Kind::Sum && dtype == ASTRA_C128) dtype = ASTRA_F64;
    w.combine = combineOf(c.kind, dtype);
    w.width = astra_dtype_bits(dtype) / 8;
    if (!w.combine)
      s = fail(diag, ASTRA_WRONG_DTYPE, "'%.200s' does not fold elements of type %s", c.name,
               astra_dtype_name(x.dtype));
    else
      w.count = w.bytes / w.width;
    if (!s) s = Reduction(w).run();
  } else {
    s = Movement(w).run();
  }
  end(c.ranks);
  return s;
}

} // namespace

Status astra::ranks::call(void *self, const astra_tensor *inputs, uint32_t numInputs, const astra_tensor *outputs,
                          uint32_t numOutputs, astra_diag *diag) {
  auto &c = *static_cast<Collective *>(self);
  if (numInputs < 1 || numInputs > 2 || numOutputs != 1) // the second: what comes before it
    return fail(diag, ASTRA_INVALID_ARGUMENT, "'%.200s' takes one tensor and gives one", c.name);
  return compute(c, inputs[0], outputs[0], diag);
}

Status astra_ranks_sum(astra_ranks *ranks, int32_t dtype, uint64_t count, const void *data, void *sum,
                       astra_diag *diag) {
  if (!ranks || (count && (!data || !sum))) return fail(diag, ASTRA_INVALID_ARGUMENT, "an argument is NULL");
  if (count > INT64_MAX / 16)
    return fail(diag, ASTRA_OVERFLOW, "%llu elements are too many", static_cast<unsigned long long>(count));
  Collective c{};
  strcpy(c.name, "sum of the program");
  c.op = Op::AllReduce, c.kind = Kind::Sum, c.one = true, c.ranks = ranks;
  c.mesh.axes = 1, c.mesh.size[0] = c.mesh.shards = c.group = ranks->engine.ranks, c.over[0] = true;
  int64_t given[] = {1, int64_t(count)};
  astra_tensor x = ASTRA_INIT(astra_tensor), y;
  x.dtype = dtype, x.ndim = 2, x.shape = given, x.data = const_cast<void *>(data);
  x.data_bytes = count * (astra_dtype_bits(dtype) / 8);
  y = x, y.ndim = 1, y.shape = given + 1, y.data = sum;
  return compute(c, x, y, diag);
}

Status astra_collective_traffic(const char *function, uint64_t bytes, uint32_t element, int32_t ranks, int32_t rank,
                                int32_t per_node, astra_traffic *out, astra_diag *diag) {
  if (!function || !out || out->size < sizeof(*out) || !element || element > 64 || ranks < 1 || rank < 0 ||
      rank >= ranks || per_node < 1 || !isCollective(function))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "that is no collective, or no rank");
  Collective c;
  if (Status s = readName(&c, function, diag)) return s;
  if (c.mesh.shards % ranks)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%d ranks do not divide %lld shards", ranks,
                static_cast<long long>(c.mesh.shards));
  astra_ranks self{};
  self.engine.rank = rank, self.engine.ranks = ranks;
  Work w{c, &self, diag, nullptr, nullptr, bytes, bytes / element, element, nullptr, per_node};
  size_t size = out->size;
  memset(static_cast<void *>(out), 0, sizeof(*out));
  out->size = size;
  if (c.op == Op::Index || ranks == 1) return ASTRA_OK;
  if (c.op == Op::AllReduce || c.op == Op::ReduceScatter) return Reduction(w).traffic(out);
  return Movement(w).traffic(out);
}
