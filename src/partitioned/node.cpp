// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/node.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "device/registry.h"
#include "partitioned/request.h"

namespace accord::partitioned {
namespace {

static_assert(ACCORD_PARTITION_RANKS_MAX == device::kPartitionRanksMax);

// Below zero: those of messages from one to one are above.
std::int32_t next_item() {
  static std::atomic<std::int32_t> last{0};
  return --last;
}

// ACCORD_TEST_PACKETS: up to how many bytes of a partition, to all others; the same on all ranks.
bool goes_by_packets(const device::PartitionReduction& reduction) {
  const char* const text = std::getenv("ACCORD_TEST_PACKETS");
  return device::suits_packets(
      reduction, text == nullptr ? device::kPacketBytesMax : std::strtoull(text, nullptr, 10));
}

// Where the first of them begins, of those that there are.
std::byte* lowest(const std::vector<NodeReduction::Block>& blocks) {
  std::byte* low = nullptr;
  for (const NodeReduction::Block& block : blocks)
    if (block.count > 0 && (low == nullptr || std::less<>()(block.start, low))) low = block.start;
  return low;
}

template <class Record>
void keep(std::span<const std::byte> body, std::optional<Record>& record) {
  if (body.size() != sizeof(Record)) return;
  std::memcpy(&record.emplace(), body.data(), sizeof(Record));
}

}  // namespace

NodeReduction::NodeReduction(PartitionedTable& table, Terms terms, std::uint32_t* arrived)
    : table_(table),
      terms_(std::move(terms)),
      arrived_(arrived),
      item_(next_item()),
      ranks_(terms_.processes.size()) {}

NodeReduction::~NodeReduction() {
  close();
  part();
}

// What was opened of the others' words stays open: it is cut from slabs that they keep.
void NodeReduction::close() noexcept {
  reducer_.reset();
  for (Rank& rank : ranks_) rank.opened.clear();
  descriptors_.clear();
}

// Kernels of the others may still write into this rank's words: of a round that has failed here, or
// where a rank marks a partition of which this one has no share.
void NodeReduction::part() {
  if (has_lent_ && !table_.is_closed()) (void)tell_all(wire::Kind::node_part, std::uint32_t{0});
  if (own().vote.value_or(0) == 0) return;
  std::set<int> writers;
  for (std::size_t rank = 0; rank < size(); ++rank)
    if (!is_own(rank) && !ranks_[rank].parted) writers.insert(terms_.processes[rank]);
  table_.keep_until_parted(terms_.name, std::move(writers), std::move(words_));
}

// What others have sent and nobody opens would fill this process's socket.
void NodeReduction::drop_parcels() {
  for (const int process : terms_.processes)
    table_.port().drop({.from = process, .item = item_, .generation = 1});
}

template <class Record>
Status NodeReduction::tell(int process, wire::Kind kind, const Record& record) {
  return table_.channel().post(
      process, {.kind = kind, .to = terms_.name.number, .lineage = terms_.name.lineage}, record);
}

template <class Record>
Status NodeReduction::tell_all(wire::Kind kind, const Record& record) {
  for (std::size_t rank = 0; rank < size(); ++rank)
    if (!is_own(rank)) ACCORD_TRY(tell(terms_.processes[rank], kind, record));
  return {};
}

template <class Record>
bool NodeReduction::all(std::optional<Record> Rank::*what) const {
  return std::ranges::all_of(ranks_, [&](const Rank& rank) { return (rank.*what).has_value(); });
}

// Of what this rank does, but for pairs.
std::size_t NodeReduction::own_count() const {
  const auto at = static_cast<std::size_t>(terms_.rank);
  return std::max(terms_.sources[at].count, terms_.targets[at].count);
}

void NodeReduction::list_own_places() {
  const auto at = static_cast<std::size_t>(terms_.rank);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    places_.counts[rank] = terms_.sources[rank].count;
    if (terms_.shape.in_pairs || rank == at) places_.sources[rank] = terms_.sources[rank].start;
  }
  places_.targets[at] = terms_.targets[at].start;
}

