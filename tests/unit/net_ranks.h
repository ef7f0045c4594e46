// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two ranks of tests of messages between nodes have in common: mail to each other, and
// memory of an embedded device.
#pragma once

#include <optional>

#include "device/registry.h"
#include "net/mail.h"
#include "net_processes.h"
#include "support.h"

namespace accord::test {

// Memory that no CPU may touch.
class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<char>& bytes, int device = 0) : size_(bytes.size()) {
    if (!runtime().allocate(device, device::MemoryKind::device, size_, start_).ok()) ::_exit(4);
    copy(start_, bytes.data());
  }
  ~DeviceBytes() { (void)runtime().free(start_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  void* start() const { return start_; }
  std::size_t size() const { return size_; }
  net::Memory memory() const {
    return {.start = start_, .size_bytes = size_, .where = device::classify(start_)};
  }
  std::vector<char> bytes() const {
    std::vector<char> copied(size_);
    copy(copied.data(), start_);
    return copied;
  }

 private:
  static device::DeviceRuntime& runtime() { return device::default_runtime(); }
  void copy(void* to, const void* from) const {
    const device::Copy one{.dst = to, .src = from, .row_bytes = size_};
    if (!runtime().copy(0, {&one, 1}).ok()) ::_exit(4);
  }

  std::size_t size_;
  void* start_ = nullptr;
};

// One of the two ranks, of which the sender is 0. It has mail once it has opened it.
class MailRank {
 public:
  MailRank(End& end, std::uint32_t number) : other(1 - number), end_(end) {}

  // As a receiver does in a call of its program.
  void look_for_messages() {
    EXPECT_TRUE(wait([&] { return mail->was_invited(); }));
    mail->accept_invitations();
  }
  bool is_accepted() {
    return wait([&] { return mail->may_send_to(other); });
  }
  template <class T>
  void tell(const T& value) const {
    end_.tell(std::as_bytes(std::span(&value, 1)));
  }
  template <class T = std::uint32_t>
  T hear() const {
    T value{};
    const auto told = end_.hear();
    if (told.size() == sizeof value) std::memcpy(&value, told.data(), sizeof value);
    return value;
  }
  // The program is elsewhere meanwhile: nothing is moved on but by what `done` calls and the
  // attendants.
  template <class Done>
  bool wait(Done done) const {
    for (const auto until = std::chrono::steady_clock::now() + kPatience;
         std::chrono::steady_clock::now() < until; ::usleep(100))
      if (done()) return true;
    return false;
  }
  Status end_of(std::uint32_t number) {
    auto stage = net::Mail::Stage::waiting;
    Status status;
    const bool ended = wait([&] {
      status = mail->look(number, stage);
      return stage == net::Mail::Stage::ended || !status.ok();
    });
    return ended ? status : Status(StatusCode::unsupported, "does not end");
  }

  const std::uint32_t other;
  std::optional<net::Mail> mail;

 protected:
  void open_mail(net::Mail::Options options) {
    auto addresses = end_.addresses;
    options.rank = 1 - other;
    if (options.rank == 1) std::swap(addresses[0], addresses[1]);
    std::unique_ptr<net::Attendant> attendant;
    if (!net::Attendant::start(*end_.worker, attendant).ok()) ::_exit(4);
    mail.emplace(std::move(end_.worker), std::move(attendant), std::move(addresses), options);
  }

 private:
  End& end_;
};

}  // namespace accord::test
