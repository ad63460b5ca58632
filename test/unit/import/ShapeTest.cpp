//===- ShapeTest.cpp: the shapes that imported models have -----------------===//
// Takes:    small models built in memory.
// Gives:    checks of output types, of shape arithmetic folded to symbolic dims, and of the committed digits network.
#include "ModelMaker.h"
#include "astra/IR/Index.h"
#include <chrono>
#include <cmath>

namespace astra::onnx {
namespace {

TEST(ImportShape, DigitsNetwork) {
  auto module = importONNX(ASTRA_SOURCE_DIR "/examples/digits/digits.onnx", {{{"batch", 1, 64}}, ""});
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  const astra::Entry &entry = module->entries.at(0);
  EXPECT_EQ(entry.name, "main");
  EXPECT_EQ(entry.inputs.at(0).name, "image");
  EXPECT_EQ(typeText(entry.inputs[0].value->dtype, entry.inputs[0].value->shape), "f32[batch, 1, 8, 8]");
  EXPECT_EQ(typeText(entry.outputs[0].value->dtype, entry.outputs[0].value->shape), "f32[batch, 10]");
  EXPECT_EQ(module->params.size(), 9u); // the scalar and the shape became literals and dims
  const Origin *origin = module->origins.find(entry.outputs[0].value);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->names, std::vector<std::string>{"node_softmax"});
}

/// A function's constants have their names in every call: numbering them all takes time linear in the calls.
TEST(ImportShape, ConstantsOfManyCalls) {
  constexpr int calls = 40000;
  ModelMaker m;
  m.input("x", "2").output("v" + std::to_string(calls), "2");
  m.model.add_opset_import()->set_domain("mine");
  m.model.mutable_opset_import(1)->set_version(1);
  proto::Function &f = *m.model.add_functions();
  f.set_domain("mine");
  f.set_name("F");
  f.add_input("a");
  f.add_output("b");
  f.add_opset_import()->set_version(20);
  proto::Node &constant = *f.add_node(), &add = *f.add_node();
  constant.set_op_type("Constant");
  constant.add_output("a_name_of_forty_characters_as_tools_write");
  proto::Tensor &t = *attribute(constant, "value", proto::Attribute::TENSOR).mutable_t();
  t.set_data_type(Float);
  t.add_dims(2);
  t.add_float_data(1), t.add_float_data(2);
  add.set_op_type("Add");
  add.add_input("a"), add.add_input(constant.output(0));
  add.add_output("b");
  for (int i = 0; i < calls; ++i) {
    proto::Node &n = m.node("F", {i ? "v" + std::to_string(i) : "x"}, {"v" + std::to_string(i + 1)});
    n.set_domain("mine");
  }
  auto begin = std::chrono::steady_clock::now();
  auto module = m.import();
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  ASSERT_EQ(module->params.size(), size_t(calls));
  EXPECT_EQ(module->params[0].value->str, "a_name_of_forty_characters_as_tools_write");
  EXPECT_EQ(module->params[2].value->str, "a_name_of_forty_characters_as_tools_write.2");
  EXPECT_LT(seconds.count(), 30); // of quadratic time some minutes, of linear one a fraction of a second
}

TEST(ImportShape, ReshapeByShapeArithmetic) {
  ModelMaker m;
  m.input("x", "batch,seq,12").dim("batch", 0, 8).dim("seq", 1, 16).output("y", "");
  set(m.node("Shape", {"x"}, {"s"}), "start", 0);
  m.constant("zero", {1}, {0});
  m.constant("one", {1}, {1});
  m.constant("four", {1}, {4});
  m.constant("rest", {1}, {-1});
  m.node("Gather", {"s", "zero"}, {"n"});
  m.node("Gather", {"s", "one"}, {"t"});
  m.node("Mul", {"n", "t"}, {"nt"});
  set(m.node("Concat", {"nt", "four", "rest"}, {"shape"}), "axis", 0);
  m.node("Reshape", {"x", "shape"}, {"y"});
  m.graph().clear_output();
  m.output("y", "a,4,3");
  EXPECT_EQ(m.result(), "f32[batch*seq, 4, 3]");
}

TEST(ImportShape, SlicesOfDynamicAxes) {
  struct Case {
    int64_t start, end, step;
    const char *expected;
  };
  for (const Case &c : {Case{1, INT64_MAX, 1, "f32[seq - 1]"}, Case{0, -2, 1, "f32[seq - 2]"},
                        Case{-3, INT64_MAX, 1, "f32[3]"}, Case{0, 3, 1, "f32[3]"}, Case{-1, INT64_MIN, -1, "f32[seq]"},
                        Case{0, 4, 2, "f32[2]"}, Case{3, 3, 1, "f32[0]"}}) {
    ModelMaker m;
    m.input("x", "seq").dim("seq", 4, 16).output("y", "n");
    m.constant("start", {1}, {c.start});
    m.constant("end", {1}, {c.end});
    m.constant("axis", {1}, {0});
    m.constant("step", {1}, {c.step});
    m.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
    EXPECT_EQ(m.result(), c.expected) << c.start << ":" << c.end << ":" << c.step;
  }
}

proto::Type::Dim &firstDim(ModelMaker &m) {
  return *m.graph().mutable_input(0)->mutable_type()->mutable_tensor()->mutable_shape()->mutable_dim(0);
}

/// Exporters write an extent that follows from another as arithmetic of its name.
TEST(ImportShape, DimsWrittenAsArithmetic) {
  struct Case {
    const char *written, *expected;
  };
  for (const Case &c :
       {Case{"past + 1", "f32[past + 1]"}, Case{"2*past", "f32[past*2]"}, Case{"2*(past - 1) + 1", "f32[past*2 - 1]"},
        Case{"past//2", "f32[floordiv(past, 2)]"}, Case{"floor(past/2)", "f32[floordiv(past, 2)]"},
        Case{"Mod(past, 3)", "f32[mod(past, 3)]"}, Case{"Max(past, 3)", "f32[max(past, 3)]"},
        Case{"-1 + past*past", "f32[past*past - 1]"}, Case{" past", "f32[past]"},
        Case{"-past % 4 + past", "f32[past + mod(-past, 4)]"}, Case{"-past//2 + 40", "f32[floordiv(-past, 2) + 40]"},
        Case{"40 - past % 4", "f32[-mod(past, 4) + 40]"}, Case{"- (past + 1)*2 + 40", "f32[-past*2 + 38]"},
        Case{"floor(3*past/2)", "f32[floordiv(past*3, 2)]"}}) {
    ModelMaker m;
    m.input("mask", "n").input("x", "past").dim("past", 1, 16).output("y", "n");
    firstDim(m).set_name(c.written);
    m.node("Neg", {"mask"}, {"y"});
    EXPECT_EQ(m.result(), c.expected) << c.written;
  }
  // What is no such arithmetic, may be negative, or names no input's dim alone is a name like any other.
  for (const char *name :
       {"past - 2", "past +", "past/2", "floor(past/2*3)", "floor(past/2 % 3)", "past**2", "past past", "other + 1",
        "past*99999999999999", "((((((((((((((((((((past))))))))))))))))))))", "past//0", "past % (past - 1)",
        "Max(past)"}) {
    ModelMaker m;
    m.input("mask", "n").input("x", "past").dim("past", 1, 16).dim(name, 1, 4).output("y", "n");
    firstDim(m).set_name(name);
    m.node("Neg", {"mask"}, {"y"});
    EXPECT_EQ(m.result(), "f32[\"" + std::string(name) + "\"]");
  }
}

/// "4*h" gives h, where no axis is h alone; --dim may say the same of any dim, with a name of its own.
TEST(ImportShape, DimsThatAreMultiples) {
  struct Case {
    const char *written, *expected;
  };
  for (const Case &c : {Case{"4*h", "f32[h*4]"}, Case{"2*h + 3", "f32[h*2 + 3]"}, Case{"h - 1", "f32[h - 1]"}}) {
    ModelMaker m;
    m.input("x", "n").dim("h", 1, 16).output("y", "n");
    firstDim(m).set_name(c.written);
    m.node("Neg", {"x"}, {"y"});
    EXPECT_EQ(m.result(), c.expected);
    ModelMaker named;
    named.input("x", "n").dim(c.written, 1, 4).output("y", "n");
    firstDim(named).set_name(c.written);
    named.node("Neg", {"x"}, {"y"});
    EXPECT_EQ(named.result(), "f32[\"" + std::string(c.written) + "\"]");
  }
  auto halves = [](std::vector<DimBound> dims) {
    ModelMaker m;
    m.input("x", "n").output("y", "n");
    m.dims = std::move(dims);
    m.constant("two", {1}, {2});
    m.node("Shape", {"x"}, {"s"});
    m.node("Div", {"s", "two"}, {"half"});
    set(m.node("Concat", {"half", "two"}, {"to"}), "axis", int64_t(0));
    m.node("Reshape", {"x", "to"}, {"y"});
    return m.result();
  };
  std::string asked = halves({{"n", 3, 17}});
  EXPECT_NE(asked.find("if n is always a multiple of 2, say so with --dim 'n=2*n_2' --dim n_2=2..8, or fix n"),
            std::string::npos)
      << asked;
  EXPECT_EQ(halves({{"n", 0, 0, "2*n_2"}, {"n_2", 2, 8}}), "f32[n_2, 2]");
  // Of a name that is taken another; of a dim that may be no multiple within its bounds, nothing.
  EXPECT_NE(halves({{"n", 3, 17}, {"n_2", 1, 2}}).find("--dim 'n=2*n_2_' --dim n_2_=2..8"), std::string::npos);
  EXPECT_EQ(halves({{"n", 3, 3}}).find("always a multiple"), std::string::npos);
  EXPECT_NE(halves({{"n", 0, 0, "2*q"}}).find("a name that the model does not have needs bounds of its own"),
            std::string::npos);
  EXPECT_NE(
      halves({{"n", 0, 0, "2*q*r"}, {"q", 1, 4}, {"r", 1, 4}}).find("--dim q: no axis of an input gives this dim"),
      std::string::npos);
  EXPECT_NE(halves({{"n", 0, 0, "2*q"}, {"q", 0, 0, "n"}}).find("--dim q: 'n' is not an expression"),
            std::string::npos);
}

/// Which multiple a refusal names: the least that it finds to help, for nested quotients and reshapes too.
TEST(ImportShape, TheMultipleThatHelps) {
  auto reshaped = [](std::vector<std::pair<const char *, int64_t>> steps, std::vector<int64_t> to, DimBound bound) {
    ModelMaker m;
    m.input("x", "n,6").output("y", "a,b,c");
    m.dims = {bound};
    m.constant("zero", {1}, {0});
    m.node("Shape", {"x"}, {"s"});
    m.node("Gather", {"s", "zero"}, {"e0"});
    std::string last = "e0";
    for (size_t i = 0; i < steps.size(); ++i) {
      std::string k = "k" + std::to_string(i), out = "e" + std::to_string(i + 1);
      m.constant(k, {1}, {steps[i].second});
      m.node(steps[i].first, {last, k}, {out});
      last = out;
    }
    m.constant("to", {int64_t(to.size())}, to);
    set(m.node("Concat", {last, "to"}, {"shape"}), "axis", int64_t(0));
    m.node("Reshape", {"x", "shape"}, {"y"});
    return m.result();
  };
  auto says = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
  };
  using Steps = std::vector<std::pair<const char *, int64_t>>;
  says(reshaped(Steps{{"Div", 4}, {"Div", 2}}, {8, 6}, {"n", 8, 64}), "if n is always a multiple of 8, say so");
  says(reshaped(Steps{{"Div", 6}, {"Div", 4}}, {24, 6}, {"n", 24, 96}),
       "multiple of 24, say so with --dim 'n=24*n_24' --dim n_24=1..4");
  says(reshaped(Steps{{"Mul", 0}, {"Add", -1}}, {8, 6}, {"n", 8, 64}), "if n is always a multiple of 8, say so");
  says(reshaped(Steps{{"Mul", 0}, {"Add", -1}}, {9, 6}, {"n", 9, 90}), "if n is always a multiple of 9, say so");
  EXPECT_EQ(reshaped(Steps{{"Mul", 0}, {"Add", -1}}, {3, 4}, {"n", 8, 64}).find("multiple of 1,"), std::string::npos);
  EXPECT_EQ(reshaped(Steps{{"Div", 4}}, {4, 5}, {"n", 8, 64}).find("always a multiple"), std::string::npos); // never
  EXPECT_EQ(reshaped(Steps{{"Div", 8}}, {8, 6}, {"n", 9, 15}).find("always a multiple"), std::string::npos); // none
}

