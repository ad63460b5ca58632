//===- RefusalTest.cpp: bad input, each kind with its own status ----------===//
// Takes:    calls, files and manifests that are wrong in one way each.
// Gives:    the status and the sentence of each.
// Keeps:    after every refusal the session still works and out-parameters are untouched.
// Does not: mutate at random (MutateTest.cpp).
#include "Client.h"

#include <functional>

using namespace astra;
using namespace astra::test;

namespace {

//===- Calls --------------------------------------------------------------===//

/// What a call to @add is made of; a row of the table breaks one thing.
struct Wrong {
  std::vector<float> memory = std::vector<float>(64);
  Shape shape = {8}, strides;
  astra_tensor inputs[2], output;
  astra_call call = ASTRA_INIT(astra_call);
  Machine &machine;
  explicit Wrong(Machine &m) : machine(m) {
    for (astra_tensor *t : {&inputs[0], &inputs[1], &output}) {
      *t = ASTRA_INIT(astra_tensor);
      t->data = memory.data(), t->data_bytes = 256,
      t->byte_offset = uint64_t(t == &output      ? 128
                                : t == &inputs[1] ? 64
                                                  : 0);
      t->dtype = ASTRA_F32, t->ndim = 1, t->shape = shape.data();
    }
    call.entry = m.entry("add");
    call.inputs = inputs, call.num_inputs = 2, call.outputs = &output, call.num_outputs = 1;
  }
};

struct Row {
  const char *name;
  std::function<void(Wrong &)> breaks;
  astra_status status;
  const char *says;
};

const Row calls[] = {
    {"dtype", [](Wrong &w) { w.inputs[1].dtype = ASTRA_F16; }, ASTRA_WRONG_DTYPE,
     "input y has dtype f16; it must be f32"},
    {"noDtype", [](Wrong &w) { w.inputs[1].dtype = 99; }, ASTRA_WRONG_DTYPE, "unknown dtype 99"},
    {"rank", [](Wrong &w) { w.inputs[0].ndim = 0; }, ASTRA_WRONG_RANK, "input x has 0 dims; it must have 1"},
    {"rankTooHigh", [](Wrong &w) { w.inputs[0].ndim = 17; }, ASTRA_WRONG_RANK, "17 dims"},
    {"negativeRank", [](Wrong &w) { w.inputs[0].ndim = -1; }, ASTRA_WRONG_RANK, "-1 dims"},
    {"shapeMissing", [](Wrong &w) { w.inputs[0].shape = nullptr; }, ASTRA_INVALID_ARGUMENT, "no shape"},
    {"shape",
     [](Wrong &w) {
       static const int64_t seven = 7;
       w.inputs[1].shape = &seven;
     },
     ASTRA_WRONG_SHAPE, "axis 0 of input y has 7 elements; it must have 8"},
    {"outputShape",
     [](Wrong &w) {
       static const int64_t nine = 9;
       w.output.shape = &nine;
     },
     ASTRA_WRONG_SHAPE, "axis 0 of output z has 9 elements; it must have 8"},
    {"negativeExtent", [](Wrong &w) { w.shape[0] = -8; }, ASTRA_WRONG_SHAPE, "negative"},
    {"hugeExtent", [](Wrong &w) { w.shape[0] = INT64_MAX; }, ASTRA_WRONG_SHAPE, "too large"},
    {"dimBound",
     [](Wrong &w) {
       w.shape[0] = 5001, w.memory.resize(20000), w.inputs[0].data = w.inputs[1].data = w.output.data = w.memory.data();
       w.inputs[0].data_bytes = w.inputs[1].data_bytes = w.output.data_bytes = 80000;
     },
     ASTRA_OUT_OF_BOUNDS, "dim n is 5001; it must be in 0 .. 5000"},
    {"capacity", [](Wrong &w) { w.output.byte_offset = 228; }, ASTRA_CAPACITY,
     "tensor z needs 32 bytes from byte 228 on and its storage has 256"},
    {"offsetOverflow", [](Wrong &w) { w.output.byte_offset = UINT64_MAX - 3; }, ASTRA_CAPACITY, "tensor z"},
    {"noStorage", [](Wrong &w) { w.inputs[0].data = nullptr; }, ASTRA_INVALID_ARGUMENT, "no storage"},
    {"misaligned", [](Wrong &w) { w.inputs[0].byte_offset = 2; }, ASTRA_INVALID_ARGUMENT, "not aligned to 4 bytes"},
    {"strides", [](Wrong &w) { w.strides = {2}, w.inputs[1].byte_offset = 0, w.inputs[0].strides = w.strides.data(); },
     ASTRA_WRONG_STRIDES, "input x is not row-major"},
    {"stridesOverflow", [](Wrong &w) { w.strides = {INT64_MAX / 2}, w.inputs[0].strides = w.strides.data(); },
     ASTRA_OVERFLOW, "strides"},
    {"stridesBefore", [](Wrong &w) { w.strides = {-1}, w.inputs[0].strides = w.strides.data(); }, ASTRA_CAPACITY,
     "tensor x"},
    {"outputStrides", [](Wrong &w) { w.strides = {2}, w.output.strides = w.strides.data(); }, ASTRA_WRONG_STRIDES,
     "output z is not row-major"},
    {"overlapIn", [](Wrong &w) { w.output.byte_offset = 92; }, ASTRA_OVERLAP, "output z overlaps"},
    {"overlapSame", [](Wrong &w) { w.output.byte_offset = 0; }, ASTRA_OVERLAP, "output z overlaps"},
    {"inputFlags", [](Wrong &w) { w.inputs[0].flags = 1; }, ASTRA_INVALID_ARGUMENT, "donated and has no buffer"},
    {"unknownFlags", [](Wrong &w) { w.inputs[0].flags = 4; }, ASTRA_NEWER_CLIENT, "flags 0x4"},
    {"outputFlags", [](Wrong &w) { w.output.flags = 1; }, ASTRA_INVALID_ARGUMENT, "no more"},
    {"callFlags", [](Wrong &w) { w.call.flags = 8; }, ASTRA_NEWER_CLIENT, "flags 0x8"},
    {"fewInputs", [](Wrong &w) { w.call.num_inputs = 1; }, ASTRA_INVALID_ARGUMENT, "1 inputs; entry add takes 2"},
    {"noInputs", [](Wrong &w) { w.call.inputs = nullptr; }, ASTRA_INVALID_ARGUMENT, "is NULL"},
    {"manyOutputs", [](Wrong &w) { w.call.num_outputs = 2; }, ASTRA_INVALID_ARGUMENT, "2 outputs; entry add gives 1"},
    {"noEntry", [](Wrong &w) { w.call.entry = nullptr; }, ASTRA_INVALID_ARGUMENT, "the entry is NULL"},
    {"noSize", [](Wrong &w) { w.call.size = 0; }, ASTRA_INVALID_ARGUMENT, "the size of astra_call is 0"},
    {"tensorNoSize", [](Wrong &w) { w.inputs[0].size = 0; }, ASTRA_INVALID_ARGUMENT, "the size of astra_tensor is 0"},
    {"afterNull", [](Wrong &w) { w.call.num_after = 1; }, ASTRA_INVALID_ARGUMENT, "after is NULL"},
    {"missingDim",
     [](Wrong &w) {
       w.call.entry = w.machine.entry("loop"), w.call.num_inputs = 1, w.inputs[0].ndim = w.output.ndim = 0;
     },
     ASTRA_MISSING_VALUE, "entry loop needs dim count; set it with astra_session_set_dim"},
};

struct Call : testing::TestWithParam<Row> {};
TEST_P(Call, IsRefused) {
  Machine machine;
  Diag &diag = machine.diag;
  Wrong wrong(machine);
  GetParam().breaks(wrong);
  astra_promise *promise = reinterpret_cast<astra_promise *>(8);
  EXPECT_FAIL(GetParam().status, GetParam().says,
              astra_session_submit(machine.session, machine.stream, &wrong.call, &promise, &diag));
  EXPECT_EQ(promise, reinterpret_cast<astra_promise *>(8));
  Wrong right(machine);
  EXPECT_OK(astra_session_submit(machine.session, machine.stream, &right.call, nullptr, &diag));
}
template <typename T> std::string rowName(const testing::TestParamInfo<T> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Bad, Call, testing::ValuesIn(calls), rowName<Row>);

TEST(Names, AreLookedUp) {
  Machine m;
  Diag &diag = m.diag;
  const astra_entry *entry = nullptr;
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no entry 'nothing'", astra_bundle_find_entry(m.bundle, "nothing", &entry, &diag));
  uint32_t index = 0;
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no input 'q' among 2; the first is 'x'",
              astra_entry_find_input(m.entry("add"), "q", &index, &diag));
  std::vector<float> v(1);
  Tensor t = tensor(v, {});
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no state 'q'", astra_session_set_state(m.session, "q", &t, &diag));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no param 'q'", astra_session_set_param(m.session, "q", &t, &diag));
  EXPECT_FAIL(ASTRA_WRONG_RANK, "param w", astra_session_set_param(m.session, "w", &t, &diag));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "no dim 'q'", astra_session_set_dim(m.session, "q", 1, &diag));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "the shape of an input gives it", astra_session_set_dim(m.session, "n", 1, &diag));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "given when the session is made", astra_session_set_dim(m.session, "cap", 1, &diag));
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "the program computes it", astra_session_set_dim(m.session, "k", 1, &diag));
  EXPECT_FAIL(ASTRA_OUT_OF_BOUNDS, "0 .. 1000", astra_session_set_dim(m.session, "count", 1001, &diag));
  astra_session *session = nullptr;
  EXPECT_FAIL(ASTRA_MISSING_VALUE, "state cache needs dim cap", astra_session_init(&session, m.loaded, nullptr, &diag));
  astra_device *device = nullptr;
  EXPECT_FAIL(ASTRA_UNSUPPORTED, "no device is named 'cuda'",
              astra_device_init(&device, m.runtime, "cuda", nullptr, &diag));
  astra_bundle *bundle = nullptr;
  EXPECT_FAIL(ASTRA_IO, "/nowhere", astra_bundle_init_file(&bundle, m.runtime, "/nowhere", nullptr, &diag));
  EXPECT_FAIL(ASTRA_IO, "not a regular file", astra_bundle_init_file(&bundle, m.runtime, "/", nullptr, &diag));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "not 64-byte aligned",
              astra_bundle_init_memory(&bundle, m.runtime, m.memory.data + 1, 100, nullptr, &diag));
}

