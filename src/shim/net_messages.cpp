// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/net_messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "node/node_number.h"
#include "proxy/launch.h"
#include "proxy/port.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

struct Net {
  std::vector<int> nodes;  // by rank of MPI_COMM_WORLD
  int rank = 0;
  bool speaks = false;  // for all ranks, of what keeps them from joining
  std::optional<proxy::Port> proxy;
  std::optional<net::Mail> mail;
  std::optional<p2p::NetMessages> messages;
};

// Never destroyed: MPI may be called from destructors of the program.
Net& net() {
  static Net& instance = *new Net;
  return instance;
}

std::string or_nothing(const std::string& setting) { return setting == "none" ? "" : setting; }

// What each rank has to say, of whatever length.
Status gather(net::Bytes mine, std::vector<std::vector<std::byte>>& all) {
  const auto size = static_cast<int>(mine.size());
  std::vector<int> sizes(all.size());
  ACCORD_TRY(Status::from_host(
      host::Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD)));
  std::vector<int> offsets(all.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), offsets.begin(), 0);
  std::vector<std::byte> bytes(static_cast<std::size_t>(offsets.back() + sizes.back()));
  ACCORD_TRY(
      Status::from_host(host::Allgatherv(mine.data(), size, MPI_BYTE, bytes.data(), sizes.data(),
                                         offsets.data(), MPI_BYTE, MPI_COMM_WORLD)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto first = bytes.begin() + offsets[rank];
    all[rank].assign(first, first + sizes[rank]);
  }
  return {};
}

// Equal on all ranks. Headers show the cookie, and nothing shows the key.
struct Secrets {
  p2p::NetMessages::Cookie cookie{};
  net::JobKey key{};
};

