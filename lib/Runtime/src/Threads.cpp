//===- Threads.cpp: the thread pool made on request -----------------------===//
// Takes:    a number of threads.
// Gives:    an astra_executor: parallel_for that makes progress on the calling thread alone, and enqueue.
// Keeps:    a worker never waits for work that has not begun; the hot path allocates nothing.
// Does not: pin threads unless it is told to (a worker may be moved once, see keepApart), change signals (all are
//           blocked in the workers) or priorities.
//
// Note [Who looks and who sleeps]
// Waking a thread takes the system longer than many a launch takes. So one worker less than there are looks for work a
// while before it sleeps (the one that is left has its CPU taken by the thread of the caller), and whoever waits for a
// promise is a worker meanwhile, a guest: it runs its stream itself if no worker has begun to, and shares in launches.
// Whoever posts work wakes only as many as are missing beside those who look. `launched` and `posted` count what came,
// so that a looker sees that something did without the lock; it looks under the lock at what.
//
// Note [No more threads awake than workers]
// There are as many CPUs as workers, as a rule, and one thread more than CPUs takes a time slice of some milliseconds
// from one that works, while it only looks. So guests count: a launch wakes nobody if as many threads are awake, and a
// worker that finds itself one too many does not look. A task is left to who queued it for about a microsecond,
// because most come to wait at once; taken by a looker, the launch that follows would miss a thread, the one that is on
// its way, and wake another in its place.
#include "Device.h"

#include <sched.h>
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
  int cpu = -1;                    ///< where the caller was

  void help() {
    for (size_t i; (i = taken.fetch_add(1, std::memory_order_relaxed)) < count;) fn(arg, i);
  }
};

struct Task {
  void (*fn)(void *);
  void *arg;
  int cpu = -1; ///< where who queued it was
};

/// How long to look before sleeping where nobody says: what the system takes to wake a thread, a few times.
constexpr int64_t kSpinNs = 100'000;

/// So many looks, about a microsecond, a worker leaves a task to the thread that queued it: to come and wait takes
/// less.
constexpr uint32_t kPatience = 64;

/// Between two looks; now and then the CPU is left to a thread that may be the one waited for.
void relax(uint32_t look) {
  if (look % 256 == 255) {
    sched_yield();
    return;
  }
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
  // Changed with the mutex locked, as all that follows; lookers read them without.
  std::atomic<uint32_t> launched{0}; ///< jobs that came so far
  std::atomic<uint32_t> posted{0};   ///< tasks that came so far
  std::atomic<uint32_t> sleeping{0}; ///< workers in `wake` that nobody has woken
  std::atomic<uint32_t> guests{0};   ///< waiting threads that are in here
  uint32_t waking = 0;               ///< workers in `wake` that are to leave it
  uint32_t looking = 0;              ///< workers that will take what is posted
  uint32_t sharing = 0;              ///< waiting threads that will take their part of a job
  bool stop = false;
  int64_t spinNs = 0; ///< how long to look before sleeping
  Array<pthread_t> threads;
  uint32_t started = 0;
  bool isBound = false; ///< to these
  cpu_set_t cpus;

  void run();
  void help(const std::atomic<Status> &state, const void *stream, Task instead);
  void parallelFor(size_t n, void (*fn)(void *, size_t), void *arg);
  int enqueue(void (*fn)(void *), void *arg);

  /// A worker on the CPU of who gave it work moves to another, if it may run there; it is bound to none afterwards.
  /// Left alone, the system has been seen to let two threads share a CPU beside an idle one for 10 ms and more.
  void keepApart(int cpu) const {
    cpu_set_t all, others;
    if (!spinNs || cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu ||
        sched_getaffinity(0, sizeof(all), &all) != 0)
      return;
    others = all;
    CPU_CLR(unsigned(cpu), &others);
    if (CPU_COUNT(&others) && sched_setaffinity(0, sizeof(others), &others) == 0)
      sched_setaffinity(0, sizeof(all), &all);
  }

  /// Looks until `done` or for spinNs; at the clock every 10 us or so: more often costs whoever calls (two threads, a
  /// call of 1.7 us: 2.1).
  template <class Done> void spin(Done done) const {
    if (!spinNs) return;
    uint64_t begin = 0;
    for (uint32_t i = 0; !done(); i++) {
      if (i % 256 == 255) {
        uint64_t now = nowNs();
        if (!begin) begin = now;
        if (now - begin >= uint64_t(spinNs)) return;
      }
      relax(i);
    }
  }

  // With the mutex locked; those that give whether they did something unlock it meanwhile.
  bool runTask();
  bool shareJob(bool isWorker);
  bool look(const std::atomic<Status> *state);
  /// As many threads are awake, guests among them, as there are workers, or more than that.
  bool full() const { return guests.load(std::memory_order_relaxed) >= sleeping.load(std::memory_order_relaxed); }
  bool crowded() const { return guests.load(std::memory_order_relaxed) > sleeping.load(std::memory_order_relaxed); }
  void wakeOne() {
    sleeping--, waking++;
    wake.notifyOne();
  }
  /// The mutex is held for some instructions only: look before the system is asked.
  void lock() {
    for (uint32_t i = 0; i < 100 && spinNs; i++) {
      if (mutex.tryLock()) return;
      relax(i);
    }
    mutex.lock();
  }
};

bool ThreadPool::runTask() {
  if (!queued) return false;
  Task task = tasks[head];
  head = (head + 1) % tasks.size();
  queued--;
  mutex.unlock();
  keepApart(task.cpu);
  task.fn(task.arg);
  lock();
  return true;
}

