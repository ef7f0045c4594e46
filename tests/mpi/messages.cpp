// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What becomes of messages that go by headers (header_messages.h). What random calls seldom do is
// here: buffers that are too small, more messages than there is room for; those that are probed are
// in probed_messages.cpp, those both ways at once in both_ways.cpp. "unbuffered": without sends
// that end only where the host MPI buffers what nobody receives yet.
#include <algorithm>
#include <chrono>
#include <memory>

#include "header_messages.h"

namespace {

using namespace accord::test;

void paths() {
  test(
      "device to device",
      [] {
        send(1);
        check_path("node-p2p");
        const DeviceBuffer small = on_device(numbers(2, 7));
        for (int count = 1; count <= 7; ++count) {
          MPI_Send(small.pointer(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD);
          check_path(count < kTicketInts ? "staged" : "node-p2p");
        }
      },
      [] {
        const DeviceBuffer in = empty();
        MPI_Status status;
        MPI_Recv(in.pointer(), kCount, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        check_path("node-p2p");
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(1), "wrong data");
        for (int count = 1; count <= 7; ++count) {
          const DeviceBuffer few = empty(7);
          const int room = count % 2 == 0 ? 7 : count;
          MPI_Recv(few.pointer(), room, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
          check_path(count < kTicketInts ? "staged" : "node-p2p");
          check_status(status, count, kTag);
          Numbers expected = numbers(2, count);
          expected.resize(7, -1);
          expect(contents(few) == expected, "wrong data of a short message");
        }
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

// As the neighbour of a periodic grid that is one process wide does: also of a derived type, and
// by a send that waits until its own rank has received.
void to_itself() {
  test_name = "to itself";
  MPI_Datatype every_other;
  MPI_Type_vector(kCount / 2, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  for (int round = 0; round < 8; ++round) {
    const DeviceBuffer out = on_device(numbers(round));
    const DeviceBuffer in = empty();
    MPI_Sendrecv(out.pointer(), kCount, MPI_INT, rank, kTag, in.pointer(), kCount, MPI_INT, rank,
                 kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(contents(in) == numbers(round), "wrong data");
    const DeviceBuffer sparse = empty();
    MPI_Request request;
    MPI_Irecv(sparse.pointer(), 1, every_other, rank, kTag, MPI_COMM_WORLD, &request);
    MPI_Send(out.pointer(), 1, every_other, rank, kTag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const Numbers got = contents(sparse);
    for (int i = 0; i < kCount; ++i)
      if (got[static_cast<std::size_t>(i)] != (i % 2 == 0 ? round + i : -1))
        return expect(false, "wrong strided data");
  }
  check_path("node-p2p");
  MPI_Type_free(&every_other);
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

// A type of some lengths that might go by a header or ticket: the host MPI has to say so.
void not_committed() {
  test_name = "a type that is not committed";
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const DeviceBuffer buffer = empty();
  for (const int count : {kTicketInts, kTicketInts + 1, kHeaderInts, 100}) {
    MPI_Datatype strided;
    MPI_Type_vector(count, 1, 2, MPI_INT, &strided);
    expect(MPI_Send(buffer.pointer(), 1, strided, 0, kTag, MPI_COMM_SELF) != MPI_SUCCESS,
           "no error of " + std::to_string(count) + " ints");
    MPI_Type_free(&strided);
  }
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
          meet();
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
          meet();
        }
        const DeviceBuffer in = empty();
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(contents(in) == numbers(kMessages), "wrong data");
      });
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
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
    meet();
    MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE);
    send(1, kTag, kLong);
    check_path("staged");
    send(2);
    check_path("node-p2p");
  };
  const auto receiver = [] {
    meet();
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
        meet();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      },
      [] {
        meet();
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

// More than has room in the outbox, to a rank that has no receive for it: the sender has its buffer
// back all the same, and the messages are what it sent.
void sends_beyond_outbox() {
  constexpr int kMessages = 40;
  test_name = "sends of more than the outbox has room for";
  const DeviceBuffer out = empty(kMessages * kCount);
  const DeviceBuffer in = empty(kMessages * kCount);
  const auto part = [](const DeviceBuffer& buffer, int i) {
    return static_cast<int*>(buffer.pointer()) + i * kCount;
  };
  for (int round = 0; round < 12; ++round)
    MPI_Sendrecv(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, in.pointer(), kCount, MPI_INT,
                 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int round = 0; round < 6; ++round) {
    meet();
    const int sender = round % 2;
    if (rank == sender) {
      const auto sent = bytes_of(numbers(round, kMessages * kCount));
      (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
      MPI_Request sends[kMessages];
      for (int i = 0; i < kMessages; ++i)
        MPI_Isend(part(out, i), kCount, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, sends + i);
      MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
      const std::vector<unsigned char> other(sent.size(), 0xee);
      (void)accord_memcpy(out.pointer(), other.data(), other.size());
    }
    meet();
    if (rank != sender) {
      for (int i = kMessages - 1; i >= 0; --i)
        MPI_Recv(part(in, i), kCount, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      expect(contents(in) == numbers(round, kMessages * kCount), "wrong data");
    }
  }
}

// Messages that are shorter than headers, some than their tickets, of different lengths, and one
// from nobody: what has come is copied out together, all of it by the end.
void short_windows() {
  constexpr int kMessages = 50;
  constexpr int kRoom = 6;
  test_name = "windows of short messages";
  const DeviceBuffer out = empty(kMessages * kRoom);
  const auto part = [](const DeviceBuffer& buffer, int i) {
    return static_cast<int*>(buffer.pointer()) + i * kRoom;
  };
  for (int round = 0; round < 20; ++round) {
    const auto sent = bytes_of(numbers(round + rank, kMessages * kRoom));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    const DeviceBuffer in = empty(kMessages * kRoom);
    MPI_Request requests[kMessages + 1];
    for (int i = 0; i < kMessages; ++i)
      MPI_Irecv(part(in, i), kRoom, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, requests + i);
    MPI_Irecv(part(in, 0), kRoom, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD,
              requests + kMessages);
    MPI_Request sends[kMessages];
    for (int i = 0; i < kMessages; ++i)
      MPI_Isend(part(out, i), i % kRoom, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, sends + i);
    if (round % 2 == 0) MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
    MPI_Status statuses[kMessages + 1];
    MPI_Waitall(kMessages + 1, requests, statuses);
    const Numbers found = contents(in);
    for (int i = 0; i < kMessages * kRoom; ++i) {
      const bool is_sent = i % kRoom < i / kRoom % kRoom;
      expect(found[static_cast<std::size_t>(i)] == (is_sent ? round + 1 - rank + i : -1),
             "wrong data at " + std::to_string(i));
    }
    for (int i = 0; i < kMessages; ++i) {
      int count = 0;
      MPI_Get_count(&statuses[i], MPI_INT, &count);
      expect(count == i % kRoom, "the status counts " + std::to_string(count));
    }
    if (round % 2 != 0) MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
  }
}

// What a receiver has begun to fetch in a call its sender gets back whatever the receiver does
// next.
void fetched_before_barrier() {
  test_name = "a message that is fetched before a barrier";
  const DeviceBuffer out = empty();
  const DeviceBuffer in = empty();
  for (int round = 0; round < 300; ++round) {
    meet();
    if (rank == 0) MPI_Send(out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) {
      MPI_Irecv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
      int flag = 0;
      for (int i = 0; i < round; ++i)
        MPI_Iprobe(0, kOtherTag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    meet();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// What neither has a receive for is moved soon, though both wait in calls and have receives posted.
void nothing_posted() {
  test_name = "sends that nobody has a receive for";
  const DeviceBuffer out = empty();
  const DeviceBuffer in = empty();
  const DeviceBuffer other = empty();
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 20; ++round) {
    const auto sent = bytes_of(numbers(round + rank));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    meet();
    MPI_Request request;
    MPI_Irecv(other.pointer(), kCount, MPI_INT, 1 - rank, kOtherTag, MPI_COMM_WORLD, &request);
    MPI_Send(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD);
    MPI_Recv(in.pointer(), kCount, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(contents(in) == numbers(round + 1 - rank), "wrong data");
    MPI_Send(out.pointer(), kCount, MPI_INT, 1 - rank, kOtherTag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(contents(other) == numbers(round + 1 - rank), "wrong data of the other");
  }
  expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10), "takes too long");
}

// Nothing is read or written of a message to or from MPI_PROC_NULL, as ranks at the edge of a grid
// send and receive: not even what the buffer would have room for.
void nobody() {
  constexpr int kMuch = 1 << 28;
  test_name = "messages to and from MPI_PROC_NULL";
  const DeviceBuffer buffer = on_device(numbers(5));
  const DeviceBuffer in = empty();
  void* const data = buffer.pointer();
  MPI_Status status = used_status();
  const auto check = [&](int source, int count) {
    int told = -1;
    MPI_Get_count(&status, MPI_INT, &told);
    expect(status.MPI_SOURCE == source && told == count, "wrong status");
    expect(contents(buffer) == numbers(5), "the buffer has changed");
    status = used_status();
  };
  MPI_Send(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD);
  MPI_Recv(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &status);
  check(MPI_PROC_NULL, 0);
  MPI_Request requests[4];
  MPI_Isend(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Issend(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Wait(&requests[2], &status);
  check(MPI_PROC_NULL, 0);
  MPI_Send_init(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(data, kMuch, MPI_INT, MPI_PROC_NULL, kTag, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  // One side of an exchange: along a line, one way and the other.
  for (const int to : {0, 1}) {
    const bool sends = rank == 1 - to;
    (void)accord_memcpy(in.pointer(), bytes_of(Numbers(kCount, -1)).data(), kCount * sizeof(int));
    MPI_Sendrecv(data, sends ? kCount : kMuch, MPI_INT, sends ? to : MPI_PROC_NULL, kTag,
                 in.pointer(), sends ? kMuch : kCount, MPI_INT, sends ? MPI_PROC_NULL : 1 - to,
                 kTag, MPI_COMM_WORLD, &status);
    check(sends ? MPI_PROC_NULL : 1 - to, sends ? 0 : kCount);
    expect(contents(in) == (sends ? Numbers(kCount, -1) : numbers(5)), "wrong data");
    MPI_Sendrecv_replace(data, kCount, MPI_INT, sends ? to : MPI_PROC_NULL, kTag,
                         sends ? MPI_PROC_NULL : 1 - to, kTag, MPI_COMM_WORLD, &status);
    check(sends ? MPI_PROC_NULL : 1 - to, sends ? 0 : kCount);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  return run_messages(argc, argv, [&] {
    if (mode != "unbuffered") nothing_posted();
    fetched_before_barrier();
    nobody();
    short_windows();
    paths();
    to_itself();
    requests();
    no_room();
    if (mode != "unbuffered") sends_beyond_outbox();
    truncation();
    not_committed();
    cut_off();
    paths();
  });
}
