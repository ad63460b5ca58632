//===- WarpGroups.cpp: boxes, barriers with phases, warp groups ------------===//
// Takes:    what threads do by the names of astra/Codegen/PtxCalls.h.
// Gives:    its effect on the weakest machine that we know: a box arrives when nobody can go on, or at a moment that
//           the seed gives; sums are there when their thread has waited for its group, never before; what one kind of
//           access has written the other sees behind a fence alone.
// Detects:  barriers that copies use before barrierFence, that other threads use before all have met, at which more
//           arrive than are expected; boxes that are written over what a group reads, or is not told to have read;
//           bytes that a group reads before they were written, before its thread waited for the phase in which they
//           came, or that were stored and not fenced for it; sums that are multiplied on before their registers are
//           fenced, or that nobody waits for; boxes that are on their way when the block ends; waits that do not end.
//
// Sums that are being made are tokens: numbers that no step gives. What is computed of them is wrong, and a test sees
// it.
#include "Memory.h"
#include <algorithm>
#include <cstring>
#include <utility>

using namespace astra;
using namespace astra::emulator;

static constexpr uint64_t part = 16, lineOfBox = 128; // bytes
static constexpr uint32_t tokens = 0x7fa00000, tokenBits = 0xfff00000;

static uint32_t tokenOf(uint32_t number, uint32_t i) { return tokens | (number & 0xfff) << 8 | i; }

void Launch::attachGroups(Thread &t) {
  if (group.size() <= t.number) group.resize(t.number + 1);
#define SELF static_cast<Launch *>(x->self)
  t.barrierInit = [](Thread *x, uint8_t *b, uint32_t n) { SELF->barrierInit(*x, b, n); };
  t.barrierFence = [](Thread *x) {
    for (auto &[place, b] : SELF->barriers)
      if (b.maker == x->number + 1) b.fenced = true;
  };
  t.barrierArrive = [](Thread *x, uint8_t *b, uint32_t bytes) { SELF->barrierArrive(*x, b, bytes); };
  t.copyBox = [](Thread *x, uint8_t *to, const void *map, int32_t word, int32_t line, uint8_t *barrier) {
    SELF->copyBox(*x, to, map, word, line, barrier);
  };
  t.proxyFence = [](Thread *x) { ++SELF->stateOf(*x).proxyFences; };
  t.placeOf = [](Thread *x, uint8_t *line) { return uint64_t(line - SELF->shared.data()); };
  t.groupFence = [](Thread *x) { SELF->stateOf(*x).fenced = true; };
  t.commit = [](Thread *x) { ++SELF->stateOf(*x).groups; };
  t.multiply = [](Thread *x, uint32_t count, uint64_t rows, uint64_t columns, Step step) {
    SELF->multiply(*x, count, rows, columns, step);
  };
  t.awaitGroups = [](Thread *x, uint32_t count, uint32_t left) { SELF->awaitGroups(*x, count, left); };
#undef SELF
}

//===- Barriers -----------------------------------------------------------===//

void Launch::barrierInit(const Thread &t, uint8_t *place, uint32_t count) {
  uint64_t at = place - shared.data();
  if (at % 8 || at + 8 > shared.size() || !count) return void(fault(t, "makes a barrier where there can be none"));
  barriers[at] = {count, count, 0, 0, t.number + 1, phase, false, {}, {}};
}

Launch::PhaseBarrier *Launch::barrierAt(const Thread &t, const uint8_t *place) {
  if (failed()) return nullptr;
  auto it = barriers.find(place - shared.data());
  if (it == barriers.end()) return fault(t, "uses a barrier that nobody made"), nullptr;
  if (it->second.maker != t.number + 1 && it->second.madeIn == phase)
    return fault(t, "uses a barrier that another thread made, before all have met"), nullptr;
  return &it->second;
}

void Launch::endPhase(PhaseBarrier &b) {
  if (b.pending || b.bytes) return;
  ++b.over, b.pending = b.count;
  b.released.push_back(std::exchange(b.arrived, {}));
}

void Launch::barrierArrive(const Thread &t, uint8_t *place, uint32_t bytes) {
  PhaseBarrier *b = barrierAt(t, place);
  if (!b) return;
  if (!b->pending) return void(fault(t, "arrives at a barrier at which all have arrived that are expected"));
  // What the lanes of its warp have read is over for who waits for this phase: they have met when they waited.
  for (uint32_t lane = t.number & ~31u; lane < (t.number | 31u) + 1 && lane < group.size(); ++lane)
    if (group[lane]) {
      Reads &done = group[lane]->done;
      b->arrived.insert(b->arrived.end(), done.begin(), done.end());
      done.clear();
    }
  --b->pending, b->bytes += bytes;
  endPhase(*b);
}

