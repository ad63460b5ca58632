//===- Ranks.cpp: a tool as one rank of a job ---------------------------------===//
// Takes:    a bundle, the environment of a launcher.
// Gives:    see Ranks.h.
#include "Ranks.h"
#include <algorithm>
#include <cstring>

using namespace astra::tool;

// An older library, which the rest of a program runs with, does not have them; it loads no bundle with a mesh.
#pragma weak astra_bundle_function_name
#pragma weak astra_bundle_get_digest

static constexpr const char *kDim = "shards"; // as the compiler calls it

Ranks::~Ranks() {
  astra_mesh_free(&mesh);
  astra_ranks_free(&ranks);
}

static bool hasMesh(const astra_bundle *bundle) {
  if (!astra_bundle_function_name || !astra_bundle_get_digest) return false;
  for (uint32_t i = 0; const char *name = astra_bundle_function_name(bundle, i); i++)
    if (std::string_view(name).starts_with("astra.mesh.")) return true;
  for (uint32_t i = 0; const char *name = astra_bundle_asset_name(bundle, i); i++)
    if (std::string_view(name) == "astra.mesh") return true;
  return false;
}

Option astra::tool::engineOption(std::string &engine) {
  return {"engine", "NAME",
          "what moves bytes between the ranks of a job: shm, mpi, nccl or rccl, or mpi:PATH, nccl:PATH, rccl:PATH with "
          "the library's file; ASTRA_ENGINE, or what fits the launcher, if not given. The bits do not depend on it",
          text(engine)};
}

void Ranks::open(const Handles &h, const std::string &engine, Checked &check) {
  if (!hasMesh(h.bundle)) return;
  astra_ranks_options options = ASTRA_INIT(astra_ranks_options);
  options.engine = engine.empty() ? nullptr : engine.c_str();
  check(astra_ranks_init(&ranks, &options, check));
  check(astra_mesh_init(&mesh, ranks, h.runtime, h.bundle, check));
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(h.bundle, &info));
  for (uint32_t i = 0; i < info.num_dims; i++) {
    astra_dim_info dim = ASTRA_INIT(astra_dim_info);
    check(astra_bundle_get_dim(h.bundle, i, &dim));
    if (std::string_view(dim.name) == kDim) bySession = dim.is_session, byCall = dim.is_host;
  }
}

std::vector<astra_dim_value> Ranks::dims(std::vector<astra_dim_value> given) const {
  if (bySession) given.push_back({kDim, astra_mesh_local_shards(mesh)});
  return given;
}

void Ranks::begin(Handles &h, Checked &check) const {
  if (!mesh) return;
  if (byCall) check(astra_session_set_dim(h.session, kDim, astra_mesh_local_shards(mesh), check));
  astra_call call = ASTRA_INIT(astra_call);
  if (astra_bundle_find_entry(h.bundle, "shards_init", &call.entry, nullptr)) return; // they begin as zeros
  astra_promise *promise = nullptr;
  check(astra_session_submit(h.session, h.stream, &call, &promise, check));
  astra_status status = astra_promise_wait(promise, check);
  astra_promise_free(&promise);
  check(status);
}

void Ranks::wait(Checked &check) {
  if (ranks) check(astra_ranks_barrier(ranks, check));
}

std::vector<std::string> Ranks::gather(Checked &check, const std::string &own) {
  if (!ranks) return {own};
  std::vector<uint64_t> sizes;
  sizes.resize(size_t(size()));
  uint64_t bytes = own.size();
  check(astra_ranks_gather(ranks, &bytes, sizeof(bytes), sizes.data(), check));
  uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = own, all(most * sizes.size(), ' ');
  padded.resize(most);
  check(astra_ranks_gather(ranks, padded.data(), most, all.data(), check));
  std::vector<std::string> out;
  for (size_t r = 0; r < sizes.size(); r++) out.push_back(all.substr(r * most, sizes[r]));
  return out;
}

uint64_t Ranks::least(Checked &check, uint64_t own) {
  std::vector<uint64_t> all(size_t(size()), own);
  if (ranks) check(astra_ranks_gather(ranks, &own, sizeof(own), all.data(), check));
  return *std::min_element(all.begin(), all.end());
}

uint64_t Ranks::sent() const {
  astra_ranks_counters counters = ASTRA_INIT(astra_ranks_counters);
  if (ranks) astra_ranks_get_counters(ranks, &counters);
  return counters.sent;
}