// Whether the device can do it at all, with this rank's memory. It then has loaded its kernels,
// which may wait for those that run: later those of the program may be waiting for this round.
Status NodeReduction::try_alone() {
  const auto some = [](const std::vector<Block>& first, const std::vector<Block>& second) {
    for (const auto* const blocks : {&first, &second})
      for (const Block& block : *blocks)
        if (block.count > 0) return block;
    return Block{};
  };
  const Block source = some(terms_.sources, terms_.targets);
  const Block target = some(terms_.targets, terms_.sources);
  reduction_.rank = terms_.rank;
  reduction_.ranks = static_cast<int>(size());
  reduction_.partitions = terms_.partitions;
  reduction_.count = own_count();
  reduction_.op = terms_.op;
  reduction_.element = terms_.element;
  reduction_.by_packets = terms_.shape == device::PartitionShape{} && goes_by_packets(reduction_);
  list_own_places();
  // Sizes are the same wherever the others' are.
  std::byte elsewhere[2];
  device::PartitionPlaces places = places_;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (places.sources[rank] == nullptr) places.sources[rank] = &elsewhere[0];
    if (places.targets[rank] == nullptr) places.targets[rank] = &elsewhere[1];
  }
  device::PartitionReduction outline = reduction_;
  arrange(terms_.shape, places, outline);
  device::PartitionReduction alone;
  alone.ranks = 1;
  alone.partitions = terms_.partitions;
  alone.count = std::min(source.count, target.count);
  alone.op = terms_.op;
  alone.element = terms_.element;
  alone.givers = alone.awaited = {0, 1};
  alone.source_count = alone.target_count = 1;
  alone.sources[0] = source.start;
  alone.targets[0] = target.start;
  words_bytes_ = device::partition_memory_bytes(outline);
  ACCORD_TRY(words_.take(runtime(), terms_.device,
                         std::max(words_bytes_, device::partition_memory_bytes(alone))));
  alone.words[0] = reinterpret_cast<std::uint32_t*>(words_.data());
  std::unique_ptr<device::PartitionReducer> reducer;
  return runtime().make_partition_reducer(terms_.device, alone, arrived_, reducer);
}

wire::NodeMeet NodeReduction::own_meet() {
  const auto reduction =
      static_cast<std::uint64_t>(terms_.op) << 32 | static_cast<std::uint64_t>(terms_.element);
  wire::NodeMeet meet{.fingerprint = terms_.fingerprint ^ reduction,
                      .node = table_.node(),
                      .network = table_.network(),
                      .port = table_.port().address(),
                      .item = item_};
  if (!terms_.able || !table_.has_port() || !try_alone().ok()) return meet;
  meet.kernels = runtime().kernel_place(terms_.device);
  meet.able = 1;
  return meet;
}

Status NodeReduction::open() {
  own().meet = own_meet();
  own().sent = true;
  return tell_all(wire::Kind::node_meet, *own().meet);
}

NodeReduction::Rank* NodeReduction::find(int process) {
  const auto found = std::ranges::find(terms_.processes, process);
  if (found == terms_.processes.end()) return nullptr;
  return &ranks_[static_cast<std::size_t>(found - terms_.processes.begin())];
}

void NodeReduction::take(int process, wire::Kind kind, std::span<const std::byte> body) {
  Rank* const rank = find(process);
  if (rank == nullptr) return;
  if (kind == wire::Kind::node_meet) keep(body, rank->meet);
  if (kind == wire::Kind::node_lend) keep(body, rank->lend);
  if (kind == wire::Kind::node_vote) keep(body, rank->vote);
  if (kind == wire::Kind::node_part) rank->parted = true;
}

void NodeReduction::note_messages(int process, std::uint32_t round) {
  if (Rank* const rank = find(process)) rank->by_messages = round;
}

// From what all ranks know alike.
bool NodeReduction::can_be() const {
  const wire::NodeMeet& first = *ranks_.front().meet;
  std::vector<device::KernelPlace> kernels;
  for (const Rank& rank : ranks_) kernels.push_back(rank.meet->kernels);
  return size() <= static_cast<std::size_t>(device::kPartitionRanksMax) &&
         !device::take_turns(kernels) && std::ranges::all_of(ranks_, [&](const Rank& rank) {
           const wire::NodeMeet& meet = *rank.meet;
           return meet.able != 0 && meet.fingerprint == first.fingerprint &&
                  meet.node == first.node && meet.network == first.network;
         });
}

Status NodeReduction::join(std::uint32_t round, Opening opening) {
  if (opening == Opening::allowed) lend_own();
  if (phase_ == Phase::meeting && all(&Rank::meet)) {
    phase_ = can_be() ? Phase::lending : Phase::declined;
    if (phase_ == Phase::declined) descriptors_.clear();
  }
  if (phase_ == Phase::lending && own().lend) {
    bool done = false;
    if (!send_descriptors(done).ok()) own().lend->ok = 0;
    if (!done && own().lend->ok != 0) return {};
    ACCORD_TRY(tell_lend());
    has_lent_ = true;
    descriptors_.clear();
    phase_ = Phase::opening;
  }
  // So that others have room for theirs.
  if (phase_ == Phase::opening && !all(&Rank::lend)) table_.port().receive();
  if (phase_ == Phase::opening && all(&Rank::lend)) vote(round, opening);
  if (own().vote && phase_ == Phase::opening) {
    ACCORD_TRY(tell_all(wire::Kind::node_vote, *own().vote));
    phase_ = Phase::voting;
  }
  if (phase_ != Phase::voting || !all(&Rank::vote)) return {};
  if (std::ranges::any_of(ranks_, [](const Rank& rank) { return *rank.vote == 0; })) {
    phase_ = Phase::declined;
    drop_parcels();
    close();
  } else if (std::ranges::none_of(ranks_,
                                  [&](const Rank& rank) { return is_before(round, *rank.vote); })) {
    phase_ = Phase::used;
  }
  return {};
}

