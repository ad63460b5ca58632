//===- Linearize.cpp: from a graph of kernel UOps to loops -----------------===//
// Takes:    an expanded kernel.
// Gives:    its instructions in order (Linear.h), or a sentence. See Linearizer.h.
#include "Linearizer.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <queue>
#include <tuple>

using namespace astra;
using namespace astra::linear;

UOpRef astra::spillingFold(UOpRef stage) {
  if (stage->op != Op::Stage || !llvm::all_of(stage->tensors(), [](UOpRef x) { return x->op == Op::Fold; }))
    return nullptr;
  UOpRef fold = stage->src[0];
  bool rests = llvm::any_of(fold->indices(), [](UOpRef r) { return kindOf(r) == RangeKind::Around; });
  return rests ? fold : nullptr;
}

llvm::Error Linearizer::analyse() {
  std::vector<UOpRef> roots(k.hints);
  roots.insert(roots.begin(), k.sink);
  topo = topoSort(roots);
  lone = loneRange(c, k.sink);
  uint32_t most = 0;
  for (UOpRef x : topo) most = std::max(most, x->id + 1);
  if (lone) topo.insert(topo.begin(), lone), most = std::max(most, lone->id + 1);
  set.assign(most, 0);
  depth.assign(most, 0);
  anchored.assign(most, false);
  for (UOpRef x : topo) {
    anchored[x->id] =
        x->op == Op::Load || x->op == Op::At || x->op == Op::Running || x->op == Op::LaneFold || closes(x);
    for (UOpRef y : x->src) anchored[x->id] = anchored[x->id] || anchored[y->id];
    uint32_t s = 0, d = 0;
    for (UOpRef y : x->src) s = sets.unite(s, set[y->id]), d = std::max(d, depth[y->id]);
    if (x->op == Op::Range && kindOf(x) == RangeKind::Thread) continue; // a number that each thread has
    if (x->op == Op::Range) {
      if (kindOf(x) == RangeKind::Vector || kindOf(x) == RangeKind::Unroll)
        return fail("range " + std::to_string(x->ints[0]) + " is not expanded");
      auto [it, fresh] = bitOfAxis.try_emplace(x->ints[0], ranges.size());
      if (!fresh) return fail("two ranges with axis number " + std::to_string(x->ints[0]) + " and different parts");
      s = sets.unite(s, sets.single(ranges.size()));
      ranges.push_back(x);
    }
    if (closes(x)) {
      for (UOpRef r : x->indices()) {
        if (x->op == Op::Stage && kindOf(r) == RangeKind::Thread) continue; // the machine's, not a loop
        if (kindOf(r) != RangeKind::Fold && (x->op != Op::Fold || kindOf(r) != RangeKind::Around))
          return fail(llvm::Twine(info(x->op).mnemonic) + " closes range " + std::to_string(r->ints[0]) +
                      ", which is not a fold range");
        s = sets.without(s, bitOfAxis[r->ints[0]]);
      }
      ++d;
    }
    if (x->op == Op::LaneFold && (x->indices().size() > 1 || kindOf(x->indices()[0]) != RangeKind::Thread))
      return fail("a lanefold is not expanded");
    set[x->id] = s;
    depth[x->id] = d;
  }
  return llvm::Error::success();
}

uint32_t Linearizer::place(UOpRef node, uint32_t from) const {
  // Work stays with the items of its region: another part of the launch must not do it too, and a register that holds
  // it across all loops of a tile is lost to the tile.
  auto holds = [&](uint32_t r) { return anchored[node->id] && kindOf(regions[r].range) == RangeKind::Parallel; };
  while (regions[from].parent != none && !sets.has(set[node->id], regions[from].bit) && !holds(from))
    from = regions[from].parent;
  return from;
}

uint32_t Linearizer::addItem(InstKind kind, UOpRef uop, uint32_t region) {
  Item item;
  item.kind = kind, item.uop = uop, item.region = region;
  items.push_back(std::move(item));
  regions[region].items.push_back(items.size() - 1);
  return items.size() - 1;
}

