//===- WarpGroups.cpp: a tile that warp groups multiply --------------------===//
// Takes:    a kernel whose threads' sums are an array (Kernel::warpGroups); how many places the ring has, and how many
//           tiles a block takes one after another.
// Gives:    a warp group more than the plan has, one thread of which brings boxes of both operands to a ring in shared
//           memory, of all tiles of its block; in place of the loops that fill the array: the others wait for a place
//           of the ring, multiply by their instruction, and say when the place is free again. What they have then is in
//           registers.
// Keeps:    the order of the sum: words from the first to the last, eight a step; zeros behind the end change no sum.
// Does not: read operands by threads; know what becomes of the sums.
//
// A place of the ring has 32 words of every line of the tile, 128 bytes, in the swizzle that both the copy and the
// instruction know. Each place has two barriers: `full` counts the copies' bytes, `empty` the warps that have read it.
// Before it multiplies, a turn of the loop waits for the place; after it, for the multiplications of the turn before,
// whose place is free then. So one turn's are always at work. Behind a tile the ring goes on where it is: boxes of the
// next tile come while the results of this one are stored.
#include "KernelEmitter.h"
#include "astra/Codegen/PtxCalls.h"

using namespace astra;
using namespace astra::gpu;

static constexpr unsigned boxWords = 32, boxBytes = 4 * boxWords, stepsOfBox = 4;

/// Registers of a thread that brings operands, and of one that multiplies; 0: as the block has them.
static std::pair<unsigned, unsigned> registersOf(unsigned groups) {
  return groups == 2 ? std::pair(40u, 232u) : std::pair(0u, 0u);
}

V KernelEmitter::ptx(llvm::StringRef name, llvm::ArrayRef<V> arguments, mlir::Type result) {
  auto f = module.lookupSymbol<L::LLVMFuncOp>(name);
  if (!f) {
    mlir::OpBuilder::InsertionGuard guard(s.b);
    s.b.setInsertionPointToStart(module.getBody());
    llvm::SmallVector<mlir::Type> types;
    for (V v : arguments) types.push_back(v.getType());
    mlir::Type out = result ? result : mlir::Type(L::LLVMVoidType::get(s.b.getContext()));
    f = L::LLVMFuncOp::create(s.b, s.loc, name, L::LLVMFunctionType::get(out, types));
    f.setConvergent(true);
  }
  auto call = L::CallOp::create(s.b, s.loc, f, mlir::ValueRange(arguments));
  return result ? V(call.getResult()) : V();
}

void KernelEmitter::findWarpGroups() {
  if (!k.kernel->warpGroups) return;
  for (const StageArray &a : k.linear.stages)
    if (UOpRef v = a.stage->src[0]; v->op == Op::Fold && unitStepOf(Combine(v->ints[0]))) groups.sums = a.stage;
  for (size_t n = 0; groups.sums && n < k.linear.insts.size(); ++n) {
    const Inst &i = k.linear.insts[n];
    if (i.kind != InstKind::LoopBegin || i.uop != groups.sums->indices()[0]) continue;
    groups.begin = n;
    return;
  }
  refuse("the sums of a tile of warp groups are no array of a thread");
}

void KernelEmitter::makeTileRing(GpuLaunch &launch) {
  const WarpGroupTile &t = *k.kernel->warpGroups;
  uint64_t place = uint64_t(t.rows.most + t.columns.most) * boxBytes;
  size_t number = k.linear.stages.size() + spilled.size();
  auto place0 = [&](size_t n, mlir::Type element, uint64_t count, unsigned alignment) -> V {
    L::GlobalOp global = sharedArray(number + n, element, count, alignment);
    return L::AddressOfOp::create(s.b, s.loc, global);
  };
  groups.empty = place0(2, s.i(64), k.stages, 64);
  groups.full = place0(1, s.i(64), k.stages, 64);
  groups.ring = place0(0, s.i(32), place / 4 * k.stages, 1024);
  unsigned first = function.getNumArguments() - 2;
  auto bytes = L::LLVMArrayType::get(s.i(8), 128);
  for (const auto *side : {&t.rows, &t.columns}) {
    unsigned argument = first + groups.map.size();
    function.setArgAttr(argument, "llvm.byval", mlir::TypeAttr::get(bytes));
    function.setArgAttr(argument, "llvm.align", s.b.getI64IntegerAttr(64));
    function.setArgAttr(argument, "nvvm.grid_constant", s.b.getUnitAttr());
    groups.map.push_back(function.getArgument(argument));
    launch.maps.push_back({side->buffer, uint64_t(t.words), uint32_t(side->most)});
  }
}

