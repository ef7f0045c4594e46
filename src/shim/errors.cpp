// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "shim/shim.h"

namespace accord::shim {
namespace {

int error_class(StatusCode code) {
  switch (code) {
    case StatusCode::invalid_argument:
      return MPI_ERR_ARG;
    case StatusCode::no_memory:
      return MPI_ERR_NO_MEM;
    case StatusCode::unsupported:
      return MPI_ERR_BUFFER;
    case StatusCode::truncated:
      return MPI_ERR_TRUNCATE;
    case StatusCode::out_of_window:
      return MPI_ERR_RMA_RANGE;
    case StatusCode::no_epoch:
      return MPI_ERR_RMA_SYNC;
    default:
      return MPI_ERR_OTHER;
  }
}

std::string kind_words(const device::PointerInfo& where) {
  if (where.runtime == nullptr) return "host memory";
  switch (where.kind) {
    case device::MemoryKind::device:
      return fmt::format("device memory of {} device {}", where.runtime->name(), where.device);
    case device::MemoryKind::managed:
      return fmt::format("managed memory of {} device {}", where.runtime->name(), where.device);
    default:
      return fmt::format("page-locked host memory of {}", where.runtime->name());
  }
}

std::string argument_words(const core::CallSite::Argument& argument) {
  if (argument.address == MPI_IN_PLACE) return fmt::format("; {} MPI_IN_PLACE", argument.name);
  const device::PointerInfo where = device::classify(argument.address);
  std::string words =
      fmt::format("; {} {}: {}", argument.name, argument.address, kind_words(where));
  if (where.base == nullptr) return words;
  const auto offset_bytes =
      static_cast<const std::byte*>(argument.address) - static_cast<const std::byte*>(where.base);
  return words + fmt::format(", {} bytes into an allocation of {} bytes at {}", offset_bytes,
                             where.size_bytes, where.base);
}

// An operation on a window or file, of whose ranks this is.
std::string group_words(const char* name, MPI_Group group) {
  int size = 0;
  int rank = MPI_UNDEFINED;
  (void)host::Group_size(group, &size);
  (void)host::Group_rank(group, &rank);
  (void)host::Group_free(&group);
  return fmt::format(" on {} of {} ranks, rank {}", name, size, rank);
}

std::string window_words(MPI_Win window) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (host::Win_get_name(window, name, &length) != MPI_SUCCESS || length == 0)
    std::strcpy(name, "a window");
  MPI_Group group = MPI_GROUP_NULL;
  return host::Win_get_group(window, &group) == MPI_SUCCESS ? group_words(name, group) : "";
}

std::string file_words(MPI_File file) {
  MPI_Group group = MPI_GROUP_NULL;
  return host::File_get_group(file, &group) == MPI_SUCCESS ? group_words("a file", group) : "";
}

std::string words_of(const core::CallSite& site, const std::string& place,
                     const std::string& cause) {
  std::string words;
  if (site.function != nullptr) words = site.function + place + ": ";
  words += cause;
  for (const auto& argument : site.arguments)
    if (argument.name != nullptr) words += argument_words(argument);
  return words;
}

std::string comm_words(MPI_Comm comm) {
  const CommState* const state = comm_state(comm);
  if (state == nullptr) return "";
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (host::Comm_get_name(comm, name, &length) != MPI_SUCCESS || length == 0)
    std::strcpy(name, "a communicator");
  return state->inter ? fmt::format(" on {} of {} and {} ranks, rank {}", name, state->size,
                                    state->remote_size, state->rank)
                      : fmt::format(" on {} of {} ranks, rank {}", name, state->size, state->rank);
}

// Codes of the host MPI's, which has room for few: the oldest of a class gets another text.
class ErrorCodes {
 public:
  int code_for(int klass, const std::string& text) {
    const std::lock_guard<std::mutex> locked(mutex_);
    const auto same = std::ranges::find_if(
        codes_, [&](const Code& one) { return one.klass == klass && one.text == text; });
    if (same != codes_.end()) return same->number;
    Code code{klass, klass, text};
    if (codes_.size() < kCodesMax) {
      if (host::Add_error_code(klass, &code.number) != MPI_SUCCESS) return klass;
    } else {
      const auto oldest =
          std::ranges::find_if(codes_, [&](const Code& one) { return one.klass == klass; });
      if (oldest == codes_.end()) return klass;
      code.number = oldest->number;
      codes_.erase(oldest);
    }
    (void)host::Add_error_string(code.number, text.c_str());
    codes_.push_back(std::move(code));
    return codes_.back().number;
  }
  void forget() {
    const std::lock_guard<std::mutex> locked(mutex_);
    codes_.clear();
  }

