// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned_send.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "node/handle_cache.h"

namespace accord::core {
namespace {

// Pieces on their way by the host MPI at once, each with staging memory of its own.
constexpr std::size_t kMessagesMax = 8;

// Where kernels move the data if nobody says otherwise: a block of 256 threads moves 64 KiB in a
// few microseconds, which is what it takes the host to start a copy engine.
constexpr std::uint64_t kKernelBytes = 64 << 10;
constexpr std::uint64_t kThreadBytes = 256;

}  // namespace

PartitionedSend::PartitionedSend(PartitionedTable& table, PartitionedCall call)
    : Partitioned(table, std::move(call)),
      transfers_(static_cast<std::size_t>((call_.partitions + call_.transfer_partitions - 1) /
                                          call_.transfer_partitions)),
      partition_rounds_(static_cast<std::size_t>(call_.partitions)),
      transfer_counts_(transfers_) {}

PartitionedSend::~PartitionedSend() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  if (opened_ != nullptr) (void)node::handle_cache().close(opened_);
  table_.leave(*this, call_.envelope);
}

Status PartitionedSend::open() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  ACCORD_TRY(make_words(transfers_));
  number_ = table_.enter(*this);
  dropped_ = !has_peer();
  if (dropped_) return {};
  const wire::Hello hello{.lineage = call_.envelope.lineage,
                          .tag = call_.envelope.tag,
                          .sender = number_,
                          .transfers = static_cast<std::int32_t>(transfers_),
                          .dense = runtime() != nullptr && call_.end.contiguous() ? 1u : 0u,
                          .transfer_bytes = transfer_bytes(),
                          .total_bytes = total_bytes(),
                          .node = table_.has_port() ? table_.node() : 0,
                          .network = table_.network(),
                          .port = table_.port().address()};
  return table_.channel().post(call_.envelope.process, {.kind = wire::Kind::hello}, hello);
}

std::uint32_t PartitionedSend::partitions_of(std::size_t transfer) const noexcept {
  const std::size_t first = transfer * static_cast<std::size_t>(call_.transfer_partitions);
  return static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(call_.transfer_partitions),
                                             static_cast<std::size_t>(call_.partitions) - first));
}

std::uint64_t PartitionedSend::bytes_of(std::size_t transfer) const noexcept {
  return partitions_of(transfer) * call_.partition_bytes;
}

bool PartitionedSend::receiver_is_ready() const noexcept {
  if (dropped_) return true;
  if (board_.mapped()) return board_.ready() == round();
  return welcomed_ && told_round_ == round();
}

// Also by a kernel, where it writes into the receiver's memory itself.
bool PartitionedSend::has_arrived(std::size_t transfer) const noexcept {
  return memory_ != nullptr && board_.arrived(transfer).load(std::memory_order_acquire) == round();
}

Status PartitionedSend::parrived(std::int32_t, bool&) {
  return {StatusCode::invalid_argument, "MPI_Parrived on a send request"};
}

// Thread-safe: the one that marks the last partition of a transfer says so to the engine.
Status PartitionedSend::pready(std::int32_t low, std::int32_t high) {
  ACCORD_TRY(check_partition(low, high));
  if (!started())
    return {StatusCode::invalid_argument, "MPI_Pready on a request that has not been started"};
  if (has_prequest() && call_.transfer_partitions > 1)
    return {StatusCode::unsupported,
            "MPI_Pready on a request whose partitions kernels gather into transfers"};
  const std::uint32_t now = round();
  for (std::int32_t partition = low; partition <= high; ++partition) {
    const auto transfer = static_cast<std::size_t>(partition / call_.transfer_partitions);
    auto& marked = partition_rounds_[static_cast<std::size_t>(partition)];
    const bool moved = word(transfer).load(std::memory_order_acquire) == now;
    if (marked.exchange(now, std::memory_order_acq_rel) == now || moved)
      return {StatusCode::invalid_argument,
              fmt::format("MPI_Pready: partition {} is ready already", partition)};
    if (transfer_counts_[transfer].fetch_add(1, std::memory_order_acq_rel) + 1 ==
        partitions_of(transfer))
      word(transfer).store(now, std::memory_order_release);
  }
  return {};
}

void PartitionedSend::begin_round() {
  waiting_.resize(transfers_);
  std::iota(waiting_.begin(), waiting_.end(), std::size_t{0});
  for (auto& count : transfer_counts_) count.store(0, std::memory_order_relaxed);
}

