// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows come and go, and what they say of themselves.
#include "shim/windows.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.h"
#include "device/registry.h"
#include "preload/shim_abi.h"
#include "shim/canonical.h"
#include "shim/window_transports.h"

#ifdef OPEN_MPI
extern "C" MPI_Win PMPI_Win_f2c(MPI_Fint) __attribute__((weak));  // the host MPI's, at run time
#endif

namespace accord::shim {

std::shared_ptr<WindowState> WindowTable::find(MPI_Win win) {
  if (empty()) return nullptr;
  const std::shared_lock<std::shared_mutex> locked(mutex_);
  const auto found = by_window_.find(to_bits(win));
  return found == by_window_.end() ? nullptr : found->second;
}

std::shared_ptr<WindowState> WindowTable::find_or_make(MPI_Win win) {
  const std::unique_lock<std::shared_mutex> locked(mutex_);
  std::shared_ptr<WindowState>& state = by_window_[to_bits(win)];
  if (state == nullptr) state = std::make_shared<WindowState>();
  count_.store(by_window_.size(), std::memory_order_release);
  return state;
}

void WindowTable::insert(MPI_Win win, std::shared_ptr<WindowState> state) {
  const std::unique_lock<std::shared_mutex> locked(mutex_);
  by_window_.insert_or_assign(to_bits(win), std::move(state));
  count_.store(by_window_.size(), std::memory_order_release);
}

std::shared_ptr<WindowState> WindowTable::erase(MPI_Win win) {
  if (empty()) return nullptr;
  const std::unique_lock<std::shared_mutex> locked(mutex_);
  const auto found = by_window_.find(to_bits(win));
  if (found == by_window_.end()) return nullptr;
  std::shared_ptr<WindowState> state = std::move(found->second);
  by_window_.erase(found);
  count_.store(by_window_.size(), std::memory_order_release);
  return state;
}

std::vector<std::shared_ptr<WindowState>> WindowTable::all() {
  const std::shared_lock<std::shared_mutex> locked(mutex_);
  std::vector<std::shared_ptr<WindowState>> states;
  for (const auto& [bits, state] : by_window_) states.push_back(state);
  return states;
}

// Never destroyed: MPI may be called from destructors of the program.
WindowTable& windows() {
  static WindowTable& instance = *new WindowTable;
  return instance;
}

void stop_windows() {
  for (const auto& state : windows().all())
    if (state->ours != nullptr) state->ours->close();
}

namespace {

// Messages between the ranks of a window, on a communicator that has no others.
class WindowWire final : public core::Wire {
 public:
  explicit WindowWire(MPI_Comm comm) : comm_(comm) {}

  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& bits) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        host::Isend(bytes, static_cast<int>(size_bytes), MPI_BYTE, rank, tag, comm_, &request);
    bits = to_bits(request);
    return on_own_comm(code);
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& bits) override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = host::Irecv(bytes, static_cast<int>(size_bytes), MPI_BYTE,
                                 rank == kAnyRank ? MPI_ANY_SOURCE : rank, tag, comm_, &request);
    bits = to_bits(request);
    return on_own_comm(code);
  }
  Status test(core::HostRequest& bits, bool& done, core::Completion& completion) override {
    const Status status = engine().port().test_message(bits, done, completion);
    return status.code() == StatusCode::host_mpi ? on_own_comm(status.host_code()) : status;
  }
  void cancel(core::HostRequest& bits) noexcept override {
    int finalized = 0;
    if (host::Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    auto request = from_bits<MPI_Request>(bits);
    (void)host::Cancel(&request);
    (void)host::Wait(&request, MPI_STATUS_IGNORE);
  }
  Status opened() override { return {}; }

 private:
  const MPI_Comm comm_;
};

