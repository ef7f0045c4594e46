// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/synapse/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace accord::device::synapse {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kCopiesMax = 1024;  // that are submitted at once

std::byte* host_at(Address address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

Lane::~Lane() {
  if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
  if (buffer_ != nullptr) (void)driver_.host_memory_free(device_.id(), buffer_, 0);
}

// At first use.
Status Lane::make() {
  if (stream_ == nullptr)
    ACCORD_TRY(status_of(driver_.stream_create(&stream_, device_.id(), 0), symbol::stream_create));
  if (buffer_ != nullptr) return Status();
  void* made = nullptr;
  ACCORD_TRY(status_of(driver_.host_memory_allocate(device_.id(), kBufferBytes, 0, &made),
                       symbol::host_memory_allocate));
  buffer_ = static_cast<std::byte*>(made);
  return Status();
}

bool Lane::reaches(const std::byte* host, std::size_t size_bytes) const {
  const auto known = mapped_.find(host);
  return known.has_value() &&
         size_bytes <= known->size_bytes - (address_of(host) - address_of(known->base));
}

void Lane::add_row(std::byte* dst, const std::byte* src, std::size_t size_bytes) {
  const bool to_device = device_.contains(dst);
  const bool from_device = device_.contains(src);
  if (!to_device && !from_device) {
    std::memmove(dst, src, size_bytes);
    return;
  }
  const Direction direction = to_device && from_device ? Direction::within_device
                              : to_device              ? Direction::to_device
                                                       : Direction::to_host;
  const bool by_buffer =
      direction != Direction::within_device && !reaches(to_device ? src : dst, size_bytes);
  moves_.push_back({address_of(dst), address_of(src), size_bytes, direction, by_buffer});
}

Status Lane::begin(std::span<const Copy> copies) {
  moves_.clear();
  next_ = 0;
  for (const Copy& copy : copies) {
    if (copy.row_bytes == 0) continue;
    for (std::size_t row = 0; row < copy.rows; ++row) {
      add_row(static_cast<std::byte*>(copy.dst) + row * copy.dst_pitch_bytes,
              static_cast<const std::byte*>(copy.src) + row * copy.src_pitch_bytes, copy.row_bytes);
    }
  }
  if (moves_.empty()) return Status();
  ACCORD_TRY(make());
  return submit();
}

// The next step: moves of one direction, as many as the buffer has room for.
Status Lane::submit() {
  dst_.clear();
  src_.clear();
  sizes_.clear();
  const Direction direction = moves_[next_].direction;
  std::size_t filled = 0;
  while (next_ < moves_.size() && sizes_.size() < kCopiesMax &&
         moves_[next_].direction == direction) {
    Move& move = moves_[next_];
    Address dst = move.dst;
    Address src = move.src;
    std::size_t size_bytes = move.size_bytes;
    if (move.by_buffer) {
      size_bytes = std::min(size_bytes, kBufferBytes - filled);
      if (size_bytes == 0) break;
      std::byte* const place = buffer_ + filled;
      filled += size_bytes;
      if (direction == Direction::to_device) {
        std::memcpy(place, host_at(src), size_bytes);
        src = address_of(place);
      } else {
        returns_.push_back({host_at(dst), place, size_bytes});
        dst = address_of(place);
      }
    }
    dst_.push_back(dst);
    src_.push_back(src);
    sizes_.push_back(size_bytes);
    move.dst += size_bytes;
    move.src += size_bytes;
    move.size_bytes -= size_bytes;
    if (move.size_bytes == 0) ++next_;
  }
  return status_of(driver_.copy_async(stream_, src_.data(), sizes_.data(), dst_.data(), direction,
                                      sizes_.size()),
                   symbol::copy_async);
}

Status Lane::poll(bool& done) {
  done = moves_.empty();
  if (done) return Status();
  const Result result = driver_.stream_query(stream_);
  return result == Result::busy ? Status() : finish_step(result, symbol::stream_query, done);
}

Status Lane::wait() {
  for (bool done = moves_.empty(); !done;)
    ACCORD_TRY(finish_step(driver_.stream_synchronize(stream_), symbol::stream_synchronize, done));
  return Status();
}

Status Lane::finish_step(Result result, const char* call, bool& done) {
  Status status = status_of(result, call);
  if (status.ok()) {
    for (const Return& own : returns_) std::memcpy(own.dst, own.src, own.size_bytes);
    returns_.clear();
    if (next_ < moves_.size()) {
      status = submit();
      if (status.ok()) return status;
    }
  } else {  // what may be under way still must not go on in memory that the caller gives up
    (void)driver_.stream_synchronize(stream_);
  }
  done = true;
  moves_.clear();
  return status;
}

std::unique_ptr<Lane> Lanes::borrow(const Driver& driver, const OneDevice& device,
                                    const Allocations& mapped) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Lane> lane = std::move(idle_.back());
      idle_.pop_back();
      return lane;
    }
  }
  return std::make_unique<Lane>(driver, device, mapped);
}

void Lanes::give_back(std::unique_ptr<Lane> lane) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(lane));
}

namespace {

class SynapseStream final : public LibraryStream {
 public:
  SynapseStream(const Driver& driver, Stream stream) : driver_(driver), stream_(stream) {}
  // What is still on the stream goes on.
  ~SynapseStream() override { (void)driver_.stream_destroy(stream_); }
  SynapseStream(const SynapseStream&) = delete;
  SynapseStream& operator=(const SynapseStream&) = delete;

  Status enqueue(const std::function<Status(void*)>& work) override {
    is_busy_ = true;
    return work(stream_);
  }
  Status poll(bool& done) override {
    done = !is_busy_;
    if (done) return Status();
    const Result result = driver_.stream_query(stream_);
    if (result == Result::busy) return Status();
    is_busy_ = false;
    done = true;
    return status_of(result, symbol::stream_query);
  }
  Status record(const std::function<Status(void*)>&, std::unique_ptr<Recording>&) override {
    return Status(StatusCode::unsupported, "synapse: no recordings of streams");
  }

 private:
  const Driver& driver_;
  const Stream stream_;
  bool is_busy_ = false;
};

}  // namespace

Status make_stream(const Driver& driver, const OneDevice& device,
                   std::unique_ptr<LibraryStream>& stream) {
  Stream made = nullptr;
  ACCORD_TRY(status_of(driver.stream_create(&made, device.id(), 0), symbol::stream_create));
  stream = std::make_unique<SynapseStream>(driver, made);
  return Status();
}

}  // namespace accord::device::synapse