void Ranks::requireSame(Checked &check, const std::vector<Given> &given) {
  if (size() < 2) return;
  std::vector<uint64_t> own, all(given.size() * size_t(size()));
  for (const Given &g : given) own.push_back(g.sum);
  check(astra_ranks_gather(ranks, own.data(), own.size() * sizeof(uint64_t), all.data(), check));
  for (size_t i = 0; i < given.size(); i++) {
    std::string others;
    int count = 0;
    for (size_t r = 1; r < size_t(size()); r++)
      if (all[r * given.size() + i] != all[i]) others += (count++ ? ", " : "") + std::to_string(r);
    if (count)
      throw Refusal{Failure, (count > 1 ? "ranks " + others + " were" : "rank " + others + " was") + " given another " +
                                 given[i].name + " than rank 0: give all ranks the same"};
  }
}

astra_mesh_cut Ranks::cut(int32_t kind, const char *entry, const char *name) const {
  astra_mesh_cut c = ASTRA_INIT(astra_mesh_cut);
  c.is_whole = 1;
  if (mesh) astra_mesh_get_cut(mesh, kind, entry, name, &c);
  return c;
}

bool Ranks::isCut(int32_t kind, const char *entry, const char *name) const { return !cut(kind, entry, name).is_whole; }

astra_tensor_info Ranks::logical(int32_t kind, const char *entry, const astra_tensor_info &info) {
  astra_mesh_cut c = cut(kind, entry, info.name);
  if (c.is_whole) return info;
  if (info.ndim != c.ndim + 1)
    throw Refusal{Failure, "the bundle's record of its mesh does not fit '" + std::string(info.name) + "'"};
  astra_tensor_info whole = info;
  whole.ndim = c.ndim;
  for (const int64_t **bound : {&whole.lower, &whole.upper}) {
    std::vector<int64_t> &v = extents.emplace_back(*bound + 1, *bound + 1 + c.ndim);
    for (int32_t i = 0; i < c.ndim; i++)
      if (__builtin_mul_overflow(v[size_t(i)], c.parts[i], &v[size_t(i)])) v[size_t(i)] = INT64_MAX;
    *bound = v.data();
  }
  return whole;
}

std::vector<int64_t> Ranks::localShape(int32_t kind, const char *entry, const char *name,
                                       const std::vector<int64_t> &logical) const {
  astra_mesh_cut c = cut(kind, entry, name);
  if (c.is_whole) return logical;
  if (c.ndim != int32_t(logical.size()))
    throw Refusal{Failure, "'" + std::string(name) + "' has " + std::to_string(logical.size()) +
                               " axes, and the bundle cuts " + std::to_string(c.ndim)};
  std::vector<int64_t> local{astra_mesh_local_shards(mesh)};
  for (int32_t i = 0; i < c.ndim; i++) {
    int64_t n = logical[size_t(i)];
    if (n % c.parts[i])
      throw Refusal{Failure, "axis " + std::to_string(i) + " of '" + name + "' has " + std::to_string(n) +
                                 " elements, which the mesh (" + astra_mesh_axes(mesh) + ") cannot cut into " +
                                 std::to_string(c.parts[i]) + " equal parts"};
    local.push_back(n / c.parts[i]);
  }
  return local;
}

std::vector<int64_t> Ranks::logicalShape(int32_t kind, const char *entry, const char *name,
                                         const std::vector<int64_t> &local) const {
  astra_mesh_cut c = cut(kind, entry, name);
  if (c.is_whole) return local;
  std::vector<int64_t> whole(local.begin() + 1, local.end());
  for (int32_t i = 0; i < c.ndim && i < int32_t(whole.size()); i++) whole[size_t(i)] *= c.parts[i];
  return whole;
}

/// Elements of less than a byte lie beside each other: such a tensor is not cut.
static uint32_t elementBytes(int32_t dtype, const char *name) {
  uint32_t bits = astra_dtype_bits(dtype);
  if (bits % 8)
    throw Refusal{Unsupported, "'" + std::string(name) + "' has elements of less than a byte, which are not cut"};
  return bits / 8;
}

uint64_t Ranks::bytes(int32_t dtype, const std::vector<int64_t> &shape) {
  uint64_t n = elementBytes(dtype, "a tensor");
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(n, uint64_t(extent), &n)) throw Refusal{Failure, "a tensor has more than 2^64 bytes"};
  return n;
}

void Ranks::take(Checked &check, int32_t kind, const char *entry, const char *name, int32_t dtype,
                 const std::vector<int64_t> &shape, const void *logical, void *local) const {
  check(astra_mesh_take(mesh, kind, entry, name, elementBytes(dtype, name), int32_t(shape.size()), shape.data(),
                        logical, local, bytes(dtype, localShape(kind, entry, name, shape)), check));
}

void Ranks::join(Checked &check, int32_t kind, const char *entry, const char *name, int32_t dtype,
                 const std::vector<int64_t> &shape, const void *local, void *logical) {
  check(astra_mesh_join(mesh, kind, entry, name, elementBytes(dtype, name), int32_t(shape.size()), shape.data(), local,
                        logical, bytes(dtype, shape), check));
}
