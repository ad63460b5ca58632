//===- Check.cpp: a bundle's kernels, between guard pages ------------------===//
// Takes:    see Check.h.
// Keeps:    the ordinary call comes last, and only where the guarded ones found nothing: it might end the process.
#include "Check.h"

#include "Corners.h"
#include "GuardedDevice.h"
#include "src/Session.h"
#include <cstdlib>
#include <stdexcept>

using namespace astra::guard;
using namespace astra::rt;

namespace {

template <class Fn> void check(Fn fn) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  if (Status status = fn(&diag)) throw std::runtime_error(std::string(astra_status_name(status)) + ": " + diag.text);
}

template <class T, Status (*release)(T **)> struct Owned {
  T *handle = nullptr;
  Owned() = default;
  Owned(const Owned &) = delete;
  ~Owned() { release(&handle); }
};

struct Random {
  uint64_t state;
  uint64_t next() { // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
};

template <class T> void put(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

/// Small numbers of all kinds; every code of small types.
void putElement(std::string &bytes, int32_t dtype, Random &random) {
  uint64_t r = random.next();
  float f = float(int64_t(r % 4096) - 2048) / 512;
  int64_t i = int64_t(r >> 16) % 50 * (r & 1 ? -1 : 1);
  switch (dtype) {
  case ASTRA_BOOL: return put(bytes, uint8_t(r & 1));
  case ASTRA_I16:
  case ASTRA_U16: return put(bytes, int16_t(dtype == ASTRA_I16 ? i : i * i));
  case ASTRA_I32:
  case ASTRA_U32: return put(bytes, int32_t(dtype == ASTRA_I32 ? i : i * i));
  case ASTRA_I64:
  case ASTRA_U64: return put(bytes, int64_t(dtype == ASTRA_I64 ? i : i * i));
  case ASTRA_F16: return put(bytes, uint16_t((r & 0x8000) | (0x3000 + r % 0x1400)));
  case ASTRA_BF16: return put(bytes, uint16_t((r & 0x8000) | (0x3e80 + r % 0x180)));
  case ASTRA_F32: return put(bytes, f);
  case ASTRA_F64: return put(bytes, double(f));
  case ASTRA_C64: return put(bytes, f), put(bytes, float(r >> 60));
  case ASTRA_C128: return put(bytes, double(f)), put(bytes, double(r >> 60));
  default: return put(bytes, uint8_t(r >> 8));
  }
}

struct Value {
  std::vector<int64_t> shape;
  std::string bytes;
  astra_tensor tensor = ASTRA_INIT(astra_tensor);

  astra_tensor &describe(int32_t dtype) {
    tensor.data = bytes.data(), tensor.data_bytes = bytes.size();
    tensor.dtype = dtype, tensor.ndim = int32_t(shape.size()), tensor.shape = shape.data();
    return tensor;
  }
  uint64_t size(int32_t dtype) const {
    uint64_t size = 0;
    if (!denseBytes(*dtypeOf(dtype), shape.data(), uint32_t(shape.size()), size)) throw std::runtime_error("a shape");
    return size;
  }
  void fill(int32_t dtype, Random &random) {
    uint32_t bits = dtypeOf(dtype)->bits;
    uint64_t all = size(dtype);
    while (bytes.size() < all) putElement(bytes, dtype, random);
    if (bits < 8 && all) { // the padding of rows is 0
      uint64_t columns = shape.empty() ? 1 : uint64_t(shape.back()), row = (columns * bits + 7) / 8;
      if (uint32_t used = columns * bits % 8)
        for (uint64_t at = row - 1; at < all; at += row) bytes[at] = char(bytes[at] & ((1 << used) - 1));
    }
    describe(dtype);
  }
};

struct Machine {
  const CheckOptions &options;
  const std::string &path;
  CheckResult result;
  Owned<astra_runtime, astra_runtime_free> runtime;
  std::unique_ptr<GuardedDevice> device;
  Owned<astra_stream, astra_stream_free> stream;
  Owned<astra_bundle, astra_bundle_free> bundle;
  Owned<astra_loaded, astra_loaded_free> loaded;

  Machine(const std::string &path, const std::string &level, const CheckOptions &options)
      : options(options), path(path) {
    check([&](auto *d) { return astra_runtime_init(&runtime.handle, nullptr, d); });
    device = std::make_unique<GuardedDevice>(runtime.handle);
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.level = level.c_str();
    check([&](auto *d) { return device->type.init(device.get(), "cpu", o, d); });
    astra_device *devices[] = {device.get()};
    check([&](auto *d) { return astra_stream_init(&stream.handle, device.get(), d); });
    check([&](auto *d) { return astra_bundle_init_file(&bundle.handle, runtime.handle, path.c_str(), nullptr, d); });
    check([&](auto *d) { return astra_loaded_init(&loaded.handle, bundle.handle, devices, 1, d); });
    result.modules = 1;
  }
  const fmt::Manifest &manifest() const { return bundle.handle->manifest(); }

  /// What a call gives: outputs, then the states.
  std::vector<std::string> call(const astra_entry *entry, const Dims &dims, Mode mode, uint64_t number);
  void compare(const astra_entry *entry, const Dims &dims, uint64_t number);
  uint64_t found() const {
    uint64_t calls = 0;
    for (auto &[key, finding] : device->findings) calls += finding.calls;
    return calls;
  }
  void setParams(Mode mode);
  void run();
};

std::vector<std::string> Machine::call(const astra_entry *entry, const Dims &dims, Mode mode, uint64_t number) {
  const fmt::Manifest &m = manifest();
  const fmt::Entry &e = *entry->table;
  Random random{options.seed * 1000003 + number};
  std::vector<astra_dim_value> given;
  for (uint32_t i = 0; i < m.dims()->size(); i++)
    if (fmt::DimSource s = m.dims()->Get(i)->source(); s == fmt::DimSource::Host || s == fmt::DimSource::Session)
      given.push_back({m.dims()->Get(i)->name()->c_str(), dims[i]});
  auto shaped = [&](const fmt::Tensor &t, bool bound) {
    Value v;
    v.shape.resize(t.shape() ? t.shape()->size() : 0);
    check([&](auto *d) { return outputShape(*bundle.handle, t, bound, dims.data(), v.shape.data(), d); });
    return v;
  };
  device->mode = mode;
  device->leftInCall = options.launches;
  device->session = nullptr;
  Owned<astra_session, astra_session_free> session;
  astra_session_options o = ASTRA_INIT(astra_session_options);
  o.dims = given.data(), o.num_dims = uint32_t(given.size());
  check([&](auto *d) { return astra_session_init(&session.handle, loaded.handle, &o, d); });
  device->session = session.handle;
  std::vector<Value> inputs, outputs;
  std::vector<astra_tensor> in, out;
  for (const fmt::Tensor *t : *e.inputs()) inputs.push_back(shaped(*t, false));
  for (const fmt::Tensor *t : *e.outputs()) outputs.push_back(shaped(*t, true));
  for (uint32_t i = 0; i < inputs.size(); i++) {
    inputs[i].fill(int32_t(e.inputs()->Get(i)->dtype()), random);
    in.push_back(inputs[i].tensor);
  }
  for (uint32_t i = 0; i < outputs.size(); i++) {
    int32_t dtype = int32_t(e.outputs()->Get(i)->dtype());
    outputs[i].bytes.assign(outputs[i].size(dtype), char(0xcd));
    out.push_back(outputs[i].describe(dtype));
  }
  astra_call c = ASTRA_INIT(astra_call);
  c.entry = entry;
  c.inputs = in.data(), c.num_inputs = uint32_t(in.size());
  c.outputs = out.data(), c.num_outputs = uint32_t(out.size());
  Status status = ASTRA_OK;
  for (uint32_t times = e.writes()->size() ? 2 : 1; times > 0 && !status; times--) {
    Owned<astra_promise, astra_promise_free> promise;
    check([&](auto *d) { return astra_session_submit(session.handle, stream.handle, &c, &promise.handle, d); });
    check([&](auto *d) { return status = astra_promise_wait(promise.handle, d); });
  }
  std::vector<std::string> bytes;
  for (Value &v : outputs) bytes.push_back(std::move(v.bytes));
  for (uint32_t s : *e.writes())
    bytes.emplace_back(static_cast<const char *>(session.handle->states[s].data), session.handle->states[s].bytes);
  device->session = nullptr;
  return bytes;
}

void Machine::compare(const astra_entry *entry, const Dims &dims, uint64_t number) {
  std::string where = "entry " + entry->table->name()->str();
  for (uint32_t i = 0; i < dims.size(); i++)
    where += (i ? " " : " at ") + manifest().dims()->Get(i)->name()->str() + "=" + std::to_string(dims[i]);
  if (options.verbose) fprintf(stderr, "%s: %s\n", path.c_str(), where.c_str());
  uint64_t before = found();
  std::vector<std::string> all[3];
  try {
    all[0] = call(entry, dims, Mode::End, number);
    all[1] = call(entry, dims, Mode::Begin, number);
    if (found() != before) return;
    all[2] = call(entry, dims, Mode::Ordinary, number);
  } catch (const std::exception &e) {
    device->session = nullptr;
    if (std::string(e.what()).starts_with("ASTRA_KERNEL_FAULT")) return;
    if (options.verbose) fprintf(stderr, "%s: refused: %s\n", where.c_str(), e.what());
    result.refused++;
    return;
  }
  for (int k : {0, 1})
    for (size_t i = 0; i < all[2].size(); i++)
      if (all[k][i] != all[2][i]) {
        const fmt::Entry &e = *entry->table;
        std::string what =
            i < e.outputs()->size()
                ? "output " + e.outputs()->Get(uint32_t(i))->name()->str()
                : "state " +
                      manifest().states()->Get(e.writes()->Get(uint32_t(i) - e.outputs()->size()))->name()->str();
        result.findings.push_back(where + ": " + what + " of " + std::to_string(all[2][i].size()) +
                                  " bytes has other bytes where buffers " + (k == 0 ? "end" : "begin") +
                                  " at guard pages than where they do not (" + astra_loaded_target(loaded.handle) +
                                  ")");
        return;
      }
}

void Machine::setParams(Mode mode) {
  const fmt::Manifest &m = manifest();
  device->mode = mode, device->leftInCall = 1 << 20;
  Random random{options.seed};
  for (const fmt::Param *p : *m.params()) {
    if (p->fixed()) continue;
    Value v;
    if (p->shape()) v.shape.assign(p->shape()->begin(), p->shape()->end());
    v.fill(int32_t(p->dtype()), random);
    check([&](auto *d) { return astra_loaded_set_param(loaded.handle, p->name()->c_str(), &v.tensor, d); });
  }
}

void Machine::run() {
  const fmt::Manifest &m = manifest();
  uint64_t paramBytes = 0;
  bool lacks = false, any = false;
  for (const fmt::Param *p : *m.params()) {
    paramBytes += p->stored_bytes();
    any |= !p->fixed(), lacks |= !p->fixed() && !p->place();
  }
  if (lacks) setParams(Mode::End);
  CornerOptions corners;
  corners.most = options.corners, corners.totalCost = options.cost;
  for (bool replaced : {false, true}) {
    if (replaced) {
      if (!any || !options.params || paramBytes > 16 << 20) break;
      setParams(Mode::End), setParams(Mode::Begin);
      corners.most = 3;
    }
    for (uint32_t i = 0; i < m.entries()->size(); i++) {
      const astra_entry *entry = &bundle.handle->entries[i];
      Corners here = cornersOf(m, *entry->table, loaded.handle->target, corners);
      uint64_t number = 0;
      for (const Dims &dims : here.dims) compare(entry, dims, number++);
      if (replaced) continue;
      result.entries++, result.corners += here.dims.size(), result.tooLarge += here.tooLarge;
    }
  }
  for (auto &[key, finding] : device->findings)
    result.findings.push_back(finding.sentence +
                              (finding.calls > 1 ? " (" + std::to_string(finding.calls) + " times)" : ""));
  result.launches = device->launches;
}

} // namespace

namespace {
struct Count {
  const char *name;
  uint64_t CheckResult::*number;
};
constexpr Count counts[] = {{"modules x levels", &CheckResult::modules}, {"entries", &CheckResult::entries},
                            {"corners", &CheckResult::corners},          {"launches", &CheckResult::launches},
                            {"refused", &CheckResult::refused},          {"too large", &CheckResult::tooLarge}};
} // namespace

CheckResult &CheckResult::operator+=(const CheckResult &other) {
  for (const Count &c : counts) this->*c.number += other.*c.number;
  findings.insert(findings.end(), other.findings.begin(), other.findings.end());
  return *this;
}

std::string CheckResult::summary() const {
  std::string text = "guard pages: ";
  for (const Count &c : counts) text += std::to_string(this->*c.number) + " " + c.name + ", ";
  return text + std::to_string(findings.size()) + " findings";
}

void CheckResult::addCounts(const std::string &summary) {
  for (const Count &c : counts)
    if (size_t at = summary.find(std::string(" ") + c.name); at != std::string::npos && at > 0)
      this->*c.number += std::strtoull(&summary[summary.rfind(' ', at - 1) + 1], nullptr, 10);
}

std::vector<std::string> astra::guard::levelsOf(const std::string &path) {
  Owned<astra_runtime, astra_runtime_free> runtime;
  Owned<astra_bundle, astra_bundle_free> bundle;
  check([&](auto *d) { return astra_runtime_init(&runtime.handle, nullptr, d); });
  check([&](auto *d) { return astra_bundle_init_file(&bundle.handle, runtime.handle, path.c_str(), nullptr, d); });
  std::vector<std::string> levels;
  for (uint32_t i = 0; i < bundle.handle->manifest().targets()->size(); i++) {
    astra_target_info info = ASTRA_INIT(astra_target_info);
    check([&](auto *) { return astra_bundle_get_target(bundle.handle, i, &info); });
    if (!info.lacks && std::string(info.name).starts_with("cpu:")) levels.push_back(info.name + 4);
  }
  return levels;
}

CheckResult astra::guard::checkBundle(const std::string &path, const std::string &level, const CheckOptions &options) {
  Machine machine(path, level, options);
  machine.run();
  for (std::string &finding : machine.result.findings) finding = path + ": " + finding;
  return std::move(machine.result);
}
