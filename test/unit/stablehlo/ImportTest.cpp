//===- ImportTest.cpp: what the StableHLO front door takes and refuses -----===//
// Takes:    programs in MLIR's generic form, right and wrong ones.
// Gives:    checks of types, names, dims and sentences. Numbers are compared with JAX's in test/stablehlo.
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/Import/StableHLO.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <gtest/gtest.h>

namespace astra {
namespace {

/// A program whose main has these arguments and this body.
std::string program(const std::string &arguments, const std::string &body, const std::string &before = "") {
  return before +
         "\"builtin.module\"() <{sym_name = \"m\"}> ({\n  \"func.func\"() <{sym_name = \"main\"}> ({\n  ^bb0(" +
         arguments + "):\n" + body + "\n  }) : () -> ()\n}) : () -> ()\n";
}

std::string returned(const std::string &value, const std::string &type) {
  return "\"func.return\"(" + value + ") : (" + type + ") -> ()";
}

/// "x: f32[2] -> result0: f32[2]", or the sentence.
std::string read(const std::string &text, const StableHLOOptions &options = {}) {
  llvm::Expected<Module> m = importStableHLO(text, "m.mlir", options);
  if (!m) return llvm::toString(m.takeError());
  std::string out;
  for (const Value &v : m->entries[0].inputs) out += v.name + ": " + typeText(v.value->dtype, v.value->shape) + " ";
  out += "->";
  for (const Value &v : m->entries[0].outputs) out += " " + v.name + ": " + typeText(v.value->dtype, v.value->shape);
  return out;
}

bool says(const std::string &text, const std::string &sentence, const StableHLOOptions &options = {}) {
  std::string found = read(text, options);
  if (found.find(sentence) != std::string::npos) return true;
  ADD_FAILURE() << found << "\nexpected: " << sentence;
  return false;
}

const std::string negate =
    "    %1 = \"stablehlo.negate\"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n    " + returned("%1", "tensor<2xf32>");

TEST(StableHLO, NamesOfArgumentsAndResults) {
  EXPECT_EQ(read(program("%0: tensor<2xf32>", negate)), "arg0: f32[2] -> result0: f32[2]");
  EXPECT_EQ(read(program("%0: tensor<2xf32> loc(\"x\")", negate)), "x: f32[2] -> result0: f32[2]");
  EXPECT_EQ(read(program("%0: tensor<2xf32> loc(#loc1)", negate, "#loc1 = loc(\"w\")\n")),
            "w: f32[2] -> result0: f32[2]");
  EXPECT_EQ(read(program("%0: tensor<2xf32> loc(unknown)", negate)), "arg0: f32[2] -> result0: f32[2]");
}

TEST(StableHLO, DynamicDims) {
  std::string text = program("%0: tensor<?x2xf32>", "    %1 = \"stablehlo.abs\"(%0) : (tensor<?x2xf32>) -> "
                                                    "tensor<?x2xf32>\n    " +
                                                        returned("%1", "tensor<?x2xf32>"));
  says(text, "argument 'arg0': dim 'arg0_0' of axis 0 is dynamic and needs bounds: give --dim arg0_0=1..64");
  EXPECT_EQ(read(text, {{{"arg0_0", 1, 8}}}), "arg0: f32[arg0_0, 2] -> result0: f32[arg0_0, 2]");
  EXPECT_EQ(read(text, {{{"*", 1, 8}}}), "arg0: f32[arg0_0, 2] -> result0: f32[arg0_0, 2]");
  EXPECT_EQ(read(text, {{{"arg0_0", 3, 3}}}), "arg0: f32[3, 2] -> result0: f32[3, 2]");
  says(text, "--dim n: the program has no dynamic dim of this name; it has arg0_0", {{{"arg0_0", 1, 8}, {"n", 1, 8}}});
  EXPECT_EQ(read(text, {{{"arg0_0", 0, 0, "2*n"}, {"n", 1, 8}}}), "arg0: f32[n*2, 2] -> result0: f32[n*2, 2]");
}

/// JAX says in its assertions what dims are called.
TEST(StableHLO, DimsOfAssertions) {
  std::string body = R"(
    %2 = "stablehlo.get_dimension_size"(%0) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %3 = "stablehlo.get_dimension_size"(%1) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %4 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.multiply"(%2, %4) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%6, %3, %5) <{call_target_name = "shape_assertion"}> {error_message = "Found {0}, expected {1}. Using the following polymorphic shapes specifications: args[0].shape = (b,),args[1].shape = (EXPR,). Obtained dimension variables: none"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    )" + returned("%1", "tensor<?xf32>");
  auto with = [&](const char *text) {
    std::string s = body;
    return program("%0: tensor<?xf32>, %1: tensor<?xf32>", s.replace(s.find("EXPR"), 4, text));
  };
  EXPECT_EQ(read(with("2*b"), {{{"b", 1, 8}}}), "arg0: f32[b] arg1: f32[b*2] -> result0: f32[b*2]");
  says(with("c"), "is not known to hold: Found c, expected b*2.", {{{"b", 1, 8}, {"c", 1, 8}}});
  says(with("3*b"), "expected b*2.", {{{"b", 1, 8}}});
}

/// JAX on a CPU calls LAPACK. Numbers: linalg.* of test/stablehlo.
TEST(StableHLO, Matrices) {
  auto calls = [](const char *target, const char *options, const char *type = "tensor<2x2xf32>") {
    std::string t = type;
    return program("%0: " + t, "    %1 = \"stablehlo.custom_call\"(%0) <{call_target_name = \"" + std::string(target) +
                                   "\"}> {mhlo.backend_config = {" + options + "}} : (" + t + ") -> " + t + "\n    " +
                                   returned("%1", t));
  };
  says(calls("lapack_spotrf_ffi", ""), "a call of LAPACK needs its option 'uplo' in mhlo.backend_config");
  says(calls("lapack_spotrf_ffi", "uplo = 76 : ui8"), "the call has 1 results, LAPACK's has 2");
  says(calls("lapack_strsm_ffi", ""), "the call has 1 operands, expected 2");
  says(calls("lapack_sgeev_ffi", ""),
       "the target 'lapack_sgeev_ffi' is not supported: of LAPACK there are potrf, trsm");
  says(calls("lapack_cpotrf_ffi", "", "tensor<2x2xcomplex<f32>>"), "is not supported: matrices of complex numbers");
  says(calls("lapack_spotrf", ""), "calls of LAPACK are lapack_<type><name>_ffi");
  auto one = [](const char *body, const char *type) {
    return program("%0: " + std::string(type), std::string("    ") + body + "\n    " + returned("%1", type));
  };
  EXPECT_EQ(read(one("%1 = \"stablehlo.cholesky\"(%0) <{lower = true}> : (tensor<3x2x2xf32>) -> tensor<3x2x2xf32>",
                     "tensor<3x2x2xf32>")),
            "arg0: f32[3, 2, 2] -> result0: f32[3, 2, 2]");
  says(one("%1 = \"stablehlo.cholesky\"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>", "tensor<2x3xf32>"), "square");
}

TEST(StableHLO, MalformedText) {
  says("", "m.mlir:1:1: error: expected a module");
  says("module @m {\n}", "expected the name of an op in quotes: the generic form");
  says("ML\xefR\r", "this is MLIR bytecode");
  says("\"builtin.module\"() ({", "a region is not closed");
  says(program("%0: tensor<2xf32>", returned("%9", "tensor<2xf32>")), "m.mlir:4:15: error: value '%9' is not defined");
  says(program("%0: tensor<*xf32>", ""), "unknown rank");
  says(program("%0: tensor<2xf32>, %0: tensor<2xf32>", negate), "value '%0' is defined twice");
  says(program("%0: tensor<2xf32>", "    \"cf.br\"()[^bb1] : () -> ()"), "branches between blocks");
  says(program("%0: tensor<2xf32>", "    %1, %2 = \"stablehlo.negate\"(%0) : (tensor<2xf32>) -> tensor<2xf32>"),
       "the op names 2 results and has 1 types of results");
  says(std::string(200, '('), "expected the name of an op");
  says("#a = " + std::string(100, '['), "nest deeper than 64");
}

TEST(StableHLO, WrongPrograms) {
  auto one = [](const std::string &op) { return program("%0: tensor<2xf32>", "    %1 = " + op); };
  says(one("\"stablehlo.infeed\"(%0) : (tensor<2xf32>) -> tensor<2xf32>"), "speaks to something outside");
  says(one("\"tensor.cast\"(%0) : (tensor<2xf32>) -> tensor<2xf32>"), "tensor.cast: this op is not supported");
  says(one("\"stablehlo.negate\"(%0) : (tensor<3xf32>) -> tensor<3xf32>"),
       "m.mlir:4:10: error: stablehlo.negate: operand 0 is of type f32[2], and the text says tensor<3xf32>");
  says(one("\"stablehlo.negate\"(%0) : (tensor<2xf32>) -> tensor<3xf32>"), "result 0 is of type f32[2]");
  says(one("\"stablehlo.add\"(%0) : (tensor<2xf32>) -> tensor<2xf32>"), "the op has 1 operands, expected 2");
  says(one("\"stablehlo.transpose\"(%0) : (tensor<2xf32>) -> tensor<2xf32>"), "attribute 'permutation' must be a list");
  says(one("\"stablehlo.constant\"() <{value = dense<[1.0, 2.0]> : tensor<3xf32>}> : () -> tensor<3xf32>"),
       "the constant has 8 bytes, its type needs 12");
  says(one("\"stablehlo.constant\"() <{value = dense<300> : tensor<i8>}> : () -> tensor<i8>"), "does not fit i8");
  says(one("\"stablehlo.custom_call\"(%0) <{call_target_name = \"f\"}> : (tensor<2xf32>) -> tensor<2xf32>"),
       "the target 'f' is not supported");
  says(one("\"func.call\"(%0) <{callee = @f}> : (tensor<2xf32>) -> tensor<2xf32>"), "there is no function 'f'");
  says(one("\"func.call\"(%0) <{callee = @main}> : (tensor<2xf32>) -> tensor<2xf32>"), "nest deeper than 64");
  says(program("%0: tensor<2xi37>", ""), "argument 'arg0' is of type tensor<...i37>, which is not supported");
  says("\"builtin.module\"() ({\n}) {mhlo.num_partitions = 2 : i32} : () -> ()", "has no function main");
}

/// One number for all elements takes no memory, however many there are.
TEST(StableHLO, RepeatedNumbers) {
  auto constant = [](const std::string &value, const std::string &type) {
    return program("%0: tensor<2xf32>", "    %1 = \"stablehlo.constant\"() <{value = dense<" + value + "> : " + type +
                                            "}> : () -> " + type + "\n    " + returned("%1", type));
  };
  EXPECT_EQ(read(constant("1.0", "tensor<1099511627776xf64>")), "arg0: f32[2] -> result0: f64[1099511627776]");
  EXPECT_EQ(read(constant("true", "tensor<3x4xi1>")), "arg0: f32[2] -> result0: bool[3, 4]");
  EXPECT_EQ(read(constant("\"0xFF\"", "tensor<300xi1>")), "arg0: f32[2] -> result0: bool[300]");
  EXPECT_EQ(read(constant("[[1, 2], [3, -4]]", "tensor<2x2xi8>")), "arg0: f32[2] -> result0: i8[2, 2]");
  EXPECT_EQ(read(constant("(1.0,-2.0)", "tensor<2xcomplex<f32>>")), "arg0: f32[2] -> result0: complex64[2]");
  says(constant("[1, 2, 3]", "tensor<2xi8>"), "more numbers than elements");
  says(constant("1.0", "tensor<1099511627776xf8E4M3FN>"), "a constant of more than 2^30 bytes");
}

TEST(StableHLO, PlaceInTheSource) {
  std::string text =
      "#loc1 = loc(\"model.py\":7:3)\n#loc2 = loc(\"jit(f)/neg\"(#loc1))\n" +
      program("%0: tensor<2xf32>", "    %1 = \"stablehlo.infeed\"(%0) : (tensor<2xf32>) -> tensor<2xf32> loc(#loc2)");
  says(text, "m.mlir:6:10: error: stablehlo.infeed (jit(f)/neg, model.py:7): ");
}

TEST(StableHLO, RowsNameEachOpOnce) {
  llvm::StringSet<> seen;
  unsigned stablehlo = 0, refused = 0;
  for (const StableHLORow &row : stableHLORows()) {
    EXPECT_TRUE(seen.insert(row.op).second) << row.op;
    stablehlo += llvm::StringRef(row.op).starts_with("stablehlo.");
    refused += !row.supported;
    if (!row.supported) {
      EXPECT_NE(std::string(row.remarks), "") << row.op << " is refused without a reason";
    }
  }
  EXPECT_GE(stablehlo, 110u);
  EXPECT_LT(refused, 40u);
}

} // namespace
} // namespace astra
