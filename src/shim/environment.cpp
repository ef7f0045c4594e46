// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <string>
#include <string_view>

#include "base/log.h"
#include "coll/select/selection.h"
#include "device/machine.h"
#include "preload/shim_abi.h"
#include "shim/collectives.h"
#include "shim/lineage.h"
#include "shim/shim.h"

namespace accord::shim {
namespace {

void find_wants() {
  if (preload::is_linked()) device::want_memory();
}

// A progress thread needs MPI_THREAD_MULTIPLE; without accelerators nothing ever needs the thread.
// Asked for on all ranks of a machine or on none: barriers of MPICH 5.0 hang where the levels of
// ranks of a node differ, as those would that have their devices hidden.
int wanted_level(int required) {
  const std::string& setting = config().progress_thread;
  const bool wanted = setting == "on" || (setting == "auto" && device::accelerator_on_machine());
  return wanted ? MPI_THREAD_MULTIPLE : required;
}

// Open MPI's own partitioned requests hang or deliver wrong data (5.0: in 19 of the 46 runs of
// MPICH's tests of them).
bool host_is_wrong_on_partitioned() {
#ifdef ACCORD_HAS_Psend_init
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  return host::slot::Psend_init != nullptr &&
         host::Get_library_version(version, &length) == MPI_SUCCESS &&
         std::string_view(version).starts_with("Open MPI");
#else
  return false;
#endif
}

// One rank that has an accelerator is reason enough.
bool wants_partitioned() {
  const std::string& setting = config().partitioned;
  return setting == "accord" ||
         (setting == "auto" && (device::accelerator_present() || host_is_wrong_on_partitioned()));
}

// Some setting is not the same on all ranks: which one, and what it is where.
Status name_difference() {
  constexpr int kValueBytesMax = 256;
  int rank = 0;
  ACCORD_TRY(Status::from_host(host::Comm_rank(MPI_COMM_WORLD, &rank)));
  const auto value_of = [&](const SettingRow& row, int from, std::string& value) {
    char text[kValueBytesMax] = "";
    row.value.copy(text, sizeof text - 1);
    ACCORD_TRY(
        Status::from_host(host::Bcast(text, kValueBytesMax, MPI_CHAR, from, MPI_COMM_WORLD)));
    value = text;
    return Status();
  };
  const Status versions(StatusCode::invalid_argument,
                        "the ranks have different settings: not the same Accord on all of them");
  const auto known = static_cast<std::int64_t>(config_rows().size());
  std::int64_t counts[] = {known, -known};
  ACCORD_TRY(Status::from_host(
      host::Allreduce(MPI_IN_PLACE, counts, 2, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD)));
  if (counts[0] != -counts[1]) return versions;
  for (const SettingRow& row : config_rows()) {
    if (row.scope != SettingScope::equal) continue;
    std::uint64_t hash = row.value_hash;
    ACCORD_TRY(Status::from_host(host::Bcast(&hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD)));
    int other = hash != row.value_hash ? rank : INT_MAX;
    ACCORD_TRY(Status::from_host(
        host::Allreduce(MPI_IN_PLACE, &other, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD)));
    if (other == INT_MAX) continue;
    std::string first;
    std::string second;
    ACCORD_TRY(value_of(row, 0, first));
    ACCORD_TRY(value_of(row, other, second));
    return {StatusCode::invalid_argument,
            fmt::format("{} must be the same on all ranks, and is {} on rank 0 and {} on rank {}",
                        row.name, first, second, other)};
  }
  return versions;
}

// What all ranks must know alike, in one reduction: the facts of the job, and whether the settings
// that decide together are equal everywhere. A rank that has switched Accord off asks no device.
Status agree(JobFacts& facts) {
  const bool on = config().enable;
  const auto hash = static_cast<std::int64_t>(config_equal_hash() & 0x7fffffffffffffffull);
  const auto warnings = static_cast<std::int64_t>(config_warnings_hash() >> 1);
  // Of none, too: one that a rank cannot use is no table for the others either.
  const auto table = on ? static_cast<std::int64_t>(coll::configured_table().hash() >> 1) : 0;
  std::int64_t words[] = {hash,
                          ~hash,
                          facts.threads ? 1 : 0,
                          on && device::accelerator_present() ? 0 : 1,
                          facts.program_threads ? 0 : 1,
                          table,
                          ~table,
                          on && wants_partitioned() ? 0 : 1,
                          on ? 1 : 0,
                          on ? 0 : 1,
                          warnings,
                          ~warnings};
  ACCORD_TRY(
      Status::from_host(host::Allreduce(MPI_IN_PLACE, words, static_cast<int>(std::size(words)),
                                        MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD)));
  facts.threads = words[2] != 0;
  facts.devices = words[3] == 0;
  facts.program_threads = words[4] == 0;
  facts.same_tables = words[5] == ~words[6];
  facts.partitioned = words[7] == 0;
  facts.same_settings = words[0] == ~words[1];
  facts.enabled = words[8] != 0;
  facts.same_warnings = words[10] == ~words[11];
  if (!facts.enabled && words[9] == 0)
    log::warn("Accord is off on all ranks, since ACCORD_ENABLE is 0 on some");
  return facts.same_settings || !facts.enabled ? Status() : name_difference();
}

// What the program has been told that it may do with threads: no more than it has asked for where
// that was raised for the progress thread. Other programs are told what the host MPI says.
int told_level = MPI_THREAD_SINGLE;
bool is_level_raised = false;

void tell_level(int required) {
  (void)host::Query_thread(&told_level);
  is_level_raised = wanted_level(required) != required;
  if (is_level_raised) told_level = std::min(told_level, required);
}

int after_init(int required) {
  tell_level(required);
  int level = MPI_THREAD_SINGLE;
  (void)host::Query_thread(&level);
  JobFacts facts{.threads = level == MPI_THREAD_MULTIPLE && config().progress_thread != "off",
                 .program_threads = told_level == MPI_THREAD_MULTIPLE};
  Status status = agree(facts);
  if (!facts.enabled) {
    preload::forward_all();
    return MPI_SUCCESS;
  }
  start_runtime(facts);
  keep_first(status, config_status());
  return raise(MPI_COMM_WORLD, status);
}

bool has_runtime(std::string_view name) {
  for (device::DeviceRuntime* runtime : device::runtimes()) {
    if (runtime->name() == name && runtime->present()) return true;
  }
  return false;
}

// MPI 4.1, section 11.4.3: the kinds of memory that MPI calls accept.
std::string memory_kinds() {
  std::string kinds;
  if (has_runtime("cuda")) kinds += ",cuda,cuda:host,cuda:device,cuda:managed";
  if (has_runtime("hip")) kinds += ",rocm,rocm:host,rocm:device,rocm:managed";
  if (has_runtime("level_zero"))
    kinds += ",level_zero,level_zero:host,level_zero:device,level_zero:shared";
  return kinds;
}

void add_memory_kinds(MPI_Info info) {
  constexpr const char* kKindsKey = "mpi_memory_alloc_kinds";
  const std::string added = memory_kinds();
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  (void)host::Info_get(info, kKindsKey, MPI_MAX_INFO_VAL, value, &found);
  if (added.empty() && found != 0) return;
  std::string kinds = found != 0 ? value : "system,mpi";
  if (kinds.find(added) == std::string::npos) kinds += added;
  (void)host::Info_set(info, kKindsKey, kinds.c_str());
}

}  // namespace

int Init(int* argc, char*** argv) {
  int provided = MPI_THREAD_SINGLE;
  const core::CallScope scope("MPI_Init");
  find_wants();
  const int level = wanted_level(MPI_THREAD_SINGLE);
  const int code = level == MPI_THREAD_SINGLE ? host::Init(argc, argv)
                                              : host::Init_thread(argc, argv, level, &provided);
  return code == MPI_SUCCESS ? after_init(MPI_THREAD_SINGLE) : code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const core::CallScope scope("MPI_Init_thread");
  find_wants();
  int code = host::Init_thread(argc, argv, wanted_level(required), provided);
  if (code != MPI_SUCCESS) return code;
  code = after_init(required);
  if (provided != nullptr) *provided = told_level;
  return code;
}

int Query_thread(int* provided) {
  const int code = host::Query_thread(provided);
  if (code == MPI_SUCCESS && is_level_raised) *provided = told_level;
  return code;
}

int Finalize() {
  prepare_to_stop();
  return host::Finalize();
}

#ifdef ACCORD_HAS_Session_init
int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  const int code = host::Session_init(info, errhandler, session);
  if (code == MPI_SUCCESS) start_session_runtime();
  return code;
}