uint32_t Linearizer::loopIn(uint32_t parent, UOpRef range, unsigned group) {
  unsigned bit = bitOfAxis[range->ints[0]];
  auto [it, fresh] = regionOf.try_emplace({{parent, bit}, group}, regions.size());
  if (!fresh) return it->second;
  uint32_t r = regions.size();
  Region region{range, bit, parent, regions[parent].depth + 1, none, range->src[0]->lo < 1, {}};
  // Items exist when a kernel is called at all, so its only parallel range is not empty.
  if (kindOf(range) == RangeKind::Parallel) {
    unsigned parallel = llvm::count_if(ranges, [](UOpRef x) { return kindOf(x) == RangeKind::Parallel; });
    region.mayBeEmpty = parallel > 1;
  }
  regions.push_back(region);
  regions[r].loop = addItem(InstKind::LoopBegin, range, parent);
  items[regions[r].loop].inner = r;
  return r;
}

/// The innermost region of a store: its parallel range, then its loops in the order of their axis numbers.
llvm::Expected<uint32_t> Linearizer::placeStore(UOpRef store) {
  std::vector<UOpRef> parallel, loops;
  for (unsigned bit : sets.members(set[store->id])) {
    UOpRef r = ranges[bit];
    if (kindOf(r) == RangeKind::Fold) return fail("range " + std::to_string(r->ints[0]) + " is not closed by a fold");
    (kindOf(r) == RangeKind::Parallel ? parallel : loops).push_back(r);
  }
  if (parallel.size() > 1) return fail("a store depends on two parallel ranges");
  if (parallel.empty()) parallel.push_back(lone);
  llvm::sort(loops, [](UOpRef a, UOpRef b) { return a->ints[0] < b->ints[0]; });
  uint32_t at = loopIn(0, parallel[0], 0);
  for (UOpRef r : loops) at = loopIn(at, r, 0);
  return at;
}

/// Notes what instance i needs and where.
llvm::Error Linearizer::beginInstance(uint32_t i) {
  UOpRef x = instances[i].node;
  uint32_t at = instances[i].region;
  auto bound = [&](UOpRef y, uint32_t region) -> llvm::Error {
    for (unsigned bit : sets.members(set[y->id])) {
      uint32_t r = region;
      while (r != none && (regions[r].parent == none || regions[r].bit != bit)) r = regions[r].parent;
      if (r == none) return fail("range " + std::to_string(ranges[bit]->ints[0]) + " is used outside its loop");
    }
    return llvm::Error::success();
  };
  std::vector<Use> uses;
  auto need = [&](UOpRef y, uint32_t region, uint32_t item) { uses.push_back({none, y, region, item}); };
  auto enter = [&](llvm::ArrayRef<UOpRef> loops, unsigned group) -> llvm::Error {
    for (UOpRef r : loops) {
      if (kindOf(r) == RangeKind::Thread) continue;
      if (auto e = bound(r->src[0], at)) return e;
      uint32_t inner = loopIn(at, r, group);
      need(r->src[0], at, regions[inner].loop);
      at = inner;
    }
    return llvm::Error::success();
  };
  if (UOpRef fold = spillingFold(x)) {
    // Filled; then around: for each element, it goes on from where it rested.
    uint32_t outside = at;
    constexpr unsigned ofFill = ~0u; // the group of its loops
    if (auto e = enter(x->indices(), ofFill)) return e;
    uint32_t fill = addItem(InstKind::StageFill, x, at);
    for (UOpRef f : x->tensors()) need(f->src[0], at, fill);
    for (; at != outside; at = regions[at].parent) fill = regions[at].loop;
    auto is = [](RangeKind kind) { return [kind](UOpRef r) { return kindOf(r) == kind; }; };
    llvm::SmallVector<UOpRef, 4> around, inner;
    llvm::copy_if(fold->indices(), std::back_inserter(around), is(RangeKind::Around));
    llvm::copy_if(fold->indices(), std::back_inserter(inner), is(RangeKind::Fold));
    unsigned group = split ? depth[x->id] : 0;
    if (auto e = enter(around, group)) return e;
    if (auto e = enter(x->indices(), group)) return e;
    uint32_t element = at, resume = addItem(InstKind::AccResume, x, at);
    if (auto e = enter(inner, group)) return e;
    uint32_t put = addItem(InstKind::StagePut, x, element);
    for (UOpRef f : x->tensors()) {
      uint32_t body = addItem(InstKind::AccUpdate, f, at);
      for (UOpRef y : f->tensors().drop_front()) need(y, at, body);
      for (uint32_t r = at; r != element; r = regions[r].parent) body = regions[r].loop;
      depend(resume, body);
      depend(body, put);
    }
    uint32_t own = put;
    for (uint32_t r = element; r != outside; r = regions[r].parent) own = regions[r].loop;
    depend(fill, own);
    instances[i].own = own;
  } else if (x->op == Op::Store) {
    std::vector<UOpRef> loops;
    for (uint32_t r = at; regions[r].parent != none; r = regions[r].parent) loops.push_back(regions[r].range);
    std::reverse(loops.begin(), loops.end());
    at = 0;
    if (auto e = enter(loops, 0)) return e;
    uint32_t item = addItem(InstKind::Write, x, at);
    for (UOpRef y : x->src.drop_front()) need(y, at, item);
    const KernelBuffer &b = k.buffers[x->src[0]->ints[0]];
    if (b.read)
      for (uint32_t r = at, j = item; j != none; j = regions[r].loop, r = regions[r].parent) items[j].late = true;
  } else if (closes(x)) {
    uint32_t outside = at, init = none;
    bool fold = x->op == Op::Fold;
    if (fold) init = addItem(InstKind::AccInit, x, at), need(x->src[0], at, init);
    if (auto e = enter(x->indices(), split ? depth[x->id] : 0)) return e;
    uint32_t body = addItem(fold ? InstKind::AccUpdate : InstKind::StagePut, x, at), own = body;
    for (UOpRef y : x->tensors().drop_front(fold)) need(y, at, body);
    for (uint32_t r = at; r != outside; r = regions[r].parent) own = regions[r].loop;
    if (fold) depend(init, own);
    instances[i].own = own;
  } else if (x->op == Op::Running) { // begins before its loop, which goes on around those who use it
    if (regions[at].range != x->indices()[0])
      return fail("a running value is not directly in the loop of range " + std::to_string(x->indices()[0]->ints[0]));
    uint32_t outside = regions[at].parent, init = addItem(InstKind::AccInit, x, outside),
             body = addItem(InstKind::AccUpdate, x, at);
    need(x->src[0], outside, init);
    need(x->src[1], at, body);
    depend(init, regions[at].loop);
    instances[i].own = body;
  } else {
    for (UOpRef y : x->src) need(y, at, none);
    if (x->op == Op::Load) need(k.buffers[x->src[0]->ints[0]].elements, at, none); // in case it is speculative
  }
  for (Use &u : uses)
    if (auto e = bound(u.node, u.region)) return e;
  instances[i].uses = std::move(uses);
  return llvm::Error::success();
}