TEST(ImportShape, MultiplesOfDimsThatHaveNoNames) {
  ModelMaker m;
  m.input("x:0", "1,1,h,w").output("y", "a,b,c,d");
  auto &shape = *m.graph().mutable_input(0)->mutable_type()->mutable_tensor()->mutable_shape();
  shape.mutable_dim(2)->clear_name(), shape.mutable_dim(3)->clear_name();
  m.dim("x:0_2", 2, 64).dim("x:0_3", 2, 32);
  m.constant("ks", {2}, {1, 1});
  m.constant("two", {1}, {2});
  set(m.node("Shape", {"x:0"}, {"s"}), "start", int64_t(2));
  m.node("Div", {"s", "two"}, {"half"});
  m.constant("i0", {1}, {0});
  m.constant("i1", {1}, {1});
  m.node("Gather", {"half", "i0"}, {"h2"});
  m.node("Gather", {"half", "i1"}, {"w2"});
  set(m.node("Concat", {"ks", "h2", "two", "w2", "two"}, {"to"}), "axis", int64_t(0));
  m.node("Reshape", {"x:0", "to"}, {"y"});
  std::string text = m.result();
  EXPECT_NE(text.find("--dim 'x:0_2=2*dim_2' --dim dim_2=1..32 --dim 'x:0_3=2*dim_2_' --dim dim_2_=1..16"),
            std::string::npos)
      << text;
}

