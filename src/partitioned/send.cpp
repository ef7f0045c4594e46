// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/send.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "device/registry.h"

namespace accord::partitioned {
namespace {

// Pieces on their way by the host MPI at once, each with staging memory of its own; fewer where
// kernels run, since more memory might have to wait for them.
constexpr std::size_t kMessagesMax = 8;
constexpr std::size_t kMessagesWithKernels = 4;
// Messages that the receiver may be behind before what is marked waits for company.
constexpr std::size_t kUnseenMax = 2;

// Where kernels move the data if nobody says otherwise: a block of 256 threads moves 64 KiB in a
// few microseconds, which is what it takes the host to start a copy engine.
constexpr std::uint64_t kKernelBytes = 64 << 10;
constexpr std::uint64_t kThreadBytes = 256;

}  // namespace

PartitionedSend::PartitionedSend(PartitionedTable& table, PartitionedCall call)
    : Partitioned(table, std::move(call)),
      transfers_(static_cast<std::size_t>((call_.partitions + call_.transfer_partitions - 1) /
                                          call_.transfer_partitions)),
      taken_rounds_(transfers_),
      partition_rounds_(static_cast<std::size_t>(call_.partitions)),
      transfer_counts_(transfers_) {}

PartitionedSend::~PartitionedSend() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
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
                          .total_bytes = own_bytes(),
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
  return reaches_.load(std::memory_order_acquire) &&
         board_.arrived(transfer).load(std::memory_order_acquire) == round();
}

Status PartitionedSend::parrived(std::int32_t, bool&) {
  return {StatusCode::invalid_argument, "a send request has no partitions that arrive"};
}

// Messages are packed before the receiver has started the round, and are sent then: the copies need
// not wait for what it says.
bool PartitionedSend::may_begin() const noexcept {
  return receiver_is_ready() || (welcomed_ && !board_.mapped());
}

// Thread-safe: the one that marks the last partition of a transfer says so to the engine.
Status PartitionedSend::pready(std::int32_t low, std::int32_t high) {
  ACCORD_TRY(check_partition(low, high));
  if (!started()) return {StatusCode::invalid_argument, "the request has not been started"};
  if (has_prequest() && call_.transfer_partitions > 1)
    return {StatusCode::unsupported,
            "kernels gather the partitions of this request into transfers"};
  const std::uint32_t now = round();
  for (std::int32_t partition = low; partition <= high; ++partition) {
    const auto transfer = static_cast<std::size_t>(partition / call_.transfer_partitions);
    auto& marked = partition_rounds_[static_cast<std::size_t>(partition)];
    const bool moved =
        word(transfer).load(std::memory_order_acquire) == now || has_arrived(transfer);
    if (marked.exchange(now, std::memory_order_acq_rel) == now || moved)
      return {StatusCode::invalid_argument,
              fmt::format("partition {} is ready already", partition)};
    if (transfer_counts_[transfer].fetch_add(1, std::memory_order_acq_rel) + 1 ==
        partitions_of(transfer)) {
      word(transfer).store(now, std::memory_order_release);
      const std::lock_guard<std::mutex> locked(marked_mutex_);
      marked_.push_back(transfer);
    }
    note_host_mark(partition);
  }
  return {};
}

void PartitionedSend::begin_round() {
  by_messages_ = false;
  moved_ = {};
  // The receiver may have started already.
  if (!welcomed_ && !dropped_) fail_on_error(table_.poll());
  reach(Opening::allowed, round());
  if (memory_ == nullptr) keep_staging(own_bytes());
  left_ = transfers_;
  first_left_ = 0;
  ready_.clear();
  unseen_.clear();
  for (auto& count : transfer_counts_) count.store(0, std::memory_order_relaxed);
}

