// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NCCL itself, as a program would call it where it may wait for the result: the call, then a wait
// for the stream. Four settings: plain; grouped sends and receives also where NCCL has a function
// of its own for the operation; buffers from ncclMemAlloc, registered as symmetric windows; and the
// kernels for windows on memory that is none (NCCL_SYM_NOWIN_ENABLE, set before NCCL begins).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "bench/environment.h"
#include "bench/nccl_communicator.h"
#include "bench/way.h"

namespace accord::bench {
namespace {

enum class Setting { plain, grouped, window, no_window };

std::optional<NcclType> nccl_type(const std::string& element) {
  struct Row {
    const char* name;
    NcclType type;
  };
  constexpr Row kRows[] = {
      {"int8", NcclType::int8},       {"uint8", NcclType::uint8},
      {"int32", NcclType::int32},     {"uint32", NcclType::uint32},
      {"int64", NcclType::int64},     {"uint64", NcclType::uint64},
      {"float16", NcclType::float16}, {"bfloat16", NcclType::bfloat16},
      {"float32", NcclType::float32}, {"float64", NcclType::float64},
  };
  for (const Row& row : kRows) {
    if (element == row.name) return row.type;
  }
  return std::nullopt;
}

std::optional<NcclOp> nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return NcclOp::sum;
    case ReduceOp::prod:
      return NcclOp::prod;
    case ReduceOp::min:
      return NcclOp::min;
    case ReduceOp::max:
      return NcclOp::max;
    default:
      return std::nullopt;
  }
}

// One operation in NCCL's terms. `bytes` versions move data of any type.
struct NcclCall {
  const NcclLibrary& nccl;
  NcclLibrary::Comm comm;
  NcclLibrary::Stream stream;
  const Shape& shape;
  std::size_t element_bytes;
  NcclType type;  // of reductions
  NcclOp op;
  Setting setting;
  char* send;
  char* recv;
  char* token;  // two bytes of device memory for the answers of the bandwidth test

  std::size_t bytes(std::size_t elements) const { return elements * element_bytes; }
  std::size_t block_bytes(int rank) const {
    return bytes(static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank)]));
  }
  std::size_t block_at(int rank) const {
    return bytes(shape.displs[static_cast<std::size_t>(rank)]);
  }
  void check(int code, const char* what) const { nccl.check(code, what); }
  void send_to(int rank, const char* data, std::size_t size_bytes) const {
    check(nccl.send(data, size_bytes, NcclType::int8, rank, comm, stream), "ncclSend");
  }
  void recv_from(int rank, char* data, std::size_t size_bytes) const {
    check(nccl.recv(data, size_bytes, NcclType::int8, rank, comm, stream), "ncclRecv");
  }
  template <class Body>
  void group(Body body) const {
    check(nccl.group_start(), "ncclGroupStart");
    body();
    check(nccl.group_end(), "ncclGroupEnd");
  }
  template <class Body>
  void group_over_ranks(Body body) const {
    group([&] {
      for (int rank = 0; rank < shape.ranks; ++rank) body(rank);
    });
  }
  bool own_function(const void* function) const {
    return function != nullptr && setting != Setting::grouped;
  }
  bool equal_blocks() const {
    return std::all_of(shape.counts.begin(), shape.counts.end(),
                       [&](int count) { return count == shape.counts[0]; });
  }
};

void bcast(const NcclCall& c) {
  char* data = c.shape.is_root() ? c.send : c.recv;
  c.check(c.nccl.broadcast(data, data, c.bytes(c.shape.count()), NcclType::int8, c.shape.root,
                           c.comm, c.stream),
          "ncclBroadcast");
}

void gather_grouped(const NcclCall& c) {
  c.group([&] {
    c.send_to(c.shape.root, c.send, c.block_bytes(c.shape.rank));
    for (int rank = 0; c.shape.is_root() && rank < c.shape.ranks; ++rank) {
      c.recv_from(rank, c.recv + c.block_at(rank), c.block_bytes(rank));
    }
  });
}

void gather(const NcclCall& c) {
  if (!c.own_function(reinterpret_cast<const void*>(c.nccl.gather))) return gather_grouped(c);
  c.check(c.nccl.gather(c.send, c.recv, c.bytes(c.shape.count()), NcclType::int8, c.shape.root,
                        c.comm, c.stream),
          "ncclGather");
}

void scatter_grouped(const NcclCall& c) {
  c.group([&] {
    for (int rank = 0; c.shape.is_root() && rank < c.shape.ranks; ++rank) {
      c.send_to(rank, c.send + c.block_at(rank), c.block_bytes(rank));
    }
    c.recv_from(c.shape.root, c.recv, c.block_bytes(c.shape.rank));
  });
}

void scatter(const NcclCall& c) {
  if (!c.own_function(reinterpret_cast<const void*>(c.nccl.scatter))) return scatter_grouped(c);
  c.check(c.nccl.scatter(c.send, c.recv, c.bytes(c.shape.count()), NcclType::int8, c.shape.root,
                         c.comm, c.stream),
          "ncclScatter");
}

