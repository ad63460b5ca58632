//===- RefusalTest.cpp: what the importer refuses, and in which words ------===//
// Takes:    malformed files, unsupported ops, shapes and attributes that do not fit.
// Gives:    checks that each gives its sentence and nothing crashes.
#include "../../../lib/Import/ONNX/OpTable.h"
#include "ModelMaker.h"
#include <random>

namespace astra::onnx {
namespace {

/// A model of one Relu.
void makeRelu(ModelMaker &m, const char *shape = "batch,3") {
  m.input("x", shape).output("y", shape);
  m.node("Relu", {"x"}, {"y"});
}

TEST(ImportRefusal, Files) {
  ModelMaker m;
  EXPECT_NE(llvm::toString(importONNX(m.path("none.onnx"), {}).takeError()).find("cannot read"), std::string::npos);
  m.write("this is not protobuf");
  EXPECT_NE(llvm::toString(importONNX(m.path(), {}).takeError()).find("is not an ONNX model"), std::string::npos);
  m.write("");
  EXPECT_NE(llvm::toString(importONNX(m.path(), {}).takeError()).find("is not an ONNX model"), std::string::npos);
}

TEST(ImportRefusal, EveryTruncationAndManyMutations) {
  ModelMaker m;
  m.dim("batch", 1, 4);
  makeRelu(m, "batch,3");
  m.weights("w", {3});
  m.node("Add", {"y", "w"}, {"z"});
  m.graph().mutable_output(0)->set_name("z");
  std::string bytes = m.model.SerializeAsString();
  ASSERT_EQ(m.result(), "f32[batch, 3]");
  for (size_t length = 0; length < bytes.size(); ++length) {
    m.write(llvm::StringRef(bytes).take_front(length));
    llvm::consumeError(importONNX(m.path(), {m.dims, ""}).takeError());
  }
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string changed = bytes;
    for (int k = 0; k < 1 + round % 3; ++k) changed[random() % changed.size()] = char(random());
    m.write(changed);
    auto module = importONNX(m.path(), {m.dims, ""});
    if (!module) llvm::consumeError(module.takeError());
  }
}

TEST(ImportRefusal, Versions) {
  ModelMaker old(-1), future(29);
  makeRelu(old);
  makeRelu(future);
  EXPECT_EQ(old.result(), "'model.onnx' uses opset -1 of the default domain, this importer knows 1 to 28");
  EXPECT_EQ(future.result(), "'model.onnx' uses opset 29 of the default domain, this importer knows 1 to 28");
  ModelMaker ir;
  makeRelu(ir);
  ir.model.set_ir_version(15);
  EXPECT_EQ(ir.result(), "'model.onnx' is of ONNX IR version 15, this importer knows 1 to 14");
}

TEST(ImportRefusal, DimsWithoutBoundsAndBoundsWithoutDims) {
  ModelMaker m;
  makeRelu(m);
  EXPECT_EQ(
      m.result(),
      "model.onnx: input 'x': dim 'batch' of axis 0 is dynamic and needs bounds: give --dim batch=1..64 or the like\n"
      "with these flags the model is read: --dim batch=1..64");
  m.dim("batch", 1, 8).dim("seq", 1, 8);
  EXPECT_EQ(m.result(), "model.onnx: --dim seq: the model has no dynamic dim of this name; it has batch");
}

// Each answer brings the next question to light; the last line has all answers, and is read.
TEST(ImportRefusal, AllQuestionsAboutDimsAtOnce) {
  ModelMaker m;
  m.input("x", "n,3").input("z", "k,3").input("w", "m,3").input("s", "1,1,t").output("y", "n,3").output("r", "1,1,u");
  m.node("Add", {"x", "z"}, {"a"});
  m.node("Tanh", {"a"}, {"b"}); // poisoned by the first node until k is n
  m.node("Add", {"b", "w"}, {"y"});
  m.weights("f", {1, 1, 3});
  m.weights("g", {1, 1, 7});
  m.node("Conv", {"s", "f"}, {"c"});
  m.node("Conv", {"c", "g"}, {"r"});
  m.dim("t", 0, 20).dim("*", 2, 8).dim("typo", 1, 2);
  EXPECT_EQ(
      m.result(),
      "model.onnx: node 'Add_a' (Add, opset 20): extents n and k of axis 0 are not known to be equal; if they always "
      "are, say so with --dim n=k, or fix k and n with --dim k=N --dim n=N\n"
      "node 'Conv_c' (Conv, opset 20): extent t of a spatial axis may be smaller than the window of 3 allows; give "
      "--dim "
      "t=3..20\n"
      "--dim typo: the model has no dynamic dim of this name; it has k, m, n, t\n"
      "node 'Add_y' (Add, opset 20): extents k and m of axis 0 are not known to be equal; if they always are, say so "
      "with --dim k=m, or fix k and m with --dim k=N --dim m=N\n"
      "node 'Conv_r' (Conv, opset 20): extent t - 2 of a spatial axis may be smaller than the window of 7 allows; give "
      "--dim t=9..20\n"
      "with these flags the model is read, in place of every --dim given: --dim t=9..20 --dim '*=2..8' --dim n=k --dim "
      "k=m");
  m.dims = {{"t", 9, 20}, {"*", 2, 8}, {"n", 0, 0, "k"}, {"k", 0, 0, "m"}};
  EXPECT_EQ(m.result(), "f32[m, 3]; f32[1, 1, t - 8]");
  m.dims = {{"*", 10, 10}};
  EXPECT_EQ(m.result(), "f32[10, 3]; f32[1, 1, 2]");
}

TEST(ImportRefusal, AllUnsupportedOpsAtOnce) {
  ModelMaker m;
  m.input("x", "3").output("d", "3");
  m.node("Relu", {"x"}, {"a"});
  m.node("ImageDecoder", {"a"}, {"b"});
  m.node("FusedThing", {"b"}, {"c"}).set_domain("com.example");
  m.node("ImageDecoder", {"c"}, {"d"});
  EXPECT_EQ(m.result(),
            "model.onnx: node 'ImageDecoder_b' (ImageDecoder, opset 20): this op is not supported at any "
            "opset (2 nodes are of it)\n"
            "node 'FusedThing_c' (com.example::FusedThing, opset not imported): this op is not supported: it is of the "
            "domain 'com.example', and the model has no function of this name; Astra knows "
            "the default domain, ai.onnx.ml on numbers and ops of com.microsoft");
}

TEST(ImportRefusal, OpsOfOtherDomainsHaveAReason) {
  ModelMaker m;
  m.input("x", "3").output("y", "3");
  m.node("Snpe", {"x"}, {"y"}).set_domain("com.microsoft");
  EXPECT_EQ(m.result(), "model.onnx: node 'Snpe_y' (com.microsoft::Snpe, opset not imported): this op is not "
                        "supported: what another device's compiler made is inside of the node");
}

TEST(ImportRefusal, WhatAstraLacksHasACodeOfItsOwn) {
  auto code = [](ModelMaker &m) {
    auto module = m.import();
    return module ? std::error_code() : llvm::errorToErrorCode(module.takeError());
  };
  ModelMaker unknown, attribute, wrong, both, beside, flag;
  for (ModelMaker *m : {&unknown, &attribute, &wrong, &both, &beside, &flag})
    m->input("x", "3").input("y", "4").output("z", "3");
  unknown.node("ImageDecoder", {"x"}, {"z"});
  setText(attribute.node("Pad", {"x", "p"}, {"z"}), "mode", "constant");
  attribute.constant("p", {2}, {0, 0});
  attribute.node("Slice", {"z", "start", "end", "axis", "step"}, {"a"});
  attribute.constant("start", {1}, {0});
  attribute.constant("end", {1}, {3});
  attribute.constant("axis", {1}, {0});
  attribute.constant("step", {1}, {int64_t(1) << 40});
  wrong.node("Add", {"x", "y"}, {"z"});
  both.node("Add", {"x", "y"}, {"a"});
  both.node("BatchNormalization", {"x", "x", "x", "x", "x"}, {"z", "b"});
  beside.node("ImageDecoder", {"v"}, {"z"}); // a dim without bounds, and bounds without a dim
  beside.input("v", "n").dim("typo", 1, 2);
  flag.node("Neg", {"x"}, {"z"});
  flag.input("v", "n");
  EXPECT_EQ(code(beside), std::errc::not_supported);
  EXPECT_EQ(code(flag), std::errc::invalid_argument);
  EXPECT_EQ(code(unknown), std::errc::not_supported);
  EXPECT_EQ(code(attribute), std::errc::not_supported);
  EXPECT_EQ(code(wrong), std::errc::invalid_argument);
  EXPECT_EQ(code(both), std::errc::invalid_argument);
}

TEST(ImportRefusal, AllFaultsThatAreIndependent) {
  ModelMaker m;
  m.input("x", "3").input("y", "4").output("d", "3");
  m.node("Add", {"x", "y"}, {"a"});
  m.node("Relu", {"a"}, {"b"}); // follows from the first: not reported
  m.node("Reshape", {"x", "y"}, {"c"});
  set(m.node("Tanh", {"x"}, {"d"}), "slope", 3);
  EXPECT_EQ(m.result(), "model.onnx: node 'Add_a' (Add, opset 20): extents 3 and 4 of axis 0 do not broadcast\n"
                        "node 'Reshape_c' (Reshape, opset 20): the shape (input 1) depends on data: it must follow "
                        "from constants and shapes; if it is the same in every call, give --constant y=FILE.npy\n"
                        "node 'Tanh_d' (Tanh, opset 20): attribute 'slope' is not known");
}

TEST(ImportRefusal, TypesAndRanks) {
  struct Case {
    const char *op, *a, *b;
    Element type;
    const char *expected;
  };
  for (const Case &c :
       {Case{"Add", "3", "3", Int64, "sources differ: f32[3] and i64[3]"},
        Case{"MatMul", "2,3", "4,5", Float, "extents 3 and 4 of the axes that are multiplied are not equal"},
        Case{"And", "3", "3", Float, "the first input is of type f32, supported are bool"},
        Case{"Gather", "3,4", "2", Float, "expected i64 or i32"}}) {
    ModelMaker m;
    m.input("a", c.a).input("b", c.b, c.type).output("y", "");
    m.node(c.op, {"a", "b"}, {"y"});
    EXPECT_NE(m.result().find(c.expected), std::string::npos) << m.result();
  }
}

// What holds for some values of the dims: not wrong, but not supported; the dims to fix are named.
TEST(ImportRefusal, WhatDependsOnTheValueOfADim) {
  struct Case {
    const char *op, *a, *b, *expected;
  };
  for (const Case &c :
       {Case{"MatMul", "2,n", "k,3",
             "extents n and k of the axes that are multiplied are not known to be equal; if they "
             "always are, say so with --dim n=k, or fix k and n with --dim k=N --dim n=N"},
        Case{"Add", "n", "4", "of axis 0 are not known to be equal; if they always are, say so with --dim n=4"},
        Case{"Concat", "1,n", "1,k", "fix k and n with --dim k=N --dim n=N"}}) {
    ModelMaker m;
    for (const char *dim : {"k", "n"})
      if (std::string(c.a).find(dim) != std::string::npos || std::string(c.b).find(dim) != std::string::npos)
        m.dim(dim, 1, 16);
    m.input("a", c.a).input("b", c.b).output("y", "");
    proto::Node &node = m.node(c.op, {"a", "b"}, {"y"});
    if (std::string(c.op) == "Concat") set(node, "axis", int64_t(0));
    EXPECT_NE(m.result().find(c.expected), std::string::npos) << m.result();
    auto module = m.import();
    ASSERT_FALSE(bool(module));
    EXPECT_EQ(llvm::errorToErrorCode(module.takeError()), std::errc::not_supported);
  }
}

TEST(ImportRefusal, UnknownAndRepeatedNames) {
  ModelMaker m;
  m.input("x", "3").output("y", "3");
  m.node("Relu", {"nowhere"}, {"y"});
  EXPECT_EQ(m.result(), "model.onnx: node 'Relu_y' (Relu, opset 20): input 'nowhere' is not defined by any node, input "
                        "or initializer");
  ModelMaker twice;
  twice.input("x", "3").output("y", "3");
  twice.node("Relu", {"x"}, {"y"});
  twice.node("Tanh", {"x"}, {"y"});
  EXPECT_NE(twice.result().find("the model defines this name twice"), std::string::npos);
}

TEST(ImportRefusal, DeclaredTypesOfOutputsMustAgree) {
  ModelMaker m;
  m.input("x", "3").output("y", "3", Half);
  m.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(m.result(), "model.onnx: output 'y' is of type f32, which is not what the model declares");
}
TEST(ImportRefusal, DeclaredShapesOfOutputsAreHints) {
  ModelMaker m;
  m.input("x", "3").output("y", "4");
  m.node("Relu", {"x"}, {"y"});
  auto module = m.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(typeText(DType::F32, module->entries[0].outputs[0].value->shape), "f32[3]");
}

TEST(ImportRefusal, TensorsOfWrongSize) {
  ModelMaker m;
  makeRelu(m, "3");
  m.weights("w", {5}).add_float_data(1);
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w' holds 24 bytes, its dims and element type need 20");
  m.graph().mutable_initializer(0)->set_dims(0, -1);
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w' has the negative dim -1");
  m.graph().mutable_initializer(0)->set_dims(0, INT64_MAX);
  m.graph().mutable_initializer(0)->add_dims(INT64_MAX);
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w' has dims whose product overflows");
}

/// External data: weights of 12 bytes at byte 4 of a file.
struct External : testing::Test {
  ModelMaker m;
  proto::Tensor *tensor;
  void SetUp() override {
    m.input("x", "3").output("y", "3");
    tensor = &m.weights("w", {3});
    tensor->clear_float_data();
    tensor->set_data_location(proto::Tensor::EXTERNAL);
    m.node("Add", {"x", "w"}, {"y"});
    std::ofstream(m.path("data.bin"), std::ios::binary) << "0123456789abcdef";
  }
  void entry(const char *key, const std::string &value) {
    auto &e = *tensor->add_external_data();
    e.set_key(key);
    e.set_value(value);
  }
};

TEST_F(External, IsRead) {
  entry("location", "data.bin");
  entry("offset", "4");
  entry("length", "12");
  auto module = m.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(std::string(module->params[0].data->begin(), module->params[0].data->end()), "456789abcdef");
}
TEST_F(External, TooShort) {
  entry("location", "data.bin");
  entry("offset", "8");
  EXPECT_EQ(m.result(),
            "model.onnx: tensor 'w': the external data 'data.bin' has 16 bytes, the tensor needs 12 from byte 8");
}
TEST_F(External, WrongLength) {
  entry("location", "data.bin");
  entry("length", "13");
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w': external data is 13 bytes long, the dims and element type need 12");
}
TEST_F(External, OutsideTheFolder) {
  entry("location", "../../etc/hostname");
  EXPECT_NE(m.result().find("tensor 'w': "), std::string::npos);
  tensor->mutable_external_data(0)->set_value("/etc/hostname");
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w': external data must be named by a path relative to the model's folder, "
                        "not '/etc/hostname'");
  ASSERT_FALSE(llvm::sys::fs::create_link("/etc/hostname", m.path("link")));
  tensor->mutable_external_data(0)->set_value("link");
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w': the external data 'link' is outside the model's folder");
}