NodeReduction::Way NodeReduction::way(std::uint32_t round, Opening opening) const {
  if (phase_ == Phase::used) return Way::kernels;
  const bool is_too_early = !own().vote && opening == Opening::no;
  const auto goes_by_messages = [&](const Rank& rank) {
    return (rank.by_messages != 0 && !is_before(rank.by_messages, round)) ||
           (rank.vote && (*rank.vote == 0 || is_before(round, *rank.vote)));
  };
  if (phase_ == Phase::declined || is_too_early || std::ranges::any_of(ranks_, goes_by_messages))
    return Way::messages;
  return Way::unknown;
}

// Once, and before anything is known of the others, since the driver is asked for it.
void NodeReduction::lend_own() {
  if (own().lend || own().meet->able == 0) return;
  own().lend.emplace();
  own().lend->ok = prepare().ok() ? 1 : 0;
}

// Opens what the others lend, if that is allowed now: later, if not.
void NodeReduction::vote(std::uint32_t round, Opening opening) {
  const bool lent =
      std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.lend->ok != 0; });
  if (lent && opening == Opening::no) return;
  Status opened = lent ? open_all() : Status(StatusCode::unsupported, "");
  if (opened.ok()) {
    arrange(terms_.shape, places_, reduction_);
    opened = runtime().make_partition_reducer(terms_.device, reduction_, arrived_, reducer_);
  }
  own().vote = opened.ok() ? round : 0;
}

// This rank's own part, and what the others need of it.
Status NodeReduction::prepare() {
  const std::vector<std::byte> zeros(words_bytes_);
  const device::Copy copy{.dst = words_.data(), .src = zeros.data(), .row_bytes = words_bytes_};
  ACCORD_TRY(runtime().copy(terms_.device, {&copy, 1}));
  reduction_.words[terms_.rank] = reinterpret_cast<std::uint32_t*>(words_.data());
  if (terms_.shape.reads_others()) ACCORD_TRY(lend(terms_.sources, own().lend->source));
  if (terms_.shape.writes_others()) ACCORD_TRY(lend(terms_.targets, own().lend->target));
  return lend(words_.data(), words_bytes_, own().lend->words);
}

// All that lies between the first one and the last one.
Status NodeReduction::lend(const std::vector<Block>& blocks, wire::NodeMemory& memory) {
  std::byte* const low = lowest(blocks);
  std::size_t size_bytes = 0;
  for (const Block& block : blocks) {
    if (block.count == 0) continue;
    const std::size_t bytes = bytes_of(block.count) * static_cast<std::size_t>(terms_.partitions);
    size_bytes = std::max(size_bytes, static_cast<std::size_t>(block.start - low) + bytes);
  }
  return size_bytes == 0 ? Status() : lend(low, size_bytes, memory);
}

// To each rank what is for it.
Status NodeReduction::tell_lend() {
  const auto name = [&](const std::vector<Block>& blocks, std::size_t rank,
                        wire::NodeMemory& memory) {
    const Block& block = blocks[rank];
    if (block.start == nullptr) return;
    memory.partition_bytes = bytes_of(block.count);
    if (block.count > 0)
      memory.offset_bytes += static_cast<std::uint64_t>(block.start - lowest(blocks));
  };
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (is_own(rank)) continue;
    wire::NodeLend record = *own().lend;
    name(terms_.sources, rank, record.source);
    name(terms_.targets, rank, record.target);
    ACCORD_TRY(tell(terms_.processes[rank], wire::Kind::node_lend, record));
  }
  return {};
}

Status NodeReduction::lend(const void* first, std::size_t size_bytes, wire::NodeMemory& memory) {
  const device::PointerInfo info = device::classify(first);
  const auto offset_bytes = static_cast<std::size_t>(static_cast<const std::byte*>(first) -
                                                     static_cast<const std::byte*>(info.base));
  if (info.base == nullptr || size_bytes > info.size_bytes - offset_bytes)
    return {StatusCode::unsupported, "partitioned: a buffer in several allocations"};
  node::Registration registration;
  ACCORD_TRY(registration.make(runtime(), info, table_.port().address().process));
  memory.memory = registration.handle();
  memory.offset_bytes = offset_bytes;
  if (registration.descriptor().is_open())
    descriptors_.push_back(std::move(registration.descriptor()));
  return {};
}

