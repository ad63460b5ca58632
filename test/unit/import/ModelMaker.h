//===- ModelMaker.h: small ONNX models for tests ---------------------------===//
// Gives:    a model built in memory, written to a temporary folder of its own, imported.
// Keeps:    the folder only while the maker lives.
#pragma once
#include "astra/IR/Text.h"
#include "astra/Import/ONNX.h"
#include "onnx.pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

namespace astra::onnx {

enum Element { Float = 1, Int64 = 7, Boolean = 9, Half = 10 };

class ModelMaker {
public:
  proto::Model model;
  std::vector<DimBound> dims;
  llvm::SmallString<128> folder;

  explicit ModelMaker(int64_t opset = 20) {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("astra-import", folder));
    model.set_ir_version(10);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("g");
  }
  ~ModelMaker() { (void)llvm::sys::fs::remove_directories(folder); }

  proto::Graph &graph() { return *model.mutable_graph(); }
  std::string path(llvm::StringRef name = "model.onnx") const { return (folder + "/" + name).str(); }

  /// A shape is written "2,batch,3"; "" is a scalar.
  void type(proto::Value &value, Element element, llvm::StringRef shape) {
    auto &tensor = *value.mutable_type()->mutable_tensor();
    tensor.set_element(element);
    tensor.mutable_shape();
    llvm::SmallVector<llvm::StringRef> parts;
    if (!shape.empty()) shape.split(parts, ',');
    for (llvm::StringRef part : parts) {
      int64_t number;
      auto &dim = *tensor.mutable_shape()->add_dim();
      if (part.getAsInteger(10, number))
        dim.set_name(part.str());
      else
        dim.set_value(number);
    }
  }
  ModelMaker &input(const std::string &name, llvm::StringRef shape, Element element = Float) {
    auto &value = *graph().add_input();
    value.set_name(name);
    type(value, element, shape);
    return *this;
  }
  ModelMaker &output(const std::string &name, llvm::StringRef shape, Element element = Float) {
    auto &value = *graph().add_output();
    value.set_name(name);
    type(value, element, shape);
    return *this;
  }
  proto::Tensor &constant(const std::string &name, std::vector<int64_t> dims, std::vector<int64_t> values) {
    proto::Tensor &t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(Int64);
    for (int64_t d : dims) t.add_dims(d);
    for (int64_t v : values) t.add_int64_data(v);
    return t;
  }
  proto::Tensor &weights(const std::string &name, std::vector<int64_t> dims) {
    proto::Tensor &t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(Float);
    int64_t count = 1;
    for (int64_t d : dims) t.add_dims(d), count *= d;
    for (int64_t i = 0; i < count; ++i) t.add_float_data(float(i % 7) - 3);
    return t;
  }
  proto::Node &node(const std::string &op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    proto::Node &n = *graph().add_node();
    n.set_op_type(op);
    n.set_name(op + "_" + outputs[0]);
    for (auto &name : inputs) n.add_input(name);
    for (auto &name : outputs) n.add_output(name);
    return n;
  }
  ModelMaker &dim(const std::string &name, int64_t lo, int64_t hi) {
    dims.push_back({name, lo, hi});
    return *this;
  }

  void write(llvm::StringRef bytes) const { std::ofstream(path(), std::ios::binary).write(bytes.data(), bytes.size()); }
  llvm::Expected<Module> import() const {
    write(model.SerializeAsString());
    return importONNX(path(), {dims, ""});
  }
  /// The types of the outputs, "f32[batch, 3]; i64"; or the error, without the folder's name.
  std::string result() const {
    llvm::Expected<Module> module = import();
    if (!module) {
      std::string text = llvm::toString(module.takeError());
      for (size_t at; (at = text.find(folder.str().str())) != std::string::npos;) text.erase(at, folder.size() + 1);
      return text;
    }
    std::string text;
    for (const astra::Value &v : module->entries[0].outputs)
      text += (text.empty() ? "" : "; ") + typeText(v.value->dtype, v.value->shape);
    return text;
  }
};

inline proto::Attribute &attribute(proto::Node &n, const std::string &name, proto::Attribute::Type type) {
  proto::Attribute &a = *n.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}
inline void set(proto::Node &n, const std::string &name, int64_t value) {
  attribute(n, name, proto::Attribute::INT).set_i(value);
}
inline void setText(proto::Node &n, const std::string &name, const char *value) {
  attribute(n, name, proto::Attribute::STRING).set_s(value);
}
inline void set(proto::Node &n, const std::string &name, std::vector<int64_t> values) {
  proto::Attribute &a = attribute(n, name, proto::Attribute::INTS);
  for (int64_t v : values) a.add_ints(v);
}

} // namespace astra::onnx
