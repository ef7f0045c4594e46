// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges by the CPU, among ranks of one process: what arrives where, and that nothing is
// taken before all of it has come, nor from another call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "device/host/inbox.h"
#include "support.h"

namespace accord::device {
namespace {

using test::pattern;
using Bytes = std::vector<unsigned char>;

constexpr std::size_t kLaneBytes = 1024;
constexpr unsigned char kPoison = 0xa5;

enum class Kind { bcast, gather, scatter, allgather, alltoall, reduce, allreduce, reduce_scatter };
constexpr Kind kKinds[] = {Kind::bcast,    Kind::gather, Kind::scatter,   Kind::allgather,
                           Kind::alltoall, Kind::reduce, Kind::allreduce, Kind::reduce_scatter};

bool reduces(Kind kind) { return kind >= Kind::reduce; }
bool sends_blocks(Kind kind) {
  return kind == Kind::scatter || kind == Kind::alltoall || kind == Kind::reduce_scatter;
}
bool takes_blocks(Kind kind) {
  return kind == Kind::gather || kind == Kind::allgather || kind == Kind::alltoall;
}
bool sends(Kind kind, int from, int to, int root) {
  if (kind == Kind::bcast || kind == Kind::scatter) return from == root;
  return (kind != Kind::gather && kind != Kind::reduce) || to == root;
}

// An inbox with what must stay as it is before and behind its lanes.
class Inbox {
 public:
  explicit Inbox(int ranks) : words_(inbox_bytes(ranks, kLaneBytes) / sizeof(InboxWord) + 1) {
    std::memset(data(), kPoison, kInboxHeaderBytes);
    std::memset(&words_.back(), kPoison, sizeof(InboxWord));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  bool intact() {
    const auto poisoned = [](std::byte* from, std::size_t size_bytes) {
      return std::all_of(from, from + size_bytes,
                         [](std::byte b) { return b == std::byte{kPoison}; });
    };
    return poisoned(data(), kInboxHeaderBytes) &&
           poisoned(reinterpret_cast<std::byte*>(&words_.back()), sizeof(InboxWord));
  }

 private:
  std::vector<InboxWord> words_;
};

// User memory at an odd address, poison around it.
class User {
 public:
  User(std::size_t size_bytes, std::size_t shift)
      : bytes_(size_bytes + 2 * kGuard, kPoison), shift_(shift), size_bytes_(size_bytes) {}
  unsigned char* data() { return bytes_.data() + shift_; }
  Bytes contents() const {
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(shift_);
    return {first, first + static_cast<std::ptrdiff_t>(size_bytes_)};
  }
  const Bytes& all() const { return bytes_; }
  bool intact() const {
    const auto poison = [](unsigned char byte) { return byte == kPoison; };
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(shift_);
    return std::all_of(bytes_.begin(), first, poison) &&
           std::all_of(first + static_cast<std::ptrdiff_t>(size_bytes_), bytes_.end(), poison);
  }

 private:
  static constexpr std::size_t kGuard = 32;
  Bytes bytes_;
  std::size_t shift_;
  std::size_t size_bytes_;
};

struct Shape {
  Kind kind = Kind::bcast;
  int ranks = 1;
  int root = 0;
  std::size_t block_bytes = 1;
  std::size_t shift = 0;
  bool in_place = false;
  ReduceOp op = ReduceOp::none;
  Element element = Element::none;
  bool in_packets = false;

  std::string text() const {
    return "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(ranks) +
           " ranks, root " + std::to_string(root) + ", " + std::to_string(block_bytes) +
           " bytes at " + std::to_string(shift) + (in_place ? ", in place" : "") +
           (in_packets ? ", in packets" : "");
  }
};

// All ranks of a node, one call after the other.
class Node {
 public:
  explicit Node(const Shape& shape) : shape_(shape) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      inboxes_.emplace_back(shape.ranks);
      addresses_.push_back(inboxes_.back().data());
    }
  }