llvm::Error Linearizer::walk() {
  regions.push_back({});
  auto instance = [&](UOpRef node, uint32_t region) {
    auto [it, fresh] = instanceOf.try_emplace({node, region}, instances.size());
    if (fresh) instances.emplace_back(node, region);
    return std::pair(it->second, fresh);
  };
  std::vector<std::pair<uint32_t, uint32_t>> stack; // instance, next use
  auto finish = [&](uint32_t root) -> llvm::Error {
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto &[i, next] = stack.back();
      if (next == instances[i].uses.size()) {
        Instance &v = instances[i];
        if (v.own == none && v.node->op != Op::Store) {
          v.own = addItem(InstKind::Define, v.node, v.region);
          items[v.own].value = i;
        }
        finished.push_back(i);
        stack.pop_back();
        continue;
      }
      uint32_t user = i, which = next++;
      UOpRef y = instances[user].uses[which].node;
      if (isLeaf(y)) continue;
      if (y->op == Op::Load && y->src[0]->ints[0] >= int64_t(k.buffers.size()))
        return fail("a load from buffer " + std::to_string(y->src[0]->ints[0]) + " of " +
                    std::to_string(k.buffers.size()));
      auto [j, fresh] = instance(y, place(y, instances[user].uses[which].region));
      instances[user].uses[which].instance = j;
      if (!fresh) continue;
      if (auto e = beginInstance(j)) return e;
      stack.push_back({j, 0});
    }
    return llvm::Error::success();
  };
  for (UOpRef store : k.sink->src) {
    if (store->src[0]->ints[0] >= int64_t(k.buffers.size()))
      return fail("a store to buffer " + std::to_string(store->src[0]->ints[0]) + " of " +
                  std::to_string(k.buffers.size()));
    auto at = placeStore(store);
    if (!at) return at.takeError();
    auto [root, freshRoot] = instance(store, *at);
    if (!freshRoot) continue;
    instances[root].certain = true;
    if (auto e = beginInstance(root)) return e;
    if (auto e = finish(root)) return e;
  }
  for (UOpRef hint : k.hints) {
    uint32_t r = regionOfHint(hint);
    if (r == none) continue;
    uint32_t root = instances.size(), item = addItem(InstKind::Prefetch, hint, r);
    instances.emplace_back(hint, r);
    instances[root].own = item;
    instances[root].uses.push_back({none, hint->indices()[0], r, item});
    if (auto e = finish(root)) return e;
  }
  return llvm::Error::success();
}

