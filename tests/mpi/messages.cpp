// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to a rank of the same node, two ranks: they go by headers, and nobody can
// tell. Run with an outbox of 64 KiB. What random calls seldom do is here: probes of several
// messages in another order, receives that were probed before they start, buffers that are too
// small, more messages than there is room for. "threads" is as where several threads may receive.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kCount = 2000;    // of ints in an ordinary message
constexpr int kHeaderInts = 8;  // as long as a header
constexpr int kTag = 5;
constexpr int kOtherTag = 6;

int rank = 0;
int failures = 0;
const char* test_name = "";

void expect(bool good, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, test_name, how.c_str());
  ++failures;
}

Numbers numbers(int first, int count = kCount) {
  Numbers made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = first + i;
  return made;
}
std::vector<std::byte> bytes_of(const Numbers& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(int)};
}
DeviceBuffer empty(int count = kCount) {
  return on_device(Numbers(static_cast<std::size_t>(count), -1));
}

void check_status(const MPI_Status& status, int count, int tag) {
  int told = -1;
  MPI_Get_count(&status, MPI_INT, &told);
  expect(told == count, "the status counts " + std::to_string(told));
  expect(status.MPI_SOURCE == 0, "came from " + std::to_string(status.MPI_SOURCE));
  expect(status.MPI_TAG == tag, "came with tag " + std::to_string(status.MPI_TAG));
}
void check_path(const std::string& path) {
  expect(accord_last_path() == path, std::string("went by ") + accord_last_path());
}

void send(int first, int tag = kTag, int count = kCount) {
  const DeviceBuffer buffer = on_device(numbers(first, count));
  MPI_Send(buffer.pointer(), count, MPI_INT, 1, tag, MPI_COMM_WORLD);
}
// Until it is there, what a rank sends on is not before it in its queue.
void sync() { MPI_Barrier(MPI_COMM_WORLD); }

// What rank 0 sends and rank 1 receives.
void test(const char* name, const std::function<void()>& sender,
          const std::function<void()>& receiver) {
  test_name = name;
  sync();
  if (rank == 0) sender();
  if (rank == 1) receiver();
  sync();
}

