//===- astra-run: run one entry of a bundle ---------------------------------===//
// Takes:    a bundle, .npy files for inputs, params and states, a .safetensors file of states, values of host dims,
//           functions of shared libraries.
// Gives:    .npy files of outputs and states, a .safetensors file of states, times, a trace.
// Keeps:    to the C ABI: what this tool can do, any C program can.
// Does not: compile, or know the bundle's format.
#include "Checksum.h"
#include "Device.h"
#include "JsonText.h"
#include "Npy.h"
#include "Places.h"
#include "Ranks.h"
#include "Safetensors.h"
#include "Trace.h"
#include "Values.h"
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <optional>

using namespace astra::tool;
using std::string;

#pragma weak astra_runtime_register // an older library, which the rest of this program runs with, does not have it

namespace {

struct Settings {
  DeviceChoice where;
  string entry = "main", engine, trace, states, savedStates, tolerance;
  int64_t repeat = 1, seed = -1; // -1: not given
  bool verify = false, strict = false, json = false;
  std::vector<std::pair<string, string>> functions, inputs, outputs, expected, dims, params, setStates, getStates;
};

Program describe(Settings &s) {
  Program p;
  p.name = "astra-run";
  p.synopsis = "FILE.astra [options]";
  p.summary = "run one entry of a bundle";
  p.description =
      "Loads a bundle made by astra-compile, gives an entry its inputs, and writes its outputs. Tensors are "
      ".npy files; types that NumPy lacks are unsigned integers of their width, those of less than a byte "
      "one byte for each element. Outputs that no --output names are printed in short.";
  p.options = {
      {"entry", "NAME", "the entry to run; main if not given", text(s.entry)},
      {"input", "NAME=FILE.npy", "an input; once for each", pairs(s.inputs)},
      {"output", "NAME=FILE.npy", "where an output goes; once for each", pairs(s.outputs)},
      {"expect", "NAME=FILE.npy", "bytes that an output must equal; exit code 4 if they differ", pairs(s.expected)},
      {"tolerance", "NUMBER",
       "with --expect: an element may differ by so much times 1 + the magnitude of what is expected; 0 if not given, "
       "equal bytes",
       [&s](std::string_view v) -> string {
         string text(v);
         char *end;
         double t = std::strtod(text.c_str(), &end);
         if (text.empty() || *end || !(t >= 0) || !std::isfinite(t)) return "'" + text + "' is not a number from 0 on";
         s.tolerance = text;
         return "";
       }},
      {"dim", "NAME=N", "the value of a host dim; once for each", pairs(s.dims)},
      {"function", "NAME=LIBRARY:SYMBOL",
       "a function that the bundle calls, an astra_function_fn (astra.h) of a shared library; once for each",
       pairs(s.functions)},
      {"param", "NAME=FILE.npy", "replaces a param for this run; once for each", pairs(s.params)},
      {"set-state", "NAME=FILE.npy", "the value of a state before the first call; once for each", pairs(s.setStates)},
      {"states", "FILE.safetensors",
       "values of states before the first call, by name: weights or a checkpoint of astra-train; --set-state is "
       "stronger",
       text(s.states)},
      {"get-state", "NAME=FILE.npy", "where a state goes after the last call; once for each", pairs(s.getStates)},
      {"save-states", "FILE.safetensors", "where all states go after the last call", text(s.savedStates)},
  };
  for (Option &o : deviceOptions(s.where)) p.options.push_back(std::move(o));
  p.options.push_back(engineOption(s.engine));
  p.options.insert(
      p.options.end(),
      {
          {"seed", "N",
           "with --emulate: the order of blocks, warps and lanes; 0 if not given. The bits do not depend on it",
           number(s.seed, 0, INT64_MAX)},
          {"repeat", "N", "calls the entry N times and prints the times", number(s.repeat, 1, 1000000000)},
          {"trace", "FILE.json", "writes a Chrome trace of the last call, which ui.perfetto.dev opens", text(s.trace)},
          {"json", "", "prints target, times, outputs in short and differences as JSON", flag(s.json)},
          {"verify", "", "checks the hashes of all code and of the weights too", flag(s.verify)},
          {"strict", "", "refuses a bundle that was not built under the strict numeric contract", flag(s.strict)},
      });
  p.operands = {".astra"};
  p.examples = "  astra-run affine.astra --input x=x.npy --output y=y.npy\n"
               "  astra-run digits.astra --input image=images.npy --emulate cuda:sm_90\n"
               "  astra-run digits.astra --input image=images.npy --device cuda:0\n"
               "  astra-run digits.astra --input image=images.npy --threads 4 --repeat 100 --trace trace.json\n";
  return p;
}

struct OutputTensor {
  astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
  astra_buffer *buffer = nullptr;
  const uint8_t *data = nullptr; // on the host, once all calls have ended
  int64_t bound[ASTRA_MAX_RANK], shape[ASTRA_MAX_RANK];
  int32_t rank = 0;
};

/// An output that would replace what the call reads: a sentence, or "". States may be saved where they came from.
string clash(const Settings &s, const string &bundle) {
  std::vector<Place> inputs{{"the bundle", bundle}}, outputs{{"--trace", s.trace}}, states{{"--states", s.states}};
  auto add = [](std::vector<Place> &to, const char *option, const std::vector<std::pair<string, string>> &pairs) {
    for (auto &[name, path] : pairs) to.push_back({option + (" " + name), path});
  };
  add(inputs, "--input", s.inputs), add(inputs, "--expect", s.expected), add(inputs, "--param", s.params);
  add(outputs, "--output", s.outputs), add(states, "--set-state", s.setStates);
  string wrong = overwritten(states, outputs);
  outputs.push_back({"--save-states", s.savedStates});
  add(outputs, "--get-state", s.getStates);
  return wrong.empty() ? overwritten(inputs, outputs) : wrong;
}

class Run {
public:
  explicit Run(const Settings &s) : settings(s), machine(uint64_t(std::max<int64_t>(s.seed, 0))) {
    check.takesValues = true;
    if (!s.tolerance.empty()) tolerance = std::strtod(s.tolerance.c_str(), nullptr);
  }
  int operator()(const string &path);

private:
  const Settings &settings;
  astra::EmulatedMachine machine; // what --emulate runs on; outlives the handles
  Ranks ranks;                    // if the bundle has a mesh; likewise
  Handles h;
  Checked check;
  std::deque<Npy> arrays;
  std::deque<std::vector<int64_t>> strides;
  std::deque<std::vector<uint8_t>> copies; // of what outputs of a GPU hold
  const astra_entry *entry = nullptr;
  std::vector<astra_tensor> inputs;
  std::vector<OutputTensor> outputs;
  std::vector<double> times;              // of the calls, ascending
  std::vector<string> shown, differences; // outputs as JSON; sentences
  std::optional<double> tolerance;        // of --expect
  Trace trace{ranks};
  std::vector<Given> values = {{"--param, --states or --set-state", checksum("", 0)}}; // of several ranks; then inputs

