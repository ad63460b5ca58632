//===- MutateTest.cpp: altered files --------------------------------------===//
// Takes:    the standard bundle, alone and with a GPU, with bytes changed.
// Gives:    a refusal, or a bundle that is harmless to open, ask and load; never a crash or a touched out-parameter.
// Keeps:    hashes are made right again, so that what is behind them is reached.
// Does not: run altered programs: code is trusted once its hash is.
#include "Client.h"

using namespace astra;
using namespace astra::test;

namespace {

/// Memory for a state of a few megabytes: an altered shape may ask for gigabytes, which would only cost time.
astra_allocator frugal() {
  astra_allocator a = ASTRA_INIT(astra_allocator);
  a.allocate = [](void *, size_t bytes, size_t alignment) -> void * {
    void *memory = nullptr;
    bool fits = bytes <= size_t(16) << 20;
    return fits && posix_memalign(&memory, alignment < 8 ? 8 : alignment, bytes) == 0 ? memory : nullptr;
  };
  a.release = [](void *, void *memory, size_t, size_t) { free(memory); };
  return a;
}

/// Opens, asks everything, loads, makes a session.
struct Prober {
  Prober() {
    astra_allocator memory = frugal();
    astra_runtime_options o = ASTRA_INIT(astra_runtime_options);
    o.allocator = &memory;
    EXPECT_EQ(astra_runtime_init(runtime.out(), &o, nullptr), ASTRA_OK);
    EXPECT_EQ(astra_device_init(device.out(), runtime, "cpu", nullptr, nullptr), ASTRA_OK);
  }
  bool accepts(const Aligned &memory, bool load = true) {
    Bundle bundle;
    Diag diag;
    astra_bundle_options o = ASTRA_INIT(astra_bundle_options);
    o.flags = ASTRA_VERIFY_ALL;
    astra_status s = astra_bundle_init_memory(bundle.out(), runtime, memory.data, memory.size, &o, &diag);
    EXPECT_EQ(bundle == nullptr, s != ASTRA_OK);
    EXPECT_EQ(diag.status, s);
    EXPECT_EQ(diag.text[0] != 0, s != ASTRA_OK);
    if (s) return false;
    astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
    EXPECT_EQ(astra_bundle_get_info(bundle, &info), ASTRA_OK);
    size_t length = strlen(info.module);
    for (uint32_t i = 0; i < info.num_entries; i++) {
      const astra_entry *entry = nullptr;
      astra_entry_info e = ASTRA_INIT(astra_entry_info);
      astra_tensor_info t = ASTRA_INIT(astra_tensor_info);
      astra_bundle_get_entry(bundle, i, &entry);
      astra_entry_get_info(entry, &e);
      for (uint32_t k = 0; k < e.num_inputs; k++)
        astra_entry_get_input(entry, k, &t), length += strlen(t.name) + size_t(t.ndim ? t.upper[0] : 0);
      for (uint32_t k = 0; k < e.num_outputs; k++) astra_entry_get_output(entry, k, &t), length += strlen(t.name);
    }
    if (!load) return length != size_t(-1);
    Loaded loaded;
    astra_device *devices[] = {device};
    if (astra_loaded_init(loaded.out(), bundle, devices, 1, &diag)) return true;
    astra_dim_value dims[] = {{"cap", 2}};
    astra_session_options so = ASTRA_INIT(astra_session_options);
    so.dims = dims, so.num_dims = 1;
    Session session;
    astra_session_init(session.out(), loaded, &so, &diag);
    return length != size_t(-1);
  }
  Runtime runtime;
  Device device;
};

/// Of a CPU alone, and with a GPU and its host build.
class Mutated : public testing::TestWithParam<bool> {
protected:
  static Bytes bundle() {
    ManifestMaker k = GetParam() ? gpuManifest() : standardManifest();
    return GetParam() ? assembleGpu(k) : assemble(k);
  }
  static size_t tableEnd() { return 64 + (GetParam() ? 6 : 4) * sizeof(fmt::Section); }
};
INSTANTIATE_TEST_SUITE_P(Targets, Mutated, testing::Bool(),
                         [](const auto &i) { return std::string(i.param ? "GPU" : "CPU"); });

TEST_P(Mutated, EveryByteOfHeaderAndTableAsItIs) {
  Prober prober;
  Bytes good = bundle();
  Aligned memory(good);
  size_t end = tableEnd();
  for (size_t at = 0; at < end; at++)
    for (int bit : {0, 3, 7}) {
      memory.data[at] ^= uint8_t(1 << bit);
      EXPECT_FALSE(prober.accepts(memory)) << "byte " << at;
      memory.data[at] = good[at];
    }
  EXPECT_TRUE(prober.accepts(memory));
}

/// What is code or text of a target is covered too, not only what the CPU runs.
TEST_P(Mutated, EveryByteOfASmallSection) {
  Prober prober;
  Bytes good = bundle();
  Aligned memory(good);
  auto *table = reinterpret_cast<const fmt::Section *>(good.data() + 64);
  size_t sections = (tableEnd() - 64) / sizeof(fmt::Section), tried = 0;
  for (size_t s = 1; s < sections; s++)
    for (size_t at = 0; at < table[s].bytes && table[s].bytes < 64; at++, tried++) {
      memory.data[table[s].offset + at] ^= 4;
      EXPECT_FALSE(prober.accepts(memory)) << "section " << s << ", byte " << at;
      memory.data[table[s].offset + at] ^= 4;
    }
  EXPECT_EQ(tried > 0, GetParam());
}

TEST_P(Mutated, EveryFieldOfHeaderAndTableWithRightHashes) {
  Prober prober;
  const Bytes good = bundle();
  for (size_t at = 8; at < tableEnd(); at += 4)
    for (uint64_t value : {uint64_t(0), uint64_t(1), uint64_t(0x7fffffff), uint64_t(0xffffffff), uint64_t(65536)}) {
      Bytes b = good;
      auto *header = reinterpret_cast<fmt::Header *>(b.data());
      memcpy(&b[at], &value, 4);
      if (header->sectionCount > 100) continue; // rehash itself would leave the file
      rehash(b);
      prober.accepts(Aligned(b));
    }
}

TEST(MutatedManifest, EveryWordWithRightHashes) {
  Prober prober;
  ManifestMaker k = gpuManifest(); // it has all that the standard bundle has
  const Bytes good = assembleGpu(k);
  auto *table = reinterpret_cast<const fmt::Section *>(good.data() + 64);
  Bytes manifest(good.begin() + ptrdiff_t(table[0].offset), good.begin() + ptrdiff_t(table[0].offset + table[0].bytes));
  size_t accepted = 0;
  Aligned memory(good);
  for (size_t at = 0; at + 4 <= manifest.size(); at += 4)
    for (uint32_t value : {0u, 1u, 0x7fffffffu, 0xffffffffu, 0x10001u}) {
      uint8_t *word = memory.data + table[0].offset + at;
      memcpy(word, &value, 4);
      rehashManifest(memory.data);
      accepted += prober.accepts(memory, at % 128 == 0); // mapping code thousands of times is slow
      memcpy(word, &manifest[at], 4);
    }
  EXPECT_GT(accepted, 0u) << "some fields may hold other values";
}

/// The standard bundle's manifest, whose references a test changes.
class Tree : public testing::Test {
protected:
  Tree() : maker(standardManifest()), manifest(maker.manifest()) {}
  uint32_t word(size_t at) const {
    uint32_t value;
    memcpy(&value, &manifest[at], 4);
    return value;
  }
  /// The reference at `from` leads to `to`.
  void lead(size_t from, size_t to) {
    uint32_t value = uint32_t(to - from);
    memcpy(&manifest[from], &value, 4);
  }
  size_t placeOf(const void *part) const { return size_t(static_cast<const uint8_t *>(part) - manifest.data()); }
  const fmt::Manifest &root() const { return *fmt::GetManifest(manifest.data()); }
  /// Where the reference to a vector of `table` is, by the vector's own place.
  size_t referenceTo(const void *table, const void *vector) const {
    for (size_t at = placeOf(table); at < manifest.size(); at += 4)
      if (at + word(at) == placeOf(vector)) return at;
    ADD_FAILURE() << "no reference to the vector";
    return 0;
  }
  void expectRefused(const char *sentence) {
    Bytes bundle = assemble({{fmt::SectionKind::Manifest, manifest},
                             {fmt::SectionKind::Code, maker.x86.code},
                             {fmt::SectionKind::Code, maker.aarch64.code},
                             {fmt::SectionKind::Weights, maker.weights}});
    Aligned memory(bundle);
    Runtime runtime;
    Bundle out;
    Diag diag;
    ASSERT_EQ(astra_runtime_init(runtime.out(), nullptr, nullptr), ASTRA_OK);
    EXPECT_FAIL(ASTRA_MALFORMED, sentence,
                astra_bundle_init_memory(out.out(), runtime, memory.data, memory.size, nullptr, &diag));
  }
  ManifestMaker maker;
  Bytes manifest;
};
constexpr char shared[] = "two references of the manifest lead to byte",
               misplaced[] = "is misaligned or not inside of it";

TEST_F(Tree, SharesNoTable) {
  const auto *entries = root().entries();
  ASSERT_GT(entries->size(), 1u);
  lead(placeOf(entries->Data()) + 4, placeOf(entries->Get(0)));
  expectRefused(shared);
}
TEST_F(Tree, SharesNoString) {
  const fmt::Param *p = root().params()->Get(0);
  lead(referenceTo(p, p->name()), placeOf(p->layout()));
  expectRefused(shared);
}
TEST_F(Tree, SharesNoVector) {
  const fmt::Routine *r = root().entries()->Get(0)->routine();
  ASSERT_EQ(r->slots()->size() > 0 || r->buffers()->size() > 0, true);
  lead(referenceTo(r, r->slots()), placeOf(r->buffers()));
  expectRefused(shared);
}
/// A vector that begins inside of another one, where that holds what may be a length.
TEST_F(Tree, PartsDoNotOverlap) {
  const fmt::Param *p = root().params()->Get(0);
  size_t inside = placeOf(p->shape()) + 8, hash = referenceTo(p->place(), p->place()->sha256());
  lead(hash, inside);
  expectRefused(inside < hash ? misplaced : shared); // references lead forward
}
/// A vector of 8-byte numbers at 0, 4 modulo 8 and at odd places, at the end of the manifest.
TEST_F(Tree, VectorsAreAligned) {
  const fmt::Param *p = root().params()->Get(0);
  size_t from = referenceTo(p, p->shape()), bytes = 4 + 8 * p->shape()->size();
  const Bytes shape(manifest.begin() + ptrdiff_t(placeOf(p->shape())),
                    manifest.begin() + ptrdiff_t(placeOf(p->shape()) + bytes));
  for (size_t residue : {0, 1, 2, 6}) { // elements begin 4 behind it
    SCOPED_TRACE(residue);
    size_t at = (manifest.size() + 7) / 8 * 8 + residue;
    manifest.resize(at);
    manifest.insert(manifest.end(), shape.begin(), shape.end());
    lead(from, at);
    expectRefused(misplaced);
  }
}
TEST_F(Tree, StructsAreAligned) {
  const fmt::Expr *e = root().exprs()->Get(0);
  size_t from = referenceTo(e, e->code()), at = (manifest.size() + 7) / 8 * 8;
  const Bytes code(manifest.begin() + ptrdiff_t(placeOf(e->code())),
                   manifest.begin() + ptrdiff_t(placeOf(e->code()) + 4 + 16 * e->code()->size()));
  manifest.resize(at);
  manifest.insert(manifest.end(), code.begin(), code.end());
  lead(from, at);
  expectRefused(misplaced);
}
TEST_F(Tree, PartsAreInside) {
  const fmt::Param *p = root().params()->Get(0);
  lead(referenceTo(p, p->name()), manifest.size() / 4 * 4);
  expectRefused(misplaced);
}

} // namespace