void PartitionedSend::describe(accord_prequest& shown) const {
  shown.sides = ACCORD_PARTITION_SENDS;
  shown.transfer_partitions = call_.transfer_partitions;
  shown.marks = call_.marks;
  shown.ready = reinterpret_cast<std::uint32_t*>(&word(0));
  const bool moves = call_.copy != PartitionCopy::engine && kernels_reach_ && board_.pinned();
  if (call_.end.contiguous())
    shown.buffer = reinterpret_cast<const unsigned char*>(for_kernels(call_.end.address(0)));
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  const bool always = call_.copy == PartitionCopy::kernel;
  shown.kernel_bytes = always ? kAny : kKernelBytes;
  shown.thread_bytes = always ? kAny : kThreadBytes;
  if (!moves) return;  // kernels need not know more
  shown.link = {.transfer_bytes = transfer_bytes(),
                .total_bytes = own_bytes(),
                .transfers = transfers_,
                .arrived = board_.arrived_words(),
                .peer_ready = board_.ready_lines(),
                .peer = reinterpret_cast<unsigned char*>(for_kernels(memory_))};
  shown.state = ACCORD_PARTITION_STATE_CONNECTED;
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
  if (gave_up_ != 0) tell_failure(gave_up_);
  if (dropped_ || welcome.has_board == 0) return {};
  if (open_board(welcome).ok()) {
    const bool is_clean = started() && !by_messages_;
    reach(may_open() ? Opening::allowed : Opening::no, is_clean ? round() : next_round(round()));
    return {};
  }
  return table_.channel().post(call_.envelope.process,
                               {.kind = wire::Kind::decline, .to = receiver_});
}

Status PartitionedSend::open_board(const wire::Welcome& welcome) {
  std::vector<node::Descriptor> parcel;
  const std::size_t wanted = welcome.with_pages + welcome.memory.with_descriptor;
  const node::ParcelLabel label{
      .from = call_.envelope.process, .item = static_cast<std::int32_t>(number_), .generation = 1};
  if (wanted != 0 && (!table_.port().take(label, parcel) || parcel.size() != wanted))
    return {StatusCode::unsupported, "partitioned: the receiver's descriptors have not come"};
  if (table_.declines()) return {StatusCode::unsupported, "partitioned: a test declines"};
  std::shared_ptr<node::SharedPages> pages;
  ACCORD_TRY(table_.pages_of(call_.envelope.process, welcome.pages,
                             welcome.with_pages != 0 ? &parcel.front() : nullptr, pages));
  ACCORD_TRY(
      board_.map(std::move(pages), welcome.board_bytes, static_cast<std::int32_t>(transfers_)));
  lent_ = welcome;
  if (welcome.memory.with_descriptor != 0) lent_descriptor_ = std::move(parcel.back());
  is_lent_ = welcome.has_memory != 0 && runtime() != nullptr && call_.end.contiguous();
  return {};
}

// Opens the receiver's buffer, from `from_round` on; later, where it is not open here already and
// that is not allowed now. Without it the data goes by messages.
void PartitionedSend::reach(Opening opening, std::uint32_t from_round) {
  if (is_lent_) {
    if (!find_memory(opening) && opening == Opening::no) return;
    is_lent_ = false;
    lent_descriptor_.close();
    if (memory_ != nullptr) {
      board_.straight_from().store(from_round, std::memory_order_release);
      reaches_.store(true, std::memory_order_release);
    }
  }
  if (memory_ == nullptr) return;
  if (has_prequest() && !board_.pinned() && opening == Opening::allowed) (void)pin_board();
  if (!connected_) connect_prequest();
  connected_ = board_.pinned();
}

bool PartitionedSend::find_memory(Opening opening) {
  const node::MemoryHandle& lent = lent_.memory;
  kernels_reach_ = true;
  if (lent.process == table_.port().address().process) {
    if (!opened_.refer(*runtime(), lent).ok()) return true;  // of another runtime: by messages
    // Copy engines reach any of this process's devices, kernels only where one has peer access to
    // the other.
    kernels_reach_ = device::classify(opened_.start()).device == call_.end.device;
  } else if (!opened_.open(*runtime(), call_.end.device, lent, lent_descriptor_, opening).ok()) {
    return false;
  }
  memory_ = opened_.start() + lent_.offset_bytes;
  return true;
}

void PartitionedSend::tell_failure(std::uint32_t failed) {
  if (board_.mapped()) {
    board_.failed(node::PartitionBoard::End::sender).store(failed, std::memory_order_release);
  } else if (welcomed_) {
    (void)table_.channel().post(call_.envelope.process,
                                {.kind = wire::Kind::failed, .to = receiver_, .round = failed});
  }
}

