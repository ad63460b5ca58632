//===- Scheduler.h: the state shared by the parts of the scheduler ---------===//
// Kernels.cpp closes kernels and chooses layouts, ContractLayout.cpp those of contracts, both by what PlaceFacts.cpp
// knows; Control.cpp emits loops and branches, Memory.cpp lays out slots, Scheduler.cpp drives.
#pragma once
#include "Checks.h"
#include "FoldParams.h"
#include "Fusion.h"
#include "Overwrite.h"
#include "ScopedMap.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Contract.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <map>
#include <set>

namespace astra {

/// Where a value lies in the routine at hand.
struct Place {
  uint32_t buffer;
  Layout layout;
  std::vector<UOpRef> allocated;
};

/// A layout with this axis innermost, the others in logical order.
Layout lastAxis(unsigned rank, int64_t axis);

/// A thing to be done so that a value has the layout that was chosen for it.
struct LayoutStep {
  enum Kind {
    Store,      // a parameter in this layout, in the bundle
    Keep,       // a parameter as it is stored, or as the user gives it
    StoreWords, // words of a parameter that is stored: in this layout of the words
    ShareBytes, // words are the bytes of what lies already
    Compute,    // by a kernel before, into this layout
    Pack,       // a copy in this layout, for all that read the value from now on
    Unpack,     // the value where it lay before it was packed
    Repack,     // a copy in this layout, for the kernel at hand alone
  } kind;
  UOpRef value;
  Layout layout = {};
};

/// How a kernel's result is stored, and what is done for its operands before, in this order.
struct LayoutChoice {
  Layout result;
  int64_t vectorIndex = -1; // of a contract: the kept label along which lanes run; -1: none
  std::vector<LayoutStep> steps = {};
};

class Scheduler {
public:
  Scheduler(Module &m, const ScheduleOptions &o) : m(m), o(o), c(m.ctx()), b(c) {}
  llvm::Expected<Schedule> run();

private:
  // Scheduler.cpp
  /// What follows fills a routine of its own.
  void begin(Routine &r);
  /// Fills the routine of the last of `out.entries`, or its second one.
  void entry(const Entry &e, StridedRoutine *strided);
  void fold();
  /// Notes in `unfolded` what these nodes and their sources are over folded params.
  void standIn(llvm::ArrayRef<UOpRef> roots);
  /// Appends to the program at hand what computes `roots`; each gets a place. A root with a destination is computed
  /// into it when its layout allows, else copied.
  /// `updates`: values and the states that they become.
  void values(llvm::ArrayRef<UOpRef> roots, const llvm::DenseMap<UOpRef, Place> &destinations,
              llvm::ArrayRef<std::pair<UOpRef, UOpRef>> updates = {});
  /// `part`: what v is a part of, which lies in `destination` if it can; null: nothing.
  void realize(UOpRef v, UOpRef rootOp, const Place *destination, const Part *part = nullptr);
  /// Whether part v of a concatenation lies in the whole, if it is computed with this layout: the first part that is
  /// asked for chooses the whole's. Then `rooms` has the whole's place.
  bool liesInWhole(UOpRef v, const Part &part, const Layout &layout, const Place *destination);
  /// Completes a concatenation by what does not lie in it yet.
  void concatenate(UOpRef v, const Concat &concat);
  /// Into its destination or the place of a value that dies, else into a copy of source 0.
  void scatter(UOpRef v, const Place *destination);
  void copyTo(UOpRef v, const Place &to);
  /// Whether v is there already, be its place a packed copy or not.
  bool liesIn(UOpRef v, uint32_t buffer);
  /// Gives words the place of their bytes, where these are neighbours there; else false.
  bool placeWords(UOpRef words);
  /// Brings every value to its place, as if all at once: a state may get what another one was.
  void moveAll(llvm::ArrayRef<std::pair<UOpRef, Place>> wanted);
  bool failed() const { return !error.empty(); }
  void fail(const llvm::Twine &what) {
    if (error.empty()) error = what.str();
  }

