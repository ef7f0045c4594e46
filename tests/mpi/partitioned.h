// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A send request to the next rank and a receive request from the one before it, for tests of
// partitioned communication.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_buffer.h"

// As far as the headers say: MPI 4, and Open MPI 5, which has these calls though it claims 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define ACCORD_TEST_PARTITIONED 1
#else
#define ACCORD_TEST_PARTITIONED 0
#endif

#if ACCORD_TEST_PARTITIONED

namespace accord::test {

inline int rank = 0;
inline int size = 0;
inline int failures = 0;

inline void expect(bool good, const std::string& what) {
  if (good) return;
  if (failures < 20) std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}
inline void expect_ok(int code, const std::string& what) {
  expect(code == MPI_SUCCESS, what + " fails");
}

inline void start() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (accord_device_count() > 0) (void)accord_set_device(rank % accord_device_count());
}
inline int finish() {
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

// On this rank's device or host.
class Ints {
 public:
  Ints(int count, bool on_device) : host_(static_cast<std::size_t>(count)) {
    if (on_device && count > 0)
      device_ = std::make_unique<DeviceBuffer>(std::vector<std::byte>(host_.size() * sizeof(int)));
  }
  void* pointer() { return device_ ? device_->pointer() : host_.data(); }
  void set(const std::vector<int>& values) {
    if (device_) {
      accord_memcpy(pointer(), values.data(), values.size() * sizeof(int));
    } else {
      std::copy(values.begin(), values.end(), host_.begin());
    }
  }
  std::vector<int> get() {
    std::vector<int> values = host_;
    if (device_) accord_memcpy(values.data(), pointer(), values.size() * sizeof(int));
    return values;
  }

 private:
  std::vector<int> host_;
  std::unique_ptr<DeviceBuffer> device_;
};

struct PairOptions {
  int sends = 1;     // partitions
  int receives = 1;  // of which either number divides ints
  int ints = 0;
  bool send_on_device = false;
  bool receive_on_device = false;
  int tag = 0;
  MPI_Comm comm = MPI_COMM_WORLD;
  int peer = -1;  // -1: the next rank of the communicator, and the one before
  MPI_Info info = MPI_INFO_NULL;
};

class Pair {
 public:
  explicit Pair(const PairOptions& options)
      : options_(options),
        from_(options.ints, options.send_on_device),
        to_(options.ints, options.receive_on_device) {
    int own = 0;
    int ranks = 0;
    MPI_Comm_rank(options.comm, &own);
    MPI_Comm_size(options.comm, &ranks);
    const int next = options.peer >= 0 ? options.peer : (own + 1) % ranks;
    before_ = options.peer >= 0 ? options.peer : (own + ranks - 1) % ranks;
    MPI_Psend_init(from_.pointer(), options.sends, options.ints / options.sends, MPI_INT, next,
                   options.tag, options.comm, options.info, &send);
    MPI_Precv_init(to_.pointer(), options.receives, options.ints / options.receives, MPI_INT,
                   before_, options.tag, options.comm, options.info, &receive);
  }

  MPI_Request send = MPI_REQUEST_NULL;
  MPI_Request receive = MPI_REQUEST_NULL;

  void* send_buffer() { return from_.pointer(); }
  void start() {
    // What is left of the round before is not taken for this one.
    to_.set(std::vector<int>(static_cast<std::size_t>(options_.ints), -1));
    expect_ok(MPI_Start(&receive), "Start of a receive");
    expect_ok(MPI_Start(&send), "Start of a send");
  }
  static int value(int sender, int round, int i) { return sender * 1000000 + round * 10007 + i; }
  void fill(int round) {
    std::vector<int> values(static_cast<std::size_t>(options_.ints));
    for (int i = 0; i < options_.ints; ++i)
      values[static_cast<std::size_t>(i)] = value(rank, round, i);
    from_.set(values);
  }
  void mark_backwards() {
    for (int i = options_.sends; i-- > 0;) expect_ok(MPI_Pready(i, send), "Pready");
  }
  void mark_as_list() {
    std::vector<int> list;
    for (int i = 0; i < options_.sends; i += 2) list.push_back(i);
    for (int i = 1; i < options_.sends; i += 2) list.push_back(i);
    expect_ok(MPI_Pready_list(static_cast<int>(list.size()), list.data(), send), "Pready_list");
  }
  void wait() {
    expect_ok(MPI_Wait(&send, MPI_STATUS_IGNORE), "Wait of a send");
    expect_ok(MPI_Wait(&receive, &status_), "Wait of a receive");
  }
  void check_status(int bytes) {
    int got = 0;
    MPI_Get_count(&status_, MPI_BYTE, &got);
    expect(got == bytes && status_.MPI_SOURCE == before_ && status_.MPI_TAG == options_.tag,
           "a wrong status");
  }
  void check(int round, const std::string& what) {
    check_from(options_.comm == MPI_COMM_SELF ? rank : before_, round, what);
  }
  void check_from(int sender, int round, const std::string& what) {
    check_ints(sender, round, 0, options_.ints, what);
  }
  void check_part(int round, int low, int high, const std::string& what) {
    check_ints(before_, round, low, high, what);
  }
  void free() {
    expect_ok(MPI_Request_free(&send), "Request_free of a send");
    expect_ok(MPI_Request_free(&receive), "Request_free of a receive");
    expect(send == MPI_REQUEST_NULL, "a freed request");
  }

 private:
  void check_ints(int sender, int round, int low, int high, const std::string& what) {
    const std::vector<int> got = to_.get();
    for (int i = low; i < high; ++i) {
      const int wanted = value(sender, round, i);
      const int is = got[static_cast<std::size_t>(i)];
      if (is == wanted) continue;
      expect(false, what + ": " + std::to_string(is) + " instead of " + std::to_string(wanted));
      return;
    }
  }

  PairOptions options_;
  Ints from_;
  Ints to_;
  int before_ = 0;
  MPI_Status status_{};
};

}  // namespace accord::test

#endif
