// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/quick_copy.h"

#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "device/call_credit.h"
#include "device/inbox.h"

namespace accord::device {
namespace {

// Groups count theirs from 1; this inbox stays where it is for good.
constexpr std::uint32_t kInboxNumber = UINT32_MAX;
constexpr int kRank = 0;
constexpr int kRanks = 1;

}  // namespace

// What a program that has reset its device has there since is not ours to free.
QuickCopy::~QuickCopy() {
  PointerInfo now;
  if (inbox_ != nullptr && runtime_->classify(inbox_, now) && now.buffer_id == inbox_buffer_id_)
    (void)runtime_->free(inbox_);
}

// An inbox starts with the addresses of all, and no word of it may look like one of some call.
Status QuickCopy::open(DeviceRuntime& runtime, int device) {
  runtime_ = &runtime;
  InboxServer* server = nullptr;
  ACCORD_TRY(runtime.inbox_server(device, server));
  if (!server->stays_on_device())
    return {StatusCode::unsupported, "a kernel begins no sooner than a copy there"};
  const std::size_t size_bytes = inbox_bytes(kRanks, most_bytes_);
  ACCORD_TRY(runtime.allocate(device, MemoryKind::device, size_bytes, inbox_));
  PointerInfo memory;
  if (runtime.classify(inbox_, memory)) inbox_buffer_id_ = memory.buffer_id;
  std::vector<std::byte> content(size_bytes);
  std::memcpy(content.data(), &inbox_, sizeof inbox_);
  const Copy copy{.dst = inbox_, .src = content.data(), .row_bytes = size_bytes};
  ACCORD_TRY(runtime.copy(device, {&copy, 1}));
  server_ = server;
  return {};
}

// Where all of it is, since a kernel that leaves an allocation takes the program's context with it.
QuickCopy::Place QuickCopy::place_of(const void* start, std::size_t size_bytes) const noexcept {
  PointerInfo memory;
  if (!runtime_->classify(start, memory)) return Place::nowhere;
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.base);
  if (first + size_bytes > base + memory.size_bytes) return Place::nowhere;
  if (memory.kind == MemoryKind::pinned) return Place::host;
  return memory.kind == MemoryKind::device && server_->reaches(memory) ? Place::device
                                                                       : Place::nowhere;
}

Status QuickCopy::run(DeviceRuntime& runtime, int device, const Copy& copy, bool& done) {
  done = false;
  if (copy.rows != 1 || copy.row_bytes > config().copy_kernel_bytes) return {};
  // One at a time: what another thread would have to wait for goes by a copy sooner.
  const std::unique_lock locked(mutex_, std::try_to_lock);
  if (!locked.owns_lock()) return {};
  if (!is_opened_) {
    is_opened_ = true;
    const Status opened = open(runtime, device);
    if (!opened.ok()) log::info("short messages are fetched by copies: {}", opened.message());
  }
  if (server_ == nullptr || copy.row_bytes > most_bytes_) return {};
  const Place from = place_of(copy.src, copy.row_bytes);
  const Place to = place_of(copy.dst, copy.row_bytes);
  if (from == Place::nowhere || to == Place::nowhere) return {};
  if (++epoch_ == 0) ++epoch_;
  InboxTicket ticket;
  ticket.exchange = {.inbox = static_cast<std::byte*>(inbox_),
                     .inbox_number = kInboxNumber,
                     .lane_bytes = most_bytes_,
                     .rank = kRank,
                     .epoch = epoch_,
                     .turn = epoch_ % 2,
                     .src = copy.src,
                     .dst = copy.dst,
                     .dst_on_host = to == Place::host,
                     .block_bytes = copy.row_bytes,
                     .send_to = inbox_bit(kRank),
                     .receive_from = inbox_bit(kRank)};
  const Status status = serve(ticket, done);
  // What is left of it is not known, and copies may go on where kernels do not.
  if (!status.ok()) server_ = nullptr;
  return status;
}

Status QuickCopy::serve(InboxTicket& ticket, bool& done) {
  using State = InboxTicket::State;
  ACCORD_TRY(server_->begin(ticket));
  while (!done) {
    // Another exchange has the kernel, which its owner alone ends: perhaps this very thread.
    if (ticket.state == State::waiting) return {};
    ACCORD_TRY(server_->poll(ticket, done));
    // What it sends itself never comes late, but the server's time for it may be over sooner.
    if (!done && ticket.state == State::late) ACCORD_TRY(server_->begin(ticket));
  }
  return {};
}

namespace {

// A device has one for the process.
class QuickStaging {
 public:
  Status copy(DeviceRuntime& runtime, int device, const Copy& run, bool& done) {
    done = false;
    // A kernel that lingers would keep those of others from running.
    if (runtime.expects_turns(device) || !credit_.is_enough()) return {};
    return quick_.run(runtime, device, run, done);
  }

  // A block moves so much at once.
  static constexpr std::size_t kBytesMax = 2048;

 private:
  QuickCopy quick_{kBytesMax};
  CallCredit credit_;
};

// Never destroyed: MPI may be called from destructors of the program.
struct QuickStagings {
  std::mutex mutex;
  std::map<std::pair<const DeviceRuntime*, int>, std::shared_ptr<QuickStaging>> by_device;
};
QuickStagings& quick_stagings() {
  static QuickStagings& instance = *new QuickStagings;
  return instance;
}

std::shared_ptr<QuickStaging> quick_staging(const DeviceRuntime& runtime, int device) {
  const std::lock_guard locked(quick_stagings().mutex);
  std::shared_ptr<QuickStaging>& found = quick_stagings().by_device[{&runtime, device}];
  if (!found) found = std::make_shared<QuickStaging>();
  return found;
}

}  // namespace

// What fails there, since the program has reset its device, say, may go by a copy.
bool stage_quickly(DeviceRuntime& runtime, int device, const CopyBatch& batch) {
  const std::vector<Copy>& copies = batch.plain.copies();
  const bool is_short_run = batch.laid_out.empty() && copies.size() == 1 && copies[0].rows == 1 &&
                            copies[0].row_bytes <= QuickStaging::kBytesMax;
  bool done = false;
  return is_short_run &&
         quick_staging(runtime, device)->copy(runtime, device, copies[0], done).ok() && done;
}

void end_quick_staging() noexcept {
  decltype(QuickStagings::by_device) ended;
  const std::lock_guard locked(quick_stagings().mutex);
  ended.swap(quick_stagings().by_device);
}

}  // namespace accord::device
