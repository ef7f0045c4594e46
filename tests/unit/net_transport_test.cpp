// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What collectives offer each other between nodes, by mail: a socket carries the names here in the
// host MPI's stead.
#include "coll/inter/net_transport.h"

#include "net_ranks.h"

namespace accord::test {
namespace {

using coll::Transport;

class Rank : public MailRank {
 public:
  Rank(End& end, std::uint32_t number) : MailRank(end, number) {
    open_mail({});
    transport.emplace(*mail, net::fallback_design(),
                      [](int rank) { return static_cast<std::uint32_t>(rank); });
  }
  bool reaches() {
    return wait([&] { return transport->reaches(static_cast<int>(other)); });
  }
  std::unique_ptr<Transport::End> offer(const DeviceBytes& from, Transport::Name& name) {
    return transport->offer(static_cast<int>(other), from.memory(), name);
  }
  std::unique_ptr<Transport::End> fetch(Transport::Name name, const DeviceBytes& to) {
    return transport->fetch(static_cast<int>(other), name, to.memory());
  }
  Status end_of(Transport::End& end) {
    Status status;
    const bool has_ended = wait([&] {
      bool ended = false;
      status = end.poll(ended);
      return ended;
    });
    return has_ended ? status : Status(StatusCode::unsupported, "does not end");
  }

  std::optional<coll::NetTransport> transport;
};

using NetTransportTest = TwoProcesses;

TEST_F(NetTransportTest, brings_what_is_offered_to_a_device_and_lets_go_what_is_not_wanted) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.reaches());
        const DeviceBytes wanted(pattern(kLong, 1));
        const DeviceBytes unwanted(pattern(kLong, 2));
        Transport::Name names[2] = {};
        const auto first = rank.offer(wanted, names[0]);
        const auto second = rank.offer(unwanted, names[1]);
        EXPECT_NE(names[0], 0u);
        rank.tell(names[0]);
        rank.tell(names[1]);
        EXPECT_OK(rank.end_of(*first));
        EXPECT_OK(rank.end_of(*second));
        rank.tell(1);
        (void)rank.hear<int>();
      },
      [](End& end) {
        Rank rank(end, 1);
        const auto wanted = rank.hear<Transport::Name>();
        const auto unwanted = rank.hear<Transport::Name>();
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const auto fetch = rank.fetch(wanted, to);
        rank.transport->dismiss(0, unwanted);
        const bool right = rank.end_of(*fetch).ok() && to.bytes() == pattern(kLong, 1);
        (void)rank.hear<int>();
        rank.tell(1);
        return right;
      });
}

TEST_F(NetTransportTest, what_is_withdrawn_ends_at_both_ends_with_an_error_that_names_its_sender) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.reaches());
        const DeviceBytes from(pattern(kLong, 1));
        Transport::Name name = 0;
        {
          const auto offer = rank.offer(from, name);
          offer->stop();
          EXPECT_OK(rank.end_of(*offer));
        }
        rank.tell(name);
        (void)rank.hear<int>();
      },
      [](End& end) {
        Rank rank(end, 1);
        const auto name = rank.hear<Transport::Name>();
        const DeviceBytes to(std::vector<char>(kLong, 'x'));
        const auto fetch = rank.fetch(name, to);
        const Status status = rank.end_of(*fetch);
        rank.tell(1);
        return status.code() == StatusCode::network &&
               status.message().find("rank 0") != std::string::npos;
      });
}

// Which is killed while it has asked for nothing, yet.
TEST_F(NetTransportTest, a_receiver_that_dies_ends_the_offer_with_an_error_that_names_it) {
  run(
      [](End& end) {
        Rank rank(end, 0);
        ASSERT_TRUE(rank.reaches());
        const DeviceBytes from(pattern(kLong, 1));
        Transport::Name name = 0;
        const auto offer = rank.offer(from, name);
        const auto receiver = rank.hear<pid_t>();
        ASSERT_GT(receiver, 0);
        ::kill(receiver, SIGKILL);
        const auto expect_named = [](const Status& status) {
          EXPECT_EQ(status.code(), StatusCode::network);
          EXPECT_NE(std::string(status.message()).find("rank 1"), std::string::npos)
              << status.message();
        };
        expect_named(rank.end_of(*offer));
        // So does a later one, which would hang elsewhere.
        ASSERT_TRUE(rank.transport->reaches(1));
        expect_named(rank.end_of(*rank.offer(from, name)));
      },
      [](End& end) {
        Rank rank(end, 1);
        (void)rank.reaches();
        rank.tell(::getpid());
        ::pause();
        return false;
      });
}

}  // namespace
}  // namespace accord::test
