// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned allreduces and broadcasts that kernels do within a node, on the embedded host
// runtime, where threads stand for the kernels of the program and of the library. The argument says
// whether that way is open ("kernels"), or all goes by messages.
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

bool by_kernels = true;

template <class Body>
void launch(int threads, Body body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([=] { body(i); });
  for (std::thread& one : all) one.join();
}

struct Options {
  int partitions = 4;
  int count = 100;  // of a partition
  bool in_place = false;
  bool on_device = true;
  const char* marks = "1";
  const char* copy = "auto";
  const char* arrivals = "kernel";
  MPI_Op op = MPI_SUM;
  MPI_Comm comm = MPI_COMM_WORLD;
};

class Allreduce {
 public:
  explicit Allreduce(const Options& options)
      : options_(options),
        from_(options.partitions * options.count, options.on_device),
        to_(options.partitions * options.count, options.on_device) {
    MPI_Comm_rank(options.comm, &own_);
    MPI_Comm_size(options.comm, &ranks_);
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accord_marks", options.marks);
    MPI_Info_set(info, "accord_partitioned_copy", options.copy);
    MPI_Info_set(info, "accord_arrivals", options.arrivals);
    expect_ok(MPIX_Pallreduce_init(options.in_place ? MPI_IN_PLACE : from_.pointer(), to_.pointer(),
                                   options.partitions, options.count, MPI_INT, options.op,
                                   options.comm, info, &request),
              "Pallreduce_init");
    MPI_Info_free(&info);
  }
  ~Allreduce() { MPI_Request_free(&request); }
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  MPI_Request request = MPI_REQUEST_NULL;
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;

  int partitions() const { return options_.partitions; }
  void create() { expect_ok(MPIX_Prequest_create(&on_device, request), "Prequest_create"); }
  void start(int round) {
    round_ = round;
    std::vector<int> values(elements());
    if (!options_.in_place) to_.set(std::vector<int>(elements(), -1));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(own_, i);
    (options_.in_place ? to_ : from_).set(values);
    expect_ok(MPI_Start(&request), "Start");
  }
  void prepare() const { expect_ok(MPIX_Pbuf_prepare(request), "Pbuf_prepare"); }
  void check_way(bool kernels, const std::string& what) const {
    expect(accord_partitioned::view(on_device).on_node == kernels,
           what + (kernels ? " does not go by kernels" : " goes by kernels"));
  }
  // Where the other ranks' kernels tell this one.
  const void* own_words() const {
    return accord_partitioned::view(on_device).fields->node.ready[own_];
  }
  // Some rounds from start to end: kernels know of the way that is found by the last of them.
  void run(const std::string& what) {
    for (int round = 0; round < 3; ++round) {
      start(round);
      prepare();
      (void)MPIX_Pready_range(0, partitions() - 1, on_device);
      wait();
      check(what);
    }
  }
  bool all_arrived() const {
    for (int i = 0; i < partitions(); ++i)
      if (MPIX_Parrived(i, on_device) == 0) return false;
    return true;
  }
  void wait() { expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait"); }
  void check(const std::string& what) {
    const std::vector<int> got = to_.get();
    for (std::size_t i = 0; i < got.size(); ++i) {
      int expected = value(0, i);
      for (int of = 1; of < ranks_; ++of)
        expected =
            options_.op == MPI_SUM ? expected + value(of, i) : std::max(expected, value(of, i));
      if (got[i] == expected) continue;
      expect(false, what + ", round " + std::to_string(round_) + ": " + std::to_string(got[i]) +
                        " instead of " + std::to_string(expected) + " at " + std::to_string(i));
      return;
    }
  }

 private:
  std::size_t elements() const {
    return static_cast<std::size_t>(options_.partitions) * static_cast<std::size_t>(options_.count);
  }
  int value(int of, std::size_t i) const {
    return (of + 1) * 100000 + round_ * 1000 + static_cast<int>(i % 997) * (of % 2 == 0 ? 1 : -1);
  }

  const Options options_;
  Ints from_;
  Ints to_;
  int own_ = 0;
  int ranks_ = 0;
  int round_ = 0;
};

constexpr int kRounds = 4;

// That kernels go another way now is on its way to the device for the first rounds, perhaps.
bool is_known(int round, bool kernels) { return !kernels || round + 1 == kRounds; }

// A block marks each partition.
void blocks(const Options& options, const std::string& what) {
  Allreduce work(options);
  work.create();
  for (int round = 0; round < kRounds; ++round) {
    work.start(round);
    work.prepare();
    if (is_known(round, by_kernels)) work.check_way(by_kernels, what);
    const MPIX_Prequest request = work.on_device;
    launch(work.partitions(), [=](int i) {
      for (int mark = 0; mark < std::stoi(options.marks); ++mark)
        expect(MPIX_Pready_block(i, request) == 0, what + ": Pready");
    });
    work.wait();
    work.check(what);
  }
}

void shapes() {
  for (const bool in_place : {false, true}) {
    for (const int partitions : {1, 3, 16}) {
      for (const int count : {1, 33, 1000})
        blocks({.partitions = partitions, .count = count, .in_place = in_place}, "blocks");
    }
  }
  blocks({.marks = "3"}, "marks");
  blocks({.op = MPI_MAX}, "maximum");
  blocks({.partitions = 16, .arrivals = "host"}, "arrivals that no kernel waits for");
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  blocks({.comm = reversed}, "another order of ranks");
  MPI_Comm_free(&reversed);
}

// Kernels mark before anything is known of the other ranks, and the host marks, too.
void held_and_shared() {
  Allreduce work({.partitions = 7});
  work.create();
  std::minstd_rand random(static_cast<unsigned>(rank));
  for (int round = 0; round < 6; ++round) {
    work.start(round);
    launch(3, [&](int i) { (void)MPIX_Pready(2 * i + 1, work.on_device); });
    std::vector<int> rest = {0, 2, 4, 6};
    std::ranges::shuffle(rest, random);
    for (const int partition : rest)
      expect_ok(MPI_Pready(partition, work.request), "Pready by the host");
    expect(MPI_Pready(rest.front(), work.request) != MPI_SUCCESS, "marked twice by the host");
    work.wait();
    work.check("shared");
  }
  work.check_way(by_kernels, "shared");
}

// Where no kernel can wait for the round the ranks find their way while they wait: already the
// first one goes by kernels. A device request made behind it tells.
void marked_by_the_host() {
  Allreduce work({.partitions = 3});
  work.start(0);
  expect_ok(MPI_Pready_range(0, 2, work.request), "Pready_range");
  work.wait();
  work.check("marked by the host");
  work.create();
  work.check_way(by_kernels, "a first round marked by the host");
}

// Marks of the root alone make a broadcast go. What is no number of words goes by messages.
void broadcast(int root, MPI_Datatype datatype, int count, bool kernels) {
  constexpr int kPartitions = 5;
  int bytes = 0;
  MPI_Type_size(datatype, &bytes);
  const std::string what = "a broadcast from " + std::to_string(root);
  const int ints = (kPartitions * count * bytes + 3) / 4;
  Ints buffer(ints, true);
  MPI_Request request = MPI_REQUEST_NULL;
  expect_ok(MPIX_Pbcast_init(buffer.pointer(), kPartitions, count, datatype, root, MPI_COMM_WORLD,
                             MPI_INFO_NULL, &request),
            "Pbcast_init");
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;
  expect_ok(MPIX_Prequest_create(&on_device, request), "Prequest_create");
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> wanted(static_cast<std::size_t>(ints), -1);
    const auto whole = static_cast<std::size_t>(kPartitions * count * bytes / 4);
    for (std::size_t i = 0; i < whole; ++i) wanted[i] = round * 100000 + static_cast<int>(i);
    buffer.set(rank == root ? wanted : std::vector<int>(wanted.size(), -1));
    MPI_Start(&request);
    MPIX_Pbuf_prepare(request);
    if (is_known(round, kernels))
      expect(accord_partitioned::view(on_device).on_node == kernels, what + ": which way it goes");
    if (rank == root) launch(kPartitions, [=](int i) { (void)MPIX_Pready_block(i, on_device); });
    expect_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "Wait");
    expect(buffer.get() == wanted, what + " is wrong");
  }
  MPI_Request_free(&request);
}

