// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/shim.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/stages.h"
#include "coll/inter/exchange.h"
#include "coll/intra/direct_exchange.h"
#include "coll/intra/inbox_exchange.h"
#include "coll/intra/node_exchange.h"
#include "coll/library/exchange.h"
#include "coll/library/roll_call.h"
#include "coll/pairs/pairwise_exchange.h"
#include "coll/pairs/two_level_pairs.h"
#include "coll/select/selection.h"
#include "node/node_number.h"
#include "preload/shim_abi.h"
#include "shim/check.h"
#include "shim/comm_info.h"
#include "shim/comm_wire.h"
#include "shim/completion.h"
#include "shim/freed_comms.h"
#include "shim/held_messages.h"
#include "shim/kept_handles.h"
#include "shim/messages.h"
#include "shim/partitioned.h"
#include "shim/private_comm.h"
#include "shim/typemap.h"
#include "shim/windows.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

// Ranks of this node as the launcher says, or 0.
int local_ranks_from_launcher() {
  for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE",
                           "SLURM_NTASKS_PER_NODE"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

int query_nothing(void*, MPI_Status* status) {
  // The request's operation reports its outcome itself; here nothing can fail.
  host::Status_set_elements(status, MPI_BYTE, 0);
  host::Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

class Port final : public core::HostPort {
 public:
  Status test(core::HostRequest& bits, bool& done) override {
    auto request = from_bits<MPI_Request>(bits);
    int flag = 0;
    const int code = host::Test(&request, &flag, MPI_STATUS_IGNORE);
    bits = to_bits(request);
    done = flag != 0;
    return Status::from_host(code);
  }
  Status test_message(core::HostRequest& bits, bool& done, core::Completion& completion) override {
    auto request = from_bits<MPI_Request>(bits);
    int flag = 0;
    MPI_Status status;
    const int code = host::Test(&request, &flag, &status);
    bits = to_bits(request);
    done = flag != 0;
    if (done && code == MPI_SUCCESS) completion = completion_of(status);
    return Status::from_host(code);
  }
  void cancel(core::HostRequest bits) override {
    auto request = from_bits<MPI_Request>(bits);
    (void)host::Cancel(&request);
  }
  // One that has failed counts as not complete: its error is for the call that completes it.
  Status peek(core::HostRequest bits, bool& done) override {
    int flag = 0;
    MPI_Status status;
    status.MPI_ERROR = MPI_SUCCESS;
    const int code = host::Request_get_status(from_bits<MPI_Request>(bits), &flag, &status);
    done = flag != 0 && code == MPI_SUCCESS && status.MPI_ERROR == MPI_SUCCESS;
    return {};
  }
  Status grequest_start(core::HostRequest& bits) override {
    MPI_Request request;
    const int code =
        host::Grequest_start(query_nothing, free_nothing, cancel_nothing, nullptr, &request);
    bits = to_bits(request);
    return Status::from_host(code);
  }
  void grequest_complete(core::HostRequest bits) override {
    (void)host::Grequest_complete(from_bits<MPI_Request>(bits));
  }
  // A receive from this process itself, of what it sends when the operation is done. Numbers are
  // tags, of which there are more than requests that go from device to device.
  Status placeholder_init(core::HostRequest& bits, int& number) override {
    {
      const std::lock_guard<std::mutex> locked(placeholders_mutex_);
      if (free_placeholders_.empty()) free_placeholders_.push_back(placeholders_++);
      number = free_placeholders_.back();
      free_placeholders_.pop_back();
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Recv_init(nullptr, 0, MPI_BYTE, 0, number, private_comm(), &request);
    bits = to_bits(request);
    if (code != MPI_SUCCESS) placeholder_release(number);
    return Status::from_host(code);
  }
  void placeholder_complete(int number) override {
    MPI_Request sent = MPI_REQUEST_NULL;
    if (host::Isend(nullptr, 0, MPI_BYTE, 0, number, private_comm(), &sent) == MPI_SUCCESS)
      (void)host::Request_free(&sent);
  }
  void placeholder_release(int number) override {
    const std::lock_guard<std::mutex> locked(placeholders_mutex_);
    free_placeholders_.push_back(number);
  }
  void poke() override {
    constexpr unsigned kCallsPerPoke = 16;
    if (++pokes_ % kCallsPerPoke != 0) return;
    // On a communicator of several ranks: MPICH answers for MPI_COMM_SELF without any progress. A
    // tag that nobody uses, since nothing is to be found.
    constexpr int kTag = 32767;
    const MPI_Comm comm = world_model ? MPI_COMM_WORLD : private_comm();
    int flag = 0;
    if (comm != MPI_COMM_NULL)
      (void)host::Iprobe(MPI_ANY_SOURCE, kTag, comm, &flag, MPI_STATUS_IGNORE);
  }
  void pause() override {
    if (yield || ++pauses_ % 1024 == 0) {
      ::sched_yield();
    } else {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
  bool yield = false;
  bool world_model = false;  // MPI_COMM_WORLD exists

 private:
  static inline thread_local unsigned pauses_ = 0;
  static inline thread_local unsigned pokes_ = 0;
  std::mutex placeholders_mutex_;
  int placeholders_ = kSubstituteTag + 1;  // numbers from there up to here are in use or free
  std::vector<int> free_placeholders_;
};

struct Runtime {
  Port port;
  core::Engine engine{port};
  core::Requests requests;
  std::mutex life_mutex;  // sessions come and go on any thread
  PrivateComm private_comm;
  int comm_keyval = MPI_KEYVAL_INVALID;
};

// Never destroyed: MPI may be called from destructors of the program.
Runtime& runtime() {
  static Runtime& instance = *new Runtime;
  return instance;
}

// Rises when a state goes, so that nobody takes it for that of a new communicator of the same
// handle.
std::atomic<std::uint64_t> states_gone{0};
CommState* find_comm_state(MPI_Comm comm);

// Of communicators that are known to be some.
struct States {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, CommState*> by_comm;
};
States& states() {
  static States& instance = *new States;
  return instance;
}

int delete_comm_state(MPI_Comm comm, int, void* value, void*) {
  {
    const std::lock_guard<std::shared_mutex> locked(states().mutex);
    states().by_comm.erase(to_bits(comm));
  }
  inherit_requests(comm);
  states_gone.fetch_add(1);
  delete static_cast<CommState*>(value);
  return MPI_SUCCESS;
}

}  // namespace

core::Engine& engine() {
  static core::Engine& instance = runtime().engine;
  return instance;
}
core::Requests& requests() {
  static core::Requests& instance = runtime().requests;
  return instance;
}

MPI_Comm private_comm() { return runtime().private_comm.get(); }

namespace {

bool has_foreign_ranks(MPI_Comm comm, int size) {
  if (!runtime().port.world_model) return true;
  const std::vector<int> in_world = ranks_in_world(comm, size);
  return std::ranges::find(in_world, MPI_UNDEFINED) != in_world.end();
}

}  // namespace

// Most calls are on the communicator of the one before.
CommState* comm_state(MPI_Comm comm) {
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    CommState* state = nullptr;
    std::uint64_t gone = 0;
  };
  static thread_local Last last;
  const std::uint64_t gone = states_gone.load();
  if (last.state == nullptr || last.comm != comm || last.gone != gone)
    last = {comm, find_comm_state(comm), gone};
  return last.state;
}

namespace {

// What is no communicator is for the call of the program to complain of, not for a question of
// ours. Such errors go to the handlers of these two. One of MPI_COMM_SELF that is fatal may be none
// of its own, where MPICH takes that of MPI_COMM_WORLD: it stays, or errors that return would not.
class QuietHandlers {
 public:
  QuietHandlers() {
    for (std::size_t i = 0; runtime().port.world_model && i < comms_.size(); ++i) {
      if (host::Comm_get_errhandler(comms_[i], &kept_[i]) != MPI_SUCCESS) continue;
#ifndef OPEN_MPI
      if (comms_[i] == MPI_COMM_SELF && kept_[i] == MPI_ERRORS_ARE_FATAL) {
        kept_[i] = MPI_ERRHANDLER_NULL;
        continue;
      }
#endif
      (void)host::Comm_set_errhandler(comms_[i], MPI_ERRORS_RETURN);
    }
  }
  ~QuietHandlers() {
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      if (kept_[i] == MPI_ERRHANDLER_NULL) continue;
      (void)host::Comm_set_errhandler(comms_[i], kept_[i]);
      (void)host::Errhandler_free(&kept_[i]);
    }
  }
  QuietHandlers(const QuietHandlers&) = delete;
  QuietHandlers& operator=(const QuietHandlers&) = delete;

 private:
  std::array<MPI_Comm, 2> comms_{MPI_COMM_WORLD, MPI_COMM_SELF};
  std::array<MPI_Errhandler, 2> kept_{MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
};

bool is_communicator(MPI_Comm comm) {
  const QuietHandlers quiet;
  void* value = nullptr;
  int found = 0;
  return host::Comm_get_attr(comm, runtime().comm_keyval, &value, &found) == MPI_SUCCESS;
}

CommState* known_state(MPI_Comm comm) {
  const std::shared_lock<std::shared_mutex> locked(states().mutex);
  const auto found = states().by_comm.find(to_bits(comm));
  return found != states().by_comm.end() ? found->second : nullptr;
}

CommState* find_comm_state(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL || runtime().comm_keyval == MPI_KEYVAL_INVALID) return nullptr;
  if (CommState* const known = known_state(comm)) return known;
  // Two threads may come with a communicator for the first time at once.
  static std::recursive_mutex& making = *new std::recursive_mutex;
  const std::lock_guard<std::recursive_mutex> locked(making);
  if (CommState* const known = known_state(comm)) return known;
  if (!is_communicator(comm)) return nullptr;
  auto state = std::make_unique<CommState>();
  int inter = 0;
  if (host::Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  (void)host::Comm_rank(comm, &state->rank);
  (void)host::Comm_size(comm, &state->size);
  state->inter = inter != 0;
  state->remote_size = state->size;
  if (state->inter) (void)host::Comm_remote_size(comm, &state->remote_size);
  state->mixed_worlds = !state->inter && has_foreign_ranks(comm, state->size);
  state->algorithms = inherited_algorithms(comm);
  state->held = make_held_messages();
  if (host::Comm_set_attr(comm, runtime().comm_keyval, state.get()) != MPI_SUCCESS) return nullptr;
  watch_calls(comm, *state);
  const std::lock_guard<std::shared_mutex> known(states().mutex);
  return states().by_comm[to_bits(comm)] = state.release();
}

}  // namespace

void drain(MPI_Comm comm) {
  if (engine().idle()) return;
  if (CommState* state = comm_state(comm)) {
    const auto queue = state->queue;
    engine().wait_until([&] { return !engine().busy(*queue); });
  }
}

int wait_for_turn(MPI_Comm comm) {
  drain(comm);
  return refuses_calls(comm) ? raise(comm, comm_state(comm)->queue->watch.refusal()) : MPI_SUCCESS;
}

namespace {

void make_keyvals() {
  Runtime& here = runtime();
  if (here.comm_keyval != MPI_KEYVAL_INVALID) return;
  job.votes_from_bytes = config().pipeline_bytes;
  job.wants_rank_order = config().deterministic;
  stages::start();
  check::open();
  (void)host::Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_comm_state, &here.comm_keyval,
                                 nullptr);
  make_info_keyval();
  make_type_keyval();
}

// Once a process, and silently where another rank says the same.
void tell_config_warnings(bool is_said_here) {
  static std::once_flag told;
  std::call_once(told, [is_said_here] {
    if (!is_said_here) return;
    for (const std::string& warning : config_warnings()) log::warn("{}", warning);
  });
}

// What the host MPI made for us ends with it.
void forget_host() {
  Runtime& here = runtime();
  if (here.comm_keyval != MPI_KEYVAL_INVALID) (void)host::Comm_free_keyval(&here.comm_keyval);
  states_gone.fetch_add(1);
  free_info_keyval();
  free_type_keyval();
  forget_error_codes();
}

int end_world(MPI_Comm, int, void*, void*) {
  stop_runtime();
  return MPI_SUCCESS;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first, the last one set before the others,
// and programs may still communicate there (MPI 4.1, 11.4.2): so Accord ends with the first one.
void end_with_self() {
  int key = MPI_KEYVAL_INVALID;
  if (host::Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_world, &key, nullptr) != MPI_SUCCESS)
    return;
  (void)host::Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  (void)host::Comm_free_keyval(&key);
  (void)comm_state(MPI_COMM_SELF);
}

// Where the machine is split into nodes of pretence.
void enter_node(int rank) {
  std::optional<int> part;
  const Status status = node::part_of(config().node_split, rank, part);
  if (!status.ok() && rank == 0) log::warn("{}", status.message());
  if (part) node::enter_part(*part);
}

void warn_of_algorithms(const JobFacts& facts) {
  if (!coll::algorithm_problem().empty()) log::warn("{}", coll::algorithm_problem());
  if (!coll::table_problem().empty()) {
    log::warn("{}", coll::table_problem());
  } else if (!facts.same_tables) {
    log::warn(
        "ACCORD_TABLE: not all ranks can read the same table; none is used, the built-in rule "
        "chooses");
  }
}

}  // namespace

void start_runtime(const JobFacts& facts) {
  Runtime& here = runtime();
  const std::lock_guard<std::mutex> locked(here.life_mutex);
  make_keyvals();
  here.engine.allow_threads(facts.threads);
  here.port.world_model = true;
  end_with_self();
  job.has_devices = facts.devices;
  job.has_threads = facts.program_threads;
  engine().allow_rest(!facts.program_threads);
  // Which way calls of which size go, and that short ones may go one, selection says. Without a
  // device there is nothing to overlap.
  job.votes_from_bytes = facts.devices ? 1 : 0;
  here.private_comm.open_world();
  int rank = 0;
  int size = 1;
  (void)host::Comm_rank(MPI_COMM_WORLD, &rank);
  (void)host::Comm_size(MPI_COMM_WORLD, &size);
  log::set_rank(rank);
  device::order_behind_program();  // contexts that there are begin in order
  enter_node(rank);
  if (facts.devices && size > 1) open_wires();
  if (facts.partitioned) open_partitioned();
  if (facts.same_tables) coll::use_table();
  if (facts.devices && facts.same_settings) join_messages();
  tell_config_warnings(rank == 0 || !facts.same_warnings);
  // The same on all ranks, so that one says it.
  if (rank == 0) warn_of_algorithms(facts);
  if (!ccl::problem().empty()) log::warn("{}", ccl::problem());
  const int local = local_ranks_from_launcher();
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const std::string& yield = config().yield;
  here.port.yield = yield == "on" || (yield == "auto" && (local > 0 ? local : size) > cores);
}

#ifdef ACCORD_HAS_Session_init
void start_session_runtime() {
  const std::lock_guard<std::mutex> locked(runtime().life_mutex);
  make_keyvals();
  tell_config_warnings(true);
  runtime().private_comm.open_session();
  messaging.open_sessions.fetch_add(1);
}

void stop_session_runtime() {
  Runtime& here = runtime();
  here.engine.wait_until([&] { return here.engine.idle(); });
  const std::lock_guard<std::mutex> locked(here.life_mutex);
  messaging.open_sessions.fetch_sub(1);
  if (!here.private_comm.close_session()) return;
  stages::finish(-1);
  forget_host();
}
#endif

// Host MPIs that delete no attributes while there is a session (MPICH), or end with all of them
// (Open MPI), leave Accord no other moment.
void prepare_to_stop() {
  Runtime& here = runtime();
  // MPICH takes no locks any more in delete functions of MPI_COMM_SELF.
  here.engine.stop_thread();
  if (here.private_comm.is_of_session() || messaging.open_sessions.load() != 0) stop_runtime();
}

void stop_runtime() {
  Runtime& here = runtime();
  if (!here.port.world_model) return;
  stop_messages();
  stop_windows();
  here.engine.wait_until([&] { return here.engine.idle(); });
  here.engine.stop_thread();
  coll::CclAlarm::stop_all();
  int rank = 0;
  if (host::Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS) stages::finish(rank);
  coll::InboxExchange::report();
  coll::DirectExchange::report();
  coll::NodeExchange::report();
  coll::PairwiseExchange::report();
  coll::CclExchange::report();
  coll::TwoLevelExchange::report();
  coll::TwoLevelPairs::report();
  leave_messages();
  here.port.world_model = false;
  close_partitioned();
  close_wires();
  free_kept_handles();
  free_heirs();
  const std::lock_guard<std::mutex> locked(here.life_mutex);
  if (here.private_comm.close_world()) forget_host();
}

}  // namespace accord::shim

extern "C" int accord_shim_open(void* libmpi_handle) {
  accord::host::resolve(libmpi_handle);
  return accord::host::slot::Init != nullptr && accord::host::slot::Allreduce != nullptr ? 0 : 1;
}