  void load(const string &path);
  void registerFunction(const string &name, const string &place);
  void requireSame();
  void note(const string &name, const Npy &a);
  void loadStates(const string &path, uint32_t count);
  astra_tensor tensorFrom(const string &path, int32_t expected);
  astra_tensor part(int32_t kind, const char *name, astra_tensor t);
  Npy whole(int32_t kind, const char *name, Npy local);
  void place(astra_tensor &t);
  void gatherInputs();
  void makeOutputs();
  void call();
  void bringOutputs();
  Npy result(const OutputTensor &o) const;
  Npy state(const astra_tensor_info &info);
  void saveStates();
  void writeAndCompare();
  void writeTrace();
  void printJson() const;
};

/// The array as a tensor; it stays where it is.
astra_tensor rowMajor(Npy &a) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = a.data.data();
  t.data_bytes = a.data.size();
  t.dtype = a.dtype;
  t.ndim = int32_t(a.shape.size());
  t.shape = a.shape.data();
  return t;
}

/// The tensor in a .npy file. What NumPy has no type for comes as integers (Npy.h).
astra_tensor Run::tensorFrom(const string &path, int32_t expected) {
  string error;
  Npy &a = arrays.emplace_back();
  if (!readNpy(path, a, error)) throw Refusal{Failure, error};
  if (!adopt(a, expected, error)) throw Refusal{Failure, path + ": " + error};
  astra_tensor t = rowMajor(a);
  if (a.fortranOrder) {
    std::vector<int64_t> &columnMajor = strides.emplace_back();
    int64_t stride = 1;
    for (int64_t extent : a.shape) {
      columnMajor.push_back(stride);
      stride *= extent;
    }
    t.strides = columnMajor.data();
  }
  return t;
}

