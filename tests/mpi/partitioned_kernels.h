// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Threads that stand for kernels on the embedded host runtime, for tests of partitioned
// communication.
#pragma once

#include <accord/partitioned.h>
#include <mpi.h>

#include <accord/partitioned.cuh>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {

inline constexpr int kPartitions = 8;
inline constexpr int kInts = 8 * 32;

// Calls body(thread) by so many threads, and returns when all have.
template <class Body>
void launch(int threads, Body body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([=] { body(i); });
  for (std::thread& one : all) one.join();
}

class Info {
 public:
  Info(std::initializer_list<std::pair<const char*, const char*>> entries) {
    MPI_Info_create(&info_);
    for (const auto& [key, value] : entries) MPI_Info_set(info_, key, value);
  }
  ~Info() { MPI_Info_free(&info_); }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

inline PairOptions on_device(MPI_Info info) {
  return {.sends = kPartitions,
          .receives = 4,
          .ints = kInts,
          .send_on_device = true,
          .receive_on_device = true,
          .info = info};
}

enum class Mover { kernel, engine };

// Whether, as far as this rank can tell without a call, the kernel has written all transfers into
// the receiver's memory, or has asked the host to.
inline bool moved_by(Mover mover, MPIX_Prequest preq, int transfers) {
  const unsigned now = MPIX_Pround(preq);
  const accord_partitioned::View seen = accord_partitioned::view(preq);
  int arrived = 0;
  int asked = 0;
  for (int i = 0; i < transfers; ++i) {
    if (seen.connected && accord_partitioned::load_acquire(&seen.fields->link.arrived[i]) == now)
      ++arrived;
    if (accord_partitioned::load_acquire(&seen.fields->ready[i]) == now) ++asked;
  }
  return mover == Mover::kernel ? arrived == transfers && asked == 0 : asked == transfers;
}

}  // namespace accord::test

#endif
