// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the sums of a step are added over the ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>

#include "../common/event.h"
#include "../common/mpi_time.h"
#include "../common/partitioned_calls.h"
#include "training.h"

namespace loss {

class Way {
 public:
  explicit Way(const Training& training) : training_(training) {}
  virtual ~Way() = default;
  // Makes steps from number 0 on, and waits for them.
  void run(int steps) {
    for (int step = 0; step < steps; ++step) make(step);
    stream_.synchronise();
  }
  double seconds_in_mpi() const { return time_.seconds(); }

 protected:
  virtual void make(int step) = 0;

  const Training& training_;
  app::Stream stream_;
  app::MpiTime time_;
};

class Ordinary : public Way {
 public:
  using Way::Way;

 private:
  void make(int step) override {
    training_.compute(stream_, step);
    stream_.synchronise();
    time_.of([&] {
      MPI_Allreduce(training_.made(), training_.sums(step), training_.floats(), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    });
  }
};

// The next kernel is on the same stream as the copy back, so the host does not wait for that.
class Staged : public Way {
 public:
  explicit Staged(const Training& training)
      : Way(training), host_(static_cast<std::size_t>(training.floats())) {}

 private:
  void make(int step) override {
    const std::size_t bytes = host_.count() * sizeof(float);
    training_.compute(stream_, step);
    stream_.copy(host_.data(), training_.made(), bytes);
    stream_.synchronise();
    time_.of([this] {
      MPI_Allreduce(MPI_IN_PLACE, host_.data(), training_.floats(), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    });
    stream_.copy(training_.sums(step), host_.data(), bytes);
  }

  app::Pinned<float> host_;
};

// No step waits for its own kernel: the sums of a partition go as soon as its blocks are through.
class Partitioned : public Way {
 public:
  explicit Partitioned(const Training& training) : Way(training) {
    // So many blocks make a partition, and each of them marks it.
    MPI_Info info;
    MPI_Info_create(&info);
    const std::string blocks = std::to_string(training.blocks_per_partition());
    MPI_Info_set(info, "accord_marks", blocks.c_str());
    MPI_Info_set(info, "accord_arrivals", "host");  // only MPI_Wait looks for them
    for (int i = 0; i < 2; ++i) {
      calls_.allreduce_init(training.made(), training.sums(i), training.partitions(),
                            training.floats() / training.partitions(), MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD, info, &requests_[i]);
      calls_.create(&on_device_[i], requests_[i]);
    }
    MPI_Info_free(&info);
  }
  ~Partitioned() override {
    stream_.synchronise();  // no kernel may use the requests any more
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }

 private:
  void make(int step) override {
    MPI_Request& request = requests_[step % 2];
    time_.of([&] {
      MPI_Start(&request);
      calls_.prepare(request);
    });
    training_.compute(stream_, step, on_device_[step % 2]);
    time_.of([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
  }

  app::PartitionedCalls calls_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPIX_Prequest on_device_[2] = {MPIX_PREQUEST_NULL, MPIX_PREQUEST_NULL};
};

inline std::unique_ptr<Way> make_way(const std::string& name, const Training& training) {
  if (name == "partitioned") return std::make_unique<Partitioned>(training);
  if (name == "staged") return std::make_unique<Staged>(training);
  return std::make_unique<Ordinary>(training);
}

}  // namespace loss
