//===- ExternalTest.cpp: calls between kernels -------------------------------===//
// Takes:    modules that call functions, which note what they are given.
// Checks:   that the schedule gives the evaluator's bytes, and calls the same functions with the same operands in the
//           same order: of operands that lie in panels, are views, states, or have data dims; in loops and branches.
#include "RunSchedule.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Numerics/Numerics.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace astra;

namespace {
struct Note {
  std::string name;
  std::vector<Tensor> operands;
  bool operator==(const Note &) const = default;
};

float *floats(Tensor &t) { return reinterpret_cast<float *>(t.bytes.data()); }
const float *floats(const Tensor &t) { return reinterpret_cast<const float *>(t.bytes.data()); }

/// `negate` gives -x, `sum` the sum of all and their number, `log` a number that counts.
std::map<std::string, ExternalFunction> functions(std::vector<Note> &notes) {
  auto noting = [&notes](std::string name, auto f) -> ExternalFunction {
    return [&notes, name, f](llvm::ArrayRef<Tensor> x, llvm::MutableArrayRef<Tensor> y) {
      notes.push_back({name, {x.begin(), x.end()}});
      f(x, y);
      return llvm::Error::success();
    };
  };
  return {{"negate", noting("negate",
                            [](llvm::ArrayRef<Tensor> x, llvm::MutableArrayRef<Tensor> y) {
                              for (int64_t i = 0; i < x[0].count(); ++i) floats(y[0])[i] = -floats(x[0])[i];
                            })},
          {"sum", noting("sum",
                         [](llvm::ArrayRef<Tensor> x, llvm::MutableArrayRef<Tensor> y) {
                           int64_t n = x[0].count();
                           float sum = 0;
                           for (int64_t i = 0; i < n; ++i) sum += floats(x[0])[i];
                           floats(y[0])[0] = sum;
                           memcpy(y[1].bytes.data(), &n, 8);
                         })},
          {"log", noting("log", [&notes](llvm::ArrayRef<Tensor>, llvm::MutableArrayRef<Tensor> y) {
             int32_t n = int32_t(notes.size());
             memcpy(y[0].bytes.data(), &n, 4);
           })}};
}

Tensor ramp(std::vector<int64_t> shape) {
  Tensor t{DType::F32, shape, std::vector<uint8_t>(tensorBytes(DType::F32, shape))};
  for (int64_t i = 0; i < t.count(); ++i) floats(t)[i] = float(i) - 3.5f;
  return t;
}

/// What was noted.
std::vector<Note> check(const char *text, std::vector<Tensor> inputs, std::string *listing = nullptr) {
  SCOPED_TRACE(text);
  auto m = parse(text, "test.uop");
  if (!m) return ADD_FAILURE() << llvm::toString(m.takeError()), std::vector<Note>();
  EvalInputs in;
  in.inputs = std::move(inputs);
  std::vector<Note> asked, called;
  EvalOptions options;
  options.externals = functions(asked);
  auto expected = evalEntry(*m, m->entries[0], in, options);
  if (!expected) return ADD_FAILURE() << llvm::toString(expected.takeError()), asked;
  if (auto e = runNumerics(*m)) return ADD_FAILURE() << llvm::toString(std::move(e)), asked;
  if (auto e = verify(*m, Stage::Numbers)) return ADD_FAILURE() << llvm::toString(std::move(e)), asked;
  auto s = schedule(*m);
  if (!s) return ADD_FAILURE() << llvm::toString(s.takeError()), asked;
  if (listing) *listing = print(*s);
  for (bool expand : {false, true}) {
    called.clear();
    ScheduleRun run(*m, *s, *targetNamed("cpu:x86-64-v4"), expand);
    run.externals = functions(called);
    auto found = run.run(0, in);
    if (!found) return ADD_FAILURE() << llvm::toString(found.takeError()) << "\n" << print(*s), asked;
    for (size_t i = 0; i < expected->outputs.size(); ++i) {
      canonicalizeNaN(found->outputs[i]);
      EXPECT_TRUE(found->outputs[i] == expected->outputs[i]) << "output " << i << "\n" << print(*s);
    }
    for (auto &[name, t] : expected->states) EXPECT_TRUE(found->states[name].bytes == t.bytes) << name;
    EXPECT_TRUE(asked == called) << print(*s);
  }
  return asked;
}

TEST(External, BetweenKernels) {
  std::string listing;
  auto notes = check(R"(module @m {
    dim n in 0..100
    entry @main(%x : f32[n]) -> (%y : f32[n], %s : f32, %k : i64) {
      %t = add %x, 1.0
      %a = external %t -> f32[n] name=negate deterministic=1
      %u = proj %a index=0
      %b = external %u -> f32, i64 name=sum
      %s = proj %b index=0
      %k = proj %b index=1
      %y = mul %u, %x
    }
  })",
                     {ramp({9})}, &listing);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].name, "negate");
  EXPECT_NE(listing.find("call negate deterministic ("), std::string::npos) << listing;
  EXPECT_NE(listing.find(": f32[n]) -> ("), std::string::npos) << listing;
  check(R"(module @m {
    dim n in 0..100
    entry @main(%x : f32[n]) -> (%y : f32[n]) {
      %a = external %x -> f32[n] name=negate
      %y = proj %a index=0
    }
  })",
        {ramp({0})});
}