/// What this rank has of the tensor in the last of `arrays`.
astra_tensor Run::part(int32_t kind, const char *name, astra_tensor t) {
  const char *of = kind == ASTRA_MESH_STATE ? nullptr : settings.entry.c_str();
  if (!ranks.isCut(kind, of, name)) return t;
  if (t.strides) throw Refusal{Failure, string("'") + name + "' is cut: its file must be in C order"};
  Npy &a = arrays.back(), local;
  local.dtype = a.dtype, local.shape = ranks.localShape(kind, of, name, a.shape);
  local.data.resize(Ranks::bytes(a.dtype, local.shape));
  ranks.take(check, kind, of, name, a.dtype, a.shape, a.data.data(), local.data.data());
  a = std::move(local);
  return rowMajor(a);
}

/// The logical tensor of all ranks' parts.
Npy Run::whole(int32_t kind, const char *name, Npy local) {
  const char *of = kind == ASTRA_MESH_STATE ? nullptr : settings.entry.c_str();
  if (!ranks.isCut(kind, of, name)) return local;
  Npy a;
  a.dtype = local.dtype, a.shape = ranks.logicalShape(kind, of, name, local.shape);
  a.data.resize(Ranks::bytes(a.dtype, a.shape));
  ranks.join(check, kind, of, name, a.dtype, a.shape, local.data.data(), a.data.data());
  return a;
}

/// Whoever gives it on a command line vouches for what the bundle declares of it.
void Run::registerFunction(const string &name, const string &place) {
  size_t colon = place.rfind(':');
  if (colon == string::npos || !colon || colon + 1 == place.size())
    throw Refusal{Usage, "--function " + name + ": '" + place + "' is not LIBRARY:SYMBOL"};
  string library = place.substr(0, colon), symbol = place.substr(colon + 1);
  if (!astra_runtime_register) throw Refusal{Unsupported, "--function: this library of the runtime is older than it"};
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL); // until the end of the process
  void *fn = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  if (!fn) throw Refusal{Failure, "--function " + name + ": " + dlerror()};
  check(astra_runtime_register(h.runtime, name.c_str(), reinterpret_cast<astra_function_fn>(fn), nullptr,
                               ASTRA_FUNCTION_DETERMINISTIC, check));
}

/// What the calls of all ranks have in common; of values, which are compared when they are there, see `note`.
void Run::requireSame() {
  auto of = [](const auto &pairs, bool withValues) {
    string text;
    for (auto &[name, value] : pairs) text += name + "=" + (withValues ? value : "") + ",";
    return checksum(text.data(), text.size());
  };
  auto number = [](int64_t v) { return checksum(&v, sizeof v); };
  ranks.requireSame(check, {{"--entry", checksum(settings.entry.data(), settings.entry.size())},
                            {"--dim", of(settings.dims, true)},
                            {"--repeat", number(settings.repeat)},
                            {"--get-state", of(settings.getStates, false)},
                            {"--save-states", number(settings.savedStates.empty())},
                            {"--trace", number(settings.trace.empty())}});
}

/// The last of `values` has this logical tensor too.
void Run::note(const string &name, const Npy &a) {
  if (ranks.size() < 2) return;
  uint64_t &sum = values.back().sum;
  sum = checksum(name.data(), name.size(), sum);
  sum = checksum(a.shape.data(), a.shape.size() * sizeof(a.shape[0]), sum);
  int order = a.fortranOrder;
  sum = checksum(&order, sizeof order, sum);
  sum = checksum(a.data.data(), a.data.size(), sum);
}

