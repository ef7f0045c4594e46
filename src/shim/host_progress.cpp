// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/host_progress.h"

#include <dlfcn.h>

#include <mutex>

#include "core/blocking_calls.h"
#include "shim/shim.h"

namespace accord::shim {
namespace {

// The same in all releases of Open MPI. What the function returns counts events.
using EventFunction = int (*)();
using Registration = int (*)(EventFunction);

std::mutex& registering() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
bool is_registered = false;

int go_on() {
  core::progress_in_blocking_call(engine());
  return 0;
}

// Of the libraries that the host MPI is linked with; null in other MPIs.
Registration find_registration(const char* name) {
  Dl_info host_mpi{};
  if (dladdr(reinterpret_cast<void*>(host::slot::Init), &host_mpi) == 0) return nullptr;
  void* const library = dlopen(host_mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto found = reinterpret_cast<Registration>(dlsym(library, name));
  (void)dlclose(library);  // it stays loaded
  return found;
}

}  // namespace

void progress_from_host() {
  const std::lock_guard<std::mutex> locked(registering());
  if (is_registered || engine().threads_allowed()) return;
  const Registration add = find_registration("opal_progress_register");
  is_registered = add != nullptr && add(go_on) == 0;
  if (is_registered) core::expect_calls_of_host();
}

void stop_progress_from_host() {
  const std::lock_guard<std::mutex> locked(registering());
  const Registration remove =
      is_registered ? find_registration("opal_progress_unregister") : nullptr;
  if (remove != nullptr) (void)remove(go_on);
  is_registered = false;
}

}  // namespace accord::shim