void PartitionedSend::describe(accord_prequest& shown) const {
  shown.sides = ACCORD_PARTITION_SENDS;
  shown.transfer_partitions = call_.transfer_partitions;
  shown.marks = call_.marks;
  shown.ready = reinterpret_cast<std::uint32_t*>(&word(0));
  const bool moves = call_.copy != PartitionCopy::engine && memory_ != nullptr && board_.pinned();
  if (call_.end.contiguous())
    shown.buffer = reinterpret_cast<const unsigned char*>(for_kernels(call_.end.address(0)));
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  const bool always = call_.copy == PartitionCopy::kernel;
  shown.kernel_bytes = always ? kAny : kKernelBytes;
  shown.thread_bytes = always ? kAny : kThreadBytes;
  if (!moves) return;  // kernels need not know more
  shown.link = {.transfer_bytes = transfer_bytes(),
                .total_bytes = total_bytes(),
                .arrived = board_.arrived_words(),
                .peer_ready = board_.ready_lines(),
                .peer = reinterpret_cast<unsigned char*>(for_kernels(memory_))};
  shown.connected = 1;
}

// Where it cannot be, the host moves all.
Status PartitionedSend::pin_board() {
  if (memory_ != nullptr) (void)board_.pin(*runtime());
  return {};
}

Status PartitionedSend::welcomed(const wire::Welcome& welcome, std::uint32_t round_started) {
  welcomed_ = true;
  receiver_ = welcome.receiver;
  told_round_ = round_started;
  dropped_ = welcome.truncated != 0;
  if (dropped_ || welcome.has_board == 0) return {};
  if (open_board(welcome).ok()) return connect_prequest();
  return table_.channel().post(call_.envelope.process,
                               {.kind = wire::Kind::decline, .to = receiver_});
}

Status PartitionedSend::open_board(const wire::Welcome& welcome) {
  std::vector<node::Descriptor> parcel;
  const node::ParcelLabel label{
      .from = call_.envelope.process, .item = static_cast<std::int32_t>(number_), .generation = 1};
  if (!table_.port().take(label, parcel) || parcel.empty() || table_.declines())
    return {StatusCode::unsupported, "partitioned: the receiver's descriptors have not come"};
  ACCORD_TRY(board_.map(parcel.front(), static_cast<std::int32_t>(transfers_)));
  // Without the memory the data goes by messages.
  const bool reached =
      welcome.has_memory != 0 &&
      open_memory(welcome,
                  welcome.with_descriptor != 0 && parcel.size() > 1 ? parcel[1].number() : -1)
          .ok();
  board_.attached().store(
      reached ? node::PartitionBoard::Attached::memory : node::PartitionBoard::Attached::board,
      std::memory_order_release);
  return {};
}

Status PartitionedSend::open_memory(const wire::Welcome& welcome, int descriptor) {
  if (runtime() == nullptr || !call_.end.contiguous() ||
      welcome.vendor != std::hash<std::string_view>{}(runtime()->name()))
    return {StatusCode::unsupported, "partitioned: not from device memory to device memory"};
  if (welcome.process == table_.port().address().process) {
    memory_ = reinterpret_cast<std::byte*>(welcome.base + welcome.offset_bytes);
    return {};
  }
  const node::PeerMemory memory{.process = welcome.process,
                                .descriptor = descriptor,
                                .base = welcome.base,
                                .buffer_id = welcome.buffer_id,
                                .size_bytes = welcome.size_bytes,
                                .handle = {welcome.handle, welcome.handle_bytes}};
  ACCORD_TRY(node::handle_cache().open(*runtime(), call_.end.device, memory, opened_));
  memory_ = static_cast<std::byte*>(opened_) + welcome.offset_bytes;
  return {};
}

Status PartitionedSend::step(HostPort& host, bool& done) {
  // Once there is a board, nothing more comes by messages.
  if (!dropped_ && !board_.mapped()) ACCORD_TRY(table_.poll());
  // What kernels have moved has arrived whatever the receiver does now: it may be a round ahead.
  std::erase_if(waiting_, [&](std::size_t transfer) { return has_arrived(transfer); });
  if (receiver_is_ready()) {
    prepared_.store(round(), std::memory_order_release);
    ACCORD_TRY(issue());
  }
  ACCORD_TRY(finish_batches());
  ACCORD_TRY(send_pieces(host));
  done = waiting_.empty() && moving_ == 0;
  return {};
}

// Begins to move what has been marked ready, by the host or by kernels.
Status PartitionedSend::issue() {
  std::vector<std::size_t> ready;
  std::erase_if(waiting_, [&](std::size_t transfer) {
    if (word(transfer).load(std::memory_order_acquire) != round()) return false;
    if (!dropped_) ready.push_back(transfer);
    return true;
  });
  if (ready.empty()) return {};
  moving_ += ready.size();
  if (memory_ != nullptr) return copy(ready);
  const std::uint64_t piece_bytes = longest_piece();
  left_bytes_.resize(transfers_);
  for (const std::size_t transfer : ready) {
    left_bytes_[transfer] = bytes_of(transfer);
    std::uint64_t first = 0;
    do {
      pieces_.push_back({transfer, first});
      first += piece_bytes;
    } while (first < bytes_of(transfer));
  }
  return {};
}

