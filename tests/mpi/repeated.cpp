// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Small collectives with the same arguments again and again, which are not described anew each
// time: each gives what it should, whatever has become of the memory behind the pointers meanwhile,
// and although types that mean nothing on a rank may be anything.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using Numbers = std::vector<int>;

constexpr int kCalls = 40;  // far more than it takes to make inboxes and to vote
constexpr int kCount = 9;

int rank = 0;
int size = 0;
int failures = 0;

std::vector<std::byte> bytes_of(const Numbers& numbers) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return {bytes, bytes + numbers.size() * sizeof(int)};
}
Numbers numbers(int count, int first) {
  Numbers made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = first + i;
  return made;
}
void fill(const DeviceBuffer& buffer, const Numbers& values) {
  (void)accord_memcpy(buffer.pointer(), values.data(), values.size() * sizeof(int));
}

void check(const char* what, int call, const DeviceBuffer& buffer, const Numbers& expected) {
  if (buffer.contents() == bytes_of(expected)) return;
  std::fprintf(stderr, "rank %d: %s %d: wrong result\n", rank, what, call);
  ++failures;
}

// Only the last calls are sure to go that way.
void check_path(const char* what, int call) {
  if (call < kCalls - 2 || std::strcmp(accord_last_path(), "inbox") == 0) return;
  std::fprintf(stderr, "rank %d: %s %d went by %s\n", rank, what, call, accord_last_path());
  ++failures;
}

void reduce_again(MPI_Comm comm) {
  auto send = std::make_unique<DeviceBuffer>(bytes_of(numbers(kCount, 0)));
  const DeviceBuffer recv(bytes_of(numbers(kCount, -1)));
  for (int call = 0; call < kCalls; ++call) {
    // Now and then other memory, which often has the old address.
    if (call % 8 == 7) {
      send.reset();
      send = std::make_unique<DeviceBuffer>(bytes_of(numbers(kCount, 0)));
    }
    fill(*send, numbers(kCount, call + rank));
    // Others in between, on the same buffers.
    if (call % 3 == 0) MPI_Allreduce(send->pointer(), recv.pointer(), 1, MPI_INT, MPI_SUM, comm);
    MPI_Allreduce(send->pointer(), recv.pointer(), kCount, MPI_INT, MPI_MAX, comm);
    check_path("allreduce", call);
    check("allreduce", call, recv, numbers(kCount, call + size - 1));
  }
}

// Of a host buffer and a device buffer at once, and in place.
void reduce_host_and_in_place() {
  Numbers host(kCount);
  const DeviceBuffer recv(bytes_of(numbers(kCount, -1)));
  for (int call = 0; call < kCalls; ++call) {
    host = numbers(kCount, call * rank);
    MPI_Allreduce(host.data(), recv.pointer(), kCount, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check("allreduce of host memory", call, recv, numbers(kCount, call * (size - 1)));
    fill(recv, numbers(kCount, call + rank));
    MPI_Allreduce(MPI_IN_PLACE, recv.pointer(), kCount, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    check("allreduce in place", call, recv, numbers(kCount, call));
  }
}

void gather_and_scatter() {
  const int root = size - 1;
  const bool is_root = rank == root;
  const DeviceBuffer part(bytes_of(numbers(kCount, 0)));
  const DeviceBuffer all(bytes_of(numbers(kCount * size, -1)));
  for (int call = 0; call < kCalls; ++call) {
    fill(part, numbers(kCount, call + rank * kCount));
    MPI_Gather(part.pointer(), kCount, MPI_INT, is_root ? all.pointer() : nullptr,
               is_root ? kCount : 0, is_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    check_path("gather", call);
    if (is_root) check("gather", call, all, numbers(kCount * size, call));
    if (is_root) fill(all, numbers(kCount * size, -call));
    MPI_Scatter(is_root ? all.pointer() : nullptr, is_root ? kCount : 0,
                is_root ? MPI_INT : MPI_DATATYPE_NULL, part.pointer(), kCount, MPI_INT, root,
                MPI_COMM_WORLD);
    check_path("scatter", call);
    check("scatter", call, part, numbers(kCount, -call + rank * kCount));
  }
}

// Device memory of this process, its peers' included: the host runtime's is mapped files.
int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:accord (deleted)") != std::string::npos ? 1 : 0;
  return count;
}

// What peers have opened and the program frees they close in their next calls, although these are
// short or of another communicator.
void freed_memory_is_closed() {
  constexpr int kLong = 1 << 18;
  constexpr int kShortCalls = 2;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  auto send = std::make_unique<DeviceBuffer>(bytes_of(numbers(kLong, 0)));
  auto recv = std::make_unique<DeviceBuffer>(bytes_of(numbers(kLong, 0)));
  for (int call = 0; call < kCalls; ++call)
    MPI_Allreduce(send->pointer(), recv->pointer(), kLong, MPI_INT, MPI_MAX, comm);
  const bool was_lent = std::strcmp(accord_last_path(), "node-direct") == 0;
  const int open = mappings();
  send.reset();
  recv.reset();
  for (int call = 0; call < kShortCalls; ++call) MPI_Barrier(MPI_COMM_WORLD);
  // The own two, and of each peer at least one.
  const int fewer = 2 + size - 1;
  if (!was_lent || mappings() > open - fewer) {
    std::fprintf(stderr, "rank %d: %d mappings, %d before%s\n", rank, mappings(), open,
                 was_lent ? "" : "; nothing was lent");
    ++failures;
  }
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (accord_device_count() > 0) (void)accord_set_device(rank % accord_device_count());
  reduce_again(MPI_COMM_WORLD);
  // A communicator whose handle is likely one that was freed.
  for (int i = 0; i < 3; ++i) {
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    reduce_again(other);
    MPI_Comm_free(&other);
  }
  reduce_host_and_in_place();
  gather_and_scatter();
  freed_memory_is_closed();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