void allgather(const NcclCall& c) {
  c.check(
      c.nccl.all_gather(c.send, c.recv, c.bytes(c.shape.count()), NcclType::int8, c.comm, c.stream),
      "ncclAllGather");
}

// Every rank broadcasts its block: how a program makes the v-form of it.
void allgatherv(const NcclCall& c) {
  c.group_over_ranks([&](int rank) {
    c.check(c.nccl.broadcast(c.send, c.recv + c.block_at(rank), c.block_bytes(rank), NcclType::int8,
                             rank, c.comm, c.stream),
            "ncclBroadcast");
  });
}

void alltoall_grouped(const NcclCall& c) {
  c.group_over_ranks([&](int rank) {
    c.send_to(rank, c.send + c.block_at(rank), c.block_bytes(rank));
    c.recv_from(rank, c.recv + c.block_at(rank), c.block_bytes(rank));
  });
}

void alltoall(const NcclCall& c) {
  if (!c.own_function(reinterpret_cast<const void*>(c.nccl.all_to_all))) {
    return alltoall_grouped(c);
  }
  c.check(
      c.nccl.all_to_all(c.send, c.recv, c.bytes(c.shape.count()), NcclType::int8, c.comm, c.stream),
      "ncclAlltoAll");
}

void reduce(const NcclCall& c) {
  c.check(
      c.nccl.reduce(c.send, c.recv, c.shape.count(), c.type, c.op, c.shape.root, c.comm, c.stream),
      "ncclReduce");
}

void allreduce(const NcclCall& c) {
  c.check(c.nccl.all_reduce(c.send, c.recv, c.shape.count(), c.type, c.op, c.comm, c.stream),
          "ncclAllReduce");
}

void reduce_scatter(const NcclCall& c) {
  if (c.equal_blocks()) {
    c.check(c.nccl.reduce_scatter(c.send, c.recv, c.shape.count(), c.type, c.op, c.comm, c.stream),
            "ncclReduceScatter");
    return;
  }
  c.group_over_ranks([&](int rank) {
    const auto count = static_cast<std::size_t>(c.shape.counts[static_cast<std::size_t>(rank)]);
    c.check(c.nccl.reduce(c.send + c.block_at(rank), c.recv, count, c.type, c.op, rank, c.comm,
                          c.stream),
            "ncclReduce");
  });
}

// Ping and pong, in the order of the stream.
void latency(const NcclCall& c) {
  if (c.shape.rank > 1) return;
  const std::size_t size_bytes = c.bytes(c.shape.count());
  if (c.shape.rank == 0) c.send_to(1, c.send, size_bytes);
  c.recv_from(1 - c.shape.rank, c.recv, size_bytes);
  if (c.shape.rank == 1) c.send_to(0, c.send, size_bytes);
}

void bandwidth(const NcclCall& c) {
  if (c.shape.rank > 1) return;
  const std::size_t size_bytes = c.bytes(c.shape.count());
  c.group([&] {
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(c.shape.window); ++slot) {
      if (c.shape.rank == 0) c.send_to(1, c.send + slot * size_bytes, size_bytes);
      if (c.shape.rank == 1) c.recv_from(0, c.recv + slot * size_bytes, size_bytes);
    }
  });
  if (c.shape.rank == 0) c.recv_from(1, c.token, 1);
  if (c.shape.rank == 1) c.send_to(0, c.token + 1, 1);
}

void bibandwidth(const NcclCall& c) {
  if (c.shape.rank > 1) return;
  const std::size_t size_bytes = c.bytes(c.shape.count());
  c.group([&] {
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(c.shape.window); ++slot) {
      c.send_to(1 - c.shape.rank, c.send + slot * size_bytes, size_bytes);
      c.recv_from(1 - c.shape.rank, c.recv + slot * size_bytes, size_bytes);
    }
  });
}

struct NcclOperation {
  const char* name;
  void (*run)(const NcclCall& call);
};
constexpr NcclOperation kOperations[] = {
    {"latency", latency},
    {"bandwidth", bandwidth},
    {"bibandwidth", bibandwidth},
    {"bcast", bcast},
    {"gather", gather},
    {"gatherv", gather_grouped},
    {"scatter", scatter},
    {"scatterv", scatter_grouped},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"alltoall", alltoall},
    {"alltoallv", alltoall_grouped},
    {"alltoallw", alltoall_grouped},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"reduce_scatter", reduce_scatter},
    {"reduce_scatter_block", reduce_scatter},
};