/// A pool and an exporter write the same extent in two ways.
TEST(ImportShape, OneFormOfQuotients) {
  ModelMaker m;
  m.input("x", "1,1,h,8").dim("h", 2, 64).output("y", "a,b,c,d");
  proto::Node &pool = m.node("MaxPool", {"x"}, {"p"});
  set(pool, "kernel_shape", std::vector<int64_t>{2, 2});
  set(pool, "strides", std::vector<int64_t>{2, 2});
  m.constant("two", {1}, {2});
  m.constant("at", {1}, {2});
  m.constant("ones", {2}, {1, 1});
  m.constant("w", {1}, {4});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "at"}, {"h0"});
  m.node("Div", {"h0", "two"}, {"half"});
  set(m.node("Concat", {"ones", "half", "w"}, {"to"}), "axis", int64_t(0));
  m.weights("v", {1, 1, 1, 1});
  m.node("Expand", {"v", "to"}, {"q"});
  m.node("Add", {"p", "q"}, {"y"});
  EXPECT_EQ(m.result(), "f32[1, 1, floordiv(h, 2), 4]");
}

TEST(ImportShape, SpaceToDepthOfWhatMayBeOdd) {
  ModelMaker m;
  m.input("x", "1,1,h,8").dim("h", 2, 64).output("y", "a,b,c,d");
  set(m.node("SpaceToDepth", {"x"}, {"y"}), "blocksize", int64_t(2));
  EXPECT_NE(
      m.result().find("blocksize 2 is not known to divide the extent [h]; if h is always a multiple of 2, say so"),
      std::string::npos);
}

