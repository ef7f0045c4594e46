// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ACCORD_CHECK says on stderr, and what it says nothing of. All on MPI_COMM_SELF: what a call
// says does not depend on other ranks. With "off" nothing is said at all.
#include <accord/accord.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using accord::test::on_device;

constexpr int kInts = 64;
MPI_Comm self() { return MPI_COMM_SELF; }

int failures = 0;
bool is_on = true;

// The lines of the check that `work` brings to stderr.
std::vector<std::string> lines_of(const std::function<void()>& work) {
  const int file = memfd_create("stderr", 0);
  const int before = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  work();
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
  if (pread(file, text.data(), text.size(), 0) < 0) text.clear();
  close(file);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.find("check:") != std::string::npos) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

void fail(const char* name, const char* what, const std::vector<std::string>& lines) {
  std::fprintf(stderr, "%s: %s\n", name, what);
  for (const std::string& line : lines) std::fprintf(stderr, "  said: %s\n", line.c_str());
  ++failures;
}

void says_nothing(const char* name, const std::function<void()>& work) {
  if (const auto lines = lines_of(work); !lines.empty())
    fail(name, "nothing was to be said", lines);
}

// One line, with all of these words, and the place in this program.
void says(const char* name, const std::vector<std::string>& words,
          const std::function<void()>& work) {
  const auto lines = lines_of(work);
  if (!is_on) {
    if (!lines.empty()) fail(name, "it is off", lines);
    return;
  }
  if (lines.size() != 1) return fail(name, "one line was to be said", lines);
  const auto has = [&](const std::string& word) {
    return lines[0].find(word) != std::string::npos;
  };
  for (const std::string& word : words)
    if (!has(word)) fail(name, word.c_str(), lines);
  if (!has("accord: warn: [rank ") || !has("accord_check_") || !has("+0x"))
    fail(name, "rank and place", lines);
}

std::string address(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", pointer);
  return text;
}
int* at(const DeviceBuffer& buffer, int index) {
  return static_cast<int*>(buffer.pointer()) + index;
}
DeviceBuffer make() { return on_device(std::vector<int>(kInts, 7)); }

void receive(const DeviceBuffer& buffer, int tag, MPI_Request* request) {
  MPI_Irecv(buffer.pointer(), kInts, MPI_INT, 0, tag, self(), request);
}
void send_host(int tag) {
  const std::vector<int> numbers(kInts, tag);
  MPI_Send(numbers.data(), kInts, MPI_INT, 0, tag, self());
}

void right_calls() {
  const DeviceBuffer one = make();
  const DeviceBuffer other = make();
  MPI_Datatype column;
  MPI_Type_vector(8, 1, 8, MPI_INT, &column);
  MPI_Type_commit(&column);
  says_nothing("right calls", [&] {
    MPI_Request requests[3];
    for (int round = 0; round < 3; ++round) {
      // The same memory sent twice at once, then received into; columns of one array.
      receive(other, 1, &requests[0]);
      MPI_Isend(one.pointer(), kInts, MPI_INT, 0, 1, self(), &requests[1]);
      MPI_Isend(one.pointer(), kInts, MPI_INT, 0, 2, self(), &requests[2]);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      receive(other, 2, &requests[0]);
      MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
      receive(one, 1, &requests[0]);
      send_host(1);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Irecv(at(one, 1), 1, column, 0, 3, self(), &requests[0]);
      MPI_Isend(at(one, 0), 1, column, 0, 3, self(), &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      MPI_Allreduce(MPI_IN_PLACE, one.pointer(), kInts, MPI_INT, MPI_SUM, self());
      MPI_Allreduce(at(one, 0), at(one, kInts / 2), kInts / 2, MPI_INT, MPI_SUM, self());
      MPI_Sendrecv_replace(one.pointer(), kInts, MPI_INT, 0, 4, 0, 4, self(), MPI_STATUS_IGNORE);
    }
  });
  const DeviceBuffer freed_later = make();
  says_nothing("a request that is tested", [&] {
    MPI_Request request;
    receive(freed_later, 5, &request);
    send_host(5);
    for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    receive(freed_later, 5, &request);
    send_host(5);
    for (int count = 0, index = 0; count == 0;)
      MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE);
  });
  MPI_Type_free(&column);
}

void ends() {
  const DeviceBuffer buffer = make();
  says("past the end",
       {"MPI_Bcast on MPI_COMM_SELF of 1: buffer " + address(at(buffer, 1)),
        "reads 4 B past the end of the allocation (256 B at "},
       [&] { MPI_Bcast(at(buffer, 1), kInts, MPI_INT, 0, self()); });
}