  // New buffers, as in a call of this number.
  void start(std::uint32_t epoch, unsigned seed) {
    epoch_ = epoch;
    sent_.clear();
    send_.clear();
    recv_.clear();
    const auto ranks = static_cast<std::size_t>(shape_.ranks);
    const std::size_t all = shape_.block_bytes * ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      sent_.push_back(input(seed + static_cast<unsigned>(rank)));
      send_.emplace_back(all, shape_.shift);
      recv_.emplace_back(all, shape_.shift + 3);
      unsigned char* const source = shape_.in_place ? recv_[rank].data() : send_[rank].data();
      std::memcpy(source, sent_[rank].data(), all);
    }
  }

  InboxExchange exchange(int rank) {
    InboxExchange made;
    made.inbox = addresses_[static_cast<std::size_t>(rank)];
    made.inbox_number = 1;
    made.lane_bytes = kLaneBytes;
    made.rank = rank;
    made.epoch = epoch_;
    made.dst = recv(rank).data();
    made.src = shape_.in_place ? made.dst : send(rank).data();
    made.block_bytes = shape_.block_bytes;
    made.send_stride_bytes = sends_blocks(shape_.kind) ? shape_.block_bytes : 0;
    made.receive_stride_bytes = takes_blocks(shape_.kind) ? shape_.block_bytes : 0;
    for (int peer = 0; peer < shape_.ranks; ++peer) {
      if (sends(shape_.kind, rank, peer, shape_.root)) made.send_to |= inbox_bit(peer);
      if (sends(shape_.kind, peer, rank, shape_.root)) made.receive_from |= inbox_bit(peer);
    }
    made.op = shape_.op;
    made.element = shape_.element;
    made.in_packets = shape_.in_packets;
    return made;
  }

  void send_from(int rank) { inbox_send(exchange(rank), addresses_); }
  void send_from(const InboxExchange& some) { inbox_send(some, addresses_); }
  bool receive(int rank) { return inbox_receive(exchange(rank)); }

  User& send(int rank) { return send_[static_cast<std::size_t>(rank)]; }
  User& recv(int rank) { return recv_[static_cast<std::size_t>(rank)]; }

