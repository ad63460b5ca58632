//===- Bundle.cpp: bundles and what they say about themselves -------------===//
// Takes:    a file or memory.
// Gives:    astra_bundle_*, astra_entry_* queries.
// Keeps:    a file is mapped once, read-only; weights are read in place from that mapping.
// Does not: map code (a device does).
#include "Cpu.h"
#include "Handles.h"
#include "Sha256.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace astra::rt;
using astra::fmt::Instr;

astra_bundle::~astra_bundle() {
  if (mapping) munmap(mapping, file.bytes);
  if (descriptor >= 0) close(descriptor);
}

namespace {

uint32_t rankOf(const flatbuffers::Vector<uint32_t> *shape) { return shape ? shape->size() : 0; }

/// Loops and branches are decided on the host, and so are data dims; its functions run there.
bool waitsOnHost(const fmt::Routine &routine) {
  for (const fmt::Program *p : *routine.programs())
    for (uint32_t i = 0; i < p->code_type()->size(); i++) {
      Instr type = p->code_type()->GetEnum<Instr>(i);
      if (type == Instr::While || type == Instr::Cond || type == Instr::ReadDim || type == Instr::External) return true;
    }
  return false;
}

/// Fills the arrays behind the infos: for each tensor its lower bounds, then its upper bounds.
bool describe(astra_bundle *b) {
  Heap &heap = b->runtime->heap;
  const fmt::Manifest &m = b->manifest();
  uint64_t numbers = 0, tensors = 0, users = 0;
  for (const fmt::Entry *e : *m.entries())
    for (const auto *list : {e->inputs(), e->outputs()})
      for (const fmt::Tensor *t : *list) numbers += 2 * rankOf(t->shape()), tensors++;
  for (const fmt::Param *p : *m.params()) numbers += 2 * (p->shape() ? p->shape()->size() : 0), users += !p->fixed();
  for (const fmt::State *s : *m.states()) numbers += 2 * rankOf(s->shape());
  if (!b->entries.init(heap, m.entries()->size()) || !b->ranges.init(heap, numbers) ||
      !b->tensors.init(heap, tensors) || !b->params.init(heap, m.params()->size()) ||
      !b->states.init(heap, m.states()->size()) || !b->userParams.init(heap, users) ||
      !b->constants.init(heap, m.exprs()->size()))
    return false;
  for (uint32_t i = 0; i < m.exprs()->size(); i++) {
    const auto *code = m.exprs()->Get(i)->code();
    if (code->size() == 1 && code->Get(0)->code() == fmt::ExprCode::Const)
      b->constants[i] = {code->Get(0)->value(), true};
  }
  int64_t *next = b->ranges.data();
  // The range of an expression that many axes share is computed once.
  struct Range {
    int64_t lower, upper;
    bool isKnown;
  };
  Array<Range> known;
  if (!known.init(heap, m.exprs()->size())) return false;
  auto symbolic = [&](const flatbuffers::Vector<uint32_t> *shape) {
    uint32_t rank = rankOf(shape);
    const int64_t *first = next;
    for (uint32_t i = 0; i < rank; i++) {
      Range &range = known[shape->Get(i)];
      if (!range.isKnown) evaluateRange(m, shape->Get(i), range.lower, range.upper);
      range.isKnown = true, next[i] = range.lower, next[rank + i] = range.upper;
      if (next[i] < 0) next[i] = 0;
      if (next[rank + i] < next[i]) next[rank + i] = next[i];
    }
    next += 2 * rank;
    return first;
  };
  uint64_t tensor = 0, user = 0;
  for (uint32_t i = 0; i < m.entries()->size(); i++) {
    const fmt::Entry *e = m.entries()->Get(i);
    b->entries[i] = {b, e, i, waitsOnHost(*e->routine()), b->tensors.data() + tensor};
    for (const auto *list : {e->inputs(), e->outputs()})
      for (const fmt::Tensor *t : *list) b->tensors[tensor++] = symbolic(t->shape());
  }
  for (uint32_t i = 0; i < m.params()->size(); i++) {
    const fmt::Param *p = m.params()->Get(i);
    uint32_t rank = p->shape() ? p->shape()->size() : 0;
    b->params[i] = next;
    for (uint32_t k = 0; k < 2 * rank; k++) *next++ = p->shape()->Get(k % rank);
    if (!p->fixed()) b->userParams[user++] = i;
  }
  for (uint32_t i = 0; i < m.states()->size(); i++) b->states[i] = symbolic(m.states()->Get(i)->shape());
  return true;
}

/// Reads and describes the bytes that `bundle` already refers to; on failure `bundle` is destroyed.
Status finish(astra_bundle **out, astra_bundle *bundle, const void *data, uint64_t bytes, const astra_bundle_options &o,
              astra_diag *diag) {
  astra_runtime *runtime = bundle->runtime;
  Status s = readFile(bundle->file, data, bytes, o.flags, o.public_key, runtime->verify, runtime->heap, diag);
  if (!s && !describe(bundle)) s = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to describe the bundle");
  if (s) {
    runtime->heap.destroy(bundle);
    return s;
  }
  runtime->users++;
  *out = bundle;
  return ASTRA_OK;
}

Status readBundleOptions(astra_bundle_options &out, const astra_bundle_options *in, astra_diag *diag) {
  if (Status s = readOptions(out, in, "astra_bundle_options", diag)) return s;
  constexpr uint32_t known = ASTRA_VERIFY_ALL | ASTRA_VERIFY_SIGNATURE | ASTRA_REQUIRE_STRICT;
  if (out.flags & ~known)
    return fail(diag, ASTRA_NEWER_CLIENT, "the flags %#x are not known to this library; use a newer one",
                out.flags & ~known);
  return ASTRA_OK;
}

} // namespace

