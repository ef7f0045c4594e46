// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What goes before each message from worker to worker: who sent it, the how manieth it is, and a
// code (sip_hash.h) that only workers of this job make. It covers the receiver, too. So nothing is
// heard that another job has sent, that was meant for another worker, that was changed on its way,
// or that comes a second time; and nobody learns the key from what it gets. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "net/job_key.h"

namespace accord::net {

struct Seal {
  std::uint64_t from = 0;    // the sender, as Sealer::id_of
  std::uint64_t number = 0;  // from 1, of those from that worker to this one
  std::uint64_t code = 0;
};

class Sealer {
 public:
  using Bytes = std::span<const std::byte>;

  explicit Sealer(const JobKey& key) : key_(key) {}
  // Once, before all else: how this worker is reached.
  void set_own(Bytes address) { own_ = id_of(address); }

  // Of a worker that is reached by this address.
  std::uint64_t id_of(Bytes address) const;
  // Of a long message, which the network itself matches: others may send with any that they guess.
  std::uint64_t tag_of(std::uint64_t tag) const;

  Seal seal(std::uint64_t to, std::uint64_t number, unsigned kind, Bytes message) const;
  // Whether `header` is the seal of a message that is to be heard; `from`: who sent it.
  bool open(Bytes header, unsigned kind, Bytes message, std::uint64_t& from);

 private:
  // What has come of one sender: the highest number, and which of those just below it.
  struct Heard {
    static constexpr std::uint64_t kBehindMax = 64;
    std::uint64_t highest = 0;
    std::uint64_t behind = 0;  // bit i: the one that is i + 1 lower
    bool is_first(std::uint64_t number);
  };
  std::uint64_t code_of(const Seal& seal, std::uint64_t to, unsigned kind, Bytes message) const;

  const JobKey key_;
  std::uint64_t own_ = 0;
  std::unordered_map<std::uint64_t, Heard> heard_;  // by sender, all of this job
};

}  // namespace accord::net