/// Whose name is a collective's: -x.
std::map<std::string, ExternalFunction> collectives() {
  auto negate = [](llvm::ArrayRef<Tensor> x, llvm::MutableArrayRef<Tensor> y) {
    for (auto [from, to] : llvm::zip_equal(x, y))
      for (int64_t i = 0; i < from.count(); ++i) floats(to)[i] = -floats(from)[i];
    return llvm::Error::success();
  };
  return {{"astra.mesh.all_reduce/data=2/data/sum", negate}, {"astra.mesh.all_gather/data=2/data/", negate}};
}
/// The schedule, whose bytes are the evaluator's though calls beside are made as late as they may be.
std::string overlapped(std::string text, std::vector<Tensor> inputs) {
  for (size_t at; (at = text.find("SUM")) != std::string::npos;)
    text.replace(at, 3, "name=\"astra.mesh.all_reduce/data=2/data/sum\" deterministic=1");
  SCOPED_TRACE(text);
  auto m = parse(text, "test.uop");
  if (!m) return ADD_FAILURE() << llvm::toString(m.takeError()), "";
  EvalInputs in;
  in.inputs = std::move(inputs);
  EvalOptions options;
  options.externals = collectives();
  auto expected = evalEntry(*m, m->entries[0], in, options);
  if (!expected) return ADD_FAILURE() << llvm::toString(expected.takeError()), "";
  if (auto e = runNumerics(*m)) return ADD_FAILURE() << llvm::toString(std::move(e)), "";
  auto s = schedule(*m);
  if (!s) return ADD_FAILURE() << llvm::toString(s.takeError()), "";
  ScheduleRun run(*m, *s, *targetNamed("cpu:x86-64-v4"), true);
  run.externals = collectives();
  auto found = run.run(0, in);
  if (!found) return ADD_FAILURE() << llvm::toString(found.takeError()) << "\n" << print(*s), "";
  for (size_t i = 0; i < expected->outputs.size(); ++i)
    EXPECT_TRUE(found->outputs[i] == expected->outputs[i]) << "output " << i << "\n" << print(*s);
  for (auto &[name, t] : expected->states) EXPECT_TRUE(found->states[name].bytes == t.bytes) << name << print(*s);
  return print(*s);
}
size_t count(llvm::StringRef text, llvm::StringRef what) { return text.count(what); }

TEST(External, CollectivesRunBesideWhatDoesNotReadThem) {
  // Both sums begin before either is read; the state is written in place when nobody reads it.
  std::string listing = overlapped(R"(module @m {
    state @w : f32[64]
    state @v : f32[64]
    entry @main(%x : f32[64]) -> (%y : f32[64]) {
      %g = mul %x, 3.0
      %a = external %g -> f32[64] SUM
      %sum = proj %a index=0
      %now = add @w, %sum
      %h0 = cumulate %x kind=sum axis=0
      %h = mul %h0, 0.25
      %b = external %h -> f32[64] SUM
      %other = proj %b index=0
      %later = add @v, %other
      %y = cumulate %h kind=sum axis=0
      set @w = %now
      set @v = %later
    }
  })",
                                   {ramp({64})});
  EXPECT_EQ(count(listing, ") beside\n"), 2u) << listing;
  EXPECT_LT(listing.rfind("beside"), listing.find("wait")) << listing;
}

