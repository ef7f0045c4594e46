// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Seals of messages between workers: the code is SipHash-2-4, and only what a worker of the job has
// sent to this one is opened, once. And for how long a silent peer is waited for.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/silence.h"
#include "net/seal.h"
#include "net/sip_hash.h"

namespace accord::test {
namespace {

using net::Seal;
using net::Sealer;
using Bytes = std::span<const std::byte>;

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
Bytes bytes_of(const Seal& seal) { return std::as_bytes(std::span(&seal, 1)); }

// The vectors that come with the authors' description: key 00 … 0f, messages of the bytes 0, 1, ….
TEST(net_seal, the_code_is_that_of_sip_hash_2_4) {
  const net::JobKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::array<std::byte, 16> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const auto code = [&](std::size_t size) {
    return net::SipHash(key).end(std::span(bytes).first(size));
  };
  EXPECT_EQ(0x726fdb47dd0e0e31U, code(0));
  EXPECT_EQ(0x74f839c593dc67fdU, code(1));
  EXPECT_EQ(0x93f5f5799a932462U, code(8));
  EXPECT_EQ(0xa129ca6149be45e5U, code(15));
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  EXPECT_EQ(code(15), net::SipHash(key).add(word).end(std::span(bytes).subspan(8, 7)));
}

class NetSeal : public ::testing::Test {
 protected:
  static Sealer worker(const std::string& address, const net::JobKey& key = {1, 2}) {
    Sealer made(key);
    made.set_own(bytes_of(address));
    return made;
  }
  bool opens(const Seal& seal, unsigned kind, const std::string& text) {
    from_ = 0;
    return receiver_.open(bytes_of(seal), kind, bytes_of(text), from_);
  }
  Seal sealed(const Sealer& by, std::uint64_t number, unsigned kind, const std::string& text) {
    return by.seal(by.id_of(bytes_of("receiver")), number, kind, bytes_of(text));
  }

  Sealer receiver_ = worker("receiver");
  Sealer sender_ = worker("sender");
  std::uint64_t from_ = 0;
};

TEST_F(NetSeal, a_message_of_the_job_says_who_sent_it) {
  EXPECT_TRUE(opens(sealed(sender_, 1, 3, "text"), 3, "text"));
  EXPECT_EQ(receiver_.id_of(bytes_of("sender")), from_);
  EXPECT_TRUE(opens(sealed(sender_, 2, 3, ""), 3, ""));
}

TEST_F(NetSeal, nothing_else_is_heard) {
  const Seal seal = sealed(sender_, 1, 3, "text");
  EXPECT_FALSE(opens(seal, 3, "tex"));
  EXPECT_FALSE(opens(seal, 3, "Text"));
  EXPECT_FALSE(opens(seal, 4, "text"));
  EXPECT_FALSE(opens(sealed(worker("sender", {1, 3}), 1, 3, "text"), 3, "text"));
  EXPECT_FALSE(
      opens(sender_.seal(sender_.id_of(bytes_of("another")), 1, 3, bytes_of("text")), 3, "text"));
  for (std::size_t bit = 0; bit < 8 * sizeof seal; ++bit) {
    Seal changed = seal;
    reinterpret_cast<unsigned char*>(&changed)[bit / 8] ^=
        static_cast<unsigned char>(1U << bit % 8);
    EXPECT_FALSE(opens(changed, 3, "text"));
  }
  EXPECT_FALSE(receiver_.open(bytes_of(seal).first(16), 3, bytes_of("text"), from_));
  EXPECT_FALSE(receiver_.open({}, 3, bytes_of("text"), from_));
  EXPECT_TRUE(opens(seal, 3, "text"));
}

TEST_F(NetSeal, a_message_is_heard_once) {
  const auto comes = [&](std::uint64_t number) {
    return opens(sealed(sender_, number, 0, "x"), 0, "x");
  };
  EXPECT_FALSE(comes(0));
  EXPECT_TRUE(comes(1));
  EXPECT_FALSE(comes(1));
  EXPECT_TRUE(comes(5));  // some networks let one overtake another
  EXPECT_FALSE(comes(0));
  EXPECT_TRUE(comes(3));
  EXPECT_FALSE(comes(3));
  EXPECT_FALSE(comes(5));
  EXPECT_TRUE(comes(69));
  EXPECT_FALSE(comes(5));
  EXPECT_TRUE(comes(6));
  EXPECT_FALSE(comes(4));  // too late to be told from a second one
  EXPECT_TRUE(comes(1000));
  EXPECT_FALSE(comes(69));
  EXPECT_TRUE(comes(999));
  // Of another sender they are others.
  EXPECT_TRUE(opens(sealed(worker("third"), 1, 0, "x"), 0, "x"));
}

TEST(silence, ends_patience_only_while_somebody_waits) {
  using namespace std::chrono_literals;
  using Next = Silence::Next;
  Silence silence;
  Silence::Clock::time_point now{1h};
  const auto look_for = [&](Silence::Clock::duration time) {
    int asked = 0;
    for (const auto end = now + time; now < end; now += 100ms) {
      const Next next = silence.look(now, 8s);
      if (next == Next::give_up) return -1;
      asked += next == Next::ask;
    }
    return asked;
  };
  EXPECT_EQ(7, look_for(7900ms));
  EXPECT_EQ(-1, look_for(1s));
  now += 1h;  // nobody has waited
  EXPECT_EQ(5, look_for(6s));
  silence.hear(now);
  EXPECT_EQ(7, look_for(7900ms));
  silence.hear(now);
  now += 5s;  // this process stood still
  EXPECT_EQ(7, look_for(7900ms));
  EXPECT_EQ(-1, look_for(1s));
}

}  // namespace
}  // namespace accord::test
