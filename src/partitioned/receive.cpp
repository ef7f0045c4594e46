// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/receive.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace accord::partitioned {

namespace {

// The transfers are as many as the bytes fill, all but the last of the same length.
bool is_sound(const wire::Hello& hello) {
  if (hello.transfers < 0) return false;
  if (hello.total_bytes == 0) return true;
  return hello.transfer_bytes != 0 && (hello.total_bytes - 1) / hello.transfer_bytes + 1 ==
                                          static_cast<std::uint64_t>(hello.transfers);
}

}  // namespace

PartitionedReceive::PartitionedReceive(PartitionedTable& table, PartitionedCall call)
    : Partitioned(table, std::move(call)) {}

PartitionedReceive::~PartitionedReceive() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  table_.leave(*this, call_.envelope);
}

Status PartitionedReceive::open() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  ACCORD_TRY(make_words(0));
  // There as early as can be, since kernels may wait for it by the time the sender is known; it has
  // room for some hundred transfers in any case.
  if (has_peer()) ACCORD_TRY(board_.make(table_.boards(), call_.partitions));
  if (has_peer() && runtime() != nullptr) (void)board_.pin(*runtime());
  number_ = table_.enter(*this);
  if (has_peer()) table_.expect(*this, call_.envelope);
  return {};
}

void PartitionedReceive::meet(const wire::Hello& hello) {
  met_ = true;
  hello_ = hello;
  is_unsound_ = !is_sound(hello);
  truncated_ = is_unsound_ || hello.total_bytes > own_bytes();
  if (is_unsound_) hello_.transfers = 0, hello_.total_bytes = 0;
  forget_arrivals();
}

Status PartitionedReceive::pready(std::int32_t, std::int32_t) {
  return {StatusCode::invalid_argument, "partitions of a receive request are not made ready"};
}

// Of one that is not active all has arrived, as MPI_Test says of such a request that it is
// complete.
Status PartitionedReceive::parrived(std::int32_t partition, bool& arrived) {
  ACCORD_TRY(check_partition(partition, partition));
  arrived = !started() || !has_peer();
  if (arrived || !has_board_.load(std::memory_order_acquire)) return {};
  const std::uint64_t low = static_cast<std::uint64_t>(partition) * call_.partition_bytes;
  const std::uint64_t high = std::min(low + call_.partition_bytes, hello_.total_bytes);
  // What has no bytes has arrived with all others.
  const bool is_empty = low >= high;
  const std::uint64_t first = is_empty ? 0 : low / hello_.transfer_bytes;
  const std::uint64_t end = is_empty ? static_cast<std::uint64_t>(hello_.transfers)
                                     : (high - 1) / hello_.transfer_bytes + 1;
  arrived = true;
  for (std::uint64_t i = first; i < end; ++i)
    arrived = arrived && board_.arrived(i).load(std::memory_order_acquire) == round();
  return {};
}

void PartitionedReceive::begin_round() {
  by_messages_ = false;
  lend_buffer();
  show_board();
  if (!welcomed_) keep_staging(own_bytes());
  forget_arrivals();
}

void PartitionedReceive::forget_arrivals() {
  first_missing_ = 0;
  got_bytes_.assign(static_cast<std::size_t>(hello_.transfers), 0);
}

// One that has been made since, for a sender of more transfers than there was room for.
void PartitionedReceive::show_board() {
  if (has_prequest() && has_board_ && !board_.pinned() && pin_board().ok()) connect_prequest();
}

