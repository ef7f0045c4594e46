// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Freed memory does not stay with the peers: each rank allocates four fifths of what its device
// has, reduces parts of it until they would be lent, frees it, and does so again. With a size in
// MiB it takes that instead: the host runtime has no end of memory.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kRounds = 100;
constexpr int kCalls = 3;  // of one buffer; from the second on it is lent
constexpr int kElements = 1 << 20;
constexpr std::size_t kMi = std::size_t{1} << 20;

bool can_allocate(std::size_t size_bytes) {
  void* memory = nullptr;
  if (accord_malloc(&memory, size_bytes, ACCORD_MEMORY_DEVICE) != ACCORD_OK) return false;
  (void)accord_free(memory);
  return true;
}

std::size_t most_bytes() {
  std::size_t low = 0;
  std::size_t high = std::size_t{1} << 42;
  while (high - low > 64 * kMi) {
    const std::size_t middle = low + (high - low) / 2;
    (can_allocate(middle) ? low : high) = middle;
  }
  return low / 5 * 4;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  (void)accord_set_device(rank % accord_device_count());
  const std::size_t size_bytes =
      argc > 1 ? std::strtoull(argv[1], nullptr, 10) * kMi : most_bytes();
  const std::size_t part_bytes = kElements * sizeof(float);
  const std::vector<float> ones(kElements, 1.0F);
  std::vector<float> sums(kElements);
  int failures = 0;
  for (int round = 0; round < kRounds && failures == 0; ++round) {
    void* memory = nullptr;
    if (accord_malloc(&memory, size_bytes, ACCORD_MEMORY_DEVICE) != ACCORD_OK) {
      std::fprintf(stderr, "rank %d, round %d: %s\n", rank, round, accord_last_error());
      ++failures;
    }
    // All ranks stop together.
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (failures != 0) break;
    auto* const last = static_cast<char*>(memory) + size_bytes - part_bytes;
    for (int call = 0; call < kCalls; ++call) {
      (void)accord_memcpy(memory, ones.data(), part_bytes);
      MPI_Allreduce(memory, last, kElements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      (void)accord_memcpy(sums.data(), last, part_bytes);
      for (const float sum : sums) failures += sum != static_cast<float>(size) ? 1 : 0;
    }
    (void)accord_free(memory);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%zu MiB a rank, %d times: %d failures\n", size_bytes / kMi, kRounds, failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
