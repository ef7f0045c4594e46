// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/ucx.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

#include "base/config.h"

namespace accord::net {
namespace {

constexpr const char* kLibrary = "libucp.so.0";

// A variable that UCX reads while it is loaded, set unless the user has, and taken away again.
class LoadingWith {
 public:
  LoadingWith(const char* name, const char* value)
      : name_(name), is_ours_(std::getenv(name) == nullptr) {
    if (is_ours_) (void)::setenv(name_, value, 0);
  }
  ~LoadingWith() {
    if (is_ours_) (void)::unsetenv(name_);
  }
  LoadingWith(const LoadingWith&) = delete;
  LoadingWith& operator=(const LoadingWith&) = delete;

 private:
  const char* name_;
  bool is_ours_;
};

void* open_library(const char* name) {
  // Where the host MPI has loaded it already, it is that one, as the host MPI has set it up.
  if (void* const present = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return present;
  // UCX would write its messages to stdout and put handlers of its own on the program's signals.
  const LoadingWith messages("UCX_LOG_FILE", "stderr");
  const LoadingWith signals("UCX_HANDLE_ERRORS", "none");
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

struct Loaded {
  Ucx functions;
  Status status;
};

Status load(Ucx& ucx) {
  // For tests: as on a machine that has none.
  if (std::getenv("ACCORD_TEST_NO_UCX") != nullptr)
    return {StatusCode::unsupported, "ucx: there is none here"};
  const std::string& path = config().ucx_library;
  const char* const name = path == "none" ? kLibrary : path.c_str();
  void* const library = open_library(name);
  if (library == nullptr)
    return {StatusCode::unsupported, fmt::format("ucx: {} does not load: {}", name, ::dlerror())};
  const char* missing = nullptr;
#define UCX_FUNCTION(member, symbol)                                              \
  ucx.member = reinterpret_cast<decltype(ucx.member)>(::dlsym(library, #symbol)); \
  if (ucx.member == nullptr) missing = #symbol;
#include "net/ucx.def"
#undef UCX_FUNCTION
  // Of libucs, which libucp brings along.
  ucx.status_string =
      reinterpret_cast<decltype(ucx.status_string)>(::dlsym(library, "ucs_status_string"));
  if (ucx.status_string == nullptr) missing = "ucs_status_string";
  if (missing == nullptr) return {};
  return {StatusCode::unsupported, fmt::format("ucx: {} has no {}", name, missing)};
}

}  // namespace

Status load_ucx(const Ucx*& ucx) {
  static Loaded& loaded = *[] {
    auto* const made = new Loaded;
    made->status = load(made->functions);
    return made;
  }();
  ucx = loaded.status.ok() ? &loaded.functions : nullptr;
  return loaded.status;
}

}  // namespace accord::net