astra_status astra_bundle_init_file(astra_bundle **out, astra_runtime *runtime, const char *path,
                                    const astra_bundle_options *options, astra_diag *diag) {
  if (Status s = checkHandle(runtime, "the runtime", diag)) return s;
  if (!out || !path) return fail(diag, ASTRA_INVALID_ARGUMENT, "out or path is NULL; give both");
  astra_bundle_options o;
  if (Status s = readBundleOptions(o, options, diag)) return s;
  astra_bundle *bundle = runtime->heap.make<astra_bundle>(runtime);
  if (!bundle) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a bundle");
  auto refuse = [&](const char *what, int error) {
    char text[100];
    const char *reason = error ? errorText(error, text, sizeof(text)) : "it is not a regular file";
    runtime->heap.destroy(bundle);
    return fail(diag, ASTRA_IO, "cannot %s '%.300s': %s", what, path, reason);
  };
  bundle->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (bundle->descriptor < 0) return refuse("open", errno);
  struct stat info;
  if (fstat(bundle->descriptor, &info) != 0) return refuse("read", errno);
  if (!S_ISREG(info.st_mode)) return refuse("open", 0);
  uint64_t bytes = uint64_t(info.st_size);
  if (bytes < sizeof(fmt::Header)) {
    runtime->heap.destroy(bundle);
    return fail(diag, ASTRA_TRUNCATED, "the file has %llu bytes, less than a header; fetch it again",
                static_cast<unsigned long long>(bytes));
  }
  void *mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, bundle->descriptor, 0);
  if (mapping == MAP_FAILED) return refuse("map", errno);
  bundle->mapping = mapping, bundle->file.bytes = bytes;
  return finish(out, bundle, mapping, bytes, o, diag);
}

astra_status astra_bundle_init_memory(astra_bundle **out, astra_runtime *runtime, const void *data, size_t bytes,
                                      const astra_bundle_options *options, astra_diag *diag) {
  if (Status s = checkHandle(runtime, "the runtime", diag)) return s;
  if (!out || (!data && bytes)) return fail(diag, ASTRA_INVALID_ARGUMENT, "out or data is NULL; give both");
  if (reinterpret_cast<uintptr_t>(data) % fmt::kAlign)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the bundle's memory is not 64-byte aligned; align it");
  astra_bundle_options o;
  if (Status s = readBundleOptions(o, options, diag)) return s;
  astra_bundle *bundle = runtime->heap.make<astra_bundle>(runtime);
  if (!bundle) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a bundle");
  return finish(out, bundle, data, bytes, o, diag);
}

astra_status astra_bundle_free(astra_bundle **bundle) {
  if (!bundle || !*bundle) return ASTRA_OK;
  if (Status s = checkFree(*bundle, "the bundle")) return s;
  astra_runtime *runtime = (*bundle)->runtime;
  runtime->heap.destroy(*bundle);
  runtime->users--;
  *bundle = nullptr;
  return ASTRA_OK;
}

//===- Queries ------------------------------------------------------------===//