  // Kernels.cpp, and ContractLayout.cpp of contracts
  /// The closed graph of v over args; fills the inputs and their buffers. `computed` itself (v, or null) is never taken
  /// from its place.
  UOpRef close(UOpRef v, KernelSpec &spec, std::vector<uint32_t> &buffers, llvm::DenseMap<UOpRef, UOpRef> &closed,
               UOpRef computed);
  UOpRef closeIndex(UOpRef x) const;
  class PlaceFacts;
  class ContractLayout;
  /// Chooses, and does nothing: carryOut does.
  LayoutChoice layoutFor(UOpRef v, UOpRef rootOp) const;
  LayoutChoice contractLayout(UOpRef r) const;
  /// Parameters that rows are gathered from and that a contract reads too (the embedding that is also a language
  /// model's head): the panels that the contract would choose, before a gather, which can read any layout, has them
  /// stored.
  std::vector<LayoutStep> layoutsOfTables(llvm::ArrayRef<UOpRef> roots) const;
  /// Stores, copies and computes what a choice asks for.
  void carryOut(llvm::ArrayRef<LayoutStep> steps);
  /// Forgets the copies for the kernel at hand alone, but for the first `from` of `lent`.
  void endRepacks(size_t from);
  Place copied(UOpRef view, const Layout &layout);
  /// Copies what is read through a view to its place, or to a part of it that begins at `begin`.
  void copyView(UOpRef view, const Place &to, std::vector<UOpRef> begin = {});
  std::vector<UOpRef> beginOf(const Part &part);
  uint32_t kernelNumber(KernelSpec spec);
  /// Appends a launch of a kernel on these buffers.
  void emitKernel(KernelSpec spec, std::vector<uint32_t> buffers);
  /// Drops the kernels that no launch names.
  void dropKernels();
  const Place *placeOf(UOpRef x);
  void store(UOpRef param, Layout layout); // the params of the bundle, each once

  // Control.cpp
  void control(UOpRef n);
  void cond(UOpRef n);
  void whileLoop(UOpRef n);
  struct While;
  void carryDims(While &w);
  void placeCarried(While &w);
  void custom(UOpRef n, const llvm::DenseMap<UOpRef, Place> &destinations); // Custom.cpp
  void external(UOpRef n);                                                  // External.cpp
  void whileTest(const While &w, const Place &flag);
  void whileBody(const While &w);
  std::vector<UOpRef> extentsAfter(const While &w, llvm::ArrayRef<UOpRef> roots);
  std::vector<Place> whileResults(const While &w);
  void scan(UOpRef n);
  /// What is computed between these two lies where it does in a body only, which may not run: whoever comes after
  /// computes it again.
  void enterBody() { places.enter(), packedFrom.enter(), indexMap.enter(), results.enter(), finalDims.enter(); }
  void leaveBody() { places.leave(), packedFrom.leave(), indexMap.leave(), results.leave(), finalDims.leave(); }
  /// The results of a function body with its arguments replaced.
  std::vector<UOpRef> inlined(UOpRef fn, llvm::ArrayRef<UOpRef> args);
  UOpRef leaf(DType t, llvm::ArrayRef<UOpRef> shape, Place p);
  UOpRef internalDim(llvm::StringRef stem, int64_t lo, int64_t hi);
  /// An internal dim that reads what tests of a kernel found.
  UOpRef checkDim(const KernelChecks &k);
  /// Values that kernels can be made of. lifted: tests of kernels, whose scalars are appended; null: they are dropped.
  std::vector<UOpRef> legal(llvm::ArrayRef<UOpRef> roots, std::vector<KernelChecks> *lifted);
  uint32_t beginProgram();
  void beginLoop() { loops.push_back({uint32_t(routine->buffers.size()), {}}); }
  void endLoop();
  void prepare();
  void derive();
  void describeParams();

  // Strided.cpp
  /// The layout of an input or output of an entry where the caller has it, whose dims `to` gets; row-major where that
  /// is the only one possible.
  static bool hasDataExtent(Shape shape);
  Layout stridedLayout(UOpRef declared, bool isOutput, uint32_t index, StridedRoutine &to);
  /// Copies the strided inputs that something reads by other ways than element by element.
  void copyWhole(llvm::ArrayRef<UOpRef> roots);
  /// A launch of a kernel. Where tensors with strides may have neighbours along their last axis, and only there, they
  /// are loaded and stored by vectors: that is a kernel of its own.
  void addVariants(KernelSpec spec, std::vector<LaunchInstr::Variant> &to);

  // Join.cpp
  /// Puts launches that a CPU computes together one behind another.
  void join();
  void join(std::vector<Instr> &program, size_t last, llvm::ArrayRef<unsigned> named);