void Run::load(const string &path) {
  check(astra_runtime_init(&h.runtime, nullptr, check));
  for (auto &[name, place] : settings.functions) registerFunction(name, place);
  openDevice(settings.where, machine, h, check);
  check(astra_pool_init(&h.pool, h.device, nullptr, check));
  astra_bundle_options bundle = ASTRA_INIT(astra_bundle_options);
  bundle.flags = (settings.verify ? ASTRA_VERIFY_ALL : 0) | (settings.strict ? ASTRA_REQUIRE_STRICT : 0);
  check.file = path;
  check(astra_bundle_init_file(&h.bundle, h.runtime, path.c_str(), &bundle, check));
  check(astra_bundle_find_entry(h.bundle, settings.entry.c_str(), &entry, check));
  ranks.open(h, settings.engine, check);
  requireSame();
  check(astra_loaded_init(&h.loaded, h.bundle, &h.device, 1, check));
  check.file = "";
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(h.bundle, &info));
  for (auto &[name, file] : settings.params) {
    astra_tensor_info wanted = ASTRA_INIT(astra_tensor_info);
    for (uint32_t i = 0; i < info.num_params; ++i)
      if (check(astra_bundle_get_param(h.bundle, i, &wanted)); name == wanted.name) break;
    astra_tensor t = tensorFrom(file, wanted.dtype);
    note(name, arrays.back());
    check(astra_loaded_set_param(h.loaded, name.c_str(), &t, check));
  }
  std::vector<astra_dim_value> dims;
  for (auto &[name, value] : settings.dims) {
    int64_t v;
    if (!parseInteger(value, INT64_MIN, INT64_MAX, v))
      throw Refusal{Usage, "--dim " + name + ": '" + value + "' is not a whole number"};
    dims.push_back({name.c_str(), v});
  }
  astra_session_options session = ASTRA_INIT(astra_session_options);
  dims = ranks.dims(std::move(dims));
  session.dims = dims.data();
  session.num_dims = uint32_t(dims.size());
  check(astra_session_init(&h.session, h.loaded, &session, check));
  check(astra_stream_init(&h.stream, h.device, check));
  ranks.begin(h, check);
  if (!settings.states.empty()) loadStates(settings.states, info.num_states);
  for (auto &[name, file] : settings.setStates) {
    astra_tensor_info wanted = ASTRA_INIT(astra_tensor_info);
    for (uint32_t i = 0; i < info.num_states; ++i)
      if (check(astra_bundle_get_state(h.bundle, i, &wanted)); name == wanted.name) break;
    astra_tensor t = tensorFrom(file, wanted.dtype);
    note(name, arrays.back());
    t = part(ASTRA_MESH_STATE, name.c_str(), t);
    check(astra_session_set_state(h.session, name.c_str(), &t, check));
  }
}

/// Every tensor of the file must be a state; states that it does not have stay.
void Run::loadStates(const string &path, uint32_t count) {
  Safetensors file;
  string error;
  if (!readSafetensors(path, file, error)) throw Refusal{Failure, error};
  std::map<string, astra_tensor_info> states;
  for (uint32_t i = 0; i < count; ++i) {
    astra_tensor_info s = ASTRA_INIT(astra_tensor_info);
    check(astra_bundle_get_state(h.bundle, i, &s));
    states.emplace(s.name, s);
  }
  for (auto &[name, array] : file.tensors) {
    auto state = states.find(name);
    if (state == states.end())
      throw Refusal{Failure, path + ": has '" + name + "', which is no state of the bundle (astra-inspect lists them)"};
    Npy &a = arrays.emplace_back(std::move(array));
    if (!adopt(a, state->second.dtype, error)) throw Refusal{Failure, path + ": '" + name + "': " + error};
    note(name, a);
    astra_tensor t = part(ASTRA_MESH_STATE, name.c_str(), rowMajor(a));
    check.file = path;
    check(astra_session_set_state(h.session, name.c_str(), &t, check));
    check.file = "";
  }
}

/// Moves what a timed call reads into memory of the runtime, where outputs lie too: aligned, the large in huge pages.
void Run::place(astra_tensor &t) {
  if (!t.data_bytes) return;
  astra_buffer *buffer;
  check(astra_buffer_init(&buffer, h.pool, t.data_bytes, check));
  h.buffers.push_back(buffer);
  std::memcpy(astra_buffer_data(buffer), t.data, t.data_bytes);
  std::vector<uint8_t>().swap(arrays.back().data);
  t.data = astra_buffer_data(buffer);
}

