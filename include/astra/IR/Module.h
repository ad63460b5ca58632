//===- Module.h: dims, parameters, states and entries ----------------------===//
// Gives:    what a model is: named entries over one graph, with the data of its parameters and the first values of its
//           states.
// Does not: own the graph's nodes (the Context does; a Module keeps it alive).
#pragma once
#include "astra/IR/Mesh.h"
#include "astra/IR/UOp.h"
#include <map>
#include <memory>
#include <string>

namespace astra {

/// Row-major bytes, shared and never written.
using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

/// What a module or a kernel has been through; each stage has rules of its own (Verify.h).
enum class Stage : uint8_t {
  Graph,    // from the front doors to the numerics stage
  Numbers,  // after the numerics stage: no functions, no random bits
  Kernel,   // lowered kernels: ranges of all kinds
  Expanded, // kernels without vector and unroll ranges
};

enum class ParamKind : uint8_t {
  Weight,   // what a training replaces
  Fixed,    // a tensor of the model that no training changes: a buffer
  Constant, // computed while importing, or written inside of the graph: no file of weights has it
};
struct Param {
  UOpRef value;             // the `param` node; its str is the name
  Bytes data;               // empty pointer: must be set at run time
  std::string file, tensor; // where unchanged data was read from, if the text named it: printed instead of the bytes
  ParamKind kind = ParamKind::Weight;
  Sharding sharding = {};
};
struct StateVar {
  UOpRef value;  // the `state` node
  Bytes initial; // empty pointer: zeros
  Sharding sharding = {};
};
struct Value {
  std::string name;
  UOpRef value; // an `arg` node for inputs
  Sharding sharding = {};
};
struct StateUpdate {
  std::string state;
  UOpRef value;
};
struct Entry {
  std::string name;
  std::vector<Value> inputs, outputs; // inputs[i].value is arg i
  std::vector<StateUpdate> updates;
};
/// An entry that a pass makes of another one (Autograd): `grad` gives its outputs and the derivatives of the first of
/// them, a scalar, by `wrt`; `jvp` takes tangents of `wrt` too and gives those of the outputs; `vmap` does what the
/// entry does for `size` elements at once, stacked along an axis more.
enum class Transform : uint8_t { Grad, Jvp, Vmap };
const char *transformName(Transform t);
struct Directive {
  struct Name {
    bool global; // a parameter or state, else an input
    std::string text;
  };
  struct Place {
    std::string name; // an input or an output
    int64_t axis;
  };
  Transform transform;
  std::string name, of; // entries
  std::vector<Name> wrt = {};
  // vmap: inputs that are not named are shared, outputs that are not named have the axis in front.
  UOpRef size = nullptr;
  std::vector<Place> in = {}, out = {};
};
/// Equation `number` of a module as one of its entries checks it.
struct EntryEquation {
  size_t number;
  UOpRef left, right; // over dims of the entry
};

/// Which of the user's nodes a uop came from (ONNX node names, text lines): at most 8, sorted, and how many there were.
struct Origin {
  std::vector<std::string> names;
  unsigned count = 0;
};
class Origins {
public:
  void add(UOpRef node, llvm::StringRef name);
  /// `to` inherits what `from` has: called when a node is replaced.
  void inherit(UOpRef to, UOpRef from);
  const Origin *find(UOpRef node) const;

private:
  std::map<uint32_t, Origin> byId;
};

struct Module {
  std::shared_ptr<Context> context = std::make_shared<Context>();
  std::string name = "module";
  Stage stage = Stage::Graph; // Graph or Numbers: what needs the graph of an earlier stage is refused
  Mesh mesh; // data and shardings of parameters and states are of whole tensors in every form but Stacked
  std::vector<UOpRef> dims; // `dim` nodes, in order of declaration; a dim that no input's shape binds is a host scalar
  std::vector<Param> params;
  std::vector<StateVar> states;
  std::vector<Equation> equations;
  std::vector<Entry> entries;
  std::vector<Directive> directives; // carried out in order, before the numerics stage
  Origins origins;

  Context &ctx() const { return *context; }
  const Param *param(llvm::StringRef name) const;
  const StateVar *state(llvm::StringRef name) const;
  const Entry *entry(llvm::StringRef name) const;
  /// Outputs and state updates of every entry, in order.
  std::vector<UOpRef> roots() const;
  /// The module's dims that the entry uses in shapes, in index sources or in the bodies of control ops, and those that
  /// an equation about them needs and does not give, in their order.
  std::vector<UOpRef> dimsOf(const Entry &e) const;
  /// The equations that restrict what the entry is called with. Where one gives a dim that the entry does not use, as
  /// n == 2*m gives m, the dim's value stands for it, kept within its bounds: then n == 2*m holds for no odd n, and for
  /// none whose half is no m.
  std::vector<EntryEquation> equationsOf(const Entry &e) const;
};

/// Replaces leaves in all entries by others of the same type; origins are inherited.
void replaceLeaves(Module &m, llvm::ArrayRef<std::pair<UOpRef, UOpRef>> leaves);
/// Every value of the entries, sources first, as `rewrite` gives it: it takes the node with its new sources. Bodies of
/// control ops stay.
void mapValues(Module &m, llvm::function_ref<UOpRef(UOpRef)> rewrite);

} // namespace astra
