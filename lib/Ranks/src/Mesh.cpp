//===- Mesh.cpp: a bundle on ranks -------------------------------------------===//
// Takes:    a bundle: the functions that it calls, its asset astra.mesh, which says how tensors are cut.
// Gives:    its functions, registered; parts of logical tensors, and logical tensors of parts.
// Keeps:    the record is untrusted: what does not fit is refused with a sentence. Bundles are compared between the
//           ranks before anything is loaded.
#include "Ranks.h"
#include <new>
#include <stdio.h>

// An older library of the runtime does not have them (tools/common/Ranks.cpp looks).
#pragma weak astra_bundle_function_name
#pragma weak astra_bundle_get_digest
#pragma weak astra_runtime_register_gpu

using namespace astra::ranks;

namespace {

/// A line of the record: how one tensor is cut.
struct Row {
  int32_t kind;
  Piece entry, name; ///< of a state no entry
  int32_t ndim;
  bool over[ASTRA_MAX_RANK][kMostAxes]; ///< by which axes of the mesh each axis is cut
};

} // namespace

struct astra_mesh {
  astra_ranks *ranks;
  Mesh mesh;
  Piece names[kMostAxes];
  char axes[200];
  List<char> record;
  List<Row> rows;
  List<Collective *> collectives;

  int64_t local() const { return mesh.shards / ranks->engine.ranks; }
};

namespace {

constexpr char kRecord[] = "astra.mesh";

bool readCut(astra_mesh &m, Piece text, Row *row) {
  while (text.size) {
    Piece axis = next(text, ",");
    if (row->ndim == ASTRA_MAX_RANK) return false;
    bool *over = row->over[row->ndim++];
    if (!axis.is("-") && !readAxes(axis, m.mesh, m.names, over)) return false;
  }
  return row->ndim > 0;
}

/// Lines of fields between tabs: "mesh AXES", then "state CUT NAME", "input CUT ENTRY NAME", "output CUT ENTRY NAME".
bool readRecord(astra_mesh &m) {
  Piece text{m.record.data(), m.record.size()}, first = next(text, "\n");
  if (!next(first, "\t").is("mesh") || first.size >= sizeof(m.axes) || !readMesh(first, &m.mesh, m.names)) return false;
  snprintf(m.axes, sizeof(m.axes), "%.*s", int(first.size), first.text);
  while (text.size) {
    Piece line = next(text, "\n"), kind = next(line, "\t"), cut = next(line, "\t");
    Row row;
    memset(static_cast<void *>(&row), 0, sizeof(row));
    row.kind = kind.is("input") ? ASTRA_MESH_INPUT : kind.is("output") ? ASTRA_MESH_OUTPUT : ASTRA_MESH_STATE;
    if (row.kind == ASTRA_MESH_STATE && !kind.is("state")) return false;
    if (row.kind != ASTRA_MESH_STATE) row.entry = next(line, "\t");
    row.name = line;
    if (!row.name.size || memchr(row.name.text, '\t', row.name.size) || !readCut(m, cut, &row)) return false;
    m.rows.add(row);
  }
  return !m.rows.failed;
}

Status loadRecord(astra_mesh &m, const astra_bundle *bundle, astra_diag *diag) {
  bool there = false;
  for (uint32_t i = 0; i < astra_bundle_num_assets(bundle); i++)
    there |= !strcmp(astra_bundle_asset_name(bundle, i), kRecord);
  if (!there) return ASTRA_OK;
  const void *data;
  uint64_t bytes;
  if (Status s = astra_bundle_find_asset(bundle, kRecord, &data, &bytes, diag)) return s;
  if (!m.record.resize(bytes)) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the record of the mesh");
  if (bytes) memcpy(m.record.data(), data, bytes);
  return readRecord(m) ? ASTRA_OK : fail(diag, ASTRA_MALFORMED, "the bundle's record of its mesh is malformed");
}

/// All ranks have the same, or a sentence.
Status sameEverywhere(astra_ranks *ranks, const void *data, uint64_t bytes, const char *what, astra_diag *diag) {
  List<char> all;
  if (!all.resize(size_t(ranks->engine.ranks) * bytes)) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory");
  if (Status s = astra_ranks_gather(ranks, data, bytes, all.data(), diag)) return s;
  for (int32_t r = 0; r < ranks->engine.ranks; r++)
    if (memcmp(all.data() + uint64_t(r) * bytes, data, bytes))
      return fail(diag, ASTRA_PEER_DIFFERS, "rank %d has another %s than rank %d", r, what, ranks->engine.rank);
  return ASTRA_OK;
}

Status addCollective(astra_mesh &m, astra_runtime *runtime, const char *name, astra_diag *diag) {
  auto *c = static_cast<Collective *>(malloc(sizeof(Collective)));
  if (!c) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the collectives of the bundle");
  m.collectives.add(c);
  if (m.collectives.failed) return free(c), fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the collectives");
  if (Status s = readName(c, name, diag)) return s;
  c->ranks = m.ranks;
  if (m.mesh.shards == 1) m.mesh = c->mesh; // of a bundle that has no record
  if (c->mesh.shards != m.mesh.shards)
    return fail(diag, ASTRA_MALFORMED, "the bundle calls '%.200s', which is not of its mesh", name);
  if (Status s = astra_runtime_register(runtime, name, call, c, ASTRA_FUNCTION_DETERMINISTIC, diag)) return s;
  if (!m.ranks->engine.exchange_gpu || !astra_runtime_register_gpu) return ASTRA_OK;
  return astra_runtime_register_gpu(runtime, name, callOnGpu, settleOnGpu, m.ranks, diag);
}

Status attach(astra_mesh &m, astra_runtime *runtime, const astra_bundle *bundle, astra_diag *diag) {
  uint8_t digest[32];
  if (Status s = astra_bundle_get_digest(bundle, digest)) return fail(diag, s, "the bundle is none of this process");
  if (Status s = sameEverywhere(m.ranks, digest, sizeof(digest), "bundle", diag)) return s;
  if (Status s = loadRecord(m, bundle, diag)) return s;
  for (uint32_t i = 0; const char *name = astra_bundle_function_name(bundle, i); i++)
    if (isCollective(name))
      if (Status s = addCollective(m, runtime, name, diag)) return s;
  int32_t R = m.ranks->engine.ranks;
  if (R > 1 && m.mesh.shards == 1 && !*m.axes)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the bundle has no mesh: one rank runs it, and there are %d", R);
  if (m.mesh.shards % R)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "%d ranks do not divide the %lld shards of the bundle's mesh%s%s", R,
                static_cast<long long>(m.mesh.shards), *m.axes ? " " : "", m.axes);
  return ASTRA_OK;
}