bool ThreadPool::shareJob(bool isWorker) {
  Job *job = jobs;
  while (job && job->taken.load(std::memory_order_relaxed) >= job->count) job = job->next;
  if (!job) return false;
  job->inside++;
  mutex.unlock();
  if (isWorker) keepApart(job->cpu);
  job->help();
  lock();
  if (job->inside.fetch_sub(1, std::memory_order_release) == 1) left.notifyAll();
  return true;
}

/// Whether something came for who looks, or `state` changed, before it was time to sleep. A worker looks without a
/// state.
bool ThreadPool::look(const std::atomic<Status> *state) {
  uint32_t jobsSeen = launched.load(std::memory_order_relaxed), tasksSeen = posted.load(std::memory_order_relaxed);
  uint32_t patience = state ? 0 : kPatience;
  auto done = [&] {
    if (launched.load(std::memory_order_relaxed) != jobsSeen) return true;
    if (posted.load(std::memory_order_relaxed) != tasksSeen && patience-- == 0) return true;
    return state ? state->load(std::memory_order_relaxed) != ASTRA_NOT_READY : crowded();
  };
  uint32_t &counter = state ? sharing : looking;
  counter++;
  mutex.unlock();
  spin(done);
  lock();
  counter--;
  return launched.load(std::memory_order_relaxed) != jobsSeen || posted.load(std::memory_order_relaxed) != tasksSeen ||
         (state && state->load(std::memory_order_relaxed) != ASTRA_NOT_READY);
}

void ThreadPool::run() {
  if (isBound) sched_setaffinity(0, sizeof(cpus), &cpus);
  lock();
  while (!stop) {
    if (runTask() || shareJob(true)) continue;
    if (looking + 1 < threads.size() && !crowded() && look(nullptr)) continue;
    if (queued || stop) continue;
    bool open = false;
    for (Job *j = jobs; j; j = j->next) open |= j->taken.load(std::memory_order_relaxed) < j->count;
    if (open) continue;
    sleeping++;
    while (!waking && !stop) wake.wait(mutex);
    if (!stop) waking--;
  }
  mutex.unlock();
}

void ThreadPool::help(const std::atomic<Status> &state, const void *stream, Task instead) {
  lock();
  while (state.load(std::memory_order_relaxed) == ASTRA_NOT_READY) {
    uint64_t i = 0;
    while (i < queued && tasks[(head + i) % tasks.size()].arg != stream) i++;
    if (i < queued) {
      for (queued--; i < queued; i++) tasks[(head + i) % tasks.size()] = tasks[(head + i + 1) % tasks.size()];
      mutex.unlock();
      instead.fn(instead.arg);
      lock();
    } else if (!shareJob(false) && !look(&state)) {
      break;
    }
  }
  if (--guests == 0) left.notifyAll();
  mutex.unlock();
}

void ThreadPool::parallelFor(size_t n, void (*fn)(void *, size_t), void *arg) {
  Job job{nullptr, fn, arg, n};
  job.cpu = sched_getcpu();
  lock();
  job.next = jobs, jobs = &job;
  launched.fetch_add(1, std::memory_order_relaxed);
  for (uint64_t coming = uint64_t(sharing) + looking + waking; coming < n - 1 + queued && !full(); coming++) wakeOne();
  mutex.unlock();
  job.help();
  lock();
  Job **link = &jobs;
  while (*link != &job) link = &(*link)->next;
  *link = job.next; // nobody enters any more
  mutex.unlock();
  spin([&] { return !job.inside.load(std::memory_order_acquire); });
  if (!job.inside.load(std::memory_order_acquire)) return;
  mutex.lock();
  while (job.inside.load(std::memory_order_relaxed)) left.wait(mutex);
  mutex.unlock();
}

int ThreadPool::enqueue(void (*fn)(void *), void *arg) {
  lock();
  bool room = queued < tasks.size();
  if (room) {
    tasks[(head + queued) % tasks.size()] = {fn, arg, sched_getcpu()};
    queued++;
    posted.fetch_add(1, std::memory_order_relaxed);
    for (uint64_t coming = uint64_t(looking) + waking; sleeping && coming < queued; coming++) wakeOne();
  }
  mutex.unlock();
  return !room;
}

ThreadPool *astra::rt::makeThreads(Heap &heap, uint32_t count, int64_t spinNs, const cpu_set_t *cpus, Status &status) {
  status = ASTRA_OUT_OF_MEMORY;
  ThreadPool *pool = heap.make<ThreadPool>(heap);
  if (!pool) return nullptr;
  if (!pool->threads.init(heap, count)) {
    heap.destroy(pool);
    return nullptr;
  }
  // More threads than CPUs: spinning would take time from the one that works.
  bool own = count <= uint64_t(cpus ? CPU_COUNT(cpus) : sysconf(_SC_NPROCESSORS_ONLN));
  if (cpus) pool->isBound = true, pool->cpus = *cpus;
  pool->spinNs = spinNs > 0 ? spinNs : spinNs == 0 && own ? kSpinNs : 0;
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
  pool->posted++;
  pool->wake.notifyAll();
  while (pool->guests) pool->left.wait(pool->mutex);
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

void astra::rt::enterThreads(ThreadPool *pool) {
  Lock lock(pool->mutex);
  pool->guests++;
}

void astra::rt::helpThreads(ThreadPool *pool, const std::atomic<Status> &state, const void *queued,
                            void (*instead)(void *), void *arg) {
  pool->help(state, queued, {instead, arg});
}
