// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/pairs/bundles.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/config.h"
#include "base/rounding.h"

namespace accord::coll {
namespace {

// Of what one node sends another: that much memory is kept for it before it is known.
constexpr std::size_t kBytesBetweenNodesMax = std::size_t{8} << 20;
constexpr std::size_t kBlockAlignment = 16;

// In a list a block's size is a word, with these beside it.
constexpr std::uint64_t kTravels = 1;
constexpr std::uint64_t kGivenUp = 2;
constexpr unsigned kMarkBits = 2;

std::atomic<std::uint64_t> lists_begun{0};

constexpr std::size_t aligned(std::size_t size_bytes) {
  return round_up(size_bytes, kBlockAlignment);
}

constexpr std::size_t head_bytes(std::size_t blocks) {
  return aligned(blocks * sizeof(std::uint64_t));
}

std::uint64_t word_of(std::size_t size_bytes, bool travels, bool is_given_up) {
  return static_cast<std::uint64_t>(size_bytes) << kMarkBits | (travels ? kTravels : 0) |
         (is_given_up ? kGivenUp : 0);
}

std::size_t bytes_in_list(std::uint64_t word) {
  return (word & kTravels) != 0 ? aligned(static_cast<std::size_t>(word >> kMarkBits)) : 0;
}

bool is_of(node::Kind kind, const CollArgs& args) {
  return args.exchange && args.exchange->kind == kind;
}

std::size_t node_pairs(const core::Placement& placement) {
  const auto nodes = static_cast<std::size_t>(placement.nodes());
  return nodes * (nodes - 1);
}

std::size_t far_pairs(const core::Placement& placement) {
  const auto ranks = static_cast<std::size_t>(placement.ranks());
  std::size_t pairs = ranks * ranks;
  for (int node = 0; node < placement.nodes(); ++node)
    pairs -= placement.on(node).size() * placement.on(node).size();
  return pairs;
}

std::size_t block_bytes_max(const CollArgs& args) {
  return std::min({config().bundled_pair_bytes, config().packed_pair_bytes, args.parcel_bytes,
                   Bundles::kBlockBytesMax});
}

bool has_equal(const CollArgs& args) {
  return args.exchange && Bundles::take_equal(args.exchange->kind, args.exchange->block_bytes);
}

bool contains(std::span<const int> ranks, int rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

}  // namespace

// Not among neighbours, which are few: each node would tell every other one what it has for it.
bool Bundles::pay(const core::Placement& placement, const CollArgs& args) {
  constexpr std::size_t kPairsMin = 2;  // of ranks, for each of nodes
  const bool differ = args.exchange && node::goes_by_pairs(args.exchange->kind) &&
                      !node::is_among_neighbours(args.exchange->kind);
  return (differ || has_equal(args)) && block_bytes_max(args) != 0 &&
         far_pairs(placement) >= kPairsMin * node_pairs(placement);
}

// With 8 and 12 ranks on other nodes it takes 0.65 to 1 times as long as the host MPI's own call
// that is staged by hand, with 4 of them 0.9 to 1.6 times (bench/results/testbed, by TCP). An
// adapter that does RDMA sends a message in less time than it takes to hand a block to another rank
// of the node: with those equal blocks have not been measured.
bool Bundles::pay_alone(const core::Placement& placement, const CollArgs& args) {
  const auto ranks = static_cast<std::size_t>(placement.ranks());
  const bool is_measured = !has_equal(args) || !placement.has_rdma;
  return is_measured && pay(placement, args) && far_pairs(placement) >= kFarRanksMin * ranks;
}

// Blocks of twice that size take as long as by the host MPI's own call, and what only the root
// sends or receives a host MPI does as fast.
bool Bundles::take_all(const core::CallEnd& end, const CollArgs& args) {
  const bool of_all = is_of(node::Kind::alltoallv, args) || is_of(node::Kind::alltoallw, args);
  const std::size_t most_bytes = block_bytes_max(args) / 2;
  return of_all && most_bytes != 0 &&
         std::ranges::all_of(end.blocks, [=](const core::Segment& block) {
           return block.size_bytes() <= most_bytes;
         });
}

// Host MPIs send what all ranks get of one, or one of all, along trees: their messages are as few.
// Blocks of twice that size take up to 1.4 times as long, with 8 ranks a node.
bool Bundles::take_equal(node::Kind kind, std::size_t block_bytes) noexcept {
  constexpr std::size_t kPart = 8;
  const std::size_t most_bytes =
      std::min({config().bundled_pair_bytes, config().packed_pair_bytes, kBlockBytesMax}) / kPart;
  return kind == node::Kind::alltoall && block_bytes <= most_bytes;
}

std::uint64_t Bundles::messages() noexcept { return lists_begun.load(std::memory_order_relaxed); }

Bundles::Bundles(core::Wire& wire, const core::Placement& placement, device::DeviceRuntime& runtime,
                 const CollArgs& args, Tags tags)
    : wire_(wire),
      placement_(placement),
      runtime_(runtime),
      rank_(args.rank),
      node_(placement.node(args.rank)),
      tags_(tags),
      block_bytes_max_(block_bytes_max(args)),
      only_root_sends_(is_of(node::Kind::scatterv, args)),
      only_root_receives_(is_of(node::Kind::gatherv, args)),
      root_{args.exchange->root},
      arrived_(static_cast<std::size_t>(placement.ranks())) {}

std::span<const int> Bundles::root_on(int node) const {
  return std::span(root_).first(placement_.node(root_.front()) == node ? 1 : 0);
}

std::span<const int> Bundles::senders(int node) const {
  if (!only_root_sends_) return placement_.on(node);
  return root_on(node);
}

std::span<const int> Bundles::receivers(int node) const {
  if (!only_root_receives_) return placement_.on(node);
  return root_on(node);
}

bool Bundles::flows(int from_node, int to_node) const {
  return from_node != to_node && !senders(from_node).empty() && !receivers(to_node).empty();
}

// The other nodes are shared out among all that could.
int Bundles::carrier_out(int from_node, int to_node) const {
  const std::span<const int> ranks = senders(from_node);
  return ranks[static_cast<std::size_t>(to_node) % ranks.size()];
}
int Bundles::carrier_in(int from_node, int to_node) const {
  const std::span<const int> ranks = receivers(to_node);
  return ranks[static_cast<std::size_t>(from_node) % ranks.size()];
}

// It is named by who carries it.
int Bundles::list_of(int peer, bool sends) const {
  const int node = placement_.node(peer);
  return sends ? carrier_out(node_, node) : carrier_in(node, node_);
}

std::size_t Bundles::bytes_max(int from_node, int to_node) const {
  const std::size_t pairs = senders(from_node).size() * receivers(to_node).size();
  return std::min(block_bytes_max_, kBytesBetweenNodesMax / pairs);
}

bool Bundles::takes(int from, int to, std::size_t size_bytes) const {
  const int from_node = placement_.node(from);
  const int to_node = placement_.node(to);
  return size_bytes != 0 && flows(from_node, to_node) &&
         size_bytes <= bytes_max(from_node, to_node);
}

Status Bundles::begin(std::vector<std::size_t> sizes) {
  sizes_ = std::move(sizes);
  places_.assign(sizes_.size(), nullptr);
  find_lists();
  return prepare();
}

// Lists by their peers, each of which is looked up once for a node.
class Bundles::ByPeer {
 public:
  ByPeer(Lists& lists, bool sends, int tag) : lists_(lists), sends_(sends), tag_(tag) {}
  void add(int peer, int node) {
    const auto [known, is_new] = places_.try_emplace(peer, lists_.size());
    if (is_new) lists_.push_back(List{.peer = peer, .sends = sends_, .tag = tag_});
    lists_[known->second].nodes.push_back(node);
  }