TEST(Levels, ThatAreNotThere) {
  Machine m;
  Diag &diag = m.diag;
  auto load = [&](const char *level) {
    Device device;
    astra_device_options o = ASTRA_INIT(astra_device_options);
    o.level = level;
    EXPECT_OK(astra_device_init(device.out(), m.runtime, "cpu", &o, &diag));
    astra_device *devices[] = {device};
    astra_loaded *loaded = nullptr;
    return astra_loaded_init(&loaded, m.bundle, devices, 1, &diag);
  };
  EXPECT_FAIL(ASTRA_NO_TARGET, "lacks quantum, which cpu:x86-64-future needs", load("x86-64-future"));
  EXPECT_FAIL(ASTRA_NO_TARGET, "no code for the level 'sparc'", load("sparc"));
  EXPECT_FAIL(ASTRA_NO_TARGET, "no code for this kind of machine", load("aarch64"));
}

TEST(Structs, OfOtherVersions) {
  Machine m;
  Diag &diag = m.diag;
  struct {
    astra_device_options options;
    uint64_t later[2];
  } newer = {};
  newer.options.size = sizeof(newer);
  Device device;
  EXPECT_OK(astra_device_init(device.out(), m.runtime, "cpu", &newer.options, &diag));
  newer.later[1] = 1;
  astra_device *out = nullptr;
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "astra_device_options",
              astra_device_init(&out, m.runtime, "cpu", &newer.options, &diag));
  astra_device_options older = ASTRA_INIT(astra_device_options);
  older.size = offsetof(astra_device_options, level);
  older.level = "not read";
  Device second;
  EXPECT_OK(astra_device_init(second.out(), m.runtime, "cpu", &older, &diag));
  struct {
    astra_bundle_info info;
    uint64_t later;
  } info = {};
  info.info.size = sizeof(info), info.later = 77;
  EXPECT_EQ(astra_bundle_get_info(m.bundle, &info.info), ASTRA_OK);
  EXPECT_EQ(info.later, 0u);
  astra_diag small = ASTRA_INIT(astra_diag);
  small.size = offsetof(astra_diag, text) + 6;
  small.text[6] = '!';
  const astra_entry *entry = nullptr;
  EXPECT_EQ(astra_bundle_find_entry(m.bundle, "nothing", &entry, &small), ASTRA_UNKNOWN_NAME);
  EXPECT_STREQ(small.text, "there");
  EXPECT_EQ(small.text[6], '!');
}

