//===- Prepare.cpp: what is judged before the first step -------------------------===//
// Takes:    a bundle, data, weights, as the user gave them.
// Gives:    a session and calls that fit together, or a Refusal.
// Keeps:    no file is written here but the locks of those that will be.
#include "Checksum.h"
#include "OutputFile.h"
#include "Trainer.h"
#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace astra::tool;
using std::string;

static const char *nameOf(const astra_entry *e) {
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  return astra_entry_get_info(e, &info) == ASTRA_OK ? info.name : "";
}

/// A line on stderr.
void Trainer::say(const string &text) {
  if (!ranks.first()) return;
  progress.clear();
  std::fprintf(stderr, "astra-train: %s\n", text.c_str());
}

/// Null if there is none.
const astra_entry *Trainer::entry(const char *name) {
  const astra_entry *e = nullptr;
  return astra_bundle_find_entry(h.bundle, name, &e, nullptr) == ASTRA_OK ? e : nullptr;
}

/// Before anything that a run beside this one may be writing is read. One rank writes for all.
void Trainer::lock() {
  string error;
  if (!ranks.first()) return;
  for (const string &path : {s.out, s.log, s.every ? checkpointPath(s) : string()})
    if (!path.empty() && !locks.take(path, error)) throw Refusal{Failure, error};
}

void Trainer::open() {
  check(astra_runtime_init(&h.runtime, nullptr, check));
  openDevice(s.where, machine, h, check);
  if (!s.where.onHost())
    check(astra_device_init(&h.host, h.runtime, "cpu", nullptr, check)); // batches and results lie there
  check(astra_pool_init(&h.pool, h.host ? h.host : h.device, nullptr, check));
  check.file = s.bundle;
  astra_bundle_options bundle = ASTRA_INIT(astra_bundle_options);
  bundle.flags = ASTRA_VERIFY_ALL; // a run is long, and a damaged weight would go unseen
  check(astra_bundle_init_file(&h.bundle, h.runtime, s.bundle.c_str(), &bundle, check));
  trainStep = entry("train_step");
  if (!trainStep)
    throw Refusal{Failure, s.bundle + ": has no entry train_step: compile the model with --train and a --loss"};
  eval = entry("eval");
  if (!eval && !s.eval.empty())
    throw Refusal{Failure, s.bundle + ": has no entry eval, which --eval needs: compile the model with --train"};
  ranks.open(h, s.engine, check);
  check(astra_loaded_init(&h.loaded, h.bundle, &h.device, 1, check));
  std::vector<astra_dim_value> dims = ranks.dims({});
  astra_session_options session = ASTRA_INIT(astra_session_options);
  session.dims = dims.data(), session.num_dims = uint32_t(dims.size());
  check(astra_session_init(&h.session, h.loaded, &session, check));
  check(astra_stream_init(&h.stream, h.device, check));
  ranks.begin(h, check);
  check.file = "";
  listStates();
}

void Trainer::listStates() {
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(h.bundle, &info));
  const astra_entry *main = entry("main");
  for (uint32_t i = 0; i < info.num_states; ++i) {
    astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
    check(astra_bundle_get_state(h.bundle, i, &t));
    t = ranks.logical(ASTRA_MESH_STATE, nullptr, t);
    if (!std::equal(t.lower, t.lower + t.ndim, t.upper))
      throw Refusal{Unsupported, "the shape of state '" + string(t.name) + "' is not constant, which is not supported"};
    State &state = states.emplace_back();
    state.name = t.name, state.dtype = t.dtype, state.shape.assign(t.lower, t.lower + t.ndim);
    state.isWeight = main && astra_entry_uses_state(main, i) == 1;
  }
}

