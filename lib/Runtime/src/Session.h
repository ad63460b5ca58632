//===- Session.h: state, arena, dim values, the call in flight ------------===//
// Takes:    a loaded bundle.
// Gives:    the memory that calls of one session share; what a call in flight holds.
// Keeps:    one call in flight: `busy` is taken by a compare-and-swap and given back as the last thing a call does.
// Does not: queue (Stream.h), interpret (Interpreter.h).
#pragma once

#include "Interpreter.h"
#include "Stream.h"
#include "Tensor.h"

namespace astra::rt {

struct StateValue {
  void *data;
  uint64_t bytes;
  uint32_t rank;
  int64_t shape[ASTRA_MAX_RANK];
  bool lost, leased;
  void *mirror; ///< of a leased state of a GPU: its bytes on the host
};

/// A tensor that the program cannot use where it is: an input is copied into staging memory when the call begins, an
/// output from there when it ends. Of a GPU, what is not row-major is packed on the host in between.
struct StagedTensor {
  View view;
  uint32_t index;
  uint64_t offset, packed;
  bool isOutput;
};

/// A tensor that a call in flight reads or writes.
struct Access {
  const View *view; ///< one of the session's
  bool writes;
};

/// Fills dims from the inputs' shapes and the session's values, and checks bounds and equations.
/// `dims` has one number per dim of the manifest.
Status bindDims(astra_session *session, const fmt::Entry &entry, const View *inputs, int64_t *dims, astra_diag *diag);
/// Shape (actual or bound) of an output for these dims.
Status outputShape(const astra_bundle &bundle, const fmt::Tensor &output, bool bound, const int64_t *dims,
                   int64_t *shape, astra_diag *diag);
/// dtype, rank and shape of an input are those of the entry for these dims.
Status checkInput(const astra_bundle &bundle, const fmt::Tensor &input, const View &view, const int64_t *dims,
                  astra_diag *diag);

/// The stored form of a user's param (Params.cpp). `out` owns new memory on success.
Status makeParam(astra_loaded *loaded, uint32_t index, const astra_tensor *value, ParamValue &out, astra_diag *diag);
Status findUserParam(const astra_bundle *bundle, const char *name, uint32_t &index, astra_diag *diag);
void freeParam(astra_device *device, ParamValue &value);
/// Brings a session's derived params up to `changes` of the loaded bundle's params, which stay meanwhile (Params.cpp).
Status followLoaded(astra_session *session, uint64_t changes, astra_diag *diag);
inline constexpr uint64_t kParamAlign = 64;

/// Takes the session for the time of a change; refuses with ASTRA_BUSY.
Status takeSession(astra_session *session, astra_diag *diag);
void leaveSession(astra_session *session);
/// Takes the session for the time of a scope.
struct Taken {
  Taken(astra_session *session, astra_diag *diag) : session(session), status(takeSession(session, diag)) {}
  ~Taken() {
    if (!status) leaveSession(session);
  }
  astra_session *session;
  Status status;
};

} // namespace astra::rt

struct astra_session : astra::rt::Handle {
  explicit astra_session(astra_loaded *loaded) : Handle(loaded->runtime), loaded(loaded) {}
  ~astra_session();

  astra_loaded *loaded;
  std::atomic<bool> busy{false};
  astra::rt::Array<astra::rt::StateValue> states;
  astra::rt::Array<int64_t> given; ///< per dim: value of host and session dims
  astra::rt::Array<bool> isGiven;
  astra::rt::Array<const void *> params;         ///< per param: replaced for this session, or null
  astra::rt::Array<astra::rt::ParamValue> owned; ///< their memory
  uint64_t changesSeen = 0;                      ///< those of loaded that derived params here follow
  astra_trace_fn trace = nullptr;
  void *traceSelf = nullptr;

  // Memory of calls, kept from call to call.
  astra::rt::Array<astra::rt::RoutineMemory> memories; ///< per entry, then of their routines for strides
  astra::rt::DeviceMemory arena, scratch, staging;
  astra::rt::DeviceMemory room;      ///< of functions on a GPU's memory
  astra::rt::Array<uint8_t> packing; ///< of a GPU: for what is not row-major
  astra::rt::Lane *lane = nullptr;   ///< if programs have calls beside them, on the host
  astra::rt::Array<int64_t> dims;
  astra::rt::Array<astra::rt::View> views; ///< inputs, then outputs

  // The call in flight.
  const astra_entry *entry = nullptr;
  bool isStrided = false; ///< it runs the entry's routine for strides
  astra::rt::Task task;
  astra::rt::Array<astra_promise *> after;
  astra::rt::Array<void *> buffers;
  astra::rt::Array<astra::rt::StagedTensor> staged;
  uint32_t numStaged = 0;
  astra::rt::Array<astra::rt::Access> accesses;
  uint32_t numAccesses = 0;
  astra::rt::Array<astra::rt::Block *> blocks;
  uint32_t numBlocks = 0;
  astra_session *nextInFlight = nullptr;
  uint32_t streamNumber = 0; ///< with runtime.order locked
  uint64_t tick = 0;
  bool launched = false;

  const astra::fmt::Routine &routineOf(const astra_entry &e) const {
    return isStrided ? *e.table->strided()->routine() : *e.table->routine();
  }
  astra::rt::RoutineMemory &memoryOf(const astra_entry &e) {
    return memories[e.index + (isStrided ? memories.size() / 2 : 0)];
  }
};
