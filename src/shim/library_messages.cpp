// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/library_messages.h"

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "ccl/library.h"
#include "core/algorithm.h"
#include "core/ccl/group.h"
#include "core/selection.h"
#include "shim/collectives.h"
#include "shim/messages.h"
#include "shim/request_calls.h"

namespace accord::shim {
namespace {

using Clock = std::chrono::steady_clock;

// Each has two communicators for each other one.
constexpr int kLibraryRanksMax = 16;
// How long a receiver waits for its sender's answer: no longer than staging takes, and a process
// that shares its core takes to get it.
constexpr std::chrono::milliseconds kPatience{2};
// A sender that has not answered so often is asked now and then only.
constexpr unsigned kMissesMax = 4;
constexpr unsigned kMessagesPerTrial = 64;

// A request of a receiver: generation, slot, and how far it has come. Only the receiver writes it,
// but for the answer, by which its sender commits itself; only until then it can be taken back.
enum class Stage : std::uint64_t { asked = 1, answered = 2 };
std::uint64_t word_of(std::uint32_t generation, std::uint16_t slot, Stage stage) {
  return std::uint64_t{generation} << 32 | std::uint64_t{slot} << 8 |
         static_cast<std::uint64_t>(stage);
}

// What comes from one rank of the node.
struct FromRank {
  std::mutex mutex;  // held for as long as a message takes: the two ranks know them in one order
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned misses = 0;
  unsigned passed_over = 0;
  bool is_refused = false;
};

struct Pairs {
  MPI_Comm node = MPI_COMM_NULL;
  std::shared_ptr<node::Group> group;  // null: none has joined
  std::atomic<ccl::Library*> library{nullptr};
  std::vector<std::unique_ptr<FromRank>> incoming;  // by sender
  std::mutex outgoing_mutex;
  std::vector<MPI_Comm> outgoing;  // by receiver
  std::shared_ptr<core::Operation> server;
  std::mutex server_mutex;
  std::atomic<bool> is_stopping{false};
  std::atomic<std::uint64_t> brought{0};
  std::atomic<std::uint64_t> not_brought{0};

  std::atomic<std::uint64_t>& ask(int receiver, int sender) const {
    return group->outbox(receiver).asks[sender];
  }
};

// Never destroyed: MPI may be called from destructors of the program.
Pairs& pairs() {
  static Pairs& instance = *new Pairs;
  return instance;
}

enum class End { sender, receiver };

// One end of a message, as a call of both ranks of a pair, of which the sender is rank 0: an
// alltoallv, of which a library sees one send and one receive. To stay where it is until the
// request is complete, since the counts are read until then.
struct PairCall {
  static constexpr std::array<int, 2> kNothing{};
  std::array<int, 2> counts{};
  MPI_Request request = MPI_REQUEST_NULL;

  int start(End end, void* memory, std::size_t size_bytes, MPI_Comm comm) {
    const bool sends = end == End::sender;
    counts[sends ? 1 : 0] = static_cast<int>(size_bytes);
    const shape::Alltoallv<int, int> call{.sendbuf = sends ? memory : nullptr,
                                          .sendcounts = (sends ? counts : kNothing).data(),
                                          .sdispls = kNothing.data(),
                                          .sendtype = MPI_BYTE,
                                          .recvbuf = sends ? nullptr : memory,
                                          .recvcounts = (sends ? kNothing : counts).data(),
                                          .rdispls = kNothing.data(),
                                          .recvtype = MPI_BYTE,
                                          .comm = comm};
    return nonblocking(
        "message by a library", call,
        [](const auto& made_of, const void* send, void* recv, MPI_Request* made) {
          return host::Ialltoallv(send, made_of.sendcounts, made_of.sdispls, made_of.sendtype, recv,
                                  made_of.recvcounts, made_of.rdispls, made_of.recvtype,
                                  made_of.comm, made);
        },
        &request);
  }
};

// Answers receivers while messages of this rank wait.
class Server final : public core::Operation {
 public:
  Phase advance(core::HostPort&) override {
    Pairs& here = pairs();
    if (!here.is_stopping.load()) {
      for (int peer = 0; peer < here.group->size(); ++peer) answer(here, peer);
    }
    std::erase_if(sending_, [](Sending& one) {
      int done = 0;
      const int code = Test(&one.call->request, &done, MPI_STATUS_IGNORE);
      if (code == MPI_SUCCESS && done == 0) return false;
      outbox().end_sending(one.slot);
      return true;
    });
    if (sending_.empty()) {
      attended_.reset();
    } else if (!attended_) {
      attended_.emplace(engine());
    }
    const bool is_over = here.is_stopping.load() || !outbox().has_waiting();
    return sending_.empty() && is_over ? Phase::done : Phase::issued;
  }