void Linearizer::depend(uint32_t before, uint32_t after) {
  if (before == after) return;
  items[before].users.push_back(after);
  ++items[after].waiting;
}

/// The order that instance i's uses ask for, each in the region of the value used.
void Linearizer::link(uint32_t i) {
  const Instance &v = instances[i];
  for (const Use &u : v.uses) {
    if (u.instance == none) continue;
    const Instance &used = instances[u.instance];
    uint32_t user = u.item != none ? u.item : v.own, region = u.region;
    while (region != used.region) user = regions[region].loop, region = regions[region].parent;
    depend(used.own, user);
  }
}

/// certain: some user asks for it in the region where it is, or through loops that run at least once.
void Linearizer::markCertain() {
  for (uint32_t i : llvm::reverse(finished)) {
    if (!instances[i].certain) continue;
    for (const Use &u : instances[i].uses) {
      if (u.instance == none) continue;
      Instance &used = instances[u.instance];
      bool through = true;
      for (uint32_t r = u.region; r != used.region; r = regions[r].parent) through &= !regions[r].mayBeEmpty;
      used.certain |= through;
    }
  }
}

/// Kahn's algorithm in each region, ties by creation; false on a cycle. Writes to buffers that are also read come last.
bool Linearizer::order(Linear &out) {
  struct Frame {
    uint32_t region;
    std::vector<uint32_t> order;
    size_t next = 0;
  };
  bool acyclic = true;
  auto kahn = [&](uint32_t r) {
    std::vector<uint32_t> order;
    using Key = std::tuple<bool, bool, uint32_t>;
    auto key = [&](uint32_t i) { return Key(items[i].late, !items[i].feedsLoop, i); };
    std::priority_queue<Key, std::vector<Key>, std::greater<Key>> ready;
    llvm::DenseMap<uint32_t, uint32_t> waiting;
    for (uint32_t i : regions[r].items)
      if (!(waiting[i] = items[i].waiting)) ready.push(key(i));
    while (!ready.empty()) {
      uint32_t i = std::get<2>(ready.top());
      ready.pop();
      order.push_back(i);
      for (uint32_t u : items[i].users)
        if (!--waiting[u]) ready.push(key(u));
    }
    return order;
  };
  auto enter = [&](uint32_t r) {
    // What no loop of the region needs comes after its loops: the loops' accumulators want the registers.
    std::vector<uint32_t> first = kahn(r);
    auto findFeeds = [&] {
      for (uint32_t i : llvm::reverse(first)) {
        bool feeds = items[i].kind == InstKind::LoopBegin;
        for (uint32_t u : items[i].users) feeds |= items[u].feedsLoop;
        items[i].feedsLoop = feeds;
      }
    };
    findFeeds();
    if (k.prefetch) prefetch(r), findFeeds();
    Frame f{r, kahn(r), 0};
    acyclic &= f.order.size() == regions[r].items.size();
    return f;
  };
  std::vector<Frame> stack;
  stack.push_back(enter(0));
  while (acyclic && !stack.empty()) {
    Frame &f = stack.back();
    if (f.next == f.order.size()) {
      if (UOpRef range = regions[f.region].range) out.insts.push_back({InstKind::LoopEnd, range});
      stack.pop_back();
      continue;
    }
    const Item &item = items[f.order[f.next++]];
    bool reads = item.uop->op == Op::Load || item.uop->op == Op::At;
    bool speculative = item.kind == InstKind::Define && reads && !instances[item.value].certain;
    out.insts.push_back({item.kind, item.uop, speculative, item.ahead});
    if (item.kind == InstKind::LoopBegin) stack.push_back(enter(item.inner));
  }
  return acyclic;
}

