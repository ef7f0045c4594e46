// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One long message from device to device between two hosts, or a put or get with a window of the
// second one, while outages.py does something to that host. Arguments: `send`, `receive`, `put` or
// `get`, what rank 0 does. What becomes of it rank 0 writes
// into its file in FAULTS_FOLDER: `moving`, then `error` with its text and `took` with the
// milliseconds, or `right` or `wrong`. It ends without MPI_Finalize, which waits for its peer; rank
// 1 stays for as long as it is let.
#include <accord/accord.h>
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
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

class Message {
 public:
  Message(const DeviceBuffer& buffer, bool sends, int peer)
      : buffer_(buffer), sends_(sends), peer_(peer) {}
  int begin(int bytes) {
    if (sends_)
      return MPI_Isend(buffer_.pointer(), bytes, MPI_BYTE, peer_, kTag, MPI_COMM_WORLD, &request_);
    return MPI_Irecv(buffer_.pointer(), bytes, MPI_BYTE, peer_, kTag, MPI_COMM_WORLD, &request_);
  }
  int end() { return MPI_Wait(&request_, MPI_STATUS_IGNORE); }
  void stay() {}

 private:
  const DeviceBuffer& buffer_;
  const bool sends_;
  const int peer_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Rank 1 has the window, and is in a call of MPI's while it is used.
class OneSided {
 public:
  OneSided(const DeviceBuffer& buffer, bool puts, int rank)
      : buffer_(buffer), puts_(puts), rank_(rank) {
    MPI_Win_create(rank == 1 ? buffer.pointer() : nullptr, rank == 1 ? kBytes : 0, 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &window_);
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window_);
  }
  int begin(int bytes) {
    if (rank_ == 1) return MPI_SUCCESS;
    if (puts_) return MPI_Put(buffer_.pointer(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window_);
    return MPI_Get(buffer_.pointer(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window_);
  }
  int end() { return rank_ == 1 ? MPI_SUCCESS : MPI_Win_flush(1, window_); }
  void stay() {
    if (rank_ == 1) MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  const DeviceBuffer& buffer_;
  const bool puts_;
  const int rank_;
  MPI_Win window_ = MPI_WIN_NULL;
};

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

template <class Operation>
void part(Operation operation, const DeviceBuffer& buffer, const std::vector<std::byte>& expected) {
  constexpr int kWarm = 20;  // the two ranks meet, and their proxies come
  for (int i = 0; i < kWarm; ++i) {
    (void)operation.begin(kBytes / 256);
    (void)operation.end();
    ::usleep(20000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto began = std::chrono::steady_clock::now();
  int code = operation.begin(kBytes);
  tell("moving");
  operation.stay();
  if (code == MPI_SUCCESS) code = operation.end();
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
  const std::string way = argv[1];
  const bool is_one_sided = way == "put" || way == "get";
  const bool gives = (way == "send" || way == "put") == (rank == 0);
  const std::vector<std::byte> expected = pattern();
  const DeviceBuffer buffer(gives ? expected : std::vector<std::byte>(kBytes));
  if (is_one_sided)
    part(OneSided(buffer, way == "put", rank), buffer, expected);
  else
    part(Message(buffer, gives, 1 - rank), buffer, expected);
  while (rank != 0) ::pause();
  ::_exit(0);
}
