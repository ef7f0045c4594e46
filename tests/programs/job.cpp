// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace accord::programs {

Job job;

namespace {

struct Current {
  std::string text = "between programs";
  std::function<std::string()> describe;
};
std::mutex current_mutex;
Current& current() {
  static Current program;
  return program;
}

}  // namespace

const char* name_of(Symptom symptom) {
  static const char* const names[] = {"wrong data", "error", "hang", "crash"};
  return names[static_cast<std::size_t>(symptom)];
}

void set_program(std::string text, std::function<std::string()> describe) {
  const std::lock_guard<std::mutex> locked(current_mutex);
  current() = {std::move(text), std::move(describe)};
}

void fail(Symptom symptom, const std::string& what) {
  // One thread says so; the others have nothing to add.
  static std::mutex first;
  first.lock();
  std::string text;
  {
    const std::lock_guard<std::mutex> locked(current_mutex);
    text = fmt::format("programs: FAILED ({}) on rank {}: {}\n{}\n{}\n", name_of(symptom), job.rank,
                       what, current().describe ? current().describe() : "", current().text);
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  // The other ranks may have something to say, too; those that wait inside MPI are ended by it.
  if (symptom == Symptom::hang) {
    ::sleep(2);
    ::_exit(1);
  }
  ::usleep(300'000);
  MPI_Abort(MPI_COMM_WORLD, 1);
  ::_exit(1);
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(Symptom::error, fmt::format("{} returned {}: {}", call, code, text));
}

}  // namespace accord::programs
