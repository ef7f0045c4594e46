// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned/node.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "core/partitioned/request.h"
#include "device/registry.h"
#include "node/handle_cache.h"

namespace accord::core {
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
  for (Rank& rank : ranks_) {
    for (void* const start : rank.opened) (void)node::handle_cache().close(start);
    rank.opened.clear();
  }
  descriptors_.clear();
}

// Kernels of the others may still write into this rank's words: of a round that has failed here, or
// where a rank marks a partition of which this one has no share.
void NodeReduction::part() {
  if (has_lent_ && !table_.is_closed()) (void)tell(wire::Kind::node_part, std::uint32_t{0});
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
Status NodeReduction::tell(wire::Kind kind, const Record& record) {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (is_own(rank)) continue;
    ACCORD_TRY(table_.channel().post(
        terms_.processes[rank],
        {.kind = kind, .to = terms_.name.number, .lineage = terms_.name.lineage}, record));
  }
  return {};
}

template <class Record>
bool NodeReduction::all(std::optional<Record> Rank::*what) const {
  return std::ranges::all_of(ranks_, [&](const Rank& rank) { return (rank.*what).has_value(); });
}

// Whether the device can do it at all, with this rank's memory. It then has loaded its kernels,
// which may wait for those that run: later those of the program may be waiting for this round.
Status NodeReduction::try_alone() {
  reduction_.partitions = terms_.partitions;
  reduction_.count = terms_.count;
  reduction_.op = terms_.op;
  reduction_.element = terms_.element;
  reduction_.ranks = static_cast<int>(size());
  reduction_.root = terms_.root;
  reduction_.by_packets = goes_by_packets(reduction_);
  device::PartitionReduction alone = reduction_;
  alone.ranks = 1;
  alone.by_packets = false;
  alone.root = device::PartitionReduction::kNoRoot;
  ACCORD_TRY(words_.take(
      runtime(), terms_.source.device,
      std::max(device::partition_memory_bytes(reduction_), device::partition_memory_bytes(alone))));
  alone.sources[0] = terms_.source.address(0);
  alone.targets[0] = terms_.target.address(0);
  alone.words[0] = reinterpret_cast<std::uint32_t*>(words_.data());
  std::unique_ptr<device::PartitionReducer> reducer;
  return runtime().make_partition_reducer(terms_.source.device, alone, arrived_, reducer);
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
  meet.vendor = std::hash<std::string_view>{}(runtime().name());
  meet.device = runtime().exclusive_device(terms_.source.device);
  meet.able = 1;
  return meet;
}

