//===- Trainer.cpp: a loop over data --------------------------------------------===//
// Takes:    settings.
// Gives:    the steps of a run in their order.
// Keeps:    nothing is allocated between two steps of as many rows.
// Does not: judge what the user gave (Prepare.cpp), or save it (Checkpoint.cpp).
#include "Trainer.h"
#include "Shuffle.h"
#include <cmath>
#include <cstdio>

using namespace astra::tool;
using std::string;

static constexpr const char *kAdvice = "compile with --taps='.*' and give --find-nan";

void Trainer::run() {
  open();
  lock();
  TensorFiles checkpoint;
  if (!s.resume.empty()) checkpoint = openCheckpoint();
  load();
  makeCalls();
  if (!s.resume.empty()) {
    resume(checkpoint);
  } else if (!s.log.empty() && ranks.first()) {
    log.begin(s.log);
    for (const string &name : logColumns()) log.add(name);
    log.endRow();
  }
  judgeStates();
  order.resize(size_t(data.rows()));
  began = std::chrono::steady_clock::now();
  for (; epoch <= s.epochs; ++epoch, done = 0) {
    trainEpoch();
    evaluate();
    lossSum = 0, lossRows = 0;
  }
  log.flush();
  if (s.every) writeCheckpoint(); // from which a run of more epochs goes on
  write(s.out, true, {});
  ranks.wait(check);
  progress.clear();
}

void Trainer::trainEpoch() {
  shuffle(uint32_t(seed), uint32_t(epoch), order);
  while (done < perEpoch) {
    int64_t first = done * batch;
    step(first, std::min(batch, data.rows() - first));
    if (s.every && number() % s.every == 0) writeCheckpoint();
  }
}

void Trainer::step(int64_t first, int64_t rows) {
  for (size_t i = 0; i < data.columns().size(); ++i)
    data.gather(data.columns()[i], order.data() + first, rows, stepCall->input(i));
  (*stepCall)(rows);
  ++done;
  rowsDone += rows;
  lossSum += stepCall->number(loss) * double(rows), lossRows += rows;
  if (log.isOpen()) {
    log.add(number());
    log.add(epoch);
    add(*stepCall, loss);
    add(*stepCall, rate);
    for (size_t i = 0; i < evalNumbers.size(); ++i) log.skip();
    log.endRow();
  }
  checkNumbers();
  show("", false);
}

/// A cell of the log: as short as the type allows.
void Trainer::add(const BatchCall &call, size_t output) {
  double v = call.number(output);
  call.info(output).dtype == ASTRA_F32 ? log.add(float(v)) : log.add(v);
}