/// The value of an index of ranges and dims, wherever nobody has computed it before.
V KernelEmitter::indexOf(UOpRef x, unsigned width) {
  llvm::DenseMap<UOpRef, Lanes> before = values;
  for (UOpRef n : topoSort({x}))
    if (!n->isConst() && n->op != Op::Dim && !values.contains(n)) values[n] = compute({InstKind::Define, n});
  V out = index(x, width);
  values = std::move(before); // they are of this block of code
  return out;
}

V KernelEmitter::groupBarrier(V of, V slot) { return at(of, s.i(64), slot, 0); }

V KernelEmitter::inTileRing(V slot, uint64_t bytes) {
  const WarpGroupTile &t = *k.kernel->warpGroups;
  V begin = s.mul(slot, s.integer(32, uint64_t(t.rows.most + t.columns.most) * boxWords));
  return at(groups.ring, s.i(32), begin, bytes / 4);
}

uint64_t KernelEmitter::turnsOfTile() const {
  return (uint64_t(k.kernel->warpGroups->words) + boxWords - 1) / boxWords;
}

/// A loop over the turns of the block's tile number `tile`: `body` has a turn's number, its place and the parity of the
/// place's phase.
Lanes KernelEmitter::ringLoop(V tile, llvm::ArrayRef<V> carried,
                              llvm::function_ref<Lanes(V, V, V, llvm::ArrayRef<V>)> body) {
  mlir::Block *header = newBlock(), *inside = newBlock(), *exit = newBlock();
  llvm::SmallVector<V> begin{s.integer(32, 0), s.integer(32, 0), s.integer(32, 0)};
  if (k.perBlock > 1) { // where the tiles before have left the ring
    V before = s.mul(tile, s.integer(32, turnsOfTile())), stages = s.integer(32, k.stages);
    begin[1] = s.urem(before, stages), begin[2] = s.band(s.udiv(before, stages), uint64_t(1));
  }
  llvm::append_range(begin, carried);
  jump(header, begin);
  for (V v : begin) header->addArgument(v.getType(), s.loc);
  enter(header);
  llvm::SmallVector<V> now(header->args_begin(), header->args_end());
  branch(s.cmp(ICmp::ult, now[0], turnsOfTile()), inside, exit);
  enter(inside);
  Lanes after = body(now[0], now[1], now[2], llvm::ArrayRef(now).drop_front(3));
  V last = s.cmp(ICmp::eq, now[1], k.stages - 1);
  llvm::SmallVector<V> next{s.add(now[0], uint64_t(1)), s.select(last, s.integer(32, 0), s.add(now[1], uint64_t(1))),
                            s.select(last, s.bxor(now[2], uint64_t(1)), now[2])};
  llvm::append_range(next, after);
  jump(header, next).setLoopAnnotationAttr(unrolled(s.b, false));
  enter(exit);
  return Lanes(header->args_begin() + 3, header->args_end());
}

/// Each of the block's tiles in turn; `body` has its number among them, and is at its item.
llvm::Error KernelEmitter::eachTile(llvm::function_ref<llvm::Error(V)> body) {
  V none = s.integer(32, 0);
  if (k.perBlock < 2) {
    setItem(machine.block());
    return body(none);
  }
  mlir::Block *header = newBlock(), *inside = newBlock(), *exit = newBlock();
  jump(header, {none});
  V tile = header->addArgument(s.i(32), s.loc);
  enter(header);
  branch(s.cmp(ICmp::ult, tile, k.perBlock), inside, exit);
  enter(inside);
  setItem(s.add(s.mul(machine.block(), s.integer(32, k.perBlock)), tile));
  if (auto e = body(tile)) return e;
  jump(header, {s.add(tile, uint64_t(1))}).setLoopAnnotationAttr(unrolled(s.b, false));
  enter(exit);
  return llvm::Error::success();
}