Status gather(const WindowState& state, const void* mine, void* all, std::size_t size_bytes) {
  const int count = static_cast<int>(size_bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  Status status = on_own_comm(
      host::Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, state.comm, &request));
  if (!status.ok()) return status;
  engine().wait_until([&] {
    state.ours->receive();
    int done = 0;
    status = on_own_comm(host::Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0 || !status.ok();
  });
  return status;
}

// The same answer on all ranks.
Status any_rank(MPI_Comm comm, bool mine, bool& any) {
  int word = mine ? 1 : 0;
  const int code = run_twin(
      [&](MPI_Request* request) {
        return host::Iallreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_MAX, comm, request);
      },
      MPI_STATUS_IGNORE);
  any = word != 0;
  return Status::from_host(code);
}

// In what the host MPI's arithmetic takes: with the gaps of pairs.
Status combine(const rma::Update& update, const std::byte* in, std::byte* inout,
               std::size_t size_bytes) {
  const MPI_Datatype datatype = type_of_number(update.type);
  const auto type = typemap(datatype);
  if (!type) return {StatusCode::invalid_argument, "a type that this rank's MPI does not have"};
  const MPI_Op op = op_of_number(update.op);
  const std::size_t count = size_bytes / update.element_bytes;
  const auto reduce = [&](const std::byte* from, std::byte* to) {
    return Status::from_host(host::Reduce_local(from, to, static_cast<int>(count), datatype, op));
  };
  const core::Segment elements{type, count, 0};
  const rma::Pieces pieces = rma::pieces_of(elements);
  if (op == MPI_OP_NULL || rma::size_of(pieces) != size_bytes)
    return {StatusCode::mismatch, "an operation on elements of another length than its type has"};
  if (pieces.size() == 1) return reduce(in, inout);
  std::vector<std::byte> spread_in(static_cast<std::size_t>(elements.high_bytes()));
  std::vector<std::byte> spread(spread_in.size());
  ACCORD_TRY(rma::unpack(rma::Place::host(spread_in.data()), pieces, in));
  ACCORD_TRY(rma::unpack(rma::Place::host(spread.data()), pieces, inout));
  ACCORD_TRY(reduce(spread_in.data(), spread.data()));
  return rma::pack(inout, rma::Place::host(spread.data()), pieces);
}

// A communicator of the same ranks without the program's attributes.
Status make_comm(MPI_Comm comm, MPI_Comm& made) {
  MPI_Group group = MPI_GROUP_NULL;
  ACCORD_TRY(Status::from_host(host::Comm_group(comm, &group)));
  int code = MPI_SUCCESS;
  {
    const Region region(engine());
    code = host::Comm_create(comm, group, &made);
  }
  (void)host::Group_free(&group);
  ACCORD_TRY(Status::from_host(code));
  return Status::from_host(host::Comm_set_errhandler(made, MPI_ERRORS_RETURN));
}

// What the program has said of equal parts does not hold of those that the host MPI gets.
MPI_Info without_equal_parts(MPI_Info info) {
  MPI_Info given = MPI_INFO_NULL;
  if (info == MPI_INFO_NULL || host::Info_dup(info, &given) != MPI_SUCCESS) return MPI_INFO_NULL;
  (void)host::Info_set(given, "same_size", "false");
  return given;
}

Status open_window(WindowState& state, const CommState& ranks, const GivenPart& part,
                   MPI_Comm comm) {
  ACCORD_TRY(make_comm(comm, state.comm));
  state.base = part.base;
  state.size_bytes = part.size_bytes;
  state.unit_bytes = static_cast<int>(part.unit_bytes);
  state.flavor = part.flavor;
  rma::Part mine{.base = static_cast<std::byte*>(part.base),
                 .size_bytes = static_cast<std::uint64_t>(part.size_bytes),
                 .unit_bytes = part.unit_bytes,
                 .where = {},
                 .is_dynamic = part.flavor == MPI_WIN_FLAVOR_DYNAMIC};
  if (mine.size_bytes != 0) mine.where = device::classify_argument(part.base);
  state.ours = std::make_unique<rma::Window>(engine(), ranks.rank, ranks.size, combine);
  return state.ours->open(
      mine, std::make_unique<WindowWire>(state.comm),
      [&](const void* one, void* all, std::size_t size_bytes) {
        return gather(state, one, all, size_bytes);
      },
      window_transports(comm));
}

