// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/check.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unwind.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "shim/describe.h"

namespace accord::shim::check {

// Bytes that a call reads or writes, in memory of a device.
struct Touched {
  const char* argument;
  void* user;
  device::PointerInfo where;
  core::Segment segment;
  bool is_written;

  std::byte* low() const { return core::at(user, segment.low_bytes()); }
  std::byte* high() const { return core::at(user, segment.high_bytes()); }
};

// A call that has been looked at; kept while the request that it has made is active, and a
// persistent one for good.
struct Record {
  const char* name;
  std::uint64_t comm_bits;
  std::string comm;
  const void* site;
  bool is_persistent;
  bool is_active;
  std::vector<Touched> touched;
};

namespace {

using Bits = core::HostRequest;

// Several requests may have one handle: some MPIs give the same one to all that are complete at
// birth.
struct State {
  std::mutex mutex;
  std::unordered_multimap<Bits, std::shared_ptr<Record>> records;
  std::set<std::tuple<const void*, std::string_view, std::uint64_t, std::string>> told;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

// The libraries between the program and this code: Accord's own and those of MPI, with their
// bindings for other languages.
bool is_between(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const std::string_view name = slash != nullptr ? slash + 1 : info.dli_fname;
  return name.starts_with("libaccord") || name.starts_with("libmpi") || name.starts_with("libpmpi");
}

// Where the program has called MPI: the last byte of that call.
const void* call_site() {
  const void* site = nullptr;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* found) {
        const auto* const call = reinterpret_cast<const char*>(_Unwind_GetIP(frame)) - 1;
        if (is_between(call)) return _URC_NO_REASON;
        *static_cast<const void**>(found) = call;
        return _URC_END_OF_STACK;
      },
      &site);
  return site;
}

// As addr2line takes it.
std::string words_of_site(const void* site) {
  Dl_info info{};
  if (site == nullptr || dladdr(site, &info) == 0 || info.dli_fname == nullptr)
    return fmt::format("{}", site);
  const auto offset = static_cast<const char*>(site) - static_cast<const char*>(info.dli_fbase);
  const std::string function =
      info.dli_sname != nullptr ? fmt::format(" in {}", info.dli_sname) : "";
  return fmt::format("{}+{:#x}{}", info.dli_fname, offset, function);
}

std::string words_of_comm(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  int size = 0;
  if (comm == MPI_COMM_NULL || host::Comm_size(comm, &size) != MPI_SUCCESS) return "";
  if (host::Comm_get_name(comm, name, &length) != MPI_SUCCESS || length == 0)
    return fmt::format(" on a communicator of {}", size);
  return fmt::format(" on {} of {}", name, size);
}

std::string words_of(const Touched& one) {
  return fmt::format("{} {}", one.argument, static_cast<const void*>(one.user));
}

std::string words_of_memory(const Touched& one) {
  return fmt::format("{} B at {} on {} device {}", one.where.size_bytes,
                     static_cast<const void*>(one.where.base), one.where.runtime->name(),
                     one.where.device);
}

// Once for each call site, call, communicator, argument and kind of finding. Under the lock.
bool is_new(const Record& call, const Touched& one, const char* kind) {
  return state()
      .told.emplace(call.site, call.name, call.comm_bits, fmt::format("{} {}", one.argument, kind))
      .second;
}

void say(const Record& call, const std::string& what) {
  log::warn("check: {}{}: {} [{}]", call.name, call.comm, what, words_of_site(call.site));
}

// Work in other streams cannot be seen, nor whether this touches the buffer: a hint.
void look_for_work(const Record& call) {
  for (const Touched& one : call.touched) {
    bool is_busy = false;
    if (one.where.runtime == nullptr ||
        !one.where.runtime->default_stream_busy(one.where, is_busy).ok() || !is_busy)
      continue;
    if (is_new(call, one, "work"))
      say(call, fmt::format("{}: the default stream of {} device {} has unfinished work; if that "
                            "{} the buffer, wait for it first",
                            words_of(one), one.where.runtime->name(), one.where.device,
                            one.is_written ? "uses" : "writes"));
    return;
  }
}

// Neighbouring mappings of the virtual memory API may make up one buffer.
const std::byte* end_of_memory(const Touched& one) {
  const auto* end = static_cast<const std::byte*>(one.where.base) + one.where.size_bytes;
  if (!one.where.is_mapping) return end;
  while (end < one.high()) {
    const device::PointerInfo next = device::classify(end);
    if (!next.is_mapping || next.base != end) break;
    end += next.size_bytes;
  }
  return end;
}

void look_for_ends(const Record& call) {
  for (const Touched& one : call.touched) {
    if (one.where.size_bytes == 0) continue;
    const auto* const base = static_cast<const std::byte*>(one.where.base);
    const char* const does = one.is_written ? "writes" : "reads";
    if (one.low() < base && is_new(call, one, "begin"))
      say(call, fmt::format("{}: {} {} B before the allocation ({})", words_of(one), does,
                            base - one.low(), words_of_memory(one)));
    const std::byte* const end = end_of_memory(one);
    if (one.high() > end && is_new(call, one, "end"))
      say(call, fmt::format("{}: {} {} B past the end of the allocation ({})", words_of(one), does,
                            one.high() - end, words_of_memory(one)));
  }
}

// The first byte that two calls, or two arguments, both touch and one writes; null: none.
std::byte* conflict_of(const Touched& one, const Touched& other) {
  if (!one.is_written && !other.is_written) return nullptr;
  return core::first_common_byte(one.segment, one.user, other.segment, other.user);
}

void look_for_overlaps(const Record& call) {
  for (const Touched& one : call.touched) {
    for (const Touched& other : call.touched) {
      if (std::string_view(one.argument) <= other.argument) continue;  // each pair once
      const std::byte* const byte = conflict_of(one, other);
      if (byte == nullptr) continue;
      if (is_new(call, one, "overlap"))
        say(call, fmt::format("{} and {} overlap, first at {}", words_of(one), words_of(other),
                              static_cast<const void*>(byte)));
      return;
    }
  }
}

// Under the lock.
void look_for_reuse(const Record& call) {
  for (const auto& [bits, active] : state().records) {
    if (!active->is_active || active.get() == &call) continue;
    for (const Touched& one : call.touched) {
      for (const Touched& other : active->touched) {
        const std::byte* const byte = conflict_of(one, other);
        if (byte == nullptr || !is_new(call, one, "reuse")) continue;
        say(call, fmt::format("{}: {} what {} of an {}{} {}, which is not complete, first at {}; "
                              "that was called at {}",
                              words_of(one), one.is_written ? "writes" : "reads", words_of(other),
                              active->name, active->comm, other.is_written ? "writes" : "reads",
                              static_cast<const void*>(byte), words_of_site(active->site)));
        return;
      }
    }
  }
}

// Under the lock.
void look_for_freed(const Record& completing, const Record& active) {
  for (const Touched& one : active.touched) {
    const device::PointerInfo now = device::classify(one.low());
    const bool is_there = device::needs_staging(now) && now.buffer_id == one.where.buffer_id;
    if (is_there || one.where.size_bytes == 0 || !is_new(completing, one, "freed")) continue;
    say(completing, fmt::format("{} of an {}{} has been freed while the request was active ({}); "
                                "that was called at {}",
                                words_of(one), active.name, active.comm, words_of_memory(one),
                                words_of_site(active.site)));
  }
}

void add(std::vector<Touched>& touched, const char* argument, const core::StagedBuffer& buffer) {
  if (!buffer.is_staged()) return;
  const auto put = [&](const std::vector<core::Segment>& segments, bool is_written) {
    for (const core::Segment& segment : segments)
      touched.push_back({argument, buffer.user(), buffer.where(), segment, is_written});
  };
  put(buffer.read_segments(), false);
  put(buffer.written_segments(), true);
}

}  // namespace

