// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "user_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "buffer_pool.h"
#include "named_reach.h"
#include "program_memory.h"
#include "random.h"

namespace accord::model {
namespace {

constexpr std::size_t kGuardElements = 3;
constexpr std::int64_t kGuard = 0x7e7e7e7e7e7e7e7e;
constexpr std::int64_t kPoison = 0x0badbadbadbadbad;

}  // namespace

std::int64_t value_of(int event, int round, int who, std::size_t index) {
  Random random((static_cast<std::uint64_t>(event) << 48) ^
                (static_cast<std::uint64_t>(round) << 32) ^
                (static_cast<std::uint64_t>(who) << 24) ^ index);
  return static_cast<std::int64_t>(random.next());
}

class UserBuffer::Raw {
 public:
  Raw(const UserBuffer& buffer, ProgramAccess::Use use) : elements_(buffer.host_.data()) {
    if (buffer.device_ == nullptr) return;
    access_.emplace(buffer.device_, buffer.raw_elements_ * sizeof(std::int64_t), use);
    elements_ = reinterpret_cast<std::int64_t*>(access_->bytes());
  }
  std::int64_t& operator[](std::size_t index) const { return elements_[index]; }

 private:
  std::optional<ProgramAccess> access_;
  std::int64_t* elements_;
};

UserBuffer::UserBuffer(const End& end, std::size_t elements, std::size_t block_elements,
                       BufferPool* pool)
    : end_(end), elements_(elements), block_elements_(block_elements) {
  const std::size_t blocks = elements / block_elements;
  raw_elements_ = 2 * kGuardElements + blocks * (block_elements + end.gap_elements);
  if (end.place == Place::host) {
    host_.resize(raw_elements_);
  } else {
    allocate(raw_elements_ * sizeof(std::int64_t), pool);
  }
  const Raw raw(*this, ProgramAccess::Use::write);
  std::fill_n(&raw[0], raw_elements_, kGuard);
  for (std::size_t i = 0; i < elements_; ++i) raw[raw_index(i)] = kPoison;
}

void UserBuffer::allocate(std::size_t size_bytes, BufferPool* pool) {
  if (pool != nullptr && end_.pool >= 0) device_ = pool->take(end_, size_bytes);
  if (device_ != nullptr) {
    pool_ = pool;
    return;
  }
  reached("buffer", "fresh");
  device_ = allocate_for_program(end_.place, size_bytes);
}

UserBuffer::~UserBuffer() {
  if (pool_ != nullptr) {
    pool_->give_back(end_, device_);
  } else if (device_ != nullptr) {
    free_of_program(device_);
  }
}

std::size_t UserBuffer::raw_index(std::size_t element) const {
  return kGuardElements + element / block_elements_ * (block_elements_ + end_.gap_elements) +
         element % block_elements_;
}

bool UserBuffer::is_payload(std::size_t raw) const {
  if (raw < kGuardElements || raw + kGuardElements >= raw_elements_) return false;
  return (raw - kGuardElements) % (block_elements_ + end_.gap_elements) < block_elements_;
}

Buffer UserBuffer::argument() const {
  constexpr std::size_t kElementBytes = sizeof(std::int64_t);
  std::byte* start = device_ != nullptr ? static_cast<std::byte*>(device_)
                                        : reinterpret_cast<std::byte*>(host_.data());
  return {start + kGuardElements * kElementBytes,
          {block_elements_ * kElementBytes, (block_elements_ + end_.gap_elements) * kElementBytes},
          elements_ / block_elements_};
}

void UserBuffer::fill(const std::vector<std::int64_t>& values) {
  const Raw raw(*this, ProgramAccess::Use::write);
  for (std::size_t i = 0; i < values.size(); ++i) raw[raw_index(i)] = values[i];
}

void UserBuffer::poison() {
  const Raw raw(*this, ProgramAccess::Use::write);
  for (std::size_t i = 0; i < elements_; ++i) raw[raw_index(i)] = kPoison;
}

std::string UserBuffer::difference(const std::vector<std::int64_t>& values,
                                   std::size_t checked) const {
  const Raw elements(*this, ProgramAccess::Use::read);
  for (std::size_t i = 0; i < std::min(elements_, checked); ++i) {
    const std::int64_t wanted = i < values.size() ? values[i] : kPoison;
    const std::int64_t found = elements[raw_index(i)];
    if (found == wanted) continue;
    return fmt::format("element {} of {} is {:#x}, not {:#x}{}", i, elements_, found, wanted,
                       found == kPoison     ? " (never written)"
                       : i >= values.size() ? " (not to be written)"
                                            : "");
  }
  for (std::size_t raw = 0; raw < raw_elements_; ++raw) {
    if (!is_payload(raw) && elements[raw] != kGuard)
      return fmt::format("a gap or guard was written, raw element {}", raw);
  }
  return {};
}

}  // namespace accord::model
