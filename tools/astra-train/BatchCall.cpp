//===- BatchCall.cpp: an entry that is called on batches of rows ---------------===//
// Takes:    rows in its inputs.
// Gives:    see BatchCall.h.
#include "BatchCall.h"
#include <algorithm>
#include <cstring>

using namespace astra::tool;

BatchCall::BatchCall(Handles &handles, Ranks &ranks, const astra_entry *entry,
                     const std::vector<const Column *> &columns, int64_t most)
    : h(handles), ranks(ranks), entry(entry) {
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  check(astra_entry_get_info(entry, &info));
  entryName = info.name;
  for (const Column *c : columns) {
    std::vector<int64_t> &whole = logical.emplace_back(c->row);
    whole.insert(whole.begin(), most);
    names.push_back(c->name);
    uint64_t bytes;
    if (__builtin_mul_overflow(c->rowBytes, uint64_t(most), &bytes))
      throw Refusal{Failure, "a batch of input " + c->name + " is too large"};
    std::vector<int64_t> &shape =
        shapes.emplace_back(ranks.localShape(ASTRA_MESH_INPUT, entryName.c_str(), c->name.c_str(), whole));
    wholes.emplace_back();
    if (ranks.isCut(ASTRA_MESH_INPUT, entryName.c_str(), c->name.c_str())) {
      wholes.back().resize(bytes);
      bytes = ranks.bytes(c->dtype, shape); // more than that where several shards have one part
    }
    astra_buffer *buffer = nullptr;
    check(astra_buffer_init(&buffer, h.pool, bytes, check));
    h.buffers.push_back(buffer);
    astra_tensor &t = inputs.emplace_back(ASTRA_INIT(astra_tensor));
    t.data = astra_buffer_data(buffer), t.data_bytes = bytes;
    t.dtype = c->dtype, t.ndim = int32_t(shape.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].shape = shapes[i].data();
  infos.resize(info.num_outputs, ASTRA_INIT(astra_tensor_info));
  outputs.resize(info.num_outputs, ASTRA_INIT(astra_tensor));
  bounds.resize(info.num_outputs, std::vector<int64_t>(ASTRA_MAX_RANK));
  sizes.resize(info.num_outputs);
  results.resize(info.num_outputs);
  for (uint32_t i = 0; i < info.num_outputs; ++i) {
    check(astra_entry_get_output(entry, i, &infos[i]));
    outputs[i].dtype = infos[i].dtype, outputs[i].shape = bounds[i].data();
  }
  resize(most);
}

void BatchCall::resize(int64_t rows) {
  now = rows;
  for (size_t i = 0; i < shapes.size(); ++i) {
    logical[i][0] = rows;
    auto part = ranks.localShape(ASTRA_MESH_INPUT, entryName.c_str(), names[i].c_str(), logical[i]);
    std::copy(part.begin(), part.end(), shapes[i].begin()); // which the tensor points to
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    astra_tensor &t = outputs[i];
    check(astra_entry_output_bound(entry, h.session, inputs.data(), uint32_t(inputs.size()), i, bounds[i].data(),
                                   &t.ndim, &sizes[i], check));
    if (results[i] && astra_buffer_bytes(results[i]) >= sizes[i]) continue;
    check(astra_buffer_init(&results[i], h.pool, sizes[i], check)); // the one before stays with the handles
    h.buffers.push_back(results[i]);
    if (h.host) // a call of the device writes to the host's memory, not to another device's buffer
      t.data = astra_buffer_data(results[i]), t.data_bytes = sizes[i];
    else
      t.buffer = results[i];
  }
}

void BatchCall::operator()(int64_t rows) {
  if (rows != now) resize(rows);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!wholes[i].empty())
      ranks.take(check, ASTRA_MESH_INPUT, entryName.c_str(), names[i].c_str(), inputs[i].dtype, logical[i],
                 wholes[i].data(), inputs[i].data);
  astra_call c = ASTRA_INIT(astra_call);
  c.entry = entry;
  c.inputs = inputs.data(), c.num_inputs = uint32_t(inputs.size());
  c.outputs = outputs.data(), c.num_outputs = uint32_t(outputs.size());
  astra_promise *promise = nullptr;
  check(astra_session_submit(h.session, h.stream, &c, &promise, check));
  astra_status status = astra_promise_wait(promise, check);
  astra_promise_free(&promise);
  check(status);
}

size_t BatchCall::find(const std::string &name) const {
  size_t i = 0;
  while (i < infos.size() && name != infos[i].name) ++i;
  return i;
}

bool BatchCall::isNumber(size_t i) const {
  return infos[i].ndim == 0 && (infos[i].dtype == ASTRA_F32 || infos[i].dtype == ASTRA_F64);
}

double BatchCall::number(size_t i) const {
  double wide;
  float narrow;
  if (infos[i].dtype == ASTRA_F64)
    std::memcpy(&wide, data(i), sizeof wide);
  else
    std::memcpy(&narrow, data(i), sizeof narrow), wide = narrow;
  return wide;
}