 private:
  Lists& lists_;
  const bool sends_;
  const int tag_;
  std::unordered_map<int, std::size_t> places_;
};

// Any two ranks send each other no more than one list with a tag.
void Bundles::find_lists() {
  ByPeer given(given_, true, tags_.in);
  ByPeer sent(sent_, true, tags_.in);
  ByPeer collected(collected_, false, tags_.in);
  ByPeer received(received_, false, tags_.out);
  ByPeer got(got_, false, tags_.in);
  ByPeer handed(handed_, true, tags_.out);
  const bool is_sender = contains(senders(node_), rank_);
  const bool is_receiver = contains(receivers(node_), rank_);
  for (int node = 0; node < placement_.nodes(); ++node) {
    if (flows(node_, node)) {
      const int carrier = carrier_out(node_, node);
      if (is_sender) given.add(carrier, node);
      if (carrier == rank_) {
        sent.add(carrier_in(node_, node), node);
        for (const int from : senders(node_)) collected.add(from, node);
      }
    }
    if (flows(node, node_)) {
      const int carrier = carrier_in(node, node_);
      if (is_receiver) received.add(carrier, node);
      if (carrier == rank_) {
        got.add(carrier_out(node, node_), node);
        for (const int to : receivers(node_)) handed.add(to, node);
      }
    }
  }
}

Status Bundles::prepare() {
  for (List& list : given_)
    if (list.memory.empty() && !list.has_ended) ACCORD_TRY(unless_stopping(list, lay_out(list)));
  const auto expect = [this](Lists& lists, auto blocks_of) -> Status {
    for (List& list : lists) {
      if (list.peer == rank_ || !list.memory.empty() || list.has_ended) continue;
      std::size_t blocks = 0;
      std::size_t length_bytes = 0;
      for (const int node : list.nodes) {
        const auto [count, bytes] = blocks_of(node);
        blocks += count;
        length_bytes += count * aligned(bytes);
      }
      ACCORD_TRY(unless_stopping(list, make_room(list, head_bytes(blocks) + length_bytes)));
    }
    return {};
  };
  using Some = std::pair<std::size_t, std::size_t>;
  ACCORD_TRY(expect(collected_, [this](int node) {
    return Some(receivers(node).size(), bytes_max(node_, node));
  }));
  ACCORD_TRY(expect(got_, [this](int node) {
    return Some(senders(node).size() * receivers(node_).size(), bytes_max(node, node_));
  }));
  ACCORD_TRY(expect(
      received_, [this](int node) { return Some(senders(node).size(), bytes_max(node, node_)); }));
  is_prepared_ = true;
  return {};
}

// Then what cannot be is as if it had failed.
Status Bundles::unless_stopping(List& list, Status status) const {
  if (status.ok() || !is_stopping_) return status;
  list.has_failed = list.has_ended = true;
  return {};
}

// What is page-locked is copied faster, but any memory will do.
Status Bundles::make_room(List& list, std::size_t length_bytes) {
  list.length_bytes = length_bytes;
  if (device::staging_pool().acquire(&runtime_, length_bytes, list.memory).ok()) return {};
  return device::staging_pool().acquire_sparse(length_bytes, list.memory);
}

Status Bundles::put_head(List& list, const std::vector<std::uint64_t>& words) {
  std::size_t length_bytes = head_bytes(words.size());
  for (const std::uint64_t word : words) length_bytes += bytes_in_list(word);
  ACCORD_TRY(make_room(list, length_bytes));
  std::memcpy(list.bytes(), words.data(), words.size() * sizeof(std::uint64_t));
  return {};
}

// This rank's own, which is packed there.
Status Bundles::lay_out(List& list) {
  std::vector<int> peers;
  for (const int node : list.nodes)
    peers.insert(peers.end(), receivers(node).begin(), receivers(node).end());
  std::vector<std::uint64_t> words;
  for (const int peer : peers) {
    const std::size_t size_bytes = sizes_[static_cast<std::size_t>(peer)];
    const bool travels = !is_given_up_ && takes(rank_, peer, size_bytes);
    words.push_back(word_of(size_bytes, travels, is_given_up_));
  }
  ACCORD_TRY(put_head(list, words));
  std::byte* next = list.bytes() + head_bytes(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if ((words[i] & kTravels) != 0) places_[static_cast<std::size_t>(peers[i])] = next;
    next += bytes_in_list(words[i]);
  }
  return {};
}

Status Bundles::write(List& list, const Blocks& blocks) {
  std::vector<std::uint64_t> words;
  for (const Block& block : blocks)
    words.push_back(word_of(block.size_bytes, block.bytes != nullptr, block.is_given_up));
  ACCORD_TRY(put_head(list, words));
  std::byte* next = list.bytes() + head_bytes(words.size());
  for (const Block& block : blocks) {
    if (block.bytes == nullptr) continue;
    std::memcpy(next, block.bytes, block.size_bytes);
    next += aligned(block.size_bytes);
  }
  return {};
}

// Of a list that has not come as it should nothing is known but that.
Bundles::Blocks Bundles::read(const List& list, std::size_t count) {
  Blocks blocks(count, {.is_given_up = true});
  if (list.has_failed || list.length_bytes < head_bytes(count)) return blocks;
  std::size_t next = head_bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, list.bytes() + i * sizeof word, sizeof word);
    const std::size_t size_bytes = static_cast<std::size_t>(word >> kMarkBits);
    const bool travels = (word & kTravels) != 0;
    if (travels && list.length_bytes - next < bytes_in_list(word)) break;
    blocks[i] = {size_bytes, travels ? list.bytes() + next : nullptr, (word & kGivenUp) != 0};
    next += bytes_in_list(word);
  }
  return blocks;
}

