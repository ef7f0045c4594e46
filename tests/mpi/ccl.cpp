// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives on device memory by a collective library: they go that way where the library can do
// them and all ranks have it, else another, and each gives what it should. The command line says
// what is the matter:
//   way PATH ELSE   calls go by PATH ("nccl", or where there is no library ELSE), and by ELSE
//              ("node", where none is given) what a library cannot do
//   plugin     only sums of floats go by the library, which is the example's
//   lacks      rank 1 has no library
//   fails      the library fails in the midst of a call: an error, but never wrong data
//   fails_persistent  the same of persistent requests, of which there are several
//   company    calls of two communicators, started in different orders
//   replays    calls that are recorded, of buffers that change contents, place and memory
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;

constexpr int kCount = 1000;
constexpr int kCalls = 5;

int rank = 0;
int size = 0;
int failures = 0;
std::string elsewhere = "node";

// Element i of what `sender` contributes.
template <class Number>
Number value(int sender, int i) {
  return static_cast<Number>((sender + 1) * 7 + i % 11);
}
template <class Number>
std::vector<Number> contribution(int sender, int count = kCount) {
  std::vector<Number> numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = value<Number>(sender, i);
  return numbers;
}
template <class Number>
std::vector<Number> sum(int ranks) {
  std::vector<Number> numbers(kCount);
  for (int from = 0; from < ranks; ++from) {
    const auto added = contribution<Number>(from);
    std::ranges::transform(numbers, added, numbers.begin(),
                           [](Number a, Number b) { return static_cast<Number>(a + b); });
  }
  return numbers;
}

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}
void expect_path(const std::string& path, const std::string& what) {
  expect(accord_last_path() == path, what + " went by " + accord_last_path());
}

template <class Number>
void set(const DeviceBuffer& buffer, const std::vector<Number>& numbers) {
  const std::size_t size_bytes = numbers.size() * sizeof(Number);
  expect(accord_memcpy(buffer.pointer(), numbers.data(), size_bytes) == ACCORD_OK, "no copy");
}

template <class Number>
void check_sum(MPI_Datatype type, const std::string& path, const std::string& what) {
  const DeviceBuffer send = on_device(contribution<Number>(rank));
  const DeviceBuffer recv = on_device(std::vector<Number>(kCount));
  for (int call = 0; call < kCalls; ++call)
    MPI_Allreduce(send.pointer(), recv.pointer(), kCount, type, MPI_SUM, MPI_COMM_WORLD);
  expect_path(path, what);
  expect(contents<Number>(recv) == sum<Number>(size), what + ": wrong result");
}

void check_bcast(const std::string& path) {
  const int root = size - 1;
  const DeviceBuffer buffer = on_device(contribution<int>(rank));
  MPI_Bcast(buffer.pointer(), kCount, MPI_INT, root, MPI_COMM_WORLD);
  expect_path(path, "bcast");
  expect(contents<int>(buffer) == contribution<int>(root), "bcast: wrong result");
}