TEST_F(External, InAFolderWhoseNameBeginsLikeTheModels) {
  std::string sibling = (m.folder + "2").str();
  ASSERT_FALSE(llvm::sys::fs::create_directory(sibling));
  std::ofstream(sibling + "/data.bin", std::ios::binary) << "0123456789abcdef";
  std::string location = "../" + llvm::sys::path::filename(sibling).str() + "/data.bin";
  entry("location", location);
  EXPECT_EQ(m.result(), "model.onnx: tensor 'w': the external data '" + location + "' is outside the model's folder");
  (void)llvm::sys::fs::remove_directories(sibling);
}
TEST_F(External, NameWithAZeroByte) {
  entry("location", std::string("data.bin\0x", 10));
  EXPECT_NE(m.result().find("external data must be named by a path"), std::string::npos);
}

TEST(ImportRefusal, SparseIndicesTwice) {
  ModelMaker m;
  m.input("x", "4").output("y", "4");
  proto::SparseTensor &s = *m.graph().add_sparse_initializer();
  s.add_dims(4);
  proto::Tensor &values = *s.mutable_values(), &indices = *s.mutable_indices();
  values.set_name("s");
  values.set_data_type(Float);
  indices.set_data_type(Int64);
  for (proto::Tensor *t : {&values, &indices}) t->add_dims(2);
  for (int64_t i : {2, 2}) {
    values.add_float_data(float(i));
    indices.add_int64_data(i);
  }
  m.node("Add", {"x", "s"}, {"y"});
  EXPECT_NE(m.result().find("index 1 is out of range or out of order"), std::string::npos) << m.result();
}
TEST(ImportRefusal, WhatIsSaidTwice) {
  ModelMaker inputs;
  inputs.input("x", "4").input("x", "4").output("y", "4");
  inputs.node("Neg", {"x"}, {"y"});
  EXPECT_EQ(inputs.result(), "model.onnx: the model declares input 'x' twice");
  ModelMaker opsets;
  opsets.input("x", "4").output("y", "4");
  opsets.node("Neg", {"x"}, {"y"});
  opsets.model.add_opset_import()->set_version(7);
  EXPECT_NE(opsets.result().find("imports the domain '' at opsets 20 and 7"), std::string::npos) << opsets.result();
  ModelMaker values;
  values.input("x", "4").output("y", "4");
  values.weights("w", {4}).set_raw_data(std::string(16, 0));
  values.node("Add", {"x", "w"}, {"y"});
  EXPECT_NE(values.result().find("tensor 'w' holds its values twice, raw and typed"), std::string::npos)
      << values.result();
}

