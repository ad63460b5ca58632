//===- astra-launch: a program as several ranks of one machine ----------------===//
// Takes:    a number of ranks and a command.
// Gives:    the command as that many processes, each with its rank in the environment; their exit code.
// Keeps:    when one fails the others get time to say what they saw, then they are ended: none is left behind,
//           and nothing of theirs in shared memory.
// Does not: know what the ranks do, or start any on another machine (mpirun and srun do).
#include "JobName.h"
#include "Options.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace astra::tool;
using Clock = std::chrono::steady_clock;

namespace {

struct Settings {
  int64_t ranks = 0, restarts = 0, restartRanks = 0, grace = 10;
  bool quiet = false;
};

Program describe(Settings &s) {
  Program p;
  p.name = "astra-launch";
  p.synopsis = "-n RANKS [options] PROGRAM [ARGUMENTS]";
  p.summary = "run a program as several ranks on this machine";
  p.description =
      "Starts the program RANKS times. Each process finds its number in ASTRA_RANK, how many there are in ASTRA_RANKS "
      "and the name of the job in ASTRA_JOB; programs that use libastra_ranks (astra-run, astra-train) meet through "
      "shared memory; what is in memory of GPUs goes from one to the other where they are told --engine=nccl or rccl. "
      "If a rank fails, the others have the time of --grace to end by themselves; then they are ended. "
      "The exit code is that of the first rank that failed, 128 more than the signal if one ended it, or 0.";
  p.options = {
      {"n", "RANKS", "how many processes", number(s.ranks, 1, 256)},
      {"restart", "N",
       "starts again, up to N times, when a rank has failed: a program that goes on from its checkpoint",
       number(s.restarts, 0, 1000)},
      {"restart-ranks", "RANKS", "as so many ranks; as many as before if not given", number(s.restartRanks, 1, 256)},
      {"grace", "SECONDS", "how long the others may go on after a failure; 10 if not given", number(s.grace, 0, 86400)},
      {"quiet", "", "says nothing about ranks that fail", flag(s.quiet)},
  };
  p.examples =
      "  astra-launch -n 2 astra-train chargpt.astra --data tokens=x.npy --epochs 1 --batch 8 --out w.safetensors\n"
      "  astra-launch -n 4 astra-train chargpt.astra --device cuda --engine nccl --data tokens=x.npy --epochs 1 "
      "--batch 8 "
      "--out w.safetensors\n"
      "  astra-launch -n 4 --restart 3 -- python3 train.py --resume\n";
  return p;
}

/// Where the command begins: at the first argument that is neither an option nor an option's value.
int commandAt(const Program &p, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    std::string_view a = argv[i];
    if (a == "--") return i;
    if (a.size() < 2 || a[0] != '-') return i;
    for (const Option &o : p.options)
      if (a == dashed(o.name) && !o.value.empty()) ++i;
  }
  return argc;
}

volatile sig_atomic_t asked = 0; ///< a signal that this program got
void remember(int signal) { asked = signal; }

std::string jobName() {
  unsigned char bytes[8] = {};
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, bytes, sizeof(bytes)) != ssize_t(sizeof(bytes))) {
    // The number of this process tells its job from those that run now.
    pid_t own = getpid();
    memcpy(bytes, &own, sizeof(own));
  }
  if (fd >= 0) close(fd);
  std::string text;
  for (unsigned char b : bytes) {
    char two[3];
    snprintf(two, sizeof(two), "%02x", b);
    text += two;
  }
  return text;
}

class Job {
public:
  Job(const Settings &s, char **command) : settings(s), command(command) {}

