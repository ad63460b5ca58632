//===- GuardedDevice.cpp: kernels between guard pages ----------------------===//
// Keeps:    what kernels may rely on by manifest.fbs and no more: buffers begin where an element may begin, scratch
//           memory at multiples of 64; the items of a launch are split (at the beginning side) or are not.
#include "GuardedDevice.h"

#include "src/Cpu.h"
#include "src/Session.h"
#include <algorithm>
#include <csignal>

using namespace astra::guard;
using namespace astra::rt;
using Kernel = void (*)(void *const *buffers, const int64_t *dims, void *scratch, int64_t first, int64_t last);

namespace {

/// Arguments that share bytes.
struct Shared {
  uint8_t *low;
  uint64_t bytes;
  bool isWritten;
  Region *region;
};

struct Guarded {
  GuardedDevice &device;
  const Launch &launch;
  Side side;
  uint64_t scratchBytes, dimBytes;
  std::vector<Shared> shared;
  std::vector<uint32_t> sharedOf; ///< per argument
  std::vector<void *> arguments;
  Region *scratch = nullptr, *dims = nullptr;

  Guarded(GuardedDevice &device, const Launch &launch, uint64_t scratchBytes)
      : device(device), launch(launch), side(device.mode == Mode::End ? Side::End : Side::Begin),
        scratchBytes(scratchBytes),
        dimBytes(device.session ? device.session->loaded->bundle->manifest().dims()->size() * sizeof(int64_t) : 0) {}

  uint32_t count() const { return launch.kernel->access()->size(); }
  bool isWritten(uint32_t i) const {
    return static_cast<fmt::Access>(launch.kernel->access()->Get(i)) != fmt::Access::Read;
  }
  uint8_t *argument(uint32_t i) const { return static_cast<uint8_t *>(launch.buffers[i]); }

  void group();
  void place();
  Status run(astra_diag *diag);
  void check(const Fault *fault);
  std::string nameOf(uint32_t i) const;
  std::string nameOf(const Region *region) const;
};

void Guarded::group() {
  std::vector<uint32_t> order(count());
  for (uint32_t i = 0; i < count(); i++) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return argument(a) != argument(b) ? argument(a) < argument(b) : launch.bufferBytes[a] < launch.bufferBytes[b];
  });
  sharedOf.resize(count());
  for (uint32_t i : order) {
    uint64_t bytes = launch.bufferBytes[i];
    bool overlaps = bytes && !shared.empty() && argument(i) < shared.back().low + shared.back().bytes;
    if (!overlaps) shared.push_back({argument(i), bytes, false, nullptr});
    Shared &s = shared.back();
    s.bytes = std::max(s.bytes, uint64_t(argument(i) - s.low) + bytes);
    s.isWritten |= isWritten(i);
    sharedOf[i] = uint32_t(shared.size() - 1);
  }
  for (Shared &s : shared) s.region = &device.regions.take(s.bytes);
  scratch = &device.regions.take(scratchBytes);
  dims = &device.regions.take(dimBytes);
}

void Guarded::place() {
  arguments.resize(count());
  for (Shared &s : shared) {
    s.region->place(s.bytes, side, 1);
    if (s.bytes) memcpy(s.region->at, s.low, s.bytes);
  }
  for (uint32_t i = 0; i < count(); i++) {
    const Shared &s = shared[sharedOf[i]];
    arguments[i] = s.region->at + (argument(i) - s.low);
  }
  memset(scratch->place(scratchBytes, side, fmt::kAlign), 0xa7, scratchBytes);
  memcpy(dims->place(dimBytes, side, sizeof(int64_t)), launch.dims, dimBytes);
}

std::string Guarded::nameOf(uint32_t i) const {
  std::string name = "argument " + std::to_string(i);
  const astra_session *session = device.session;
  uint64_t bytes = launch.bufferBytes[i];
  if (session && session->entry) {
    const fmt::Entry &e = *session->entry->table;
    const fmt::Manifest &m = session->loaded->bundle->manifest();
    for (uint32_t k = 0; k < e.routine()->buffers()->size(); k++) {
      if (session->buffers[k] != launch.buffers[i]) continue;
      const fmt::Buffer *b = e.routine()->buffers()->Get(k);
      uint32_t index = b->index();
      switch (b->kind()) {
      case fmt::BufferKind::Input: name += " (input " + e.inputs()->Get(index)->name()->str(); break;
      case fmt::BufferKind::Output: name += " (output " + e.outputs()->Get(index)->name()->str(); break;
      case fmt::BufferKind::Param: name += " (param " + m.params()->Get(index)->name()->str(); break;
      case fmt::BufferKind::State: name += " (state " + m.states()->Get(index)->name()->str(); break;
      default: name += " (arena slot " + std::to_string(index);
      }
      return name + ", " + std::to_string(bytes) + " bytes)";
    }
  }
  return name + " (" + std::to_string(bytes) + " bytes)";
}

std::string Guarded::nameOf(const Region *region) const {
  if (region == scratch) return "the scratch memory (" + std::to_string(scratchBytes) + " bytes)";
  if (region == dims) return "the dims (" + std::to_string(dimBytes) + " bytes)";
  std::string names;
  for (uint32_t i = 0; i < count(); i++)
    if (shared[sharedOf[i]].region == region) names += (names.empty() ? "" : " and ") + nameOf(i);
  return names;
}