void PartitionedReceive::describe(accord_prequest& shown) const {
  shown.sides = ACCORD_PARTITION_RECEIVES;
  // What comes from nobody, no bytes, is there.
  if (!has_peer()) shown.state = ACCORD_PARTITION_STATE_CONNECTED;
  if (!has_board_ || !board_.pinned()) return;
  shown.link = {.transfer_bytes = hello_.transfer_bytes,
                .total_bytes = hello_.total_bytes,
                .transfers = static_cast<std::uint64_t>(hello_.transfers),
                .arrived = board_.arrived_words(),
                .peer_ready = board_.ready_lines(),
                .peer = nullptr};
  shown.state = ACCORD_PARTITION_STATE_CONNECTED;
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
  const int process = call_.envelope.process;
  if (!prepared_welcome_) {
    welcome_.receiver = number_;
    welcome_.truncated = truncated_ ? 1 : 0;
    ACCORD_TRY(board_.make(table_.boards(), hello_.transfers));
    if (on_node() && !truncated_) {
      const node::PageSlot& slot = board_.slot();
      welcome_.has_board = 1;
      welcome_.pages = slot.pages_number();
      welcome_.board_bytes = slot.offset_bytes();
      welcome_.with_pages = table_.knows_pages(process, slot.pages_number()) ? 0 : 1;
    }
    if (welcome_.has_board == 0 || hello_.dense == 0) {
      welcome_.has_memory = welcome_.memory.with_descriptor = 0;
    }
    has_board_.store(true, std::memory_order_release);
    connect_prequest();
    prepared_welcome_ = true;
  }
  bool sent = true;
  if (welcome_.has_board != 0) ACCORD_TRY(send_descriptors(sent));
  if (!sent) return {};
  registration_.descriptor().close();
  if (welcome_.has_board != 0) board_.share();
  board_.set_ready(round());
  welcomed_ = true;
  told_round_ = round();
  return table_.channel().post(
      process, {.kind = wire::Kind::welcome, .to = hello_.sender, .round = round()}, welcome_);
}

// Where they do not get there, the data goes by messages.
Status PartitionedReceive::send_descriptors(bool& sent) {
  std::vector<int> descriptors;
  if (welcome_.with_pages != 0) descriptors.push_back(board_.slot().pages()->descriptor().number());
  if (welcome_.memory.with_descriptor != 0)
    descriptors.push_back(registration_.descriptor().number());
  if (descriptors.empty()) return {};
  const node::ParcelLabel label{.from = table_.own_process(),
                                .item = static_cast<std::int32_t>(hello_.sender),
                                .generation = 1};
  if (!table_.port().send(hello_.port, label, descriptors, sent).ok()) {
    welcome_.has_board = welcome_.has_memory = 0;
    sent = true;
  } else if (sent) {
    table_.note_pages(call_.envelope.process, welcome_.pages);
  }
  return {};
}

// Once, before the sender is known: to ask the driver for it may wait for kernels.
void PartitionedReceive::lend_buffer() {
  if (std::exchange(tried_to_lend_, true) || !has_peer() || !table_.has_port()) return;
  welcome_.has_memory = register_buffer().ok() ? 1 : 0;
  welcome_.memory = registration_.handle();
}

Status PartitionedReceive::register_buffer() {
  const core::CallEnd& end = call_.end;
  if (runtime() == nullptr || !end.present() || !end.contiguous() ||
      !end.offset_in_memory(0, own_bytes(), welcome_.offset_bytes))
    return {StatusCode::unsupported, "partitioned: no buffer that can be lent"};
  return registration_.make(*runtime(), end.memory, table_.port().address().process);
}

// The sender cannot map the board: it is told of rounds by messages.
Status PartitionedReceive::declined() {
  board_.unshare();
  if (gave_up_ != 0) tell_failure(gave_up_);
  return told_round_ == 0 ? Status() : tell_ready();
}

Status PartitionedReceive::tell_ready() {
  told_round_ = round();
  board_.set_ready(round());
  if (board_.shared()) return {};
  return table_.channel().post(call_.envelope.process,
                               {.kind = wire::Kind::ready, .to = hello_.sender, .round = round()});
}

void PartitionedReceive::tell_failure(std::uint32_t failed) {
  if (board_.mapped())
    board_.failed(node::PartitionBoard::End::receiver).store(failed, std::memory_order_release);
  if (!met_ || board_.shared()) return;
  (void)table_.channel().post(call_.envelope.process,
                              {.kind = wire::Kind::failed, .to = hello_.sender, .round = failed});
}