const NcclOperation* find_nccl_operation(const char* name) {
  for (const NcclOperation& row : kOperations) {
    if (std::strcmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

// Whether newer releases of NCCL have a function where grouped sends and receives do as well.
bool has_own_function(const std::string& operation) {
  return operation == "alltoall" || operation == "gather" || operation == "scatter";
}

class NcclWay : public Way {
 public:
  NcclWay(const Session& session, std::string name, Setting setting)
      : session_(session), name_(std::move(name)), setting_(setting) {}
  ~NcclWay() override { free_windows(); }

  std::string name() const override { return name_; }

  std::string why_not(const Operation& operation) override {
    if (find_nccl_operation(operation.name) == nullptr) return "NCCL has no such operation";
    if (operation.reduces && (!nccl_op(session_.op) || !nccl_type(session_.options.type))) {
      return fmt::format("NCCL has no {} of {}", session_.options.op, session_.options.type);
    }
    if (setting_ == Setting::grouped && !has_own_function(operation.name)) {
      return "the same calls as nccl";
    }
    std::string reason;
    communicator_ = shared_nccl_communicator(session_, reason);
    if (communicator_ == nullptr) return reason;
    const NcclLibrary& nccl = communicator_->library();
    if (setting_ == Setting::window &&
        (nccl.window_register == nullptr || nccl.mem_alloc == nullptr)) {
      return fmt::format("NCCL {} has no windows", nccl.version());
    }
    // From 2 MiB on: 2.28.3 hung in each of five runs on two H200, 2.28.9 read an illegal address.
    if (setting_ == Setting::window && has_exchanged_ &&
        (operation.name == std::string_view("bcast") ||
         operation.name == std::string_view("allgatherv")))
      return "NCCL's broadcasts on windows fail after an all-to-all on them; measure them alone";
    constexpr int kFirstWithoutWindows = 22902;
    if (setting_ == Setting::no_window && nccl.version_code() < kFirstWithoutWindows) {
      return fmt::format("NCCL {} does not know NCCL_SYM_NOWIN_ENABLE", nccl.version());
    }
    return "";
  }

  std::string prepare(const Trial& trial) override {
    if (setting_ == Setting::window) reserve_windows(trial);
    const Buffers mine = buffers(trial);
    operation_ = find_nccl_operation(trial.operation->name);
    has_exchanged_ = has_exchanged_ || trial.operation->name == std::string_view("alltoall");
    call_.reset(new NcclCall{.nccl = communicator_->library(),
                             .comm = communicator_->comm(),
                             .stream = communicator_->stream(),
                             .shape = trial.shape,
                             .element_bytes = session_.element->size_bytes,
                             .type = nccl_type(session_.options.type).value_or(NcclType::int8),
                             .op = nccl_op(session_.op).value_or(NcclOp::sum),
                             .setting = setting_,
                             .send = static_cast<char*>(mine.send),
                             .recv = static_cast<char*>(mine.recv),
                             .token = communicator_->token()});
    return "";
  }

  void run() override {
    operation_->run(*call_);
    session_.cuda->synchronize(communicator_->stream());
  }

  void release() override { call_.reset(); }

  Buffers buffers(const Trial& trial) const override {
    return setting_ == Setting::window ? windows_ : trial.buffers;
  }

  std::string detail() const override {
    if (communicator_ == nullptr) return "";
    std::string words = "NCCL " + communicator_->library().version();
    if (setting_ == Setting::grouped) words += ", grouped sends and receives";
    if (setting_ == Setting::window) words += ", symmetric windows";
    const std::string settings = settings_in_environment("NCCL_");
    return settings.empty() ? words : words + "; " + settings;
  }

 private:
  // Windows are collective and of one size on all ranks, so the largest rank's needs count.
  void reserve_windows(const Trial& trial) {
    const auto element_bytes = static_cast<double>(session_.element->size_bytes);
    const auto needed = static_cast<std::size_t>(session_.max(
        static_cast<double>(std::max(trial.extent.send, trial.extent.recv)) * element_bytes));
    if (needed <= window_bytes_) return;
    free_windows();
    constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
    window_bytes_ = std::max(needed, kLeastBytes);
    windows_.send = communicator_->allocate_window(window_bytes_, window_handles_[0]);
    windows_.recv = communicator_->allocate_window(window_bytes_, window_handles_[1]);
  }

  void free_windows() noexcept {
    if (window_bytes_ == 0) return;
    communicator_->free_window(windows_.send, window_handles_[0]);
    communicator_->free_window(windows_.recv, window_handles_[1]);
    window_bytes_ = 0;
    windows_ = {};
  }

  const Session& session_;
  std::string name_;
  Setting setting_;
  std::shared_ptr<NcclCommunicator> communicator_;
  const NcclOperation* operation_ = nullptr;
  std::unique_ptr<NcclCall> call_;
  Buffers windows_;
  NcclLibrary::Window window_handles_[2] = {};
  std::size_t window_bytes_ = 0;
  bool has_exchanged_ = false;
};

}  // namespace

std::unique_ptr<Way> make_nccl(const Session& session) {
  return std::make_unique<NcclWay>(session, "nccl", Setting::plain);
}
std::unique_ptr<Way> make_nccl_grouped(const Session& session) {
  return std::make_unique<NcclWay>(session, "nccl-grouped", Setting::grouped);
}
std::unique_ptr<Way> make_nccl_window(const Session& session) {
  return std::make_unique<NcclWay>(session, "nccl-window", Setting::window);
}
std::unique_ptr<Way> make_nccl_no_window(const Session& session) {
  return std::make_unique<NcclWay>(session, "nccl-nowin", Setting::no_window);
}

}  // namespace accord::bench
