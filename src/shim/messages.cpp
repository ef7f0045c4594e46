// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/messages.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "coll/select/selection.h"
#include "device/adapter_reach.h"
#include "node/group.h"
#include "node/node_number.h"
#include "p2p/loan.h"
#include "shim/lineage.h"
#include "shim/posted_receives.h"
#include "shim/type_contents.h"

namespace accord::shim {
namespace {

// Each keeps a descriptor of each other one, and what they share grows with the square.
constexpr int kOutboxRanksMax = node::OutboxBoard::kRanksMax;

// At least, of memory that is page-locked.
constexpr std::size_t kStagedBytesPerNanosecond = 8;

struct NodeMates {
  MPI_Comm comm = MPI_COMM_NULL;  // the ranks of this node
  std::shared_ptr<node::Group> group;
  std::optional<node::Outbox> outbox;
};

// Never destroyed: MPI may be called from destructors of the program.
NodeMates& node_mates() {
  static NodeMates& instance = *new NodeMates;
  return instance;
}

// Whether all ranks of the node could; takes what their sockets bring meanwhile.
bool all_could(bool could) {
  NodeMates& here = node_mates();
  const int mine = could ? 1 : 0;
  int all = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (host::Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, here.comm, &request) != MPI_SUCCESS)
    return false;
  for (int done = 0; done == 0; engine().port().pause()) {
    here.group->receive();
    if (host::Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
  }
  return all != 0;
}

Status send_all(node::Group& group) {
  for (bool sent = false; !sent; engine().port().pause()) {
    ACCORD_TRY(group.send(sent));
    group.receive();
  }
  return {};
}

// All ranks of the node or none.
Status join_group() {
  NodeMates& here = node_mates();
  int rank = 0;
  int size = 1;
  ACCORD_TRY(Status::from_host(host::Comm_rank(here.comm, &rank)));
  ACCORD_TRY(Status::from_host(host::Comm_size(here.comm, &size)));
  if (size == 1) return {StatusCode::unsupported, "this rank is alone on its node"};
  if (size > kOutboxRanksMax) return {StatusCode::unsupported, "too many ranks on this node"};
  here.group = std::shared_ptr<node::Group>(new node::Group, node::Group::retire);
  node::Record mine;
  const Status made =
      here.group->prepare(rank, size, device::default_runtime(), -1, {.of_messages = true}, mine);
  std::vector<node::Record> records(static_cast<std::size_t>(size));
  constexpr int kRecordBytes = sizeof mine;
  ACCORD_TRY(Status::from_host(host::Allgather(&mine, kRecordBytes, MPI_BYTE, records.data(),
                                               kRecordBytes, MPI_BYTE, here.comm)));
  ACCORD_TRY(made);
  ACCORD_TRY(here.group->accept(records));
  Status status = send_all(*here.group);
  const bool all_sent = all_could(status.ok());
  ACCORD_TRY(status);
  const Status declined(StatusCode::unsupported, "another rank cannot take part");
  if (!all_sent) return declined;  // which the one that could not send knows, too
  status = here.group->open();
  const bool all_open = all_could(status.ok());
  ACCORD_TRY(status);
  return all_open ? Status() : declined;
}

void let_go() {
  NodeMates& here = node_mates();
  here.outbox.reset();
  here.group.reset();
  if (here.comm != MPI_COMM_NULL) (void)host::Comm_free(&here.comm);
}

// The size in bytes that all basic elements of a type have; 0: they differ, or nothing is known.
std::size_t common_element(MPI_Datatype datatype);

std::size_t named_element(MPI_Datatype datatype) {
  MPI_Count size = 0;
  if (datatype == MPI_PACKED || host::Type_size_x(datatype, &size) != MPI_SUCCESS) return 0;
  // Others of 16 bytes have padding that some MPIs do not move.
  const bool is_complex = datatype == MPI_C_DOUBLE_COMPLEX || datatype == MPI_DOUBLE_COMPLEX ||
                          datatype == MPI_CXX_DOUBLE_COMPLEX;
  return is_complex || size == 1 || size == 2 || size == 4 || size == 8
             ? static_cast<std::size_t>(size)
             : 0;
}

std::size_t common_element(MPI_Datatype datatype) {
  const int combiner = combiner_of(datatype);
  if (combiner == MPI_UNDEFINED) return 0;
  if (combiner == MPI_COMBINER_NAMED) return named_element(datatype);
  const TypeContents contents(datatype);
  const auto& parts = contents.types();
  if (parts.empty()) return 0;
  const std::size_t common = common_element(parts[0]);
  const bool alike = std::ranges::all_of(
      parts, [&](MPI_Datatype part) { return part == parts[0] || common_element(part) == common; });
  return alike ? common : 0;
}

void find_node_ranks(MPI_Comm comm, CommState& state) {
  if (state.inter) return;
  MPI_Group theirs = MPI_GROUP_NULL;
  MPI_Group node = MPI_GROUP_NULL;
  std::vector<int> ranks(static_cast<std::size_t>(state.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> found(ranks.size(), MPI_UNDEFINED);
  if (host::Comm_group(comm, &theirs) != MPI_SUCCESS) return;
  if (host::Comm_group(node_mates().comm, &node) == MPI_SUCCESS) {
    (void)host::Group_translate_ranks(theirs, state.size, ranks.data(), node, found.data());
    (void)host::Group_free(&node);
  }
  (void)host::Group_free(&theirs);
  std::ranges::replace(found, MPI_UNDEFINED, -1);
  state.node_ranks = std::move(found);
}

// The ranks of this node, or of this part of it.
Status find_neighbours(MPI_Comm& comm) {
  ACCORD_TRY(Status::from_host(
      host::Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm)));
  const auto part = node::own_part();
  if (!part) return {};
  MPI_Comm of_machine = comm;
  const int code = host::Comm_split(of_machine, *part, 0, &comm);
  (void)host::Comm_free(&of_machine);
  return Status::from_host(code);
}

// The first rank of a node, as MPI_COMM_WORLD calls it.
int first_of(MPI_Comm node) {
  int rank = 0;
  (void)host::Comm_rank(MPI_COMM_WORLD, &rank);
  (void)host::Bcast(&rank, 1, MPI_INT, 0, node);
  return rank;
}

}  // namespace

void join_messages() {
  const bool may_be_far = coll::may_go_by_design(coll::sources_with(nullptr));
  if (config().p2p_bytes == 0 && !may_be_far) return;
  NodeMates& here = node_mates();
  Status joined = find_neighbours(here.comm);
  if (joined.ok()) {
    (void)host::Comm_set_errhandler(here.comm, MPI_ERRORS_RETURN);
    if (may_be_far) join_net_messages(first_of(here.comm));
    joined = config().p2p_bytes != 0 ? join_group()
                                     : Status(StatusCode::unsupported, "ACCORD_P2P_BYTES is 0");
  }
  messaging.node_joined = joined.ok();
  messaging.joined = messaging.node_joined || messaging.net_joined;
  if (messaging.node_joined) {
    here.outbox.emplace(here.group, config().outbox_bytes);
    start_lineages();
    core::CallWatch::has_boards.store(true);
    engine().count_waits_in(&outbox().own_board().waits);
  } else {
    log::info("messages within the node are staged through the host: {}", joined.message());
    let_go();
  }
}

void stop_messages() {
  stop_posted_receives();
  if (messaging.node_joined) outbox().leave();
  if (messaging.net_joined) net_messages().leave();
}

// A message may wait until its receiver comes here, too, and nothing is freed that a peer has open.
void leave_messages() {
  messaging.joined = false;
  leave_net_messages();
  if (!messaging.node_joined) return;
  messaging.node_joined = false;
  core::CallWatch::has_boards.store(false);
  stop_lineages();
  engine().count_waits_in(nullptr);
  NodeMates& here = node_mates();
  (void)host::Barrier(here.comm);
  const node::Outbox::Counters counters = here.outbox->counters();
  log::info(
      "node: this rank has sent {} messages by headers ({} of them lent, {} of these moved, {} of "
      "these to host memory) and fetched {} ({} of them by a kernel)",
      counters.sent, counters.lent, counters.moved, counters.spilled, counters.fetched,
      counters.quick);
  here.outbox->close();
  (void)host::Barrier(here.comm);
  let_go();
}

node::Outbox& outbox() { return *node_mates().outbox; }

namespace {

bool is_of_net(const node::MessageHeader& header) {
  return messaging.net_joined && net_messages().is_own(header);
}

}  // namespace

node::Lender& lender_of(const node::MessageHeader& header) {
  if (is_of_net(header)) return net_messages();
  return outbox();
}

node::Lender* find_lender(const core::Segment& segment, void* host, std::size_t received_bytes,
                          node::MessageHeader& header) {
  if (messaging.node_joined && p2p::find_header(outbox(), segment, host, received_bytes, header))
    return &outbox();
  if (messaging.net_joined &&
      p2p::find_header(net_messages(), segment, host, received_bytes, header))
    return &net_messages();
  return nullptr;
}

bool find_header(std::span<const std::byte> message, node::MessageHeader& header) {
  return (messaging.node_joined && p2p::find_header(outbox(), message, header)) ||
         (messaging.net_joined && p2p::find_header(net_messages(), message, header));
}

const char* path_of(const node::MessageHeader& header) {
  return is_of_net(header) ? net_messages().path_of(header) : "node-p2p";
}

namespace {

// On the device that this process uses, if it uses one. Asking takes a call of the driver, which a
// program that receives into host memory makes now and then only.
void attach_to_device_in_use() {
  constexpr unsigned kCallsPerLook = 64;
  static std::atomic<unsigned> calls{0};
  if (calls.fetch_add(1, std::memory_order_relaxed) % kCallsPerLook != 0) return;
  device::DeviceRuntime& runtime = device::default_runtime();
  const int device = runtime.device_in_use();
  if (device >= 0) (void)outbox().attach(runtime, device);
}

// From now on headers may come here, unless a receive may be under way in which nobody would look
// for one. To be called before a sender can know, and once this rank uses a device.
bool begin_to_listen() {
  // Pairs with those of receives that nobody looks after.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!messaging.hears_headers.load() &&
      (messaging.has_blind_requests.load() || messaging.blind_calls.load() != 0))
    return false;
  messaging.hears_headers.store(true);
  return true;
}

// Peers send headers to who has opened what they lend. A rank reads its own memory without that.
bool may_send_header(int receiver) {
  return receiver != node_mates().group->rank() || (outbox().is_attached() && begin_to_listen());
}

}  // namespace

void attend() {
  // What this rank lends and its program has freed is found, though it sends nothing any more.
  constexpr unsigned kCallsPerLook = 256;
  static thread_local unsigned calls = 0;
  const bool is_invited = messaging.net_joined && net_mail().is_invited();
  if (!messaging.node_joined && !is_invited) return;
  const bool looks = messaging.hears_headers.load() && ++calls % kCallsPerLook == 0;
  if (!looks && !is_invited && !(messaging.node_joined && outbox().has_news())) return;
  if (messaging.node_joined && !outbox().is_attached()) attach_to_device_in_use();
  const bool is_attached = messaging.node_joined && outbox().is_attached();
  if (!is_attached && !is_invited) return;
  if (!begin_to_listen()) return;
  if (is_attached) outbox().follow();
  if (is_invited) net_mail().accept_invitations();
}

void attend(const core::StagedBuffer& buffer) {
  const device::PointerInfo& where = buffer.where();
  if (messaging.node_joined && !outbox().is_attached() && buffer.is_staged() &&
      where.kind == device::MemoryKind::device && where.runtime != nullptr)
    (void)outbox().attach(*where.runtime, where.device);
  if (messaging.node_joined && outbox().is_attached()) outbox().look_for_turns();
  attend();
}

coll::MessageWay way_of_message(MPI_Comm comm, std::size_t size_bytes) {
  const CommState* const state = comm_state(comm);
  const coll::AlgorithmChoice* const info = state != nullptr ? state->algorithms.get() : nullptr;
  return coll::outcome(size_bytes, coll::asked_for_message(coll::sources_with(info), size_bytes));
}

const net::Design* design_of_message(MPI_Comm comm, const core::StagedBuffer& buffer,
                                     std::size_t size_bytes) {
  const CommState* const state = comm_state(comm);
  const coll::AlgorithmChoice* const info = state != nullptr ? state->algorithms.get() : nullptr;
  return design_of_bytes(info, buffer.where(), size_bytes);
}

const net::Design* design_of_bytes(const coll::AlgorithmChoice* info,
                                   const device::PointerInfo& where, std::size_t size_bytes) {
  const auto asked = coll::asked_for_net_message(coll::sources_with(info), size_bytes);
  const coll::NetWay way = coll::outcome(size_bytes, asked,
                                         {.is_reached = net_mail().reaches(where),
                                          .adapters = device::adapter_reach(),
                                          .has_idle_core = has_idle_core()});
  return way.way == coll::NetWay::Way::design ? net::design_at(way.design) : nullptr;
}

// Headers that the host MPI has yet to bring to the receivers go on meanwhile.
Status post_message(const core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    coll::MessageWay way, node::MessageHeader& header, bool& posted) {
  using Clock = std::chrono::steady_clock;
  posted = false;
  attend(buffer);
  if (!may_send_header(receiver)) return {};
  for (std::optional<Clock::time_point> end;;) {
    auto outcome = p2p::Posted::no;
    const Status status =
        p2p::post_message(outbox(), segment, buffer, receiver, header, outcome, end.has_value());
    posted = outcome == p2p::Posted::yes;
    if (posted && way == coll::MessageWay::engine) outbox().fetch_by_engine(header);
    if (outcome != p2p::Posted::later) return status;
    const Clock::time_point now = Clock::now();
    if (!end)
      end = now + std::chrono::nanoseconds(segment.size_bytes() / kStagedBytesPerNanosecond);
    if (now >= *end) {
      outbox().give_up();
      return {};
    }
    engine().progress();
    engine().port().poke();
    engine().port().pause();
  }
}

Status post_net_message(const core::StagedBuffer& buffer, const core::Segment& segment,
                        int receiver, const net::Design& design, node::MessageHeader& header,
                        bool& posted) {
  auto outcome = p2p::Posted::no;
  const Status status = net_messages().post(segment, buffer, static_cast<std::uint32_t>(receiver),
                                            design, header, outcome);
  posted = outcome == p2p::Posted::yes;
  return status;
}

Status end_message(const node::MessageHeader& header, const Status& posted,
                   Synchronous synchronous) {
  ACCORD_TRY(posted);
  node::Lender& lender = lender_of(header);
  p2p::LoanEnd loan(lender, header);
  core::Engine::Waiting waiting(engine());
  for (bool is_received = synchronous == Synchronous::no, done = false;;) {
    if (!is_received) ACCORD_TRY(lender.look_for_receive(header, is_received));
    if (is_received) ACCORD_TRY(loan.poll(done));
    if (done) break;
    waiting.progress();
    engine().port().poke();
    engine().port().pause();
  }
  waiting.end();
  return {};
}

void watch_calls(MPI_Comm comm, CommState& state) {
  if (!messaging.node_joined || state.inter || state.mixed_worlds || state.size == 1) return;
  const std::uint64_t number = sure_lineage_of(comm);
  if (number == 0) return;
  std::call_once(state.node_ranks_known, [&] { find_node_ranks(comm, state); });
  node::Group& group = *node_mates().group;
  std::vector<const node::CallBoard*> peers;
  for (const int rank : state.node_ranks)
    peers.push_back(rank < 0 || rank == group.rank() ? nullptr : &group.calls(rank));
  state.queue->watch.attach(
      number, group.calls(group.rank()), std::move(peers),
      [&group, ranks = state.node_ranks](std::size_t rank) { return group.is_gone(ranks[rank]); });
}

int node_rank(MPI_Comm comm, int rank) {
  CommState* const state = messaging.node_joined ? comm_state(comm) : nullptr;
  if (state == nullptr) return -1;
  std::call_once(state->node_ranks_known, [&] { find_node_ranks(comm, *state); });
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < state->node_ranks.size() ? state->node_ranks[index] : -1;
}

bool may_be_header(MPI_Comm comm, int source, MPI_Count size_bytes) {
  if (!messaging.joined || !node::MessageHeader::may_be(static_cast<std::size_t>(size_bytes)))
    return false;
  if (const int near = node_rank(comm, source); near >= 0) return outbox().may_hear_from(near);
  return messaging.net_joined && messaging.hears_headers.load() && net_rank(comm, source) >= 0;
}

bool takes_header(MPI_Datatype datatype, std::size_t size_bytes) {
  const std::size_t element_bytes = common_element(datatype);
  return element_bytes != 0 && node::MessageHeader::sent_bytes(size_bytes) % element_bytes == 0;
}

bool moves_whole(MPI_Datatype datatype) {
  const int combiner = combiner_of(datatype);
  if (combiner == MPI_UNDEFINED) return false;
  if (combiner == MPI_COMBINER_NAMED) return named_element(datatype) != 0;
  const TypeContents contents(datatype);
  return std::ranges::all_of(contents.types(), moves_whole);
}

}  // namespace accord::shim