// Several at once, begun in other orders on other ranks, and a device request made late.
void several() {
  constexpr int kRequests = 4;
  std::vector<std::unique_ptr<Allreduce>> works;
  for (int i = 0; i < kRequests; ++i)
    works.push_back(
        std::make_unique<Allreduce>(Options{.partitions = i + 1, .count = 50 * (i + 1)}));
  std::minstd_rand random(static_cast<unsigned>(rank));
  for (int round = 0; round < 4; ++round) {
    std::vector<int> order = {0, 1, 2, 3};
    std::ranges::shuffle(order, random);
    for (const int i : order) works[static_cast<std::size_t>(i)]->start(round);
    if (round == 1) works.front()->create();
    std::ranges::shuffle(order, random);
    for (const int i : order) {
      const Allreduce& work = *works[static_cast<std::size_t>(i)];
      expect_ok(MPI_Pready_range(0, work.partitions() - 1, work.request), "Pready_range");
    }
    std::vector<MPI_Request> requests;
    for (const auto& work : works) requests.push_back(work->request);
    expect_ok(MPI_Waitall(kRequests, requests.data(), MPI_STATUSES_IGNORE), "Waitall");
    for (const auto& work : works) work->check("several");
  }
  works.front()->check_way(by_kernels, "a device request made late");
}

bool on_all_ranks(bool mine) {
  int all = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all != 0;
}