void Run::gatherInputs() {
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  check(astra_entry_get_info(entry, &info));
  std::vector<const string *> files(info.num_inputs);
  for (auto &[name, file] : settings.inputs) {
    uint32_t index;
    check(astra_entry_find_input(entry, name.c_str(), &index, check));
    files[index] = &file;
  }
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    astra_tensor_info wanted = ASTRA_INIT(astra_tensor_info);
    check(astra_entry_get_input(entry, i, &wanted));
    if (!files[i])
      throw Refusal{Usage, "input " + string(wanted.name) + " is missing: give --input " + wanted.name + "=FILE.npy"};
    astra_tensor t = tensorFrom(*files[i], wanted.dtype);
    values.push_back({string("--input ") + wanted.name, checksum("", 0)});
    note(wanted.name, arrays.back());
    inputs.push_back(part(ASTRA_MESH_INPUT, wanted.name, t));
    if (settings.repeat > 1 && settings.where.onHost()) place(inputs.back());
  }
  ranks.requireSame(check, values);
  outputs.resize(info.num_outputs);
}

void Run::makeOutputs() {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    OutputTensor &o = outputs[i];
    uint64_t bytes;
    check(astra_entry_get_output(entry, i, &o.info));
    check(astra_entry_output_bound(entry, h.session, inputs.data(), uint32_t(inputs.size()), i, o.bound, &o.rank,
                                   &bytes, check));
    check(astra_buffer_init(&o.buffer, h.pool, bytes, check));
    h.buffers.push_back(o.buffer);
  }
  for (auto *list : {&settings.outputs, &settings.expected})
    for (auto &[name, file] : *list) {
      uint32_t index;
      check(astra_entry_find_output(entry, name.c_str(), &index, check));
    }
}

void Run::call() {
  std::vector<astra_tensor> out;
  for (OutputTensor &o : outputs) {
    astra_tensor &t = out.emplace_back(ASTRA_INIT(astra_tensor));
    t.buffer = o.buffer;
    t.dtype = o.info.dtype;
    t.ndim = o.rank;
    t.shape = o.bound;
  }
  astra_call c = ASTRA_INIT(astra_call);
  c.entry = entry;
  c.inputs = inputs.data();
  c.num_inputs = uint32_t(inputs.size());
  c.outputs = out.data();
  c.num_outputs = uint32_t(out.size());
  c.flags = ASTRA_CALL_ALLOW_COPY;
  for (int64_t i = 0; i < settings.repeat; ++i) {
    if (!settings.trace.empty() && i + 1 == settings.repeat) {
      trace.start();
      check(astra_session_set_trace(h.session, Trace::record, &trace));
    }
    auto begin = std::chrono::steady_clock::now();
    astra_promise *promise = nullptr;
    check(astra_session_submit(h.session, h.stream, &c, &promise, check));
    astra_status status = astra_promise_wait(promise, check);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    for (uint32_t o = 0; status == ASTRA_OK && o < outputs.size(); ++o)
      status = astra_promise_output_shape(promise, o, outputs[o].shape, nullptr, check);
    astra_promise_free(&promise);
    check(status);
  }
  bringOutputs();
  std::sort(times.begin(), times.end());
  if (settings.repeat < 2 || settings.json) return;
  double sum = 0;
  for (double t : times) sum += t;
  std::printf("%s, %" PRId64 " calls: median %.1f us, least %.1f us, mean %.1f us, most %.1f us\n",
              astra_loaded_target(h.loaded), settings.repeat, times[times.size() / 2], times.front(),
              sum / double(times.size()), times.back());
}

