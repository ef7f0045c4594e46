// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What MPI promises of messages, where these go by headers (messages.cpp) and are lent: the first
// two ranks. Buffers that are used again and again, and overwritten as soon as MPI allows; calls
// that must not wait for the other rank; requests from before the first use of a device; errors
// that both ends learn of. "threads": receives and probes of several threads at once.
#include <accord/accord.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "message_buffers.h"
#include "message_test.h"

namespace {

using namespace accord::test;

constexpr int kOtherTag = 6;
constexpr int kNeverTag = 7;

// Memory of rank 1 that rank 0 sees without a call of MPI.
class SharedNumbers {
 public:
  SharedNumbers() {
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair_);
    if (rank >= 2) return;
    MPI_Win_allocate_shared(rank == 1 ? (kCount + 1) * static_cast<MPI_Aint>(sizeof(int)) : 0,
                            sizeof(int), MPI_INFO_NULL, pair_, static_cast<void*>(&start_),
                            &window_);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 1, &size, &unit, static_cast<void*>(&start_));
    if (rank == 1) std::fill_n(start_, kCount + 1, 0);
  }
  ~SharedNumbers() {
    if (rank >= 2) return;
    MPI_Win_free(&window_);
    MPI_Comm_free(&pair_);
  }
  SharedNumbers(const SharedNumbers&) = delete;
  SharedNumbers& operator=(const SharedNumbers&) = delete;

  int* data() { return start_; }
  void set_last(int value) { std::atomic_ref(start_[kCount]).store(value); }
  // Whether a number gets this value within 20 seconds.
  bool gets(int index, int value) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::atomic_ref(start_[index]).load() != value) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  MPI_Comm pair_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int* start_ = nullptr;
};

using Send = std::function<void(const DeviceBuffer&)>;
using Receive = std::function<void(const DeviceBuffer&)>;