// Each rank sends the next one more than it sends the others; once rank 0 expects less than that.
void check_pairs(const std::string& way) {
  constexpr int kBlock = 600;
  // What a library does not do between nodes goes pair by pair there.
  const bool is_split = std::getenv("ACCORD_NODE_SPLIT") != nullptr;
  const std::string path = is_split && way == "staged" ? "two-level-pairs" : way;
  for (const bool wrong : {false, true}) {
    if (wrong && path == "staged") continue;  // what the host MPI makes of that is its affair
    std::vector<int> sent(static_cast<std::size_t>(size), 1);
    std::vector<int> received(static_cast<std::size_t>(size), 1);
    std::vector<int> places(static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) places[static_cast<std::size_t>(peer)] = peer * kBlock;
    const int last = (rank + size - 1) % size;
    sent[static_cast<std::size_t>((rank + 1) % size)] = kBlock;
    received[static_cast<std::size_t>(last)] = wrong && rank == 0 ? kBlock - 1 : kBlock;
    const DeviceBuffer send = on_device(contribution<int>(rank, size * kBlock));
    const DeviceBuffer recv =
        on_device(std::vector<int>(static_cast<std::size_t>(size) * kBlock, -1));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code =
        MPI_Alltoallv(send.pointer(), sent.data(), places.data(), MPI_INT, recv.pointer(),
                      received.data(), places.data(), MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (!wrong) expect_path(path, "alltoallv");
    // Whoever sends too much may be told.
    const bool concerned = wrong && rank == 0;
    const bool may_be_told = wrong && rank == size - 1;
    expect(may_be_told || (code != MPI_SUCCESS) == concerned,
           "alltoallv: an error of somebody else, or none");
    const auto got = contents<int>(recv);
    for (int from = 0; from < size; ++from) {
      const auto first = static_cast<std::size_t>(from * kBlock);
      const bool there = !(wrong && rank == 0 && from == last);
      expect(got[first] == (there ? value<int>(from, rank * kBlock) : -1),
             "alltoallv: wrong result");
    }
  }
}

// Whether there are persistent collectives.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

#if HAS_PERSISTENT
// A request by a library has nothing of its own but mailboxes: what the library cannot do goes by
// the same way as if there were none.
void check_persistent(const std::string& path) {
  const DeviceBuffer send = on_device(contribution<float>(rank));
  const DeviceBuffer recv = on_device(std::vector<float>(kCount));
  const DeviceBuffer shorts = on_device(contribution<short>(rank));
  MPI_Request sum_of_floats = MPI_REQUEST_NULL;
  MPI_Request sum_of_shorts = MPI_REQUEST_NULL;
  MPI_Allreduce_init(send.pointer(), recv.pointer(), kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &sum_of_floats);
  expect_path(path, "initialisation of a sum");
  MPI_Allreduce_init(MPI_IN_PLACE, shorts.pointer(), kCount, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &sum_of_shorts);
  expect_path(elsewhere, "initialisation of a sum of short");
  MPI_Request* const first = rank % 2 == 0 ? &sum_of_floats : &sum_of_shorts;
  MPI_Request* const second = rank % 2 == 0 ? &sum_of_shorts : &sum_of_floats;
  MPI_Start(first);
  MPI_Start(second);
  check_sum<float>(MPI_FLOAT, path, "sum of float beside persistent ones");
  MPI_Wait(&sum_of_shorts, MPI_STATUS_IGNORE);
  MPI_Wait(&sum_of_floats, MPI_STATUS_IGNORE);
  expect_path(path, "persistent sum");
  expect(contents<float>(recv) == sum<float>(size), "persistent sum: wrong result");
  expect(contents<short>(shorts) == sum<short>(size), "persistent sum of short: wrong result");
  MPI_Request_free(&sum_of_floats);
  MPI_Request_free(&sum_of_shorts);
}
#endif

// A library has no operation for bits; what it is given else, it does.
void check_way(const std::string& path) {
  check_sum<int>(MPI_INT, path, "sum of int");
  check_sum<float>(MPI_FLOAT, path, "sum of float");
  check_sum<short>(MPI_SHORT, elsewhere, "sum of short");
  check_bcast(path);
  check_pairs(path == "node" ? "node-pairs" : path);
#if HAS_PERSISTENT
  check_persistent(path);
#endif
  const DeviceBuffer bits = on_device(contribution<int>(rank));
  MPI_Allreduce(MPI_IN_PLACE, bits.pointer(), kCount, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
  expect_path(elsewhere, "bitwise operation");
  const DeviceBuffer prefix = on_device(contribution<int>(rank));
  MPI_Scan(MPI_IN_PLACE, prefix.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect_path(elsewhere, "scan");
  expect(contents<int>(prefix) == sum<int>(rank + 1), "scan: wrong result");
  // A communicator of a communicator, freed before the end.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Bcast(prefix.pointer(), kCount, MPI_INT, 0, half);
  MPI_Comm_free(&half);
}

void check_plugin() {
  check_sum<float>(MPI_FLOAT, "example", "sum of float");
  check_sum<int>(MPI_INT, "node", "sum of int");
  check_bcast("node");
}

// What is a success has the right result, and the error says whose it is. From the middle on calls
// are shorter, so that they are no replays of those before.
void check_failure() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const DeviceBuffer send = on_device(contribution<float>(rank));
  const DeviceBuffer recv = on_device(std::vector<float>(kCount));
  std::string told;
  for (int call = 0; call < 20; ++call) {
    const int count = call < 10 ? kCount : kCount - 1;
    std::vector<float> result = sum<float>(size);
    std::fill(result.begin() + count, result.end(), 0.0F);
    set(recv, std::vector<float>(kCount));
    const int code =
        MPI_Allreduce(send.pointer(), recv.pointer(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS) {
      expect(told.empty(), "a success after an error");
      expect(contents<float>(recv) == result, "a success with a wrong result");
      continue;
    }
    std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    if (told.empty()) told = text.data();
  }
  // MPICH 4.0 has other words for codes that are added to it.
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40100000
  expect(told.find("accord: ") != std::string::npos, "no error of ours: " + told);
#endif
  std::fprintf(stderr, "rank %d was told: %s\n", rank, told.c_str());
}

#if HAS_PERSISTENT
// They share the library's communicator: once it has failed, all of them do, and so do other calls.
void check_persistent_failure() {
  constexpr std::size_t kRequests = 3;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const DeviceBuffer send = on_device(contribution<float>(rank));
  std::vector<std::unique_ptr<DeviceBuffer>> recvs;
  std::array<MPI_Request, kRequests> requests{};
  for (MPI_Request& request : requests) {
    recvs.emplace_back(new DeviceBuffer(on_device(std::vector<float>(kCount))));
    MPI_Allreduce_init(send.pointer(), recvs.back()->pointer(), kCount, MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    expect_path("nccl", "initialisation");
  }
  constexpr int kRounds = 5;
  unsigned errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    errors = 0;
    for (std::size_t i = 0; i < kRequests; ++i)
      MPI_Start(&requests[(i + static_cast<std::size_t>(rank)) % kRequests]);
    for (std::size_t i = 0; i < kRequests; ++i) {
      const int code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) ++errors;
      if (code == MPI_SUCCESS)
        expect(contents<float>(*recvs[i]) == sum<float>(size), "a success with a wrong result");
    }
  }
  expect(errors == kRequests, "a request goes on with a library that has failed");
  const DeviceBuffer recv = on_device(std::vector<float>(kCount));
  const int code =
      MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  expect(code != MPI_SUCCESS, "a call goes on with a library that has failed");
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}
#endif

// Each rank starts and awaits them in an order of its own, and some ranks block in a call of a
// third communicator meanwhile.
void check_company(const std::string& path) {
  constexpr int kComms = 3;
  std::array<MPI_Comm, kComms> comms{};
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const DeviceBuffer send = on_device(contribution<float>(rank));
  std::vector<DeviceBuffer*> recvs;
  for (std::size_t i = 0; i < kComms; ++i)
    recvs.push_back(new DeviceBuffer(on_device(std::vector<float>(kCount))));
  for (int round = 0; round < 20; ++round) {
    std::array<MPI_Request, kComms> requests{};
    for (std::size_t i = 0; i < kComms; ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(rank + round)) % kComms;
      MPI_Iallreduce(send.pointer(), recvs[which]->pointer(), kCount, MPI_FLOAT, MPI_SUM,
                     comms[which], &requests[which]);
    }
    if (round % 2 == 0)
      MPI_Wait(&requests[static_cast<std::size_t>(rank) % kComms], MPI_STATUS_IGNORE);
    check_sum<float>(MPI_FLOAT, path, "blocking sum in company");
    MPI_Waitall(kComms, requests.data(), MPI_STATUSES_IGNORE);
    for (DeviceBuffer* recv : recvs)
      expect(contents<float>(*recv) == sum<float>(size), "non-blocking sum: wrong result");
  }
  for (DeviceBuffer* recv : recvs) delete recv;
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// More calls than it takes for a recording; `call` gets what this rank sends it, other numbers each
// time, and what is to come of them on all ranks.
template <class Call>
void again_and_again(Call call) {
  constexpr int kRepetitions = 25;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto numbers = [i](int sender) {
      auto made = contribution<int>(sender);
      for (int& number : made) number += 1000 * i;
      return made;
    };
    std::vector<int> total(kCount);
    for (int from = 0; from < size; ++from)
      std::ranges::transform(total, numbers(from), total.begin(), std::plus<>());
    call(numbers(rank), total);
  }
}

void check_replays() {
  const DeviceBuffer send = on_device(contribution<int>(rank));
  const auto sum_into = [&](const DeviceBuffer& recv, const char* what) {
    again_and_again([&](const std::vector<int>& numbers, const std::vector<int>& total) {
      set(send, numbers);
      MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      expect_path("nccl", what);
      expect(contents<int>(recv) == total, std::string(what) + ": wrong result");
    });
  };
  const DeviceBuffer kept = on_device(std::vector<int>(kCount));
  sum_into(kept, "sum");
  // Elsewhere on one rank, but where it was on the other.
  const DeviceBuffer other = on_device(std::vector<int>(kCount));
  sum_into(rank == 0 ? kept : other, "sum into another buffer of one rank");
  sum_into(kept, "sum into the first buffer");
  // Memory that has the address of what was freed.
  for (int round = 0; round < 3; ++round)
    sum_into(on_device(std::vector<int>(kCount)), "sum into fresh memory");
  again_and_again([&](const std::vector<int>& numbers, const std::vector<int>& total) {
    set(kept, numbers);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, kept.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(contents<int>(kept) == total, "non-blocking sum: wrong result");
    // Of calls pair by pair nothing is recorded.
    check_pairs("nccl");
  });
#if HAS_PERSISTENT
  MPI_Request round = MPI_REQUEST_NULL;
  MPI_Allreduce_init(send.pointer(), kept.pointer(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &round);
  again_and_again([&](const std::vector<int>& numbers, const std::vector<int>& total) {
    set(send, numbers);
    MPI_Start(&round);
    MPI_Wait(&round, MPI_STATUS_IGNORE);
    expect(contents<int>(kept) == total, "persistent sum: wrong result");
  });
  MPI_Request_free(&round);
#endif
  // A group of messages.
  const int block = kCount / size;
  again_and_again([&](const std::vector<int>& numbers, const std::vector<int>&) {
    set(send, numbers);
    MPI_Alltoall(send.pointer(), block, MPI_INT, kept.pointer(), block, MPI_INT, MPI_COMM_WORLD);
    const int added = numbers[0] - value<int>(rank, 0);
    for (int from = 0; from < size; ++from)
      expect(contents<int>(kept)[static_cast<std::size_t>(from * block)] ==
                 value<int>(from, rank * block) + added,
             "alltoall: wrong result");
  });
}

// A communicator of the library takes nothing for good, however many have been before it.
void check_many() {
  for (int number = 0; number < 6; ++number) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const DeviceBuffer send = on_device(contribution<int>(rank));
    const DeviceBuffer recv = on_device(std::vector<int>(kCount));
    MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_INT, MPI_SUM, comm);
    expect_path("nccl", "communicator " + std::to_string(number));
    expect(contents<int>(recv) == sum<int>(size), "many: wrong result");
    MPI_Comm_free(&comm);
  }
}