TEST(ImportShape, RangeOverADim) {
  ModelMaker m;
  m.input("x", "seq").dim("seq", 1, 16).output("y", "n", Int64);
  m.node("Shape", {"x"}, {"s"});
  m.node("Squeeze", {"s"}, {"n"});
  m.constant("zero", {}, {0});
  m.constant("two", {}, {2});
  m.node("Range", {"zero", "n", "two"}, {"y"});
  EXPECT_EQ(m.result(), "i64[floordiv(seq + 1, 2)]");
}

/// s = the extent as a float, times or over a number, rounded to an integer: an extent of y.
ModelMaker throughFloats(const char *op, float by, const char *rounding) {
  ModelMaker m;
  m.input("x", "seq").dim("seq", 1, 1000).output("y", "n", Int64);
  m.node("Shape", {"x"}, {"s"});
  set(m.node("Cast", {"s"}, {"f"}), "to", int64_t(1));
  m.weights("by", {1}).set_float_data(0, by);
  m.node(op, {"f", "by"}, {"g"});
  if (rounding) m.node(rounding, {"g"}, {"h"});
  set(m.node("Cast", {rounding ? "h" : "g"}, {"n"}), "to", int64_t(7));
  m.constant("one", {1}, {1});
  m.node("Expand", {"one", "n"}, {"y"});
  return m;
}