// Neighbours go as one copy.
Status PartitionedSend::copy(const std::vector<std::size_t>& ready) {
  std::vector<device::Copy> copies;
  for (const std::size_t transfer : ready) {
    const std::uint64_t first = transfer * transfer_bytes();
    const auto* const from = call_.end.address(first);
    if (bytes_of(transfer) == 0) continue;
    if (!copies.empty() &&
        static_cast<const std::byte*>(copies.back().src) + copies.back().row_bytes == from) {
      copies.back().row_bytes += bytes_of(transfer);
    } else {
      copies.push_back({.dst = memory_ + first, .src = from, .row_bytes = bytes_of(transfer)});
    }
  }
  Batch batch{.ticket = {}, .transfers = ready};
  if (!copies.empty()) ACCORD_TRY(runtime()->copy_begin(call_.end.device, copies, batch.ticket));
  batches_.push_back(std::move(batch));
  return {};
}

Status PartitionedSend::finish_batches() {
  Status status;
  std::erase_if(batches_, [&](Batch& batch) {
    bool done = batch.ticket.handle == nullptr;
    Status copied;
    if (!done) copied = runtime()->copy_done(batch.ticket, done);
    if (!done && copied.ok()) return false;
    keep_first(status, copied);
    for (const std::size_t transfer : batch.transfers) {
      if (copied.ok()) board_.arrived(transfer).store(round(), std::memory_order_release);
    }
    moving_ -= batch.transfers.size();
    return true;
  });
  return status;
}

Status PartitionedSend::send_pieces(HostPort& host) {
  while (!pieces_.empty() && messages_.size() < kMessagesMax) ACCORD_TRY(send_piece());
  Status status;
  std::erase_if(messages_, [&](Message& message) {
    bool done = false;
    keep_first(status, progress_message(host, message, done));
    if (!done) return false;
    auto& left = left_bytes_[message.transfer];
    left -= message.size_bytes - sizeof(wire::Header);
    if (left == 0) --moving_;
    return true;
  });
  return status;
}

Status PartitionedSend::send_piece() {
  const Piece piece = pieces_.front();
  pieces_.pop_front();
  const std::uint64_t length =
      std::min<std::uint64_t>(longest_piece(), bytes_of(piece.transfer) - piece.first_bytes);
  const wire::Header header{.kind = wire::Kind::data,
                            .to = receiver_,
                            .round = round(),
                            .transfer = static_cast<std::int32_t>(piece.transfer),
                            .first_bytes = piece.transfer * transfer_bytes() + piece.first_bytes,
                            .length_bytes = length};
  Message message;
  message.transfer = piece.transfer;
  message.size_bytes = sizeof header + length;
  std::byte* bytes = nullptr;
  if (call_.end.runtime != nullptr) {
    ACCORD_TRY(
        device::staging_pool().acquire(call_.end.runtime, message.size_bytes, message.buffer));
    bytes = static_cast<std::byte*>(message.buffer.data());
  } else {
    message.plain.resize(message.size_bytes);
    bytes = message.plain.data();
  }
  std::memcpy(bytes, &header, sizeof header);
  if (length > 0)
    ACCORD_TRY(call_.end.copy(PipelineEnd::Direction::pack, header.first_bytes, length,
                              bytes + sizeof header, message.packing));
  messages_.push_back(std::move(message));
  return {};
}

Status PartitionedSend::progress_message(HostPort& host, Message& message, bool& done) {
  if (!message.sent) {
    bool packed = false;
    ACCORD_TRY(call_.end.copied(message.packing, packed));
    if (!packed) return {};
    const auto* const bytes = message.plain.empty()
                                  ? static_cast<const std::byte*>(message.buffer.data())
                                  : message.plain.data();
    ACCORD_TRY(table_.channel().post_data(call_.envelope.process, {bytes, message.size_bytes},
                                          message.request));
    message.sent = true;
  }
  return host.test(message.request, done);
}

// What has been handed to a device or to the host MPI ends by itself, but its memory is in use.
bool PartitionedSend::drained(HostPort& host) {
  pieces_.clear();
  (void)finish_batches();
  std::erase_if(messages_, [&](Message& message) {
    bool done = false;
    if (message.sent) return !host.test(message.request, done).ok() || done;
    return !call_.end.copied(message.packing, done).ok() || done;
  });
  if (!batches_.empty() || !messages_.empty()) return false;
  moving_ = 0;
  return true;
}

}  // namespace accord::core