void Trainer::checkBatch(const Data &d, const string &option, const astra_entry *e, bool mayDrop) {
  int64_t rest = d.rows() % batch;
  if (mayDrop && s.dropLast) {
    if (d.rows() < batch)
      throw Refusal{Usage, option + " has " + std::to_string(d.rows()) + " rows, less than a batch of " +
                               std::to_string(batch) + ": --drop-last leaves none"};
    rest = 0;
  }
  for (uint32_t i = 0; i < d.columns().size(); ++i) {
    astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
    check(astra_entry_get_input(e, i, &t));
    t = ranks.logical(ASTRA_MESH_INPUT, nameOf(e), t);
    string takes = "the bundle takes " + std::to_string(t.lower[0]) + " to " + std::to_string(t.upper[0]) +
                   " rows of input " + t.name;
    if (d.rows() >= batch && (batch < t.lower[0] || batch > t.upper[0]))
      throw Refusal{Usage, "--batch=" + std::to_string(batch) + ": " + takes};
    if (rest && (rest < t.lower[0] || rest > t.upper[0]))
      throw Refusal{Usage, option + " has " + std::to_string(d.rows()) + " rows, so the last batch has " +
                               std::to_string(rest) + ", and " + takes +
                               (mayDrop ? ": give --drop-last or another --batch" : ": give another number of rows")};
  }
  if (d.rows() >= batch) checkRows(d, e, batch, "--batch=" + std::to_string(batch) + ": ");
  if (rest)
    checkRows(d, e, rest,
              option + " has " + std::to_string(d.rows()) + " rows, so the last batch has " + std::to_string(rest) +
                  (mayDrop ? " (give --drop-last or another --batch): " : ": "));
}

/// What else an entry says of a batch's shapes than their bounds.
void Trainer::checkRows(const Data &d, const astra_entry *e, int64_t rows, const string &words) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<astra_tensor> inputs;
  for (const Column &c : d.columns()) {
    shapes.push_back(c.row);
    shapes.back().insert(shapes.back().begin(), rows);
    try {
      shapes.back() = ranks.localShape(ASTRA_MESH_INPUT, nameOf(e), c.name.c_str(), shapes.back());
    } catch (const Refusal &r) {
      throw Refusal{Usage, words + r.text};
    }
    inputs.push_back(ASTRA_INIT(astra_tensor));
    inputs.back().dtype = c.dtype, inputs.back().ndim = int32_t(shapes.back().size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].shape = shapes[i].data();
  int64_t shape[ASTRA_MAX_RANK];
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (astra_entry_output_bound(e, h.session, inputs.data(), uint32_t(inputs.size()), 0, shape, nullptr, nullptr, &diag))
    throw Refusal{Usage, words + diag.text};
}

/// Ranks that were given something else would calculate what nobody asked for, or wait for each other.
void Trainer::requireSame() {
  if (ranks.size() < 2) return;
  auto of = [](const string &text) { return checksum(text.data(), text.size()); };
  auto ofNumber = [&](int64_t v) { return of(std::to_string(v)); };
  auto ofFiles = [&](const string &path) { return of(isIndex(path) ? path : ""); }; // which all ranks write
  ranks.requireSame(check, {{"--batch", ofNumber(batch)},
                            {"--epochs", ofNumber(s.epochs)},
                            {"--seed", ofNumber(s.resume.empty() ? std::max<int64_t>(s.seed, 0) : seed)},
                            {"--drop-last", ofNumber(s.dropLast)},
                            {"--init", ofNumber(s.init)},
                            {"--weights", ofNumber(s.weights.empty())},
                            {"--resume (or checkpoint to --continue from)", ofNumber(s.resume.empty())},
                            {"--data (names or types)", of(data.text())},
                            {"--data (values)", of(data.sum())},
                            {"--eval (names or types)", of(evalData.text())},
                            {"--eval (values)", of(evalData.sum())},
                            {"--find-nan", ofNumber(s.findNaN)},
                            {"--checkpoint-every", ofNumber(s.every)},
                            {"--checkpoint", ofFiles(s.every ? checkpointPath(s) : "")},
                            {"--out", ofFiles(s.out)}});
}

void Trainer::load() {
  if (!batch) batch = s.batch;
  if (!batch) throw Refusal{Usage, "how many rows at once? give --batch=N"};
  data.load(s.data, "--data", trainStep, ranks);
  if (!s.eval.empty()) evalData.load(s.eval, "--eval", eval, ranks);
  requireSame();
  checkBatch(data, "--data", trainStep, true);
  checkTargets(data);
  checkStatistics();
  if (!s.eval.empty()) {
    checkBatch(evalData, "--eval", eval, false);
    checkTargets(evalData);
  }
  for (const Data *d : {&data, &evalData})
    for (const string &text : d->notes()) say("note: " + text);
  perEpoch = data.rows() / batch + (data.rows() % batch && !s.dropLast);
  TensorFiles weights;
  string error;
  if (!s.weights.empty()) {
    if (!weights.open(s.weights, error)) throw Refusal{Failure, error};
    setStates(weights, s.weights, true);
  }
  setKey();
  if (s.init) drawWeights();
  // What cannot be written at the end is found now.
  if (!ranks.first()) return;
  for (const string &path : {s.out, s.every ? checkpointPath(s) : s.out}) {
    OutputFile file;
    if (!file.open(path, error)) throw Refusal{Failure, error};
  }
}

