//===- Trainer.h: a loop over data ----------------------------------------------===//
// Takes:    a bundle that astra-compile --train has made, and what the command line says.
// Gives:    weights, a log, checkpoints.
// Keeps:    what comes out is a function of the bundle, the data, the seed, the batch and the number of epochs: not of
//           the CPU, the threads, or how often the run was stopped and resumed. What is wrong with any input is found
//           before the first step and before any file is written.
// Does not: know losses or optimizers: they are in the bundle.
#pragma once
#include "BatchCall.h"
#include "Device.h"
#include "FileLock.h"
#include "Log.h"
#include "Progress.h"
#include "Ranks.h"
#include "TensorFiles.h"
#include <chrono>
#include <memory>
#include <optional>

namespace astra::tool {

struct TrainSettings {
  DeviceChoice where;
  std::string engine, bundle, out, log, resume, checkpoint, weights;
  std::vector<std::string> data, eval;
  int64_t batch = 0, seed = -1; // not given: those of the checkpoint, or refused, or 0
  int64_t epochs = 0, every = 0;
  bool init = false, dropLast = false, findNaN = false, quiet = false, goOn = false;
};

/// Where checkpoints go.
std::string checkpointPath(const TrainSettings &settings);

class Trainer {
public:
  explicit Trainer(const TrainSettings &settings) : s(settings), progress(settings.quiet) {}
  /// Throws a Refusal.
  void run();

private:
  struct State {
    std::string name;
    int32_t dtype;
    std::vector<int64_t> shape; // of the logical tensor
    bool isWeight;              // main uses it: a parameter or a running statistic, not what the optimizer keeps
    bool mayBeInfinite = false; // it was before the first step: a mask
  };

  // Prepare.cpp: what is judged before the first step.
  void say(const std::string &text);
  void lock();
  void open();
  const astra_entry *entry(const char *name);
  void requireSame();
  void load();
  void checkBatch(const Data &d, const std::string &option, const astra_entry *entry, bool mayDrop);
  void checkRows(const Data &d, const astra_entry *e, int64_t rows, const std::string &words);
  void checkTargets(const Data &d);
  void checkStatistics();
  void listStates();
  void setState(const State &state, const std::vector<uint8_t> &value);
  void setStates(const TensorFiles &from, const std::string &path, bool weightsOnly);
  void setKey();
  void drawWeights();
  void makeCalls();

  // Trainer.cpp: the run.
  void trainEpoch();
  void step(int64_t first, int64_t rows);
  void evaluate();
  void add(const BatchCall &call, size_t output);
  void judgeStates();
  void checkNumbers();
  void checkStates();
  [[noreturn]] void stop(std::string text);
  std::string firstOf(bool infinite) const;
  std::string lookAt(const State &state);
  void show(std::string_view what, bool now);
  int64_t number() const { return (epoch - 1) * perEpoch + done; } // of the step that was done last

  // Checkpoint.cpp: what is saved.
  struct Fact {
    std::string key, value, refusal; // of a run that goes on from another value
  };
  std::vector<Fact> facts() const;
  std::vector<std::string> logColumns() const;
  TensorFiles openCheckpoint();
  void resume(const TensorFiles &checkpoint);
  void getState(const State &state, std::vector<uint8_t> &out);
  void write(const std::string &path, bool weightsOnly, const Metadata &metadata);
  void writeCheckpoint();

  const TrainSettings &s;
  FileLock locks;             // on what the run writes
  EmulatedMachine machine{0}; // what --emulate runs on; outlives the handles
  Ranks ranks;                // if the bundle has a mesh; likewise
  Handles h;
  Checked check;
  Progress progress;
  const astra_entry *trainStep = nullptr, *eval = nullptr;
  Data data, evalData;
  std::vector<State> states;
  std::unique_ptr<BatchCall> stepCall, evalCall;
  size_t loss = 0, rate = 0;       // outputs of train_step
  std::vector<size_t> evalNumbers; // outputs of eval that are averaged
  std::vector<double> sums;        // of them
  Log log;
  int64_t seed = 0, batch = 0, perEpoch = 0;
  int64_t epoch = 1, done = 0; // the epoch now, from 1, and how many of its steps are done
  double lossSum = 0;          // of the epoch's steps, each times its rows
  int64_t lossRows = 0;        // these rows
  std::vector<uint32_t> order;
  bool wroteCheckpoint = false;
  std::chrono::steady_clock::time_point began, shown;
  int64_t rowsDone = 0; // by this process
};

} // namespace astra::tool