namespace {

Status tensorInfo(astra_tensor_info *out, const char *name, fmt::DType dtype, uint32_t rank, const int64_t *ranges,
                  bool tap) {
  astra_tensor_info info{};
  info.name = name, info.dtype = static_cast<int32_t>(dtype), info.ndim = int32_t(rank);
  info.lower = ranges, info.upper = ranges + rank, info.is_tap = tap;
  return writeStruct(out, info);
}

template <typename T>
Status find(const flatbuffers::Vector<flatbuffers::Offset<T>> &rows, const char *name, const char *what, uint32_t &out,
            astra_diag *diag) {
  if (!name) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name of the %s is NULL; give one", what);
  for (uint32_t i = 0; i < rows.size(); i++)
    if (strcmp(rows.Get(i)->name()->c_str(), name) == 0) {
      out = i;
      return ASTRA_OK;
    }
  return fail(diag, ASTRA_UNKNOWN_NAME, "there is no %s '%.64s' among %u; the first is '%.64s'", what, name,
              rows.size(), rows.size() ? rows.Get(0)->name()->c_str() : "");
}

} // namespace

astra_status astra_bundle_get_info(const astra_bundle *bundle, astra_bundle_info *out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  const fmt::Manifest &m = bundle->manifest();
  astra_bundle_info info{};
  info.module = m.module_()->c_str(), info.contract = m.contract()->c_str(), info.numerics = m.numerics()->c_str();
  info.num_entries = m.entries()->size(), info.num_params = uint32_t(bundle->userParams.size());
  info.num_states = m.states()->size(), info.num_dims = m.dims()->size();
  info.num_targets = m.targets()->size(), info.num_kernels = m.kernels()->size();
  return writeStruct(out, info);
}

astra_status astra_bundle_get_target(const astra_bundle *bundle, uint32_t index, astra_target_info *out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (index >= bundle->manifest().targets()->size()) return ASTRA_UNKNOWN_NAME;
  const fmt::Target *t = bundle->manifest().targets()->Get(index);
  astra_target_info info{};
  info.name = t->name()->c_str();
  if (t->arch() != kHostArch)
    info.lacks = fmt::EnumNameArch(t->arch());
  else if (t->features())
    for (const auto *feature : *t->features())
      if (!info.lacks && cpuHasFeature(feature->c_str()) != 1) info.lacks = feature->c_str();
  return writeStruct(out, info);
}

astra_status astra_bundle_get_dim(const astra_bundle *bundle, uint32_t index, astra_dim_info *out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (index >= bundle->manifest().dims()->size()) return ASTRA_UNKNOWN_NAME;
  const fmt::Dim *d = bundle->manifest().dims()->Get(index);
  astra_dim_info info{};
  info.name = d->name()->c_str(), info.lower = d->lo(), info.upper = d->hi();
  info.is_host = d->source() == fmt::DimSource::Host, info.is_session = d->source() == fmt::DimSource::Session;
  return writeStruct(out, info);
}

astra_status astra_bundle_get_param(const astra_bundle *bundle, uint32_t index, astra_tensor_info *out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (index >= bundle->userParams.size()) return ASTRA_UNKNOWN_NAME;
  uint32_t i = bundle->userParams[index];
  const fmt::Param *p = bundle->manifest().params()->Get(i);
  return tensorInfo(out, p->name()->c_str(), p->dtype(), p->shape() ? p->shape()->size() : 0, bundle->params[i], false);
}

astra_status astra_bundle_get_state(const astra_bundle *bundle, uint32_t index, astra_tensor_info *out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (index >= bundle->manifest().states()->size()) return ASTRA_UNKNOWN_NAME;
  const fmt::State *state = bundle->manifest().states()->Get(index);
  return tensorInfo(out, state->name()->c_str(), state->dtype(), rankOf(state->shape()), bundle->states[index], false);
}

astra_status astra_bundle_get_entry(const astra_bundle *bundle, uint32_t index, const astra_entry **out) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (!out) return ASTRA_INVALID_ARGUMENT;
  if (index >= bundle->entries.size()) return ASTRA_UNKNOWN_NAME;
  *out = &bundle->entries[index];
  return ASTRA_OK;
}