/// Outputs lie where they were written; those of a GPU are copied.
void Run::bringOutputs() {
  astra_promise *last = nullptr;
  for (OutputTensor &o : outputs) {
    o.data = static_cast<const uint8_t *>(astra_buffer_data(o.buffer));
    uint64_t bytes = astra_buffer_bytes(o.buffer);
    if (o.data || !bytes) continue;
    std::vector<uint8_t> &copy = copies.emplace_back(bytes);
    check(astra_stream_read(h.stream, copy.data(), o.buffer, 0, bytes, nullptr, check));
    o.data = copy.data();
  }
  check(astra_stream_mark(h.stream, &last, check));
  astra_status status = astra_promise_wait(last, check);
  astra_promise_free(&last);
  check(status);
}

/// The actual elements, row-major: rows are gathered where the allocated shape is larger.
Npy Run::result(const OutputTensor &o) const {
  Npy a;
  a.dtype = o.info.dtype;
  a.shape.assign(o.shape, o.shape + o.rank);
  uint64_t bits = astra_dtype_bits(o.info.dtype);
  uint64_t rows = 1, row = (bits + 7) / 8, allocatedRow = row;
  if (o.rank) {
    row = (uint64_t(o.shape[o.rank - 1]) * bits + 7) / 8;
    allocatedRow = (uint64_t(o.bound[o.rank - 1]) * bits + 7) / 8;
  }
  for (int32_t i = 0; i + 1 < o.rank; ++i) rows *= uint64_t(o.shape[i]);
  std::vector<int64_t> at(o.rank ? o.rank - 1 : 0);
  for (uint64_t r = 0; r < rows; ++r) {
    uint64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place = place * uint64_t(o.bound[i]) + uint64_t(at[i]);
    a.data.insert(a.data.end(), o.data + place * allocatedRow, o.data + place * allocatedRow + row);
    for (size_t i = at.size(); i-- && ++at[i] == o.shape[i];) at[i] = 0;
  }
  return a;
}

/// Notes in `differences` how expected outputs differ.
void Run::writeAndCompare() {
  string error;
  auto fileOf = [](auto &list, const char *name) -> const string * {
    for (auto &[n, file] : list)
      if (n == name) return &file;
    return nullptr;
  };
  for (OutputTensor &o : outputs) {
    Npy a = whole(ASTRA_MESH_OUTPUT, o.info.name, result(o));
    if (!ranks.first()) continue;
    const string *out = fileOf(settings.outputs, o.info.name), *expected = fileOf(settings.expected, o.info.name);
    if (out && !writeNpy(*out, a, error)) throw Refusal{Failure, error};
    if (expected) {
      tensorFrom(*expected, a.dtype);
      if (arrays.back().fortranOrder) throw Refusal{Failure, *expected + ": expected bytes must be in C order"};
      if (auto wrong = difference(a, arrays.back(), *expected, tolerance)) {
        differences.push_back(string("output ") + o.info.name + *wrong);
        std::fprintf(stderr, "astra-run: %s\n", differences.back().c_str());
      }
    }
    if (settings.json)
      shown.push_back(shortJson(o.info.name, a));
    else if (!out && !expected && settings.repeat == 1)
      std::printf("%s\n", shortText(o.info.name, a).c_str());
  }
}

/// All that was printed otherwise, as one object.
void Run::printJson() const {
  auto list = [](const auto &items, auto text) {
    string out = "[";
    for (const auto &item : items) out += (out.size() > 1 ? ", " : "") + text(item);
    return out + "]";
  };
  auto same = [](const string &text) { return text; };
  string out = "{\n \"target\": " + quoted(astra_loaded_target(h.loaded)) + ",\n \"entry\": " + quoted(settings.entry) +
               ",\n \"calls\": " + std::to_string(settings.repeat);
  if (!times.empty()) {
    double sum = 0;
    for (double t : times) sum += t;
    out += ",\n \"microseconds\": {\"median\": " + jsonNumber(times[times.size() / 2]) +
           ", \"least\": " + jsonNumber(times.front()) + ", \"mean\": " + jsonNumber(sum / double(times.size())) +
           ", \"most\": " + jsonNumber(times.back()) + "}";
  }
  out += ",\n \"outputs\": " + list(shown, same) + ",\n \"differences\": " + list(differences, quoted) + "\n}\n";
  std::fputs(out.c_str(), stdout);
}

