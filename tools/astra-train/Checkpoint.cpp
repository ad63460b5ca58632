//===- Checkpoint.cpp: where a run stands -----------------------------------------===//
// Takes:    a run between two steps.
// Gives:    a .safetensors file of every state, or several that ranks write at once with an index of them, whose
//           metadata say where in the data and in the log the run stands and what it is a run of; a run that goes on
//           from one.
// Keeps:    a checkpoint replaces the one before when it is whole and on the disk. Its bytes do not depend on the
//           number of ranks: which file has which tensor follows from the mesh.
#include "Trainer.h"
#include <algorithm>
#include <charconv>

using namespace astra::tool;
using std::string;

namespace {

constexpr const char *kVersion = "1";
constexpr size_t kSum = 16; // digits of a checksum

int64_t numberOf(const TensorFiles &file, const string &key, const string &path) {
  int64_t v;
  auto at = file.metadata.find(key);
  if (at == file.metadata.end() || !parseInteger(at->second, 0, INT64_MAX, v))
    throw Refusal{Failure,
                  path + ": its metadata '" + key + "' is missing or no number: it is no checkpoint of astra-train"};
  return v;
}

double realOf(const TensorFiles &file, const string &key, const string &path) {
  double v;
  auto at = file.metadata.find(key);
  const char *end = at == file.metadata.end() ? nullptr : at->second.data() + at->second.size();
  if (!end || std::from_chars(at->second.data(), end, v).ptr != end)
    throw Refusal{Failure,
                  path + ": its metadata '" + key + "' is missing or no number: it is no checkpoint of astra-train"};
  return v;
}

string shortest(double v) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}

} // namespace

string astra::tool::checkpointPath(const TrainSettings &s) {
  if (!s.checkpoint.empty()) return s.checkpoint;
  string path = s.out;
  const string ending(isIndex(path) ? kIndexEnding : kSafetensorsEnding);
  if (path.ends_with(ending)) path.resize(path.size() - ending.size());
  return path + ".ckpt" + ending;
}

std::vector<string> Trainer::logColumns() const {
  std::vector<string> out{"step", "epoch", "loss", "rate"};
  for (size_t i : evalNumbers) out.push_back(string("eval_") + evalCall->info(i).name);
  return out;
}

/// What a run that goes on must have as it had.
std::vector<Trainer::Fact> Trainer::facts() const {
  auto other = [](const string &what) {
    return "the run that made it had " + what + ": give the same, or begin a new run";
  };
  string columns;
  if (!s.log.empty())
    for (const string &name : logColumns()) columns += (columns.empty() ? "" : ",") + name;
  return {{"version", kVersion, "another version of astra-train made it: begin a new run"},
          {"batch", std::to_string(batch), other("another --batch")},
          {"seed", std::to_string(seed), other("another --seed")},
          {"drop_last", s.dropLast ? "1" : "0", other("--drop-last otherwise")},
          {"data", data.text(), other("other --data")},
          {"data_checksum", data.sum(), other("other values in --data")},
          {"eval", evalData.text(), other("other --eval")},
          {"eval_checksum", evalData.sum(), other("other values in --eval")},
          {"log", columns, s.log.empty() ? other("a --log") : other("no such --log")}};
}

/// Gives the settings that were not given.
TensorFiles Trainer::openCheckpoint() {
  TensorFiles file;
  string error;
  if (!file.open(s.resume, error)) throw Refusal{Failure, error};
  int64_t theirBatch = numberOf(file, "batch", s.resume), theirSeed = numberOf(file, "seed", s.resume);
  batch = s.batch ? s.batch : theirBatch;
  seed = s.seed >= 0 ? s.seed : theirSeed;
  if (!batch) throw Refusal{Failure, s.resume + ": its metadata 'batch' is 0: it is no checkpoint of astra-train"};
  return file;
}

void Trainer::resume(const TensorFiles &file) {
  for (const Fact &f : facts()) {
    auto at = file.metadata.find(f.key);
    if (at == file.metadata.end() || at->second != f.value)
      throw Refusal{Failure, s.resume + ": " + f.refusal +
                                 (at == file.metadata.end() ? "" : " ('" + at->second + "', now '" + f.value + "')")};
  }
  epoch = numberOf(file, "epoch", s.resume), done = numberOf(file, "step", s.resume);
  if (epoch < 1 || epoch > int64_t(1) << 31 || done > perEpoch)
    throw Refusal{Failure, s.resume + ": its place in the data is none: it is no checkpoint of astra-train"};
  if (epoch > s.epochs + 1 || (epoch == s.epochs + 1 && done))
    throw Refusal{Usage, s.resume + " is of epoch " + std::to_string(epoch) +
                             ", and --epochs=" + std::to_string(s.epochs) + " ends before it"};
  setStates(file, s.resume, false);
  if (done && file.metadata.count("loss_rows")) { // the mean of an epoch that goes on is that of all of its steps
    lossSum = realOf(file, "loss_sum", s.resume);
    lossRows = numberOf(file, "loss_rows", s.resume);
  }
  if (s.log.empty() || !ranks.first()) return;
  auto sum = file.metadata.find("log_checksum");
  log.resume(s.log, uint64_t(numberOf(file, "log_bytes", s.resume)), sum == file.metadata.end() ? "" : sum->second);
}