Status PartitionedSend::step(core::HostPort& host, bool& done) {
  // Once there is a board, nothing more comes by messages.
  if (!dropped_ && !board_.mapped()) ACCORD_TRY(table_.poll());
  // What kernels have moved has arrived whatever the receiver does now: it may be a round ahead.
  collect();
  if (may_open()) reach(Opening::allowed, by_messages_ ? next_round(round()) : round());
  if (may_begin()) {
    prepared_.store(round(), std::memory_order_release);
    ACCORD_TRY(issue());
  }
  ACCORD_TRY(finish_batches());
  ACCORD_TRY(send_pieces(host));
  done = left_ == 0 && moving_ == 0;
  if (done) table_.note_moved(moved_);
  // What has been sent ends by itself.
  const bool is_waiting = left_ != 0 || (moving_ != 0 && !receiver_is_ready());
  if (is_waiting && given_up_by_peer(board_, node::PartitionBoard::End::receiver))
    return {StatusCode::device_error, "partitioned: the receiver has given up after an error"};
  return {};
}

// By the host or by kernels, so that the host shall move it.
bool PartitionedSend::is_marked(std::size_t transfer) const noexcept {
  return word(transfer).load(std::memory_order_acquire) == round();
}

void PartitionedSend::take(std::size_t transfer) {
  taken_rounds_[transfer] = round();
  ready_.push_back(transfer);
}

// What they have marked, or moved themselves, is only found by a look at all.
void PartitionedSend::look_for_kernels() {
  while (first_left_ < transfers_ && !is_left(first_left_)) ++first_left_;
  for (std::size_t transfer = first_left_; transfer < transfers_; ++transfer) {
    if (!is_left(transfer)) continue;
    if (has_arrived(transfer)) {
      taken_rounds_[transfer] = round();
      ++moved_.kernel;
      --left_;
    } else if (is_marked(transfer)) {
      take(transfer);
    }
  }
}

// Finds what has been marked since the last step.
void PartitionedSend::collect() {
  std::vector<std::size_t> marked;
  {
    const std::lock_guard<std::mutex> locked(marked_mutex_);
    marked.swap(marked_);
  }
  if (has_prequest()) return look_for_kernels();
  for (const std::size_t transfer : marked)
    if (is_left(transfer) && is_marked(transfer)) take(transfer);
}

// While messages are being packed, or none more may be on its way, or the receiver is behind, what
// is marked meanwhile waits, to go together: each message costs either side as much as some ten
// thousand bytes.
bool PartitionedSend::waits_for_company() {
  while (!unseen_.empty() &&
         board_.arrived(unseen_.front()).load(std::memory_order_acquire) == round())
    unseen_.pop_front();
  const auto packing =
      std::ranges::count_if(messages_, [](const Message& message) { return !message.sent; });
  const bool is_held_up = unseen_.size() >= kUnseenMax || packing >= kPackingMax ||
                          messages_.size() >= messages_max() || !pieces_.empty();
  return is_held_up && ready_.size() < left_ &&
         ready_.size() * transfer_bytes() < together_bytes(own_bytes());
}

// Begins to move what has been marked ready.
Status PartitionedSend::issue() {
  if (ready_.empty() || (memory_ == nullptr && waits_for_company())) return {};
  std::vector<std::size_t> ready;
  ready.swap(ready_);
  left_ -= ready.size();
  if (dropped_) return {};
  std::ranges::sort(ready);
  (memory_ != nullptr ? moved_.engine : moved_.messages) += ready.size();
  if (memory_ != nullptr) return copy(ready);
  by_messages_ = true;
  queue_pieces(ready);
  return {};
}