//===- Files --------------------------------------------------------------===//

struct Opened : testing::Test {
  Opened() { EXPECT_EQ(astra_runtime_init(runtime.out(), nullptr, &diag), ASTRA_OK); }
  astra_status open(const Bytes &bytes, uint32_t flags = 0) {
    Aligned memory(bytes);
    astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
    o.flags = flags;
    astra_bundle *bundle = nullptr;
    diag = Diag();
    astra_status s = astra_bundle_init_memory(&bundle, runtime, memory.data, memory.size, &o, &diag);
    EXPECT_EQ(bundle != nullptr, s == ASTRA_OK);
    EXPECT_EQ(astra_bundle_free(&bundle), ASTRA_OK);
    return s;
  }
  Diag diag;
  Runtime runtime;
};
using File = Opened;

fmt::Header &header(Bytes &b) { return *reinterpret_cast<fmt::Header *>(b.data()); }
fmt::Section *sections(Bytes &b) { return reinterpret_cast<fmt::Section *>(b.data() + 64); }

TEST_F(File, Header) {
  const Bytes &good = Machine::standard();
  EXPECT_OK(open(good, ASTRA_VERIFY_ALL | ASTRA_REQUIRE_STRICT));
  Bytes b = good;
  b[0] = 'P';
  EXPECT_FAIL(ASTRA_NOT_A_BUNDLE, "astra-compile", open(b));
  EXPECT_FAIL(ASTRA_NOT_A_BUNDLE, "begin", open(Bytes(5)));
  for (size_t cut : {size_t(8), size_t(63), size_t(64), size_t(200), good.size() - 1})
    EXPECT_FAIL(ASTRA_TRUNCATED, "", open(Bytes(good.begin(), good.begin() + ptrdiff_t(cut))));
  b = good, b.push_back(0);
  EXPECT_FAIL(ASTRA_TRUNCATED, "header says", open(b));
  b = good, header(b).major = 2, rehash(b);
  EXPECT_FAIL(ASTRA_NEWER_FORMAT, "format 2.0", open(b));
  b = good, header(b).minor = 1, rehash(b);
  EXPECT_FAIL(ASTRA_NEWER_FORMAT, "newer library", open(b));
  b = good, header(b).features |= 1ull << 40, rehash(b);
  EXPECT_FAIL(ASTRA_UNKNOWN_FEATURE, "0x10000000000", open(b));
  b = good, header(b).digest[3] ^= 1;
  EXPECT_FAIL(ASTRA_CORRUPT, "header and the section table", open(b));
  b = good, header(b).sectionCount = 0, rehash(b);
  EXPECT_FAIL(ASTRA_MALFORMED, "0 sections", open(b));
}