void close_window(WindowState& state) {
  state.ours.reset();
  if (state.comm != MPI_COMM_NULL) {
    const Region region(engine());
    (void)host::Comm_free(&state.comm);
  }
}

#ifdef OPEN_MPI
MPI_Win window_of_fortran(int handle) {
  return PMPI_Win_f2c != nullptr ? PMPI_Win_f2c(handle) : MPI_WIN_NULL;
}
constexpr int kFortranKeyvalShift = 0;
#else
MPI_Win window_of_fortran(int handle) {
  return from_bits<MPI_Win>(static_cast<std::uint64_t>(static_cast<unsigned>(handle)));
}
constexpr int kFortranKeyvalShift = 1;  // of MPICH's keyvals to C's
#endif

// Fortran gets numbers where C gets pointers to them.
void right_attribute_of_fortran(int handle, int keyval, void* value) {
  const auto state = windows().find(window_of_fortran(handle));
  if (state == nullptr || state->ours == nullptr) return;
  const auto tell = [&](MPI_Aint number) { std::memcpy(value, &number, sizeof number); };
  keyval -= kFortranKeyvalShift;
  if (keyval == MPI_WIN_BASE) tell(reinterpret_cast<MPI_Aint>(state->base));
  if (keyval == MPI_WIN_SIZE) tell(state->size_bytes);
  if (keyval == MPI_WIN_DISP_UNIT) tell(state->unit_bytes);
  if (keyval == MPI_WIN_CREATE_FLAVOR) tell(state->flavor);
}

int make_window(const GivenPart& part, MPI_Info info, MPI_Comm comm, MPI_Win* win,
                const MakeHostWindow& make) {
  const CommState* const ranks = comm_state(comm);
  const auto state = std::make_shared<WindowState>();
  const Status opened = open_window(*state, *ranks, part, comm);
  if (!opened.ok()) {
    close_window(*state);
    return raise(comm, opened);
  }
  const bool is_host = state->ours->route(ranks->rank) == rma::Route::host;
  state->is_of_host = state->ours->has_host_memory();
  MPI_Info given = without_equal_parts(info);
  int code = MPI_SUCCESS;
  {
    const Region region(engine());
    code = make(is_host ? part.base : nullptr, is_host ? part.size_bytes : 0, given, win);
  }
  if (given != MPI_INFO_NULL) (void)host::Info_free(&given);
  if (code != MPI_SUCCESS) {
    close_window(*state);
    return code;
  }
  windows().insert(*win, state);
  preload::put_window_attributes_right(right_attribute_of_fortran);
  return MPI_SUCCESS;
}

// Negative arguments are for the host MPI to report.
bool is_sound(const GivenPart& part, MPI_Comm comm) {
  const CommState* const state = comm_state(comm);
  return state != nullptr && !state->inter && part.size_bytes >= 0 && part.unit_bytes > 0;
}

}  // namespace

Status on_own_comm(int code) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)host::Error_string(code, text, &length);
  return {StatusCode::network, std::string("a message of the window has failed: ") + text};
}

// What a peer has sent before its end may still be on its way.
Status wait_for_peers(const WindowState& state, std::span<const int> ranks, const Look& look) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kGrace{1};
  rma::LifeChecks checks;
  Status gone;
  Clock::time_point since;
  Status status;
  engine().wait_until([&] {
    bool done = false;
    status = look(done);
    if (done || !status.ok()) return true;
    if (gone.ok() && checks.is_due()) {
      gone = state.ours->check_lives(ranks);
      since = Clock::now();
    }
    if (gone.ok() || Clock::now() - since < kGrace) return false;
    status = gone;
    return true;
  });
  return status;
}