// No rank is in an MPI call while it is done, unless the kernels have left for want of work: as
// they mostly do where other programs take the processors' time.
void unattended() {
  constexpr int kRoundsMin = 50;
  constexpr int kRoundsMax = 1000;
  Allreduce work({.partitions = 8});
  work.create();
  int alone = 0;
  for (int round = 0; round < kRoundsMin || (round < kRoundsMax && !on_all_ranks(alone > 0));
       ++round) {
    work.start(round);
    work.prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    (void)MPIX_Pready_range(0, work.partitions() - 1, work.on_device);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (!work.all_arrived() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
    if (work.all_arrived()) ++alone;
    work.wait();
    work.check("unattended");
  }
  expect(alone > 0, "no round is done without the host");
}

// The program says that no kernel waits for arrivals: nothing begins before the next MPI call.
void attended() {
  Allreduce work({.partitions = 8, .arrivals = "host"});
  work.create();
  for (int round = 0; round < kRounds; ++round) {
    work.start(round);
    work.prepare();
    (void)MPIX_Pready_range(0, work.partitions() - 1, work.on_device);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (is_known(round, by_kernels) && by_kernels)
      expect(!work.all_arrived(), "a round is done though the host has not asked for it");
    work.wait();
    work.check("attended");
  }
}

// Kernels of the other ranks may write into the words of a request that is freed here, so nobody
// gets these before the others have freed it, too.
void words_stay() {
  constexpr int kTriesMax = 50;
  constexpr int kCount = 4000;  // so that memory for what comes is never as small as the words
  auto first = std::make_unique<Allreduce>(Options{.count = kCount});
  first->create();
  first->run("the first of two");
  const void* const words = first->own_words();
  expect(words != nullptr, "the first of two does not go by kernels");
  if (rank == 0) first.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  Allreduce second({.count = kCount});
  second.create();
  second.run("the second of two");
  expect(second.own_words() != words, "words that other ranks may still write are given out");
  first.reset();
  // They are heard of while something goes by messages.
  std::vector<std::unique_ptr<Allreduce>> later;
  int again = 0;
  for (int i = 0; i < kTriesMax && again == 0; ++i) {
    Allreduce by_messages({.count = kCount, .copy = "engine"});
    by_messages.create();
    by_messages.run("by messages");
    later.push_back(std::make_unique<Allreduce>(Options{.count = kCount}));
    later.back()->create();
    later.back()->run("a later one");
    again = later.back()->own_words() == words ? 1 : 0;
    MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  expect(again != 0, "words that nobody writes any more do not come back");
}

// All ranks go by messages where one of them cannot go by kernels, or does not want to.
void declined() {
  const auto run = [](const Options& options, const char* what) {
    Allreduce work(options);
    if (options.on_device) work.create();
    for (int round = 0; round < 3; ++round) {
      work.start(round);
      work.prepare();
      if (options.on_device) work.check_way(false, what);
      for (int i = work.partitions(); i-- > 0;) {
        if (options.on_device) {
          expect(MPIX_Pready(i, work.on_device) == 0, "Pready");
        } else {
          expect_ok(MPI_Pready(i, work.request), "Pready");
        }
      }
      work.wait();
      work.check(what);
    }
  };
  run({.copy = "engine"}, "no rank wants kernels");
  run({.copy = rank == 0 ? "engine" : "kernel"}, "a rank does not want kernels");
  run({.on_device = rank != 0}, "a rank's buffers are in host memory");
  run({.count = 0, .on_device = false}, "nothing to reduce");
}

// A wrong use of a kernel is an error of its own rank alone.
void mistakes() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  {
    Allreduce work({.comm = comm});
    work.create();
    expect(MPIX_Pready(0, work.on_device) == ACCORD_PARTITION_NOT_STARTED, "before the start");
    for (int round = 0; round < 2; ++round) {
      work.start(round);
      work.prepare();
      (void)MPIX_Pready_range(0, work.partitions() - 1, work.on_device);
      if (rank == 0 && round == 0)
        expect(MPIX_Pready(1, work.on_device) == ACCORD_PARTITION_TWICE, "twice");
      if (rank == 0 && round == 1)
        expect(MPIX_Pready(4, work.on_device) == ACCORD_PARTITION_OUT_OF_RANGE, "out of range");
      int error_class = MPI_SUCCESS;
      MPI_Error_class(MPI_Wait(&work.request, MPI_STATUS_IGNORE), &error_class);
      // What a kernel has done before the first start is an error of that round.
      const bool is_mistaken = rank == 0 || round == 0;
      expect(error_class == (is_mistaken ? MPI_ERR_ARG : MPI_SUCCESS), "a kernel's mistake");
      work.check("mistakes");
    }
  }
  MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  // Threads here do not call MPI.
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  start();
  if (std::string(accord_runtime_name()) != "host") {
    std::puts("skipped: kernels of the host runtime alone");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  by_kernels = argc > 1 && std::string(argv[1]) == "kernels";
  marked_by_the_host();
  shapes();
  held_and_shared();
  several();
  for (int root = 0; root < size; ++root) {
    for (const int count : {1, 33, 5000}) broadcast(root, MPI_INT, count, by_kernels);
    broadcast(root, MPI_CHAR, 12, by_kernels);
    broadcast(root, MPI_CHAR, 3, false);
  }
  if (by_kernels) unattended();
  attended();
  if (by_kernels) words_stay();
  declined();
  mistakes();
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
