//===- Collective.cpp: the functions that bundles of a mesh call ------------===//
// Takes:    the parts of the shards that this rank runs, one behind another along the first axis, of several tensors.
// Gives:    the collective's results for them, in the order of the mesh, whatever the number of ranks is.
// Keeps:    ranks fold what is theirs by nodes of the tree; between them go nodes. Each step knows from the mesh alone
//           what every rank sends, so that nothing is negotiated.
// Does not: add in an engine.
#include "Ranks.h"

using namespace astra::ranks;

namespace {

/// A tensor of a collective.
struct Item {
  const char *x;
  char *y;
  uint64_t bytes; ///< of a shard's part: of the operand, or of one of the G blocks of it
  uint64_t count; ///< elements of it that are combined
  uint32_t width; ///< bytes of such an element
  int32_t dtype;  ///< its type
};

/// A collective at work on one rank.
struct Work {
  const Collective &c;
  Place &place;
  List<Item> &items;

  astra_ranks *ranks = place.ranks;
  astra_diag *diag = place.diag;
  int32_t perNode = 1; ///< for traffic: so many ranks that follow each other are on one machine

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
      for (const Item &item : w.items)
        if (at[size_t(b)]) w.note(out, peer, item.bytes);
  }
  out->rounds = 1;
  return ASTRA_OK;
}