  // What `from` had for `to`.
  Bytes block(int from, int to) const {
    const Bytes& all = sent_[static_cast<std::size_t>(from)];
    const std::size_t first = sends_blocks(shape_.kind) ? static_cast<std::size_t>(to) : 0;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * shape_.block_bytes);
    return {begin, begin + static_cast<std::ptrdiff_t>(shape_.block_bytes)};
  }

  // The receive buffer of `rank` once it has received, by what the call means.
  Bytes expected(int rank) const {
    const auto ranks = static_cast<std::size_t>(shape_.ranks);
    Bytes result = shape_.in_place ? sent_[static_cast<std::size_t>(rank)]
                                   : Bytes(shape_.block_bytes * ranks, kPoison);
    const auto put = [&](const Bytes& bytes, std::size_t place) {
      std::copy(bytes.begin(), bytes.end(),
                result.begin() + static_cast<std::ptrdiff_t>(place * shape_.block_bytes));
    };
    Bytes sum;
    for (int peer = 0; peer < shape_.ranks; ++peer) {
      if (!sends(shape_.kind, peer, rank, shape_.root)) continue;
      const Bytes next = block(peer, rank);
      if (!reduces(shape_.kind)) {
        put(next, takes_blocks(shape_.kind) ? static_cast<std::size_t>(peer) : 0);
      } else {
        sum = sum.empty() ? next : combined(sum, next);
      }
    }
    if (!sum.empty()) put(sum, 0);
    return result;
  }

  void expect_intact() {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      EXPECT_TRUE(inboxes_[static_cast<std::size_t>(rank)].intact()) << shape_.text();
      EXPECT_TRUE(send(rank).intact() && recv(rank).intact()) << shape_.text();
      if (shape_.in_place) continue;
      EXPECT_EQ(sent_[static_cast<std::size_t>(rank)], send(rank).contents()) << shape_.text();
    }
  }

 private:
  // Sums of these floats depend on their order.
  Bytes input(unsigned seed) const {
    const std::size_t size_bytes = shape_.block_bytes * static_cast<std::size_t>(shape_.ranks);
    Bytes bytes = pattern(size_bytes, seed);
    if (shape_.element != Element::float32) return bytes;
    for (std::size_t at = 0; at < size_bytes; at += sizeof(float)) {
      const float value = static_cast<float>(bytes[at]) * (bytes[at + 1] % 2 == 0 ? 1e-7F : 1.0F);
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    return bytes;
  }

  template <class T>
  static Bytes sum(const Bytes& left, const Bytes& right) {
    Bytes result(left.size());
    for (std::size_t at = 0; at < left.size(); at += sizeof(T)) {
      T a;
      T b;
      std::memcpy(&a, left.data() + at, sizeof a);
      std::memcpy(&b, right.data() + at, sizeof b);
      const T c = static_cast<T>(a + b);
      std::memcpy(result.data() + at, &c, sizeof c);
    }
    return result;
  }
  Bytes combined(const Bytes& left, const Bytes& right) const {
    return shape_.element == Element::float32 ? sum<float>(left, right)
                                              : sum<unsigned char>(left, right);
  }

  const Shape shape_;
  std::vector<Inbox> inboxes_;
  std::vector<std::byte*> addresses_;
  std::uint32_t epoch_ = 0;
  std::vector<Bytes> sent_;
  std::vector<User> send_;
  std::vector<User> recv_;
};

// One call; the ranks send in an order that depends on its number, and each receives as soon as it
// can, which is only then.
void run_call(Node& node, const Shape& shape, std::uint32_t epoch) {
  node.start(epoch, epoch * 64);
  std::vector<bool> received(static_cast<std::size_t>(shape.ranks));
  const auto try_to_receive = [&](int rank, std::uint64_t senders_so_far) {
    if (received[static_cast<std::size_t>(rank)]) return;
    const InboxExchange exchange = node.exchange(rank);
    const Bytes as_it_was = node.recv(rank).all();
    const bool is_complete = (exchange.receive_from & ~senders_so_far) == 0;
    // All is sent before anything is received.
    if (is_complete && (senders_so_far & inbox_bit(rank)) == 0) return;
    ASSERT_EQ(is_complete, node.receive(rank)) << shape.text();
    if (!is_complete) {
      ASSERT_EQ(as_it_was, node.recv(rank).all()) << shape.text();
    } else {
      ASSERT_EQ(node.expected(rank), node.recv(rank).contents()) << shape.text();
      received[static_cast<std::size_t>(rank)] = true;
    }
  };
  std::uint64_t senders = 0;
  for (int step = 0; step < shape.ranks; ++step) {
    const int sender = (step + static_cast<int>(epoch % 5)) % shape.ranks;
    for (int rank = 0; rank < shape.ranks; ++rank) try_to_receive(rank, senders);
    node.send_from(sender);
    senders |= inbox_bit(sender);
  }
  for (int rank = 0; rank < shape.ranks; ++rank) try_to_receive(rank, senders);
  EXPECT_EQ(shape.ranks, std::count(received.begin(), received.end(), true)) << shape.text();
  node.expect_intact();
}

void run_calls(const Shape& shape) {
  Node node(shape);
  for (const std::uint32_t epoch : {1u, 2u, 3u}) run_call(node, shape, epoch);
}

// Where the CPU has packets, in these as well.
std::vector<bool> formats() {
  std::vector<bool> all{false};
  if (cpu_keeps_packets_whole()) all.push_back(true);
  return all;
}

