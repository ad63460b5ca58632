//===- Comm.cpp: what moves between ranks ------------------------------------===//
// Takes:    a bundle of a mesh; for how many ranks, on what machine, of what sizes.
// Gives:    for each entry the collectives of a call; the bytes that the busiest rank sends, beside the least that a
//           ring needs; on a machine, the time that they take; the time of a call, where that of kernels is given.
// Keeps:    bytes are counted by the library that sends them (astra_collective_traffic), for 512 ranks from either end.
// Does not: know how long kernels take, or which of them run beside a transfer: a call's time is between that of what
//           kernels hide as much of as they can, and that of one behind the other.
#include "Comm.h"
#include "Describe.h"
#include "Options.h"
#include "astra/ranks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <map>
#include <set>
#include <utility>

using namespace astra;
using namespace astra::tool;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {

struct Machine {
  std::string name;
  int64_t perNode;
  double latency, bandwidth, outerLatency, outerBandwidth; // us, GB/s
};
const Machine kMachines[] = {
#define MACHINE(name, perNode, latency, bandwidth, outerLatency, outerBandwidth, from)                                 \
  {name, perNode, latency, bandwidth, outerLatency, outerBandwidth},
#include "Machines.def"
};

llvm::Error refused(const llvm::Twine &text) {
  return llvm::createStringError(std::errc::invalid_argument, text.str().c_str());
}

/// A row of the table, or "MICROSECONDS,GB/S" of a machine where all ranks are near each other.
llvm::Expected<Machine> machineNamed(const std::string &text) {
  for (const Machine &m : kMachines)
    if (m.name == text) return m;
  auto [us, gbps] = StringRef(text).split(',');
  Machine m{text, 1 << 20, 0, 0, 1, 1};
  if (us.getAsDouble(m.latency) || gbps.getAsDouble(m.bandwidth) || !(m.latency >= 0) || !(m.bandwidth > 0) ||
      !std::isfinite(m.latency + m.bandwidth))
    return refused("--machine: '" + llvm::Twine(text) + "' is neither " + machineNames() +
                   " nor MICROSECONDS,GB/S of a transfer, e.g. 3,10");
  return m;
}

/// Milliseconds that kernels of a call take on a rank, whatever its shards, and of each.
struct Kernels {
  double fixed, shard;
  double of(int64_t shards) const { return fixed + shard * double(shards); }
};
llvm::Expected<std::map<std::string, Kernels>> kernelsOf(const CommSettings &settings) {
  std::map<std::string, Kernels> out;
  for (auto &[entry, text] : settings.calls) {
    auto [fixed, shard] = StringRef(text).split('+');
    Kernels k;
    if (fixed.getAsDouble(k.fixed) || shard.getAsDouble(k.shard) || !(k.fixed >= 0) || !(k.shard >= 0) ||
        !std::isfinite(k.fixed + k.shard))
      return refused("--call " + llvm::Twine(entry) + ": '" + text +
                     "' is not FIXED+SHARD, milliseconds of a rank and of each of its shards, e.g. 0.5+12");
    out[entry] = k;
  }
  if (!out.empty() && settings.machine.empty())
    return refused("--call says what kernels take: say by --machine what transfers do");
  return out;
}

/// Collectives of one kind and size, and how often a call makes them.
struct Calls {
  std::string function; ///< its name
  uint64_t bytes;       ///< of a shard's operands, or of a block of them
  uint32_t element;
  uint32_t tensors;
  bool beside; ///< kernels
  auto operator<=>(const Calls &) const = default;
};
using Counts = std::map<Calls, uint64_t>;

class Reader {
public:
  Reader(const fmt::ManifestT &m, ArrayRef<int64_t> dims) : m(m), dims(dims) {}

  Counts of(const fmt::RoutineT &r) {
    counts.clear(), unknown = branches = false;
    add(r, 0, 1);
    return counts;
  }
  bool unknown = false;  ///< there is a loop whose turns data decide: one is counted
  bool branches = false; ///< there is a cond whose functions move something: the one that moves more is counted

private:
  /// What orders the functions of a cond: bytes of shards, then calls.
  static std::pair<uint64_t, uint64_t> weight(const Counts &counts) {
    uint64_t bytes = 0, calls = 0;
    for (auto &[c, times] : counts) bytes += c.bytes * times, calls += times;
    return {bytes, calls};
  }
  Counts only(const fmt::RoutineT &r, uint32_t program, uint64_t times) {
    Counts before = std::exchange(counts, {});
    add(r, program, times);
    return std::exchange(counts, std::move(before));
  }
  void add(const fmt::RoutineT &r, uint32_t program, uint64_t times) {
    if (program >= r.programs.size()) return;
    for (const fmt::InstrUnion &i : r.programs[program]->code) {
      if (const fmt::LoopT *loop = i.AsLoop()) {
        add(r, loop->body, times * uint64_t(std::max<int64_t>(valueOf(m, loop->count, dims), 0)));
      } else if (const fmt::WhileT *loop = i.AsWhile()) {
        for (uint32_t part : {loop->cond, loop->body})
          for (auto &[c, n] : only(r, part, times)) counts[c] += n, unknown = true;
      } else if (const fmt::CondT *cond = i.AsCond()) {
        Counts then = only(r, cond->then, times), otherwise = only(r, cond->otherwise, times);
        branches |= !then.empty() || !otherwise.empty();
        for (auto &[c, n] : weight(then) < weight(otherwise) ? otherwise : then) counts[c] += n;
      } else if (const fmt::ExternalT *call = i.AsExternal()) {
        add(*call, times);
      }
    }
  }
  void add(const fmt::ExternalT &call, uint64_t times) {
    const std::string &name = m.functions[call.function]->name;
    if (!StringRef(name).starts_with("astra.mesh.") || StringRef(name).starts_with("astra.mesh.index/") ||
        call.tensors.empty())
      return;
    bool blocks = StringRef(name).starts_with("astra.mesh.reduce_scatter/") ||
                  StringRef(name).starts_with("astra.mesh.all_to_all/");
    uint32_t element = astra_dtype_bits(int32_t(call.tensors[0]->dtype)) / 8;
    uint64_t all = 0;
    for (const auto &x : ArrayRef(call.tensors).take_front(call.inputs)) {
      uint64_t bytes = astra_dtype_bits(int32_t(x->dtype)) / 8;
      for (size_t i = blocks ? 2 : 1; i < x->shape.size(); i++)
        bytes *= uint64_t(std::max<int64_t>(valueOf(m, x->shape[i], dims), 0));
      all += bytes;
    }
    counts[{name, all, element, call.inputs, call.beside}] += times;
  }

  const fmt::ManifestT &m;
  ArrayRef<int64_t> dims;
  Counts counts;
};

/// What a call of an entry sends.
struct Sum {
  uint64_t sent = 0, ring = 0;
  double us = 0, besideUs = 0; ///< of all, of those beside kernels
};

/// Of "astra.mesh.OP/MESH/AXES/KIND": the sizes of a group and of all shards, and which groups they are of.
struct Groups {
  uint64_t size = 1, all = 1;
  struct Axis {
    uint64_t size;
    bool over; ///< a group runs along it
  };
  llvm::SmallVector<Axis, 4> axes; ///< the last one's neighbours are neighbours

  explicit Groups(StringRef name) {
    llvm::SmallVector<StringRef, 4> fields, given, over;
    name.split(fields, '/');
    fields[1].split(given, ','), fields[2].split(over, '+');
    for (StringRef axis : given) {
      Axis a{1, llvm::is_contained(over, axis.split('=').first)};
      axis.split('=').second.getAsInteger(10, a.size);
      all *= a.size;
      if (a.over) size *= a.size;
      axes.push_back(a);
    }
  }
  uint64_t groupOf(uint64_t shard) const {
    uint64_t group = 0, place = 1;
    for (const Axis &a : llvm::reverse(axes)) {
      if (!a.over) group += shard % a.size * place, place *= a.size;
      shard /= a.size;
    }
    return group;
  }
};

/// What a rank at least sends where it has one partial result: of R ranks of a group, a ring's 2 S (R - 1) / R for a
/// sum that all get, half of that for one that is scattered; each block once to every rank that reads it.
uint64_t ringBytes(const Calls &c, int64_t ranks) {
  StringRef name = c.function;
  Groups mesh(name);
  uint64_t group = mesh.size, local = mesh.all / uint64_t(ranks);
  std::set<uint64_t> ofRank, ranksOfGroup; // groups with shards on the first rank, ranks with shards of the first group
  for (uint64_t shard = 0; shard < mesh.all; shard++) {
    if (shard < local) ofRank.insert(mesh.groupOf(shard));
    if (mesh.groupOf(shard) == 0) ranksOfGroup.insert(shard / local);
  }
  uint64_t members = ranksOfGroup.size(), groups = ofRank.size();
  if (members < 2) return 0;
  if (name.starts_with("astra.mesh.all_reduce/")) return 2 * c.bytes * (members - 1) / members * groups;
  if (name.starts_with("astra.mesh.reduce_scatter/")) return c.bytes * group * (members - 1) / members * groups;
  if (name.starts_with("astra.mesh.all_gather/")) return c.bytes * local * (members - 1);
  if (name.starts_with("astra.mesh.all_to_all/")) return c.bytes * local * group * (members - 1) / members;
  return c.bytes * groups; // a shift: what crosses the border
}

llvm::Expected<Sum> sumOf(const Counts &counts, int64_t ranks, const Machine *machine) {
  Sum sum;
  for (auto &[c, times] : counts) {
    uint64_t most = 0;
    double longest = 0;
    constexpr int64_t end = 512; // of more ranks those in the middle send what others do
    for (int64_t rank = 0; rank < ranks; rank++) {
      if (rank == end) rank = std::max(rank, ranks - end);
      astra_traffic t = ASTRA_INIT(astra_traffic);
      astra_diag diag = ASTRA_INIT(astra_diag);
      int32_t perNode = machine ? int32_t(machine->perNode) : 1;
      if (astra_collective_traffic(c.function.c_str(), c.bytes, c.element, int32_t(ranks), int32_t(rank), perNode, &t,
                                   &diag))
        return refused(diag.text);
      most = std::max(most, t.sent);
      if (!machine || !t.sent) continue;
      double within = double(t.sent - t.sent_outside) / (machine->bandwidth * 1e3);
      double outside = double(t.sent_outside) / (machine->outerBandwidth * 1e3);
      double latency = t.sent_outside ? machine->outerLatency : machine->latency;
      longest = std::max(longest, t.rounds * latency + std::max(within, outside));
    }
    sum.sent += most * times, sum.ring += ringBytes(c, ranks) * times, sum.us += longest * double(times);
    if (c.beside) sum.besideUs += longest * double(times);
  }
  return sum;
}

std::string sizeText(uint64_t bytes) {
  std::string text;
  llvm::raw_string_ostream s(text);
  if (bytes < 10000)
    s << bytes << " B";
  else if (bytes < 10000000)
    s << llvm::format("%.1f KB", double(bytes) / 1e3);
  else if (bytes < 10000000000)
    s << llvm::format("%.1f MB", double(bytes) / 1e6);
  else
    s << llvm::format("%.1f GB", double(bytes) / 1e9);
  return text;
}

std::string callsOf(const Kernels &k) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3f ms, and %.3f ms for each shard of the rank", k.fixed, k.shard);
  return text;
}