/// What a state is now.
Npy Run::state(const astra_tensor_info &info) {
  const void *data;
  uint64_t bytes;
  check(astra_session_lease_state(h.session, info.name, &data, &bytes, check));
  Npy a;
  a.dtype = info.dtype;
  for (int32_t axis = 0; axis < info.ndim; ++axis) {
    if (axis == 0 && ranks.isCut(ASTRA_MESH_STATE, nullptr, info.name)) {
      a.shape.push_back(ranks.localShards());
      continue;
    }
    // A symbolic extent shows in the number of bytes alone: such a state is saved flat.
    if (info.lower[axis] != info.upper[axis]) {
      a.shape.assign(1, int64_t(bytes * 8 / astra_dtype_bits(a.dtype)));
      break;
    }
    a.shape.push_back(info.lower[axis]);
  }
  a.data.assign(static_cast<const uint8_t *>(data), static_cast<const uint8_t *>(data) + bytes);
  check(astra_session_return_state(h.session, info.name, check));
  return a;
}

void Run::saveStates() {
  if (settings.getStates.empty() && settings.savedStates.empty()) return;
  astra_bundle_info bundle = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(h.bundle, &bundle));
  std::map<string, Npy> now;
  for (uint32_t i = 0; i < bundle.num_states; ++i) {
    astra_tensor_info info = ASTRA_INIT(astra_tensor_info);
    check(astra_bundle_get_state(h.bundle, i, &info));
    auto isAsked = [&](const auto &wanted) { return wanted.first == info.name; };
    if (!settings.savedStates.empty() || std::any_of(settings.getStates.begin(), settings.getStates.end(), isAsked))
      now.emplace(info.name, whole(ASTRA_MESH_STATE, info.name, state(info)));
  }
  if (!ranks.first()) return;
  string error;
  for (auto &[name, file] : settings.getStates) {
    auto found = now.find(name);
    if (found == now.end()) throw Refusal{Failure, "the bundle has no state '" + name + "' (astra-inspect lists them)"};
    if (!writeNpy(file, found->second, error)) throw Refusal{Failure, error};
  }
  if (settings.savedStates.empty()) return;
  std::vector<NamedTensor> all;
  for (auto &[name, a] : now) all.push_back({name, a.dtype, a.shape, a.data.data()});
  if (!writeSafetensors(settings.savedStates, all, {}, error)) throw Refusal{Failure, error};
}

/// One file, with the events of all ranks: their clock is the machine's.
void Run::writeTrace() {
  if (settings.trace.empty()) return;
  uint64_t start = ranks.least(check, trace.begin());
  std::vector<string> all = ranks.gather(check, trace.text(start, ranks.rank(), ranks.size()));
  string error;
  if (ranks.first() && !Trace::write(settings.trace, all, error)) throw Refusal{Failure, error};
}

int Run::operator()(const string &path) {
  load(path);
  gatherInputs();
  makeOutputs();
  call();
  saveStates();
  writeTrace();
  writeAndCompare();
  if (settings.json)
    printJson();
  else if (!settings.where.emulate.empty())
    std::printf("%s: the host build of GPU kernels, %" PRIu64 " kernels, %" PRIu64 " launches, %" PRIu64
                " threads; no GPU was used\n",
                astra_loaded_target(h.loaded), machine.kernels(), machine.launches.load(), machine.threads.load());
  return differences.empty() ? Ok : Mismatch;
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  Program program = describe(settings);
  std::vector<string> files;
  if (int code = parse(program, argc, argv, files); code >= 0) return code;
  if (files.size() != 1) return complain(program, Usage, "give one bundle (see astra-run --help)");
  if (string wrong = complaint(settings.where); !wrong.empty()) return complain(program, Usage, wrong);
  if (settings.seed >= 0 && settings.where.emulate.empty())
    return complain(program, Usage, "--seed is of --emulate: it orders what a GPU runs at once");
  if (!settings.tolerance.empty() && settings.expected.empty())
    return complain(program, Usage, "--tolerance is of --expect: say what an output is compared with");
  if (string wrong = clash(settings, files[0]); !wrong.empty()) return complain(program, Usage, wrong);
  try {
    Run run(settings);
    return run(files[0]);
  } catch (const Refusal &r) {
    return complain(program, r.code, r.text);
  }
}