// After an error its request is nobody's: a collective cannot be cancelled.
Status window_barrier(const WindowState& state) {
  MPI_Request request = MPI_REQUEST_NULL;
  ACCORD_TRY(on_own_comm(host::Ibarrier(state.comm, &request)));
  return wait_for_peers(state, {}, [&](bool& done) {
    int flag = 0;
    const int code = host::Test(&request, &flag, MPI_STATUS_IGNORE);
    done = flag != 0;
    return on_own_comm(code);
  });
}

int create_window(const char* name, const GivenPart& part, MPI_Info info, MPI_Comm comm,
                  MPI_Win* win, const MakeHostWindow& make) {
  const core::CallScope scope(name, {"base", part.base});
  const CommState* const state = comm_state(comm);
  bool any = false;
  if (state != nullptr && !state->inter) {
    const bool mine = is_sound(part, comm) && part.size_bytes > 0 && device::must_stage(part.base);
    if (const Status told = any_rank(comm, mine, any); !told.ok()) return told.host_code();
  }
  if (any) return make_window(part, info, comm, win, make);
  const Region region(engine());
  return make(part.base, part.size_bytes, info, win);
}

// Nobody knows at what address of another rank there will be device memory: with devices about,
// its owner does all that happens there. Within a node its peers can look what it has attached.
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (const int code = wait_for_turn(comm); code != MPI_SUCCESS) return code;
  const core::CallScope scope("MPI_Win_create_dynamic");
  const CommState* const state = comm_state(comm);
  bool any = job.has_devices;
  if (state != nullptr && !state->inter && state->mixed_worlds)
    if (const Status told = any_rank(comm, any, any); !told.ok()) return told.host_code();
  const bool is_ours =
      any && state != nullptr && !state->inter && (state->size == 1 || engine().threads_allowed());
  if (is_ours)
    return make_window({.flavor = MPI_WIN_FLAVOR_DYNAMIC}, info, comm, win,
                       [&](void*, MPI_Aint, MPI_Info given, MPI_Win* made) {
                         return host::Win_create_dynamic(given, comm, made);
                       });
  const Region region(engine());
  return host::Win_create_dynamic(info, comm, win);
}

bool wants_device_memory(MPI_Info info, MPI_Comm comm, int& code) {
  constexpr const char* kKindsKey = "mpi_memory_alloc_kinds";
  const CommState* const state = comm_state(comm);
  if (!job.has_devices || state == nullptr || state->inter || state->mixed_worlds) return false;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  if (info != MPI_INFO_NULL) (void)host::Info_get(info, kKindsKey, MPI_MAX_INFO_VAL, value, &found);
  const bool mine = found != 0 && std::string_view(value).find(":device") != std::string_view::npos;
  bool any = false;
  const Status told = any_rank(comm, mine, any);
  code = told.ok() ? MPI_SUCCESS : told.host_code();
  return any;
}

