//===- RolesTest.cpp: what parameters are in small graphs ------------------===//
// Takes:    the lines of an entry, its parameters and functions.
// Gives:    the roles that are found, as "name: role n", by the parameters' order; what has none is "name: -".
#include "astra/NN/Roles.h"
#include "astra/IR/Module.h"
#include "astra/IR/Text.h"
#include "astra/NN/Initializer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace astra;
using namespace astra::nn;

namespace {
struct Case {
  const char *name, *params, *functions, *inputs, *body, *expected;
};

/// The roles in a module of these parts.
std::string found(const Case &c) {
  std::string text = "module @m {\n  dim n in 1..9\n", result;
  llvm::StringRef rest = c.params;
  for (llvm::StringRef line; !rest.empty();) {
    std::tie(line, rest) = rest.split(';');
    text += "  param @" + line.trim().str() + " = zeros\n";
  }
  text += std::string(c.functions) + "  entry @main(" + c.inputs + "{\n" + c.body + "  }\n}\n";
  llvm::Expected<Module> m = parse(text, c.name);
  if (!m) return llvm::toString(m.takeError()) + "\n" + text;
  auto roles = rolesOf({m->entries[0].outputs[0].value});
  llvm::raw_string_ostream s(result);
  for (const Param &p : m->params) {
    Role r = roles.lookup(p.value);
    s << (result.empty() ? "" : ", ") << p.value->str << ": " << (r.info ? r.info->name : "-");
    if (r.inputs) s << " " << llvm::format("%g", r.inputs);
  }
  return result;
}

const char *step = R"(  func @step(%h : f32[4], %x : f32[12], %w : f32[12, 4], %b : f32[4]) {
    %0 = permute %w perm=[1, 0]
    %p = contract %h[k], %0[k, j] -> [j] sum [k]
    %1 = shrink %x [0] [4]
    %2 = shrink %p [0] [4]
    %3 = add %1, %2
    %4 = shrink %p [8] [4]
    %5 = add %4, %b
    %6 = mul %3, %5
    %next = tanh %6
    return %next
  }
)";
const char *branches = R"(  func @one(%x : f32[n, 5], %w : f32[5, 3]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    return %y
  }
  func @other(%x : f32[n, 5], _) {
    %y = shrink %x [0, 0] [n, 3]
    return %y
  }
)";

const char *const layers = R"(
  func @layer(%h : f32[4], %w : f32[4, 4], %b : f32[4]) {
    %hh = mul %h, %h
    %0 = contract %hh[k], %w[k, j] -> [j] sum [k]
    %1 = add %0, %b
    return %1
  }
)";

