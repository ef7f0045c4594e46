// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "run_program.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "callbacks.h"
#include "job.h"
#include "program_run.h"
#include "real_mpi.h"
#include "watchdog.h"

namespace accord::programs {
namespace {

constexpr unsigned kErrorPercent = 3;  // of steps before which a mistake is made

// This process as the host of a run.
class Host final : public model::RunHost {
 public:
  Host(RealMpi& mpi, std::uint64_t seed)
      : mpi_(mpi), random_(seed * 31 + static_cast<std::uint64_t>(job.rank)) {}

  model::UserMpi& user(int) override { return mpi_; }
  // Where threads are few, ranks still compete for cores.
  void yield() override {
    const std::uint64_t chance = random(100);
    if (chance < 4) std::this_thread::sleep_for(std::chrono::microseconds(60));
    if (chance < 60) std::this_thread::yield();
    if (chance >= 100 - kErrorPercent && error_due_.exchange(false)) provoke_error();
  }
  void event() noexcept override {
    progress_.fetch_add(1);
    error_due_.store(true);
  }
  std::uint64_t random(std::uint64_t bound) override {
    const std::lock_guard<std::mutex> locked(mutex_);
    return random_.below(bound);
  }
  bool keeps_rest() const override { return false; }
  void fail(const std::string& message) override { programs::fail(Symptom::data, message); }

  std::uint64_t progress() const { return progress_.load(); }

 private:
  RealMpi& mpi_;
  std::mutex mutex_;
  model::Random random_;
  std::atomic<std::uint64_t> progress_{1};
  std::atomic<bool> error_due_{true};
};

std::string describe(const model::Program& program, const model::Run& run, const char* stage) {
  std::string text = std::string("each thread of the rank, ") + stage + ":";
  const auto threads = static_cast<std::size_t>(program.threads);
  for (std::size_t thread = 0; thread < threads; ++thread)
    text += "\n  " + run.describe(static_cast<std::size_t>(job.rank) * threads + thread);
  return text;
}

void run_lists(model::Run& run, int threads) {
  const auto first = static_cast<std::size_t>(job.rank * threads);
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&run, index = first + static_cast<std::size_t>(thread)] {
      const WatchedThread me;
      run.run_thread(index);
    });
  }
  run.run_thread(first);
  for (std::thread& other : others) other.join();
}

// Nothing tells when a receive that was freed has ended but its data. MPICH's MPI_Iprobe on
// MPI_COMM_SELF, which has no message of another rank, brings none of these either.
void await_freed(model::Run& run, MPI_Comm control) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(400 * job.patience_s);
  while (!run.freed_problem().empty() && std::chrono::steady_clock::now() < deadline) {
    int found = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &found, MPI_STATUS_IGNORE),
          "MPI_Iprobe");
    std::this_thread::yield();
  }
}

// Ranks that a program lacks wait for the others.
MPI_Comm make_world(const model::Program& program, std::uint64_t seed, bool& own) {
  own = program.ranks < job.size || seed % 4 == 0;
  if (!own) return MPI_COMM_WORLD;
  MPI_Comm world = MPI_COMM_NULL;
  check(MPI_Comm_split(MPI_COMM_WORLD, job.rank < program.ranks ? 0 : MPI_UNDEFINED, 0, &world),
        "MPI_Comm_split");
  return world;
}

}  // namespace

void run_program(const model::Program& program, std::uint64_t seed, MPI_Comm control,
                 const std::string& name) {
  bool owns_world = false;
  MPI_Comm world = make_world(program, seed, owns_world);
  RealMpi mpi(world, seed);
  Host host(mpi, seed);
  model::Run run(program, host, job.on_devices, true);
  std::atomic<const char*> stage{"in its list"};
  set_program(name + ":\n" + to_text(program),
              [&] { return describe(program, run, stage.load()); });
  watch([&host] { return host.progress(); });
  const auto together = [&](const char* next) {
    host.event();
    check(MPI_Barrier(control), "MPI_Barrier");
    host.event();
    stage.store(next);
  };
  const bool takes_part = job.rank < program.ranks;
  if (takes_part) run_lists(run, program.threads);
  together("after all lists");
  if (takes_part) await_freed(run, control);
  if (takes_part) run.check_ended();
  together("at the end");
  for (std::size_t comm = program.comms.size(); takes_part && comm-- > 1;) {
    const model::Comm handle = run.comm_of(job.rank, static_cast<int>(comm));
    if (handle != model::kNoComm) mpi.free_comm(handle);
  }
  run.drop_buffers();
  if (owns_world && world != MPI_COMM_NULL) check(MPI_Comm_free(&world), "MPI_Comm_free");
  mpi.drop_requests();
  check_attributes();
  stop_watching();
  set_program("between programs", {});
}

}  // namespace accord::programs
