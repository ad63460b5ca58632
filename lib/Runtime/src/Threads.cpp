//===- Threads.cpp: the thread pool made on request -----------------------===//
// Takes:    a number of threads.
// Gives:    an astra_executor: parallel_for that makes progress on the calling thread alone, and enqueue.
// Keeps:    a worker never waits for work that has not begun; the hot path allocates nothing.
// Does not: pin threads, change signals (all are blocked in the workers) or priorities.
#include "Device.h"

#include <signal.h>
#include <unistd.h>

using namespace astra::rt;

namespace {

/// A parallel_for in progress. Lives on the stack of its caller, who leaves only when no worker is inside.
struct Job {
  Job *next;
  void (*fn)(void *, size_t);
  void *arg;
  size_t count;
  std::atomic<size_t> taken{0};
  std::atomic<uint32_t> inside{0}; ///< workers; changed under the pool's mutex

  void help() {
    for (size_t i; (i = taken.fetch_add(1, std::memory_order_relaxed)) < count;) fn(arg, i);
  }
};

struct Task {
  void (*fn)(void *);
  void *arg;
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

} // namespace

struct astra::rt::ThreadPool {
  explicit ThreadPool(Heap &heap) : heap(heap) {}

  Heap &heap;
  Mutex mutex;
  Condition wake, left;
  Job *jobs = nullptr;
  Array<Task> tasks; ///< a ring; as many places as streams, each of which is queued once at most
  uint64_t head = 0, queued = 0, reserved = 0;
  std::atomic<uint32_t> pending{0}; ///< jobs and tasks that somebody could take, to spin on
  uint32_t sleeping = 0;
  bool stop = false;
  uint32_t spins = 0; ///< how often to look before sleeping
  Array<pthread_t> threads;
  uint32_t started = 0;

  void run();
  void parallelFor(size_t n, void (*fn)(void *, size_t), void *arg);
  int enqueue(void (*fn)(void *), void *arg);
  void wakeOthers(size_t wanted) {
    if (wanted > 1 && sleeping > 1)
      wake.notifyAll();
    else if (wanted && sleeping)
      wake.notifyOne();
  }
};

void ThreadPool::run() {
  mutex.lock();
  while (!stop) {
    if (queued) {
      Task task = tasks[head];
      head = (head + 1) % tasks.size();
      queued--, pending--;
      mutex.unlock();
      task.fn(task.arg);
      mutex.lock();
      continue;
    }
    Job *job = jobs;
    while (job && job->taken.load(std::memory_order_relaxed) >= job->count) job = job->next;
    if (job) {
      job->inside++;
      mutex.unlock();
      job->help();
      mutex.lock();
      if (job->inside.fetch_sub(1, std::memory_order_release) == 1) left.notifyAll();
      continue;
    }
    // The next launch of a program comes within microseconds: look a while before sleeping.
    uint32_t before = pending.load(std::memory_order_relaxed);
    mutex.unlock();
    bool more = false;
    for (uint32_t i = 0; i < spins && !more; i++) relax(), more = pending.load(std::memory_order_relaxed) > before;
    mutex.lock();
    if (more || queued || stop) continue;
    bool open = false;
    for (Job *j = jobs; j; j = j->next) open |= j->taken.load(std::memory_order_relaxed) < j->count;
    if (open) continue;
    sleeping++;
    wake.wait(mutex);
    sleeping--;
  }
  mutex.unlock();
}

void ThreadPool::parallelFor(size_t n, void (*fn)(void *, size_t), void *arg) {
  Job job{nullptr, fn, arg, n};
  mutex.lock();
  job.next = jobs, jobs = &job;
  pending++;
  wakeOthers(n - 1);
  mutex.unlock();
  job.help();
  mutex.lock();
  pending--;
  Job **link = &jobs;
  while (*link != &job) link = &(*link)->next;
  *link = job.next; // nobody enters any more
  mutex.unlock();
  for (uint32_t i = 0; i < spins && job.inside.load(std::memory_order_acquire); i++) relax();
  if (!job.inside.load(std::memory_order_acquire)) return;
  mutex.lock();
  while (job.inside.load(std::memory_order_relaxed)) left.wait(mutex);
  mutex.unlock();
}

int ThreadPool::enqueue(void (*fn)(void *), void *arg) {
  Lock lock(mutex);
  if (queued == tasks.size()) return 1;
  tasks[(head + queued) % tasks.size()] = {fn, arg};
  queued++, pending++;
  wakeOthers(1);
  return 0;
}

ThreadPool *astra::rt::makeThreads(Heap &heap, uint32_t count, Status &status) {
  status = ASTRA_OUT_OF_MEMORY;
  ThreadPool *pool = heap.make<ThreadPool>(heap);
  if (!pool) return nullptr;
  if (!pool->threads.init(heap, count)) {
    heap.destroy(pool);
    return nullptr;
  }
  // More threads than CPUs: spinning would take time from the one that works.
  pool->spins = count <= uint64_t(sysconf(_SC_NPROCESSORS_ONLN)) ? 4000 : 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto run = [](void *self) -> void * { return static_cast<ThreadPool *>(self)->run(), nullptr; };
  while (pool->started < count && pthread_create(&pool->threads[pool->started], nullptr, run, pool) == 0)
    pool->started++;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pool->started == count) return pool;
  destroyThreads(heap, pool);
  status = ASTRA_THREADS;
  return nullptr;
}

void astra::rt::destroyThreads(Heap &heap, ThreadPool *pool) {
  pool->mutex.lock();
  pool->stop = true;
  pool->wake.notifyAll();
  pool->mutex.unlock();
  for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->threads[i], nullptr);
  heap.destroy(pool);
}

astra_executor astra::rt::executorOf(ThreadPool *pool) {
  astra_executor e{};
  e.size = sizeof(e);
  e.self = pool;
  e.num_workers = pool->started;
  e.parallel_for = [](void *self, size_t n, void (*fn)(void *, size_t), void *arg) {
    static_cast<ThreadPool *>(self)->parallelFor(n, fn, arg);
  };
  e.enqueue = [](void *self, void (*fn)(void *), void *arg) {
    return static_cast<ThreadPool *>(self)->enqueue(fn, arg);
  };
  return e;
}

bool astra::rt::reserveTask(ThreadPool *pool) {
  Lock lock(pool->mutex);
  if (pool->reserved == pool->tasks.size()) {
    Array<Task> larger;
    if (!larger.init(pool->heap, 2 * pool->tasks.size() + 8)) return false;
    for (uint64_t i = 0; i < pool->queued; i++) larger[i] = pool->tasks[(pool->head + i) % pool->tasks.size()];
    pool->tasks.swap(larger);
    pool->head = 0;
  }
  pool->reserved++;
  return true;
}

void astra::rt::unreserveTask(ThreadPool *pool) {
  Lock lock(pool->mutex);
  pool->reserved--;
}