llvm::Error Linearizer::placeArrays(Linear &out) {
  constexpr __int128 limit = __int128(1) << 40;
  for (UOpRef x : topo) {
    if (x->op != Op::Stage) continue;
    StageArray a{x, out.scratchBytes, {}, {}, 0};
    __int128 bytes = (bitWidth(x->dtype) + 7) / 8;
    for (UOpRef r : x->indices()) a.extents.push_back(std::max<int64_t>(r->src[0]->hi, 0));
    int64_t ofPoint = lanesOf(x) * int64_t(x->ntensors);
    if (a.extents.empty())
      a.extents.push_back(ofPoint);
    else if (__builtin_mul_overflow(a.extents.back(), ofPoint, &a.extents.back()))
      return fail("a stage's extent leaves 64 bits");
    a.strides.assign(x->ints.begin(), x->ints.end());
    __int128 count = 1;
    if (!a.strides.empty()) {
      for (auto [n, stride] : llvm::zip(a.extents, a.strides)) count += __int128(n - 1) * stride;
    } else {
      a.strides.resize(a.extents.size());
      for (size_t d = a.extents.size(); d-- > 0; count *= a.extents[d])
        if (count > limit)
          return fail("a stage of more than 2^40 bytes");
        else
          a.strides[d] = int64_t(count);
    }
    if ((bytes *= count) > limit) return fail("a stage of more than 2^40 bytes");
    a.elements = int64_t(count);
    out.scratchBytes += uint64_t(bytes + 63) / 64 * 64;
    if (spillingFold(x)) out.scratchBytes += 64; // many that are used together; not all in the same lines of a cache
    out.stages.push_back(std::move(a));
  }
  return llvm::Error::success();
}

llvm::Expected<Linear> Linearizer::run(bool &cyclic) {
  if (auto e = analyse()) return e;
  if (auto e = walk()) return e;
  for (uint32_t i : finished) link(i);
  markCertain();
  Linear out;
  if (auto e = placeArrays(out)) return e;
  cyclic = !order(out);
  return out;
}

llvm::Expected<Linear> astra::linearize(Context &c, const Kernel &k) {
  if (!k.sink || k.sink->op != Op::Sink)
    return llvm::createStringError(llvm::Twine("kernel '") + k.name + "': has no sink");
  for (bool split : {false, true}) {
    bool cyclic = false;
    auto l = Linearizer(c, k, split).run(cyclic);
    if (!l || !cyclic) return l;
  }
  llvm_unreachable("loops split by the depth of their folds cannot need each other");
}

std::string astra::print(const Linear &l) {
  static const char *const names[] = {"", "loop", "", "acc", "update", "put", "fill", "resume", ""};
  // Numbers in the order of definition: node ids depend on what was built before.
  llvm::DenseMap<UOpRef, unsigned> numbers;
  auto text = [&](UOpRef x) {
    if (x->isIndex()) return "[" + indexText(x) + "]";
    if (x->op == Op::Buffer) return "buffer" + std::to_string(x->ints[0]);
    if (x->op == Op::Const) return "0x" + llvm::utohexstr(uint64_t(x->ints[0]));
    return "%" + std::to_string(numbers.try_emplace(x, numbers.size()).first->second);
  };
  std::string out;
  unsigned indent = 0;
  for (const Inst &i : l.insts) {
    if (i.kind == InstKind::LoopEnd) {
      --indent;
      continue;
    }
    if (i.kind == InstKind::Define && i.uop->isIndex() && i.uop->op != Op::Extent) continue;
    out.append(indent * 2, ' ');
    if (i.kind == InstKind::LoopBegin) {
      out += "loop " + indexText(i.uop) + " < " + indexText(i.uop->src[0]) + "\n";
      ++indent;
      continue;
    }
    if (i.kind == InstKind::Prefetch) {
      out +=
          "prefetch " + text(i.uop->src[0]) + ", " + text(i.uop->indices()[0]) + " + " + std::to_string(i.ahead) + "\n";
      continue;
    }
    if (i.kind != InstKind::Write) out += text(i.uop) + " = ";
    out += names[unsigned(i.kind)];
    if (*names[unsigned(i.kind)]) out += " ";
    out += info(i.uop->op).mnemonic;
    llvm::ArrayRef<UOpRef> src = i.uop->src;
    if (i.kind == InstKind::AccInit) src = src.take_front(1);
    if (i.kind == InstKind::AccUpdate) src = i.uop->tensors().drop_front();
    for (size_t s = 0; s < src.size(); ++s) out += (s ? ", " : " ") + text(src[s]);
    if (i.speculative) out += " speculative";
    out += "\n";
  }
  return out;
}