/// What the symbolic extent is at every size is what float arithmetic gives there.
TEST(ImportShape, ExtentsThroughFloats) {
  for (const char *op : {"Mul", "Div", "Add"})
    for (float by : {0.5f, 0.25f, 2.0f, 1.5f, 0.75f, 3.0f, 7.0f, 10.0f, 49.0f, 0.125f, 100.0f})
      for (const char *rounding : {"Floor", "Ceil", static_cast<const char *>(nullptr)}) {
        ModelMaker maker = throughFloats(op, by, rounding);
        llvm::Expected<Module> module = maker.import();
        std::string what = std::string(op) + " " + std::to_string(by) + " " + (rounding ? rounding : "Cast");
        ASSERT_TRUE(bool(module)) << what << ": " << llvm::toString(module.takeError());
        UOpRef extent = module->entries[0].outputs[0].value->shape[0];
        for (int64_t n = 1; n <= 1000; ++n) {
          float f = float(n), g = llvm::StringRef(op) == "Mul"   ? f * by
                                  : llvm::StringRef(op) == "Div" ? f / by
                                                                 : f + by;
          float h = !rounding ? std::trunc(g) : llvm::StringRef(rounding) == "Floor" ? std::floor(g) : std::ceil(g);
          ASSERT_EQ(idxEvaluate(extent, [&](UOpRef x) { return x->is(Op::Dim) ? std::optional(n) : std::nullopt; }),
                    int64_t(h))
              << what << " at " << n << ": " << indexText(extent);
        }
      }
  // Elements whose common divisor is too much for the others.
  ModelMaker far = throughFloats("Mul", 1, "Floor");
  proto::Tensor &by = *far.graph().mutable_initializer(0);
  by.set_dims(0, 2), by.add_float_data(0x1p-40f), by.set_float_data(0, 1e15f);
  EXPECT_NE(far.result().find("must follow from constants and shapes"), std::string::npos);
  // 0.1 is no fraction with a small power of two below: the products are rounded.
  EXPECT_NE(throughFloats("Mul", 0.1f, "Floor").result().find("must follow from constants and shapes"),
            std::string::npos);
}

TEST(ImportShape, RangesOfFloatsOverADim) {
  for (auto [first, expected] : {std::pair{0.0f, "f32[floordiv(seq + 1, 2)]"}, std::pair{20.0f, "f32[0]"}}) {
    ModelMaker m;
    m.input("x", "seq").dim("seq", 1, 16).output("y", "n");
    m.node("Shape", {"x"}, {"s"});
    set(m.node("Cast", {"s"}, {"f"}), "to", int64_t(1));
    m.node("Squeeze", {"f"}, {"n"});
    m.weights("first", {}).set_float_data(0, first);
    m.weights("two", {}).set_float_data(0, 2);
    m.node("Range", {"first", "n", "two"}, {"y"});
    EXPECT_EQ(m.result(), expected);
  }
}

/// Ops that shape arithmetic does not know, on constants: the evaluator computes them.
TEST(ImportShape, ShapesFromConstantsByAnyOp) {
  ModelMaker m;
  m.input("x", "seq").dim("seq", 1, 16).output("y", "a,b");
  m.constant("ones", {2}, {1, 1});
  m.constant("axis", {}, {0});
  m.node("CumSum", {"ones", "axis"}, {"s"}); // 1, 2
  set(m.node("Cast", {"s"}, {"f"}), "to", int64_t(1));
  m.node("Sqrt", {"f"}, {"g"});
  m.node("Ceil", {"g"}, {"h"});
  set(m.node("Cast", {"h"}, {"shape"}), "to", int64_t(7)); // 1, 2
  m.node("Shape", {"x"}, {"n"});
  set(m.node("Concat", {"shape", "n"}, {"all"}), "axis", int64_t(0));
  m.node("Expand", {"x", "all"}, {"y"});
  m.graph().clear_output();
  m.output("y", "a,b,c");
  EXPECT_EQ(m.result(), "f32[1, 2, seq]");
}