 private:
  void answer(Pairs& here, int receiver) {
    std::atomic<std::uint64_t>& ask = here.ask(receiver, here.group->rank());
    std::uint64_t asked = ask.load(std::memory_order_acquire);
    if ((asked & 0xff) != static_cast<std::uint64_t>(Stage::asked)) return;
    const auto slot = static_cast<std::uint16_t>(asked >> 8);
    const auto generation = static_cast<std::uint32_t>(asked >> 32);
    std::size_t size_bytes = 0;
    const std::byte* const memory = outbox().begin_sending(slot, generation, size_bytes);
    if (memory == nullptr) return;
    Sending one{.slot = slot};
    const MPI_Comm comm = outgoing_to(here, receiver);
    if (comm != MPI_COMM_NULL &&
        ask.compare_exchange_strong(asked, word_of(generation, slot, Stage::answered)) &&
        one.call->start(End::sender, const_cast<std::byte*>(memory), size_bytes, comm) ==
            MPI_SUCCESS)
      sending_.push_back(std::move(one));
    else
      outbox().end_sending(slot);
  }

  // The receiver may have made it a little earlier.
  static MPI_Comm outgoing_to(Pairs& here, int receiver) {
    const std::lock_guard locked(here.outgoing_mutex);
    return here.outgoing[static_cast<std::size_t>(receiver)];
  }

  struct Sending {
    std::uint16_t slot;
    std::unique_ptr<PairCall> call = std::make_unique<PairCall>();
  };
  std::vector<Sending> sending_;
  // The program may leave MPI at any time, but a receiver that was answered waits: so there is a
  // thread that goes on until it has its message.
  std::optional<core::Engine::BlockingRegion> attended_;
};

// Of two ranks of the node; the first one is to be the sender.
MPI_Comm make_pair(MPI_Comm node, int sender, int receiver) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group two = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  const std::array ranks{sender, receiver};
  if (host::Comm_group(node, &all) != MPI_SUCCESS) return MPI_COMM_NULL;
  if (host::Group_incl(all, 2, ranks.data(), &two) == MPI_SUCCESS) {
    (void)host::Comm_create_group(node, two, 0, &made);
    (void)host::Group_free(&two);
  }
  (void)host::Group_free(&all);
  return made;
}

// Calls what is there for each pair of this rank's in the order of all pairs, so that none waits
// for one that waits for it: a library may wait for its peers also when a communicator goes.
template <class Use>
void for_each_pair(Pairs& here, Use use) {
  const int rank = here.group->rank();
  for (int sender = 0; sender < here.group->size(); ++sender) {
    for (int receiver = 0; receiver < here.group->size(); ++receiver) {
      if (sender == receiver || (rank != sender && rank != receiver)) continue;
      use(sender, receiver,
          rank == sender ? here.outgoing[static_cast<std::size_t>(receiver)]
                         : here.incoming[static_cast<std::size_t>(sender)]->comm);
    }
  }
}

// Of this rank and another one, where there is none yet.
void make_pairs(Pairs& here, const core::AlgorithmChoice& choice,
                const std::vector<bool>& take_part) {
  for_each_pair(here, [&](int sender, int receiver, MPI_Comm& comm) {
    if (!take_part[static_cast<std::size_t>(sender)] ||
        !take_part[static_cast<std::size_t>(receiver)] || comm != MPI_COMM_NULL)
      return;
    MPI_Comm made = make_pair(here.node, sender, receiver);
    CommState* const state = made == MPI_COMM_NULL ? nullptr : comm_state(made);
    if (state != nullptr) state->algorithms = std::make_shared<core::AlgorithmChoice>(choice);
    const bool receives = receiver == here.group->rank();
    const std::lock_guard locked(receives ? here.incoming[static_cast<std::size_t>(sender)]->mutex
                                          : here.outgoing_mutex);
    comm = made;
  });
}

// Of `comm`, by their numbers in the node.
std::vector<bool> ranks_in(MPI_Comm comm, const Pairs& here) {
  std::vector<bool> found(static_cast<std::size_t>(here.group->size()));
  found[static_cast<std::size_t>(here.group->rank())] = true;
  int size = 0;
  (void)host::Comm_size(comm, &size);
  for (int rank = 0; rank < size; ++rank) {
    const int number = node_rank(comm, rank);
    if (number >= 0) found[static_cast<std::size_t>(number)] = true;
  }
  return found;
}

// "": nothing.
const char* why_not(const Pairs& here, const ccl::Library& library) {
  if (!here.group) return "";  // this rank gets none by a header
  if (!engine().threads_allowed())
    return "that takes MPI_THREAD_MULTIPLE and ACCORD_PROGRESS_THREAD";
  if (config().node_bytes == 0) return "ACCORD_NODE_BYTES is 0";
  if (here.group->size() > kLibraryRanksMax) return "there are too many ranks on this node";
  const ccl::Library* const known = here.library.load();
  return known != nullptr && known != &library ? "those of a rank go by another library" : "";
}

void free_pairs(Pairs& here) {
  for_each_pair(here, [](int, int, MPI_Comm& comm) {
    if (comm != MPI_COMM_NULL) (void)host::Comm_free(&comm);
  });
  here.outgoing.clear();
  here.incoming.clear();
  here.library.store(nullptr);
  here.group.reset();
}

bool is_worth_asking(FromRank& from) {
  if (from.is_refused) return false;
  return from.misses < kMissesMax || ++from.passed_over % kMessagesPerTrial == 0;
}

// Whether the sender answers in time. From then on it waits for this rank.
bool ask(const node::MessageHeader& header, FromRank& from) {
  Pairs& here = pairs();
  std::atomic<std::uint64_t>& word = here.ask(here.group->rank(), header.sender);
  std::uint64_t asked = word_of(header.generation, header.slot, Stage::asked);
  word.store(asked, std::memory_order_release);
  const auto end = Clock::now() + kPatience;
  engine().wait_until([&] {
    if (word.load(std::memory_order_acquire) != asked || Clock::now() >= end) return true;
    engine().port().poke();
    return false;
  });
  const bool is_answered = !word.compare_exchange_strong(asked, 0);
  from.misses = is_answered ? 0 : from.misses + 1;
  return is_answered;
}

bool receive(const node::MessageHeader& header, void* to, FromRank& from) {
  PairCall call;
  int code = call.start(End::receiver, to, header.size_bytes, from.comm);
  if (code == MPI_SUCCESS) code = Wait(&call.request, MPI_STATUS_IGNORE);
  Pairs& here = pairs();
  here.ask(here.group->rank(), header.sender).store(0, std::memory_order_release);
  CommState* const state = comm_state(from.comm);
  const bool by_library =
      state != nullptr && core::ccl_group_of(*state->queue, *here.library.load()).joined();
  from.is_refused = code != MPI_SUCCESS || !by_library;
  if (code == MPI_SUCCESS && by_library) here.brought.fetch_add(1);
  return code == MPI_SUCCESS;
}

}  // namespace