/// The bundle's entry `batch_norm` says of how many values the statistics of a channel are, of so many rows. Those of
/// one say nothing of it: what is normalized is 0, and no gradient passes.
void Trainer::checkStatistics() {
  const astra_entry *e = entry("batch_norm");
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  if (!e) return;
  check(astra_entry_get_info(e, &info));
  std::vector<const Column *> columns;
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
    check(astra_entry_get_input(e, i, &t));
    columns.push_back(data.find(t.name));
    if (!columns.back()) return; // an entry of this name for something else
  }
  BatchCall call(h, ranks, e, columns, std::min(batch, data.rows()));
  size_t values = call.find("values");
  if (values == call.numOutputs() || call.bytes(values) != sizeof(int64_t)) return;
  auto judge = [&](int64_t rows, const string &what) {
    call(rows);
    int64_t count;
    std::memcpy(&count, call.data(values), sizeof count);
    if (count < 2)
      say("warning: " + what +
          ": batch norm takes the statistics of a channel from one value there, so it gives its "
          "bias alone and what feeds it learns nothing: give " +
          (data.rows() < batch                      ? "more rows"
           : s.dropLast || data.rows() % batch == 0 ? "a larger --batch"
                                                    : "--drop-last or another --batch"));
  };
  int64_t rest = s.dropLast ? 0 : data.rows() % batch;
  if (data.rows() >= batch) judge(batch, "--batch=" + std::to_string(batch));
  if (rest)
    judge(rest,
          "the last batch of --data has " + std::to_string(rest) + " of " + std::to_string(data.rows()) + " rows");
}

/// The bundle's entry `check` says which targets the loss does not take.
void Trainer::checkTargets(const Data &d) {
  const astra_entry *e = entry("check");
  const Column *target = d.find("target");
  if (!e || !target) return;
  BatchCall call(h, ranks, e, {target}, std::min(batch, d.rows()));
  size_t wrong = call.find("wrong"), classes = call.find("classes");
  if (wrong == call.numOutputs() || classes == call.numOutputs()) return; // an entry of this name for something else
  for (int64_t first = 0; first < d.rows(); first += batch) {
    int64_t rows = std::min(batch, d.rows() - first);
    if (s.dropLast && rows < batch) return;
    std::memcpy(call.input(0), target->bytes.data() + uint64_t(first) * target->rowBytes,
                uint64_t(rows) * target->rowBytes);
    call(rows);
    const uint8_t *bad = std::find(call.data(wrong), call.data(wrong) + call.bytes(wrong), 1);
    uint64_t at = uint64_t(bad - call.data(wrong));
    if (at == call.bytes(wrong)) continue;
    int64_t value, count;
    uint64_t perRow = call.bytes(wrong) / uint64_t(rows);
    std::memcpy(&value, call.input(0) + at * sizeof value, sizeof value);
    std::memcpy(&count, call.data(classes), sizeof count);
    throw Refusal{Failure, target->place + ": row " + std::to_string(uint64_t(first) + at / perRow) +
                               " (from 0) is of class " + std::to_string(value) + "; the loss takes 0 to " +
                               std::to_string(count - 1)};
  }
}

/// Every weight, or every state, and nothing else.
void Trainer::setStates(const TensorFiles &from, const string &path, bool weightsOnly) {
  const char *what = weightsOnly ? "weight" : "state";
  size_t used = 0;
  for (const State &state : states) {
    if (weightsOnly && !state.isWeight) continue;
    const TensorType *a = from.find(state.name);
    if (!a) throw Refusal{Failure, path + ": has no '" + state.name + "', which is a " + what + " of " + s.bundle};
    ++used;
    if (a->dtype != state.dtype || a->shape != state.shape)
      throw Refusal{Failure, path + ": '" + state.name + "' is " + typeText(a->dtype, a->shape) + ", and in " +
                                 s.bundle + " it is " + typeText(state.dtype, state.shape)};
  }
  if (used < from.items().size())
    for (const TensorType &a : from.items())
      if (std::none_of(states.begin(), states.end(),
                       [&](const State &x) { return x.name == a.name && (x.isWeight || !weightsOnly); }))
        throw Refusal{Failure, path + ": has '" + a.name + "', which is no " + what + " of " + s.bundle};
  string error;
  for (size_t f = size_t(ranks.rank()); f < from.files().size(); f += size_t(ranks.size()))
    if (!from.verify(f, error)) throw Refusal{Failure, error};
  std::vector<uint8_t> bytes;
  uint64_t sum = checksum("", 0);
  for (auto &[key, value] : from.metadata) sum = checksum(value.data(), value.size(), sum);
  for (const State &state : states) {
    if (weightsOnly && !state.isWeight) continue;
    if (!from.read(*from.find(state.name), bytes, error)) throw Refusal{Failure, error};
    if (ranks.size() > 1) sum = checksum(bytes.data(), bytes.size(), sum);
    setState(state, bytes);
  }
  // The others have found their files good then.
  ranks.requireSame(check, {{weightsOnly ? "--weights (values)" : "checkpoint (values)", sum}});
}