std::vector<Shape> shapes_of(Kind kind, std::size_t block_bytes, std::size_t shift) {
  std::vector<Shape> shapes;
  const bool has_root = kind <= Kind::scatter || kind == Kind::reduce;  // the first three
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int root = 0; root < (has_root ? ranks : 1); ++root)
      for (const bool in_packets : formats())
        shapes.push_back({.kind = kind,
                          .ranks = ranks,
                          .root = root,
                          .block_bytes = block_bytes,
                          .shift = shift,
                          .in_packets = in_packets});
  }
  return shapes;
}

TEST(HostInbox, every_kind_moves_blocks_of_any_length_at_any_address) {
  for (const Kind kind : kKinds) {
    for (const std::size_t block_bytes : {1, 3, 15, 16, 17, 100, 1023, 1024}) {
      for (const std::size_t shift : {0, 1, 8}) {
        for (Shape shape : shapes_of(kind, block_bytes, shift)) {
          if (reduces(kind)) {
            shape.op = ReduceOp::sum;
            shape.element = Element::uint8;
          }
          run_calls(shape);
        }
      }
    }
  }
}

TEST(HostInbox, blocks_are_combined_in_the_order_of_the_ranks) {
  for (const Kind kind : {Kind::reduce, Kind::allreduce, Kind::reduce_scatter}) {
    for (const std::size_t block_bytes : {4, 12, 16, 20, 500}) {
      for (Shape shape : shapes_of(kind, block_bytes, 1)) {
        shape.op = ReduceOp::sum;
        shape.element = Element::float32;
        run_calls(shape);
      }
    }
  }
}

TEST(HostInbox, source_and_destination_may_be_one_buffer) {
  for (const Kind kind : {Kind::alltoall, Kind::allreduce, Kind::reduce_scatter, Kind::reduce}) {
    for (const std::size_t block_bytes : {5, 16, 333}) {
      for (Shape shape : shapes_of(kind, block_bytes, 2)) {
        shape.in_place = true;
        if (reduces(kind)) {
          shape.op = ReduceOp::sum;
          shape.element = Element::uint8;
        }
        run_calls(shape);
      }
    }
  }
}

TEST(HostInbox, data_of_another_call_is_never_taken) {
  Shape shape{.kind = Kind::allgather, .ranks = 3, .block_bytes = 100};
  shape.in_packets = formats().back();
  // Older ones, newer ones, and such as differ in one bit only.
  for (const std::uint32_t sent : {1u, 6u, 8u, 9u, 0x80000007u, 0xffffffffu}) {
    Node node(shape);
    node.start(sent, 1);
    for (int rank = 0; rank < shape.ranks; ++rank) node.send_from(rank);
    node.start(7, 2);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const Bytes before = node.recv(rank).all();
      EXPECT_FALSE(node.receive(rank)) << sent;
      EXPECT_EQ(before, node.recv(rank).all()) << sent;
    }
  }
}

// The lane then holds the beginning of one call and the end of another.
TEST(HostInbox, part_of_a_block_is_not_taken) {
  const Shape shape{.kind = Kind::allgather, .ranks = 2, .block_bytes = 100};
  for (std::size_t part_bytes = 1; part_bytes <= 96; part_bytes += 19) {
    Node node(shape);
    run_call(node, shape, 1);
    node.start(2, 99);
    node.send_from(1);
    InboxExchange part = node.exchange(0);
    part.block_bytes = part_bytes;
    node.send_from(part);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const Bytes before = node.recv(rank).all();
      EXPECT_FALSE(node.receive(rank)) << part_bytes;
      EXPECT_EQ(before, node.recv(rank).all()) << part_bytes;
    }
    node.send_from(0);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      EXPECT_TRUE(node.receive(rank)) << part_bytes;
      EXPECT_EQ(node.expected(rank), node.recv(rank).contents()) << part_bytes;
    }
  }
}

