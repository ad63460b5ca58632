//===- async.hpp: promises that C++ can await -----------------------------===//
// Takes:    promises of astra.hpp.
// Gives:    toFuture (C++17); with C++20 `co_await promise`, and senders in the manner of P2300 ("std::execution").
//           Header-only, over astra_promise_on_ready; nothing but the standard library.
// Keeps:    what goes wrong reaches who awaits as an astra::Error with its sentence. A future and an operation keep the
//           promise until then; `co_await` takes one that outlives it. A future or a suspended coroutine may be
//           destroyed before the call has ended; an operation must not, as P2300 has it.
// Does not: make a thread or choose one: who awaits goes on where the call ended (astra.h says which thread that is and
//           what it may not do: wait for calls). It is not compiled with the runtime's ABI: no type of it crosses that.
//
//   std::future<astra::Promise> later = astra::toFuture(astra::Call(session, "main").input(x).output(y).submit(stream));
//   co_await astra::Call(session, "main").input(x).output(y).submit(stream);
//   auto operation = astra::sender([&] { return astra::Call(session, "main")....submit(stream); }).connect(receiver);
#pragma once

#include "astra/astra.hpp"

#include <atomic>
#include <exception>
#include <future>
#include <memory>

#if defined(__cpp_impl_coroutine) && defined(__cpp_concepts)
#define ASTRA_HAS_COROUTINES 1
#include <concepts>
#include <coroutine>
#include <optional>
#include <stop_token>
#endif

namespace astra {

/// The exception of a promise that has ended, with its sentence; null if it ended well.
inline std::exception_ptr failureOf(const Promise &promise) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_status status = astra_promise_poll(promise.get(), &diag);
  return status ? std::make_exception_ptr(Error(status, diag)) : nullptr;
}

/// A future of the promise itself, which knows the outputs' shapes. Destroying the future does not wait.
inline std::future<Promise> toFuture(Promise promise) {
  struct State {
    Promise promise;
    std::promise<Promise> result;
  };
  auto state = std::make_unique<State>();
  state->promise = std::move(promise);
  std::future<Promise> future = state->result.get_future();
  auto end = [](void *self, astra_status) {
    std::unique_ptr<State> s(static_cast<State *>(self));
    if (std::exception_ptr failure = failureOf(s->promise))
      s->result.set_exception(failure);
    else
      s->result.set_value(std::move(s->promise));
  };
  astra_promise *handle = state->promise.get();
  State *kept = state.release(); // the function frees it, unless it is refused
  try {
    check([&](astra_diag *d) { return astra_promise_on_ready(handle, end, kept, d); });
  } catch (...) {
    delete kept;
    throw;
  }
  return future;
}

#ifdef ASTRA_HAS_COROUTINES

//===- co_await -------------------------------------------------------------===//

/// Suspends a coroutine until a promise has ended. One that has ended does not suspend, and one that ends while the
/// coroutine is being suspended resumes it without nesting: a loop of a million awaits needs no deep stack.
///
/// A coroutine may be destroyed while it is suspended here: the call goes on, and nobody is resumed or written to when
/// it ends. What the call reads and writes has to stay until then, so it must not be in the coroutine; and as of every
/// coroutine, who destroys one sees to it that nobody resumes it at that moment, here the end of the call.
class PromiseAwaiter {
public:
  explicit PromiseAwaiter(astra_promise *promise) : promise(promise) {}
  PromiseAwaiter(const PromiseAwaiter &) = delete;
  ~PromiseAwaiter() {
    if (waiting && waiting->stage.exchange(Stage::Gone, std::memory_order_acq_rel) == Stage::Ended) delete waiting;
  }

