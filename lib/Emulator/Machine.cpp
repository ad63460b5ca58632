//===- Machine.cpp: the emulator as a device of the runtime -----------------===//
#include "astra/Emulator/Machine.h"
#include "astra/Emulator/Emulator.h"
#include <cstdio>
#include <cstring>
#include <vector>

using namespace astra;

namespace {

struct alignas(16) Sixteen {
  uint8_t bytes[16];
};

astra_status launch(void *self, const astra_emulated_launch *l, astra_diag *diag) {
  auto &machine = *static_cast<EmulatedMachine *>(self);
  std::vector<EmulatedBuffer> buffers;
  std::vector<std::vector<Sixteen>> copies(l->num_buffers);
  for (uint32_t i = 0; i < l->num_buffers; ++i) {
    auto *at = static_cast<uint8_t *>(l->buffers[i]);
    uint64_t bytes = l->buffer_bytes[i];
    if (reinterpret_cast<uintptr_t>(at) % 16 && bytes) {
      copies[i].resize((bytes + 15) / 16);
      at = copies[i].data()->bytes;
      std::memcpy(at, l->buffers[i], bytes);
    }
    buffers.push_back({{at, bytes}, l->writes[i] != 0});
  }
  EmulatedRun run{machine.seed, 0};
  EmulatedKernel kernel{l->kernel, l->code, l->threads, l->group, l->warp, l->shared_bytes};
  std::vector<EmulatedMap> maps;
  for (uint32_t i = 0; i < l->num_maps; ++i)
    maps.push_back({l->maps[i].buffer, l->maps[i].box, l->maps[i].words, l->maps[i].lines});
  std::string wrong = emulate(kernel, buffers, {l->dims, l->num_dims}, l->items, run, maps);
  for (uint32_t i = 0; i < l->num_buffers; ++i)
    if (!copies[i].empty() && l->writes[i]) std::memcpy(l->buffers[i], copies[i].data(), l->buffer_bytes[i]);
  machine.note(l->code, run.threads);
  if (wrong.empty()) return ASTRA_OK;
  if (diag && diag->size >= sizeof(astra_diag)) {
    diag->status = ASTRA_KERNEL_FAULT;
    std::snprintf(diag->text, sizeof diag->text, "emulated %s", wrong.c_str());
  }
  return ASTRA_KERNEL_FAULT;
}

} // namespace

void EmulatedMachine::note(const void *code, uint64_t ran) {
  launches += 1, threads += ran;
  std::lock_guard hold(lock);
  codes.insert(code);
}

uint64_t EmulatedMachine::kernels() {
  std::lock_guard hold(lock);
  return codes.size();
}

astra_emulator EmulatedMachine::hooks() {
  astra_emulator e = ASTRA_INIT(astra_emulator);
  e.self = this;
  e.launch = launch;
  return e;
}