Status Movement::run() {
  int32_t me = w.ranks->engine.rank;
  Round round(w.place.gpu);
  List<int64_t> at;
  for (int32_t peer = 0; peer < w.ranks->engine.ranks; peer++) {
    if (peer == me) continue;
    if (!places(me, peer, at)) return w.noMemory();
    for (const Item &item : w.items)
      for (int64_t b = 0; b < blocks; b++)
        if (at[size_t(b)]) round.send(peer, item.x + uint64_t(b) * item.bytes, item.bytes);
    if (!places(peer, me, at)) return w.noMemory();
    for (const Item &item : w.items)
      for (int64_t b = 0; b < blocks; b++)
        if (at[size_t(b)]) round.receive(peer, item.y + uint64_t(at[size_t(b)] - 1) * item.bytes, item.bytes);
  }
  if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;
  // What is here already, and what came for an earlier shard.
  List<int64_t> first;
  if (!first.resize(size_t(c.mesh.shards * given))) return w.noMemory();
  for (int64_t i = 0; i < shards * taken; i++) {
    Source s = sourceOf(c, w.first() + i / taken, i % taken);
    int64_t *known = s.shard < 0 || w.own(s.shard) ? nullptr : &first[size_t(s.shard * given + s.block)];
    for (const Item &item : w.items) {
      char *to = item.y + uint64_t(i) * item.bytes;
      if (s.shard < 0)
        w.place.zero(to, item.bytes);
      else if (!known)
        w.place.copy(to, item.x + uint64_t((s.shard - w.first()) * given + s.block) * item.bytes, item.bytes);
      else if (*known)
        w.place.copy(to, item.y + uint64_t(*known - 1) * item.bytes, item.bytes);
    }
    if (known && !*known) *known = i + 1;
  }
  return w.place.status;
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
/// The same on a GPU, where a transfer takes long to begin.
constexpr uint64_t kGpuRun = 32 << 20;
/// Bytes to whose multiples elements are cut.
constexpr uint64_t kGrain = 64;

class Reduction {
public:
  explicit Reduction(Work &w)
      : w(w), c(w.c), me(w.ranks->engine.rank), blocks(c.op == Op::ReduceScatter ? c.group : 1) {}

  Status run() {
    int32_t ranks = w.ranks->engine.ranks;
    uint64_t most = ranks > 1 ? (w.place.gpu ? kGpuRun : kRun) * uint64_t(ranks) : UINT64_MAX / 2;
    for (const Item &item : w.items)
      for (uint64_t from = 0, count; from < item.count; from += count) {
        if (most - total < item.width)
          if (Status s = runOnce()) return s;
        count = (most - total) / item.width;
        add(item, from, count = item.count - from < count ? item.count - from : count);
      }
    return runOnce();
  }

  /// What `run` sends.
  Status traffic(astra_traffic *out) {
    uint64_t all = 0;
    for (const Item &item : w.items) add(item, 0, item.count), all += item.bytes;
    split = c.op == Op::AllReduce && total > kWhole;
    each([&] {
      jobs([&](const Job &j) {
        if (j.rank != me) return nodes(mine(), [&](int64_t, int64_t) { w.note(out, j.rank, bytes(j)); });
        for (const Range &r : ranges)
          if (split && r.rank != me) w.note(out, r.rank, bytes(j));
      });
    });
    uint64_t most = kRun * uint64_t(w.ranks->engine.ranks), runs = (all + most - 1) / most;
    out->rounds = uint32_t((split ? 2 : 1) * (runs ? runs : 1));
    return ranges.failed || spans.failed ? w.noMemory() : ASTRA_OK;
  }

private:
  /// Elements of a tensor that are folded in the run at hand; `at`: where they are among its bytes.
  struct Span {
    const Item *item;
    uint64_t from, count, at;
    uint64_t bytes() const { return count * item->width; }
  };
  void add(const Item &item, uint64_t from, uint64_t count) {
    spans.add({&item, from, count, total});
    total += (count * item.width + kGrain - 1) / kGrain * kGrain;
  }
  /// What a value of so many bytes takes of a room.
  uint64_t slot(uint64_t bytes) const { return w.place.slot((bytes + kGrain - 1) / kGrain * kGrain); }

  Status runOnce() {
    split = c.op == Op::AllReduce && total > kWhole;
    Status s = exchange();
    spans.clear();
    total = 0;
    return s;
  }

  Status exchange() {
    uint64_t folded = 0, came = 0, most = 0;
    each([&] {
      most = here->bytes() > most ? here->bytes() : most;
      nodes(mine(), [&](int64_t lo, int64_t hi) { folded += hi > lo + 1 ? slot(here->bytes()) : 0; });
      jobs([&](const Job &j) {
        if (j.rank == me) came += incoming() * slot(bytes(j));
      });
    });
    if (spans.failed) return w.noMemory();
    char *room = w.place.room(folded + came, c.group, most);
    if (w.place.status) return w.place.status;
    char *others = room + folded, *other = others;

    own.clear();
    each([&] { foldOwn(room); });
    Round round(w.place.gpu);
    size_t at = 0;
    each([&] {
      size_t parts = 0;
      nodes(mine(), [&](int64_t, int64_t) { ++parts; });
      jobs([&](const Job &j) {
        if (j.rank == me) return receive(round, j, other);
        for (size_t i = 0; i < parts; i++) round.send(j.rank, own[at + i].data + j.from * here->item->width, bytes(j));
      });
      at += parts;
    });
    if (own.failed || ranges.failed || leaves.failed) return w.noMemory();
    if (w.place.status) return w.place.status;
    if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;

    at = 0, other = others;
    each([&] {
      jobs([&](const Job &j) {
        if (j.rank == me) finish(j, at, other);
      });
      nodes(mine(), [&](int64_t, int64_t) { ++at; });
    });
    if (leaves.failed) return w.noMemory();
    if (w.place.status) return w.place.status;
    return c.op == Op::AllReduce ? share() : ASTRA_OK;
  }

  /// What one rank folds of the block and the span at hand: its elements from ... to - 1.
  struct Job {
    int32_t rank;
    uint64_t from, to;
  };
  uint64_t bytes(const Job &j) const { return (j.to - j.from) * here->item->width; }

  /// fn() for each span of each block of each group that this rank takes part in, in an order that all ranks have.
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
      for (block = 0; part && block < blocks; block++)
        for (Span &span : spans) here = &span, fn();
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
    if (c.op == Op::ReduceScatter) return fn(Job{w.owner(c.member(base, block)), 0, here->count});
    uint64_t n = ranges.size();
    auto cut = [&](uint64_t k) { // the bytes of the run are cut evenly, whatever tensors they are of
      uint64_t at = (total / n * k + total % n * k / n + kGrain - 1) / kGrain * kGrain;
      uint64_t inside = at < here->at ? 0 : (at - here->at) / here->item->width;
      return k == n || inside > here->count ? here->count : inside;
    };
    for (uint64_t i = 0; i < n; i++) fn(Job{ranges[i].rank, split ? cut(i) : 0, split ? cut(i + 1) : here->count});
  }

  /// The nodes of this rank's own shards; what is more than one shard's is folded into `room`.
  void foldOwn(char *&room) {
    const Item &item = *here->item;
    nodes(mine(), [&](int64_t lo, int64_t hi) {
      leaves.clear();
      for (int64_t g = lo; g < hi; g++)
        leaves.add({g, g + 1,
                    item.x + uint64_t((c.member(base, g) - w.first()) * blocks + block) * item.bytes +
                        here->from * item.width});
      if (hi == lo + 1) return own.add(leaves[0]);
      if (!leaves.failed) w.place.fold(room, leaves.data(), leaves.size(), lo, hi, here->count, c.kind, item.dtype);
      own.add({lo, hi, room});
      room += slot(here->bytes());
    });
  }
  void receive(Round &round, const Job &j, char *&other) {
    for (const Range &r : ranges)
      if (r.rank != me)
        nodes(r, [&](int64_t, int64_t) { round.receive(r.rank, other, bytes(j)), other += slot(bytes(j)); });
  }
  /// Where the result of the block at hand is: of the first of this rank's shards that has it.
  char *result() {
    int64_t shard = c.op == Op::ReduceScatter ? c.member(base, block) : c.member(base, mine().lo);
    const Item &item = *here->item;
    return item.y + (c.one ? 0 : uint64_t(shard - w.first()) * item.bytes) + here->from * item.width;
  }
  void finish(const Job &j, size_t at, char *&other) {
    const Item &item = *here->item;
    leaves.clear();
    for (const Range &r : ranges)
      nodes(r, [&](int64_t lo, int64_t hi) {
        if (r.rank == me) return leaves.add({lo, hi, own[at++].data + j.from * item.width});
        leaves.add({lo, hi, other});
        other += slot(bytes(j));
      });
    if (leaves.failed) return;
    w.place.fold(result() + j.from * item.width, leaves.data(), leaves.size(), 0, c.group, j.to - j.from, c.kind,
                 item.dtype);
  }

  /// all_reduce: the pieces go to the others of the group, the whole to all shards of this rank.
  Status share() {
    Round round(w.place.gpu);
    if (split)
      each([&] {
        jobs([&](const Job &j) {
          char *part = result() + j.from * here->item->width;
          if (j.rank != me) return round.receive(j.rank, part, bytes(j));
          for (const Range &r : ranges)
            if (r.rank != me) round.send(r.rank, part, bytes(j));
        });
      });
    if (Status s = astra::ranks::run(w.ranks, round, w.diag)) return s;
    each([&] {
      for (int64_t g = mine().lo + 1; !c.one && g < mine().hi; g++)
        w.place.copy(here->item->y + uint64_t(c.member(base, g) - w.first()) * here->item->bytes +
                         here->from * here->item->width,
                     result(), here->bytes());
    });
    return w.place.status;
  }

  Work &w;
  const Collective &c;
  int32_t me;
  int64_t blocks;
  bool split = false;
  List<Span> spans;            ///< of the run at hand
  uint64_t total = 0;          ///< their bytes
  int64_t base = 0, block = 0; ///< at hand: a group by its first shard; a block of its operands
  const Span *here = nullptr;  ///< at hand
  List<Range> ranges;          ///< of the group at hand
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

/// The places of this rank's shards, which on a GPU are copied from memory that stays.
Status index(Collective &c, Work &w) {
  if (w.place.gpu && !c.places && !(c.places = static_cast<int64_t *>(malloc(size_t(w.local()) * sizeof(int64_t)))))
    return w.noMemory();
  char *y = w.items[0].y;
  auto *places = w.place.gpu ? c.places : reinterpret_cast<int64_t *>(y);
  for (int64_t i = 0; i < w.local(); i++) places[i] = c.placeOf(w.first() + i);
  const astra_gpu_call *gpu = w.place.gpu;
  return gpu ? gpu->write(gpu, y, places, uint64_t(w.local()) * sizeof(int64_t), w.diag) : Status(ASTRA_OK);
}

Status compute(Collective &c, const astra_gpu_call *gpu, const astra_tensor *inputs, const astra_tensor *outputs,
               uint32_t count, astra_diag *diag) {
  List<Item> items;
  Place place(c.ranks, gpu, diag);
  Work w{c, place, items};
  bool folds = c.op == Op::AllReduce || c.op == Op::ReduceScatter;
  uint64_t blocks = c.op == Op::AllToAll || c.op == Op::ReduceScatter ? uint64_t(c.group) : 1, all = 0;
  int32_t strange = 0; // a dtype that is not folded
  for (uint32_t i = 0; i < count; i++) {
    const astra_tensor &x = inputs[i], &y = outputs[i];
    if (!shapesFit(c, w.local(), x, y) || (c.op == Op::Index && i))
      return fail(diag, ASTRA_WRONG_SHAPE,
                  "'%.200s' is called with shapes of another number of shards than the %lld of a rank", c.name,
                  static_cast<long long>(w.local()));
    Item item{static_cast<const char *>(x.data), static_cast<char *>(y.data), 0, 0, 1, x.dtype};
    item.bytes = x.data_bytes / (uint64_t(w.local()) * blocks);
    if (folds) {
      if (c.kind == Kind::Sum && x.dtype == ASTRA_C64) item.dtype = ASTRA_F32; // part by part
      if (c.kind == Kind::Sum && x.dtype == ASTRA_C128) item.dtype = ASTRA_F64;
      item.width = astra_dtype_bits(item.dtype) / 8;
      if (combineOf(c.kind, item.dtype))
        item.count = item.bytes / item.width;
      else
        strange = x.dtype;
    }
    all += item.bytes;
    items.add(item);
  }
  if (items.failed) return w.noMemory();
  if (Status s = begin(c.ranks, c.name, all, diag)) return s;
  Status s = ASTRA_OK;
  if (strange)
    s = fail(diag, ASTRA_WRONG_DTYPE, "'%.200s' does not fold elements of type %s", c.name, astra_dtype_name(strange));
  else if (c.op == Op::Index)
    s = index(c, w);
  else
    s = folds ? Reduction(w).run() : Movement(w).run();
  end(c.ranks);
  return s;
}

} // namespace