  // Overlap.cpp
  static bool runsBeside(llvm::StringRef function);
  static std::vector<UOpRef> sumsFirst(std::vector<UOpRef> order);
  static std::vector<UOpRef> shiftsEarly(std::vector<UOpRef> order);
  void land(size_t count);
  void landAll() { land(flights.size()); }
  void landFor(const Instr &i);
  void takeOff(const ExternalInstr &call);

  // Origins.cpp
  /// What `from` comes of, `to` does too.
  void inheritOrigin(UOpRef to, UOpRef from);
  /// Nodes that come of none of the user's compute a part of their readers; what reads no data is nobody's.
  void spreadOrigins(llvm::ArrayRef<UOpRef> order);
  /// Those of all nodes that were closed since the last launch.
  Origin takeOrigins();
  static Origin joined(llvm::ArrayRef<const Origin *> parts);

  // Memory.cpp
  uint32_t slotBuffer(DType t, llvm::ArrayRef<UOpRef> allocated, const Layout &l);
  UOpRef bound(UOpRef index) const;
  void forget(UOpRef x, uint32_t buffer);
  bool isRenamed(UOpRef x);
  std::vector<UOpRef> bound(llvm::ArrayRef<UOpRef> shape) const;
  void touch(uint32_t buffer);
  /// Whether what lies there is x's alone, and nobody but the kernel that is made next reads it.
  bool dies(UOpRef x, const Place &at) const {
    return uses.lookup(x) == 1 && routine->buffers[at.buffer].kind == BufferKind::Slot && !shared.count(at.buffer);
  }
  void layOutSlots();

  uint32_t addBuffer(BufferKind kind, uint32_t index, DType t, llvm::ArrayRef<UOpRef> allocated, const Layout &l);
  void emit(Instr i);

  Module &m;
  const ScheduleOptions &o;
  Context &c;
  Builder b;
  Schedule out;
  std::string error;
  llvm::DenseMap<UOpRef, KernelChecks> checks; // by the scalar that says what failed
  std::vector<FoldedParam> folded;
  llvm::DenseMap<UOpRef, UOpRef> unfolded; // nodes of the module -> the same over folded params

  llvm::DenseMap<UOpRef, uint32_t> storedParams; // in out.params
  llvm::StringMap<uint32_t> states;              // in out.states

  llvm::DenseMap<UOpRef, const Origin *> origin; // of nodes that the scheduler sees or makes
  std::deque<Origin> origins;                    // those that no node of the module has
  struct ByNumber {
    bool operator()(llvm::StringRef a, llvm::StringRef b) const { return a.compare_numeric(b) < 0; }
  };
  std::set<std::string, ByNumber> computing; // of what the kernel at hand computes

  // the routine at hand
  Routine *routine = nullptr;
  uint32_t program = 0;
  ScopedMap<Place> places;
  ScopedMap<Place> packedFrom;                               // where values lie as well whose place is a packed copy
  std::vector<std::pair<UOpRef, std::optional<Place>>> lent; // views in panels, and their own places
  llvm::DenseSet<uint32_t> shared; // buffers that values in and outside of a body name: none of those may write it
  llvm::DenseMap<UOpRef, unsigned> uses;
  llvm::DenseMap<UOpRef, Overwrite> overwriting; // updates of states in the program at hand
  struct Room {
    Place place;
    llvm::DenseSet<UOpRef> parts; // that lie there
  };
  llvm::DenseMap<UOpRef, Room> rooms; // of concatenations some of whose parts are computed
  ScopedMap<UOpRef> indexMap;         // extents and carried dims -> internal dims
  struct Life {
    uint32_t first, last;
  };
  std::vector<Life> lives; // per buffer, in instruction numbers
  struct OpenLoop {
    uint32_t buffers;            // how many there were when it began
    std::vector<uint32_t> outer; // those of them that it touches: they live to its end
  };
  std::vector<OpenLoop> loops;
  llvm::DenseMap<uint32_t, uint32_t> partner; // buffers that a loop swaps live together
  ScopedMap<std::vector<Place>> results;      // of control ops
  ScopedMap<std::vector<UOpRef>> finalDims;   // of whiles: their carried dims when they end
  uint32_t clock = 0;
  struct Flight {
    size_t at; // its instruction in the program
    llvm::SmallVector<uint32_t, 4> operands, results;
  };
  std::vector<Flight> flights; // calls that run beside, the oldest first, all in one program
  uint32_t flightProgram = 0;
  std::map<std::vector<uint64_t>, std::vector<uint32_t>> kernelsByHash; // looked up only
  unsigned leaves = 0, internals = 0;
};

} // namespace astra