// The bytes may be being packed still: nothing is sent of them.
void Bundles::give_up() noexcept {
  is_stopping_ = true;
  if (std::exchange(is_packed_, true)) return;
  is_given_up_ = true;
  for (List& list : given_) {
    if (list.memory.empty()) continue;
    std::size_t blocks = 0;
    for (const int node : list.nodes) blocks += receivers(node).size();
    for (std::size_t i = 0; i < blocks; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, list.bytes() + i * sizeof word, sizeof word);
      word = (word & ~kTravels) | kGivenUp;
      std::memcpy(list.bytes() + i * sizeof word, &word, sizeof word);
    }
    list.length_bytes = head_bytes(blocks);
  }
}

Status Bundles::advance(bool& moved) {
  if (is_done_) return {};
  if (!is_prepared_) ACCORD_TRY(prepare());
  Status status;
  const auto look_after = [&](Lists& lists) { keep_first(status, poll(lists, moved)); };
  if (is_packed_) {
    keep_own(given_, collected_);
    look_after(given_);
  }
  look_after(collected_);
  if (!has_carried_ && is_packed_ && all_ended(collected_)) ACCORD_TRY(carry());
  if (has_carried_) look_after(sent_);
  look_after(got_);
  if (!has_handed_out_ && all_ended(got_)) ACCORD_TRY(hand_out());
  if (has_handed_out_) look_after(handed_);
  look_after(received_);
  if (is_stopping_) withdraw_receives();
  if (!has_arrived_ && all_ended(received_)) take_in();
  is_done_ =
      has_carried_ && has_arrived_ && all_ended(given_) && all_ended(sent_) && all_ended(handed_);
  return status;
}

