// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A kernel adds two vectors for another rank. Ordinarily the host waits for the kernel and then
// sends; with partitioned communication each block sends its part as soon as it has it. Ranks work
// in pairs: 0 with 1, 2 with 3, and so on. All that is received is checked.
//
//   nvcc -x cu -std=c++17 partitioned_vector_add.cpp -o partitioned_vector_add -I ../include
//       -I $MPI/include -L $MPI/lib -lmpi -L ../build/lib -laccord
//   accord run -n 2 ./partitioned_vector_add [largest bytes] [rounds]
//
// Goodput is the bytes of the sum over the time from the launch of the kernel to the completion of
// the receive: half of a round trip, the median of all rounds, of the slowest pair.
#include <cstdlib>

#include "blocks.h"

namespace {

// What block i adds is partition i. Without a request it is the ordinary kernel.
struct Add {
  const float* a;
  const float* b;
  float* sum;
  int count;  // of a block
  int round;
  MPIX_Prequest request;

  ON_DEVICE void operator()(Block block) const {
    add(block);
    if (request != MPIX_PREQUEST_NULL) MPIX_Pready_block(block.number, request);
  }
  // So that each round has another sum, b counts as often.
  ON_DEVICE void add(Block block) const {
    const int first = block.number * count;
    View<const float> left(a + first, count);
    View<const float> right(b + first, count);
    View<float> to(sum + first, count);
    for (int i = block.thread; i < count; i += block.threads)
      to[i] = left[i] + static_cast<float>(round) * right[i];
  }
};

float a_of(int rank, int i) { return static_cast<float>(rank * 1000 + i % 997); }
float b_of(int i) { return static_cast<float>(i % 13 + 1); }

struct Pair {
  int rank = 0;
  int peer = 0;  // none for the last of an odd number of ranks
  int blocks = 0;
  int count = 0;  // of a block
  DeviceArray<float> a;
  DeviceArray<float> b;
  DeviceArray<float> sum;
  DeviceArray<float> received;

  int elements() const { return blocks * count; }
  Add kernel(int round, MPIX_Prequest request) const {
    return {a.data(), b.data(), sum.data(), count, round, request};
  }
  int wrong(int round) const {
    if (peer == MPI_PROC_NULL) return 0;
    const std::vector<float> got = received.read();
    int found = 0;
    for (int i = 0; i < elements(); ++i)
      found +=
          got[static_cast<std::size_t>(i)] != a_of(peer, i) + static_cast<float>(round) * b_of(i);
    return found;
  }
};

class Ordinary {
 public:
  explicit Ordinary(const Pair& pair) : pair_(pair) {}
  void begin() {}
  void make_and_send(int round) {
    launch(pair_.blocks, pair_.kernel(round, MPIX_PREQUEST_NULL));
    synchronise();
    MPI_Send(pair_.sum.data(), pair_.elements(), MPI_FLOAT, pair_.peer, 0, MPI_COMM_WORLD);
  }
  void receive() {
    MPI_Recv(pair_.received.data(), pair_.elements(), MPI_FLOAT, pair_.peer, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }

 private:
  const Pair& pair_;
};

class Partitioned {
 public:
  explicit Partitioned(const Pair& pair) : pair_(pair) {
    MPI_Psend_init(pair.sum.data(), pair.blocks, pair.count, MPI_FLOAT, pair.peer, 1,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests_[0]);
    MPI_Precv_init(pair.received.data(), pair.blocks, pair.count, MPI_FLOAT, pair.peer, 1,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests_[1]);
    MPIX_Prequest_create(&on_device_, requests_[0]);
  }
  ~Partitioned() {
    synchronise();  // no kernel may use the request any more
    MPIX_Prequest_free(&on_device_);
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  Partitioned(const Partitioned&) = delete;
  Partitioned& operator=(const Partitioned&) = delete;

  void begin() {
    MPI_Startall(2, requests_);
    MPIX_Pbuf_prepare_all(2, requests_);
  }
  void make_and_send(int round) {
    launch(pair_.blocks, pair_.kernel(round, on_device_));
    MPI_Wait(&requests_[0], MPI_STATUS_IGNORE);
  }
  void receive() { MPI_Wait(&requests_[1], MPI_STATUS_IGNORE); }

 private:
  const Pair& pair_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPIX_Prequest on_device_ = MPIX_PREQUEST_NULL;
};

struct Outcome {
  double us = 0;
  int wrong = 0;
};

template <class Way>
Outcome measure(const Pair& pair, int rounds) {
  Way way(pair);
  Outcome outcome;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    way.begin();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (pair.rank % 2 == 0) {
      way.make_and_send(round);
      way.receive();
    } else {
      way.receive();
      way.make_and_send(round);
    }
    times.push_back((MPI_Wtime() - start) / 2 * 1e6);
    outcome.wrong += pair.wrong(round);
  }
  outcome.us = largest(median(times));
  return outcome;
}

// A block for each 4 KiB, 64 of them at most, and larger ones beyond: up to 16 KiB.
Pair pair_of(int rank, int ranks, int elements) {
  const int count = std::min(elements, std::clamp(elements / 64, 1024, 4096));
  const int blocks = elements / count;
  std::vector<float> a;
  std::vector<float> b;
  for (int i = 0; i < blocks * count; ++i) {
    a.push_back(a_of(rank, i));
    b.push_back(b_of(i));
  }
  const int peer = (rank ^ 1) < ranks ? rank ^ 1 : MPI_PROC_NULL;
  const auto memory = [&] { return DeviceArray<float>(a); };
  return {rank, peer, blocks, count, memory(), DeviceArray<float>(b), memory(), memory()};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int bytes_max = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 200;
  require(bytes_max >= 1024 && bytes_max <= 1 << 29 && rounds > 0,
          "1024 to 536870912 bytes and a round");
  use_device_of(rank);

  if (rank == 0)
    std::printf("%9s %14s %14s %14s %14s %7s\n", "bytes", "send us", "partitioned us", "send MB/s",
                "partit. MB/s", "ratio");
  int wrong = 0;
  for (int bytes = 1024; bytes <= bytes_max; bytes *= 2) {
    const Pair pair = pair_of(rank, ranks, bytes / static_cast<int>(sizeof(float)));
    const Outcome ordinary = measure<Ordinary>(pair, rounds);
    const Outcome partitioned = measure<Partitioned>(pair, rounds);
    wrong += ordinary.wrong + partitioned.wrong;
    if (rank == 0)
      std::printf("%9d %14.1f %14.1f %14.1f %14.1f %6.2fx\n", bytes, ordinary.us, partitioned.us,
                  bytes / ordinary.us, bytes / partitioned.us, ordinary.us / partitioned.us);
  }
  wrong = largest(wrong);
  if (rank == 0)
    std::printf("vectors added in %s memory of %d ranks: %s\n", accord_runtime_name(), ranks,
                wrong == 0 ? "correct" : "WRONG");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