std::vector<Send> ways_to_send() {
  const auto begin = [](auto function, const DeviceBuffer& buffer, MPI_Request* request) {
    function(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, request);
  };
  return {
      [](const DeviceBuffer& buffer) {
        MPI_Send(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [](const DeviceBuffer& buffer) {
        MPI_Ssend(buffer.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [=](const DeviceBuffer& buffer) {
        MPI_Request request;
        begin(MPI_Isend, buffer, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      },
      [=](const DeviceBuffer& buffer) {
        MPI_Request request;
        begin(MPI_Issend, buffer, &request);
        int flag = 0;
        while (flag == 0) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      },
      [=](const DeviceBuffer& buffer) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        begin(MPI_Isend, buffer, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      },
      [=](const DeviceBuffer& buffer) {
        MPI_Request request;
        int index = -1;
        begin(MPI_Isend, buffer, &request);
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
        expect(index == 0, "Waitany finds another one");
      },
      [](const DeviceBuffer& buffer) {
        MPI_Sendrecv(buffer.pointer(), kCount, MPI_INT, 1, kTag, nullptr, 0, MPI_INT, MPI_PROC_NULL,
                     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      },
  };
}

std::vector<Receive> ways_to_receive() {
  return {
      [](const DeviceBuffer& buffer) {
        MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      },
      [](const DeviceBuffer& buffer) {
        MPI_Request request;
        MPI_Irecv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      },
      [](const DeviceBuffer& buffer) {
        MPI_Status status;
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        int count = 0;
        MPI_Get_count(&status, MPI_INT, &count);
        expect(count == kCount, "the probe counts " + std::to_string(count));
        MPI_Recv(buffer.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &status);
      },
  };
}

// Whatever a program keeps in the MPI_ERROR of a status stays there.
void statuses_of_probes() {
  constexpr int kKept = 4711;
  const std::vector<int> sent = {1, 2, 3, 4};
  std::vector<int> got(sent.size());
  const int count = static_cast<int>(sent.size());
  test(
      "statuses of probes",
      [&] {
        for (int i = 0; i < 2; ++i) MPI_Send(sent.data(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        MPI_Status status;
        status.MPI_ERROR = kKept;
        MPI_Probe(0, kTag, MPI_COMM_WORLD, &status);
        expect(status.MPI_ERROR == kKept, "MPI_Probe changes MPI_ERROR");
        MPI_Recv(got.data(), count, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Mprobe(0, kTag, MPI_COMM_WORLD, &message, &status);
        expect(status.MPI_ERROR == kKept, "MPI_Mprobe changes MPI_ERROR");
        MPI_Mrecv(got.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
      });
}

// What is sent next is written as soon as the last send is complete.
void used_again(const Buffers& buffers) {
  const auto sends = ways_to_send();
  const auto receives = ways_to_receive();
  constexpr int kRounds = 3;
  const int messages = kRounds * static_cast<int>(sends.size() * receives.size());
  test(
      "buffers used again",
      [&] {
        for (int i = 0; i < messages; ++i) {
          write(buffers.out, numbers(i));
          sends[static_cast<std::size_t>(i) % sends.size()](buffers.out);
        }
      },
      [&] {
        for (int i = 0; i < messages; ++i) {
          receives[static_cast<std::size_t>(i) % receives.size()](buffers.in);
          expect(contents(buffers.in) == numbers(i), "wrong data of " + std::to_string(i));
        }
      });
}

// Neither a send nor the completion of one may wait for more than a receive that is posted.
void no_waiting(const Buffers& buffers) {
  const auto receiver = [&] {
    MPI_Request request;
    MPI_Irecv(buffers.in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    meet();
    meet();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(contents(buffers.in) == numbers(1), "wrong data");
  };
  test(
      "a send before a barrier",
      [&] {
        write(buffers.out, numbers(1));
        meet();
        MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
        write(buffers.out, numbers(2));
        meet();
      },
      receiver);
  test(
      "a request before a barrier",
      [&] {
        write(buffers.out, numbers(1));
        MPI_Request request;
        MPI_Isend(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
        meet();
        int flag = 0;
        while (flag == 0) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        write(buffers.out, numbers(2));
        meet();
      },
      receiver);
}

// Many messages at once, for which each side waits by one call.
void windows(const Buffers& buffers) {
  constexpr int kMessages = 64;
  constexpr int kPart = kCount / kMessages;
  const auto all = [&](auto function, const DeviceBuffer& buffer, int peer) {
    MPI_Request requests[kMessages];
    for (int i = 0; i < kMessages; ++i)
      function(static_cast<int*>(buffer.pointer()) + i * kPart, kPart, MPI_INT, peer, kTag,
               MPI_COMM_WORLD, requests + i);
    expect(MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "an error");
  };
  for (int round = 0; round < 5; ++round) {
    test(
        "a window",
        [&] {
          write(buffers.out, numbers(round));
          all(MPI_Isend, buffers.out, 1);
        },
        [&] {
          all(MPI_Irecv, buffers.in, 0);
          expect(contents(buffers.in) == numbers(round), "wrong data");
        });
  }
}

// A message is fetched as soon as it is there, whatever else the call waits for.
void any_order(const Buffers& buffers) {
  test_name = "a later one of MPI_Waitall";
  SharedNumbers shared;
  meet();
  if (rank == 0) {
    MPI_Request request;
    write(buffers.out, numbers(1));
    MPI_Isend(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
    expect(shared.gets(kCount - 1, kCount), "waits for the first one");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    MPI_Request requests[2];
    MPI_Irecv(buffers.in.pointer(), kCount, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(shared.data(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect(contents(buffers.in) == numbers(1), "wrong data");
  }
  meet();
}

// MPI_Start of a receive whose message a probe has taken from the queue, before it has arrived.
void local_start(const Buffers& buffers) {
  test_name = "MPI_Start";
  constexpr int kLong = 1 << 20;
  SharedNumbers shared;
  meet();
  if (rank == 0) {
    const Numbers host = numbers(3, kLong);
    MPI_Request request;
    MPI_Isend(host.data(), kLong, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD, &request);
    MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
    expect(shared.gets(kCount, 1), "waits for the sender");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (rank == 1) {
    Numbers host(kLong, -1);
    MPI_Request request;
    MPI_Recv_init(host.data(), kLong, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, &request);
    MPI_Probe(0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    shared.set_last(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(host == numbers(3, kLong), "wrong data");
    MPI_Request_free(&request);
    MPI_Recv(buffers.in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  meet();
}

int copied_attributes = 0;
int deleted_attributes = 0;
int copy_attribute(MPI_Datatype, int, void*, void* in, void* out, int* flag) {
  ++copied_attributes;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}
int delete_attribute(MPI_Datatype, int, void*, void*) {
  ++deleted_attributes;
  return MPI_SUCCESS;
}

// A datatype that is freed while a receive is under way: its attributes are the program's business.
void freed_type(const Buffers& buffers) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(copy_attribute, delete_attribute, &keyval, nullptr);
  test(
      "a datatype with attributes",
      [&] {
        write(buffers.out, numbers(4));
        meet();
        MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        Numbers wide(2 * kCount, -1);
        MPI_Datatype strided;
        MPI_Type_vector(kCount, 1, 2, MPI_INT, &strided);
        MPI_Type_commit(&strided);
        MPI_Type_set_attr(strided, keyval, &wide);
        MPI_Request request;
        MPI_Irecv(wide.data(), 1, strided, 0, kTag, MPI_COMM_WORLD, &request);
        MPI_Type_free(&strided);
        expect(strided == MPI_DATATYPE_NULL, "the handle is still there");
        meet();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < kCount; ++i) {
          const auto at = static_cast<std::size_t>(2 * i);
          if (wide[at] != 4 + i || wide[at + 1] != -1) return expect(false, "wrong data");
        }
        expect(copied_attributes == 0, "attributes were copied");
        expect(deleted_attributes == 1, "attributes were not deleted once");
      });
  MPI_Type_free_keyval(&keyval);
}

// A message that one rank cannot read from its buffer, in part beyond the allocation. Of devices
// that do not say so: there it may be moved all the same, or the program's context is lost.
void errors(const Buffers& buffers) {
  if (std::string(accord_runtime_name()) != "host") return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  constexpr int kTooMany = 2 * kCount;
  const DeviceBuffer room = on_device(Numbers(kTooMany, -1));
  test(
      "a message that cannot be sent",
      [&] {
        const void* const start = buffers.out.pointer();
        expect(MPI_Send(start, kTooMany, MPI_INT, 1, kTag, MPI_COMM_WORLD) != MPI_SUCCESS,
               "MPI_Send gives no error");
        MPI_Request request = MPI_REQUEST_NULL;
        expect(
            MPI_Isend(start, kTooMany, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request) != MPI_SUCCESS,
            "MPI_Isend gives no error");
        MPI_Send(start, kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        const auto receive = [&] {
          return MPI_Recv(room.pointer(), kTooMany, MPI_INT, 0, kTag, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE);
        };
        expect(receive() != MPI_SUCCESS, "MPI_Recv gives no error");
        expect(receive() != MPI_SUCCESS, "the second MPI_Recv gives no error");
        expect(receive() == MPI_SUCCESS, "the third gives one");
      });
  test(
      "a message that cannot be received",
      [&] {
        write(buffers.out, numbers(1));
        // Lent, so that its sender learns of it, or moved out of the way before.
        (void)MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        const DeviceBuffer small = on_device(Numbers(kCount / 2, -1));
        expect(MPI_Recv(small.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE) != MPI_SUCCESS,
               "no error");
      });
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Of a receive whose message never comes nobody waits, not even MPI_Finalize.
void freed_receive() {
  test_name = "a receive that is freed";
  static int word[kCount];
  MPI_Request request;
  MPI_Irecv(word, kCount, MPI_INT, rank, kNeverTag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  expect(request == MPI_REQUEST_NULL, "the handle is still there");
}

// Nor does MPI_Finalize wait for somebody to receive what was sent, be it that the request is freed
// or that it is not. The buffers have to stay.
void send_to_nobody() {
  test_name = "a send that nobody receives";
  const Buffers& buffers = *new Buffers;
  buffers.warm_up(rank);
  if (rank != 0) return;
  MPI_Request requests[2];
  for (MPI_Request& request : requests)
    MPI_Issend(buffers.out.pointer(), kCount, MPI_INT, 1, kNeverTag, MPI_COMM_WORLD, &request);
  MPI_Request_free(&requests[0]);
  int flag = 0;
  MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
  expect(flag == 0, "complete before it is received");
}

// A send whose cancellation either succeeds, or it is received.
void cancelled_send(const Buffers& buffers) {
  test(
      "a send that is cancelled",
      [&] {
        write(buffers.out, numbers(6));
        MPI_Request request;
        MPI_Issend(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Status status;
        int flag = 0;
        int cancelled = 0;
        for (int i = 0; i < 1000 && flag == 0; ++i) MPI_Test(&request, &flag, &status);
        if (flag != 0) MPI_Test_cancelled(&status, &cancelled);
        MPI_Send(&cancelled, 1, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD);
        if (flag == 0) MPI_Wait(&request, &status);
        write(buffers.out, numbers(7));
        MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        int cancelled = 0;
        MPI_Recv(&cancelled, 1, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int first = cancelled != 0 ? 7 : 6; first <= 7; ++first) {
          MPI_Recv(buffers.in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
          expect(contents(buffers.in) == numbers(first), "wrong data");
        }
      });
}

// A persistent receive too short for a header, from before the first use of a device.
void all_tests() {
  int word = -1;
  MPI_Request early = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Recv_init(&word, 1, MPI_INT, 0, kEarlyTag, MPI_COMM_WORLD, &early);
  const Buffers buffers;
  buffers.warm_up(rank);
  test(
      "an early request",
      [&] {
        const int sent = 17;
        MPI_Send(&sent, 1, MPI_INT, 1, kEarlyTag, MPI_COMM_WORLD);
        MPI_Send(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      },
      [&] {
        MPI_Probe(0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&early);
        MPI_Wait(&early, MPI_STATUS_IGNORE);
        expect(word == 17, "wrong data");
        MPI_Request_free(&early);
        MPI_Recv(buffers.in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
  statuses_of_probes();
  used_again(buffers);
  no_waiting(buffers);
  windows(buffers);
  any_order(buffers);
  local_start(buffers);
  freed_type(buffers);
  errors(buffers);
  cancelled_send(buffers);
  used_again(buffers);
  freed_receive();
  send_to_nobody();
}

}  // namespace

int main(int argc, char** argv) {
  int provided = -1;
  int asked = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Query_thread(&asked);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expect(provided == MPI_THREAD_FUNNELED && asked == provided, "told of another thread level");
  all_tests();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
