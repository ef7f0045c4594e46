// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/seal.h"

#include <cstring>

#include "net/sip_hash.h"

namespace accord::net {
namespace {

// What a code is of: one use is never taken for another.
enum class Use : std::uint64_t { id = 1, tag, message };

SipHash begin(const JobKey& key, Use use) {
  return SipHash(key).add(static_cast<std::uint64_t>(use));
}

}  // namespace

std::uint64_t Sealer::id_of(Bytes address) const { return begin(key_, Use::id).end(address); }

std::uint64_t Sealer::tag_of(std::uint64_t tag) const {
  return begin(key_, Use::tag).add(tag).end();
}

std::uint64_t Sealer::code_of(const Seal& seal, std::uint64_t to, unsigned kind,
                              Bytes message) const {
  return begin(key_, Use::message).add(seal.from).add(to).add(seal.number).add(kind).end(message);
}

Seal Sealer::seal(std::uint64_t to, std::uint64_t number, unsigned kind, Bytes message) const {
  Seal seal{.from = own_, .number = number};
  seal.code = code_of(seal, to, kind, message);
  return seal;
}

bool Sealer::open(Bytes header, unsigned kind, Bytes message, std::uint64_t& from) {
  Seal seal;
  if (header.size() != sizeof seal) return false;
  std::memcpy(&seal, header.data(), sizeof seal);
  if (seal.code != code_of(seal, own_, kind, message)) return false;
  from = seal.from;
  return heard_[seal.from].is_first(seal.number);
}

bool Sealer::Heard::is_first(std::uint64_t number) {
  if (number > highest) {
    const std::uint64_t by = number - highest;
    behind = by < kBehindMax ? behind << by : 0;
    if (highest != 0 && by <= kBehindMax) behind |= std::uint64_t{1} << (by - 1);
    highest = number;
    return true;
  }
  const std::uint64_t below = highest - number;
  if (number == 0 || below == 0 || below > kBehindMax) return false;
  const std::uint64_t bit = std::uint64_t{1} << (below - 1);
  const bool is_new = (behind & bit) == 0;
  behind |= bit;
  return is_new;
}

}  // namespace accord::net
