//===- Vmap.cpp: a graph over one axis more --------------------------------===//
// Takes:    a graph or an entry, and where the batch axis of its leaves is.
// Gives:    one sweep over the nodes, sources first; what does not depend on the batch stays.
#include "astra/Autograd/Vmap.h"
#include "Activity.h"
#include "Batching.h"

using namespace astra;
using namespace astra::vmapping;

bool Batching::Node::batched(unsigned i) const { return images.batched.count(n->src[i]); }
UOpRef Batching::Node::source(unsigned i) const { return images.of(n->src[i]); }

UOpRef Batching::whole(UOpRef x, const Images &images) {
  return images.batched.count(x) ? images.of(x) : spread(images.of(x));
}

llvm::Error Batching::refuse(UOpRef n, const llvm::Twine &why) const {
  return llvm::createStringError(autograd::placeOf(n, origins) + ": " + why);
}

static bool dependsOnData(ArrayRef<UOpRef> indices) {
  return llvm::any_of(topoSort(indices), [](UOpRef n) { return n->is(Op::Extent); });
}

bool vmapping::exchanges(UOpRef function) {
  return llvm::any_of(topoSort(function->src), [](UOpRef n) {
    return isCollective(n->op) || llvm::any_of(n->fns, [](UOpRef f) { return exchanges(f); });
  });
}

llvm::Error Batching::fits(UOpRef n) const {
  constexpr __int128 limit = __int128(1) << 48; // of the type rules
  __int128 most = std::max<int64_t>(size->hi, 1);
  for (UOpRef d : n->shape)
    if ((most *= std::max<int64_t>(d->hi, 1)) > limit) return refuse(n, "the batch would have more than 2^48 elements");
  if (most > limit || n->rank() >= 64) return refuse(n, "the batch would be larger than a tensor may be");
  return llvm::Error::success();
}

llvm::Error Batching::add(ArrayRef<UOpRef> roots, Images &images) {
  for (UOpRef n : topoSort(roots)) {
    if (n->isIndex() && !n->is(Op::Extent)) continue; // `now` sees to them
    if (images.batched.count(n) || images.moved.count(n) || images.outcomes.count(n)) continue;
    Node at{n, images, images.now(c, n->indices()), images.now(c, n->shape)};
    bool dependsOnBatch = llvm::any_of(n->tensors(), [&](UOpRef s) { return images.batched.count(s); }) ||
                          (collective && llvm::any_of(n->fns, exchanges));
    if (collective && isCollective(n->op)) {
      auto [value, hasBatch] = (*collective)(n, n->ntensors ? whole(at, 0) : nullptr);
      (hasBatch ? images.batched : images.moved)[n] = value;
    } else if (n->is(Op::Proj) && images.outcomes.count(n->src[0])) {
      proj(at);
    } else if (!dependsOnBatch) {
      List src;
      for (UOpRef s : n->tensors()) src.push_back(images.of(s));
      src.append(at.indices);
      if (ArrayRef<UOpRef>(src) == n->src) continue;
      images.moved[n] = c.withSources(n, src);
      if (!n->is(Op::Extent)) continue;
      images.extents.push_back(n);
      images.extentsNow.push_back(images.moved[n]);
    } else if (n->is(Op::WithGradient)) {
      auto made = withGradient(at);
      if (!made) return made.takeError();
      images.batched[n] = *made;
    } else if (has(n->op, Control)) {
      auto outcome = n->is(Op::While)      ? whileLoop(at)
                     : n->is(Op::Scan)     ? scan(at)
                     : n->is(Op::Custom)   ? custom(at)
                     : n->is(Op::External) ? external(at)
                     : at.batched(0)       ? choice(at)
                                           : cond(at);
      if (!outcome) return outcome.takeError();
      images.outcomes[n] = std::move(*outcome);
    } else if (Row row = rowOf(n->op)) {
      if (auto error = fits(n)) return error;
      if (row == &Batching::loop && dependsOnData(at.indices))
        return refuse(n, "its shape depends on data, and each element of the batch has its own scalars");
      images.batched[n] = (this->*row)(at);
    } else if (n->is(Op::Extent) || n->is(Op::Compact)) {
      return refuse(n, "its extent would differ from element to element of the batch");
    } else {
      return refuse(n, "has no row");
    }
  }
  return llvm::Error::success();
}