const Row *find(const astra_mesh *m, int32_t kind, const char *entry, const char *name) {
  auto &rows = const_cast<astra_mesh *>(m)->rows;
  for (const Row &row : rows)
    if (row.kind == kind && row.name.is(name) && (kind == ASTRA_MESH_STATE || row.entry.is(entry ? entry : "")))
      return &row;
  return nullptr;
}

/// A logical tensor and the block of it that a shard has.
struct Blocks {
  int32_t ndim;
  int64_t part[ASTRA_MAX_RANK], full[ASTRA_MAX_RANK]; ///< extents
  uint64_t element, partBytes;

  Status init(const astra_mesh *m, const Row *row, const char *name, uint32_t bytes, int32_t rank, const int64_t *shape,
              astra_diag *diag) {
    if (rank < 0 || rank > ASTRA_MAX_RANK || (row && row->ndim != rank))
      return fail(diag, ASTRA_WRONG_RANK, "'%.64s' has %d axes, and the bundle cuts %d", name, rank,
                  row ? row->ndim : 0);
    ndim = rank, element = partBytes = bytes;
    for (int32_t i = 0; i < rank; i++) {
      int64_t parts = row ? m->mesh.count(row->over[i]) : 1;
      if (shape[i] < 0 || shape[i] % parts)
        return fail(diag, ASTRA_WRONG_SHAPE, "axis %d of '%.64s' has %lld elements, which %lld parts do not divide", i,
                    name, static_cast<long long>(shape[i]), static_cast<long long>(parts));
      full[i] = shape[i], part[i] = shape[i] / parts;
      if (__builtin_mul_overflow(partBytes, uint64_t(part[i]), &partBytes))
        return fail(diag, ASTRA_OVERFLOW, "'%.64s' has more than 2^64 bytes", name);
    }
    return ASTRA_OK;
  }

  /// Between the logical tensor and the block of a shard, row by row.
  void copy(const astra_mesh *m, const Row &row, int64_t shard, char *logical, char *block, bool take) const {
    if (!partBytes) return;
    uint64_t strides[ASTRA_MAX_RANK], offset = 0, stride = element;
    for (int32_t i = ndim - 1; i >= 0; --i) {
      strides[i] = stride;
      offset += uint64_t(m->mesh.indexOf(shard, row.over[i]) * part[i]) * stride;
      stride *= uint64_t(full[i]);
    }
    // Axes at the end that are whole make one run with the axis before them.
    int32_t outer = ndim;
    uint64_t run = element;
    while (outer > 0) {
      --outer;
      run *= uint64_t(part[outer]);
      if (part[outer] != full[outer]) break;
    }
    int64_t at[ASTRA_MAX_RANK] = {};
    for (uint64_t done = 0; done < partBytes; done += run) {
      char *there = logical + offset;
      for (int32_t i = 0; i < outer; i++) there += uint64_t(at[i]) * strides[i];
      if (take)
        memcpy(block + done, there, run);
      else
        memcpy(there, block + done, run);
      for (int32_t i = outer - 1; i >= 0 && ++at[i] == part[i]; --i) at[i] = 0;
    }
  }
};

uint64_t wholeBytes(const Blocks &b) {
  uint64_t bytes = b.element;
  for (int32_t i = 0; i < b.ndim; i++) bytes *= uint64_t(b.full[i]);
  return bytes;
}

