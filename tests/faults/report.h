// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the programs of faults.py share. What becomes of a rank it writes into its file in
// FAULTS_FOLDER, line by line, since output on a pipe ends with the launcher.
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

namespace accord::test {

inline int rank = 0;
inline int size = 0;
inline int report = -1;
inline std::string folder;
inline std::set<std::string> told;
inline long errors = 0;

inline void tell(const std::string& word, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string line = word + ' ' + text + '\n';
  if (::write(report, line.data(), line.size()) < 0) ::_exit(99);
}

// False: the program cannot begin.
inline bool begin_report(int argc, char** argv) {
  const char* const named = std::getenv("FAULTS_FOLDER");
  if (named == nullptr || MPI_Init(&argc, &argv) != MPI_SUCCESS) return false;
  folder = named;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string file = folder + "/rank." + std::to_string(rank);
  report = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (report < 0) return false;
  tell("pid", std::to_string(::getpid()));
  return true;
}

inline bool is_there(const char* name) {
  return ::access((folder + '/' + name).c_str(), F_OK) == 0;
}

inline std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

// Each text once, or a fault that stays would fill the disk.
inline void tell_error(int code) {
  constexpr std::size_t kErrorsToldMax = 50;
  ++errors;
  const std::string text = text_of(code);
  if (told.size() < kErrorsToldMax && told.insert(text).second) tell("error", text);
}

inline void die_later(int after_us) {
  std::thread([after_us] {
    ::usleep(static_cast<unsigned>(after_us));
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

}  // namespace accord::test