  bool await_ready() const noexcept { return astra_promise_poll(promise, nullptr) != ASTRA_NOT_READY; }
  bool await_suspend(std::coroutine_handle<> coroutine) {
    auto given = std::make_unique<Waiting>(coroutine);
    check([&](astra_diag *d) { return astra_promise_on_ready(promise, end, given.get(), d); });
    waiting = given.release();
    Stage stage = Stage::Begun; // once it is Suspended `this` may be gone
    return waiting->stage.compare_exchange_strong(stage, Stage::Suspended, std::memory_order_acq_rel);
  }
  void await_resume() const {
    check([&](astra_diag *d) { return astra_promise_poll(promise, d); });
  }

private:
  enum class Stage { Begun, Suspended, Ended, Gone };
  /// What the awaiter and the end of the call share: the second of them frees it.
  struct Waiting {
    explicit Waiting(std::coroutine_handle<> coroutine) : coroutine(coroutine) {}
    std::coroutine_handle<> coroutine;
    std::atomic<Stage> stage{Stage::Begun};
  };
  static void end(void *self, astra_status) {
    auto *w = static_cast<Waiting *>(self);
    std::coroutine_handle<> coroutine = w->coroutine;
    Stage before = w->stage.exchange(Stage::Ended, std::memory_order_acq_rel);
    if (before == Stage::Suspended)
      coroutine.resume();
    else if (before == Stage::Gone)
      delete w;
  }
  astra_promise *promise;
  Waiting *waiting = nullptr; ///< of one that was suspended
};

/// `co_await promise`: throws an Error if it failed.
inline PromiseAwaiter operator co_await(const Promise &promise) { return PromiseAwaiter(promise.get()); }

//===- Senders --------------------------------------------------------------===//
// The words and the contract are those of P2300: a sender is connected to a receiver, which gives an operation; started
// once, it completes once, by set_value(Promise), set_error(std::exception_ptr) or set_stopped(). They are members, as
// std::execution looks for them.

template <typename R>
concept receiver = std::move_constructible<R> && requires(R &&r, Promise promise, std::exception_ptr error) {
  { std::move(r).set_value(std::move(promise)) } noexcept;
  { std::move(r).set_error(error) } noexcept;
  { std::move(r).set_stopped() } noexcept;
};

template <typename O>
concept operation_state = std::destructible<O> && std::is_object_v<O> && requires(O &o) {
  { o.start() } noexcept;
};

template <typename S, typename R>
concept sender_to = std::move_constructible<S> && receiver<R> && requires(S &&s, R &&r) {
  { std::move(s).connect(std::move(r)) } -> operation_state;
};

/// A receiver that may be asked to stop: it has get_stop_token(), which gives a std::stop_token. What has not begun
/// is cancelled then.
template <typename R>
concept stoppable_receiver = receiver<R> && requires(const R &r) {
  { r.get_stop_token() } -> std::convertible_to<std::stop_token>;
};

/// What connect gives. Once started it must stay where it is until it has completed, which the promise's end does
/// whatever becomes of the call: one that is stopped ends too.
template <typename Submit, receiver R> class PromiseOperation {
public:
  PromiseOperation(Submit &&submit, R &&r) : submit(std::move(submit)), to(std::move(r)) {}
  PromiseOperation(const PromiseOperation &) = delete;

  void start() noexcept {
    try {
      promise = submit();
      if constexpr (stoppable_receiver<R>) stop.emplace(to.get_stop_token(), Cancel{promise.get()});
      promise.onReady(end, this);
    } catch (...) {
      stop.reset();
      std::move(to).set_error(std::current_exception());
    }
  }

private:
  struct Cancel {
    astra_promise *promise;
    void operator()() const noexcept { astra_promise_cancel(promise, nullptr); }
  };
  static void end(void *self, astra_status status) {
    auto *o = static_cast<PromiseOperation *>(self);
    o->stop.reset(); // waits for who asks it to stop
    if (status == ASTRA_CANCELLED)
      std::move(o->to).set_stopped();
    else if (std::exception_ptr failure = failureOf(o->promise))
      std::move(o->to).set_error(failure);
    else
      std::move(o->to).set_value(std::move(o->promise));
  }
  Submit submit;
  R to;
  Promise promise;
  std::optional<std::stop_callback<Cancel>> stop;
};

/// A sender of what `submit` gives, a Promise. Nothing is submitted before the operation is started.
template <typename Submit> class PromiseSender {
public:
  using sender_concept = struct sender_t;
  explicit PromiseSender(Submit submit) : submit(std::move(submit)) {}
  template <receiver R> PromiseOperation<Submit, R> connect(R r) && { return {std::move(submit), std::move(r)}; }

private:
  Submit submit;
};

template <std::invocable Submit>
  requires std::same_as<std::invoke_result_t<Submit>, Promise>
PromiseSender<Submit> sender(Submit submit) {
  return PromiseSender<Submit>(std::move(submit));
}
/// The same of a call that was submitted already.
inline auto sender(Promise promise) {
  return sender([p = std::move(promise)]() mutable { return std::move(p); });
}

#endif

} // namespace astra
