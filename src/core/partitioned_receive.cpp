// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned_receive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

namespace accord::core {

PartitionedReceive::PartitionedReceive(PartitionedTable& table, PartitionedCall call)
    : Partitioned(table, std::move(call)) {}

PartitionedReceive::~PartitionedReceive() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  table_.leave(*this, call_.envelope);
}

Status PartitionedReceive::open() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  ACCORD_TRY(make_words(0));
  number_ = table_.enter(*this);
  if (has_peer()) table_.expect(*this, call_.envelope);
  return {};
}

void PartitionedReceive::meet(const wire::Hello& hello) {
  met_ = true;
  hello_ = hello;
  truncated_ =
      hello.total_bytes > call_.partition_bytes * static_cast<std::uint64_t>(call_.partitions);
  begin_round();
}

Status PartitionedReceive::pready(std::int32_t, std::int32_t) {
  return {StatusCode::invalid_argument, "MPI_Pready on a receive request"};
}

// Of one that is not active all has arrived, as MPI_Test says of such a request that it is
// complete.
Status PartitionedReceive::parrived(std::int32_t partition, bool& arrived) {
  ACCORD_TRY(check_partition(partition, partition));
  arrived = !started();
  if (arrived || !has_board_.load(std::memory_order_acquire)) return {};
  const std::uint64_t low = static_cast<std::uint64_t>(partition) * call_.partition_bytes;
  const std::uint64_t high = std::min(low + call_.partition_bytes, hello_.total_bytes);
  arrived = true;
  if (low >= high) return {};
  for (std::uint64_t i = low / hello_.transfer_bytes; i <= (high - 1) / hello_.transfer_bytes; ++i)
    arrived = arrived && board_.arrived(i).load(std::memory_order_acquire) == round();
  return {};
}

void PartitionedReceive::begin_round() {
  const auto transfers = static_cast<std::size_t>(hello_.transfers);
  missing_.resize(transfers);
  std::iota(missing_.begin(), missing_.end(), std::size_t{0});
  got_bytes_.assign(transfers, 0);
}

void PartitionedReceive::describe(accord_prequest& shown) const {
  shown.sides = ACCORD_PARTITION_RECEIVES;
  shown.connected = has_peer() ? 0 : 1;  // what comes from nobody, no bytes, is there
  if (!board_.pinned()) return;
  shown.link = {.transfer_bytes = hello_.transfer_bytes,
                .total_bytes = hello_.total_bytes,
                .arrived = board_.arrived_words(),
                .peer_ready = board_.ready_lines(),
                .peer = nullptr};
  shown.connected = 1;
}

Status PartitionedReceive::pin_board() {
  return board_.mapped() ? board_.pin(*runtime()) : Status();
}

std::uint64_t PartitionedReceive::bytes_of(std::size_t transfer) const noexcept {
  const std::uint64_t first = transfer * hello_.transfer_bytes;
  return std::min(hello_.transfer_bytes, hello_.total_bytes - first);
}

// Descriptors reach the sender.
bool PartitionedReceive::on_node() const noexcept {
  return table_.has_port() && hello_.node == table_.node() && hello_.network == table_.network();
}

// Several attempts where the sender's socket is full.
Status PartitionedReceive::welcome() {
  if (!prepared_welcome_) {
    welcome_.receiver = number_;
    welcome_.truncated = truncated_ ? 1 : 0;
    ACCORD_TRY(board_.make(hello_.transfers));
    if (on_node() && !truncated_) {
      welcome_.has_board = 1;
      if (hello_.dense != 0) welcome_.has_memory = lend_buffer(welcome_, memory_descriptor_).ok();
    }
    has_board_.store(true, std::memory_order_release);
    ACCORD_TRY(connect_prequest());
    prepared_welcome_ = true;
  }
  if (welcome_.has_board != 0) {
    int descriptors[] = {board_.descriptor().number(), memory_descriptor_.number()};
    const std::size_t count = memory_descriptor_.is_open() ? 2 : 1;
    bool sent = false;
    const node::ParcelLabel label{.from = table_.own_process(),
                                  .item = static_cast<std::int32_t>(hello_.sender),
                                  .generation = 1};
    const Status status = table_.port().send(hello_.port, label, {descriptors, count}, sent);
    if (!status.ok()) {
      welcome_.has_board = welcome_.has_memory = 0;
    } else if (!sent) {
      return {};
    }
  }
  memory_descriptor_.close();
  board_.close_descriptor();
  shares_board_ = welcome_.has_board != 0;
  board_.set_ready(round());
  welcomed_ = true;
  told_round_ = round();
  return table_.channel().post(call_.envelope.process,
                               {.kind = wire::Kind::welcome, .to = hello_.sender, .round = round()},
                               welcome_);
}