const Case cases[] = {
    {"the weight of a product lies on either side, transposed or not", "w : f32[3, 5]; v : f32[3, 2]; b : f32[2]", "",
     "%x : f32[n, 5]) -> (%y : f32[2, n]) ", R"(
    %0 = permute @w perm=[1, 0]
    %1 = contract %x[i, k], %0[k, j] -> [i, j] sum [k]
    %2 = contract @v[k, j], %1[i, k] -> [j, i] sum [k]
    %3 = reshape @b [2, 1]
    %4 = expand %3 [2, n]
    %y = add %4, %2
)",
     "w: weight 5, v: weight 3, b: bias 3"},
    {"a convolution in groups", "w : f32[6, 2, 3]; b : f32[6]", "", "%x : f32[n, 4, 9]) -> (%y : f32[n, 6, 7]) ", R"(
    %0 = contract %x[i, g*2 + c, o + k], @w[g*3 + f, c, k] -> [i, g: 2, f: 3, o: 7] sum [k, c]
    %1 = reshape %0 [n, 6, 7]
    %2 = reshape @b [1, 6, 1]
    %3 = expand %2 [n, 6, 7]
    %y = add %1, %3
)",
     "w: weight 6, b: bias 6"},
    {"a transposed convolution: in each group the outputs of an input", "w : f32[4, 5, 3]; b : f32[10]", "",
     "%x : f32[n, 4, 6]) -> (%y : f32[n, 10, 8]) ", R"(
    %0 = contract %x[i, g*2 + c, o - k], @w[g*2 + c, f, k] -> [i, g: 2, f: 5, o: 8] sum [k, c: 2]
    %1 = reshape %0 [n, 10, 8]
    %2 = reshape @b [1, 10, 1]
    %3 = expand %2 [n, 10, 8]
    %y = add %1, %3
)",
     "w: weight 15, b: bias 15"},
    {"a bias has a number for each feature: a table of positions has more", "w : f32[5, 3]; p : f32[4, 3]", "",
     "%x : f32[4, 5]) -> (%y : f32[4, 3]) ", R"(
    %0 = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %y = add %0, @p
)",
     "w: weight 5, p: -"},
    {"what is added with a number for each row is no bias", "w : f32[5, 16]; r : f32[4]", "",
     "%x : f32[4, 5]) -> (%y : f32[4, 16]) ", R"(
    %0 = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %1 = reshape @r [4, 1]
    %2 = expand %1 [4, 16]
    %y = add %0, %2
)",
     "w: weight 5, r: -"},
    {"a weight that an index picks is no table", "w : f32[4, 5, 3]", "", "%x : f32[5], %k : i64) -> (%y : f32[3]) ", R"(
    %0 = gather @w, %k axis=0
    %y = contract %x[k], %0[k, j] -> [j] sum [k]
)",
     "w: -"},
    {"no slope where a value is positive", "a : f32[4]", "", "%x : f32[4]) -> (%y : f32[4]) ", R"(
    %zero = const 0.0 : f32
    %zero1 = reshape %zero [1]
    %zeros = expand %zero1 [4]
    %above = lt %zeros, %x
    %ax = mul %x, @a
    %y = select %above, %ax, %x
)",
     "a: -"},
    {"of two biases that are added first, both", "w : f32[5, 3]; b : f32[3]; c : f32[3]", "",
     "%x : f32[n, 5]) -> (%y : f32[n, 3]) ", R"(
    %0 = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %1 = add @b, @c
    %2 = reshape %1 [1, 3]
    %3 = expand %2 [n, 3]
    %y = add %0, %3
)",
     "w: weight 5, b: bias 5, c: bias 5"},
    {"what is added to a product a second time is no bias, nor what is added to no product",
     "w : f32[5, 3]; b : f32[3]; c : f32[3]; d : f32[5]", "", "%x : f32[5]) -> (%y : f32[3]) ", R"(
    %x1 = add %x, @d
    %0 = contract %x1[k], @w[k, j] -> [j] sum [k]
    %1 = add %0, @b
    %y = add %1, @c
)",
     "w: weight 5, b: bias 5, c: -, d: -"},
    {"a product of two parameters: the second is the weight, the first what it is for", "q : f32[4, 5]; w : f32[5, 3]",
     "", "%x : f32[4, 3]) -> (%y : f32[4, 3]) ", R"(
    %0 = contract @q[i, k], @w[k, j] -> [i, j] sum [k]
    %y = add %x, %0
)",
     "q: -, w: weight 5"},
    {"of two products the one with more inputs; a product of data has no weight", "w : f32[5, 3]", "",
     "%x : f32[n, 5]) -> (%y : f32[n, n]) ", R"(
    %0 = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    %1 = contract %0[i, k], @w[j, k] -> [i, j] sum [k]
    %y = contract %1[i, k], %x[j, k] -> [i, j] sum [k]
)",
     "w: weight 5"},
    {"parts of one weight, and a weight of parts",
     "w : f32[4, 6]; a : f32[6, 1]; b : f32[6, 2]; c : f32[1]; d : f32[2]", "", "%x : f32[n, 4]) -> (%y : f32[n, 3]) ",
     R"(
    %l = shrink @w [0, 0] [4, 3]
    %r = shrink @w [0, 3] [4, 3]
    %0 = contract %x[i, k], %l[k, j] -> [i, j] sum [k]
    %1 = contract %x[i, k], %r[k, j] -> [i, j] sum [k]
    %2 = mul %0, %1
    %3 = pad %2 [0, 0] [0, 3] value=0
    %pa = pad @a [0, 0] [0, 2] value=0
    %pb = pad @b [0, 1] [0, 0] value=0
    %one = const 1 : i64
    %one1 = reshape %one [1]
    %bound = reshape %one [1, 1]
    %bounds = expand %bound [6, 3]
    %at = iota [6, 3] axis=1 : i64[6, 3]
    %less = lt %at, %bounds
    %joined = select %less, %pa, %pb
    %4 = contract %3[i, k], %joined[k, j] -> [i, j] sum [k]
    %pc = pad @c [0] [2] value=0
    %pd = pad @d [1] [0] value=0
    %ones = expand %one1 [3]
    %row = iota [3] axis=0 : i64[3]
    %first = lt %row, %ones
    %bias = select %first, %pc, %pd
    %5 = reshape %bias [1, 3]
    %6 = expand %5 [n, 3]
    %y = add %4, %6
)",
     "w: weight 4, a: weight 6, b: weight 6, c: bias 6, d: bias 6"},
    {"a table, and one that is a weight too", "t : f32[7, 3]; u : f32[7, 3]; p : f32[3, 7]", "",
     "%i : i64[n]) -> (%y : f32[n, 7]) ", R"(
    %0 = gather @t, %i axis=0
    %1 = gather @u, %i axis=0
    %2 = gather @p, %i axis=1
    %3 = permute %2 perm=[1, 0]
    %4 = add %0, %1
    %5 = add %4, %3
    %y = contract %5[i, k], @u[j, k] -> [i, j] sum [k]
)",
     "t: table, u: weight 3, p: -"},
    {"a layer norm; a table of positions behind it is no shift", "g : f32[4]; b : f32[4]; p : f32[3, 4]", "",
     "%x : f32[3, 4]) -> (%y : f32[3, 4]) ", R"(
    %s = reduce %x kind=sum order=lane64 axes=[1]
    %four = const 4.0 : f32
    %four1 = reshape %four [1]
    %f = expand %four1 [3]
    %m = div %s, %f
    %m1 = reshape %m [3, 1]
    %m2 = expand %m1 [3, 4]
    %c = sub %x, %m2
    %q = mul %c, %c
    %qs = reduce %q kind=sum order=lane64 axes=[1]
    %v = div %qs, %f
    %eps = const 1e-5 : f32
    %eps1 = reshape %eps [1]
    %es = expand %eps1 [3]
    %ve = add %v, %es
    %d = sqrt %ve
    %one = const 1.0 : f32
    %one1 = reshape %one [1]
    %ones = expand %one1 [3]
    %i = div %ones, %d
    %i1 = reshape %i [3, 1]
    %i2 = expand %i1 [3, 4]
    %z = mul %c, %i2
    %g1 = reshape @g [1, 4]
    %g2 = expand %g1 [3, 4]
    %b1 = reshape @b [1, 4]
    %b2 = expand %b1 [3, 4]
    %zg = mul %z, %g2
    %zb = add %zg, %b2
    %y = add %zb, @p
)",
     "g: scale, b: shift, p: -"},
    {"an RMS norm by rsqrt, then a table that turns it", "g : f32[4]; t : f32[3, 4]", "",
     "%x : f32[3, 4]) -> (%y : f32[3, 4]) ", R"(
    %q = mul %x, %x
    %s = reduce %q kind=sum order=lane64 axes=[1]
    %quarter = const 0.25 : f32
    %quarter1 = reshape %quarter [1]
    %qs = expand %quarter1 [3]
    %v = mul %qs, %s
    %eps = const 1e-5 : f32
    %eps1 = reshape %eps [1]
    %es = expand %eps1 [3]
    %ve = add %es, %v
    %r = rsqrt %ve
    %r1 = reshape %r [3, 1]
    %r2 = expand %r1 [3, 4]
    %z = mul %r2, %x
    %g1 = reshape @g [1, 4]
    %g2 = expand %g1 [3, 4]
    %zg = mul %g2, %z
    %y = mul %zg, @t
)",
     "g: scale, t: -"},
    {"a batch norm of running statistics", "g : f32[4]; b : f32[4]; m : f32[4]; v : f32[4]", "",
     "%x : f32[3, 4]) -> (%y : f32[3, 4]) ", R"(
    %eps = const 1e-5 : f32
    %eps1 = reshape %eps [1]
    %es = expand %eps1 [4]
    %ve = add @v, %es
    %d = sqrt %ve
    %f = div @g, %d
    %mf = mul @m, %f
    %s = sub @b, %mf
    %f1 = reshape %f [1, 4]
    %f2 = expand %f1 [3, 4]
    %s1 = reshape %s [1, 4]
    %s2 = expand %s1 [3, 4]
    %xf = mul %x, %f2
    %y = add %xf, %s2
)",
     "g: scale, b: shift, m: -, v: -"},
    {"the length of a vector is no deviation", "v : f32[4]; g : f32[1]", "", "%x : f32[4]) -> (%y : f32[4]) ", R"(
    %0 = add %x, @v
    %q = mul %0, %0
    %s = reduce %q kind=sum order=lane64 axes=[0]
    %d = sqrt %s
    %d1 = reshape %d [1]
    %d2 = expand %d1 [4]
    %z = div %0, %d2
    %g1 = expand @g [4]
    %y = mul %z, %g1
)",
     "v: -, g: -"},
    {"the slope of a PReLU, and a layer's scale", "a : f32[4]; g : f32[4]", "", "%x : f32[4]) -> (%y : f32[4]) ", R"(
    %zero = const 0.0 : f32
    %zero1 = reshape %zero [1]
    %zeros = expand %zero1 [4]
    %above = lt %zeros, %x
    %ax = mul @a, %x
    %p = select %above, %x, %ax
    %gx = mul %p, @g
    %y = add %x, %gx
)",
     "a: slope, g: -"},
    {"a recurrent network: weights of the steps and of the input, and both biases",
     "i : f32[12, 7]; h : f32[12, 4]; b : f32[24]; r : f32[4]", step, "%x : f32[n, 7], %h0 : f32[4]) -> (%y : f32[4]) ",
     R"(
    %0 = contract %x[t, k], @i[j, k] -> [t, j] sum [k]
    %l = shrink @b [0] [12]
    %u = shrink @b [12] [12]
    %1 = add %l, %u
    %2 = reshape %1 [1, 12]
    %3 = expand %2 [n, 12]
    %4 = add %0, %3
    %5 = scan(@step) %h0, %4, @h, @r [n] ncarry=1 nxs=1
    %y = proj %5 [4] index=0 : f32[4]
)",
     "i: recurrent 4, h: recurrent 4, b: recurrent 4, r: recurrent 4"},
    {"layers that are slices of one weight and of one bias", "w : f32[3, 4, 4]; b : f32[3, 4]", layers,
     "%x : f32[4]) -> (%y : f32[4]) ", R"(
    %0 = scan(@layer) %x, @w, @b [3] ncarry=1 nxs=2
    %y = proj %0 [4] index=0 : f32[4]
)",
     "w: weight 4, b: bias 4"},
    {"a weight in a branch", "w : f32[5, 3]", branches, "%x : f32[n, 5], %c : bool) -> (%y : f32[n, 3]) ", R"(
    %0 = cond(@one, @other) %c, %x, @w
    %y = proj %0 [n, 3] index=0 : f32[n, 3]
)",
     "w: weight 5"},
    {"names, taps and conversions do not matter", "w : f64[5, 3]; b : f64[3]", "", "%x : f32[5]) -> (%y : f32[3]) ", R"(
    %0 = cast @w : f32[5, 3]
    %1 = tap %0 name="w"
    %2 = contract %x[k], %1[k, j] -> [j] sum [k]
    %3 = tap %2 name="z"
    %4 = cast %3 : f64[3]
    %5 = add %4, @b
    %y = cast %5 : f32[3]
)",
     "w: weight 5, b: bias 5"},
};