// Neighbours go in one message, unless they are long; those without bytes one by one.
void PartitionedSend::queue_pieces(const std::vector<std::size_t>& ready) {
  const std::uint64_t together = together_bytes(own_bytes());
  const std::uint64_t longest = piece_bytes(transfer_bytes(), own_bytes());
  const auto before = pieces_.size();
  for (std::size_t i = 0; i < ready.size();) {
    const std::size_t head = ready[i++];
    std::size_t tail = head;
    const auto may_join = [&](std::size_t next) {
      return next == tail + 1 && transfer_bytes() > 0 &&
             (next + 1 - head) * transfer_bytes() <= together;
    };
    while (i < ready.size() && may_join(ready[i])) tail = ready[i++];
    if (board_.mapped()) unseen_.push_back(tail);
    std::uint64_t first = head * transfer_bytes();
    const std::uint64_t end = tail * transfer_bytes() + bytes_of(tail);
    do {
      const std::uint64_t length = std::min(longest, end - first);
      pieces_.push_back({length > 0 ? first / transfer_bytes() : head, first, length});
      first += length;
    } while (first < end);
  }
  moving_ += pieces_.size() - before;
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
  moving_ += ready.size();
  Batch batch{.ticket = {}, .transfers = ready};
  if (!copies.empty())
    ACCORD_TRY(runtime()->copy_begin_beside_kernels(call_.end.device, copies, batch.ticket));
  batches_.push_back(std::move(batch));
  return {};
}

std::string PartitionedSend::path() const {
  std::string ways;
  const auto add = [&](std::uint64_t count, const char* way) {
    if (count != 0) ways += (ways.empty() ? "" : " and ") + std::string(way);
  };
  add(moved_.kernel, "kernel");
  add(moved_.engine, "engine");
  add(moved_.messages, "messages");
  return ways.empty() ? "nothing" : ways;
}

stages::Stage PartitionedSend::stage() const {
  if (moving_ == 0) return left_ == 0 ? stages::Stage::finish : stages::Stage::wait;
  return batches_.empty() ? stages::Stage::host_mpi : stages::Stage::move;
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

// Few for a receiver that is late: their memory is in use until it has started.
std::size_t PartitionedSend::messages_max() const noexcept {
  if (!receiver_is_ready()) return static_cast<std::size_t>(kPackingMax);
  return has_prequest() ? kMessagesWithKernels : kMessagesMax;
}

Status PartitionedSend::send_pieces(core::HostPort& host) {
  while (!pieces_.empty() && messages_.size() < messages_max()) ACCORD_TRY(send_piece());
  Status status;
  std::erase_if(messages_, [&](Message& message) {
    bool done = false;
    keep_first(status, progress_message(host, message, done));
    if (done) --moving_;
    return done;
  });
  return status;
}

Status PartitionedSend::send_piece() {
  const Piece piece = pieces_.front();
  pieces_.pop_front();
  const wire::Header header{.kind = wire::Kind::data,
                            .to = receiver_,
                            .round = round(),
                            .transfer = static_cast<std::int32_t>(piece.transfer),
                            .first_bytes = piece.first_bytes,
                            .length_bytes = piece.length_bytes};
  Message message;
  message.size_bytes = sizeof header + piece.length_bytes;
  ACCORD_TRY(table_.channel().take_memory(call_.end.runtime, message.size_bytes, message.letter));
  std::byte* const bytes = message.letter.data();
  std::memcpy(bytes, &header, sizeof header);
  if (piece.length_bytes > 0)
    ACCORD_TRY(call_.end.copy(core::CallEnd::Direction::pack, piece.first_bytes, piece.length_bytes,
                              bytes + sizeof header, message.packing));
  messages_.push_back(std::move(message));
  return {};
}

Status PartitionedSend::progress_message(core::HostPort& host, Message& message, bool& done) {
  if (!message.sent) {
    bool packed = false;
    ACCORD_TRY(call_.end.copied(message.packing, packed));
    if (!packed || !receiver_is_ready()) return {};
    ACCORD_TRY(table_.channel().post_data(
        call_.envelope.process, {message.letter.data(), message.size_bytes}, message.request));
    message.sent = true;
  }
  return host.test(message.request, done);
}

// What has been handed to a device ends by itself, but its memory is in use.
bool PartitionedSend::drained(core::HostPort&) {
  pieces_.clear();
  (void)finish_batches();
  std::erase_if(messages_, [&](Message& message) {
    bool done = message.sent;
    if (!message.sent) return !call_.end.copied(message.packing, done).ok() || done;
    table_.channel().keep(std::move(message.letter), message.request);
    return true;
  });
  if (!batches_.empty() || !messages_.empty()) return false;
  moving_ = 0;
  return true;
}

}  // namespace accord::partitioned