TEST_F(File, Sections) {
  const Bytes &good = Machine::standard();
  auto altered = [&](auto change) {
    Bytes b = good;
    change(sections(b));
    rehash(b);
    return open(b);
  };
  EXPECT_FAIL(ASTRA_MALFORMED, "unknown kind 9", altered([](fmt::Section *s) { s[1].kind = 9; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "manifest is not section 0", altered([](fmt::Section *s) { s[1].kind = 1; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "signature is not the last", altered([](fmt::Section *s) { s[1].kind = 4; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "reserved", altered([](fmt::Section *s) { s[1].reserved = 1; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "misaligned", altered([](fmt::Section *s) { s[1].offset += 64; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "misaligned", altered([](fmt::Section *s) { s[2].offset = s[1].offset; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "behind the end", altered([](fmt::Section *s) { s[3].bytes = UINT64_MAX - 100; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "two weights", altered([](fmt::Section *s) { s[2].kind = 3; }));
  EXPECT_FAIL(ASTRA_MALFORMED, "last section ends", altered([](fmt::Section *s) { s[3].bytes--; }));
  Bytes b = good;
  b[sections(b)[1].offset - 1] = 1;
  EXPECT_FAIL(ASTRA_MALFORMED, "gap before section 1 is not zero", open(b));
  b = good, b[sections(b)[0].offset + 100] ^= 1;
  EXPECT_FAIL(ASTRA_CORRUPT, "section 0 (manifest)", open(b));
  b = good, b[sections(b)[2].offset] ^= 1;
  EXPECT_OK(open(b));
  EXPECT_FAIL(ASTRA_CORRUPT, "section 2 (code)", open(b, ASTRA_VERIFY_ALL));
  b = good, b[sections(b)[3].offset] ^= 1;
  EXPECT_OK(open(b));
  EXPECT_FAIL(ASTRA_CORRUPT, "section 3 (weights)", open(b, ASTRA_VERIFY_ALL));
}

TEST_F(File, Assets) {
  auto found = [&](const Bytes &b, const char *name, std::vector<float> &values) {
    Aligned memory(b);
    Bundle bundle;
    EXPECT_EQ(astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, nullptr), ASTRA_OK);
    EXPECT_EQ(astra_bundle_num_assets(bundle), 2u);
    EXPECT_STREQ(astra_bundle_asset_name(bundle, 0), "words");
    EXPECT_EQ(astra_bundle_asset_name(bundle, 2), nullptr);
    const void *data = nullptr;
    uint64_t bytes = 0;
    astra_status s = astra_bundle_find_asset(bundle, name, &data, &bytes, &diag);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    const auto *begin = static_cast<const float *>(data);
    values.assign(begin, begin + bytes / 4);
    return s;
  };
  const Bytes &good = Machine::standard();
  std::vector<float> values;
  EXPECT_OK(found(good, "words", values));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  EXPECT_OK(found(good, "empty", values));
  EXPECT_TRUE(values.empty());
  EXPECT_FAIL(ASTRA_UNKNOWN_NAME, "there is no asset 'other' among 2; the first is 'words'",
              found(good, "other", values));
  EXPECT_FAIL(ASTRA_INVALID_ARGUMENT, "NULL", found(good, nullptr, values));
  Bytes b = good;
  const std::vector<float> words = {1, 2, 3};
  const auto *wanted = reinterpret_cast<const uint8_t *>(words.data());
  auto at = std::find_end(b.begin(), b.end(), wanted, wanted + 12);
  ASSERT_NE(at, b.end());
  *at ^= 1;
  EXPECT_FAIL(ASTRA_CORRUPT, "the hash of asset 'words'", found(b, "words", values));
}

/// A device checks the code that it loads, and no other.
TEST_F(File, DamagedCode) {
  Device device;
  EXPECT_OK(astra_device_init(device.out(), runtime, "cpu", nullptr, &diag));
  auto load = [&](uint32_t section) {
    Bytes b = Machine::standard();
    b[sections(b)[section].offset] ^= 1;
    Aligned memory(b);
    Bundle bundle;
    Loaded loaded;
    astra_device *devices[] = {device};
    EXPECT_EQ(astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, nullptr, nullptr), ASTRA_OK);
    astra_status s = astra_loaded_init(loaded.out(), bundle, devices, 1, &diag);
    EXPECT_EQ(loaded != nullptr, s == ASTRA_OK);
    return s;
  };
#if defined(__x86_64__)
  constexpr uint32_t own = 1, other = 2; // sections of TestBundle.cpp
#else
  constexpr uint32_t own = 2, other = 1;
#endif
  EXPECT_FAIL(ASTRA_CORRUPT, "(code) is wrong; the file is damaged", load(own));
  EXPECT_OK(load(other));
}

TEST_F(File, Contract) {
  ManifestMaker k = standardManifest();
  k.m.numerics = "device";
  Bytes device = assemble(k);
  EXPECT_OK(open(device));
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT, "--numerics=strict", open(device, ASTRA_REQUIRE_STRICT));
  k.m.numerics = "device:hopper16";
  Bytes unit = assemble(k);
  EXPECT_OK(open(unit));
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT, "--numerics=device:hopper16 and strict is demanded",
              open(unit, ASTRA_REQUIRE_STRICT));
  k.m.numerics = "devices";
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT, "devices", open(assemble(k)));
  k.m.contract = "astra-num/2";
  EXPECT_FAIL(ASTRA_WRONG_CONTRACT, "astra-num/2", open(assemble(k)));
  EXPECT_FAIL(ASTRA_SIGNATURE, "astra_verify_ed25519", open(device, ASTRA_VERIFY_SIGNATURE));
  EXPECT_FAIL(ASTRA_NEWER_CLIENT, "flags", open(device, 64));
}

//===- Manifests ----------------------------------------------------------===//

struct ManifestRow {
  const char *name;
  std::function<void(fmt::ManifestT &)> breaks;
  const char *says;
};

fmt::RoutineT &routine(fmt::ManifestT &m, size_t entry = 0) { return *m.entries[entry]->routine; }
fmt::LaunchT &launch(fmt::ManifestT &m, size_t entry = 0) { return *routine(m, entry).programs[0]->code[0].AsLaunch(); }
/// Entry numbers of the standard manifest.
enum { Add, Double, Apply, Accumulate, Compact, LoopEntry, Grow, Decode };

template <typename T> void append(fmt::RoutineT &r, T instr, uint32_t program = 0) {
  addInstr(r, program, std::move(instr));
}

const ManifestRow manifests[] = {
    {"exprUnderflow", [](auto &m) { m.exprs[0]->code = {{fmt::ExprCode::Add, 0}}; }, "takes more values than it has"},
    {"exprEmpty", [](auto &m) { m.exprs[0]->code.clear(); }, "leaves 0 values"},
    {"exprTwo", [](auto &m) { m.exprs[0]->code = {{fmt::ExprCode::Const, 0}, {fmt::ExprCode::Const, 0}}; },
     "leaves 2 values"},
    {"exprDeep", [](auto &m) { m.exprs[0]->code.assign(65, {fmt::ExprCode::Const, 0}); }, "more than 64 values"},
    {"exprDim", [](auto &m) { m.exprs[0]->code = {{fmt::ExprCode::Dim, 5}}; }, "uses dim 5 of 5"},
    {"exprNegativeDim", [](auto &m) { m.exprs[0]->code = {{fmt::ExprCode::Dim, -1}}; }, "uses dim -1"},
    {"exprCode", [](auto &m) { m.exprs[0]->code = {{fmt::ExprCode(15), 0}}; }, "unknown code 15"},
    {"origin", [](auto &m) { launch(m).origins = {2}; }, "names origin 2 of 2"},
    {"originBeyond", [](auto &m) { m.origins = {"a"}, launch(m).origins = {0, 1}; }, "names origin 1 of 1"},
    {"origins", [](auto &m) { m.origins = {"a"}, launch(m).origins.assign(9, 0); }, "has 9 origins; at most 8"},
    {"dimTwice", [](auto &m) { m.dims[1]->name = "n"; }, "two of the kind dim are named n"},
    {"dimEmpty", [](auto &m) { m.dims[0]->lo = 5001; }, "no legal value"},
    {"dimBound", [](auto &m) { m.dims[0]->bound = 9999; }, "bound expression 9999"},
    {"dimSays", [](auto &m) { m.dims[0]->says = {"x > 0"}; }, "no kernel has such tests"},
    {"dimSaysOfInput", [](auto &m) { m.dims[0]->says = {"x > 0"}, m.dims[0]->grid = {0}; }, "no kernel has such tests"},
    {"dimGrid",
     [](auto &m) {
       for (auto &d : m.dims)
         if (d->source == fmt::DimSource::Internal) d->says = {"x > 0"}, d->grid = {9999};
     },
     "the extent 9999 of"},
    {"dimGridOfNine",
     [](auto &m) {
       for (auto &d : m.dims)
         if (d->source == fmt::DimSource::Internal) d->says = {"x > 0"}, d->grid.assign(9, 0);
     },
     "no kernel has such tests"},
    {"dimSource", [](auto &m) { m.dims[0]->source = fmt::DimSource(7); }, "unknown source"},
    {"paramDtype", [](auto &m) { m.params[0]->dtype = fmt::DType(99); }, "unknown dtype"},
    {"paramShape", [](auto &m) { m.params[0]->shape = {INT64_MAX, 4}; }, "too large"},
    {"paramPlace", [](auto &m) { m.params[0]->place->offset = 1 << 30; }, "inside the weights section"},
    {"paramOffsetOverflow", [](auto &m) { m.params[0]->place->offset = UINT64_MAX - 63; },
     "inside the weights section"},
    {"paramAlign", [](auto &m) { m.params[0]->place->offset = 4; }, "multiple of 64"},
    {"paramHash", [](auto &m) { m.params[0]->place->sha256.pop_back(); }, "32 bytes"},
    {"paramLength", [](auto &m) { m.params[0]->place->length -= 4; }, "differs from its place"},
    {"paramPrepare", [](auto &m) { m.params[0]->prepare = 1; }, "prepare program 1 of 1"},
    {"paramNoPrepare", [](auto &m) { m.params[0]->prepare = fmt::kNone, m.params[0]->stored_bytes = 100; },
     "no prepare program"},
    {"paramFixed", [](auto &m) { m.params[0]->fixed = true, m.params[0]->place.reset(); }, "has no bytes"},
    {"paramDerive", [](auto &m) { m.params[3]->derive = 1; }, "derive program 1 of 1"},
    {"paramDeriveOfUser", [](auto &m) { m.params[0]->derive = 0; }, "is not fixed"},
    {"deriveReadsFixed", [](auto &m) { m.derives[0]->buffers[0]->index = 3; }, "reads the fixed param d"},
    {"deriveHasNoInput", [](auto &m) { m.derives[0]->buffers[0]->kind = fmt::BufferKind::Input; }, "names Input"},
    {"prepareHasNoParam", [](auto &m) { m.prepares[0]->buffers[0]->kind = fmt::BufferKind::Param; }, "names Param"},
    {"stateInit", [](auto &m) { m.states[0]->init->length = 0; }, "not as many as its shape needs"},
    {"stateShape", [](auto &m) { m.states[1]->shape[0] = m.dims[1]->bound; }, "no value there"},
    {"targetNone", [](auto &m) { m.targets.clear(); }, "no target"},
    {"targetSection", [](auto &m) { m.targets[0]->section = 3; }, "no code section"},
    {"targetRank", [](auto &m) { m.targets[0]->rank = 1; }, "same rank"},
    {"targetArch", [](auto &m) { m.targets[0]->arch = fmt::Arch(5); }, "unknown architecture"},
    {"kernelCode", [](auto &m) { m.kernels[0]->code.pop_back(); }, "code for 3 of 4 targets"},
    {"kernelOffset", [](auto &m) { m.kernels[0]->code[0]->offset = 1 << 20; }, "begins outside the code"},
    {"kernelAccess", [](auto &m) { m.kernels[0]->access[0] = fmt::Access(3); }, "unknown access"},
    {"kernelBuffers", [](auto &m) { m.kernels[0]->access.resize(300); }, "takes 300 buffers"},
    {"kernelItems", [](auto &m) { m.kernels[0]->code[1]->items = 9999; }, "a number of work items is expression 9999"},
    {"entryTwice", [](auto &m) { m.entries[1]->name = "add"; }, "two of the kind entry"},
    {"entryName", [](auto &m) { m.entries[1]->name = ""; }, "is empty"},
    {"inputTwice", [](auto &m) { m.entries[0]->inputs[1]->name = "x"; }, "two of the kind input"},
    {"bindInput", [](auto &m) { m.entries[0]->binds[0] = {0, 2, 0}; }, "input 2 of 2"},
    {"bindAxis", [](auto &m) { m.entries[0]->binds[0] = {0, 0, 1}; }, "axis 1"},
    {"bindDim", [](auto &m) { m.entries[0]->binds[0] = {1, 0, 0}; }, "not one that shapes bind"},
    {"bindTwice", [](auto &m) { m.entries[0]->binds.push_back(m.entries[0]->binds[0]); }, "binds dim n twice"},
    {"multipleInput", [](auto &m) { m.entries[0]->multiples.push_back({0, 2, 0, 1, 0}); }, "input 2 of 2"},
    {"multipleAxis", [](auto &m) { m.entries[0]->multiples.push_back({0, 0, 1, 1, 0}); }, "axis 1"},
    {"multipleDim", [](auto &m) { m.entries[0]->multiples.push_back({1, 0, 0, 1, 0}); }, "not one that shapes bind"},
    {"multipleTwice", [](auto &m) { m.entries[0]->multiples.push_back({0, 0, 0, 2, 0}); }, "binds dim n twice"},
    {"multipleScale", [](auto &m) { m.entries[0]->binds.clear(), m.entries[0]->multiples.push_back({0, 0, 0, 0, 0}); },
     "takes a dim 0 times"},
    {"bindMissing", [](auto &m) { m.entries[0]->binds.clear(); }, "no value there"},
    {"hostDim", [](auto &m) { m.entries[0]->host_dims = {0}; }, "which it is not"},
    {"inputData",
     [](auto &m) {
       m.entries[Compact]->inputs[0]->shape = m.entries[Compact]->outputs[0]->shape;
       m.entries[Compact]->binds.clear();
     },
     "no value there"},
    {"outputUnbounded", [](auto &m) { m.entries[Compact]->outputs[0]->bound.clear(); }, "no value there"},
    {"outputBoundRank", [](auto &m) { m.entries[Compact]->outputs[0]->bound.push_back(0); }, "not one number per axis"},
    {"equation", [](auto &m) { m.entries[0]->equations = {1}; }, "equation 1 of 1"},
    {"assetTwice", [](auto &m) { m.assets[0]->name = "empty"; }, "empty"},
    {"assetPlace", [](auto &m) { m.assets[0]->place->offset += 8; },
     "the bytes of asset words are not at a multiple of 64"},
    {"assetEnd", [](auto &m) { m.assets[0]->place->length = UINT64_MAX - 64; }, "inside the weights section"},
    {"assetHash", [](auto &m) { m.assets[0]->place->sha256.pop_back(); }, "the hash of asset words has not 32 bytes"},
    {"stateUse", [](auto &m) { m.entries[0]->reads = {2}; }, "state 2 of 2"},
    {"stateUnlisted", [](auto &m) { m.entries[Accumulate]->reads.clear(), m.entries[Accumulate]->writes.clear(); },
     "without listing it"},
    {"stateReadOnly", [](auto &m) { m.entries[Accumulate]->writes.clear(); }, "not writable"},
    {"bufferKind", [](auto &m) { routine(m).buffers[0]->kind = fmt::BufferKind(9); }, "unknown kind"},
    {"bufferIndex", [](auto &m) { routine(m).buffers[0]->index = 2; }, "Input 2 of 2"},
    {"bufferDevice", [](auto &m) { routine(m).buffers[0]->device = 1; }, "device slot 1"},
    {"bufferOffset", [](auto &m) { routine(m).buffers[0]->offset = 64; }, "begins at byte 64"},
    {"bufferBytes", [](auto &m) { routine(m, Compact).buffers[0]->bytes = m.entries[Compact]->outputs[0]->shape[0]; },
     "no value there"},
    {"slotAlign", [](auto &m) { routine(m, Compact).buffers[3]->offset = 8; }, "begins at byte 8"},
    {"writesInput", [](auto &m) { launch(m).buffers[2] = 0; }, "writes Input 0"},
    {"noProgram", [](auto &m) { routine(m).programs.clear(); }, "no program"},
    {"launchKernel", [](auto &m) { launch(m).variants[0]->kernel = 99; }, "kernel 99"},
    {"launchBuffers", [](auto &m) { launch(m).buffers.pop_back(); }, "takes 3 buffers and is given 2"},
    {"launchBuffer", [](auto &m) { launch(m).buffers[0] = 77; }, "buffer 77 of 3"},
    {"noVariant", [](auto &m) { launch(m).variants.clear(); }, "0 variants"},
    {"lastGuarded", [](auto &m) { launch(m).variants[0]->guard = 0; }, "exactly the last one has no guard"},
    {"unguarded", [](auto &m) { launch(m, Double).variants[0]->guard = fmt::kNone; },
     "exactly the last one has no guard"},
    {"readDim", [](auto &m) { routine(m, Compact).programs[0]->code[1].AsReadDim()->dim = 0; }, "not an internal dim"},
    {"copyToInput", [](auto &m) { routine(m, LoopEntry).programs[0]->code[0].AsCopy()->dst = 0; }, "writes Input 0"},
    {"swapOutput", [](auto &m) { routine(m, LoopEntry).programs[1]->code[1].AsSwap()->a = 1; }, "no slot"},
    {"loopCounter", [](auto &m) { routine(m, LoopEntry).programs[0]->code[1].AsLoop()->counter = 3; },
     "not an internal dim"},
    {"loopBody", [](auto &m) { routine(m, LoopEntry).programs[0]->code[1].AsLoop()->body = 2; }, "program 2 of 2"},
    {"recursion", [](auto &m) { routine(m, LoopEntry).programs[0]->code[1].AsLoop()->body = 0; }, "run themselves"},
    {"nesting",
     [](auto &m) {
       fmt::RoutineT &r = routine(m, LoopEntry);
       for (uint32_t depth = 0; depth < 20; depth++) {
         fmt::LoopT loop = *r.programs[0]->code[1].AsLoop();
         loop.body = addProgram(r);
         append(r, std::move(loop), loop.body - 1 ? loop.body - 1 : 0);
       }
     },
     "nested deeper than 16"},
    {"whileFlag", [](auto &m) { routine(m, Grow).programs[0]->code[1].AsWhile()->flag = 50; }, "buffer 50"},
    {"condBody", [](auto &m) { routine(m, Grow).programs[0]->code[2].AsCond()->otherwise = 50; }, "program 50"},
    {"prepareParam", [](auto &m) { m.prepares[0]->buffers[0]->kind = fmt::BufferKind::Param; }, "Param 0 of 0"},
    {"prepareDim", [](auto &m) { m.prepares[0]->buffers[0]->bytes = m.dims[1]->bound; }, "no value there"},
};

struct Manifest : Opened, testing::WithParamInterface<ManifestRow> {};
TEST_P(Manifest, IsRefused) {
  ManifestMaker k = standardManifest();
  GetParam().breaks(k.m);
  EXPECT_FAIL(ASTRA_MALFORMED, GetParam().says, open(assemble(k)));
}
INSTANTIATE_TEST_SUITE_P(Bad, Manifest, testing::ValuesIn(manifests), rowName<ManifestRow>);

TEST_F(File, KernelAbiOfALaterLibrary) {
  ManifestMaker k = standardManifest();
  k.m.targets[0]->abi = 4;
  EXPECT_FAIL(ASTRA_NEWER_FORMAT, "kernel ABI 4", open(assemble(k)));
}

TEST(Arithmetic, OverflowIsRefusedAtTheCall) {
  ManifestMaker k = standardManifest();
  uint32_t huge = k.expr({{fmt::ExprCode::Dim, 0}, {fmt::ExprCode::Const, INT64_MAX}, {fmt::ExprCode::Mul, 0}});
  uint32_t byZero = k.expr({{fmt::ExprCode::Const, 1}, {fmt::ExprCode::Dim, 0}, {fmt::ExprCode::FloorDiv, 0}});
  uint32_t negative = k.expr({{fmt::ExprCode::Const, 1}, {fmt::ExprCode::Dim, 0}, {fmt::ExprCode::Sub, 0}});
  routine(k.m, Compact).slots.push_back(huge);
  routine(k.m, Double).slots.push_back(byZero);
  routine(k.m, Add).slots.push_back(negative);
  Machine machine(1, nullptr, assemble(k));
  Diag &diag = machine.diag;
  std::vector<float> x(4), y(4), t(1);
  EXPECT_FAIL(ASTRA_OVERFLOW, "leaves 64 bits",
              machine.run("compact", {tensor(x, {4})}, {tensor(y, {4}), tensor(t, {})}));
  std::vector<float> none;
  EXPECT_FAIL(ASTRA_OVERFLOW, "not positive", machine.run("double", {tensor(none, {0})}, {tensor(none, {0})}));
  EXPECT_FAIL(ASTRA_MALFORMED, "gives the size -3",
              machine.run("add", {tensor(x, {4}), tensor(x, {4})}, {tensor(y, {4})}));
}

} // namespace