void join_library_messages(MPI_Comm node, std::shared_ptr<node::Group> group) {
  Pairs& here = pairs();
  const auto size = static_cast<std::size_t>(group->size());
  here.node = node;
  here.group = std::move(group);
  here.outgoing.assign(size, MPI_COMM_NULL);
  for (std::size_t peer = 0; peer < size; ++peer)
    here.incoming.push_back(std::make_unique<FromRank>());
  here.is_stopping.store(false);
  const std::string& name = config().p2p_library;
  if (name != "none" && ccl::find(name) == nullptr && here.group->rank() == 0)
    log::warn("ACCORD_P2P_LIBRARY: messages do not go by {}: there is no such library", name);
  // The same on all ranks.
  ccl::Library* const library = core::message_library(core::sources_with(nullptr));
  if (library != nullptr) allow_library_messages(node, *library);
}

void allow_library_messages(MPI_Comm comm, ccl::Library& library) {
  Pairs& here = pairs();
  const char* const reason = why_not(here, library);
  const int mine = *reason == '\0' ? 1 : 0;
  int all = 0;
  if (host::Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS || all == 0) {
    // As a rule it is the same on all ranks of the node.
    if (mine == 0 && here.group->rank() == 0)
      log::warn("messages do not go by {}: {}", library.name(), reason);
    return;
  }
  if (!here.group) return;
  here.library.store(&library);
  std::string problem;
  make_pairs(here, core::AlgorithmChoice::parse(library.name(), problem), ranks_in(comm, here));
}

void stop_library_messages() { pairs().is_stopping.store(true); }

void leave_library_messages() {
  Pairs& here = pairs();
  if (!here.group) return;
  if (here.library.load() != nullptr)
    log::info(
        "ccl: this rank has got {} messages by a collective library, {} that were to come by "
        "one another way",
        here.brought.load(), here.not_brought.load());
  here.server.reset();
  free_pairs(here);
}

void serve_library_messages() {
  Pairs& here = pairs();
  if (here.library.load() == nullptr) return;
  const std::lock_guard locked(here.server_mutex);
  if (here.server && here.server->phase() != core::Operation::Phase::done) return;
  here.server = std::make_shared<Server>();
  engine().submit(here.server, nullptr);
}

// Not from an operation's step, where nobody may wait.
bool bring_by_library(const node::MessageHeader& header, void* to, const char*& path) {
  Pairs& here = pairs();
  constexpr std::size_t kBytesMax = std::numeric_limits<int>::max();
  // Shorter calls go by no library where the ranks of a pair alone know their size.
  // In a step nobody may wait, not even for the lock.
  if (here.library.load() == nullptr || core::Engine::is_in_step() ||
      header.size_bytes < config().node_bytes)
    return false;
  FromRank& from = *here.incoming[header.sender];
  const std::lock_guard locked(from.mutex);
  if (from.comm == MPI_COMM_NULL || header.size_bytes > kBytesMax || !is_worth_asking(from) ||
      !ask(header, from) || !receive(header, to, from)) {
    here.not_brought.fetch_add(1);
    return false;
  }
  if (!from.is_refused) path = here.library.load()->name();
  return true;
}

}  // namespace accord::shim