Status choose(Secrets& secrets) {
  std::random_device random;
  for (std::uint64_t& word : secrets.cookie) word = std::uint64_t{random()} << 32 | random();
  for (std::uint64_t& word : secrets.key) word = std::uint64_t{random()} << 32 | random();
  constexpr int kBytes = sizeof secrets;
  return Status::from_host(host::Bcast(&secrets, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

// The proxy of this node, which starts once a message wants it. Its name is no secret.
void stand_at_proxy(Net& here, const Secrets& secrets) {
  const p2p::NetMessages::Cookie& cookie = secrets.cookie;
  const std::string& program = config().proxy_program;
  proxy::Meeting meeting{
      .cookie = cookie[0] * 0x9e3779b97f4a7c15U ^ cookie[1],
      .node = node::node_number(),
      .program = program == "auto" ? proxy::program_beside_library() : program,
      .settings = {fmt::format("{}={}", net::kJobKeyVariable, net::text_of(secrets.key))}};
  // The same UCX in both: one that the host MPI brings is not where the linker looks.
  if (config().ucx_library == "none")
    meeting.settings.push_back("ACCORD_UCX_LIBRARY=" + net::Worker::library());
  here.proxy.emplace(std::move(meeting),
                     proxy::Port::Size{.chunk_bytes = config().proxy_chunk_bytes,
                                       .chunks = static_cast<std::size_t>(config().proxy_chunks)});
  net::set_proxy_port(&*here.proxy);
}

// Of a machine, whatever nodes of pretence it is split into.
bool machine_has_idle_core() {
  MPI_Comm machine = MPI_COMM_NULL;
  int ranks = 0;
  if (host::Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) !=
      MPI_SUCCESS)
    return false;
  (void)host::Comm_size(machine, &ranks);
  (void)host::Comm_free(&machine);
  return ranks < static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

// What is in host memory leaves by them; nothing where those for device memory are the same.
std::string other_host_devices() {
  const std::string& devices = config().ucx_host_net;
  return devices == config().ucx_device_net ? std::string() : or_nothing(devices);
}

// All ranks or none.
Status join(Net& here) {
  Secrets secrets;
  ACCORD_TRY(choose(secrets));
  std::unique_ptr<net::Worker> worker;
  Status opened = net::Worker::open({.net_devices = or_nothing(config().ucx_device_net),
                                     .transports = or_nothing(config().ucx_tls),
                                     .key = secrets.key,
                                     .patience = std::chrono::seconds(config().peer_timeout_s)},
                                    worker);
  std::unique_ptr<net::Attendant> attendant;
  if (opened.ok()) opened = net::Attendant::start(*worker, attendant);
  std::vector<std::vector<std::byte>> addresses(here.nodes.size());
  ACCORD_TRY(gather(attendant ? worker->address() : net::Bytes(), addresses));
  const auto lacking =
      std::ranges::find_if(addresses, [](const auto& address) { return address.empty(); });
  if (lacking != addresses.end()) here.speaks = lacking - addresses.begin() == here.rank;
  ACCORD_TRY(opened);
  if (lacking != addresses.end()) return {StatusCode::unsupported, "another rank cannot take part"};
  const auto ranks = static_cast<std::uint32_t>(addresses.size());
  const auto rank = static_cast<std::uint32_t>(here.rank);
  stand_at_proxy(here, secrets);
  here.mail.emplace(std::move(worker), std::move(attendant), std::move(addresses),
                    net::Mail::Options{.rank = rank,
                                       .kept_bytes_max = config().outbox_bytes,
                                       .host_devices = other_host_devices(),
                                       .transports = or_nothing(config().ucx_tls),
                                       .key = secrets.key});
  here.messages.emplace(*here.mail, secrets.cookie, rank, ranks);
  return {};
}

void find_net_ranks(MPI_Comm comm, CommState& state) {
  if (state.inter) return;
  std::vector<int> found = ranks_in_world(comm, state.size);
  const std::vector<int>& nodes = net().nodes;
  const int own = nodes[static_cast<std::size_t>(net().rank)];
  for (int& rank : found) {
    if (rank == MPI_UNDEFINED || nodes[static_cast<std::size_t>(rank)] == own) rank = -1;
  }
  state.net_ranks = std::move(found);
}

}  // namespace

void join_net_messages(int node) {
  Net& here = net();
  int size = 1;
  (void)host::Comm_rank(MPI_COMM_WORLD, &here.rank);
  here.speaks = here.rank == 0;
  (void)host::Comm_size(MPI_COMM_WORLD, &size);
  here.nodes.assign(static_cast<std::size_t>(size), 0);
  if (host::Allgather(&node, 1, MPI_INT, here.nodes.data(), 1, MPI_INT, MPI_COMM_WORLD) !=
          MPI_SUCCESS ||
      std::ranges::all_of(here.nodes, [&](int other) { return other == node; }))
    return;
  messaging.has_idle_core = machine_has_idle_core();
  const Status joined = join(here);
  messaging.net_joined = joined.ok();
  if (messaging.net_joined) return;
  log::message(here.speaks ? log::Level::warn : log::Level::info,
               "ACCORD_NET_DESIGN: messages between nodes are staged through the host: {}",
               joined.message());
}

void leave_net_messages() {
  if (!messaging.net_joined) return;
  Net& here = net();
  // What a peer fetches this rank serves until then.
  (void)host::Barrier(MPI_COMM_WORLD);
  messaging.net_joined = false;
  const net::Mail::Counters counters = here.mail->counters();
  log::info(
      "net: this rank has sent {} messages to other nodes by headers ({} of them copied for that) "
      "and fetched {}; {} left by the adapters for host memory",
      counters.sent, counters.kept, counters.fetched, counters.by_host_devices);
  here.messages.reset();
  here.mail.reset();
  net::set_proxy_port(nullptr);
  here.proxy.reset();
}

p2p::NetMessages& net_messages() { return *net().messages; }
net::Mail& net_mail() { return *net().mail; }

bool has_idle_core() {
  net::ProxyPort* const port = net::proxy_port();
  return messaging.has_idle_core && (port == nullptr || port->has_core());
}

int net_rank(MPI_Comm comm, int rank) {
  CommState* const state = comm_state(comm);
  if (state == nullptr) return -1;
  std::call_once(state->net_ranks_known, [&] { find_net_ranks(comm, *state); });
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < state->net_ranks.size() ? state->net_ranks[index] : -1;
}

}  // namespace accord::shim