void open() { on = config().check; }

void Call::examine(const Description& d) {
  record_ = std::make_shared<Record>(Record{.name = name_,
                                            .comm_bits = to_bits(comm_),
                                            .comm = words_of_comm(comm_),
                                            .site = call_site(),
                                            .is_persistent = lifetime_ == Lifetime::persistent,
                                            .is_active = lifetime_ == Lifetime::call,
                                            .touched = {}});
  add(record_->touched, names_.send, d.send);
  add(record_->touched, names_.recv, d.recv);
  if (request_ != nullptr) before_ = *request_;
  const std::lock_guard<std::mutex> locked(state().mutex);
  look_for_ends(*record_);
  look_for_overlaps(*record_);
  if (record_->is_persistent) return;
  look_for_work(*record_);
  look_for_reuse(*record_);
}

void Call::conclude() {
  if (request_ == nullptr || *request_ == MPI_REQUEST_NULL || *request_ == before_ ||
      record_->touched.empty())
    return;
  const std::lock_guard<std::mutex> locked(state().mutex);
  state().records.emplace(to_bits(*request_), std::move(record_));
}

void look_at_start(const char* name, int count, const MPI_Request requests[]) {
  const std::lock_guard<std::mutex> locked(state().mutex);
  for (int i = 0; i < count && requests != nullptr; ++i) {
    const auto found = state().records.find(to_bits(requests[i]));
    if (found == state().records.end() || !found->second->is_persistent) continue;
    Record& record = *found->second;
    Record call = record;
    call.name = name;
    call.site = call_site();
    record.is_active = false;  // no start conflicts with itself
    look_for_work(call);
    look_for_reuse(call);
    record.is_active = true;
  }
}

void forget_request(MPI_Request request) {
  const std::lock_guard<std::mutex> locked(state().mutex);
  state().records.erase(to_bits(request));
}

struct Completion::Watched {
  const MPI_Request* requests;
  std::vector<std::pair<int, Bits>> known;  // by their places
};

// A call that completes requests by another one has told of them.
thread_local bool is_completing = false;

void Completion::begin(const char* name, int count, const MPI_Request requests[]) {
  if (is_completing) return;
  const std::lock_guard<std::mutex> locked(state().mutex);
  Record call{.name = name,
              .comm_bits = 0,
              .comm = {},
              .site = nullptr,
              .is_persistent = false,
              .is_active = false,
              .touched = {}};
  for (int i = 0; i < count && requests != nullptr; ++i) {
    const auto [first, last] = state().records.equal_range(to_bits(requests[i]));
    if (first == last) continue;
    if (!watched_) watched_ = std::make_shared<Watched>(Watched{requests, {}});
    is_completing = true;
    if (call.site == nullptr) call.site = call_site();
    watched_->known.emplace_back(i, first->first);
    for (auto one = first; one != last; ++one)
      if (one->second->is_active) look_for_freed(call, *one->second);
  }
}

// Of requests with one handle all are taken for complete: none that is shall be told of.
void Completion::end() {
  is_completing = false;
  const std::lock_guard<std::mutex> locked(state().mutex);
  for (const auto& [index, bits] : watched_->known) {
    if (watched_->requests[index] == MPI_REQUEST_NULL) {
      state().records.erase(bits);
      continue;
    }
    const auto work = requests().look(bits);
    if (work && work->active) continue;
    const auto [first, last] = state().records.equal_range(bits);
    for (auto one = first; one != last; ++one)
      if (one->second->is_persistent) one->second->is_active = false;
  }
}

}  // namespace accord::shim::check