void Guarded::check(const Fault *fault) {
  const Region *there = fault && fault->known ? device.regions.around(fault->address) : nullptr;
  if (fault) {
    std::string does = fault->stores ? "stores" : "loads or stores";
#if defined(__x86_64__)
    if (!fault->stores) does = "loads";
#endif
    if (!there)
      device.report(launch, "",
                    fault->signal == SIGFPE ? "divides by zero"
                    : fault->known          ? does + " at an address that is near no buffer"
                                            : "faults where the system names no address: an aligned access to memory "
                                              "that is not aligned, or an address that is none");
    else if (fault->address < there->at)
      device.report(launch, nameOf(there),
                    does + " " + std::to_string(there->at - fault->address) + " bytes before the beginning of");
    else
      device.report(launch, nameOf(there),
                    does + " at byte " + std::to_string(fault->address - (there->at + there->bytes)) +
                        " behind the end of");
  }
  for (const Region *region : device.regions.used()) {
    int64_t before, behind;
    if (region == there || region->isOpen() || region->untouched(before, behind)) continue;
    if (before)
      device.report(launch, nameOf(region), "stores " + std::to_string(before) + " bytes before the beginning of");
    if (behind)
      device.report(launch, nameOf(region), "stores at byte " + std::to_string(behind - 1) + " behind the end of");
  }
  for (const Shared &s : shared)
    if (!s.isWritten && s.bytes && memcmp(s.region->at, s.low, s.bytes) != 0)
      device.report(launch, nameOf(s.region), "stores into what it says to read only:");
  if (memcmp(dims->at, launch.dims, dimBytes) != 0) device.report(launch, "the dims", "stores into");
}

/// The kernel over all items; in three parts where it is told so.
void call(void *arg) {
  const Guarded &g = *static_cast<const Guarded *>(arg);
  auto kernel = reinterpret_cast<Kernel>(const_cast<void *>(g.launch.entry));
  int64_t items = g.launch.items, first = g.side == Side::Begin ? std::min<int64_t>(1, items) : items,
          middle = first + (items - first) / 2, ends[] = {first, middle, items}, from = 0;
  for (int64_t end : ends) {
    if (from < end) kernel(g.arguments.data(), reinterpret_cast<const int64_t *>(g.dims->at), g.scratch->at, from, end);
    from = end;
  }
}

Status Guarded::run(astra_diag *diag) {
  FloatEnvironment environment;
  device.launches++;
  group();
  place();
  Fault fault;
  bool fine = survives(call, this, fault);
  for (size_t again = device.regions.used().size() + 1; !fine && again > 0; again--) { // with room where it faulted
    check(&fault);
    Region *there = fault.known ? device.regions.around(fault.address) : nullptr;
    for (Region *region : device.regions.used())
      if (region == there || !there) region->open(true);
    place();
    fine = survives(call, this, fault);
  }
  if (fine) check(nullptr);
  for (Region *region : device.regions.used()) region->open(false);
  for (const Shared &s : shared)
    if (fine && s.isWritten && s.bytes) memcpy(s.low, s.region->at, s.bytes);
  device.regions.giveBack();
  return fine ? ASTRA_OK : fail(diag, ASTRA_KERNEL_FAULT, "kernel %.64s faults", launch.kernel->name()->c_str());
}

Status launchGuarded(astra_device *handle, const Launch &l, astra_diag *diag) {
  auto &device = *static_cast<GuardedDevice *>(handle);
  if (device.leftInCall == 0) return fail(diag, ASTRA_UNSUPPORTED, "the call has more launches than are tried");
  device.leftInCall--;
  if (device.mode == Mode::Ordinary) return cpuDevice.launch(handle, l, diag);
  uint64_t bytes = l.scratchStride;
  if (device.session)
    if (Status s = evaluateBytes(device.session->loaded->bundle->manifest(), l.code->scratch(), l.dims, bytes, diag))
      return s;
  return Guarded(device, l, bytes).run(diag);
}

DeviceType guardedType() {
  DeviceType type = cpuDevice;
  type.launch = launchGuarded;
  return type;
}
const DeviceType guardedDevice = guardedType();

} // namespace

GuardedDevice::GuardedDevice(astra_runtime *runtime) : astra_device(runtime, guardedDevice) {}
GuardedDevice::~GuardedDevice() { cpuDevice.destroy(this); }

void GuardedDevice::report(const Launch &l, const std::string &buffer, const std::string &what) {
  std::string kernel = l.kernel->name()->str();
  const char *side = mode == Mode::End ? "end" : "begin";
  auto [it, isNew] = findings.try_emplace(kernel + "\n" + buffer.substr(0, buffer.find(',')) + "\n" + side);
  it->second.calls++;
  if (!isNew) return;
  std::string dims;
  if (session) {
    const fmt::Manifest &m = session->loaded->bundle->manifest();
    for (uint32_t i = 0; i < m.dims()->size(); i++)
      dims += (i ? " " : " of ") + m.dims()->Get(i)->name()->str() + "=" + std::to_string(l.dims[i]);
  }
  it->second.sentence = "kernel '" + kernel + "' of " + l.target->name()->str() + " under plan '" +
                        (l.code->plan() ? l.code->plan()->str() : "") + "', " + std::to_string(l.items) + " items" +
                        dims + ", " + what + (buffer.empty() ? "" : " " + buffer) + "; buffers " + side +
                        " at a guard page";
}