 private:
  static constexpr std::size_t kCodesMax = 64;
  struct Code {
    int klass;
    int number;
    std::string text;
  };
  std::mutex mutex_;
  std::vector<Code> codes_;  // oldest first
};

// Never destroyed: MPI may be called from destructors of the program.
ErrorCodes& error_codes() {
  static ErrorCodes& instance = *new ErrorCodes;
  return instance;
}

bool is_fatal(MPI_Errhandler handler) {
  bool fatal = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
  fatal = fatal || handler == MPI_ERRORS_ABORT;
#endif
  return fatal;
}

// What ends the program is ended by MPI_Abort: the host MPI's own handler would say that the error
// was in MPI_Comm_call_errhandler, which the program has never called.
template <class Handle>
bool ends_program(Handle handle, int (*get)(Handle, MPI_Errhandler*)) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (get(handle, &handler) != MPI_SUCCESS) return false;
  const bool fatal = is_fatal(handler);
  (void)host::Errhandler_free(&handler);
  return fatal;
}

void end_program(MPI_Comm comm, int klass) {
  (void)host::Abort(comm, klass);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // MPICH's returns before it works
}

int get_handler(MPI_Comm comm, MPI_Errhandler* handler) {
  return host::Comm_get_errhandler(comm, handler);
}

template <class Handle>
int raise_through(const Status& status, MPI_Comm comm, Handle handle,
                  int (*get)(Handle, MPI_Errhandler*), int (*call)(Handle, int)) {
  log::error("{}", status.message());
  const int code = error_code(status);
  if (ends_program(handle, get)) end_program(comm, error_class(status.code()));
  (void)call(handle, code);
  return code;
}

}  // namespace

std::string words_of_error(const core::CallSite& site, MPI_Comm comm, const std::string& cause) {
  return words_of(site, comm_words(comm), cause);
}

int error_code(const Status& status) {
  if (status.ok()) return MPI_SUCCESS;
  if (status.code() == StatusCode::host_mpi) return status.host_code();
  return error_codes().code_for(
      error_class(status.code()),
      ("accord: " + status.message()).substr(0, MPI_MAX_ERROR_STRING - 1));
}

void forget_error_codes() { error_codes().forget(); }

int raise(MPI_Comm comm, const Status& status) { return raise(comm, status, core::call_site); }

int raise(MPI_Comm comm, const Status& status, const core::CallSite& site) {
  if (status.ok()) return MPI_SUCCESS;
  if (status.code() == StatusCode::host_mpi) return status.host_code();
  const MPI_Comm to = comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm;
  return raise_through<MPI_Comm>(
      {status.code(), words_of_error(site, to, status.message())}, to, to, get_handler,
      [](MPI_Comm handle, int code) { return host::Comm_call_errhandler(handle, code); });
}

void raise_code(MPI_Comm comm, int code) {
  if (ends_program<MPI_Comm>(comm, get_handler)) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    int klass = MPI_ERR_OTHER;
    (void)host::Error_string(code, text, &length);
    (void)host::Error_class(code, &klass);
    log::error("{}", words_of_error(core::call_site, comm, text));
    end_program(comm, klass);
  }
  (void)host::Comm_call_errhandler(comm, code);
}

int raise_on_window(MPI_Win window, const Status& status) {
  return raise_on_window(window, status, core::call_site);
}

int raise_on_window(MPI_Win window, const Status& status, const core::CallSite& site) {
  if (status.ok()) return MPI_SUCCESS;
  if (status.code() == StatusCode::host_mpi) return status.host_code();
  return raise_through<MPI_Win>(
      {status.code(), words_of(site, window_words(window), status.message())}, MPI_COMM_WORLD,
      window,
      [](MPI_Win handle, MPI_Errhandler* handler) {
        return host::Win_get_errhandler(handle, handler);
      },
      [](MPI_Win handle, int code) { return host::Win_call_errhandler(handle, code); });
}

int raise_on_file(MPI_File file, const Status& status) {
  return raise_on_file(file, status, core::call_site);
}

int raise_on_file(MPI_File file, const Status& status, const core::CallSite& site) {
  if (status.ok()) return MPI_SUCCESS;
  if (status.code() == StatusCode::host_mpi) return status.host_code();
  return raise_through<MPI_File>(
      {status.code(), words_of(site, file_words(file), status.message())}, MPI_COMM_WORLD, file,
      [](MPI_File handle, MPI_Errhandler* handler) {
        return host::File_get_errhandler(handle, handler);
      },
      [](MPI_File handle, int code) { return host::File_call_errhandler(handle, code); });
}

bool has_error_function(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  if (host::Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return false;
  const bool predefined = handler == MPI_ERRORS_RETURN || is_fatal(handler);
  (void)host::Errhandler_free(&handler);
  return !predefined;
}

}  // namespace accord::shim