// Before Accord reads its settings; by what launchers tell of the rank.
void lose_library_of_rank_1() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    if (std::atoi(value) == 1) setenv("ACCORD_CCL_LIBRARIES", "nccl:/nowhere/libnccl.so", 1);
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string matter = argc > 1 ? argv[1] : "way";
  if (argc > 3) elsewhere = argv[3];
  if (matter == "lacks") lose_library_of_rank_1();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // Libraries want a device a rank.
  if (accord_device_count() > 0) accord_set_device(rank % accord_device_count());
  if (matter == "fails") {
    check_failure();
#if HAS_PERSISTENT
  } else if (matter == "fails_persistent") {
    check_persistent_failure();
#endif
  } else if (matter == "plugin") {
    check_plugin();
  } else if (matter == "many") {
    check_many();
  } else if (matter == "company") {
    check_company("nccl");
  } else if (matter == "replays") {
    check_replays();
  } else {
    check_way(matter == "lacks" ? elsewhere : argc > 2 ? argv[2] : "nccl");
  }
  int all_failures = 0;
  if (matter.starts_with("fails")) {  // the communicator is not fit for more
    all_failures = failures;
  } else {
    MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) std::printf("%d failures\n", all_failures);
  MPI_Finalize();
  return all_failures == 0 ? 0 : 1;
}