// Of a root that keeps its own block in its place.
TEST(HostInbox, who_is_left_out_is_neither_written_nor_awaited) {
  const Shape shape{.kind = Kind::gather, .ranks = 4, .root = 2, .block_bytes = 37};
  Node node(shape);
  node.start(1, 5);
  for (const int rank : {0, 1, 3}) node.send_from(rank);
  InboxExchange root = node.exchange(shape.root);
  EXPECT_FALSE(inbox_receive(root));
  root.receive_from &= ~inbox_bit(shape.root);
  ASSERT_TRUE(inbox_receive(root));
  Bytes expected = node.expected(shape.root);
  const auto own = expected.begin() + 2 * 37;
  std::fill(own, own + 37, kPoison);
  EXPECT_EQ(expected, node.recv(shape.root).contents());
  node.expect_intact();
}

// Each pair has a length of its own, among them none at all; blocks lie in any order.
TEST(HostInbox, lengths_may_differ_by_pair) {
  constexpr int kRanks = 4;
  constexpr std::size_t kRoom = 1100;  // for a block
  const auto length_of = [](int from, int to, unsigned call) {
    constexpr std::size_t kMenu[] = {0, 1, 15, 16, 17, 100, 1023, 1024};
    return kMenu[(static_cast<unsigned>(3 * from + 5 * to) + call) % std::size(kMenu)];
  };
  const auto place = [](int peer) {
    return static_cast<std::size_t>(kRanks - 1 - peer) * kRoom + 3;
  };
  std::vector<Inbox> inboxes(kRanks, Inbox(kRanks));
  std::vector<std::byte*> addresses;
  for (Inbox& inbox : inboxes) addresses.push_back(inbox.data());
  for (unsigned call = 1; call <= 8; ++call) {
    std::vector<Bytes> sent;
    std::vector<Bytes> received(kRanks, Bytes(kRanks * kRoom, kPoison));
    std::vector<std::vector<InboxPart>> parts(kRanks, std::vector<InboxPart>(kRanks));
    std::vector<InboxExchange> exchanges(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      sent.push_back(pattern(kRanks * kRoom, call * kRanks + static_cast<unsigned>(rank)));
      InboxExchange& exchange = exchanges[at];
      exchange.inbox = addresses[at];
      exchange.inbox_number = 1;
      exchange.lane_bytes = kLaneBytes;
      exchange.rank = rank;
      exchange.epoch = call;
      exchange.turn = call % kInboxLanesPerRank;
      for (int peer = 0; peer < kRanks; ++peer) {
        parts[at][static_cast<std::size_t>(peer)] = {.src = sent[at].data() + place(peer),
                                                     .dst = received[at].data() + place(peer),
                                                     .send_bytes = length_of(rank, peer, call),
                                                     .receive_bytes = length_of(peer, rank, call)};
        if (length_of(rank, peer, call) != 0) exchange.send_to |= inbox_bit(peer);
        if (length_of(peer, rank, call) != 0) exchange.receive_from |= inbox_bit(peer);
      }
      exchange.parts = parts[at];
    }
    for (int rank = 0; rank < kRanks; ++rank)
      inbox_send(exchanges[static_cast<std::size_t>(rank)], addresses);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      ASSERT_TRUE(inbox_receive(exchanges[at])) << call;
      Bytes expected(kRanks * kRoom, kPoison);
      for (int peer = 0; peer < kRanks; ++peer) {
        const Bytes& theirs = sent[static_cast<std::size_t>(peer)];
        const auto from = theirs.begin() + static_cast<std::ptrdiff_t>(place(rank));
        std::copy(from, from + static_cast<std::ptrdiff_t>(length_of(peer, rank, call)),
                  expected.begin() + static_cast<std::ptrdiff_t>(place(peer)));
      }
      EXPECT_EQ(expected, received[at]) << "call " << call << ", rank " << rank;
      EXPECT_TRUE(inboxes[at].intact());
    }
  }
}

}  // namespace
}  // namespace accord::device