  /// 0 or the exit code of the first rank that failed.
  int run(int64_t ranks) {
    std::string job = jobName();
    // The ranks have an end of it; the other one is closed when a rank has failed, so that those who wait for it to
    // come know (lib/Ranks).
    if (pipe2(alarm, O_CLOEXEC)) alarm[0] = alarm[1] = -1;
    for (int64_t r = 0; r < ranks; r++)
      if (!start(r, ranks, job)) break;
    watch();
    for (int &end : alarm) closeEnd(end);
    if (code) endOrphans();
    forget(job);
    return code;
  }

private:
  bool start(int64_t rank, int64_t ranks, const std::string &job) {
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
      fprintf(stderr, "astra-launch: rank %d could not be started: %s\n", int(rank), strerror(errno));
      fail(Failure);
      return false;
    }
    if (pid) return children.push_back({pid, int(rank)}), true;
    prctl(PR_SET_PDEATHSIG, SIGTERM); // should this program be killed
    if (getppid() != parent) _exit(Failure);
    setenv("ASTRA_RANK", std::to_string(rank).c_str(), 1);
    setenv("ASTRA_RANKS", std::to_string(ranks).c_str(), 1);
    setenv("ASTRA_JOB", job.c_str(), 1);
    unsetenv("ASTRA_JOB_FD");
    if (int end = alarm[0] < 0 ? -1 : dup(alarm[0]); end >= 0) setenv("ASTRA_JOB_FD", std::to_string(end).c_str(), 1);
    execvp(command[0], command);
    fprintf(stderr, "astra-launch: %s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }

  void fail(int with) {
    if (code) return;
    code = with;
    closeEnd(alarm[1]);
    deadline = Clock::now() + std::chrono::seconds(settings.grace);
  }
  static void closeEnd(int &end) {
    if (end >= 0) close(end);
    end = -1;
  }
  void signal(int which) {
    for (auto &c : children) kill(c.pid, which);
  }

  void ended(size_t i, int status) {
    int rank = children[i].rank;
    children.erase(children.begin() + long(i));
    if (WIFEXITED(status) && !WEXITSTATUS(status)) return;
    bool first = !code;
    fail(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (settings.quiet || !first) return;
    if (WIFEXITED(status))
      fprintf(stderr, "astra-launch: rank %d ended with code %d\n", rank, WEXITSTATUS(status));
    else
      fprintf(stderr, "astra-launch: rank %d was ended by signal %d (%s)\n", rank, WTERMSIG(status),
              strsignal(WTERMSIG(status)));
  }

  /// Shared memory that rank 0 has made and had no time to take the name of.
  static void forget(const std::string &job) {
    astra::ranks::JobName name;
    astra::ranks::nameJob(name, job.c_str(), nullptr);
    shm_unlink(name);
  }

  /// What ranks that failed have left running: this program is the parent of those now.
  void endOrphans() {
    for (int again = 0; again < 100; again++) {
      FILE *list = fopen("/proc/thread-self/children", "re");
      int pid, some = 0;
      while (list && fscanf(list, "%d", &pid) == 1) kill(pid, SIGKILL), ++some;
      if (list) fclose(list);
      if (!some) return;
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void watch() {
    using namespace std::chrono_literals;
    bool asks = false, told = false;
    while (!children.empty()) {
      bool some = false;
      for (size_t i = children.size(); i-- > 0;) {
        int status;
        if (waitpid(children[i].pid, &status, WNOHANG) == children[i].pid) ended(i, status), some = true;
      }
      if (asked && !told) told = true, signal(asked), fail(128 + asked), deadline = Clock::now() + 5s;
      if (code && Clock::now() > deadline) {
        signal(asks ? SIGKILL : SIGTERM);
        asks = true, deadline = Clock::now() + 2s;
      }
      if (!some) std::this_thread::sleep_for(2ms);
    }
  }

  struct Child {
    pid_t pid;
    int rank;
  };
  const Settings &settings;
  char **command;
  std::vector<Child> children;
  int code = 0, alarm[2] = {-1, -1};
  Clock::time_point deadline;
};

} // namespace

int main(int argc, char **argv) {
  Settings s;
  Program program = describe(s);
  int at = commandAt(program, argc, argv);
  std::vector<std::string> rest;
  if (int code = parse(program, at, argv, rest); code >= 0) return code;
  if (at < argc && !strcmp(argv[at], "--")) ++at;
  if (!s.ranks) return complain(program, Usage, "how many ranks? give -n RANKS (see astra-launch --help)");
  if (at >= argc)
    return complain(program, Usage, "which program? give it behind the options (see astra-launch --help)");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int which : {SIGINT, SIGTERM, SIGHUP}) std::signal(which, remember);
  int code = Job(s, argv + at).run(s.ranks);
  for (int64_t again = 0; code && !asked && again < s.restarts; again++) {
    int64_t ranks = s.restartRanks ? s.restartRanks : s.ranks;
    if (!s.quiet) fprintf(stderr, "astra-launch: starts again as %d ranks\n", int(ranks));
    code = Job(s, argv + at).run(ranks);
  }
  return code;
}
