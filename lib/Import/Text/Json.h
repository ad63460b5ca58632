//===- Json.h: values of a JSON object, or a sentence ---------------------===//
// Takes:    a parsed object and the name that sentences call it by.
// Gives:    its members by type; a member of another type is an error that stays.
// Keeps:    the first error.
// Does not: parse.
#pragma once

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace astra::import::text {

/// The error of a reading: the first one stays.
class Fault {
public:
  void operator()(const llvm::Twine &sentence) {
    if (text.empty()) text = sentence.str();
  }
  explicit operator bool() const { return !text.empty(); }
  llvm::Error take() const { return text.empty() ? llvm::Error::success() : llvm::createStringError(text); }

private:
  std::string text;
};

/// Members of an object; a missing one, or null, is the given default.
class Members {
public:
  Members(const llvm::json::Object *object, std::string where, Fault &fault)
      : object(object), where(std::move(where)), fault(fault) {}

  bool has(llvm::StringRef name) const { return value(name) != nullptr; }
  std::string text(llvm::StringRef name, llvm::StringRef otherwise = {}) const {
    return typed(name, "a text", otherwise.str(), [](const llvm::json::Value &v) { return v.getAsString(); });
  }
  bool flag(llvm::StringRef name, bool otherwise) const {
    return typed(name, "true or false", otherwise, [](const llvm::json::Value &v) { return v.getAsBoolean(); });
  }
  int64_t integer(llvm::StringRef name, int64_t otherwise) const {
    return typed(name, "an integer", otherwise, [](const llvm::json::Value &v) { return v.getAsInteger(); });
  }
  Members member(llvm::StringRef name) const {
    const llvm::json::Value *v = value(name);
    if (v && !v->getAsObject()) fault(where + ": \"" + name + "\" is no object");
    return Members(v ? v->getAsObject() : nullptr, where + "." + name.str(), fault);
  }
  /// The array's members, none if there is no array.
  llvm::ArrayRef<llvm::json::Value> array(llvm::StringRef name) const {
    const llvm::json::Value *v = value(name);
    if (v && !v->getAsArray()) fault(where + ": \"" + name + "\" is no array");
    const llvm::json::Array *a = v ? v->getAsArray() : nullptr;
    return a ? llvm::ArrayRef<llvm::json::Value>(a->data(), a->size()) : llvm::ArrayRef<llvm::json::Value>();
  }
  const llvm::json::Value *value(llvm::StringRef name) const {
    const llvm::json::Value *v = object ? object->get(name) : nullptr;
    return v && v->kind() != llvm::json::Value::Null ? v : nullptr;
  }
  explicit operator bool() const { return object; }
  const llvm::json::Object *get() const { return object; }
  const std::string &name() const { return where; }
  void refuse(const llvm::Twine &why) const { fault(where + ": " + why); }
  Fault &faults() const { return fault; }

private:
  template <typename T, typename Read> T typed(llvm::StringRef name, const char *what, T otherwise, Read read) const {
    const llvm::json::Value *v = value(name);
    if (!v) return otherwise;
    if (auto got = read(*v)) return T(*got);
    fault(where + ": \"" + name + "\" is not " + what);
    return otherwise;
  }
  const llvm::json::Object *object;
  std::string where;
  Fault &fault;
};

} // namespace astra::import::text
