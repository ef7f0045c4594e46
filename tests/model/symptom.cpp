// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "symptom.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace accord::model {
namespace {

// Part of a message, and what it tells: the first one found counts, since a deadlock's message
// goes on with the calls of all ranks.
struct Sign {
  std::string_view text;
  Symptom symptom;
};
constexpr Sign kSigns[] = {
    {"deadlock:", Symptom::hang},
    {"the run does not end", Symptom::hang},
    {"matched different calls", Symptom::mismatch},
    {"written late", Symptom::wrong_data},
    {"receive buffer is too small", Symptom::mpi_misuse},
    {"buffer was changed while the host MPI owned it", Symptom::mpi_misuse},
    {"receive buffer:", Symptom::wrong_data},
    {"send buffer:", Symptom::wrong_data},
    {"receive freed while active:", Symptom::wrong_data},
    {"status is wrong", Symptom::wrong_data},
    {"the status tells", Symptom::wrong_data},
    {"completed otherwise", Symptom::wrong_data},
    {"found no active request", Symptom::wrong_data},
    {"called good", Symptom::wrong_data},
    {"element ", Symptom::wrong_data},
    {"a gap or guard was written", Symptom::wrong_data},
    {"at the end", Symptom::left_over},
    {"was not given back", Symptom::left_over},
    {"was never awaited", Symptom::left_over},
    {"were never freed", Symptom::left_over},
    {"were left over", Symptom::left_over},
    {"did not finalize", Symptom::left_over},
    {"a copy touches", Symptom::device_error},
    {"a copy was given", Symptom::device_error},
    {"a kernel was", Symptom::device_error},
    {"an inbox exchange that", Symptom::device_error},
    {"MPI_", Symptom::mpi_misuse},
    {"used communicator", Symptom::mpi_misuse},
    {"was truncated", Symptom::mpi_misuse},
    {"given to the host MPI", Symptom::mpi_misuse},
    {"a request that does not exist", Symptom::mpi_misuse},
};

}  // namespace

const char* name_of(Symptom symptom) {
  static const char* const names[] = {"none",
                                      "wrong data",
                                      "hang",
                                      "mismatch",
                                      "misuse of MPI",
                                      "misuse of a device",
                                      "error of a call",
                                      "something left over"};
  return names[static_cast<std::size_t>(symptom)];
}

Symptom symptom_of(const std::string& message) {
  if (message.empty()) return Symptom::none;
  const auto sign = std::ranges::find_if(
      kSigns, [&](const Sign& one) { return message.find(one.text) != std::string::npos; });
  return sign == std::end(kSigns) ? Symptom::call_error : sign->symptom;
}

}  // namespace accord::model