int allocate_window(const GivenPart& part, MPI_Info info, MPI_Comm comm, void* baseptr,
                    MPI_Win* win, const MakeHostWindow& make) {
  const core::CallScope scope("MPI_Win_allocate");
  device::DeviceRuntime& runtime = device::default_runtime();
  GivenPart mine = part;
  Status made;
  if (is_sound(part, comm) && part.size_bytes > 0)
    made = runtime.allocate(std::max(0, runtime.device_in_use()), device::MemoryKind::device,
                            static_cast<std::size_t>(part.size_bytes), mine.base);
  bool failed = false;
  if (const Status told = any_rank(comm, !made.ok(), failed); !told.ok()) return told.host_code();
  int code = MPI_SUCCESS;
  if (failed)
    code =
        raise(comm, made.ok() ? Status(StatusCode::no_memory, "another rank has no memory") : made);
  else
    code = create_window("MPI_Win_allocate", mine, info, comm, win, make);
  if (code != MPI_SUCCESS) {
    if (mine.base != nullptr) (void)runtime.free(mine.base);
    return code;
  }
  if (const auto state = windows().find(*win)) state->is_allocated = mine.base != nullptr;
  std::memcpy(baseptr, &mine.base, sizeof mine.base);
  return MPI_SUCCESS;
}

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  const core::CallScope scope("MPI_Win_attach", {"base", base});
  const auto state = windows().find(win);
  if (state != nullptr && state->ours != nullptr && state->ours->is_dynamic()) {
    if (size < 0) return raise_on_window(win, {StatusCode::invalid_argument, "a negative size"});
    const bool is_host = !device::needs_staging(device::classify_argument(base));
    if (is_host && state->ours->is_mixed())
      if (const int code = host::Win_attach(win, base, size); code != MPI_SUCCESS) return code;
    if (size == 0) return MPI_SUCCESS;
    return raise_on_window(win,
                           state->ours->attach(base, static_cast<std::uint64_t>(size), is_host));
  }
  if (size > 0 && device::must_stage(base))
    return raise_on_window(
        win, {StatusCode::unsupported,
              "device memory in a window whose ranks have not said that they use devices"});
  return host::Win_attach(win, base, size);
}

int Win_detach(MPI_Win win, const void* base) {
  const auto state = windows().find(win);
  if (state == nullptr || state->ours == nullptr || !state->ours->is_dynamic())
    return host::Win_detach(win, base);
  const core::CallScope scope("MPI_Win_detach", {"base", base});
  bool is_host = false;
  const Status detached = state->ours->detach(base, is_host);
  return is_host ? host::Win_detach(win, base) : raise_on_window(win, detached);
}

// All have completed their operations, then all have stopped asking whether others live, then all
// have let go of each other's memory: the program may free its own. With a rank gone the window
// stays, since the host MPI would wait for that rank.
int Win_free(MPI_Win* win) {
  int code = MPI_SUCCESS;
  const auto state = win != nullptr ? windows().find(*win) : nullptr;
  if (state != nullptr && state->ours != nullptr) {
    const core::CallScope scope("MPI_Win_free");
    const Status flushed = state->ours->flush_all();
    Status met = window_barrier(*state);
    if (met.ok()) {
      state->ours->wind_up();
      met = window_barrier(*state);
    }
    if (met.ok()) {
      state->ours->close();
      met = window_barrier(*state);
    }
    if (!met.ok()) return raise_on_window(*win, met);
    code = raise_on_window(*win, flushed);
    void* const allocated = state->is_allocated ? state->base : nullptr;
    close_window(*state);
    if (allocated != nullptr) (void)device::default_runtime().free(allocated);
  }
  if (win != nullptr) (void)windows().erase(*win);
  const Region region(engine());
  const int freed = host::Win_free(win);
  return freed != MPI_SUCCESS ? freed : code;
}

int Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
  const auto state = windows().find(win);
  void* value = nullptr;
  if (state != nullptr && state->ours != nullptr && attribute_val != nullptr && flag != nullptr) {
    if (win_keyval == MPI_WIN_BASE) value = state->base;
    if (win_keyval == MPI_WIN_SIZE) value = &state->size_bytes;
    if (win_keyval == MPI_WIN_DISP_UNIT) value = &state->unit_bytes;
    if (win_keyval == MPI_WIN_CREATE_FLAVOR) value = &state->flavor;
  }
  const bool is_ours = value != nullptr ||
                       (state != nullptr && state->ours != nullptr && win_keyval == MPI_WIN_BASE);
  if (!is_ours) return host::Win_get_attr(win, win_keyval, attribute_val, flag);
  std::memcpy(attribute_val, &value, sizeof value);
  *flag = 1;
  return MPI_SUCCESS;
}

}  // namespace accord::shim