int Session_finalize(MPI_Session* session) {
  if (session != nullptr && *session != MPI_SESSION_NULL) stop_session_runtime();
  return host::Session_finalize(session);
}

int Session_get_info(MPI_Session session, MPI_Info* info) {
  const int code = host::Session_get_info(session, info);
  if (code == MPI_SUCCESS) add_memory_kinds(*info);
  return code;
}
#endif

int Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  const int code = host::Comm_get_info(comm, info);
  if (code == MPI_SUCCESS && info != nullptr) add_memory_kinds(*info);
  return code;
}

int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  const shape::Barrier call{
      comm};  // moves no data; keeps its place among the communicator's collectives
  if (comm_state(comm) != nullptr) begin_idup(comm);
  if (passes(call, Form::nonblocking)) return host::Comm_idup(comm, newcomm, request);
  return nonblocking(
      "MPI_Comm_idup", call,
      [=](const auto&, const void*, void*, MPI_Request* made) {
        return host::Comm_idup(comm, newcomm, made);
      },
      request);
}

#ifdef ACCORD_HAS_Comm_idup_with_info
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  const shape::Barrier call{comm};
  if (comm_state(comm) != nullptr) begin_idup(comm);
  if (passes(call, Form::nonblocking))
    return host::Comm_idup_with_info(comm, info, newcomm, request);
  return nonblocking(
      "MPI_Comm_idup_with_info", call,
      [=](const auto&, const void*, void*, MPI_Request* made) {
        return host::Comm_idup_with_info(comm, info, newcomm, made);
      },
      request);
}
#endif

int MPIX_Query_cuda_support() { return has_runtime("cuda") ? 1 : 0; }
int MPIX_Query_hip_support() { return has_runtime("hip") ? 1 : 0; }
int MPIX_Query_rocm_support() { return has_runtime("hip") ? 1 : 0; }
int MPIX_Query_ze_support() { return has_runtime("level_zero") ? 1 : 0; }

int MPIX_GPU_query_support(int gpu_type, int* is_supported) {
  // The numbers of MPICH's MPIX_GPU_SUPPORT_CUDA, _ZE and _HIP.
  constexpr const char* kRuntimes[] = {"cuda", "level_zero", "hip"};
  if (is_supported == nullptr || gpu_type < 0 || gpu_type > 2) {
    return raise(MPI_COMM_WORLD,
                 Status(StatusCode::invalid_argument, "MPIX_GPU_query_support: unknown GPU type"));
  }
  *is_supported = has_runtime(kRuntimes[gpu_type]) ? 1 : 0;
  return MPI_SUCCESS;
}

}  // namespace accord::shim