Status tooSmall(const char *name, uint64_t bytes, uint64_t needed, astra_diag *diag) {
  return fail(diag, ASTRA_CAPACITY, "'%.64s' needs %llu bytes, and there are %llu", name,
              static_cast<unsigned long long>(needed), static_cast<unsigned long long>(bytes));
}

} // namespace

Status astra_mesh_init(astra_mesh **out, astra_ranks *ranks, astra_runtime *runtime, const astra_bundle *bundle,
                       astra_diag *diag) {
  if (!out || !ranks || !runtime || !bundle) return fail(diag, ASTRA_INVALID_ARGUMENT, "an argument is NULL");
  *out = nullptr;
  void *memory = malloc(sizeof(astra_mesh));
  if (!memory) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the mesh");
  auto *m = new (memory) astra_mesh{};
  m->ranks = ranks;
  if (Status s = attach(*m, runtime, bundle, diag)) return astra_mesh_free(&m), s;
  *out = m;
  return ASTRA_OK;
}

void astra_mesh_free(astra_mesh **mesh) {
  if (!mesh || !*mesh) return;
  for (Collective *c : (*mesh)->collectives) free(c->places), free(c);
  (*mesh)->~astra_mesh();
  free(*mesh);
  *mesh = nullptr;
}

int64_t astra_mesh_shards(const astra_mesh *mesh) { return mesh ? mesh->mesh.shards : 0; }
int64_t astra_mesh_local_shards(const astra_mesh *mesh) { return mesh ? mesh->local() : 0; }
const char *astra_mesh_axes(const astra_mesh *mesh) { return mesh ? mesh->axes : ""; }

Status astra_mesh_get_cut(const astra_mesh *mesh, int32_t kind, const char *entry, const char *name,
                          astra_mesh_cut *out) {
  if (!mesh || !name || !out || out->size < sizeof(astra_mesh_cut)) return ASTRA_INVALID_ARGUMENT;
  size_t size = out->size;
  memset(static_cast<void *>(out), 0, sizeof(*out));
  out->size = size;
  const Row *row = find(mesh, kind, entry, name);
  out->is_whole = !row;
  out->ndim = row ? row->ndim : 0;
  for (int32_t i = 0; i < out->ndim; i++) out->parts[i] = mesh->mesh.count(row->over[i]);
  return ASTRA_OK;
}

Status astra_mesh_take(const astra_mesh *mesh, int32_t kind, const char *entry, const char *name, uint32_t element,
                       int32_t ndim, const int64_t *shape, const void *logical, void *local, uint64_t local_bytes,
                       astra_diag *diag) {
  if (!mesh || !name || (ndim && !shape)) return fail(diag, ASTRA_INVALID_ARGUMENT, "an argument is NULL");
  const Row *row = find(mesh, kind, entry, name);
  Blocks blocks{};
  if (Status s = blocks.init(mesh, row, name, element, ndim, shape, diag)) return s;
  uint64_t needed = row ? uint64_t(mesh->local()) * blocks.partBytes : wholeBytes(blocks);
  if (local_bytes < needed) return tooSmall(name, local_bytes, needed, diag);
  if (!row) {
    if (uint64_t bytes = wholeBytes(blocks)) memcpy(local, logical, bytes);
    return ASTRA_OK;
  }
  int64_t first = mesh->local() * mesh->ranks->engine.rank;
  for (int64_t i = 0; i < mesh->local(); i++)
    blocks.copy(mesh, *row, first + i, static_cast<char *>(const_cast<void *>(logical)),
                static_cast<char *>(local) + uint64_t(i) * blocks.partBytes, true);
  return ASTRA_OK;
}

Status astra_mesh_join(astra_mesh *mesh, int32_t kind, const char *entry, const char *name, uint32_t element,
                       int32_t ndim, const int64_t *shape, const void *local, void *logical, uint64_t logical_bytes,
                       astra_diag *diag) {
  if (!mesh || !name || (ndim && !shape)) return fail(diag, ASTRA_INVALID_ARGUMENT, "an argument is NULL");
  const Row *row = find(mesh, kind, entry, name);
  Blocks blocks{};
  if (Status s = blocks.init(mesh, row, name, element, ndim, shape, diag)) return s;
  if (logical_bytes < wholeBytes(blocks)) return tooSmall(name, logical_bytes, wholeBytes(blocks), diag);
  if (!row) {
    if (uint64_t bytes = wholeBytes(blocks)) memcpy(logical, local, bytes);
    return ASTRA_OK;
  }
  uint64_t bytes = uint64_t(mesh->local()) * blocks.partBytes;
  List<char> all;
  if (!all.resize(bytes * uint64_t(mesh->ranks->engine.ranks)))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for '%.64s'", name);
  if (Status s = astra_ranks_gather(mesh->ranks, local, bytes, all.data(), diag)) return s;
  for (int64_t shard = 0; shard < mesh->mesh.shards; shard++)
    blocks.copy(mesh, *row, shard, static_cast<char *>(logical), all.data() + uint64_t(shard) * blocks.partBytes,
                false);
  return ASTRA_OK;
}