/// The logical tensor of all ranks' parts.
void Trainer::getState(const State &state, std::vector<uint8_t> &out) {
  const char *name = state.name.c_str();
  std::vector<int64_t> shape = ranks.localShape(ASTRA_MESH_STATE, nullptr, name, state.shape);
  bool isCut = ranks.isCut(ASTRA_MESH_STATE, nullptr, name);
  std::vector<uint8_t> part;
  out.resize(safetensorsBytes({state.name, state.dtype, state.shape}));
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = out.data(), t.data_bytes = out.size();
  t.dtype = state.dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
  if (isCut) {
    part.resize(t.data_bytes = Ranks::bytes(state.dtype, shape));
    t.data = part.data();
  }
  check(astra_session_get_state(h.session, name, &t, check));
  if (isCut) ranks.join(check, ASTRA_MESH_STATE, nullptr, name, state.dtype, state.shape, part.data(), out.data());
}

/// Each rank writes the files of its shards; a tensor that is cut is put together for all of them.
void Trainer::write(const string &path, bool weightsOnly, const Metadata &metadata) {
  checkStates();
  std::vector<const State *> list;
  std::vector<TensorType> types;
  for (const State &state : states) {
    if (weightsOnly && !state.isWeight) continue;
    list.push_back(&state);
    types.push_back({state.name, state.dtype, state.shape});
  }
  const bool isMany = isIndex(path);
  const std::vector<std::vector<size_t>> plan = planFiles(types, isMany ? size_t(ranks.shards()) : 1);
  auto isOwn = [&](size_t f) { return f * size_t(ranks.size()) / plan.size() == size_t(ranks.rank()); };
  std::vector<SafetensorsWriter> writers(plan.size());
  string error;
  auto require = [&](bool good) {
    if (!good) throw Refusal{Failure, error};
  };
  size_t longest = 0;
  for (size_t f = 0; f < plan.size(); ++f) {
    longest = std::max(longest, plan[f].size());
    std::vector<TensorType> own;
    for (size_t i : plan[f]) own.push_back(types[i]);
    if (isOwn(f))
      require(writers[f].open(isMany ? partPath(path, "", f, plan.size()) : path, own, isMany ? Metadata() : metadata,
                              error));
  }
  std::vector<uint8_t> bytes;
  for (size_t k = 0; k < longest; ++k) // of each file in turn, so that all ranks write
    for (size_t f = 0; f < plan.size(); ++f) {
      if (k >= plan[f].size()) continue;
      const State &state = *list[plan[f][k]];
      if (isOwn(f) || ranks.isCut(ASTRA_MESH_STATE, nullptr, state.name.c_str())) getState(state, bytes);
      if (isOwn(f)) require(writers[f].add(bytes.data(), error));
    }
  string sums;
  for (size_t f = 0; f < plan.size(); ++f) {
    if (!isOwn(f)) continue;
    string sum = hexadecimal(writers[f].sum());
    if (isMany) writers[f].moveTo(partPath(path, sum, f, plan.size()));
    require(writers[f].keep(error));
    sums += sum;
  }
  if (!isMany) return;
  // All files are on the disk when their sums have come; they come in the order of the files.
  string all;
  for (const string &part : ranks.gather(check, sums)) all += part;
  std::vector<string> parts;
  for (size_t f = 0; f < plan.size(); ++f) parts.push_back(partPath(path, all.substr(f * kSum, kSum), f, plan.size()));
  if (ranks.first()) require(writeIndex(path, types, plan, parts, metadata, error));
  ranks.wait(check); // nobody writes the next one before what is left of others is gone
}

void Trainer::writeCheckpoint() {
  log.flush(true);
  Metadata m;
  for (const Fact &f : facts()) m[f.key] = f.value;
  m["epoch"] = std::to_string(epoch), m["step"] = std::to_string(done);
  m["log_bytes"] = std::to_string(log.bytes()), m["log_checksum"] = log.sum();
  m["loss_sum"] = shortest(lossSum), m["loss_rows"] = std::to_string(lossRows);
  write(checkpointPath(s), false, m);
  wroteCheckpoint = true;
}