TEST(Roles, OfSmallGraphs) {
  std::set<std::string> seen;
  for (const Case &c : cases) {
    EXPECT_EQ(found(c), c.expected) << c.name;
    for (const RoleInfo &r : roles())
      if (llvm::StringRef(c.expected).contains(std::string(": ") + r.name)) seen.insert(r.name);
  }
  for (const RoleInfo &r : roles()) EXPECT_TRUE(seen.count(r.name)) << r.name << " has no case";
}

/// A role's text is an initializer, whose numbers are exact.
TEST(Roles, BeginAsTheTableSays) {
  auto of = [](llvm::StringRef name, double n) {
    return Role{llvm::find_if(roles(), [&](const RoleInfo &r) { return name == r.name; }), n}.initializer();
  };
  for (const char *name : {"recurrent", "weight", "bias"}) {
    Recipe r = of(name, 7);
    EXPECT_STREQ(r.signature->name, "uniform");
    EXPECT_EQ(r["low"], -1 / std::sqrt(7.0));
    EXPECT_EQ(r["high"], 1 / std::sqrt(7.0));
  }
  Recipe rows = of("table", 0);
  EXPECT_STREQ(rows.signature->name, "normal");
  EXPECT_EQ(rows["mean"], 0);
  EXPECT_EQ(rows["std"], 1);
  for (auto [name, value] : {std::pair("slope", 0.25), {"scale", 1.0}, {"shift", 0.0}}) {
    Recipe r = of(name, 0);
    EXPECT_STREQ(r.signature->name, "constant");
    EXPECT_EQ(r["value"], value);
  }
}
} // namespace