TEST(ImportDims, ThatFollowFromOthers) {
  ModelMaker m;
  m.input("x", "n,3").input("z", "m,3").output("y", "n,3");
  m.node("Add", {"x", "z"}, {"y"});
  m.dims = {{"n", 1, 8}, {"m", 1, 8}};
  EXPECT_NE(m.result().find("if they always are, say so with --dim "), std::string::npos) << m.result();
  m.dims = {{"n", 1, 8}, {"m", 0, 0, "n"}};
  auto module = m.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(typeText(DType::F32, module->entries[0].inputs[1].value->shape), "f32[n, 3]");
  m.dims = {{"n", 0, 0, "m"}, {"m", 0, 0, "n"}};
  EXPECT_NE(m.result().find("is not an expression of other dims"), std::string::npos) << m.result();
  m.dims = {{"n", 1, 8}, {"m", 0, 0, "k + 1"}};
  EXPECT_NE(m.result().find("--dim m: 'k + 1' is not an expression of other dims"), std::string::npos) << m.result();
}

TEST(ImportRefusal, SymbolicIntegersThatOverflow) {
  ModelMaker m;
  m.input("x", "2,3").output("y", "");
  m.constant("huge", {2}, {int64_t(1) << 62, 3});
  m.node("Mul", {"huge", "huge"}, {"product"});
  m.node("Relu", {"x"}, {"positive"}); // literals made after the overflow
  m.node("Reshape", {"positive", "product"}, {"y"});
  std::string text = m.result();
  EXPECT_NE(text.find("(Reshape, opset 20): "), std::string::npos) << text;
}

TEST(ImportTable, RowsOfAnOpDoNotOverlap) {
  std::map<std::string, std::vector<std::pair<int, int>>> ranges;
  for (const Row &row : allRows()) {
    EXPECT_LE(row.since, row.until) << row.op;
    EXPECT_LE(row.leastInputs, row.mostInputs) << row.op;
    ranges[row.op].push_back({row.since, row.until});
  }
  for (auto &[op, list] : ranges) {
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) EXPECT_EQ(list[i].first, list[i - 1].second + 1) << op;
    bool deprecated = op == "Upsample" || op == "Scatter"; // by opsets 10 and 11
    EXPECT_TRUE(deprecated || list.back().second == newestOpset) << op;
  }
  for (auto &[op, why] : onnxRefusals()) EXPECT_FALSE(ranges.count(op)) << op << ": " << why;
}

} // namespace
} // namespace astra::onnx