// Several attempts where a socket is full.
Status NodeReduction::send_descriptors(bool& done) {
  done = true;
  if (descriptors_.empty()) return {};
  std::vector<int> numbers;
  for (const node::Descriptor& descriptor : descriptors_) numbers.push_back(descriptor.number());
  for (Rank& rank : ranks_) {
    const node::ParcelLabel label{
        .from = table_.own_process(), .item = rank.meet->item, .generation = 1};
    if (!rank.sent) ACCORD_TRY(table_.port().send(rank.meet->port, label, numbers, rank.sent));
    done = done && rank.sent;
  }
  if (!done) table_.port().receive();
  return {};
}

Status NodeReduction::open_all() {
  if (table_.declines()) return {StatusCode::unsupported, "partitioned: nothing is opened here"};
  for (std::size_t rank = 0; rank < size(); ++rank)
    if (!is_own(rank)) ACCORD_TRY(open_rank(rank));
  return {};
}

Status NodeReduction::open_rank(std::size_t rank) {
  const wire::NodeLend& lent = *ranks_[rank].lend;
  std::vector<node::Descriptor> parcel;
  std::uint32_t expected = 0;
  for (const auto* one : {&lent.source, &lent.target, &lent.words})
    expected += one->memory.with_descriptor;
  const node::ParcelLabel label{.from = terms_.processes[rank], .item = item_, .generation = 1};
  if (expected != 0 && (!table_.port().take(label, parcel) || parcel.size() != expected))
    return {StatusCode::unsupported, "partitioned: the descriptors of a rank have not come"};
  auto come = parcel.begin();
  const auto next = [&](const wire::NodeMemory& memory) {
    return memory.memory.with_descriptor == 0 ? node::Descriptor() : std::move(*come++);
  };
  const node::Descriptor of_source = next(lent.source);
  const node::Descriptor of_target = next(lent.target);
  const node::Descriptor of_words = next(lent.words);
  const auto number = static_cast<int>(rank);
  const device::PartitionShape& shape = terms_.shape;
  std::byte* address = nullptr;
  if (givers_of(shape, terms_.rank, reduction_.ranks).has(number)) {
    ACCORD_TRY(open_block(rank, lent.source, of_source, own_count(), address));
    places_.sources[rank] = address;
  }
  if (getters_of(shape, terms_.rank, reduction_.ranks).has(number)) {
    const std::size_t count = shape.in_pairs ? terms_.sources[rank].count : own_count();
    ACCORD_TRY(open_block(rank, lent.target, of_target, count, address));
    places_.targets[rank] = address;
  }
  ACCORD_TRY(open_memory(rank, lent.words, of_words, true, address));
  reduction_.words[rank] = reinterpret_cast<std::uint32_t*>(address);
  return {};
}

// Null where there is none. What does not fit goes by messages, which tell of it.
Status NodeReduction::open_block(std::size_t rank, const wire::NodeMemory& memory,
                                 const node::Descriptor& descriptor, std::size_t count,
                                 std::byte*& address) {
  address = nullptr;
  if (memory.partition_bytes == wire::NodeMemory::kNothing) return {};
  if (memory.partition_bytes != bytes_of(count))
    return {StatusCode::unsupported, "partitioned: the sizes of two ranks differ"};
  return count == 0 ? Status() : open_memory(rank, memory, descriptor, false, address);
}

// `keep`: for good.
Status NodeReduction::open_memory(std::size_t rank, const wire::NodeMemory& memory,
                                  const node::Descriptor& descriptor, bool keep,
                                  std::byte*& address) {
  node::PeerMemory opened;
  if (memory.memory.process == table_.port().address().process) {
    ACCORD_TRY(opened.refer(runtime(), memory.memory));
  } else {
    ACCORD_TRY(opened.open(runtime(), terms_.device, memory.memory, descriptor));
  }
  address = opened.start() + memory.offset_bytes;
  if (keep) opened.keep();
  ranks_[rank].opened.push_back(std::move(opened));
  return {};
}

void NodeReduction::describe(accord_prequest::accord_partition_node& shown) const {
  shown = {};
  shown.ranks = static_cast<std::uint32_t>(reduction_.ranks);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    auto* const words =
        static_cast<std::uint32_t*>(runtime().address_for_library(reduction_.words[rank]));
    shown.ready[rank] = words + device::ready_word(reduction_.ranks, 0, terms_.rank);
  }
}

}  // namespace accord::partitioned