llvm::Error setDims(const fmt::ManifestT &m, const CommSettings &settings, llvm::SmallVectorImpl<int64_t> &dims) {
  for (const auto &d : m.dims) dims.push_back(d->hi);
  for (auto &[name, value] : settings.dims) {
    size_t i = 0;
    while (i < m.dims.size() && m.dims[i]->name != name) ++i;
    if (i == m.dims.size()) return refused("--dim " + llvm::Twine(name) + ": the bundle has no such dim");
    if (!parseInteger(value, m.dims[i]->lo, m.dims[i]->hi, dims[i]))
      return refused("--dim " + llvm::Twine(name) + ": '" + value + "' is not in " + llvm::Twine(m.dims[i]->lo) + ".." +
                     llvm::Twine(m.dims[i]->hi));
  }
  return llvm::Error::success();
}

} // namespace

std::string tool::machineNames() {
  std::string names;
  for (const Machine &m : kMachines) names += (names.empty() ? "" : ", ") + m.name;
  return names;
}

llvm::Error tool::printComm(llvm::raw_ostream &out, const BundleFile &b, const CommSettings &settings) {
  const fmt::ManifestT &m = b.manifest;
  llvm::SmallVector<int64_t, 8> dims;
  if (llvm::Error e = setDims(m, settings, dims)) return e;
  std::optional<Machine> machine;
  if (!settings.machine.empty()) {
    llvm::Expected<Machine> found = machineNamed(settings.machine);
    if (!found) return found.takeError();
    machine = *found;
  }
  llvm::Expected<std::map<std::string, Kernels>> kernels = kernelsOf(settings);
  if (!kernels) return kernels.takeError();
  bool any = false;
  for (const auto &e : m.entries) {
    Reader reader(m, dims);
    Counts counts = reader.of(*e->routine);
    if (counts.empty()) {
      if (kernels->contains(e->name))
        out << "entry @" << e->name
            << ": nothing moves between ranks, so a call takes what its kernels take: " << callsOf(kernels->at(e->name))
            << "\n";
      continue;
    }
    any = true;
    out << "entry @" << e->name << ", " << (settings.dims.empty() ? "dims at their upper bounds" : "dims as given")
        << "\n";
    for (auto &[c, times] : counts)
      out << "  " << times << " x " << StringRef(c.function).drop_front(strlen("astra.mesh.")) << " of "
          << (c.tensors > 1 ? std::to_string(c.tensors) + " tensors, " : "") << sizeText(c.bytes) << " a shard"
          << (c.beside ? ", beside kernels" : "") << "\n";
    if (reader.unknown) out << "  (one turn of each loop that data end)\n";
    if (reader.branches) out << "  (of each cond the function that moves more bytes)\n";
    uint64_t all = Groups(counts.begin()->first.function).all;
    bool fits = false;
    for (uint64_t ranks = 1; ranks <= all; ranks++) {
      if (all % ranks || (settings.ranks ? int64_t(ranks) != settings.ranks : ranks == 1)) continue;
      fits = true;
      llvm::Expected<Sum> sum = sumOf(counts, int64_t(ranks), machine ? &*machine : nullptr);
      if (!sum) return sum.takeError();
      out << "  " << ranks << " ranks: the busiest sends " << sizeText(sum->sent) << " a call, a ring "
          << sizeText(sum->ring);
      if (sum->ring) out << llvm::format(" (%.2f of it)", double(sum->sent) / double(sum->ring));
      if (machine) out << "; " << machine->name << ": " << llvm::format("%.1f", sum->us) << " us";
      if (auto k = kernels->find(e->name); k != kernels->end()) {
        double own = k->second.of(int64_t(all / ranks)), moves = sum->us / 1e3, beside = sum->besideUs / 1e3;
        out << llvm::format("; a call: %.3f to %.3f ms", std::max(own, beside) + moves - beside, own + moves);
      }
      out << "\n";
    }
    if (!fits)
      return refused("--ranks: " + llvm::Twine(settings.ranks) + " does not divide the " + llvm::Twine(all) +
                     " shards");
  }
  for (auto &[entry, k] : *kernels)
    if (llvm::none_of(m.entries, [&](const auto &e) { return e->name == entry; }))
      return refused("--call " + llvm::Twine(entry) + ": the bundle has no such entry");
  if (!any && kernels->empty()) out << "nothing moves between ranks: the bundle calls no collective\n";
  return llvm::Error::success();
}
