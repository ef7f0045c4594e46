// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When probes find a message, and the beginning and end of MPI. A probe may be refused; once one
// has told of a message of a communicator, none there is until something is received.
#include <sched.h>

#include <mutex>
#include <unordered_map>

#include "adversary.h"

namespace accord::adversary {
namespace {

struct Probing {
  unsigned refusals_left = 0;
  bool has_told = false;  // of a message that is there
  bool drawn = false;
};

std::mutex probing_mutex;  // guards the table
std::unordered_map<std::uint64_t, Probing>& probing() {
  static auto& kept = *new std::unordered_map<std::uint64_t, Probing>;
  return kept;
}

bool may_probe(MPI_Comm comm) {
  const std::lock_guard locked(probing_mutex);
  Probing& known = probing()[to_bits(comm)];
  if (known.has_told) return true;
  if (!known.drawn) {
    known.drawn = true;
    known.refusals_left = static_cast<unsigned>(below(settings().looks_max + 1U));
  }
  if (known.refusals_left == 0) {
    known.drawn = false;
    return true;
  }
  --known.refusals_left;
  counts().probes.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void tell(MPI_Comm comm) {
  const std::lock_guard locked(probing_mutex);
  probing()[to_bits(comm)].has_told = true;
}

int probe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  *flag = 0;
  if (!may_probe(comm)) return MPI_SUCCESS;
  const int code = REAL(Iprobe)(source, tag, comm, flag, status);
  if (code == MPI_SUCCESS && *flag != 0) tell(comm);
  return code;
}

int matched_probe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                  MPI_Status* status) {
  *flag = 0;
  if (!may_probe(comm)) return MPI_SUCCESS;
  const int code = REAL(Improbe)(source, tag, comm, flag, message, status);
  if (code == MPI_SUCCESS && *flag != 0) take_message(comm);
  return code;
}

template <class Probe>
int wait_for_message(MPI_Comm comm, const char* name, Probe once) {
  linger();
  int flag = 0;
  int code = once(flag);
  while (code == MPI_SUCCESS && flag == 0) {
    (void)sched_yield();
    code = once(flag);
  }
  return end_call(code, comm, name);
}

}  // namespace

void take_message(MPI_Comm comm) {
  const std::lock_guard locked(probing_mutex);
  probing().erase(to_bits(comm));
}

void take_message() {
  const std::lock_guard locked(probing_mutex);
  probing().clear();
}

}  // namespace accord::adversary

using namespace accord::adversary;
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  linger();
  return probe(source, tag, comm, flag, status);
}

EXPORTED int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return wait_for_message(comm, "Probe",
                          [&](int& flag) { return probe(source, tag, comm, &flag, status); });
}

EXPORTED int PMPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                          MPI_Status* status) {
  linger();
  return matched_probe(source, tag, comm, flag, message, status);
}

EXPORTED int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                         MPI_Status* status) {
  linger();
  for (;;) {
    int flag = 0;
    const int code = matched_probe(source, tag, comm, &flag, message, status);
    if (code != MPI_SUCCESS || flag != 0) return code;
    (void)sched_yield();
  }
}

// Makes this library the one that the process takes for its MPI.
EXPORTED int PMPI_Init(int* argc, char*** argv) { return REAL(Init)(argc, argv); }

EXPORTED int PMPI_Finalize() {
  report();
  return REAL(Finalize)();
}
