// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/comm_wire.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <vector>

#include "coll/tags.h"
#include "core/job_nodes.h"
#include "shim/shim.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

// Tags lie in ranges of coll::kTags, one a wire.
constexpr int kNoRange = -1;

// ACCORD_TEST_WIRES: a process has so many, as where tags end early.
std::size_t ranges_max() {
  const char* const text = std::getenv("ACCORD_TEST_WIRES");
  return text != nullptr ? std::strtoul(text, nullptr, 10)
                         : std::numeric_limits<std::size_t>::max();
}

// That of a rank: by which it receives on a wire, and the how manieth it has taken.
struct Range {
  std::int32_t number = kNoRange;
  std::uint32_t name = 0;
};

static_assert(sizeof(Range) == core::Wire::kToldBytes);

class Ranges {
 public:
  void open(int tags_max) {
    const std::lock_guard<std::mutex> locked(mutex_);
    const std::size_t in_tags = (static_cast<std::size_t>(tags_max) + 1) / coll::kTags;
    taken_.assign(std::min(in_tags, ranges_max()), false);
    left_ = taken_.size();
  }
  // In turn, so that one is used again as late as can be.
  Range take() {
    const std::lock_guard<std::mutex> locked(mutex_);
    if (left_ == 0) return {};
    do {
      next_ = (next_ + 1) % taken_.size();
    } while (taken_[next_]);
    taken_[next_] = true;
    --left_;
    return {.number = static_cast<std::int32_t>(next_), .name = ++names_};
  }
  void give_back(int range) {
    const std::lock_guard<std::mutex> locked(mutex_);
    taken_[static_cast<std::size_t>(range)] = false;
    ++left_;
  }

 private:
  std::mutex mutex_;
  std::vector<bool> taken_;
  std::size_t next_ = 0;
  std::size_t left_ = 0;
  std::uint32_t names_ = 0;
};

struct Wires {
  bool opened = false;
  MPI_Comm comm = MPI_COMM_NULL;  // also null where the host MPI could not make it
  Ranges ranges;
  core::JobNodes nodes;
};

// Never destroyed: communicators may live on to the end of the process.
Wires& wires() {
  static Wires& instance = *new Wires;
  return instance;
}

class CommWire final : public core::Wire {
 public:
  CommWire(MPI_Comm comm, int size)
      : world_(ranks_in_world(comm, size)), ranges_(world_.size()), own_(wires().ranges.take()) {}
  ~CommWire() override {
    if (own_.number != kNoRange && !is_stale_) wires().ranges.give_back(own_.number);
  }

  Status issue(MPI_Comm comm, core::HostRequest& bits) {
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      constexpr int kBytes = sizeof(Range);
      return host::Iallgather(&own_, kBytes, MPI_BYTE, ranges_.data(), kBytes, MPI_BYTE, comm,
                              request);
    }));
  }
  std::uint32_t name_at(int rank) const noexcept override {
    return ranges_[static_cast<std::size_t>(rank)].name;
  }
  std::uint32_t job_rank(int rank) const noexcept override {
    return static_cast<std::uint32_t>(world_[static_cast<std::size_t>(rank)]);
  }
  Status opened() override {
    if (std::ranges::find(ranges_, kNoRange, &Range::number) == ranges_.end()) return {};
    return {StatusCode::unsupported, "nodes: no tags are left for messages between them"};
  }

  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& bits) override {
    const auto peer = static_cast<std::size_t>(rank);
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Isend(bytes, static_cast<int>(size_bytes), MPI_BYTE, world_[peer],
                         tag_in(ranges_[peer].number, tag), wires().comm, request);
    }));
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& bits) override {
    const int source = rank == kAnyRank ? MPI_ANY_SOURCE : world_[static_cast<std::size_t>(rank)];
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Irecv(bytes, static_cast<int>(size_bytes), MPI_BYTE, source,
                         tag_in(own_.number, tag), wires().comm, request);
    }));
  }
  Status test(core::HostRequest& bits, bool& done, core::Completion& completion) override {
    return engine().port().test_message(bits, done, completion);
  }
  // The message may come yet: no other wire shall take it for its own.
  void cancel(core::HostRequest& bits) noexcept override {
    is_stale_ = true;
    cancel_named(bits);
  }
  void cancel_named(core::HostRequest& bits) noexcept override {
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
    return range * static_cast<int>(coll::kTags) + tag;
  }

  // By rank of the communicator.
  std::vector<int> world_;
  std::vector<Range> ranges_;
  Range own_;
  bool is_stale_ = false;
};

}  // namespace

namespace {

// All ranks or none know them.
void learn_nodes(core::JobNodes& nodes) {
  int size = 0;
  (void)host::Comm_size(MPI_COMM_WORLD, &size);
  const auto mine = core::JobNodes::Word::own();
  constexpr int kBytes = sizeof mine;
  std::vector<core::JobNodes::Word> words(static_cast<std::size_t>(size));
  int could = host::Allgather(&mine, kBytes, MPI_BYTE, words.data(), kBytes, MPI_BYTE,
                              MPI_COMM_WORLD) == MPI_SUCCESS;
  int all_could = 0;
  if (host::Allreduce(&could, &all_could, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS &&
      all_could != 0)
    nodes.learn(words);
}

}  // namespace

void open_wires() {
  Wires& here = wires();
  learn_nodes(here.nodes);
  here.opened = here.nodes.are_known();
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

core::Placement placement_of(MPI_Comm comm, int size) {
  return wires().nodes.placement(ranks_in_world(comm, size));
}

}  // namespace accord::shim