bool astra::isBatchable(Op op) { return has(op, Control) || op == Op::WithGradient || Batching::hasRow(op); }

llvm::Expected<std::vector<UOpRef>> astra::vmap(Context &c, ArrayRef<UOpRef> roots, ArrayRef<UOpRef> leaves,
                                                ArrayRef<UOpRef> batched, UOpRef size, const Origins *origins) {
  Batching v(c, size, origins);
  Batching::Images images;
  for (auto [leaf, image] : llvm::zip(leaves, batched)) images.batched[leaf] = image;
  if (auto e = v.add(roots, images)) return std::move(e);
  std::vector<UOpRef> results;
  for (UOpRef root : roots) results.push_back(v.whole(root, images));
  return results;
}

llvm::Expected<ShardsOf> astra::vmapShards(Context &c, ArrayRef<UOpRef> roots, ArrayRef<UOpRef> leaves,
                                           ArrayRef<UOpRef> batched, UOpRef size, const CollectiveImage &collective,
                                           const Origins *origins) {
  Batching v(c, size, origins, &collective);
  Batching::Images images;
  for (auto [leaf, image] : llvm::zip(leaves, batched)) images.batched[leaf] = image;
  if (auto e = v.add(roots, images)) return std::move(e);
  ShardsOf out;
  for (UOpRef root : roots) {
    out.values.push_back(images.of(root));
    out.batched.push_back(images.batched.count(root));
  }
  return out;
}

llvm::Expected<Entry> astra::vmapEntry(Module &m, const Entry &e, llvm::StringRef name, UOpRef size,
                                       ArrayRef<std::optional<int64_t>> in, ArrayRef<int64_t> out) {
  Context &c = m.ctx();
  Batching v(c, size, &m.origins);
  auto fail = [](const llvm::Twine &what) { return llvm::createStringError(what); };
  if (in.size() != e.inputs.size() || out.size() != e.outputs.size())
    return fail("axes are given for " + llvm::Twine(in.size()) + " inputs and " + llvm::Twine(out.size()) +
                " outputs, it has " + llvm::Twine(e.inputs.size()) + " and " + llvm::Twine(e.outputs.size()));
  Entry result{name.str(), {}, {}, {}};
  Batching::Images images;
  for (auto [input, axis] : llvm::zip(e.inputs, in)) {
    UOpRef x = input.value;
    result.inputs.push_back(input);
    if (!axis) continue;
    if (*axis < 0 || *axis > x->rank())
      return fail("input %" + input.name + " has no place for an axis " + llvm::Twine(*axis) + ", its rank is " +
                  llvm::Twine(x->rank()));
    if (auto error = v.fits(x)) return std::move(error);
    List shape(x->shape.begin(), x->shape.end());
    shape.insert(shape.begin() + *axis, size);
    if (Sharding &s = result.inputs.back().sharding; s.isDeclared()) s.axes.insert(s.axes.begin() + *axis, 0);
    UOpRef arg = result.inputs.back().value = Builder(c).arg(x->ints[0], x->dtype, shape);
    images.batched[x] = v.front(arg, *axis);
  }
  std::vector<UOpRef> roots;
  for (const Value &o : e.outputs) roots.push_back(o.value);
  for (const StateUpdate &u : e.updates) roots.push_back(u.value);
  if (auto error = v.add(roots, images)) return std::move(error);
  for (auto [output, axis] : llvm::zip(e.outputs, out)) {
    UOpRef x = v.whole(output.value, images);
    if (axis < 0 || axis >= x->rank())
      return fail("output %" + output.name + " has no place for an axis " + llvm::Twine(axis) + ", its rank is " +
                  llvm::Twine(x->rank() - 1));
    Ints perm;
    for (unsigned i = 1; i < x->rank(); ++i) perm.push_back(i);
    perm.insert(perm.begin() + axis, 0);
    result.outputs.push_back({output.name, Builder(c).permute(x, perm), output.sharding});
    if (Sharding &s = result.outputs.back().sharding; s.isDeclared()) s.axes.insert(s.axes.begin() + axis, 0);
  }
  for (const StateUpdate &u : e.updates) {
    if (images.batched.count(u.value)) return fail("state @" + u.state + " would get a value for every element");
    result.updates.push_back({u.state, images.of(u.value)});
  }
  return result;
}
