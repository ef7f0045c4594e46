// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/config.h"
#include "device/staging_pool.h"
#include "partitioned/prequest.h"

namespace accord::partitioned {
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
  ACCORD_TRY(
      table_.words().take((kControlWords + words) * sizeof(std::uint32_t), memory_of_words_));
  // Where it cannot be page-locked there are no kernels: MPIX_Prequest_create says so.
  if (runtime() != nullptr) (void)memory_of_words_.pages()->pin(*runtime());
  auto* const memory = reinterpret_cast<std::uint32_t*>(memory_of_words_.data());
  control_ = reinterpret_cast<accord_partition_control*>(memory);
  words_ = reinterpret_cast<std::atomic<std::uint32_t>*>(memory + kControlWords);
  return {};
}

// Kernels may look at the control at any time, so the round is told once all is ready for it. What
// they have done wrong between rounds is left for the one that begins to tell of.
void Partitioned::renew() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  // Of a partition that the host has marked kernels may have counted some, too.
  const bool host_marked = host_marked_.exchange(false, std::memory_order_relaxed);
  const bool may_be_partial = !status_.ok() || (host_marked && call_.marks > 1);
  status_ = {};
  if (prequest_ != nullptr && may_be_partial) fail_on_error(prequest_->forget_marks());
  begin_story();
  round_.store(next_round(round()), std::memory_order_release);
  begin_round();
  if (prequest_ != nullptr) prequest_->progress();
  for (accord_partition_start& line : control_->started)
    std::atomic_ref(line.rounds).store(round(), std::memory_order_release);
  for (accord_partition_line& line : control_->told)
    std::atomic_ref(line.round).store(round(), std::memory_order_release);
  started_.store(true, std::memory_order_release);
}

core::Operation::Phase Partitioned::advance(core::HostPort& host) {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  bool done = false;
  if (prequest_ != nullptr) prequest_->progress();
  if (status_.ok()) keep_first(status_, step(host, done));  // which may have failed it by itself
  if (!status_.ok()) {
    // The sender of a message that is too long is told before it sends anything.
    const bool is_told = gave_up_ == round() || status_.code() == StatusCode::truncated;
    if (!is_told) tell_failure(gave_up_ = round());
    done = drained(host);
  }
  stages::enter(stage());
  if (!done) return Phase::issued;
  if (story_) story_->took(path(), call_.copy == PartitionCopy::automatic ? "" : "asked for");
  started_.store(false, std::memory_order_release);
  return Phase::done;
}

Status Partitioned::outcome() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  story_.reset();
  Status status = status_;
  keep_first(status, error_of_kernel(
                         std::atomic_ref(control_->error).exchange(0, std::memory_order_acquire)));
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

void Partitioned::begin_story() {
  story_ = stages::begin(call_name());
  if (!story_) return;
  const char* const towards = transfers() != 0 ? "to" : "from";
  const std::string peer = has_peer() ? fmt::format(" {} {}", towards, call_.peer_rank) : "";
  story_->describe(fmt::format("{} B {}, {} partitions{}", own_bytes(),
                               call_.end.on_device ? "device" : "host", call_.partitions, peer));
}

void Partitioned::keep_staging(std::uint64_t longest_bytes) const {
  if (!has_prequest() || longest_bytes <= staged_for_bytes_) return;
  staged_for_bytes_ = longest_bytes;
  const std::uint64_t size_bytes = std::min(longest_bytes, longest_piece()) + sizeof(wire::Header);
  // Of what goes and what comes.
  constexpr std::size_t kLongBytes = 1 << 20;
  std::vector<device::StagingBuffer> buffers(size_bytes < kLongBytes ? 16 : 8);
  for (device::StagingBuffer& buffer : buffers)
    (void)device::staging_pool().acquire(runtime(), size_bytes, buffer);
}

bool Partitioned::given_up_by_peer(const node::PartitionBoard& board,
                                   node::PartitionBoard::End peer) const {
  return is_of_now(peer_failed_) ||
         (board.mapped() && is_of_now(board.failed(peer).load(std::memory_order_acquire)));
}

bool Partitioned::words_are_pinned() const noexcept { return memory_of_words_.pages()->pinned(); }

bool Partitioned::is_of_now(std::uint32_t failed) const {
  return failed != 0 && !is_before(failed, round());
}

void Partitioned::note_host_mark(std::int32_t partition) const noexcept {
  host_marked_.store(true, std::memory_order_relaxed);
  const std::uint64_t now = round();
  accord_partition_start& line = control_->started[partition % ACCORD_PARTITION_LINES];
  std::atomic_ref(line.rounds).store(now << 32 | now, std::memory_order_release);
}

Status Partitioned::create_prequest(accord_prequest*& prequest) {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  if (runtime() == nullptr)
    return {StatusCode::unsupported,
            "MPIX_Prequest_create: the request's buffer is not in memory of a device"};
  if (prequest_ != nullptr)
    return {StatusCode::invalid_argument, "MPIX_Prequest_create: the request has one already"};
  ACCORD_TRY(memory_of_words_.pages()->pin(*runtime()));
  ACCORD_TRY(pin_board());
  accord_prequest shown{};
  shown.state = ACCORD_PARTITION_STATE_ALONE;
  shown.partitions = call_.partitions;
  shown.partition_bytes = call_.partition_bytes;
  shown.control = control_;
  describe(shown);
  auto made = std::make_unique<DevicePrequest>(*runtime(), call_.end.device);
  ACCORD_TRY(made->create(shown, transfers()));
  prequest_ = std::move(made);
  has_prequest_ = true;
  if (Status status = reserve(); !status.ok()) {
    has_prequest_ = false;
    prequest_.reset();
    return status;
  }
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
  staged_for_bytes_ = 0;
}

void Partitioned::connect_prequest() {
  if (prequest_ == nullptr) return;
  accord_prequest shown{};
  describe(shown);
  if (shown.state >= ACCORD_PARTITION_STATE_CONNECTED) prequest_->connect(shown);
}

TrackedPartitions::TrackedPartitions(core::Engine& engine, std::shared_ptr<Partitioned> request,
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
  request_->let_open(true);
  request_->renew();
  engine_.submit(request_, nullptr);
  request_->let_open(false);
  if (config().progress_thread == "on") meanwhile_.emplace(engine_);
}

Status TrackedPartitions::finish(const core::Completion&) {
  meanwhile_.reset();
  return request_->outcome();
}

bool TrackedPartitions::message(core::MessageInfo& info) const {
  info = {request_->peer_rank(), request_->tag(), request_->received_bytes()};
  return true;
}

Status hold_partitioned(core::Engine& engine, core::Requests& requests,
                        std::shared_ptr<Partitioned> request, std::uint64_t context_bits,
                        core::HostRequest& held) {
  ACCORD_TRY(engine.hold(*request, held));
  requests.track(held,
                 std::make_shared<TrackedPartitions>(engine, std::move(request), context_bits));
  return {};
}

}  // namespace accord::partitioned
