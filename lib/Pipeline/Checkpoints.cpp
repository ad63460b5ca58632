//===- Checkpoints.cpp: how much of a training step is computed again -------===//
// Takes:    a module, and the most bytes that a step of its training may keep.
// Gives:    the number of segments that the model is cut into (nn::TrainingOptions).
// Keeps:    bits: what is computed again is what it was.
#include "Run.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace llvm;

/// The bytes that a training step keeps its values in, at the bounds of its dims: states, inputs and outputs aside.
static Expected<int64_t> stepMemory(const PipelineOptions &o, Module m, unsigned segments) {
  nn::TrainingOptions training = *o.training;
  training.segments = segments;
  if (Error e = nn::addTraining(m, training)) return std::move(e);
  erase_if(m.entries, [](const Entry &e) { return e.name != "train_step"; });
  if (Error e = runStandardPasses(m, o, nullptr)) return std::move(e);
  Expected<Schedule> s = schedule(m, {o.fold, o.gpu || !o.gpus.empty(), o.checks, o.storesAlongSum()});
  if (!s) return s.takeError();
  int64_t bytes = 0;
  for (UOpRef slot : s->entries[0].routine.slots) bytes += int64_t(alignTo(uint64_t(slot->hi), 64));
  return bytes;
}

Expected<unsigned> astra::segmentsWithin(Run &run, const Module &m) {
  constexpr unsigned counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  auto size = [](int64_t bytes) { return std::to_string((bytes + 1023) / 1024) + "K"; };
  int64_t least = INT64_MAX, plain = 0;
  for (unsigned n : counts) {
    run.begin("checkpoints, " + Twine(n) + " segments");
    Expected<int64_t> bytes = stepMemory(run.o, m, n);
    if (!bytes) return bytes.takeError();
    if (Error e = run.end("checkpoints, " + std::to_string(n) + " segments, " + size(*bytes))) return std::move(e);
    if (n == 1) plain = *bytes;
    least = std::min(least, *bytes);
    if (*bytes > run.o.checkpointMemory) continue;
    std::string kept = "--checkpoint-memory: train_step keeps its values in " + size(*bytes);
    if (n == 1)
      run.note(kept + ", nothing is computed again");
    else
      run.note(kept + " instead of " + size(plain) + ": " + Twine(n - 1) + " of " + Twine(n) +
               " segments of the model are computed again");
    return n;
  }
  return createStringError(
      std::errc::invalid_argument,
      "--checkpoint-memory: train_step cannot keep its values in %s; %s is the least that can be met, %s without "
      "recomputing anything (at the upper bounds of the dims: a smaller --dim needs less)",
      size(run.o.checkpointMemory).c_str(), size(least).c_str(), size(plain).c_str());
}