Status NodeReduction::open() {
  own().meet = own_meet();
  own().sent = true;
  return tell(wire::Kind::node_meet, *own().meet);
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
  std::set<std::uint64_t> devices;
  return size() <= static_cast<std::size_t>(device::kPartitionRanksMax) &&
         std::ranges::all_of(ranks_, [&](const Rank& rank) {
           const wire::NodeMeet& meet = *rank.meet;
           return meet.able != 0 && meet.fingerprint == first.fingerprint &&
                  meet.node == first.node && meet.network == first.network &&
                  meet.vendor == first.vendor &&
                  (meet.device == 0 || devices.insert(meet.device).second);
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
    ACCORD_TRY(tell(wire::Kind::node_lend, *own().lend));
    has_lent_ = true;
    descriptors_.clear();
    phase_ = Phase::opening;
  }
  // So that others have room for theirs.
  if (phase_ == Phase::opening && !all(&Rank::lend)) table_.port().receive();
  if (phase_ == Phase::opening && all(&Rank::lend)) vote(round, opening);
  if (own().vote && phase_ == Phase::opening) {
    ACCORD_TRY(tell(wire::Kind::node_vote, *own().vote));
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
  if (opened.ok())
    opened = runtime().make_partition_reducer(terms_.source.device, reduction_, arrived_, reducer_);
  own().vote = opened.ok() ? round : 0;
}

// This rank's own part, and what the others need of it.
Status NodeReduction::prepare() {
  const auto at = static_cast<std::size_t>(terms_.rank);
  reduction_.rank = terms_.rank;
  const std::size_t words_bytes = device::partition_memory_bytes(reduction_);
  const std::vector<std::byte> zeros(words_bytes);
  const device::Copy copy{.dst = words_.data(), .src = zeros.data(), .row_bytes = words_bytes};
  ACCORD_TRY(runtime().copy(terms_.source.device, {&copy, 1}));
  reduction_.sources[at] = terms_.source.address(0);
  reduction_.targets[at] = terms_.target.address(0);
  reduction_.words[at] = reinterpret_cast<std::uint32_t*>(words_.data());
  const std::size_t bytes = static_cast<std::size_t>(terms_.partitions) * terms_.count *
                            device::element_bytes(terms_.element);
  ACCORD_TRY(lend(reduction_.sources[at], bytes, own().lend->source));
  ACCORD_TRY(lend(reduction_.targets[at], bytes, own().lend->target));
  return lend(reduction_.words[at], words_bytes, own().lend->words);
}

Status NodeReduction::lend(const void* first, std::size_t size_bytes, wire::NodeMemory& memory) {
  const device::PointerInfo info = device::classify(first);
  const auto offset_bytes = static_cast<std::size_t>(static_cast<const std::byte*>(first) -
                                                     static_cast<const std::byte*>(info.base));
  if (info.base == nullptr || size_bytes > info.size_bytes - offset_bytes)
    return {StatusCode::unsupported, "partitioned: a buffer in several allocations"};
  device::ExportedMemory exported;
  ACCORD_TRY(runtime().export_memory(info.base, exported));
  node::Descriptor descriptor(exported.file_descriptor);
  if (exported.bytes.size() > wire::NodeMemory::kHandleBytesMax)
    return {StatusCode::unsupported, "partitioned: a memory handle is too long"};
  std::ranges::copy(exported.bytes, memory.handle);
  memory.handle_bytes = static_cast<std::uint32_t>(exported.bytes.size());
  memory.base = reinterpret_cast<std::uint64_t>(info.base);
  memory.buffer_id = info.buffer_id;
  memory.size_bytes = info.size_bytes;
  memory.offset_bytes = exported.offset_bytes + offset_bytes;
  memory.with_descriptor = descriptor.is_open() ? 1 : 0;
  if (descriptor.is_open()) descriptors_.push_back(std::move(descriptor));
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
  const std::uint32_t expected =
      lent.source.with_descriptor + lent.target.with_descriptor + lent.words.with_descriptor;
  const node::ParcelLabel label{.from = terms_.processes[rank], .item = item_, .generation = 1};
  if (expected != 0 && (!table_.port().take(label, parcel) || parcel.size() != expected))
    return {StatusCode::unsupported, "partitioned: the descriptors of a rank have not come"};
  std::reverse(parcel.begin(), parcel.end());
  std::byte* address = nullptr;
  ACCORD_TRY(open_memory(rank, lent.source, parcel, false, address));
  reduction_.sources[rank] = address;
  ACCORD_TRY(open_memory(rank, lent.target, parcel, false, address));
  reduction_.targets[rank] = address;
  ACCORD_TRY(open_memory(rank, lent.words, parcel, true, address));
  reduction_.words[rank] = reinterpret_cast<std::uint32_t*>(address);
  return {};
}

// The next descriptor is the last of the parcel. `keep`: for good.
Status NodeReduction::open_memory(std::size_t rank, const wire::NodeMemory& memory,
                                  std::vector<node::Descriptor>& parcel, bool keep,
                                  std::byte*& address) {
  const std::uint64_t process = ranks_[rank].meet->port.process;
  if (process == table_.port().address().process) {
    address = reinterpret_cast<std::byte*>(memory.base + memory.offset_bytes);
    return {};
  }
  node::Descriptor descriptor;
  if (memory.with_descriptor != 0) {
    descriptor = std::move(parcel.back());
    parcel.pop_back();
  }
  void* start = nullptr;
  ACCORD_TRY(node::handle_cache().open(
      runtime(), terms_.source.device,
      {.process = process,
       .descriptor = descriptor.number(),
       .base = memory.base,
       .buffer_id = memory.buffer_id,
       .size_bytes = memory.size_bytes,
       .handle = {memory.handle,
                  std::min<std::size_t>(memory.handle_bytes, wire::NodeMemory::kHandleBytesMax)}},
      start));
  if (!keep) ranks_[rank].opened.push_back(start);
  address = static_cast<std::byte*>(start) + memory.offset_bytes;
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

}  // namespace accord::core
