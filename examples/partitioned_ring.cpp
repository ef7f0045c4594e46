// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Each rank's kernel makes numbers and hands them to the next rank block by block, while its other
// blocks still compute: no synchronisation, and no MPI call of the host for the data. The receiver
// checks them. docs/partitioned.md walks through it.
//
//   nvcc -x cu -std=c++17 partitioned_ring.cpp -o partitioned_ring -I ../include -I $MPI/include
//       -L $MPI/lib -lmpi -L ../build/lib -laccord
//   accord run -n 2 ./partitioned_ring
//
// By a compiler that knows no device, as in `mpicxx partitioned_ring.cpp ...`, it is for the
// embedded host runtime (ACCORD_RUNTIME=host), where a thread stands for a block.
#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <cstdio>
#include <thread>
#include <vector>

constexpr int kPartitions = 16;
constexpr int kCount = 1024;  // of a partition
constexpr int kRounds = 3;

#if ACCORD_PARTITIONED_GPU
// A block makes a partition, and then marks it ready: all its threads call.
__global__ void make(float* numbers, int rank, int round, MPIX_Prequest request) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x)
    numbers[blockIdx.x * kCount + i] = rank * 1000 + round + blockIdx.x;
  MPIX_Pready_block(blockIdx.x, request);
}
void launch(float* numbers, int rank, int round, MPIX_Prequest request) {
  make<<<kPartitions, 256>>>(numbers, rank, round, request);
}
#else
void launch(float* numbers, int rank, int round, MPIX_Prequest request) {
  std::vector<std::thread> blocks;
  for (int block = 0; block < kPartitions; ++block) {
    blocks.emplace_back([=] {
      const std::vector<float> made(kCount, static_cast<float>(rank * 1000 + round + block));
      accord_memcpy(numbers + block * kCount, made.data(), kCount * sizeof(float));
      MPIX_Pready_block(block, request);
    });
  }
  for (std::thread& block : blocks) block.join();
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;

  accord_set_device(rank % accord_device_count());
#if ACCORD_PARTITIONED_GPU
  cudaSetDevice(rank % accord_device_count());
#endif
  const size_t size_bytes = kPartitions * kCount * sizeof(float);
  void* to_send = nullptr;
  void* received = nullptr;
  accord_malloc(&to_send, size_bytes, ACCORD_MEMORY_DEVICE);
  accord_malloc(&received, size_bytes, ACCORD_MEMORY_DEVICE);

  // Once: who sends what to whom, and the request as kernels see it.
  MPI_Request requests[2];
  MPI_Precv_init(received, 1, kPartitions * kCount, MPI_FLOAT, before, 0, MPI_COMM_WORLD,
                 MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(to_send, kPartitions, kCount, MPI_FLOAT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[1]);
  MPIX_Prequest on_device = MPIX_PREQUEST_NULL;
  MPIX_Prequest_create(&on_device, requests[1]);

  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Startall(2, requests);
    MPIX_Pbuf_prepare_all(2, requests);
    launch(static_cast<float*>(to_send), rank, round, on_device);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

    std::vector<float> got(kPartitions * kCount);
    accord_memcpy(got.data(), received, size_bytes);
    for (int i = 0; i < kPartitions * kCount; ++i)
      wrong +=
          got[static_cast<size_t>(i)] != static_cast<float>(before * 1000 + round + i / kCount);
  }

  MPIX_Prequest_free(&on_device);
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  accord_free(to_send);
  accord_free(received);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%d partitions of %d floats in %s memory around %d ranks: %s\n", kPartitions,
                kCount, accord_runtime_name(), ranks, wrong == 0 ? "correct" : "WRONG");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
