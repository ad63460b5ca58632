//===- Training.h: entries that train a model ------------------------------===//
// Takes:    a module with an entry `main` for inference, perhaps an entry `forward` of the same inputs for what
//           training does otherwise (dropout, statistics of the batch; its updates are those of running statistics),
//           and what to train it with.
// Gives:    the same module with its trainable parameters as states and two entries more: `train_step`, which takes the
//           inputs and a target, gives the loss and the learning rate and replaces the states, and `eval`, which gives
//           the outputs and the loss. The entry for inference reads the states. An entry `init` too: it takes a seed
//           and replaces the parameters that initializers are for.
// Keeps:    states that a caller can save and load by name: a parameter's own name, "NAME.SLOT" for what the optimizer
//           keeps of it, "step" for the number of steps done.
#pragma once
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Module.h"
#include "astra/NN/Recipe.h"
#include <optional>

namespace astra::nn {

/// What the parameters that a glob pattern matches begin as.
struct Initialization {
  std::string pattern;
  Recipe recipe;
};

struct TrainingOptions {
  Recipe loss, optimizer, schedule;
  double clipNorm = 0;                  // 0: gradients are not clipped
  std::vector<std::string> frozen = {}; // glob patterns of parameters that stay as they are
  std::string output;                   // of the entry, which the loss is about; empty: the first
  std::vector<Initialization> init =
      {};                           // the first whose pattern matches a parameter is its own; empty: `default` for all
  std::vector<Recipe> metrics = {}; // what eval says beside the loss; empty: the accuracy, where it is of classes
  std::vector<std::string> *notes = nullptr; // gets sentences about what may not be meant; null: nobody asks
  Recipe lossScale = {};                     // its first row, `none`, if not given
  unsigned segments = 1; // of the graph, whose inside is computed again for its gradients; 1: nothing is
  std::optional<PipelineRule> interleaved = {}; // gradients are taken so; the module is what pipelineLayers made of it
};

/// Trained are parameters of the kind Weight and of f32 or f64 that a gradient reaches and that are no epsilon
/// (Roles.h). Adds the entries, and takes `forward` away. Refuses, with a sentence, a pattern that matches nothing, an
/// output that there is not, a module without anything to train, names that are taken, and what has no derivative.
llvm::Error addTraining(Module &m, const TrainingOptions &options);

} // namespace astra::nn