/// All of what the threads do that bring operands. Those that multiply go on behind it.
llvm::Error KernelEmitter::beginGroups() {
  const WarpGroupTile &t = *k.kernel->warpGroups;
  Combine kind = Combine(groups.sums->src[0]->ints[0]);
  unitFunction(kind, "unit.group." + warpGroupType(target, *unitStepOf(kind)).str()); // what the instruction means
  uint64_t rowBytes = t.rows.most * boxBytes, place = rowBytes + t.columns.most * boxBytes;
  auto number = [&](uint64_t v) { return s.integer(32, v); };
  V thread = machine.thread();
  guarded(s.cmp(ICmp::eq, thread, 0), {}, [&]() -> Lanes {
    for (unsigned slot = 0; slot < k.stages; ++slot) {
      ptx(ptxName::barrierInit, {groupBarrier(groups.full, number(slot)), number(1)});
      ptx(ptxName::barrierInit, {groupBarrier(groups.empty, number(slot)), number(k.group / warp)});
    }
    ptx(ptxName::barrierFence, {});
    return {};
  });
  machine.barrier();

  auto [few, many] = registersOf(k.group / groupThreads);
  mlir::Block *fetches = newBlock(), *multiplies = newBlock(), *one = newBlock();
  groups.end = newBlock();
  branch(s.cmp(ICmp::ult, thread, k.group), multiplies, fetches);
  enter(fetches);
  if (few) ptx((ptxName::giveRegisters + llvm::Twine(few)).str(), {});
  branch(s.cmp(ICmp::eq, thread, k.group), one, groups.end);
  enter(one);
  auto bring = [&](V tile) {
    V row = indexOf(t.rows.first, 32), column = indexOf(t.columns.first, 32);
    ringLoop(tile, {}, [&](V turn, V slot, V parity, llvm::ArrayRef<V>) -> Lanes {
      // Of a barrier that has no phase behind it the one before is over.
      ptx(ptxName::barrierWait, {groupBarrier(groups.empty, slot), s.bxor(parity, uint64_t(1))});
      V full = groupBarrier(groups.full, slot), word = s.mul(turn, number(boxWords));
      ptx(ptxName::barrierExpect, {full, number(place)});
      ptx(ptxName::copyBox, {inTileRing(slot, 0), groups.map[0], word, row, full});
      ptx(ptxName::copyBox, {inTileRing(slot, rowBytes), groups.map[1], word, column, full});
      return {};
    });
  };
  auto error = eachTile([&](V tile) -> llvm::Error {
    for (UOpRef x : topoSort({k.kernel->sink}))
      if (x->op == Op::Range && isParallel(x)) values[x] = {s.resize(item, widthOf(x), true)};
    V isTile; // of the last block, which may have fewer
    if (k.perBlock > 1) isTile = s.cmp(ICmp::ult, item, indexOf(itemCount(c, k.kernel->sink), s.width(item)));
    guarded(isTile, {}, [&]() -> Lanes { return bring(tile), Lanes(); });
    return llvm::Error::success();
  });
  if (error) return error;
  jump(groups.end);
  enter(multiplies);
  if (many) ptx((ptxName::takeRegisters + llvm::Twine(many)).str(), {});
  return llvm::Error::success();
}