/// `value` is the logical tensor.
void Trainer::setState(const State &state, const std::vector<uint8_t> &value) {
  const char *name = state.name.c_str();
  std::vector<int64_t> shape = ranks.localShape(ASTRA_MESH_STATE, nullptr, name, state.shape);
  std::vector<uint8_t> part;
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = const_cast<uint8_t *>(value.data()), t.data_bytes = value.size();
  t.dtype = state.dtype, t.ndim = int32_t(shape.size()), t.shape = shape.data();
  if (ranks.isCut(ASTRA_MESH_STATE, nullptr, name)) {
    part.resize(t.data_bytes = Ranks::bytes(state.dtype, shape));
    t.data = part.data();
    ranks.take(check, ASTRA_MESH_STATE, nullptr, name, state.dtype, state.shape, value.data(), part.data());
  }
  check(astra_session_set_state(h.session, name, &t, check));
}

/// What dropout draws comes from the seed too.
void Trainer::setKey() {
  if (s.resume.empty()) seed = std::max<int64_t>(s.seed, 0);
  for (const State &state : states) {
    if (state.name != "random.key" || state.dtype != ASTRA_U32 || !state.shape.empty()) continue;
    uint32_t key = uint32_t(seed);
    astra_tensor t = ASTRA_INIT(astra_tensor);
    t.data = &key, t.data_bytes = sizeof key, t.dtype = ASTRA_U32;
    check(astra_session_set_state(h.session, "random.key", &t, check));
  }
}

/// The bundle's entry `init` replaces weights by what it draws from the seed.
void Trainer::drawWeights() {
  const astra_entry *init = entry("init");
  if (!init)
    throw Refusal{Failure, s.bundle + ": has no entry init, which --init needs: compile the model with --train, "
                                      "which makes one"};
  uint32_t key = uint32_t(seed);
  astra_tensor in = ASTRA_INIT(astra_tensor);
  in.data = &key, in.data_bytes = sizeof key, in.dtype = ASTRA_U32;
  astra_call call = ASTRA_INIT(astra_call);
  call.entry = init, call.inputs = &in, call.num_inputs = 1;
  astra_promise *promise = nullptr;
  check(astra_session_submit(h.session, h.stream, &call, &promise, check));
  astra_status status = astra_promise_wait(promise, check);
  astra_promise_free(&promise);
  check(status);
}

void Trainer::makeCalls() {
  auto call = [&](const astra_entry *e, const Data &d) {
    std::vector<const Column *> columns;
    for (const Column &c : d.columns()) columns.push_back(&c);
    return std::make_unique<BatchCall>(h, ranks, e, columns, std::min(batch, d.rows()));
  };
  stepCall = call(trainStep, data);
  loss = stepCall->find("loss"), rate = stepCall->find("rate");
  bool good = loss < stepCall->numOutputs() && rate < stepCall->numOutputs();
  if (!good || !stepCall->isNumber(loss) || !stepCall->isNumber(rate))
    throw Refusal{Failure,
                  s.bundle + ": train_step does not give the numbers loss and rate: compile the model with --train"};
  bool anyTap = false;
  for (size_t i = 0; i < stepCall->numOutputs(); ++i) anyTap |= stepCall->info(i).is_tap;
  if (s.findNaN && !anyTap)
    throw Refusal{Failure,
                  s.bundle + ": train_step keeps no inner values to look at, which --find-nan needs: compile the model "
                             "with --taps='.*' too, which changes no bit"};
  if (s.eval.empty()) return;
  evalCall = call(eval, evalData);
  for (size_t i = 0; i < evalCall->numOutputs(); ++i)
    if (evalCall->isNumber(i) && !evalCall->info(i).is_tap) evalNumbers.push_back(i);
}