// Where a message of this rank's could not be sent the others may wait for it before they send.
void Bundles::withdraw_receives() {
  const auto failed = [](const Lists& lists) {
    return std::ranges::any_of(lists, &List::has_failed);
  };
  if (!failed(given_) && !failed(sent_) && !failed(handed_)) return;
  for (Lists* const lists : {&collected_, &got_, &received_}) {
    for (List& list : *lists) {
      if (list.peer == rank_ || list.has_ended) continue;
      if (list.is_posted) wire_.cancel(list.request);
      list.has_failed = list.has_ended = true;
    }
  }
}

Status Bundles::poll(Lists& lists, bool& moved) {
  Status status;
  for (List& list : lists) {
    if (list.has_ended || list.peer == rank_) continue;
    keep_first(status, poll(list));
    moved = moved || list.has_ended;
  }
  return status;
}

// Begins what has not begun, and looks after the rest.
Status Bundles::poll(List& list) {
  if (!list.is_posted) {
    const Status begun = begin(list);
    list.is_posted = begun.ok();
    if (!begun.ok()) {
      const bool again = std::exchange(list.was_refused, true);
      list.has_failed = list.has_ended = again && is_stopping_;
      return begun;
    }
  }
  core::Completion completion;
  const Status tested = wire_.test(list.request, list.has_ended, completion);
  list.has_failed = !tested.ok();
  list.has_ended = list.has_ended || list.has_failed;
  if (list.has_ended && !list.sends) list.length_bytes = completion.received_bytes;
  return tested;
}