Status PartitionedReceive::step(core::HostPort&, bool& done) {
  if (!has_peer()) {
    prepared_.store(round(), std::memory_order_release);
    done = true;
    return {};
  }
  const std::uint32_t straight_from =
      board_.shared() ? board_.straight_from().load(std::memory_order_acquire) : 0;
  const bool all_by_board = straight_from != 0 && !is_before(round(), straight_from);
  if (!all_by_board) ACCORD_TRY(table_.poll());
  if (!met_) return {};
  if (!welcomed_) ACCORD_TRY(welcome());
  if (!welcomed_) return {};
  if (is_unsound_)
    return {StatusCode::mismatch, "partitioned: a sender whose transfers are not its bytes"};
  if (truncated_)
    return {StatusCode::truncated,
            fmt::format("partitioned: {} bytes are sent where there is room for {}",
                        hello_.total_bytes, own_bytes())};
  if (may_open()) show_board();
  if (told_round_ != round()) ACCORD_TRY(tell_ready());
  prepared_.store(round(), std::memory_order_release);
  ACCORD_TRY(unpack());
  while (first_missing_ < got_bytes_.size() &&
         board_.arrived(first_missing_).load(std::memory_order_acquire) == round())
    ++first_missing_;
  done = first_missing_ == got_bytes_.size();
  if (!done && given_up_by_peer(board_, node::PartitionBoard::End::sender))
    return {StatusCode::device_error, "partitioned: the sender has given up after an error"};
  return {};
}

Status PartitionedReceive::take(const wire::Header& header, std::span<const std::byte> body,
                                PartitionedChannel::Letter& letter) {
  // Of a round that has been given up here.
  if (is_before(header.round, round()) || !started() || !status_.ok()) return {};
  if (truncated_ || header.round != round() || header.transfer < 0 ||
      header.transfer >= hello_.transfers || header.length_bytes != body.size() ||
      header.first_bytes > hello_.total_bytes ||
      header.length_bytes > hello_.total_bytes - header.first_bytes ||
      (header.length_bytes > 0 &&
       header.first_bytes / hello_.transfer_bytes != static_cast<std::uint64_t>(header.transfer)))
    return {StatusCode::mismatch, "partitioned: a message that nobody waits for"};
  Unpacking part{.transfer = static_cast<std::size_t>(header.transfer),
                 .first_bytes = header.first_bytes,
                 .length_bytes = header.length_bytes,
                 .letter = std::move(letter),
                 .ticket = {}};
  if (part.length_bytes > 0)
    ACCORD_TRY(call_.end.copy(core::CallEnd::Direction::unpack, header.first_bytes,
                              part.length_bytes, const_cast<std::byte*>(body.data()), part.ticket));
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
    if (copied.ok()) note_got(part);
    return true;
  });
  return status;
}

// A part of one transfer, or several in a row.
void PartitionedReceive::note_got(const Unpacking& part) {
  by_messages_ = true;
  std::uint64_t first = part.first_bytes;
  const std::uint64_t end = first + part.length_bytes;
  std::size_t transfer = part.transfer;
  do {
    const std::uint64_t last = transfer * hello_.transfer_bytes + bytes_of(transfer);
    const std::uint64_t here = std::min(end, last) - first;
    got_bytes_[transfer] += here;
    if (got_bytes_[transfer] == bytes_of(transfer))
      board_.arrived(transfer).store(round(), std::memory_order_release);
    first += here;
    ++transfer;
  } while (first < end);
}

// Into this side's memory the sender writes, or its kernel: it knows which.
std::string PartitionedReceive::path() const {
  if (hello_.transfers == 0) return "nothing";
  return by_messages_ ? "messages" : "straight";
}

stages::Stage PartitionedReceive::stage() const {
  if (!unpacking_.empty()) return stages::Stage::copy_out;
  return met_ && first_missing_ == got_bytes_.size() ? stages::Stage::finish : stages::Stage::wait;
}

bool PartitionedReceive::drained(core::HostPort&) {
  (void)unpack();
  return unpacking_.empty();
}

}  // namespace accord::partitioned