/// A float parameter may be replaced or trained: what it decides is decided at run time, but for a shape.
TEST(ImportShape, ControlByAWeightStays) {
  for (bool reduced : {true, false}) {
    ModelMaker m;
    m.input("x", "3").output("y", "3");
    m.weights("w", {5});
    m.weights("one", {}).set_float_data(0, 1);
    m.constant("first", {}, {0});
    if (reduced)
      set(m.node("ReduceMax", {"w"}, {"most"}), "keepdims", int64_t(0));
    else
      m.node("Gather", {"w", "first"}, {"most"});
    m.node("Greater", {"most", "one"}, {"goes"});
    m.node("Where", {"goes", "x", "x"}, {"unused"});
    proto::Node &n = m.node("If", {"goes"}, {"y"});
    for (const char *branch : {"then_branch", "else_branch"}) {
      proto::Graph &g = *attribute(n, branch, proto::Attribute::GRAPH).mutable_g();
      g.set_name(branch);
      proto::Node &body = *g.add_node();
      body.set_op_type(branch[0] == 't' ? "Neg" : "Abs");
      body.add_input("x");
      body.add_output("r");
      g.add_output()->set_name("r");
    }
    llvm::Expected<Module> module = m.import();
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    bool decided =
        llvm::none_of(topoSort(module->entries[0].outputs[0].value), [](UOpRef x) { return x->is(Op::Cond); });
    EXPECT_FALSE(decided) << reduced;
  }
}

/// Chains of strided layers have one form.
TEST(ImportShape, QuotientsOfQuotients) {
  ModelMaker m;
  m.input("x", "seq").dim("seq", 40, 64).output("y", "n", Int64);
  m.node("Shape", {"x"}, {"s"});
  m.constant("five", {1}, {5});
  m.constant("four", {1}, {4});
  m.constant("two", {1}, {2});
  m.constant("eight", {1}, {8});
  m.node("Sub", {"s", "five"}, {"a"});
  m.node("Div", {"a", "four"}, {"b"});
  m.node("Sub", {"b", "two"}, {"c"});
  m.node("Div", {"c", "two"}, {"d"});
  m.node("Div", {"a", "eight"}, {"e"});
  m.constant("one", {1}, {1});
  m.node("Add", {"d", "one"}, {"once"});
  m.node("Expand", {"one", "once"}, {"p"});
  m.node("Expand", {"one", "e"}, {"q"});
  m.node("Add", {"p", "q"}, {"y"}); // extents that are equal
  EXPECT_EQ(m.result(), "i64[floordiv(seq + 3, 8) - 1]");
}

