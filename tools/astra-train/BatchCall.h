//===- BatchCall.h: an entry that is called on batches of rows -----------------===//
// Takes:    an entry, the greatest number of rows, what a row of each input looks like.
// Gives:    memory for the inputs, to be filled; calls; the outputs.
// Keeps:    its buffers from call to call: a call of as many rows as the one before allocates nothing here.
// Does not: hold state: the session does.
#pragma once
#include "Data.h"
#include "Ranks.h"

namespace astra::tool {

class BatchCall {
public:
  /// `columns` in the order of the entry's inputs. The buffers belong to `handles`. Throws a Refusal.
  BatchCall(Handles &handles, Ranks &ranks, const astra_entry *entry, const std::vector<const Column *> &columns,
            int64_t most);
  BatchCall(const BatchCall &) = delete;
  BatchCall &operator=(const BatchCall &) = delete;

  /// Room for the rows of a batch, of all ranks: each takes its part.
  uint8_t *input(size_t i) { return wholes[i].empty() ? static_cast<uint8_t *>(inputs[i].data) : wholes[i].data(); }
  void operator()(int64_t rows);

  size_t numOutputs() const { return outputs.size(); }
  const astra_tensor_info &info(size_t output) const { return infos[output]; }
  const uint8_t *data(size_t output) const { return static_cast<const uint8_t *>(astra_buffer_data(results[output])); }
  uint64_t bytes(size_t output) const { return sizes[output]; }
  /// The output of this name, or numOutputs().
  size_t find(const std::string &name) const;
  /// Of a scalar f32 or f64.
  bool isNumber(size_t output) const;
  double number(size_t output) const;

private:
  void resize(int64_t rows);
  Handles &h;
  Ranks &ranks;
  std::string entryName;
  Checked check;
  const astra_entry *entry;
  std::vector<astra_tensor_info> infos;
  std::vector<std::vector<int64_t>> logical, shapes, bounds; // of inputs, of this rank's part of them, of outputs
  std::vector<std::string> names;                            // of inputs
  std::vector<std::vector<uint8_t>> wholes;                  // of inputs that are cut
  std::vector<astra_tensor> inputs, outputs;
  std::vector<astra_buffer *> results; // of outputs
  std::vector<uint64_t> sizes;
  int64_t now = -1;
};

} // namespace astra::tool
