// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One long message from device to device between two hosts, while outages.py does something to the
// second one. Arguments: `send` or `receive`, what rank 0 does. What becomes of it rank 0 writes
// into its file in FAULTS_FOLDER: `moving`, then `error` with its text and `took` with the
// milliseconds, or `right` or `wrong`. It ends without MPI_Finalize, which waits for its peer; rank
// 1 stays for as long as it is let.
#include <accord/accord.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../mpi/device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kBytes = 8 << 20;
constexpr int kTag = 7;
int report = -1;

void tell(const std::string& word, const std::string& text = "") {
  const std::string line = word + ' ' + text + '\n';
  if (::write(report, line.data(), line.size()) < 0) ::_exit(99);
}

std::vector<std::byte> pattern() {
  std::vector<std::byte> made(kBytes);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::byte>(i * 7 + i / 251);
  return made;
}

int begin(const DeviceBuffer& buffer, bool sends, int peer, int bytes, MPI_Request& request) {
  if (sends)
    return MPI_Isend(buffer.pointer(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
  return MPI_Irecv(buffer.pointer(), bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const folder = std::getenv("FAULTS_FOLDER");
  if (folder == nullptr || argc < 2 || MPI_Init(&argc, &argv) != MPI_SUCCESS) return 2;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  report = ::open((std::string(folder) + "/rank." + std::to_string(rank)).c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  tell("pid", std::to_string(::getpid()));
  const bool sends = (std::strcmp(argv[1], "send") == 0) == (rank == 0);
  const std::vector<std::byte> expected = pattern();
  const DeviceBuffer buffer(sends ? expected : std::vector<std::byte>(kBytes));
  MPI_Request request = MPI_REQUEST_NULL;
  constexpr int kWarm = 20;  // the two ranks meet, and their proxies come
  for (int i = 0; i < kWarm; ++i) {
    (void)begin(buffer, sends, 1 - rank, kBytes / 256, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ::usleep(20000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto began = std::chrono::steady_clock::now();
  int code = begin(buffer, sends, 1 - rank, kBytes, request);
  tell("moving");
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  tell("path", accord_last_path());
  if (code != MPI_SUCCESS) {
    tell("error", text_of(code));
  } else {
    std::vector<std::byte> got(expected.size());
    accord_memcpy(got.data(), buffer.pointer(), got.size());
    tell(got == expected ? "right" : "wrong");
  }
  tell("took", std::to_string(took.count()));
  while (rank != 0) ::pause();
  ::_exit(0);
}