bool Launch::isOver(const Thread &t) {
  PhaseBarrier *b = barrierAt(t, t.awaited);
  if (!b) return true; // it goes on, and the launch has failed
  if ((b->over & 1) == t.phaseParity) return false;
  uint32_t &seen = stateOf(t).seen[t.awaited - shared.data()];
  for (; seen < b->over; ++seen)
    for (uint32_t at : std::exchange(b->released[seen], {}))
      for (uint64_t i = 0; i < part; ++i) --sharedBytes[at + i].groupReaders;
  return true;
}

//===- Boxes --------------------------------------------------------------===//

/// Where byte `at` of a box lies: parts of 16 bytes of each line change places with the line's number among eight.
static uint64_t swizzled(uint64_t at) { return at ^ (at >> 3 & 0x70); }

void Launch::copyBox(const Thread &t, uint8_t *to, const void *map, int32_t word, int32_t line, uint8_t *barrier) {
  PhaseBarrier *b = barrierAt(t, barrier);
  if (!b) return;
  if (!b->fenced) return void(fault(t, "copies a box for a barrier that it has not fenced for copies"));
  const auto &of = *static_cast<const EmulatedMap *>(map);
  uint64_t at = to - shared.data(), bytes = of.box * lineOfBox;
  if (at % 1024 || at + bytes > shared.size())
    return void(fault(t, "copies a box to a place that is none of 1024 bytes in shared memory"));
  for (uint64_t i = at; i < at + bytes; ++i) {
    SharedByte &x = sharedBytes[i];
    if (x.copier != nobody || x.groupReaders)
      return void(fault(t, "copies a box over byte " + std::to_string(i) + " of shared memory, " +
                               (x.copier != nobody ? "to which another copy is on its way"
                                                   : "which a warp group reads, or nobody says that it has")));
    x.copier = t.number + 1;
  }
  boxes.push_back({t.number, at, of, word, line, uint64_t(barrier - shared.data())});
}

bool Launch::deliver(uint32_t number) {
  if (boxes.empty() || failed()) return false;
  std::swap(boxes[number % boxes.size()], boxes.back());
  Box box = boxes.back();
  boxes.pop_back();
  PhaseBarrier &b = barriers[box.barrier];
  arrivals.push_back({box.barrier, b.over});
  const Range &from = ranges[box.map.buffer];
  for (uint64_t line = 0; line < box.map.box; ++line)
    for (uint64_t word = 0; word < lineOfBox / 4; ++word) {
      int64_t x = box.word + int64_t(word), y = box.line + int64_t(line);
      uint32_t v = 0; // outside of the map
      uint64_t source = 4 * (uint64_t(y) * box.map.words + uint64_t(x)),
               to = box.to + swizzled(line * lineOfBox + 4 * word);
      if (x >= 0 && y >= 0 && uint64_t(x) < box.map.words && uint64_t(y) < box.map.lines) {
        if (source + 4 > from.buffer.bytes.size()) {
          Thread who{};
          who.number = box.thread;
          return fault(who, "copies a box of a map that is larger than its buffer");
        }
        std::memcpy(&v, from.buffer.bytes.data() + source, 4);
      }
      std::memcpy(shared.data() + to, &v, 4);
    }
  for (uint64_t i = box.to; i < box.to + box.map.box * lineOfBox; ++i) {
    SharedByte &x = sharedBytes[i];
    x.copier = nobody, x.writer = box.thread + 1, x.writtenIn = phase, x.box = uint32_t(arrivals.size());
  }
  b.bytes -= int64_t(box.map.box * lineOfBox);
  endPhase(b);
  return true;
}

bool Launch::mayEndBlock(const Thread &some) {
  return boxes.empty() || fault(some, "has ended with its block, and a box is on its way");
}

//===- Groups -------------------------------------------------------------===//