// The peers open each other's memory within a few messages.
void warm_up() {
  test_name = "first messages";
  const DeviceBuffer out = on_device(numbers(0));
  const DeviceBuffer in = empty();
  for (int round = 0; round < 8; ++round) {
    MPI_Sendrecv(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, in.pointer(), kCount, MPI_INT,
                 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  check_path("node-p2p");
  expect(contents(in) == numbers(0), "wrong data");
}

void paths() {
  test(
      "device to device",
      [] {
        send(1);
        check_path("node-p2p");
        const DeviceBuffer small = on_device(numbers(2, 7));
        MPI_Send(small.pointer(), 7, MPI_INT, 1, kTag, MPI_COMM_WORLD);
        check_path("staged");
      },
      [] {
        const DeviceBuffer in = empty();
        MPI_Status status;
        MPI_Recv(in.pointer(), kCount, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        check_path("node-p2p");
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(1), "wrong data");
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
        check_path("staged");
        check_status(status, 7, kTag);
      });
  test(
      "device to host",
      [] {
        send(3);
        send(4);
      },
      [] {
        Numbers in(kCount + 1, -1);
        MPI_Status status;
        MPI_Recv(in.data(), kCount + 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
        check_status(status, kCount, kTag);
        Numbers expected = numbers(3);
        expected.push_back(-1);
        expect(in == expected, "wrong data");
        // Every other int, by a request.
        Numbers wide(2 * kCount, -1);
        MPI_Datatype strided;
        MPI_Type_vector(kCount, 1, 2, MPI_INT, &strided);
        MPI_Type_commit(&strided);
        MPI_Request request;
        MPI_Irecv(wide.data(), 1, strided, 0, kTag, MPI_COMM_WORLD, &request);
        MPI_Type_free(&strided);
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        for (int i = 0; i < kCount; ++i) {
          const auto at = static_cast<std::size_t>(2 * i);
          if (wide[at] != 4 + i || wide[at + 1] != -1) return expect(false, "wrong strided data");
        }
      });
}

void probes() {
  test(
      "probes in another order",
      [] {
        send(1, kTag, 100);
        send(2, kOtherTag, 200);
      },
      [] {
        MPI_Status status;
        MPI_Probe(0, kOtherTag, MPI_COMM_WORLD, &status);
        check_status(status, 200, kOtherTag);
        const DeviceBuffer in = empty();
        MPI_Recv(in.pointer(), kCount, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        check_status(status, 100, kTag);
        int flag = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        expect(flag != 0, "not found again");
        check_status(status, 200, kOtherTag);
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, &status);
        check_status(status, 200, kOtherTag);
        expect(contents(in)[199] == 201, "wrong data");
      });
  test(
      "a message as long as a header",
      [] {
        const Numbers plain = numbers(7, kHeaderInts);
        MPI_Send(plain.data(), kHeaderInts, MPI_INT, 1, kTag, MPI_COMM_WORLD);
        send(8);
      },
      [] {
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
        check_status(status, kHeaderInts, kTag);
        Numbers in(kCount, -1);
        MPI_Recv(in.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
        check_status(status, kHeaderInts, kTag);
        expect(in[7] == 14 && in[8] == -1, "wrong data");
        MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
        check_status(status, kCount, kTag);
        MPI_Recv(in.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
        expect(in == numbers(8), "wrong data");
      });
  test(
      "matched probes",
      [] {
        send(1, kTag, 100);
        send(2, kTag, 200);
      },
      [] {
        MPI_Status status;
        MPI_Message first;
        MPI_Message second;
        MPI_Mprobe(0, kTag, MPI_COMM_WORLD, &first, &status);
        check_status(status, 100, kTag);
        MPI_Mprobe(0, kTag, MPI_COMM_WORLD, &second, &status);
        check_status(status, 200, kTag);
        const DeviceBuffer in = empty();
        MPI_Request request;
        MPI_Imrecv(in.pointer(), kCount, MPI_INT, &second, &request);
        MPI_Wait(&request, &status);
        check_status(status, 200, kTag);
        expect(contents(in)[199] == 201, "wrong data of the second");
        MPI_Mrecv(in.pointer(), kCount, MPI_INT, &first, &status);
        check_status(status, 100, kTag);
        expect(contents(in)[99] == 100, "wrong data of the first");
      });
}

// Receives of a message that a probe has found, by everything that starts a receive.
void probed_receives() {
  using Complete = std::function<void(MPI_Request*, MPI_Status*)>;
  const std::vector<Complete> ways = {
      [](MPI_Request* request, MPI_Status* status) { MPI_Wait(request, status); },
      [](MPI_Request* request, MPI_Status* status) { MPI_Waitall(1, request, status); },
      [](MPI_Request* request, MPI_Status* status) {
        int index = -1;
        MPI_Waitany(1, request, &index, status);
        expect(index == 0, "Waitany finds another one");
      },
      [](MPI_Request* request, MPI_Status* status) {
        int index = -1;
        int flag = 0;
        while (flag == 0) MPI_Testany(1, request, &index, &flag, status);
        expect(index == 0, "Testany finds another one");
      },
      [](MPI_Request* request, MPI_Status* status) {
        int index = -1;
        int found = 0;
        MPI_Waitsome(1, request, &found, &index, status);
        expect(found == 1 && index == 0, "Waitsome finds others");
      },
      [](MPI_Request* request, MPI_Status* status) {
        int flag = 0;
        while (flag == 0) MPI_Request_get_status(*request, &flag, status);
        MPI_Wait(request,
                 MPI_STATUS_IGNORE);  // MPICH 5.0.2 tells of a persistent request only once
      },
  };
  const auto sender = [](int count) {
    return [count] {
      for (int i = 0; i < count; ++i) send(i);
    };
  };
  test("persistent receives that were probed", sender(2 * static_cast<int>(ways.size())), [&] {
    const DeviceBuffer in = empty();
    MPI_Request request;
    MPI_Recv_init(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    int sent = 0;
    for (const Complete& complete : ways) {
      for (const bool probed : {true, false}) {
        MPI_Status status;
        if (probed) MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        MPI_Start(&request);
        complete(&request, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(sent++), "wrong data");
      }
    }
    MPI_Request_free(&request);
  });
  test("requests that were probed", sender(static_cast<int>(ways.size())), [&] {
    int sent = 0;
    for (const Complete& complete : ways) {
      const DeviceBuffer in = empty();
      MPI_Status status;
      MPI_Request request;
      MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
      MPI_Irecv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
      complete(&request, &status);
      check_status(status, kCount, kTag);
      expect(contents(in) == numbers(sent++), "wrong data");
    }
  });
  test(
      "an exchange that was probed",
      [] {
        for (const int first : {3, 4, 13, 14}) send(first);
        const DeviceBuffer in = empty();
        for (const int first : {5, 6, 15, 16}) {
          MPI_Recv(in.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          expect(contents(in) == numbers(first), "wrong data back");
        }
      },
      [] {
        const DeviceBuffer out = on_device(numbers(5));
        const DeviceBuffer in = empty();
        MPI_Status status;
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        MPI_Sendrecv(out.pointer(), kCount, MPI_INT, 0, kTag, in.pointer(), kCount, MPI_INT, 0,
                     kTag, MPI_COMM_WORLD, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(3), "wrong data");
        const DeviceBuffer both = on_device(numbers(6));
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        MPI_Sendrecv_replace(both.pointer(), kCount, MPI_INT, 0, kTag, 0, kTag, MPI_COMM_WORLD,
                             &status);
        check_status(status, kCount, kTag);
        expect(contents(both) == numbers(4), "wrong data in place");
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
        const DeviceBuffer more = on_device(numbers(15));
        MPI_Request request;
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        MPI_Isendrecv(more.pointer(), kCount, MPI_INT, 0, kTag, in.pointer(), kCount, MPI_INT, 0,
                      kTag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(13), "wrong data of the request");
        const DeviceBuffer last = on_device(numbers(16));
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        MPI_Isendrecv_replace(last.pointer(), kCount, MPI_INT, 0, kTag, 0, kTag, MPI_COMM_WORLD,
                              &request);
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        expect(contents(last) == numbers(14), "wrong data of the request in place");
#else
        for (const int first : {15, 16}) {
          MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          const DeviceBuffer more = on_device(numbers(first));
          MPI_Send(more.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD);
        }
#endif
      });
}

int class_of(int code) {
  int klass = MPI_SUCCESS;
  MPI_Error_class(code, &klass);
  return klass;
}

void truncation() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (const int room : {4, kHeaderInts, kCount - 1}) {
    test(
        "a buffer that is too small",
        [] {
          send(1);
          send(2);
          send(3);
        },
        [&] {
          Numbers host(kCount, -1);
          const DeviceBuffer device = empty();
          const int on_host =
              MPI_Recv(host.data(), room, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          expect(class_of(on_host) == MPI_ERR_TRUNCATE, "no error");
          expect(std::all_of(host.begin() + room, host.end(), [](int i) { return i == -1; }),
                 "written beyond the buffer");
          MPI_Request request;
          MPI_Irecv(device.pointer(), room, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
          expect(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE,
                 "no error of the request");
          MPI_Recv(device.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          expect(contents(device) == numbers(3), "wrong data afterwards");
        });
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Only the beginning of a header arrives. There is room for others afterwards, though these were
// more than there is room for.
void cut_off() {
  constexpr int kMessages = 24;
  constexpr int kFew = 4;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test(
      "buffers shorter than a header",
      [] {
        for (int i = 0; i < kMessages; ++i) {
          send(i);
          sync();
        }
        send(kMessages);
        check_path("node-p2p");
      },
      [] {
        Numbers host(kFew, -1);
        const DeviceBuffer device = empty(kFew);
        for (int i = 0; i < kMessages; ++i) {
          void* const few = i % 2 == 0 ? host.data() : device.pointer();
          MPI_Request request = MPI_REQUEST_NULL;
          int code = MPI_SUCCESS;
          if (i % 4 == 3) {
            MPI_Irecv(few, kFew, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
          } else {
            code = MPI_Recv(few, kFew, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          }
          expect(class_of(code) == MPI_ERR_TRUNCATE, "no error");
          sync();
        }
        const DeviceBuffer in = empty();
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(contents(in) == numbers(kMessages), "wrong data");
      });
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// The communicator of a persistent receive is freed before a start, whose message was probed.
void freed_communicator() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  test(
      "a communicator that is freed",
      [&] {
        const DeviceBuffer out = on_device(numbers(5));
        MPI_Send(out.pointer(), kCount, MPI_INT, 1, kTag, comm);
        check_path("node-p2p");
        sync();
        MPI_Comm_free(&comm);
      },
      [&] {
        const DeviceBuffer in = empty();
        MPI_Request request;
        MPI_Recv_init(in.pointer(), kCount, MPI_INT, 0, kTag, comm, &request);
        MPI_Status status;
        MPI_Probe(0, kTag, comm, &status);
        check_status(status, kCount, kTag);
        sync();
        MPI_Comm_free(&comm);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(5), "wrong data");
        MPI_Request_free(&request);
      });
}

// Twice as much as the outbox has room for, and one message that is longer.
void no_room() {
  constexpr int kMessages = 16;
  constexpr int kLong = 40000;
  const auto sender = [] {
    std::vector<MPI_Request> requests(kMessages);
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    bool staged = false;
    for (int i = 0; i < kMessages; ++i) {
      buffers.push_back(std::make_unique<DeviceBuffer>(bytes_of(numbers(i))));
      MPI_Isend(buffers.back()->pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD,
                &requests[static_cast<std::size_t>(i)]);
      staged = staged || std::string(accord_last_path()) == "staged";
    }
    expect(staged, "there was room for all");
    sync();
    MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    send(1, kTag, kLong);
    check_path("staged");
    send(2);
    check_path("node-p2p");
  };
  const auto receiver = [] {
    sync();
    const DeviceBuffer in = empty(kLong);
    for (int i = 0; i < kMessages; ++i) {
      MPI_Status status;
      MPI_Recv(in.pointer(), kLong, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
      check_status(status, kCount, kTag);
      const Numbers found = contents(in);
      expect(std::equal(found.begin(), found.begin() + kCount, numbers(i).begin()), "wrong data");
    }
    MPI_Recv(in.pointer(), kLong, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(contents(in) == numbers(1, kLong), "wrong data of the long one");
    MPI_Recv(in.pointer(), kLong, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  test("more than there is room for", sender, receiver);
}

void requests() {
  test(
      "a synchronous send",
      [] {
        const DeviceBuffer buffer = on_device(numbers(1));
        MPI_Request request;
        MPI_Issend(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
        check_path("node-p2p");
        int flag = 0;
        for (int i = 0; i < 100; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        expect(flag == 0, "complete before it is received");
        sync();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      },
      [] {
        sync();
        const DeviceBuffer in = empty();
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(contents(in) == numbers(1), "wrong data");
      });
  test(
      "a receive that is asked about first", [] { send(9); },
      [] {
        const DeviceBuffer in = empty();
        MPI_Request request;
        MPI_Irecv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
        MPI_Status status;
        int flag = 0;
        while (flag == 0) MPI_Request_get_status(request, &flag, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(9), "wrong data");
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        expect(request == MPI_REQUEST_NULL, "the request is still there");
      });
  test(
      "a receive that is cancelled", [] {},
      [] {
        const DeviceBuffer in = empty();
        MPI_Request request;
        MPI_Irecv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Status status;
        MPI_Wait(&request, &status);
        int cancelled = 0;
        MPI_Test_cancelled(&status, &cancelled);
        expect(cancelled != 0, "not cancelled");
      });
}

void all_tests() {
  // Too short for a header, so that it keeps nobody from getting any.
  int word = 0;
  MPI_Request request;
  MPI_Irecv(&word, 1, MPI_INT, rank, kOtherTag, MPI_COMM_WORLD, &request);
  warm_up();
  paths();
  probes();
  probed_receives();
  requests();
  no_room();
  truncation();
  cut_off();
  freed_communicator();
  paths();
  MPI_Send(&rank, 1, MPI_INT, rank, kOtherTag, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "single";
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, mode == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  all_tests();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
