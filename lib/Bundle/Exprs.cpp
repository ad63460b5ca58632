//===- Exprs.cpp: symbolic integers as the manifest's expressions -----------===//
// Takes:    index UOps over bound dims.
// Gives:    postfix code, operands before operators, left before right.
// Keeps:    the runtime's limit on stack depth, and a limit on length: a shared subexpression is written out each time.
// Does not: recurse.
#include "astra/Bundle/Exprs.h"
#include "format/Format.h"

using namespace astra;
using fmt::ExprCode;

namespace {

constexpr size_t maxOps = 65536;

std::optional<ExprCode> operatorOf(Op op) {
  switch (op) {
  case Op::Add: return ExprCode::Add;
  case Op::Sub: return ExprCode::Sub;
  case Op::Mul: return ExprCode::Mul;
  case Op::FloorDiv: return ExprCode::FloorDiv;
  case Op::Mod: return ExprCode::Mod;
  case Op::Min: return ExprCode::Min;
  case Op::Max: return ExprCode::Max;
  default: return std::nullopt;
  }
}

llvm::Error refuse(const llvm::Twine &text) {
  return llvm::createStringError(std::errc::not_supported, "%s", ("a symbolic size " + text).str().c_str());
}

} // namespace

llvm::Expected<ExprTable::Code> ExprTable::codeOf(UOpRef x) const {
  Code code;
  llvm::SmallVector<std::pair<UOpRef, bool>, 32> work{{x, false}};
  while (!work.empty()) {
    auto [node, operandsDone] = work.pop_back_val();
    if (code.size() + work.size() > maxOps) return refuse("is longer than 65536 operations");
    if (auto dim = dims.find(node); dim != dims.end()) {
      code.push_back({ExprCode::Dim, dim->second});
    } else if (std::optional<int64_t> value = node->constIndex()) {
      code.push_back({ExprCode::Const, *value});
    } else if (std::optional<ExprCode> op = operatorOf(node->op); !op) {
      return refuse("uses " + llvm::Twine(info(node->op).mnemonic) + " " + node->str +
                    ", which is neither a dim of the program nor integer arithmetic");
    } else if (operandsDone) {
      code.push_back({*op, 0});
    } else {
      work.push_back({node, true});
      for (UOpRef s : llvm::reverse(node->src)) work.push_back({s, false});
    }
  }
  return code;
}

llvm::Expected<uint32_t> ExprTable::add(UOpRef x) {
  if (auto it = known.find(x); it != known.end()) return it->second;
  llvm::Expected<Code> code = codeOf(x);
  if (!code) return code.takeError();
  llvm::Expected<uint32_t> n = number(std::move(*code));
  if (n) known[x] = *n;
  return n;
}

llvm::Expected<uint32_t> ExprTable::addAtMost(UOpRef left, UOpRef right) {
  llvm::Expected<Code> code = codeOf(left);
  if (!code) return code.takeError();
  llvm::Expected<Code> tail = codeOf(right);
  if (!tail) return tail.takeError();
  code->insert(code->end(), tail->begin(), tail->end());
  code->push_back({ExprCode::Le, 0});
  return number(std::move(*code));
}

uint32_t ExprTable::constant(int64_t value) { return llvm::cantFail(number({{ExprCode::Const, value}})); }

llvm::Expected<uint32_t> ExprTable::number(Code code) {
  uint32_t depth = 0;
  for (auto [op, value] : code) {
    bool leaf = op == ExprCode::Dim || op == ExprCode::Const;
    depth = leaf ? depth + 1 : depth - 1;
    if (depth > fmt::kMaxExprStack) return refuse("nests more than 64 operations deep");
  }
  auto [it, isNew] = numbers.try_emplace(std::move(code), uint32_t(codes.size()));
  if (isNew) codes.push_back(it->first);
  return it->second;
}

std::vector<std::unique_ptr<fmt::ExprT>> ExprTable::take() const {
  std::vector<std::unique_ptr<fmt::ExprT>> out;
  out.reserve(codes.size());
  for (const Code &code : codes) {
    auto e = std::make_unique<fmt::ExprT>();
    for (auto [op, value] : code) e->code.emplace_back(op, value);
    out.push_back(std::move(e));
  }
  return out;
}