TEST(ImportShape, Convolutions) {
  struct Case {
    std::vector<int64_t> weights, strides, pads;
    int64_t group;
    const char *expected;
  };
  for (const Case &c : {Case{{6, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, 1, "f32[n, 6, h, 10]"},
                        Case{{6, 4, 3, 3}, {2, 2}, {0, 0, 0, 0}, 1, "f32[n, 6, floordiv(h + 1, 2) - 1, 4]"},
                        Case{{8, 1, 1, 1}, {1, 1}, {0, 0, 0, 0}, 4, "f32[n, 8, h, 10]"},
                        Case{{4, 2, 5, 1}, {1, 3}, {2, 0, 2, 0}, 2, "f32[n, 4, h, 4]"}}) {
    ModelMaker m;
    m.input("x", "n,4,h,10").dim("n", 1, 4).dim("h", 5, 32).output("y", "a,b,c,d");
    m.weights("w", c.weights);
    proto::Node &n = m.node("Conv", {"x", "w"}, {"y"});
    set(n, "strides", c.strides);
    set(n, "pads", c.pads);
    set(n, "group", c.group);
    EXPECT_EQ(m.result(), c.expected);
  }
}

// Its result has the rank of its input: what follows joins its kernel and takes its layout.
TEST(ImportShape, DepthwiseConvolutionIsOneContract) {
  ModelMaker m;
  m.input("x", "1,4,7,10").output("y", "1,4,5,8");
  m.weights("w", {4, 1, 3, 3});
  set(m.node("Conv", {"x", "w"}, {"y"}), "group", 4);
  llvm::Expected<Module> module = m.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  UOpRef y = module->entries[0].outputs[0].value;
  EXPECT_EQ(y->op, Op::Contract);
  EXPECT_EQ(y->rank(), 4u);
}

TEST(ImportShape, TransposedConvolution) {
  ModelMaker m;
  m.input("x", "2,4,5,6").output("y", "2,6,11,13");
  m.weights("w", {4, 3, 3, 3});
  proto::Node &n = m.node("ConvTranspose", {"x", "w"}, {"y"});
  set(n, "strides", std::vector<int64_t>{2, 2});
  set(n, "group", 2);
  EXPECT_EQ(m.result(), "f32[2, 6, 11, 13]");
}

TEST(ImportShape, MatMulBroadcasts) {
  struct Case {
    const char *a, *b, *expected;
  };
  for (const Case &c :
       {Case{"n,5,3", "3,4", "f32[n, 5, 4]"}, Case{"3", "3,4", "f32[4]"}, Case{"2,3", "3", "f32[2]"},
        Case{"3", "3", "f32"}, Case{"n,1,2,3", "7,3,4", "f32[n, 7, 2, 4]"}, Case{"n,2,3", "1,3,4", "f32[n, 2, 4]"}}) {
    ModelMaker m;
    m.input("a", c.a).input("b", c.b).output("y", "");
    if (llvm::StringRef(c.a).contains('n')) m.dim("n", 1, 9);
    m.graph().mutable_output(0)->mutable_type()->mutable_tensor()->clear_shape();
    m.node("MatMul", {"a", "b"}, {"y"});
    EXPECT_EQ(m.result(), c.expected);
  }
}

TEST(ImportShape, PoolsWithCeilMode) {
  for (auto [ceil, expected] : {std::pair(0, "f32[1, 1, 2, 2]"), std::pair(1, "f32[1, 1, 3, 3]")})
    for (const char *op : {"MaxPool", "AveragePool"}) {
      ModelMaker m;
      m.input("x", "1,1,6,6").output("y", "1,1,a,b");
      proto::Node &n = m.node(op, {"x"}, {"y"});
      set(n, "kernel_shape", std::vector<int64_t>{3, 3});
      set(n, "strides", std::vector<int64_t>{2, 2});
      set(n, "ceil_mode", ceil);
      EXPECT_EQ(m.result(), expected) << op;
    }
}

TEST(ImportShape, TapsAreFurtherOutputs) {
  ModelMaker m;
  m.input("x", "3").output("y", "3");
  m.node("Relu", {"x"}, {"a.1"});
  m.node("Exp", {"a.1"}, {"a.2"});
  m.node("Tanh", {"a.2"}, {"y"});
  ASSERT_EQ(m.result(), "f32[3]");
  auto names = [&](const char *taps) {
    auto module = importONNX(m.path(), {{}, taps});
    if (!module) return llvm::toString(module.takeError());
    std::string text;
    for (const astra::Value &v : module->entries[0].outputs) text += v.name + (v.value->is(Op::Tap) ? "! " : " ");
    return text;
  };
  EXPECT_EQ(names("a.*|y"), "y a.1! a.2! ");
  EXPECT_EQ(names("a.2"), "y a.2! ");
  EXPECT_NE(names("b").find("--taps: no value of the model matches 'b'"), std::string::npos);
  EXPECT_NE(names("(").find("is not a regular expression"), std::string::npos);
}

// What float16 converters write: casts of the inputs behind the nodes that read them. A long chain backwards shows that
// no step is quadratic.
TEST(ImportShape, NodesAreSorted) {
  ModelMaker m;
  m.input("x", "3").output("y", "3");
  constexpr int length = 50000;
  for (int i = length; i-- > 0;)
    m.node("Relu", {i ? "v" + std::to_string(i) : "x"}, {i + 1 == length ? "y" : "v" + std::to_string(i + 1)});
  std::vector<std::string> notes;
  ImportOptions options;
  options.notes = &notes;
  m.write(m.model.SerializeAsString());
  auto module = importONNX(m.path(), options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "node 'Relu_y' (Relu) stands before node 'Relu_v49999' (Relu), whose output it reads: the nodes "
                      "were sorted, as ONNX requires of a file");
}

TEST(ImportShape, ABoundOfOneValueIsAConstant) {
  ModelMaker m;
  m.input("x", "n,2").dim("n", 3, 3).output("y", "3,2");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(m.result(), "f32[3, 2]");
}

} // namespace
} // namespace astra::onnx
