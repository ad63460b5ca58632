//===- Names.cpp: collectives by their names -------------------------------===//
// Takes:    the name of a function that a bundle calls.
// Gives:    the collective: what it does, on which mesh, over which of its axes.
// Keeps:    names are untrusted: every number is bounded.
#include "Ranks.h"

using namespace astra::ranks;

namespace {

constexpr char kPrefix[] = "astra.mesh.";

bool number(const char *text, size_t size, int64_t *out) {
  if (size < 1 || size > 6) return false;
  int64_t n = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    n = n * 10 + (text[i] - '0');
  }
  return *out = n, true;
}

struct {
  const char *name;
  Op op;
} constexpr kOps[] = {{"all_reduce", Op::AllReduce}, {"reduce_scatter", Op::ReduceScatter},
                      {"all_gather", Op::AllGather}, {"all_to_all", Op::AllToAll},
                      {"permute", Op::Permute},      {"index", Op::Index}};
struct {
  const char *name;
  Kind kind;
} constexpr kKinds[] = {{"sum", Kind::Sum}, {"prod", Kind::Prod}, {"max", Kind::Max}, {"min", Kind::Min}};

bool readOp(Piece p, Collective *out) {
  for (auto &row : kOps)
    if (p.is(row.name)) return out->op = row.op, true;
  return false;
}

bool readKind(Piece p, Collective *out) {
  if (p.size >= 4 && !memcmp(p.text + p.size - 4, ".one", 4)) out->one = true, p.size -= 4;
  if (p.is("one")) out->one = true, p.size = 0;
  if (out->one && (out->group != out->mesh.shards || (out->op != Op::AllReduce && out->op != Op::AllGather)))
    return false;
  switch (out->op) {
  case Op::AllReduce:
  case Op::ReduceScatter:
    for (auto &row : kKinds)
      if (p.is(row.name)) return out->kind = row.kind, true;
    return false;
  case Op::Permute: {
    if (p.size > 5 && !memcmp(p.text + p.size - 5, ".wrap", 5)) out->wrap = true, p.size -= 5;
    bool negative = p.size && p.text[0] == '-';
    if (!p.size || (!negative && p.text[0] != '+') || !number(p.text + 1, p.size - 1, &out->shift)) return false;
    if (negative) out->shift = -out->shift;
    return true;
  }
  default: return p.size == 0;
  }
}

} // namespace

Piece astra::ranks::next(Piece &rest, const char *stops) {
  size_t n = 0;
  while (n < rest.size && !strchr(stops, rest.text[n])) ++n;
  Piece taken{rest.text, n};
  n += n < rest.size;
  rest = {rest.text + n, rest.size - n};
  return taken;
}

bool astra::ranks::readMesh(Piece text, Mesh *mesh, Piece *names) {
  while (text.size) {
    Piece axis = next(text, ","), name = next(axis, "=");
    int64_t size;
    if (mesh->axes == kMostAxes || !name.size || !number(axis.text, axis.size, &size) || !size) return false;
    names[mesh->axes] = name;
    mesh->size[mesh->axes++] = size;
    if ((mesh->shards *= size) > kMostShards) return false;
  }
  return mesh->axes > 0;
}

bool astra::ranks::readAxes(Piece text, const Mesh &mesh, const Piece *names, bool *over) {
  if (!text.size) return false;
  for (int32_t axis = 0; text.size; axis++) {
    Piece one = next(text, "+");
    while (axis < mesh.axes && !(names[axis].size == one.size && !memcmp(names[axis].text, one.text, one.size))) ++axis;
    if (axis == mesh.axes) return false;
    over[axis] = true;
  }
  return true;
}

int64_t Mesh::indexOf(int64_t shard, const bool *over) const {
  int64_t index = 0, scale = 1;
  for (int32_t a = axes - 1; a >= 0; --a) {
    if (over[a]) index += shard % size[a] * scale, scale *= size[a];
    shard /= size[a];
  }
  return index;
}

int64_t Mesh::count(const bool *over) const {
  int64_t n = 1;
  for (int32_t a = 0; a < axes; a++) n *= over[a] ? size[a] : 1;
  return n;
}

bool astra::ranks::isCollective(const char *name) { return !strncmp(name, kPrefix, sizeof(kPrefix) - 1); }

Status astra::ranks::readName(Collective *out, const char *name, astra_diag *diag) {
  memset(static_cast<void *>(out), 0, sizeof(*out));
  out->mesh.shards = 1;
  bool known = false;
  Piece names[kMostAxes], rest{name, strlen(name)};
  if (rest.size < sizeof(out->name)) {
    rest = {rest.text + sizeof(kPrefix) - 1, rest.size - (sizeof(kPrefix) - 1)};
    Piece op = next(rest, "/"), mesh = next(rest, "/"), over = next(rest, "/");
    known = readOp(op, out) && readMesh(mesh, &out->mesh, names) && readAxes(over, out->mesh, names, out->over);
    out->group = known ? out->mesh.count(out->over) : 0;
    known = known && readKind(rest, out);
  }
  if (!known)
    return fail(diag, ASTRA_UNKNOWN_NAME, "the bundle calls the collective '%.200s', which this library does not know",
                name);
  strcpy(out->name, name);
  return ASTRA_OK;
}

int64_t Collective::member(int64_t shard, int64_t place) const {
  int64_t found = 0, stride = 1;
  for (int32_t a = mesh.axes - 1; a >= 0; --a) {
    int64_t at = shard % mesh.size[a];
    if (over[a]) at = place % mesh.size[a], place /= mesh.size[a];
    found += at * stride;
    stride *= mesh.size[a], shard /= mesh.size[a];
  }
  return found;
}
