// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned request of a case, on this rank: one end of a message, or a collective. The oracle
// does an ordinary call in its place, since what host MPIs make of partitioned ones is no measure:
// Open MPI's hang. What a partition holds is looked at when it arrives, and noted together with the
// oracle's.
#pragma once

#include <accord/partitioned.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "collectives.h"
#include "run.h"

namespace accord::conformance {

// What kernels need of Accord, found in this process; null functions where it is not there.
struct PartitionedCalls {
  decltype(&MPIX_Pbuf_prepare) prepare = nullptr;
  decltype(&MPIX_Pbuf_prepare_all) prepare_all = nullptr;
  decltype(&MPIX_Prequest_create) create = nullptr;
  decltype(&MPIX_Prequest_free) free = nullptr;
};
const PartitionedCalls& partitioned_calls();

// Drawn for a request, alike on both ends but for what is said to be one end's own.
struct PartitionedSettings {
  enum class End { send, receive, collective };
  End end = End::collective;
  int partitions = 1;  // of this end
  std::int32_t marks = 1;
  std::int32_t transfer_partitions = 1;
  const char* copy = "";   // the sender's own; empty: as set for all
  bool prepared = false;   // by MPIX_Pbuf_prepare
  bool truncated = false;  // more is sent than there is room for
};

class PartitionedEnd {
 public:
  PartitionedEnd(Run& run, const PartitionedSettings& settings, std::string name);
  PartitionedEnd(const PartitionedEnd&) = delete;
  PartitionedEnd& operator=(const PartitionedEnd&) = delete;

  // What it reads, and what it writes.
  std::vector<Buffer*> buffers;
  std::vector<Stretch> inputs;
  std::vector<Stretch> outputs;
  bool gives = false;
  bool gets = false;
  int rank = 0;            // of this process in a collective
  bool has_edges = false;  // to neighbours
  std::function<int(MPI_Info info, MPI_Request* request)> init;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
  MPI_Datatype type = MPI_DATATYPE_NULL;  // of a message

  const PartitionedSettings& settings() const { return settings_; }
  const std::string& name() const { return name_; }
  bool is_done() const { return is_done_; }
  bool is_started() const { return is_started_; }
  bool has_kernels() const { return kernels_ != MPIX_PREQUEST_NULL; }

  // Of the tested side.
  void make();
  // So that kernels can use it, where they can reach its memory.
  void make_kernels();
  // New contents; what will be sent is not there yet, but where it is received, too.
  void begin_round(int round);
  void start(Rng& rng);
  bool has_marks() const { return !unmarked_.empty(); }
  // One call or kernel that marks some.
  void mark_some(Rng& rng);
  // Looks whether some partition has arrived.
  void look(Rng& rng);
  bool all_arrived() const;
  // The program's mistakes, which are told and do no harm.
  void mistake(Rng& rng);
  void end_round();
  void release(Rng& rng);

  // Of both.
  void note_digests();

 private:
  struct Mark {
    int partition;
    bool by_kernel;
  };
  bool can_have_kernels() const;
  void plan_marks(Rng& rng);
  // The bytes of a partition, with the real contents or with others.
  void write(int partition, bool real) const;
  void ensure_written(int partition);
  void mark_by_kernels(Rng& rng, const std::vector<Mark>& some);
  void mark_by_host(Rng& rng, const std::vector<Mark>& some);
  void run(Rng& rng, std::function<void()> body);
  void look_at_words() const;
  std::int64_t digest(int partition) const;
  bool has_arrived(Rng& rng, int partition);
  void expect_error(int code, int error_class, const char* what) const;

  Run& run_;
  const PartitionedSettings settings_;
  const std::string name_;
  MPIX_Prequest kernels_ = MPIX_PREQUEST_NULL;
  bool is_started_ = false;
  bool is_done_ = true;
  bool late_contents_ = false;
  std::vector<bool> written_;
  std::vector<Mark> unmarked_;
  std::vector<std::int64_t> digests_;
  std::vector<bool> arrived_;
  std::vector<std::thread> threads_;
  std::atomic<int> bad_marks_{0};
};

}  // namespace accord::conformance