/// Eight words of a line that a descriptor begins with; notes the reads.
bool Launch::readWords(const Thread &t, uint64_t descriptor, uint32_t line, uint32_t *words, Reads &reads) {
  uint64_t eightLines = (descriptor >> 32 & 0x3fff) << 4, begin = (descriptor & 0x3fff) << 4;
  if (descriptor >> 62 != 1 || eightLines != 1024)
    return fault(t, "multiplies lines that do not lie in the swizzle of 128 bytes");
  for (uint64_t p = 0; p < 2; ++p) {
    uint64_t at = swizzled(begin + line / 8 * eightLines + line % 8 * lineOfBox + p * part);
    if (at + part > shared.size()) return fault(t, "multiplies lines outside of shared memory");
    for (uint64_t i = at; i < at + part; ++i) {
      SharedByte &x = sharedBytes[i];
      const char *why = nullptr;
      if (x.copier != nobody)
        why = "to which a copy is on its way";
      else if (x.writer == nobody)
        why = "which nobody wrote";
      else if (x.box && stateOf(t).seen[arrivals[x.box - 1].barrier] <= arrivals[x.box - 1].phase)
        why = "which a box brought, before it waited for the box's barrier";
      else if (!x.box && (!group[x.writer - 1] || group[x.writer - 1]->proxyFences <= x.fences))
        why = "which a thread stored, with no fence for the other kind of access";
      else if (!x.box && x.writtenIn == phase && x.writer != t.number + 1)
        why = "which another thread stored with no barrier between";
      if (why) return fault(t, "multiplies byte " + std::to_string(i) + " of shared memory, " + why);
    }
    std::memcpy(words + 4 * p, shared.data() + at, part);
    for (uint64_t i = at; i < at + part; ++i) ++sharedBytes[i].groupReaders;
    reads.push_back(uint32_t(at));
  }
  return true;
}

void Launch::multiply(Thread &t, uint32_t count, uint64_t rows, uint64_t columns, Step step) {
  if (failed()) return;
  GroupState &g = stateOf(t);
  if (!g.fenced) return void(fault(t, "multiplies by its group, and its registers are not fenced"));
  uint32_t number = (t.sums[0] & tokenBits) == tokens ? t.sums[0] >> 8 & 0xfff : g.next++ & 0xfff;
  Sums &all = g.sums[number];
  if (all.values.empty()) all.values.assign(t.sums, t.sums + count);
  for (uint32_t i = 0; i < count; ++i)
    if ((t.sums[i] & tokenBits) == tokens && t.sums[i] != tokenOf(number, i))
      return void(fault(t, "multiplies with sums that are still made, in other registers"));
  all.group = g.groups;
  if (g.reads.empty() || g.reads.back().first != g.groups) g.reads.push_back({g.groups, {}});
  Reads &reads = g.reads.back().second;
  uint32_t lane = t.number % 32, first = t.number / 32 % 4 * 16 + lane / 4, row[2][8], column[8];
  for (uint32_t h : {0u, 1u})
    if (!readWords(t, rows, first + 8 * h, row[h], reads)) return;
  for (uint32_t i = 0; i < count; i += 4)
    for (uint32_t e : {0u, 1u}) {
      if (!readWords(t, columns, 2 * i + lane % 4 * 2 + e, column, reads)) return;
      for (uint32_t h : {0u, 1u}) {
        uint32_t &sum = all.values[i + 2 * h + e];
        float v;
        std::memcpy(&v, &sum, 4);
        v = step(row[h], column, v);
        std::memcpy(&sum, &v, 4);
      }
    }
  for (uint32_t i = 0; i < count; ++i) t.sums[i] = tokenOf(number, i);
}

void Launch::awaitGroups(Thread &t, uint32_t count, uint32_t left) {
  if (failed()) return;
  GroupState &g = stateOf(t);
  auto isOver = [&](uint32_t of) { return of + left < g.groups; };
  while (!g.reads.empty() && isOver(g.reads.front().first)) {
    Reads &reads = g.reads.front().second;
    g.done.insert(g.done.end(), reads.begin(), reads.end());
    g.reads.erase(g.reads.begin());
  }
  g.fenced = false; // registers are the thread's again
  for (uint32_t i = 0; i < count; ++i) {
    if ((t.sums[i] & tokenBits) != tokens) continue;
    auto it = g.sums.find(t.sums[i] >> 8 & 0xfff);
    if (it != g.sums.end() && isOver(it->second.group)) t.sums[i] = it->second.values[t.sums[i] & 0xff];
  }
  std::erase_if(g.sums, [&](const auto &s) { return isOver(s.second.group); });
}