Status Bundles::begin(List& list) {
  ACCORD_TRY(
      list.sends
          ? wire_.send(list.peer, list.tag, list.bytes(), list.length_bytes, list.request)
          : wire_.receive(list.peer, list.tag, list.bytes(), list.length_bytes, list.request));
  lists_begun.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// What this rank gives itself.
void Bundles::keep_own(Lists& sent, Lists& received) {
  const auto own = std::ranges::find(sent, rank_, &List::peer);
  if (own == sent.end()) return;
  const auto kept = std::ranges::find(received, rank_, &List::peer);
  if (kept->has_ended) return;
  kept->memory = std::move(own->memory);
  kept->length_bytes = own->length_bytes;
  kept->has_failed = own->has_failed;
  own->has_ended = true;
  kept->has_ended = true;
}

bool Bundles::all_ended(const Lists& lists) { return std::ranges::all_of(lists, &List::has_ended); }

// Of each rank of this node the part for each other one.
Status Bundles::carry() {
  std::vector<Blocks> collected;
  for (const List& list : collected_) {
    std::size_t blocks = 0;
    for (const int node : list.nodes) blocks += receivers(node).size();
    collected.push_back(read(list, blocks));
  }
  std::size_t first = 0;
  for (List& list : sent_) {
    const std::size_t count = receivers(list.nodes.front()).size();
    Blocks blocks;
    for (const Blocks& of_rank : collected)
      blocks.insert(blocks.end(), of_rank.begin() + static_cast<std::ptrdiff_t>(first),
                    of_rank.begin() + static_cast<std::ptrdiff_t>(first + count));
    if (list.memory.empty()) ACCORD_TRY(unless_stopping(list, write(list, blocks)));
    first += count;
  }
  has_carried_ = true;
  return {};
}

// Of each other node the part for each rank of this one.
Status Bundles::hand_out() {
  const std::size_t ranks = receivers(node_).size();
  std::vector<Blocks> got;
  for (const List& list : got_)
    got.push_back(read(list, senders(list.nodes.front()).size() * ranks));
  for (std::size_t rank = 0; rank < handed_.size(); ++rank) {
    List& list = handed_[rank];
    Blocks blocks;
    for (const Blocks& of_node : got)
      for (std::size_t at = rank; at < of_node.size(); at += ranks) blocks.push_back(of_node[at]);
    if (list.memory.empty()) ACCORD_TRY(unless_stopping(list, write(list, blocks)));
  }
  has_handed_out_ = true;
  keep_own(handed_, received_);
  return {};
}

void Bundles::take_in() {
  for (const List& list : received_) {
    std::vector<int> peers;
    for (const int node : list.nodes)
      peers.insert(peers.end(), senders(node).begin(), senders(node).end());
    const Blocks blocks = read(list, peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i)
      arrived_[static_cast<std::size_t>(peers[i])] = blocks[i];
  }
  has_arrived_ = true;
}

}  // namespace accord::coll
