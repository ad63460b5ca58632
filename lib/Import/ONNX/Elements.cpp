//===- Elements.cpp: inputs that are sequences or optional values ----------===//
#include "Elements.h"
#include "../DimHints.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::onnx {

namespace {

constexpr int64_t mostElements = 4096;

/// What a flag says: no element, a number of elements, or the shape of each, as texts of extents.
struct Said {
  bool nothing = false;
  std::optional<int64_t> count;
  std::vector<std::vector<std::string>> shapes;
};

/// "none", "3" or "[2, n],[]"; nothing where the text is none of these.
std::optional<Said> parse(llvm::StringRef text) {
  Said said;
  text = text.trim();
  if (text == "none") return said.nothing = true, said;
  if (int64_t count; !text.getAsInteger(10, count))
    return count < 0 || count > mostElements ? std::nullopt : (said.count = count, std::optional(said));
  do {
    text = text.ltrim();
    if (!text.consume_front("[")) return std::nullopt;
    auto [inside, rest] = text.split(']');
    if (inside.size() == text.size() || said.shapes.size() == size_t(mostElements)) return std::nullopt;
    std::vector<std::string> &extents = said.shapes.emplace_back();
    llvm::SmallVector<llvm::StringRef, 4> parts;
    if (!inside.trim().empty()) inside.split(parts, ',');
    for (llvm::StringRef part : parts) extents.push_back(part.trim().str());
    if (llvm::is_contained(extents, "")) return std::nullopt;
    text = rest.ltrim();
  } while (text.consume_front(","));
  return text.empty() ? std::optional(said) : std::nullopt;
}

/// The type of a sequence, which may be in an optional value; null where there is none.
const proto::Type *sequenceOf(const proto::Type &type) {
  const proto::Type *t = type.has_optional_value() ? &type.optional_value().element() : &type;
  return t->has_sequence() ? t : nullptr;
}

proto::Value element(const std::string &name, const proto::Type &type, const std::vector<std::string> *shape) {
  proto::Value value;
  value.set_name(name);
  *value.mutable_type() = type;
  if (!shape) return value;
  proto::Type::Shape &declared = *value.mutable_type()->mutable_tensor()->mutable_shape();
  declared.clear_dim();
  for (const std::string &extent : *shape) {
    int64_t size;
    proto::Type::Dim &dim = *declared.add_dim();
    if (!llvm::StringRef(extent).getAsInteger(10, size) && size >= 0)
      dim.set_value(size);
    else
      dim.set_name(extent);
  }
  return value;
}

} // namespace

std::string askForElements(const proto::Value &input) {
  const proto::Type &type = input.type();
  auto flag = [&](const char *said) { return "--elements " + shellWord(input.name() + "=" + said); };
  std::string words = "input '" + input.name() + "' is ";
  if (sequenceOf(type))
    return words + (type.has_optional_value() ? "an optional sequence" : "a sequence") +
           ", and a bundle has inputs for as many elements as are known: give their shapes, as " + flag("[2,3],[n,3]") +
           ", or, where the model declares the shape of each, their number, as " + flag("2") +
           (type.has_optional_value() ? "; " + flag("none") + " where there is no sequence" : "");
  if (type.has_optional_value())
    return words + "an optional value, and a bundle has an input or none: give its shape, as " + flag("[2,3]") +
           ", or " + flag("1") + " where the model declares it, or " + flag("none") + " where there is no value";
  return "";
}

std::vector<ByElements> inputsByElements(proto::Graph &graph, const ImportOptions &options, Failures &failures) {
  std::vector<ByElements> all;
  google::protobuf::RepeatedPtrField<proto::Value> inputs;
  for (proto::Value &input : *graph.mutable_input()) {
    auto flag = llvm::find_if(options.elements, [&](const InputElements &e) { return e.name == input.name(); });
    bool is = input.type().has_sequence() || input.type().has_optional_value();
    if (flag == options.elements.end() || !is) {
      *inputs.Add() = input;
      continue;
    }
    const proto::Type *sequence = sequenceOf(input.type());
    std::optional<Said> said = parse(flag->said);
    std::string words = "--elements " + shellWord(flag->name + "=" + flag->said) + ": ";
    if (!said) {
      failures.addOfFlag(words + "expected none, a number of elements up to " + std::to_string(mostElements) +
                         ", or the shape of each, as [2,3],[n,3]");
      said.emplace().count = 0;
    }
    size_t count = said->nothing ? 0 : said->count ? size_t(*said->count) : said->shapes.size();
    if (said->nothing && !input.type().has_optional_value())
      failures.addOfFlag(words + "the input is no optional value; a sequence without elements is =0");
    if (!sequence && count > 1) failures.addOfFlag(words + "an optional value has one element or none");
    bool isList = sequence && !said->nothing;
    ByElements by{input.name(), isList, {}};
    const proto::Type &type = sequence ? sequence->sequence().element() : input.type().optional_value().element();
    for (size_t k = 0; k < (sequence ? count : std::min<size_t>(count, 1)); ++k) {
      std::string name = sequence ? input.name() + "." + std::to_string(k) : input.name();
      by.parts.push_back(name);
      *inputs.Add() = element(name, type, said->count ? nullptr : &said->shapes[k]);
    }
    if (isList || by.parts.empty()) all.push_back(std::move(by));
  }
  for (const InputElements &e : options.elements)
    if (llvm::none_of(graph.input(), [&](const proto::Value &input) {
          return input.name() == e.name && (input.type().has_sequence() || input.type().has_optional_value());
        }))
      failures.addOfFlag("--elements " + e.name +
                         ": the model has no input of this name that is a sequence or an optional value");
  graph.mutable_input()->Swap(&inputs);
  return all;
}

} // namespace astra::onnx