void overlaps() {
  const DeviceBuffer buffer = make();
  says("overlap",
       {"MPI_Allreduce on MPI_COMM_SELF of 1: sendbuf " + address(at(buffer, 0)),
        "and recvbuf " + address(at(buffer, 3)) + " overlap, first at " + address(at(buffer, 3))},
       [&] { MPI_Allreduce(at(buffer, 0), at(buffer, 3), 8, MPI_INT, MPI_SUM, self()); });
  says("overlap of messages", {"MPI_Sendrecv on", "overlap"}, [&] {
    MPI_Sendrecv(at(buffer, 0), 8, MPI_INT, 0, 1, at(buffer, 4), 8, MPI_INT, 0, 1, self(),
                 MPI_STATUS_IGNORE);
  });
}

void reuse() {
  const DeviceBuffer buffer = make();
  const DeviceBuffer other = make();
  MPI_Request requests[2];
  says("two receives",
       {"MPI_Irecv on MPI_COMM_SELF of 1: buf " + address(buffer.pointer()) + ": writes what buf",
        "of an MPI_Irecv", "which is not complete"},
       [&] {
         receive(buffer, 1, &requests[0]);
         MPI_Irecv(at(buffer, 0), kInts, MPI_INT, 0, 2, self(), &requests[1]);
         send_host(1);
         send_host(2);
         MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
       });
  const DeviceBuffer third = make();
  says("received where a send is not complete", {"MPI_Recv on", "of an MPI_Issend", "reads"}, [&] {
    MPI_Issend(buffer.pointer(), kInts, MPI_INT, 0, 1, self(), &requests[0]);
    MPI_Isend(other.pointer(), kInts, MPI_INT, 0, 2, self(), &requests[1]);
    MPI_Recv(buffer.pointer(), kInts, MPI_INT, 0, 2, self(), MPI_STATUS_IGNORE);
    MPI_Recv(third.pointer(), kInts, MPI_INT, 0, 1, self(), MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  });
  says("non-blocking collectives", {"MPI_Iallreduce on", "of an MPI_Irecv"}, [&] {
    receive(buffer, 1, &requests[0]);
    MPI_Iallreduce(MPI_IN_PLACE, buffer.pointer(), kInts, MPI_INT, MPI_SUM, self(), &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    send_host(1);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  });
}

void persistent() {
  const DeviceBuffer buffer = make();
  MPI_Request requests[2];
  says_nothing("persistent requests, one at a time", [&] {
    for (int i = 0; i < 2; ++i) {
      MPI_Recv_init(buffer.pointer(), kInts, MPI_INT, 0, i, self(), &requests[i]);
      for (int round = 0; round < 2; ++round) {
        MPI_Start(&requests[i]);
        send_host(i);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      }
    }
  });
  says("persistent requests at once", {"MPI_Start", "of an MPI_Recv_init"}, [&] {
    MPI_Startall(2, requests);
    send_host(0);
    send_host(1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  });
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void freed() {
  void* pointer = nullptr;
  MPI_Request request;
  (void)accord_malloc(&pointer, kInts * sizeof(int), ACCORD_MEMORY_DEVICE);
  const std::string name = "MPI_Wait: buf " + address(pointer) + " of an MPI_Irecv on";
  says("freed", {name, "has been freed while the request was active (256 B at "}, [&] {
    MPI_Irecv(pointer, kInts, MPI_INT, 0, 1, self(), &request);
    send_host(1);
    (void)accord_free(pointer);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

// Not the last thing that a function does, or its own caller would be the place.
volatile int last_code = MPI_SUCCESS;
[[gnu::noinline]] void broadcast(const DeviceBuffer& buffer) {
  last_code = MPI_Bcast(buffer.pointer(), kInts, MPI_INT, 0, self());
}

void default_stream() {
  const DeviceBuffer buffer = make();
  setenv("ACCORD_TEST_DEFAULT_STREAM", "busy", 1);
  says("unfinished work, once a place",
       {"MPI_Bcast on", "the default stream of host device 0 has unfinished work"}, [&] {
         for (int i = 0; i < 3; ++i) broadcast(buffer);
       });
  says_nothing("the same place", [&] { broadcast(buffer); });
  says("another place", {"MPI_Bcast on", "unfinished work"},
       [&] { last_code = MPI_Bcast(buffer.pointer(), kInts, MPI_INT, 0, self()); });
  unsetenv("ACCORD_TEST_DEFAULT_STREAM");
}

}  // namespace

int main(int argc, char** argv) {
  is_on = argc < 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  right_calls();
  ends();
  overlaps();
  reuse();
  persistent();
  freed();
  default_stream();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
