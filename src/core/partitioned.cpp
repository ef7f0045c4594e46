// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned.h"

#include <fmt/format.h>

#include <utility>

#include "base/config.h"
#include "core/partitioned_prequest.h"

namespace accord::core {
namespace {

// The control takes the place of the first words.
constexpr std::size_t kControlWords = sizeof(accord_partition_control) / sizeof(std::uint32_t);

Status error_of_kernel(std::uint32_t error) {
  switch (error) {
    case 0:
      return {};
    case ACCORD_PARTITION_OUT_OF_RANGE:
      return {StatusCode::invalid_argument, "a kernel named a partition that there is not"};
    case ACCORD_PARTITION_TWICE:
      return {StatusCode::invalid_argument,
              "a kernel marked a partition ready more often than it takes"};
    case ACCORD_PARTITION_NOT_STARTED:
      return {StatusCode::invalid_argument, "a kernel marked a partition ready before MPI_Start"};
    default:
      return {StatusCode::invalid_argument,
              "a kernel used a send request to receive, or the other way round"};
  }
}

}  // namespace

Partitioned::Partitioned(PartitionedTable& table, PartitionedCall call)
    : table_(table), call_(std::move(call)) {}

Partitioned::~Partitioned() = default;

Status Partitioned::make_words(std::size_t words) {
  std::uint32_t* memory = nullptr;
  if (runtime() != nullptr) {
    ACCORD_TRY(device::staging_pool().acquire(
        runtime(), (kControlWords + words) * sizeof(std::uint32_t), pinned_words_));
    memory = static_cast<std::uint32_t*>(pinned_words_.data());
    std::fill_n(memory, kControlWords + words, 0u);
  } else {
    plain_words_.resize(kControlWords + words);
    memory = plain_words_.data();
  }
  control_ = reinterpret_cast<accord_partition_control*>(memory);
  words_ = reinterpret_cast<std::atomic<std::uint32_t>*>(memory + kControlWords);
  return {};
}

// Kernels may look at the control at any time, so the round is told once all is ready for it.
void Partitioned::renew() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  status_ = {};
  constexpr std::uint32_t kNone = 0;  // of words that nobody has written yet
  round_.store(round() + 1 == kNone ? 1 : round() + 1, std::memory_order_release);
  begin_round();
  std::atomic_ref(control_->error).store(0, std::memory_order_relaxed);
  for (auto* const lines : {&control_->started, &control_->told}) {
    for (accord_partition_line& line : *lines)
      std::atomic_ref(line.round).store(round(), std::memory_order_release);
  }
  started_.store(true, std::memory_order_release);
}

Operation::Phase Partitioned::advance(HostPort& host) {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  bool done = false;
  if (status_.ok()) keep_first(status_, step(host, done));  // which may have failed it by itself
  if (!status_.ok()) done = drained(host);
  if (!done) return Phase::issued;
  started_.store(false, std::memory_order_release);
  return Phase::done;
}

Status Partitioned::outcome() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  Status status = status_;
  keep_first(status,
             error_of_kernel(std::atomic_ref(control_->error).load(std::memory_order_acquire)));
  return status;
}

Status Partitioned::check_partition(std::int32_t low, std::int32_t high) const {
  if (low >= 0 && low <= high && high < call_.partitions) return {};
  return {StatusCode::invalid_argument,
          fmt::format("partitioned: partitions {} to {} of a request that has {}", low, high,
                      call_.partitions)};
}

std::byte* Partitioned::for_kernels(const void* pointer) const {
  return static_cast<std::byte*>(runtime()->address_for_library(const_cast<void*>(pointer)));
}

Status Partitioned::create_prequest(accord_prequest*& prequest) {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  if (runtime() == nullptr)
    return {StatusCode::unsupported,
            "MPIX_Prequest_create: the request's buffer is not in memory of a device"};
  if (prequest_ != nullptr)
    return {StatusCode::invalid_argument, "MPIX_Prequest_create: the request has one already"};
  ACCORD_TRY(pin_board());
  accord_prequest shown{};
  shown.partitions = call_.partitions;
  shown.partition_bytes = call_.partition_bytes;
  shown.control = control_;
  describe(shown);
  auto made = std::make_unique<DevicePrequest>(*runtime(), call_.end.device);
  ACCORD_TRY(made->create(shown, transfers()));
  prequest_ = std::move(made);
  has_prequest_ = true;
  prequest = prequest_->for_kernels();
  table_.note_prequest(prequest, this);
  return {};
}

void Partitioned::free_prequest() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  if (prequest_ == nullptr) return;
  table_.note_prequest(prequest_->for_kernels(), nullptr);
  prequest_.reset();
  has_prequest_ = false;
}

Status Partitioned::connect_prequest() {
  if (prequest_ == nullptr) return {};
  ACCORD_TRY(pin_board());
  accord_prequest shown{};
  describe(shown);
  return shown.connected != 0 ? prequest_->connect(shown) : Status();
}

TrackedPartitions::TrackedPartitions(Engine& engine, std::shared_ptr<Partitioned> request,
                                     std::uint64_t context_bits)
    : engine_(engine), request_(std::move(request)) {
  context = context_bits;
  persistent = true;
  active = false;
}

Status TrackedPartitions::start() {
  if (active) return {StatusCode::invalid_argument, "MPI_Start of a request that is active"};
  return {};
}

// Not before the host MPI has started its part: see TrackedRounds.
void TrackedPartitions::started() {
  request_->renew();
  engine_.submit(request_, nullptr);
  if (config().progress_thread == "on") meanwhile_.emplace(engine_);
}

Status TrackedPartitions::finish(const Completion&) {
  meanwhile_.reset();
  return request_->outcome();
}

bool TrackedPartitions::message(MessageInfo& info) const {
  info = {request_->peer_rank(), request_->tag(), request_->received_bytes()};
  return true;
}

Status hold_partitioned(Engine& engine, Requests& requests, std::shared_ptr<Partitioned> request,
                        std::uint64_t context_bits, HostRequest& held) {
  ACCORD_TRY(engine.hold(*request, held));
  requests.track(held,
                 std::make_shared<TrackedPartitions>(engine, std::move(request), context_bits));
  return {};
}

}  // namespace accord::core