/// Means over all rows: of the losses of the epoch's steps, and of what eval says of batches.
void Trainer::evaluate() {
  string line = "epoch " + std::to_string(epoch) + "/" + std::to_string(s.epochs);
  char text[64];
  auto say = [&](const char *name, double v) {
    std::snprintf(text, sizeof text, "%.6g", v);
    line += string(", ") + name + " " + text;
  };
  if (lossRows) say("loss", lossSum / double(lossRows)); // no rows: a checkpoint of an epoch's end, without its sum
  if (evalCall) {
    show("evaluating", true);
    sums.assign(evalNumbers.size(), 0);
    for (int64_t first = 0; first < evalData.rows(); first += batch) {
      int64_t rows = std::min(batch, evalData.rows() - first);
      for (size_t i = 0; i < evalData.columns().size(); ++i) {
        const Column &c = evalData.columns()[i];
        std::copy_n(c.bytes.data() + uint64_t(first) * c.rowBytes, uint64_t(rows) * c.rowBytes, evalCall->input(i));
      }
      (*evalCall)(rows);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += evalCall->number(evalNumbers[i]) * double(rows);
    }
    if (log.isOpen()) {
      log.add(number());
      log.add(epoch);
      log.skip(), log.skip();
      for (double sum : sums) log.add(sum / double(evalData.rows()));
      log.endRow();
    }
    for (size_t i = 0; i < sums.size(); ++i)
      say((string("eval_") + evalCall->info(evalNumbers[i]).name).c_str(), sums[i] / double(evalData.rows()));
  }
  log.flush();
  if (s.quiet || !ranks.first()) return;
  progress.clear();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// The first tapped value that has a NaN, or an infinite element; "" if none has.
string Trainer::firstOf(bool infinite) const {
  for (size_t i = 0; i < stepCall->numOutputs(); ++i) {
    const astra_tensor_info &t = stepCall->info(i);
    if (t.is_tap && firstNaN(stepCall->data(i), stepCall->bytes(i), t.dtype, infinite) < stepCall->bytes(i))
      return string("; the first value ") + (infinite ? "that is not finite" : "with a NaN") + " is '" + t.name + "'";
  }
  return "";
}

/// "has a NaN", "has an infinite element", or "".
string Trainer::lookAt(const State &state) {
  const void *data;
  uint64_t bytes;
  check(astra_session_lease_state(h.session, state.name.c_str(), &data, &bytes, check));
  auto has = [&](bool infinite) {
    return firstNaN(static_cast<const uint8_t *>(data), bytes, state.dtype, infinite) < bytes;
  };
  string found;
  if (has(true)) found = has(false) ? "has a NaN" : "has an infinite element";
  check(astra_session_return_state(h.session, state.name.c_str(), check));
  return found;
}

/// What a run begins with.
void Trainer::judgeStates() {
  for (State &state : states) {
    string found = lookAt(state);
    if (found == "has a NaN")
      throw Refusal{Failure,
                    "the state '" + state.name + "' has a NaN before the first step: nothing is learned from one"};
    state.mayBeInfinite = !found.empty();
  }
}

/// A loss that is no number, or with --find-nan a state, ends the run.
void Trainer::checkNumbers() {
  double value = stepCall->number(loss);
  if (std::isfinite(value)) {
    if (s.findNaN) checkStates();
    return;
  }
  string text = std::isnan(value) ? "the loss is nan" : "the loss is infinite";
  if (s.findNaN)
    text += firstOf(false) + firstOf(true);
  else
    text += string("; to learn which value is the first, ") + kAdvice;
  stop(text);
}

/// What a step has made of a state may be no number though the loss is one. Nothing of that is written.
void Trainer::checkStates() {
  for (const State &state : states) {
    string found = lookAt(state);
    if (found.empty() || (state.mayBeInfinite && found != "has a NaN")) continue;
    string text = "the loss is a number, and the state '" + state.name + "' " + found +
                  " after the step: its gradient or its update does";
    stop(s.findNaN ? text : text + "; to learn which step is the first, " + kAdvice);
  }
}

void Trainer::stop(string text) {
  log.flush();
  if (wroteCheckpoint || !s.resume.empty())
    text += "; " + (wroteCheckpoint ? checkpointPath(s) : s.resume) + " is of a step before";
  int64_t last = number();
  throw Refusal{Failure, "step " + std::to_string(last) + " (epoch " +
                             std::to_string((std::max<int64_t>(last, 1) - 1) / perEpoch + 1) + "): " + text};
}

/// At most ten times a second, and not at all where nobody looks.
void Trainer::show(std::string_view what, bool now) {
  if (!progress.isShown() || !ranks.first()) return;
  auto time = std::chrono::steady_clock::now();
  if (!now && time - shown < std::chrono::milliseconds(100)) return;
  shown = time;
  double seconds = std::chrono::duration<double>(time - began).count();
  int64_t all = s.epochs * perEpoch, at = number();
  constexpr int width = 20;
  int full = int(at * width / all);
  char text[200];
  std::snprintf(text, sizeof text, "[%.*s%.*s] epoch %lld/%lld step %lld/%lld loss %.5g rate %.3g  %.0f rows/s %.*s",
                full, "####################", width - full, "....................", static_cast<long long>(epoch),
                static_cast<long long>(s.epochs), static_cast<long long>(done), static_cast<long long>(perEpoch),
                stepCall->number(loss), stepCall->number(rate), double(rowsDone) / std::max(seconds, 1e-9),
                int(what.size()), what.data());
  progress(text);
}
