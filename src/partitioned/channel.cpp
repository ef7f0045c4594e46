// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "device/registry.h"

namespace accord::partitioned {
namespace {

// Messages that one poll accepts: others have work to do, too.
constexpr int kMessagesPerPoll = 16;

// Into so many a round is cut that is not short, so that all stretches of its way are in use.
constexpr std::uint64_t kPiecesOnTheWay = 8;

// Up to this length plain memory will do: all but data is shorter.
constexpr std::size_t kPlainBytes = 1024;

}  // namespace

std::uint64_t longest_piece() {
  constexpr std::uint64_t kMost = 1 << 30;
  return std::clamp<std::uint64_t>(config().chunk_bytes, 1, kMost);
}

std::uint64_t together_bytes(std::uint64_t round_bytes) {
  constexpr std::uint64_t kLeast = 64 << 10;
  constexpr std::uint64_t kMost = 256 << 10;
  return std::min(std::clamp(round_bytes / kPiecesOnTheWay, kLeast, kMost), longest_piece());
}

std::uint64_t piece_bytes(std::uint64_t partition_bytes, std::uint64_t round_bytes) {
  return std::min(std::max(together_bytes(round_bytes), partition_bytes / kPiecesOnTheWay),
                  longest_piece());
}

Status PartitionedChannel::post(int process, const wire::Header& header,
                                std::span<const std::byte> body) {
  Outgoing message;
  message.bytes.resize(sizeof header + body.size());
  std::memcpy(message.bytes.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(message.bytes.data() + sizeof header, body.data(), body.size());
  ACCORD_TRY(messages_.send(process, message.bytes, message.request));
  outgoing_.push_back(std::move(message));
  return {};
}

Status PartitionedChannel::take_memory(device::DeviceRuntime* runtime, std::size_t size_bytes,
                                       Letter& letter) const {
  // Kept for reuse: long memory of malloc's may go back to the system each time.
  if (runtime == nullptr && size_bytes > kPlainBytes) runtime = &device::default_runtime();
  if (runtime != nullptr && !kernels_may_run_)
    return device::staging_pool().acquire(runtime, size_bytes, letter.staging);
  if (runtime == nullptr ||
      !device::staging_pool().acquire_kept(runtime, size_bytes, letter.staging))
    letter.plain = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
  return {};
}

Status PartitionedChannel::take_in() {
  for (int i = 0; i < kMessagesPerPoll; ++i) {
    bool found = false;
    Incoming message{};
    std::uint64_t handle = 0;
    ACCORD_TRY(messages_.probe(found, message.process, message.size_bytes, handle));
    if (!found) return {};
    ACCORD_TRY(take_memory(nullptr, message.size_bytes, message.letter));
    ACCORD_TRY(
        messages_.receive(handle, {message.letter.data(), message.size_bytes}, message.request));
    incoming_.push_back(std::move(message));
  }
  return {};
}

Status PartitionedChannel::poll(const Deliver& deliver) {
  bool done = true;
  while (!outgoing_.empty() && done) {
    ACCORD_TRY(host_.test(outgoing_.front().request, done));
    if (done) outgoing_.pop_front();
  }
  std::erase_if(abandoned_, [&](Abandoned& message) {
    bool sent = false;
    return !host_.test(message.request, sent).ok() || sent;
  });
  ACCORD_TRY(take_in());
  Status status;
  while (!incoming_.empty()) {
    Incoming& first = incoming_.front();
    ACCORD_TRY(host_.test(first.request, done));
    if (!done) break;
    Incoming message = std::move(first);
    incoming_.pop_front();
    wire::Header header;
    const std::byte* const bytes = message.letter.data();
    if (message.size_bytes < sizeof header) continue;
    std::memcpy(&header, bytes, sizeof header);
    keep_first(status, deliver(message.process, header,
                               {bytes + sizeof header, message.size_bytes - sizeof header},
                               message.letter));
  }
  return status;
}

}  // namespace accord::partitioned