/// The sums of the tile at hand.
void KernelEmitter::multiplyByGroups() {
  const WarpGroupTile &t = *k.kernel->warpGroups;
  std::string type = warpGroupType(target, *unitStepOf(Combine(groups.sums->src[0]->ints[0]))).str();
  unsigned count = k.group / groupThreads, own = t.rows.most / count / 64; // tiles of 64 rows of a group
  unsigned sums = t.columns.most / 2;                                      // of a thread, in each of these
  uint64_t rowBytes = t.rows.most * boxBytes, place = rowBytes + t.columns.most * boxBytes;
  auto number = [&](uint64_t v) { return s.integer(32, v); };
  V thread = machine.thread();
  auto some = L::LLVMStructType::getLiteral(s.b.getContext(), llvm::SmallVector<mlir::Type>(sums, s.f(32)));
  auto all = L::LLVMStructType::getLiteral(s.b.getContext(), llvm::SmallVector<mlir::Type>(sums * own, s.f(32)));
  auto parts = [&](V from, unsigned n) {
    Lanes out;
    for (unsigned i = 0; i < n; ++i) out.push_back(L::ExtractValueOp::create(s.b, s.loc, from, int64_t(i)));
    return out;
  };
  auto wait = [&](unsigned left, llvm::ArrayRef<V> of) {
    return parts(ptx((ptxName::wait + llvm::Twine(left) + "." + llvm::Twine(sums * own)).str(), of, all), sums * own);
  };
  V group = s.lshr(thread, 7u), warpLane = s.band(thread, uint64_t(warp - 1));
  auto leave = [&](V when, V slot) {
    guarded(when, {}, [&]() -> Lanes {
      ptx(ptxName::barrierArrive, {groupBarrier(groups.empty, slot)});
      return {};
    });
  };
  std::string multiply = (ptxName::multiply + llvm::Twine(type) + "." + llvm::Twine(sums)).str();
  Lanes result = ringLoop(
      groups.tile, Lanes(sums * own, s.real(32, 0)), [&](V turn, V slot, V parity, llvm::ArrayRef<V> before) -> Lanes {
        Lanes now(before.begin(), before.end());
        ptx(ptxName::barrierWait, {groupBarrier(groups.full, slot), parity});
        now = parts(ptx((ptxName::fence + llvm::Twine(sums * own)).str(), now, all), sums * own);
        V columns = ptx(ptxName::descriptor, {inTileRing(slot, rowBytes)}, s.i(64));
        V first = s.add(s.mul(slot, number(place / 4)), s.mul(group, number(own * 64 * boxWords)));
        llvm::SmallVector<V, 2> rows;
        for (unsigned i = 0; i < own; ++i)
          rows.push_back(ptx(ptxName::descriptor, {at(groups.ring, s.i(32), first, i * 64 * boxWords)}, s.i(64)));
        for (unsigned each = 0; each < stepsOfBox; ++each)
          for (unsigned i = 0; i < own; ++i) {
            llvm::SmallVector<V, 130> in{s.add(rows[i], each * nextStep), s.add(columns, each * nextStep)};
            in.append(now.begin() + i * sums, now.begin() + (i + 1) * sums);
            Lanes out = parts(ptx(multiply, in, some), sums);
            std::copy(out.begin(), out.end(), now.begin() + i * sums);
          }
        ptx(ptxName::commit, {});
        now = wait(1, now);
        V left = s.select(s.cmp(ICmp::eq, slot, 0), number(k.stages - 1), s.sub(slot, uint64_t(1)));
        leave(s.band(s.cmp(ICmp::ne, turn, 0), s.cmp(ICmp::eq, warpLane, 0)), left);
        return now;
      });
  result = wait(0, result);
  if (k.perBlock > 1) { // the last turn's place too: the next tile needs it
    V turns = s.mul(s.add(groups.tile, uint64_t(1)), number(turnsOfTile()));
    leave(s.cmp(ICmp::eq, warpLane, 0), s.urem(s.sub(turns, uint64_t(1)), number(k.stages)));
  }
  // Of each 8 columns a thread has two of its row, then two of the row 8 below.
  groups.result.assign(2 * own, Lanes());
  for (unsigned i = 0; i < own; ++i)
    for (unsigned n = 0; n < sums; ++n) groups.result[2 * i + n / 2 % 2].push_back(result[i * sums + n]);
}
