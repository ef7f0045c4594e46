// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/comm_wire.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "coll/inter/tags.h"
#include "shim/shim.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

// Tags lie in ranges of core::kTags, one a wire.
constexpr int kNoRange = -1;

class Ranges {
 public:
  void open(int tags_max) {
    const std::lock_guard<std::mutex> locked(mutex_);
    taken_.assign((static_cast<std::size_t>(tags_max) + 1) / core::kTags, false);
  }
  // In turn, so that one is used again as late as can be.
  int take() {
    const std::lock_guard<std::mutex> locked(mutex_);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      next_ = (next_ + 1) % taken_.size();
      if (taken_[next_]) continue;
      taken_[next_] = true;
      return static_cast<int>(next_);
    }
    return kNoRange;
  }
  void give_back(int range) {
    const std::lock_guard<std::mutex> locked(mutex_);
    taken_[static_cast<std::size_t>(range)] = false;
  }

 private:
  std::mutex mutex_;
  std::vector<bool> taken_;
  std::size_t next_ = 0;
};

struct Wires {
  bool opened = false;
  MPI_Comm comm = MPI_COMM_NULL;  // also null where the host MPI could not make it
  Ranges ranges;
};

// Never destroyed: communicators may live on to the end of the process.
Wires& wires() {
  static Wires& instance = *new Wires;
  return instance;
}

class CommWire final : public core::Wire {
 public:
  CommWire(MPI_Comm comm, int size)
      : world_(ranks_in_world(comm, size)),
        ranges_(world_.size(), kNoRange),
        own_(wires().ranges.take()) {}
  ~CommWire() override {
    if (own_ != kNoRange && !is_stale_) wires().ranges.give_back(own_);
  }

  Status issue(MPI_Comm comm, core::HostRequest& bits) {
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Iallgather(&own_, 1, MPI_INT, ranges_.data(), 1, MPI_INT, comm, request);
    }));
  }
  Status opened() override {
    if (std::ranges::find(ranges_, kNoRange) == ranges_.end()) return {};
    return {StatusCode::unsupported, "nodes: no tags are left for messages between them"};
  }

  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& bits) override {
    const auto peer = static_cast<std::size_t>(rank);
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Isend(bytes, static_cast<int>(size_bytes), MPI_BYTE, world_[peer],
                         tag_in(ranges_[peer], tag), wires().comm, request);
    }));
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& bits) override {
    const int source = rank == kAnyRank ? MPI_ANY_SOURCE : world_[static_cast<std::size_t>(rank)];
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Irecv(bytes, static_cast<int>(size_bytes), MPI_BYTE, source, tag_in(own_, tag),
                         wires().comm, request);
    }));
  }
  Status test(core::HostRequest& bits, bool& done, core::Completion& completion) override {
    return engine().port().test_message(bits, done, completion);
  }
  // The message may come yet: no other wire shall take it for its own.
  void cancel(core::HostRequest& bits) noexcept override {
    is_stale_ = true;
    int finalized = 0;
    if (host::Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    auto request = from_bits<MPI_Request>(bits);
    (void)host::Cancel(&request);
    (void)host::Wait(&request, MPI_STATUS_IGNORE);
  }

 private:
  template <class Issue>
  static int with_bits(core::HostRequest& bits, Issue issue) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = issue(&request);
    bits = to_bits(request);
    return code;
  }
  static int tag_in(int range, int tag) noexcept {
    return range * static_cast<int>(core::kTags) + tag;
  }

  // By rank of the communicator.
  std::vector<int> world_;
  std::vector<int> ranges_;  // by which it receives
  int own_;
  bool is_stale_ = false;
};

}  // namespace

void open_wires() {
  Wires& here = wires();
  here.opened = true;
  void* value = nullptr;
  int found = 0;
  if (host::Comm_dup(MPI_COMM_WORLD, &here.comm) != MPI_SUCCESS) return;
  (void)host::Comm_set_errhandler(here.comm, MPI_ERRORS_RETURN);
  if (host::Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found) == MPI_SUCCESS && found != 0)
    here.ranges.open(*static_cast<int*>(value));
}

void close_wires() {
  if (wires().comm != MPI_COMM_NULL) (void)host::Comm_free(&wires().comm);
}

bool has_wires() { return wires().opened; }

Status issue_wire(MPI_Comm comm, int size, std::shared_ptr<core::Wire>& wire,
                  core::HostRequest& request) {
  const auto made = std::make_shared<CommWire>(comm, size);
  wire = made;
  return made->issue(comm, request);
}

}  // namespace accord::shim
