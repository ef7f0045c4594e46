// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "api.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cctype>
#include <string_view>

namespace accord::conformance {
namespace {

using Lookup = std::function<void*(const std::string&)>;

// The names a host MPI's shared object goes by; an MPI 5 standard ABI program uses the ABI library
// only.
#if defined(MPI_ABI)
constexpr std::array<std::string_view, 1> kHostNames = {"libmpi_abi.so"};
#else
constexpr std::array<std::string_view, 3> kHostNames = {"libmpich.so.12", "libmpi.so.12",
                                                        "libmpi.so.40"};
#endif

int note_host_library(dl_phdr_info* info, std::size_t, void* result) {
  const std::string_view path = info->dlpi_name;
  const std::string_view file = path.substr(path.find_last_of('/') + 1);
  for (std::string_view name : kHostNames) {
    if (!file.starts_with(name)) continue;
    *static_cast<std::string*>(result) = path;
    return 1;
  }
  return 0;
}

std::string with_prefix_i(const char* name) {
  std::string text = name;
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return "I" + text;
}

template <class F>
void find(const Lookup& lookup, const std::string& name, F*& function) {
  function = reinterpret_cast<F*>(lookup(name));
}

template <class S, class L>
void find_counted(const Lookup& lookup, const std::string& name, Counted<S, L>& function) {
  find(lookup, name, function.small);
  find(lookup, name + "_c", function.large);
}

template <class S, class L>
void find_collective(const Lookup& lookup, const char* name, Collective<S, L>& function) {
  find_counted(lookup, name, function.blocking);
  find_counted(lookup, with_prefix_i(name), function.nonblocking);
  find(lookup, std::string(name) + "_init", function.persistent.small);
  find(lookup, std::string(name) + "_init_c", function.persistent.large);
  std::string partitioned = name;
  partitioned[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(partitioned[0])));
  partitioned = "MPIX_P" + partitioned + "_init";
  function.partitioned = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, partitioned.c_str()));
}

// Returns the name of the first function that must be there and is not.
std::string fill(const Lookup& lookup, Api& api) {
  std::string missing;
#define PLAIN(name)              \
  find(lookup, #name, api.name); \
  if (api.name == nullptr && missing.empty()) missing = "MPI_" #name;
#define COUNTED(name, ...) find_counted(lookup, #name, api.name);
#define COLLECTIVE(name, ...)               \
  find_collective(lookup, #name, api.name); \
  if (!api.name.available(Form::nonblocking, false) && missing.empty()) missing = "MPI_I" #name;
#define OPTIONAL(name, ...) find(lookup, #name, api.name);
#include "api_functions.def"
#undef PLAIN
#undef COUNTED
#undef COLLECTIVE
#undef OPTIONAL
  return missing;
}

// Open MPI 4 has the persistent collectives as MPIX_X.
std::string symbol(void* host, const std::string& prefix, const std::string& name) {
  const bool renamed = name.ends_with("_init") &&
                       dlsym(host, ("PMPI_" + name).c_str()) == nullptr &&
                       dlsym(host, ("PMPIX_" + name).c_str()) != nullptr;
  return prefix + (renamed ? "X_" : "_") + name;
}

std::string object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
}

}  // namespace

const char* form_name(Form form) {
  switch (form) {
    case Form::blocking:
      return "blocking";
    case Form::nonblocking:
      return "nonblocking";
    default:
      return "persistent";
  }
}

std::string load_api(ApiSet& set) {
  dl_iterate_phdr(note_host_library, &set.host_library);
  if (set.host_library.empty()) return "no MPI library is loaded in this process";
  void* host = dlopen(set.host_library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (host == nullptr) return "cannot open " + set.host_library + " a second time";

  const Lookup oracle = [host](const std::string& name) {
    return dlsym(host, symbol(host, "PMPI", name).c_str());
  };
  const auto visible = [host](const char* prefix) -> Lookup {
    return [host, prefix](const std::string& name) {
      return dlsym(RTLD_DEFAULT, symbol(host, prefix, name).c_str());
    };
  };
  std::string missing = fill(oracle, set.oracle);
  if (missing.empty()) missing = fill(visible("MPI"), set.tested);
  if (missing.empty()) missing = fill(visible("PMPI"), set.tested_pmpi);
  if (!missing.empty()) return "function " + missing + " is missing";

  const std::string oracle_object = object_of(reinterpret_cast<const void*>(set.oracle.Wait));
  set.tested_library = object_of(reinterpret_cast<const void*>(set.tested.Wait));
  if (oracle_object.find("accord") != std::string::npos)
    return "the oracle would be Accord itself: " + oracle_object;
  return {};
}

}  // namespace accord::conformance
