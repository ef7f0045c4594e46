// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Windows. One of which no rank's memory is on a device is the host MPI's, and only origin and
// result buffers on a device are staged until the call that completes the operation. Else there is
// a window of ours (rma/window.h) beside the host MPI's, which has the handle, its attributes, and
// the memory of ranks whose part is host memory (nothing of the others). The epochs of active
// targets are messages on a communicator of ours, since the host MPI may let MPI_Win_start return
// before the target has posted: it puts off operations of its own, but knows nothing of ours.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "rma/window.h"
#include "shim/collectives.h"
#include "shim/describe.h"
#include "shim/twins.h"

namespace accord::shim {

// A one-sided operation as the program has made it, with MPI's names.
struct OneSided {
  enum class Kind { put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap };
  Kind kind;
  const void* origin_addr = nullptr;  // where MPI_Get puts what it reads, too
  MPI_Count origin_count = 1;
  MPI_Datatype origin_datatype = MPI_DATATYPE_NULL;
  const void* compare_addr = nullptr;
  void* result_addr = nullptr;
  MPI_Count result_count = 1;
  MPI_Datatype result_datatype = MPI_DATATYPE_NULL;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;  // of all, where there are no others
  int target_rank = MPI_PROC_NULL;
  MPI_Aint target_disp = 0;
  MPI_Count target_count = 1;
  MPI_Datatype target_datatype = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;

  // With the types named where the call has one for all.
  OneSided complete() const {
    OneSided whole = *this;
    if (datatype != MPI_DATATYPE_NULL)
      whole.origin_datatype = whole.result_datatype = whole.target_datatype = datatype;
    return whole;
  }
  bool fetches() const noexcept {
    return kind == Kind::get_accumulate || kind == Kind::fetch_and_op ||
           kind == Kind::compare_and_swap;
  }
};

// The buffers of an operation of the host MPI's, of which some are staged. They are copied out
// once, by the first call that completes it.
struct StagedOperation {
  int target = 0;
  std::size_t result_bytes = 0;  // what the target gives: the buffer may have room for more
  Description buffers;           // send: origin; recv: result
  core::StagedBuffer compare;
  bool is_copied = false;  // guarded by the window's mutex
};
using StagedOperations = std::vector<std::shared_ptr<StagedOperation>>;

struct WindowState {
  std::unique_ptr<rma::Window> ours;  // null: the host MPI has all memory
  bool is_of_host = true;             // some of it
  MPI_Comm comm = MPI_COMM_NULL;      // its ranks, for messages of ours; where there is `ours`
  // What the program has said, for its attributes.
  void* base = nullptr;
  MPI_Aint size_bytes = 0;
  int unit_bytes = 1;
  bool is_allocated = false;  // by us
  int flavor = MPI_WIN_FLAVOR_CREATE;

  std::mutex mutex;  // guards what follows
  StagedOperations staged;
  std::vector<int> started;            // targets of MPI_Win_start
  std::vector<int> exposed_to;         // origins of MPI_Win_post
  std::vector<MPI_Request> exposures;  // until those are through
  rma::LifeChecks checks;              // of these, by MPI_Win_test
};

class WindowTable {
 public:
  bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  // Null for those of the host MPI's of which nothing is kept.
  std::shared_ptr<WindowState> find(MPI_Win win);
  std::shared_ptr<WindowState> find_or_make(MPI_Win win);
  void insert(MPI_Win win, std::shared_ptr<WindowState> state);
  std::shared_ptr<WindowState> erase(MPI_Win win);
  std::vector<std::shared_ptr<WindowState>> all();

