// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "preload/bind.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "preload/host_mpi.h"
#include "preload/shim_abi.h"
#include "preload/trampolines.h"

namespace accord::preload {

namespace {

constexpr int kErrorNoMpi = 16;  // what most MPIs call MPI_ERR_OTHER

// Where all ranks of a job learn that one of them has switched Accord off.
constexpr std::string_view kAgreeing[] = {"MPI_Init", "MPI_Init_thread"};

enum class Phase { unbound, binding, bound };

using ShimFunctions = std::unordered_map<std::string_view, void*>;

// Everything below is guarded by `mutex`, which is recursive: what binding opens may itself call
// MPI.
struct State {
  std::atomic<const ElfObject*> chosen{nullptr};  // the host MPI, for those that get no mutex
  std::recursive_mutex mutex;
  Phase phase = Phase::unbound;
  std::vector<ElfObject> hosts;  // the chosen library first
  void* host_handle = nullptr;
  int error_other = kErrorNoMpi;
  bool told_no_mpi = false;
  std::unordered_set<const Trampoline*> told_missing;
  Binding binding;
};

// Never destroyed: programs call MPI_Finalize from atexit handlers and destructors.
State& state() {
  static State& kept = *new State;
  return kept;
}

const char* last_dl_error() {
  const char* text = dlerror();
  return text == nullptr ? "no reason given" : text;
}

// The host MPI's own function; both its names are the same code unless it is built without the
// profiling one.
void* host_function(void* handle, const Trampoline& pmpi) {
  if (void* found = dlsym(handle, pmpi.name)) return found;
  return dlsym(handle, pmpi.name + 1);
}

// A PMPI tool's MPI_X behind us in symbol search order. It will call PMPI_X, which is ours.
void* next_tool_function(const State& bound, const Trampoline& mpi) {
  void* next = dlsym(RTLD_NEXT, mpi.name);
  ElfObject object;
  if (next == nullptr || !find_object(next, object) || object.defines("accord_malloc"))
    return nullptr;
  for (const ElfObject& host : bound.hosts) {
    if (host.dynamic == object.dynamic) return nullptr;
  }
  return next;
}

void set_target(Trampoline& trampoline, void* target) {
  trampoline.target.store(target != nullptr ? target : trampoline.unbound_target,
                          std::memory_order_release);
}

// Finds the host MPI and opens it for good, in global scope: the Open MPI shim refers to its data
// symbols.
bool open_host(State& bound, const void* caller) {
  const std::vector<ElfObject> objects = loaded_objects();
  HostMpiChoice choice;
  if (!choose_host_mpi(objects, caller, choice)) return false;
  for (const ElfObject& other : choice.others) {
    log::warn("several MPI libraries are loaded; serving {}, not {}", choice.library.path,
              other.path);
  }
  bound.chosen.store(new ElfObject(choice.library), std::memory_order_release);
  const char* path = choice.library.path[0] == '\0' ? nullptr : choice.library.path;
  void* handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  if (handle == nullptr) {
    log::error("cannot open the MPI library {}: {}", choice.library.path, last_dl_error());
    return false;
  }
  const Abi abi = abi_of(choice.library, objects);
  bound.host_handle = handle;
  bound.error_other = abi_error_other(abi);
  bound.hosts = {choice.library};
  bound.hosts.insert(bound.hosts.end(), choice.others.begin(), choice.others.end());
  bound.binding.host_path = choice.library.path;
  bound.binding.abi = abi_name(abi);
  return true;
}

// The functions of the shim for this ABI; empty, with the reason in `problem`, where there is none.
ShimFunctions load_shim(const State& bound, const std::string& path, void*& shim,
                        std::string& problem) {
  shim = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (shim == nullptr) {
    problem = fmt::format("cannot open the shim: {}", last_dl_error());
    return {};
  }
  const auto open = reinterpret_cast<decltype(&accord_shim_open)>(dlsym(shim, "accord_shim_open"));
  const auto entries =
      reinterpret_cast<decltype(&accord_shim_entries)>(dlsym(shim, "accord_shim_entries"));
  if (open == nullptr || entries == nullptr) {
    problem = path + " is not a shim of this library";
    return {};
  }
  if (const int failure = open(bound.host_handle); failure != 0) {
    problem = fmt::format("{} cannot serve {} (code {})", path, bound.binding.host_path, failure);
    return {};
  }
  std::size_t count = 0;
  const AccordShimEntry* first = entries(&count);
  ShimFunctions functions;
  for (std::size_t i = 0; i < count; ++i) functions.emplace(first[i].name, first[i].function);
  return functions;
}

// What of it calls go to; the rest goes to the host MPI.
ShimFunctions open_shim(State& bound) {
  const std::string path = library_directory() + "/libaccord_" + bound.binding.abi + ".so";
  void* shim = nullptr;
  std::string problem;
  ShimFunctions functions = load_shim(bound, path, shim, problem);
  if (!config().enable) {
    bound.binding.reason = "switched off by ACCORD_ENABLE";
    std::erase_if(functions, [](const auto& function) {
      return std::ranges::find(kAgreeing, function.first) == std::end(kAgreeing);
    });
    if (functions.empty() && shim != nullptr) dlclose(shim);
  } else if (!problem.empty()) {
    log::error("{}; MPI calls on device memory will fail as they do without accord", problem);
    bound.binding.reason = problem;
  } else {
    bound.binding.shim_path = path;
  }
  return functions;
}

void bind_all(State& bound, const ShimFunctions& shim) {
  const std::span<Trampoline> rows = trampolines();
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2) {
    Trampoline& mpi = rows[i];
    Trampoline& pmpi = rows[i + 1];
    void* own = host_function(bound.host_handle, pmpi);
    const auto found = shim.find(mpi.name);
    // A shim is compiled against one version's header; an older MPI of its ABI may lack some of its
    // functions.
    if (found != shim.end() && (own != nullptr || is_provided_by_accord(mpi.name)))
      own = found->second;
    set_target(pmpi, own);
    void* tool = next_tool_function(bound, mpi);
    set_target(mpi, tool != nullptr ? tool : own);
  }
}

void bind(State& bound, const void* caller) {
  bound.phase = Phase::binding;
  if (!open_host(bound, caller)) {
    bound.phase = Phase::unbound;
    return;
  }
  bind_all(bound, open_shim(bound));
  bound.phase = Phase::bound;
  const bool untouched = bound.binding.shim_path.empty();
  log::debug("serving {} ({} ABI), {}{}", bound.binding.host_path, bound.binding.abi,
             untouched ? "untouched: " : "shim ",
             untouched ? bound.binding.reason : bound.binding.shim_path);
}

// MPIX_Query_cuda_support and its like: an MPI without them supports nothing.
bool is_question(std::string_view name) {
  return name.starts_with("MPIX_Query_") || name.starts_with("PMPIX_Query_");
}

// Why a trampoline still has no target, once; and the code its call returns.
int report_unbound(State& bound, const Trampoline& trampoline) {
  if (bound.phase == Phase::bound && is_question(trampoline.name)) return 0;
  if (bound.phase == Phase::bound) {
    if (bound.told_missing.insert(&trampoline).second) {
      log::error("{}: the MPI of this process, {}, has no such function", trampoline.name,
                 bound.binding.host_path);
    }
    return bound.error_other;
  }
  if (!bound.told_no_mpi) {
    bound.told_no_mpi = true;
    log::error(
        "{}: no MPI library is loaded in this process; link the program with one behind -laccord "
        "(-Wl,--no-as-needed before it where the linker drops it)",
        trampoline.name);
  }
  return kErrorNoMpi;
}

// The row of the profiling name.
const Trampoline& profiling(const Trampoline& trampoline) {
  const auto index = static_cast<std::size_t>(&trampoline - trampolines().data());
  return trampolines()[index | 1];
}

// Past Accord to the host MPI, without the dynamic linker. What has been bound meanwhile stays.
bool pass_by(const State& bound, Trampoline& trampoline) {
  const ElfObject* const host = bound.chosen.load(std::memory_order_acquire);
  if (host == nullptr) return false;
  const char* const name = profiling(trampoline).name;
  const ElfW(Sym)* found = host->find(name);
  if (found == nullptr) found = host->find(name + 1);
  if (found == nullptr) return false;
  void* unbound = trampoline.unbound_target;
  trampoline.target.compare_exchange_strong(
      unbound, reinterpret_cast<void*>(host->base + found->st_value), std::memory_order_release);
  return true;
}

// Waits while another thread binds, so that no call misses Accord; but not for ever: this thread
// may be in a constructor of what it loads, and the dynamic linker, which that one needs, waits for
// it. dladdr lets whoever else loads something end first. So only time counts in which the other
// thread could go on, and that needs little of it.
bool enter(const State& bound, Trampoline& trampoline,
           std::unique_lock<std::recursive_mutex>& lock) {
  constexpr int kNaps = 1000;
  constexpr std::chrono::milliseconds kNap{1};
  for (int naps = 0; !lock.try_lock(); ++naps) {
    if (naps >= kNaps && pass_by(bound, trampoline)) return false;
    Dl_info info;
    (void)dladdr(&trampoline, &info);
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

int resolve(Trampoline& trampoline, const void* caller) {
  State& bound = state();
  std::unique_lock lock(bound.mutex, std::defer_lock);
  if (!enter(bound, trampoline, lock)) return 0;
  if (bound.phase == Phase::unbound) bind(bound, caller);
  if (bound.phase == Phase::binding && bound.host_handle != nullptr) {
    // A constructor of the shim or of what it needs calls MPI: Accord has no part in that call.
    set_target(trampoline, host_function(bound.host_handle, profiling(trampoline)));
  }
  return trampoline.bound() ? 0 : report_unbound(bound, trampoline);
}

std::string find_library_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_library_directory), &info) == 0) return {};
  char* path = realpath(info.dli_fname, nullptr);
  if (path == nullptr) return {};
  std::string directory(path);
  std::free(path);
  return directory.substr(0, directory.rfind('/'));
}

// Asked when the library is loaded: a relative path is of no use once the program has changed its
// directory.
[[gnu::constructor]] void remember_library_directory() { library_directory(); }

}  // namespace

Binding binding() {
  State& bound = state();
  const std::lock_guard lock(bound.mutex);
  return bound.binding;
}

const std::string& library_directory() {
  static const std::string& directory = *new std::string(find_library_directory());
  return directory;
}

void forward_all() noexcept {
  State& bound = state();
  const std::lock_guard lock(bound.mutex);
  bound.binding.shim_path.clear();
  bound.binding.reason = "switched off by ACCORD_ENABLE, on this rank or another";
  bind_all(bound, {});
}

bool is_provided_by_accord(std::string_view name) noexcept {
  if (name.starts_with('P')) name.remove_prefix(1);
  // Accord's own ones begin so; MPIX_Allreduce_init and its like are those of Open MPI 4.
  return name.starts_with("MPIX_P") || name.starts_with("MPIX_Query_") ||
         name.starts_with("MPIX_GPU_");
}

int accord_resolve(Trampoline* trampoline, const void* caller) try {
  return resolve(*trampoline, caller);
} catch (const std::exception&) {
  return kErrorNoMpi;
}

}  // namespace accord::preload