Status PartitionedReceive::lend_buffer(wire::Welcome& welcome, node::Descriptor& descriptor) const {
  const PipelineEnd& end = call_.end;
  std::uint64_t offset_bytes = 0;
  if (runtime() == nullptr || !end.present() || !end.contiguous() ||
      !end.offset_in_memory(0, hello_.total_bytes, offset_bytes))
    return {StatusCode::unsupported, "partitioned: no buffer that can be lent"};
  device::ExportedMemory exported;
  ACCORD_TRY(runtime()->export_memory(end.memory.base, exported));
  descriptor = node::Descriptor(exported.file_descriptor);
  if (exported.bytes.size() > wire::Welcome::kHandleBytesMax)
    return {StatusCode::unsupported, "partitioned: a memory handle is too long"};
  std::memcpy(welcome.handle, exported.bytes.data(), exported.bytes.size());
  welcome.handle_bytes = static_cast<std::uint32_t>(exported.bytes.size());
  welcome.with_descriptor = descriptor.is_open() ? 1 : 0;
  welcome.vendor = std::hash<std::string_view>{}(runtime()->name());
  welcome.process = table_.port().address().process;
  welcome.base = reinterpret_cast<std::uint64_t>(end.memory.base);
  welcome.buffer_id = end.memory.buffer_id;
  welcome.size_bytes = end.memory.size_bytes;
  welcome.offset_bytes = exported.offset_bytes + offset_bytes;
  return {};
}

// The sender cannot map the board: it is told of rounds by messages.
Status PartitionedReceive::declined() {
  shares_board_ = false;
  return told_round_ == 0 ? Status() : tell_ready();
}

Status PartitionedReceive::tell_ready() {
  told_round_ = round();
  board_.set_ready(round());
  if (shares_board_) return {};
  return table_.channel().post(call_.envelope.process,
                               {.kind = wire::Kind::ready, .to = hello_.sender, .round = round()});
}

Status PartitionedReceive::step(HostPort&, bool& done) {
  if (!has_peer()) {
    prepared_.store(round(), std::memory_order_release);
    done = true;
    return {};
  }
  using Attached = node::PartitionBoard::Attached;
  const bool all_by_board = welcomed_ && shares_board_ &&
                            board_.attached().load(std::memory_order_acquire) == Attached::memory;
  if (!all_by_board) ACCORD_TRY(table_.poll());
  if (!met_) return {};
  if (!welcomed_) ACCORD_TRY(welcome());
  if (!welcomed_) return {};
  if (truncated_)
    return {
        StatusCode::truncated,
        fmt::format("partitioned: {} bytes are sent where there is room for {}", hello_.total_bytes,
                    call_.partition_bytes * static_cast<std::uint64_t>(call_.partitions))};
  if (told_round_ != round()) ACCORD_TRY(tell_ready());
  prepared_.store(round(), std::memory_order_release);
  ACCORD_TRY(unpack());
  std::erase_if(missing_, [&](std::size_t transfer) {
    return board_.arrived(transfer).load(std::memory_order_acquire) == round();
  });
  done = missing_.empty();
  return {};
}

Status PartitionedReceive::take(const wire::Header& header, std::span<const std::byte> body,
                                device::StagingBuffer& buffer) {
  if (header.round != round() || header.transfer < 0 || header.transfer >= hello_.transfers ||
      header.length_bytes != body.size() ||
      header.first_bytes + header.length_bytes > hello_.total_bytes)
    return {StatusCode::mismatch, "partitioned: a message that nobody waits for"};
  Unpacking part{.transfer = static_cast<std::size_t>(header.transfer),
                 .length_bytes = header.length_bytes,
                 .buffer = std::move(buffer),
                 .ticket = {}};
  if (part.length_bytes > 0)
    ACCORD_TRY(call_.end.copy(PipelineEnd::Direction::unpack, header.first_bytes, part.length_bytes,
                              const_cast<std::byte*>(body.data()), part.ticket));
  unpacking_.push_back(std::move(part));
  return {};
}

Status PartitionedReceive::unpack() {
  Status status;
  std::erase_if(unpacking_, [&](Unpacking& part) {
    bool done = false;
    const Status copied = call_.end.copied(part.ticket, done);
    keep_first(status, copied);
    if (!done) return false;
    if (!copied.ok()) return true;
    got_bytes_[part.transfer] += part.length_bytes;
    if (got_bytes_[part.transfer] == bytes_of(part.transfer))
      board_.arrived(part.transfer).store(round(), std::memory_order_release);
    return true;
  });
  return status;
}

bool PartitionedReceive::drained(HostPort&) {
  (void)unpack();
  return unpacking_.empty();
}

}  // namespace accord::core
