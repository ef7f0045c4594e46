// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations of rank 0 on the memory of rank 1, each with the flush that completes it,
// and an empty message, for which rank 1 waits in MPI: else some MPIs would not go on. The other
// ranks take no part, but for the window, whose lock all hold throughout.
#include "bench/operation.h"

namespace accord::bench {
namespace {

enum class Kind { put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap };

constexpr int kTarget = 1;
constexpr int kDoneTag = 5;

constexpr bool writes_target(Kind kind) { return kind == Kind::put || kind == Kind::accumulate; }
constexpr bool is_of_one_element(Kind kind) {
  return kind == Kind::fetch_and_op || kind == Kind::compare_and_swap;
}

// MPI compares and swaps integers alone.
MPI_Datatype integer_of(std::size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return MPI_INT8_T;
    case 2:
      return MPI_INT16_T;
    case 4:
      return MPI_INT32_T;
    case 8:
      return MPI_INT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

std::size_t in_flight(const Shape& shape) { return static_cast<std::size_t>(shape.window); }

// `many`: a window of them before one flush.
class OneSided final : public Invocation {
 public:
  OneSided(const MpiTable& mpi, const Call& call, Kind kind, bool many)
      : mpi_(mpi), call_(call), kind_(kind), times_(many ? in_flight(call.shape) : 1) {
    const bool is_target = call.shape.rank == kTarget;
    void* const base = writes_target(kind) ? call.recv : call.send;
    const std::size_t size_bytes = times_ * part_bytes();
    mpi.Win_create(is_target ? base : nullptr, is_target ? static_cast<MPI_Aint>(size_bytes) : 0, 1,
                   MPI_INFO_NULL, call.comm, &win_);
    mpi.Win_lock_all(0, win_);
  }
  ~OneSided() override {
    mpi_.Win_unlock_all(win_);
    mpi_.Win_free(&win_);
  }

  int run() override {
    if (call_.shape.rank == kTarget)
      return mpi_.Recv(nullptr, 0, MPI_CHAR, 0, kDoneTag, call_.comm, MPI_STATUS_IGNORE);
    if (call_.shape.rank != 0) return MPI_SUCCESS;
    for (std::size_t slot = 0; slot < times_; ++slot)
      if (const int code = begin(slot)) return code;
    if (const int code = mpi_.Win_flush(kTarget, win_)) return code;
    return mpi_.Send(nullptr, 0, MPI_CHAR, kTarget, kDoneTag, call_.comm);
  }

 private:
  std::size_t part_bytes() const {
    return (is_of_one_element(kind_) ? 1 : call_.shape.count()) * call_.element_bytes;
  }

  int begin(std::size_t slot) {
    const auto there = static_cast<MPI_Aint>(slot * part_bytes());
    const int count = call_.shape.counts[0];
    char* const origin = static_cast<char*>(call_.send) + there;
    char* const result = static_cast<char*>(call_.recv) + there;
    const MPI_Datatype type = call_.type;
    switch (kind_) {
      case Kind::put:
        return mpi_.Put(origin, count, type, kTarget, there, count, type, win_);
      case Kind::get:
        return mpi_.Get(result, count, type, kTarget, there, count, type, win_);
      case Kind::accumulate:
        return mpi_.Accumulate(origin, count, type, kTarget, there, count, type, MPI_REPLACE, win_);
      // What is there stays from here on, so that it can be checked.
      case Kind::get_accumulate:
        return mpi_.Get_accumulate(nullptr, 0, type, result, count, type, kTarget, there, count,
                                   type, MPI_NO_OP, win_);
      case Kind::fetch_and_op:
        return mpi_.Fetch_and_op(origin, result, type, kTarget, there, MPI_NO_OP, win_);
      case Kind::compare_and_swap:
        break;
    }
    return mpi_.Compare_and_swap(origin, origin, result, integer_of(call_.element_bytes), kTarget,
                                 there, win_);
  }

  const MpiTable& mpi_;
  const Call& call_;
  const Kind kind_;
  const std::size_t times_;
  MPI_Win win_ = MPI_WIN_NULL;
};

template <Kind kind>
bool reads_send(const Shape& shape) {
  if (kind == Kind::compare_and_swap) return shape.rank == 0 || shape.rank == kTarget;
  return shape.rank == (writes_target(kind) ? 0 : kTarget);
}

template <Kind kind, bool many>
std::optional<Steps> bind(const MpiTable& mpi, Form, const Call& call) {
  if (kind == Kind::compare_and_swap && integer_of(call.element_bytes) == MPI_DATATYPE_NULL)
    return std::nullopt;
  const bool is_writer = call.shape.rank == (writes_target(kind) ? kTarget : 0);
  Steps steps;
  steps.push_back({.invocation = std::make_unique<OneSided>(mpi, call, kind, many),
                   .reads_send = reads_send<kind>(call.shape),
                   .writes_recv = is_writer});
  return steps;
}

template <Kind kind, bool many>
std::size_t elements(const Shape& shape) {
  if (is_of_one_element(kind)) return 1;
  return (many ? in_flight(shape) : 1) * shape.count();
}

template <Kind kind, bool many>
Extent extent(const Shape& shape) {
  const int reader = writes_target(kind) ? 0 : kTarget;
  const std::size_t all = elements<kind, many>(shape);
  return {reads_send<kind>(shape) ? all : 0, shape.rank == 1 - reader ? all : 0};
}

template <Kind kind, bool many>
std::vector<Segment> expected(const Shape& shape) {
  const int reader = writes_target(kind) ? 0 : kTarget;
  if (shape.rank != 1 - reader) return {};
  return {{0, elements<kind, many>(shape), reader, reader + 1, 0}};
}

template <Kind kind, bool many = false>
Operation operation(const char* name) {
  return {.name = name,
          .has_form = false,
          .reads_others = !writes_target(kind),
          .ranks_min = 2,
          .ranks_timed = 1,
          .parts = [](const Shape& shape) { return many ? shape.window : 1; },
          .extent = extent<kind, many>,
          .expected = expected<kind, many>,
          .bind = bind<kind, many>};
}

}  // namespace

std::vector<Operation> one_sided_operations() {
  return {operation<Kind::put>("put"),
          operation<Kind::get>("get"),
          operation<Kind::put, true>("put_bandwidth"),
          operation<Kind::get, true>("get_bandwidth"),
          operation<Kind::accumulate>("accumulate"),
          operation<Kind::get_accumulate>("get_accumulate"),
          operation<Kind::fetch_and_op>("fetch_and_op"),
          operation<Kind::compare_and_swap>("compare_and_swap")};
}

}  // namespace accord::bench