astra_status astra_bundle_find_entry(const astra_bundle *bundle, const char *name, const astra_entry **out,
                                     astra_diag *diag) {
  if (Status s = checkHandle(bundle, "the bundle", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  uint32_t index = 0;
  if (Status s = find(*bundle->manifest().entries(), name, "entry", index, diag)) return s;
  *out = &bundle->entries[index];
  return ASTRA_OK;
}

const char *astra_bundle_function_name(const astra_bundle *bundle, uint32_t index) {
  if (checkHandle(bundle, "the bundle", nullptr)) return nullptr;
  const auto *functions = bundle->manifest().functions();
  return functions && index < functions->size() ? functions->Get(index)->name()->c_str() : nullptr;
}

astra_status astra_bundle_get_digest(const astra_bundle *bundle, uint8_t *digest) {
  if (Status s = checkHandle(bundle, "the bundle", nullptr)) return s;
  if (!digest) return ASTRA_INVALID_ARGUMENT;
  memcpy(digest, bundle->file.header->digest, sizeof(bundle->file.header->digest));
  return ASTRA_OK;
}

uint32_t astra_bundle_num_assets(const astra_bundle *bundle) {
  if (checkHandle(bundle, "the bundle", nullptr)) return 0;
  const auto *assets = bundle->manifest().assets();
  return assets ? assets->size() : 0;
}

const char *astra_bundle_asset_name(const astra_bundle *bundle, uint32_t index) {
  return index < astra_bundle_num_assets(bundle) ? bundle->manifest().assets()->Get(index)->name()->c_str() : nullptr;
}

astra_status astra_bundle_find_asset(const astra_bundle *bundle, const char *name, const void **data, uint64_t *bytes,
                                     astra_diag *diag) {
  if (Status s = checkHandle(bundle, "the bundle", diag)) return s;
  if (!name || !data || !bytes) return fail(diag, ASTRA_INVALID_ARGUMENT, "the name, data or bytes is NULL; give all");
  const auto *assets = bundle->manifest().assets();
  if (!assets) return fail(diag, ASTRA_UNKNOWN_NAME, "there is no asset '%.64s': the bundle has none", name);
  uint32_t index = 0;
  if (Status s = find(*assets, name, "asset", index, diag)) return s;
  const fmt::Place &place = *assets->Get(index)->place();
  const uint8_t *begin = bundle->file.data + bundle->file.weights->offset + place.offset();
  if (!Sha256::matches(begin, place.length(), place.sha256()->data()))
    return fail(diag, ASTRA_CORRUPT, "the hash of asset '%.64s' does not match its bytes", name);
  *data = begin, *bytes = place.length();
  return ASTRA_OK;
}

astra_status astra_entry_get_info(const astra_entry *entry, astra_entry_info *out) {
  if (!entry) return ASTRA_INVALID_ARGUMENT;
  astra_entry_info info{};
  info.name = entry->table->name()->c_str();
  info.num_inputs = entry->table->inputs()->size(), info.num_outputs = entry->table->outputs()->size();
  info.waits_on_host = entry->waitsOnHost;
  return writeStruct(out, info);
}

astra_status astra_entry_get_input(const astra_entry *entry, uint32_t index, astra_tensor_info *out) {
  if (!entry) return ASTRA_INVALID_ARGUMENT;
  if (index >= entry->table->inputs()->size()) return ASTRA_UNKNOWN_NAME;
  const fmt::Tensor *t = entry->table->inputs()->Get(index);
  return tensorInfo(out, t->name()->c_str(), t->dtype(), rankOf(t->shape()), entry->ranges[index], false);
}

astra_status astra_entry_get_output(const astra_entry *entry, uint32_t index, astra_tensor_info *out) {
  if (!entry) return ASTRA_INVALID_ARGUMENT;
  if (index >= entry->table->outputs()->size()) return ASTRA_UNKNOWN_NAME;
  const fmt::Tensor *t = entry->table->outputs()->Get(index);
  return tensorInfo(out, t->name()->c_str(), t->dtype(), rankOf(t->shape()),
                    entry->ranges[entry->table->inputs()->size() + index], t->tap());
}

astra_status astra_entry_find_input(const astra_entry *entry, const char *name, uint32_t *index, astra_diag *diag) {
  if (!entry || !index) return fail(diag, ASTRA_INVALID_ARGUMENT, "entry or index is NULL; give both");
  return find(*entry->table->inputs(), name, "input", *index, diag);
}

astra_status astra_entry_find_output(const astra_entry *entry, const char *name, uint32_t *index, astra_diag *diag) {
  if (!entry || !index) return fail(diag, ASTRA_INVALID_ARGUMENT, "entry or index is NULL; give both");
  return find(*entry->table->outputs(), name, "output", *index, diag);
}

int32_t astra_entry_uses_state(const astra_entry *entry, uint32_t state) {
  if (!entry || state >= entry->bundle->manifest().states()->size()) return -1;
  for (const auto *list : {entry->table->reads(), entry->table->writes()})
    for (uint32_t used : *list)
      if (used == state) return 1;
  return 0;
}