Status astra::ranks::callOnGpu(void *self, const astra_gpu_call *gpu, const astra_tensor *inputs, uint32_t numInputs,
                               const astra_tensor *outputs, uint32_t numOutputs, astra_diag *diag) {
  auto &c = *static_cast<Collective *>(self);
  if (!numOutputs || numInputs < numOutputs || numInputs > numOutputs + 1) // one more: what comes before it
    return fail(diag, ASTRA_INVALID_ARGUMENT, "'%.200s' gives as many tensors as it takes", c.name);
  return compute(c, gpu, inputs, outputs, numOutputs, diag);
}

Status astra::ranks::call(void *self, const astra_tensor *inputs, uint32_t numInputs, const astra_tensor *outputs,
                          uint32_t numOutputs, astra_diag *diag) {
  return callOnGpu(self, nullptr, inputs, numInputs, outputs, numOutputs, diag);
}

Status astra::ranks::settleOnGpu(void *self, const astra_gpu_call *gpu, astra_diag *diag) {
  auto *ranks = static_cast<astra_ranks *>(self);
  int32_t peer = -1;
  Status s = ranks->engine.settle_gpu(ranks->engine.self, gpu, ranks->timeout, &peer, diag);
  return s ? broken(ranks, s, diag) : s;
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
  return compute(c, nullptr, &x, &y, 1, diag);
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
  List<Item> items;
  items.add({nullptr, nullptr, bytes, bytes / element, element, 0});
  if (items.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to count what moves");
  Place place(&self, nullptr, diag);
  Work w{c, place, items};
  w.perNode = per_node;
  size_t size = out->size;
  memset(static_cast<void *>(out), 0, sizeof(*out));
  out->size = size;
  if (c.op == Op::Index || ranks == 1) return ASTRA_OK;
  if (c.op == Op::AllReduce || c.op == Op::ReduceScatter) return Reduction(w).traffic(out);
  return Movement(w).traffic(out);
}