 private:
  std::atomic<std::size_t> count_{0};
  std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<WindowState>> by_window_;
};
WindowTable& windows();

// Before the engine is waited for: windows that the program has not freed serve nobody any more.
void stop_windows();

// On other pointers than the program's: origin, compare, result.
using OneSidedCall = std::function<int(void*, void*, void*)>;
int carry_out(const char* name, const OneSided& call, MPI_Win win, MPI_Request* request,
              const OneSidedCall& host_call);

template <class HostCall>
int one_sided(const char* name, const OneSided& call, MPI_Win win, MPI_Request* request,
              HostCall host_call) {
  if (windows().empty() && !needs_us(call.origin_addr) && !needs_us(call.result_addr) &&
      !needs_us(call.compare_addr))
    return host_call(const_cast<void*>(call.origin_addr), const_cast<void*>(call.compare_addr),
                     call.result_addr);
  return carry_out(name, call, win, request, host_call);
}

// This rank's part of a window as the program gives it.
struct GivenPart {
  void* base = nullptr;
  MPI_Aint size_bytes = 0;
  MPI_Aint unit_bytes = 1;
  int flavor = MPI_WIN_FLAVOR_CREATE;
};
using MakeHostWindow = std::function<int(void* base, MPI_Aint size, MPI_Info info, MPI_Win* win)>;
// All ranks come here. `make` makes the host MPI's.
int create_window(const char* name, const GivenPart& part, MPI_Info info, MPI_Comm comm,
                  MPI_Win* win, const MakeHostWindow& make);
int create_dynamic_window(MPI_Info info, MPI_Comm comm, MPI_Win* win);
// Whether MPI_Win_allocate shall take device memory, as some rank's info asks for; then it is.
bool wants_device_memory(MPI_Info info, MPI_Comm comm, int& code);
int allocate_window(const GivenPart& part, MPI_Info info, MPI_Comm comm, void* baseptr,
                    MPI_Win* win, const MakeHostWindow& make);

template <class S, class D>
int Win_create(void* base, S size, D disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (const int code = wait_for_turn(comm); code != MPI_SUCCESS) return code;
  return create_window(
      "MPI_Win_create",
      {.base = base,
       .size_bytes = static_cast<MPI_Aint>(size),
       .unit_bytes = static_cast<MPI_Aint>(disp_unit)},
      info, comm, win, [=](void* host_base, MPI_Aint host_size, MPI_Info given, MPI_Win* made) {
        return host::Win_create(host_base, static_cast<S>(host_size), disp_unit, given, comm, made);
      });
}

template <class S, class D>
int Win_allocate(S size, D disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  if (const int code = wait_for_turn(comm); code != MPI_SUCCESS) return code;
  int code = MPI_SUCCESS;
  const bool on_device = wants_device_memory(info, comm, code);
  if (code != MPI_SUCCESS) return code;
  const Region region(engine());
  if (!on_device) return host::Win_allocate(size, disp_unit, info, comm, baseptr, win);
  return allocate_window({.size_bytes = static_cast<MPI_Aint>(size),
                          .unit_bytes = static_cast<MPI_Aint>(disp_unit),
                          .flavor = MPI_WIN_FLAVOR_ALLOCATE},
                         info, comm, baseptr, win,
                         [=](void* host_base, MPI_Aint host_size, MPI_Info given, MPI_Win* made) {
                           return host::Win_create(host_base, static_cast<S>(host_size), disp_unit,
                                                   given, comm, made);
                         });
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_attach(MPI_Win win, void* base, MPI_Aint size);
int Win_detach(MPI_Win win, const void* base);
int Win_free(MPI_Win* win);
int Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag);

int Win_fence(int assert, MPI_Win win);
int Win_post(MPI_Group group, int assert, MPI_Win win);
int Win_start(MPI_Group group, int assert, MPI_Win win);
int Win_complete(MPI_Win win);
int Win_wait(MPI_Win win);
int Win_test(MPI_Win win, int* flag);

int Win_lock(int lock_type, int rank, int assert, MPI_Win win);
int Win_unlock(int rank, MPI_Win win);
int Win_lock_all(int assert, MPI_Win win);
int Win_unlock_all(MPI_Win win);
int Win_flush(int rank, MPI_Win win);
int Win_flush_all(MPI_Win win);
int Win_flush_local(int rank, MPI_Win win);
int Win_flush_local_all(MPI_Win win);
int Win_sync(MPI_Win win);

// Parts of these, in more than one file.

inline constexpr int kAllTargets = -1;
// What is to be completed with that target. Asked before the host MPI's call that completes it:
// other threads begin more meanwhile, which that call may leave under way.
StagedOperations staged_for(WindowState& state, int target);
// After that call: what they have brought goes to the program's buffers.
Status complete_staged(WindowState& state, const StagedOperations& operations);
// Of a call on the window's own communicator, whose errors call no handler of the program's.
Status on_own_comm(int code);
// Waits until `look` says so while operations of ours go on, but not for ranks that are gone; of
// none named: for all of the window.
using Look = std::function<Status(bool& done)>;
Status wait_for_peers(const WindowState& state, std::span<const int> ranks, const Look& look);
// For all ranks of the window.
Status window_barrier(const WindowState& state);

}  // namespace accord::shim
