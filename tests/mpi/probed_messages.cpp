// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that go by headers (header_messages.h) and are probed first: several in another order,
// receives by everything that starts one, buffers that are too small, and a communicator that is
// freed in between. Synchronous sends, for which a probe is no receive.
#include <chrono>
#include <thread>

#include "header_messages.h"

namespace {

using namespace accord::test;

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
  for (const int length : {kHeaderInts, kTicketInts})
    test(
        "a message as long as a header or ticket",
        [&] {
          const Numbers plain = numbers(7, length);
          MPI_Send(plain.data(), length, MPI_INT, 1, kTag, MPI_COMM_WORLD);
          send(8, kTag, length + 1);
        },
        [&] {
          MPI_Status status;
          MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
          check_status(status, length, kTag);
          Numbers in(kCount, -1);
          MPI_Recv(in.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
          check_status(status, length, kTag);
          Numbers expected = numbers(7, length);
          expected.resize(kCount, -1);
          expect(in == expected, "wrong data");
          MPI_Probe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &status);
          check_status(status, length + 1, kTag);
          MPI_Recv(in.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
          expected = numbers(8, length + 1);
          expected.resize(kCount, -1);
          expect(in == expected, "wrong data");
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

// Everything that completes a request.
using Complete = std::function<void(MPI_Request*, MPI_Status*)>;
std::vector<Complete> ways_to_complete() {
  return {
      [](MPI_Request* request, MPI_Status* status) { MPI_Wait(request, status); },
      [](MPI_Request* request, MPI_Status* status) { MPI_Waitall(1, request, status); },
      [](MPI_Request* request, MPI_Status* status) {
        for (int flag = 0; flag == 0;) MPI_Test(request, &flag, status);
      },
      [](MPI_Request* request, MPI_Status* status) {
        for (int flag = 0; flag == 0;) MPI_Testall(1, request, &flag, status);
      },
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
        int index = -1;
        int found = 0;
        while (found == 0) MPI_Testsome(1, request, &found, &index, status);
        expect(found == 1 && index == 0, "Testsome finds others");
      },
      [](MPI_Request* request, MPI_Status* status) {
        int flag = 0;
        while (flag == 0) MPI_Request_get_status(*request, &flag, status);
        MPI_Wait(request,
                 MPI_STATUS_IGNORE);  // MPICH 5.0.2 tells of a persistent request only once
      },
  };
}

// Receives of a message that a probe has found, by everything that starts a receive.
void probed_receives() {
  const std::vector<Complete> ways = ways_to_complete();
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
        status = used_status();
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
      status = used_status();
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

// Matched messages as long as a header or ticket, into less room: each is told by its own status.
void cut_off_matched(int length) {
  constexpr int kMessages = 20;
  constexpr int kFew = 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const auto class_of = [](int code) {
    int klass = MPI_SUCCESS;
    MPI_Error_class(code, &klass);
    return klass;
  };
  test(
      "matched messages that are cut off",
      [&] {
        const Numbers plain = numbers(7, length + 4);
        for (int i = 0; i < kMessages; ++i) {
          MPI_Send(plain.data(), length, MPI_INT, 1, kTag, MPI_COMM_WORLD);
          MPI_Send(plain.data(), length + 4, MPI_INT, 1, 100 + i, MPI_COMM_WORLD);
        }
      },
      [&] {
        Numbers in(kCount, -1);
        MPI_Message message;
        MPI_Status status;
        for (int i = 0; i < kMessages; ++i) {
          MPI_Mprobe(0, kTag, MPI_COMM_WORLD, &message, &status);
          check_status(status, length, kTag);
          int code = MPI_SUCCESS;
          if (i % 2 == 0) {
            code = MPI_Mrecv(in.data(), kFew, MPI_INT, &message, &status);
          } else {
            MPI_Request request;
            MPI_Imrecv(in.data(), kFew, MPI_INT, &message, &request);
            code = MPI_Wait(&request, &status);
          }
          expect(class_of(code) == MPI_ERR_TRUNCATE, "no error");
          expect(in[kFew] == -1, "written beyond the buffer");
          MPI_Mprobe(0, 100 + i, MPI_COMM_WORLD, &message, &status);
          MPI_Mrecv(in.data(), kCount, MPI_INT, &message, &status);
          check_status(status, length + 4, 100 + i);
          in.assign(in.size(), -1);
        }
      });
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

using Clock = std::chrono::steady_clock;

// A synchronous send of these ints, to its end.
struct Synchronous {
  const char* name;
  int count;
  bool on_device;
  void (*run)(const void* start, int count);
};

void run_persistent(const void* start, int count) {
  MPI_Request request;
  MPI_Ssend_init(start, count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

void run_by_array(const void* start, int count) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Issend(start, count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void run_by_test(const void* start, int count) {
  MPI_Request request;
  MPI_Issend(start, count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
  for (int flag = 0; flag == 0;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

void run_blocking(const void* start, int count) {
  MPI_Ssend(start, count, MPI_INT, 1, kTag, MPI_COMM_WORLD);
}

const std::vector<Synchronous> kSynchronous = {
    {"Ssend from a device", kCount, true, run_blocking},
    {"Issend from a device", kCount, true, run_by_test},
    {"Issend of a header's length from a device", kHeaderInts, true, run_by_array},
    {"Ssend_init from a device", kHeaderInts, true, run_persistent},
    {"Ssend of a header's length", kHeaderInts, false, run_blocking},
    {"Issend of a header's length", kHeaderInts, false, run_by_test},
    {"Issend of a header's length, in an array", kHeaderInts, false, run_by_array},
    {"Ssend_init of a header's length", kHeaderInts, false, run_persistent},
    {"Ssend from a device of a ticket's length", kTicketInts, true, run_blocking},
    {"Ssend of a ticket's length", kTicketInts, false, run_blocking},
    {"Issend of a ticket's length, in an array", kTicketInts, false, run_by_array},
    {"Ssend_init of a ticket's length", kTicketInts, false, run_persistent},
};

// In the way in which a receiver takes what it has probed.
void receive_probed(int way, Numbers& in, MPI_Status& status) {
  const int count = static_cast<int>(in.size());
  if (way == 0) {
    MPI_Recv(in.data(), count, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
  } else {
    MPI_Request request;
    MPI_Irecv(in.data(), count, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
  }
}

// No synchronous send is complete before its message is received, though that was probed before.
void synchronous_sends() {
  for (const Synchronous& way : kSynchronous) {
    for (const int receive : {0, 1, 2}) {
      test(
          way.name,
          [&] {
            const Numbers host = numbers(3, way.count);
            const DeviceBuffer device = on_device(host);
            way.run(way.on_device ? device.pointer() : host.data(), way.count);
            const Clock::time_point end = Clock::now();
            Clock::rep received = 0;
            MPI_Recv(&received, sizeof received, MPI_BYTE, 1, kOtherTag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            expect(end.time_since_epoch().count() >= received, "complete before it is received");
          },
          [&] {
            Numbers in(kCount, -1);
            MPI_Status status;
            MPI_Message message;
            if (receive == 2) {
              MPI_Mprobe(0, kTag, MPI_COMM_WORLD, &message, &status);
            } else {
              MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
            }
            check_status(status, way.count, kTag);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            const Clock::rep received = Clock::now().time_since_epoch().count();
            if (receive == 2) {
              MPI_Mrecv(in.data(), kCount, MPI_INT, &message, &status);
            } else {
              receive_probed(receive, in, status);
            }
            check_status(status, way.count, kTag);
            expect(in[0] == 3 && in[static_cast<std::size_t>(way.count) - 1] == 2 + way.count,
                   "wrong data");
            MPI_Send(&received, sizeof received, MPI_BYTE, 0, kOtherTag, MPI_COMM_WORLD);
          });
      // Nor do they wait for more than a receive that is posted.
      test(
          way.name,
          [&] {
            const Numbers host = numbers(4, way.count);
            const DeviceBuffer device = on_device(host);
            meet();
            way.run(way.on_device ? device.pointer() : host.data(), way.count);
            meet();
          },
          [&] {
            Numbers in(kCount, -1);
            MPI_Request request;
            MPI_Irecv(in.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
            meet();
            meet();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            expect(in[0] == 4, "wrong data");
          });
    }
  }
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
        meet();
        MPI_Comm_free(&comm);
      },
      [&] {
        const DeviceBuffer in = empty();
        MPI_Request request;
        MPI_Recv_init(in.pointer(), kCount, MPI_INT, 0, kTag, comm, &request);
        MPI_Status status;
        MPI_Probe(0, kTag, comm, &status);
        check_status(status, kCount, kTag);
        meet();
        MPI_Comm_free(&comm);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        check_status(status, kCount, kTag);
        expect(contents(in) == numbers(5), "wrong data");
        MPI_Request_free(&request);
      });
}

}  // namespace

int main(int argc, char** argv) {
  return run_messages(argc, argv, [] {
    probes();
    probed_receives();
    for (const int length : {kHeaderInts, kTicketInts}) cut_off_matched(length);
    synchronous_sends();
    freed_communicator();
  });
}