TEST(External, CollectivesThatAreReadAtOnceRunAlone) {
  std::string listing = overlapped(R"(module @m {
    entry @main(%x : f32[64]) -> (%y : f32[64]) {
      %a = external %x -> f32[64] SUM
      %sum = proj %a index=0
      %b = external %sum -> f32[64] SUM
      %y = proj %b index=0
    }
  })",
                                   {ramp({64})});
  EXPECT_EQ(count(listing, "beside"), 0u) << listing;
  EXPECT_EQ(count(listing, "wait"), 0u) << listing;
}

TEST(External, CollectivesInLoopsEndInEachTurn) {
  std::string listing = overlapped(R"(module @m {
    func @step(%acc : f32[8], %row : f32[8]) {
      %a = external %row -> f32[8] SUM
      %sum = proj %a index=0
      %t = cumulate %acc kind=sum axis=0
      %u = mul %t, 0.5
      %next = add %u, %sum
      return %next, %u
    }
    entry @main(%x : f32[5, 8], %begin : f32[8]) -> (%y : f32[8], %all : f32[5, 8]) {
      %s = scan(@step) %begin, %x [5] ncarry=1 nxs=1
      %y = proj %s index=0
      %all = proj %s index=1
    }
  })",
                                   {ramp({5, 8}), ramp({8})});
  EXPECT_EQ(count(listing, "beside"), 1u) << listing;
  EXPECT_EQ(count(listing, "wait"), 1u) << listing;
}

TEST(External, OfViewsAndOfWhatLiesInPanels) {
  auto notes = check(R"(module @m {
    dim n in 1..100
    param @w : f32[8, 48] = splat 0.25
    entry @main(%x : f32[n, 8]) -> (%y : f32[n, 48], %z : f32[48, 8], %t : f32[8, n]) {
      %y = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
      %wt = permute @w perm=[1, 0]
      %a = external %wt -> f32[48, 8] name=negate
      %z = proj %a index=0
      %xt = permute %x perm=[1, 0]
      %b = external %xt -> f32[8, n] name=negate
      %t = proj %b index=0
      %c = external @w -> f32, i64 name=sum
    }
  })",
                     {ramp({5, 8})});
  ASSERT_EQ(notes.size(), 2u) << "a call whose results nobody needs is none";
  EXPECT_EQ(notes[1].operands[0].shape, (std::vector<int64_t>{8, 5}));
}

TEST(External, OfLiteralsAndWithoutOperands) {
  check(R"(module @m {
    entry @main(%x : f32[3]) -> (%y : f32[3], %z : i32) {
      %c = const 2.0 : f32
      %r = reshape %c [1]
      %e = expand %r [3]
      %a = external %e -> f32[3] name=negate
      %n = proj %a index=0
      %y = add %n, %x
      %b = external -> i32 name=log
      %z = proj %b index=0
    }
  })",
        {ramp({3})});
}

TEST(External, CallsWithEffectsKeepTheirOrder) {
  auto notes = check(R"(module @m {
    entry @main(%x : f32[3]) -> (%y : f32[3]) {
      %one = const 1.0 : f32
      %first = external %x -> i32 name=log effects=1
      %second = external %one, %first -> i32 name=log effects=1
      %t = mul %x, %x
      %third = external %t, %x, %second -> i32 name=log effects=1
      %k = proj %third index=0
      %y = after %x, %k
    }
  })",
                     {ramp({3})});
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0].operands.size(), 1u);
  EXPECT_EQ(notes[1].operands[0].shape.size(), 0u);
  EXPECT_EQ(notes[2].operands.size(), 2u);
}

TEST(External, ReadsAStateBeforeItIsReplaced) {
  check(R"(module @m {
    state @s : f32[4] = [1.0, 2.0, 3.0, 4.0]
    entry @main(%x : f32[4]) -> (%y : f32[4]) {
      %now = add @s, %x
      %a = external @s -> f32[4] name=negate
      %y = proj %a index=0
      set @s = %now
    }
  })",
        {ramp({4})});
  check(R"(module @m {
    state @s : f32[4] = [1.0, 2.0, 3.0, 4.0]
    entry @main(%x : f32[4]) -> (%y : f32[4]) {
      %a = external @s, %x -> f32[4] name=negate
      %y = proj %a index=0
      set @s = %y
    }
  })",
        {ramp({4})});
}

TEST(External, ItsResultsMayBeOverwritten) {
  check(R"(module @m {
    entry @main(%x : f32[4], %i : i64) -> (%y : f32[4], %z : f32[4]) {
      %a = external %x -> f32[4] name=negate
      %n = proj %a index=0
      %w = shrink %x [0] [2]
      %y = update_at %n, %w, %i
      %b = external %y -> f32[4] name=negate
      %z = proj %b index=0
    }
  })",
        {ramp({4}), Tensor{DType::I64, {}, {1, 0, 0, 0, 0, 0, 0, 0}}});
}

