// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One partitioned collective on random bytes, in rounds, against the ordinary one.
#pragma once

#include <accord/partitioned.h>

#include <accord/partitioned.cuh>
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "partitioned.h"

#if ACCORD_TEST_PARTITIONED

namespace accord::test {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int end) { return static_cast<int>(engine_() % static_cast<unsigned>(end)); }
  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> made(count);
    for (std::byte& one : made) one = static_cast<std::byte>(engine_() >> 8);
    return made;
  }
  std::mt19937& engine() { return engine_; }

 private:
  std::mt19937 engine_;
};

// On this rank's device or host.
class Bytes {
 public:
  Bytes(std::size_t size, bool on_device) : host_(size) {
    if (on_device && size > 0) device_ = std::make_unique<DeviceBuffer>(host_);
  }
  void* pointer() { return device_ ? device_->pointer() : host_.data(); }
  bool on_device() const { return device_ != nullptr; }
  std::size_t size() const { return host_.size(); }
  void set(const std::vector<std::byte>& bytes) {
    if (device_) {
      accord_memcpy(pointer(), bytes.data(), bytes.size());
    } else {
      std::copy(bytes.begin(), bytes.end(), host_.begin());
    }
  }
  std::vector<std::byte> get() const { return device_ ? device_->contents() : host_; }

 private:
  std::vector<std::byte> host_;
  std::unique_ptr<DeviceBuffer> device_;
};

// Equal on all ranks but for what the collective lets differ.
struct Collective {
  std::string name;
  int partitions = 1;
  bool gives = true;  // this rank marks partitions
  bool gets = true;   // and sees them arrive
  // Of buffers that hold all partitions.
  std::size_t send_bytes = 0;
  std::size_t recv_bytes = 0;
  bool in_place = false;
  // Bytes that an operation works on: some of each element.
  std::size_t element_bytes = 1;
  std::size_t used_bytes = 1;
  std::size_t compared_bytes = std::numeric_limits<std::size_t>::max();  // of what is received
  std::function<void(std::vector<std::byte>&)> tame = {};  // makes random bytes fit for it
  std::function<int(const void*, void*, MPI_Request*)> init = {};
  std::function<int(const void*, void*)> ordinary = {};
};

class Running {
 public:
  Running(Collective what, Random& random, bool on_device = false)
      : what_(std::move(what)),
        random_(random),
        send_(what_.in_place ? 0 : what_.send_bytes, random.below(2) != 0 || on_device),
        recv_(what_.recv_bytes, random.below(2) != 0 || on_device) {
    const void* const from = what_.in_place ? MPI_IN_PLACE : send_.pointer();
    expect_ok(what_.init(from, recv_.pointer(), &request_), what_.name + " init");
    const bool with_send = what_.gives && send_.on_device();
    can_kernels_ = with_send || (what_.gets && recv_.on_device());
    if (can_kernels_)
      expect_ok(MPIX_Prequest_create(&kernels_, request_), what_.name + " Prequest_create");
  }

  void start(int round) {
    round_ = round;
    contents_ = made(send_.size());
    before_ = made(recv_.size());
    // What is sent is there once it is marked, and not before.
    send_.set(random_.bytes(send_.size()));
    recv_.set(before_);
    expect_ok(MPI_Start(&request_), what_.name + " Start");
    send_.set(contents_);
  }

  void prepare() { expect_ok(MPIX_Pbuf_prepare(request_), what_.name + " Pbuf_prepare"); }

  // Once it is known to the ranks.
  void check_way(bool kernels) const {
    expect(accord_partitioned::view(kernels_).on_node == kernels,
           what_.name + (what_.in_place ? " in place" : "") +
               (kernels ? " does not go by kernels" : " goes by kernels"));
  }

  void mark() {
    if (!what_.gives) return;
    std::vector<int> order(static_cast<std::size_t>(what_.partitions));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_.engine());
    const int how = random_.below(can_kernels_ ? 5 : 3);
    if (how == 0) {
      expect_ok(MPI_Pready_range(0, what_.partitions - 1, request_), what_.name + " Pready_range");
    } else if (how == 1) {
      expect_ok(MPI_Pready_list(what_.partitions, order.data(), request_),
                what_.name + " Pready_list");
    } else if (how == 2) {
      for (const int partition : order)
        expect_ok(MPI_Pready(partition, request_), what_.name + " Pready");
    } else {
      for (const int partition : order)
        threads_.emplace_back([this, partition] { (void)MPIX_Pready_block(partition, kernels_); });
    }
  }

  // Each partition is seen to arrive before the request is completed.
  void watch() {
    for (int i = 0; what_.gets && i < what_.partitions; ++i) {
      int flag = 0;
      while (flag == 0 && failures < 20)
        expect_ok(MPI_Parrived(request_, i, &flag), what_.name + " Parrived");
      if (can_kernels_)
        expect(MPIX_Parrived(i, kernels_) == 1, what_.name + ": a kernel does not see it arrive");
    }
  }

  void complete() {
    expect_ok(MPI_Wait(&request_, MPI_STATUS_IGNORE), what_.name + " Wait");
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // All ranks do, for one request after the other.
  void check() {
    std::vector<std::byte> wanted = before_;
    std::vector<std::byte> nothing(1);
    void* const to = wanted.empty() ? nothing.data() : wanted.data();
    const void* const from = contents_.empty() ? nothing.data() : contents_.data();
    expect_ok(what_.ordinary(what_.in_place ? MPI_IN_PLACE : from, to), what_.name + " ordinary");
    const std::vector<std::byte> got = recv_.get();
    for (std::size_t i = 0; i < std::min(got.size(), what_.compared_bytes); ++i) {
      if (got[i] == wanted[i] || i % what_.element_bytes >= what_.used_bytes) continue;
      expect(false, what_.name + ": round " + std::to_string(round_) + ", byte " +
                        std::to_string(i) + " of " + std::to_string(got.size()) + " in " +
                        std::to_string(what_.partitions) + " partitions");
      break;
    }
    expect(send_.get() == contents_, what_.name + " changes what is sent");
  }

  void free() {
    if (can_kernels_ && random_.below(2) != 0)
      expect_ok(MPIX_Prequest_free(&kernels_), what_.name + " Prequest_free");
    expect_ok(MPI_Request_free(&request_), what_.name + " Request_free");
  }

 private:
  std::vector<std::byte> made(std::size_t count) {
    std::vector<std::byte> bytes = random_.bytes(count);
    if (what_.tame) what_.tame(bytes);
    return bytes;
  }

  const Collective what_;
  Random& random_;
  Bytes send_;
  Bytes recv_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool can_kernels_ = false;
  MPIX_Prequest kernels_ = MPIX_PREQUEST_NULL;
  int round_ = 0;
  std::vector<std::byte> contents_;
  std::vector<std::byte> before_;
  std::vector<std::thread> threads_;
};

}  // namespace accord::test

#endif