TEST(External, InLoopsAndBranches) {
  auto notes = check(R"(module @m {
    func @step(%s : f32[3], %x : f32[3]) {
      %a = external %s -> f32[3] name=negate
      %n = proj %a index=0
      %next = add %n, %x
      return %next, %n
    }
    func @yes(%x : f32[3]) {
      %a = external %x -> f32[3] name=negate
      %n = proj %a index=0
      return %n
    }
    func @no(%x : f32[3]) {
      return %x
    }
    entry @main(%x : f32[3], %p : bool) -> (%last : f32[3], %all : f32[4, 3], %c : f32[3]) {
      %s = scan(@step) %x, %x [4] ncarry=1 nxs=0
      %last = proj %s index=0
      %all = proj %s index=1
      %b = cond(@yes, @no) %p, %x
      %c = proj %b index=0
    }
  })",
                     {ramp({3}), Tensor{DType::Bool, {}, {1}}});
  EXPECT_EQ(notes.size(), 5u);
}

TEST(External, AxisZeroMayHaveADataDim) {
  auto notes =
      check(R"(module @m {
    dim n in 0..100
    entry @main(%mask : bool[n], %x : f32[n, 3], %count : i64) -> (%y : f32[n], %s : f32) {
      %k = extent %count in 0..100
      %c = compact %x, %mask [%k]
      %a = external %c -> f32[%k, 3] name=negate
      %n = proj %a index=0
      %b = external %n -> f32, i64 name=sum
      %s = proj %b index=0
      %r = reshape %s [1]
      %y = expand %r [n]
    }
  })",
            {Tensor{DType::Bool, {4}, {1, 0, 1, 1}}, ramp({4, 3}), Tensor{DType::I64, {}, {3, 0, 0, 0, 0, 0, 0, 0}}});
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].operands[0].shape, (std::vector<int64_t>{3, 3}));
}

TEST(External, NarrowFloatsGoAsTheyAre) {
  Tensor x{DType::BF16, {2}, {0x80, 0x3f, 0xff, 0x7f}}; // 1, a NaN
  auto notes = check(R"(module @m {
    entry @main(%x : bf16[2]) -> (%k : i32) {
      %a = external %x -> i32 name=log
      %k = proj %a index=0
    }
  })",
                     {x});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].operands[0].bytes, (std::vector<uint8_t>{0x80, 0x3f, 0xc0, 0x7f})) << "the canonical NaN";
}

//===- The evaluator ---------------------------------------------------------===//

TEST(External, TheEvaluatorSaysWhatAFunctionDoesWrongly) {
  auto m = llvm::cantFail(parse(R"(module @m {
    entry @main(%x : f32[2]) -> (%y : bool[2]) {
      %a = external %x -> bool[2] name=f
      %y = proj %a index=0
    }
  })",
                                "test.uop"));
  EvalInputs in;
  in.inputs = {ramp({2})};
  auto sentence = [&](ExternalFunction f) {
    EvalOptions options;
    if (f) options.externals["f"] = std::move(f);
    auto r = evalEntry(m, m.entries[0], in, options);
    return r ? "" : llvm::toString(r.takeError());
  };
  EXPECT_EQ(sentence(nullptr), "external: the function 'f' is not registered where this is evaluated: it is of the "
                               "program that runs a bundle, which registers it by this name");
  EXPECT_EQ(sentence([](auto, auto) { return llvm::createStringError("no word 7"); }),
            "function 'f' failed: no word 7");
  EXPECT_EQ(sentence([](auto, auto y) {
              y[0].bytes[1] = 2;
              return llvm::Error::success();
            }),
            "result 0 of 'f' has a bool that is neither 0 nor 1");
  EXPECT_EQ(sentence([](auto, auto y) {
              y[0].shape = {1};
              return llvm::Error::success();
            }),
            "external: 'f' changes the type of a result");
  EXPECT_NE(sentence([](auto, auto y) {
              y[0].bytes.pop_back();
              return llvm::Error::success();
            }).find("1 bytes, expected 2"),
            std::string::npos);
  EXPECT_EQ(sentence([](auto, auto) { return llvm::Error::success(); }), "");
}
} // namespace
