// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Persistent messages between two ranks of a node: each start goes by a header where it can, and
// the request is the program's in every call that takes one. Where "single" is not asked for, with
// MPI_THREAD_MULTIPLE.
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "message_buffers.h"
#include "message_test.h"

namespace {

using namespace accord::test;

constexpr int kWindow = 8;
constexpr int kRounds = 6;
constexpr int kOtherTag = 11;
constexpr int kHeaderInts = 8;  // as long as a header
constexpr int kTicketInts = 2;  // as what goes in the stead of shorter messages

void check_path(const std::string& path) {
  expect(accord_last_path() == path, std::string("went by ") + accord_last_path());
}
void check_status(const MPI_Status& status, int tag) {
  int told = -1;
  MPI_Get_count(&status, MPI_INT, &told);
  expect(told == kCount, "the status counts " + std::to_string(told));
  expect(status.MPI_SOURCE == 1 - rank, "came from " + std::to_string(status.MPI_SOURCE));
  expect(status.MPI_TAG == tag, "came with tag " + std::to_string(status.MPI_TAG));
  int is_cancelled = -1;
  MPI_Test_cancelled(&status, &is_cancelled);
  expect(is_cancelled == 0, "the status tells of a cancelled message");
}
DeviceBuffer empty(int count = kCount) {
  return on_device(Numbers(static_cast<std::size_t>(count), -1));
}

// A window each way, in one pair of buffers a message.
struct Window {
  std::vector<std::unique_ptr<Buffers>> buffers;
  std::array<MPI_Request, kWindow> sends;
  std::array<MPI_Request, kWindow> receives;

  explicit Window(MPI_Comm comm = MPI_COMM_WORLD, int source = 1 - rank) {
    for (int i = 0; i < kWindow; ++i) {
      const auto at = static_cast<std::size_t>(i);
      buffers.push_back(std::make_unique<Buffers>());
      MPI_Send_init(buffers.back()->out.pointer(), kCount, MPI_INT, 1 - rank, i, comm, &sends[at]);
      MPI_Recv_init(buffers.back()->in.pointer(), kCount, MPI_INT, source, i, comm, &receives[at]);
    }
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    for (int i = 0; i < kWindow; ++i) {
      MPI_Request_free(&sends[static_cast<std::size_t>(i)]);
      MPI_Request_free(&receives[static_cast<std::size_t>(i)]);
    }
  }

  // Other numbers each time.
  static int first(int of, int round, int i) { return 1000 * of + 10 * round + i; }
  void start(int round) {
    for (int i = 0; i < kWindow; ++i)
      write(buffers[static_cast<std::size_t>(i)]->out, numbers(first(rank, round, i)));
    MPI_Startall(kWindow, receives.data());
    MPI_Startall(kWindow, sends.data());
  }
  void check(int round) const {
    for (int i = 0; i < kWindow; ++i)
      expect(
          contents(buffers[static_cast<std::size_t>(i)]->in) == numbers(first(1 - rank, round, i)),
          "wrong data of message " + std::to_string(i) + " in round " + std::to_string(round));
  }
};

void go_by_headers() {
  test_name = "windows both ways";
  meet();
  Window window;
  for (int round = 0; round < kRounds; ++round) {
    window.start(round);
    if (round >= kRounds / 2) check_path("node-p2p");  // the first ones lend the buffers
    MPI_Waitall(kWindow, window.sends.data(), MPI_STATUSES_IGNORE);
    // From now on the buffer is the program's.
    for (const auto& buffer : window.buffers) write(buffer->out, numbers(-1));
    std::array<MPI_Status, kWindow> statuses;
    MPI_Waitall(kWindow, window.receives.data(), statuses.data());
    for (int i = 0; i < kWindow; ++i) check_status(statuses[static_cast<std::size_t>(i)], i);
    window.check(round);
  }
}

void by_each_call() {
  test_name = "each call that completes";
  meet();
  Window window(MPI_COMM_WORLD, MPI_ANY_SOURCE);
  const auto each = [&](auto complete) {
    static int round = 100;
    window.start(++round);
    complete(window.sends, false);
    complete(window.receives, true);
    window.check(round);
    for (const auto* requests : {&window.sends, &window.receives})
      for (const MPI_Request request : *requests)
        expect(request != MPI_REQUEST_NULL, "a persistent request is gone");
  };
  const auto check_one = [](const MPI_Status& status, int i, bool receives) {
    if (receives) check_status(status, i);
  };
  each([&](auto& requests, bool receives) {
    for (int i = kWindow - 1; i >= 0; --i) {
      MPI_Status status;
      MPI_Wait(&requests[static_cast<std::size_t>(i)], &status);
      check_one(status, i, receives);
    }
  });
  each([&](auto& requests, bool receives) {
    for (int i = 0; i < kWindow; ++i) {
      MPI_Status status;
      for (int done = 0; done == 0;)
        MPI_Test(&requests[static_cast<std::size_t>(i)], &done, &status);
      check_one(status, i, receives);
    }
  });
  each([&](auto& requests, bool receives) {
    for (int left = kWindow; left > 0; --left) {
      MPI_Status status;
      int index = MPI_UNDEFINED;
      MPI_Waitany(kWindow, requests.data(), &index, &status);
      expect(index >= 0, "MPI_Waitany completes none");
      check_one(status, index, receives);
    }
    int index = 0;
    MPI_Waitany(kWindow, requests.data(), &index, MPI_STATUS_IGNORE);
    expect(index == MPI_UNDEFINED, "MPI_Waitany completes one twice");
  });
  each([&](auto& requests, bool receives) {
    for (int left = kWindow; left > 0;) {
      std::array<MPI_Status, kWindow> statuses;
      std::array<int, kWindow> indices;
      int count = 0;
      MPI_Testsome(kWindow, requests.data(), &count, indices.data(), statuses.data());
      for (int i = 0; i < count; ++i)
        check_one(statuses[static_cast<std::size_t>(i)], indices[static_cast<std::size_t>(i)],
                  receives);
      left -= count;
    }
  });
  each([&](auto& requests, bool receives) {
    for (int i = 0; i < kWindow; ++i) {
      MPI_Request& request = requests[static_cast<std::size_t>(i)];
      MPI_Status status;
      for (int done = 0; done == 0;) MPI_Request_get_status(request, &done, &status);
      check_one(status, i, receives);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  });
  each([&](auto& requests, bool /*receives*/) {
    for (int done = 0; done == 0;)
      MPI_Testall(kWindow, requests.data(), &done, MPI_STATUSES_IGNORE);
  });
}

// Steps of a matrix, and host memory at one end.
void of_types() {
  MPI_Datatype every_other;
  MPI_Type_vector(kCount / 2, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  Numbers expected(kCount, -1);
  test(
      "a derived type that is freed",
      [&] {
        const DeviceBuffer out = on_device(numbers(1));
        MPI_Request request;
        MPI_Send_init(out.pointer(), 1, every_other, 1, kTag, MPI_COMM_WORLD, &request);
        MPI_Type_free(&every_other);
        for (int round = 0; round < kRounds; ++round) {
          MPI_Start(&request);
          check_path("node-p2p");
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
      },
      [&] {
        for (int round = 0; round < kRounds; ++round) {
          Numbers in(kCount, -1);
          MPI_Recv(in.data(), 1, every_other, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          for (std::size_t i = 0; i < in.size(); ++i)
            if (in[i] != (i % 2 == 0 ? 1 + static_cast<int>(i) : -1))
              return expect(false, "wrong data");
        }
        MPI_Type_free(&every_other);
      });
}

// A receiver that is late ends no synchronous send.
void synchronous() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLate{200};
  for (const int count : {kTicketInts, kHeaderInts, kCount}) {
    test(
        "a synchronous one",
        [&] {
          const DeviceBuffer out = on_device(numbers(3));
          MPI_Request request;
          MPI_Ssend_init(out.pointer(), count, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
          for (int round = 0; round < 2; ++round) {
            const auto began = Clock::now();
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            expect(Clock::now() - began >= kLate / 2, "ends before it is received");
          }
          MPI_Request_free(&request);
        },
        [&] {
          for (int round = 0; round < 2; ++round) {
            const DeviceBuffer in = empty(count);
            MPI_Barrier(MPI_COMM_WORLD);
            std::this_thread::sleep_for(kLate);
            MPI_Recv(in.pointer(), count, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(contents(in) == numbers(3, count), "wrong data");
          }
        });
  }
}

// Freed while they are active: a send's buffer is read all the same.
void freed_or_cancelled() {
  test(
      "sends that are freed while they are active",
      [] {
        const Buffers buffers;
        write(buffers.out, numbers(4));
        MPI_Request request;
        MPI_Send_init(buffers.out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Request_free(&request);
        expect(request == MPI_REQUEST_NULL, "MPI_Request_free leaves the request");
        int token = 0;
        MPI_Recv(&token, 1, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      },
      [] {
        const DeviceBuffer in = empty();
        MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(contents(in) == numbers(4), "wrong data");
        MPI_Send(&rank, 1, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD);
      });
  test_name = "cancelled receives";
  const DeviceBuffer in = empty();
  MPI_Request receive;
  MPI_Recv_init(in.pointer(), kCount, MPI_INT, 1 - rank, kOtherTag, MPI_COMM_WORLD, &receive);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&receive);
    MPI_Cancel(&receive);
    MPI_Status status;
    int is_cancelled = 0;
    MPI_Wait(&receive, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    expect(is_cancelled != 0, "not cancelled");
  }
  MPI_Request_free(&receive);
}

// Also while another send is waited for, which looks at what has come.
void too_long() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test_name = "a message that is too long for its receive";
  const DeviceBuffer out = on_device(numbers(5));
  const DeviceBuffer in = empty();
  std::array<MPI_Request, 2> requests;
  MPI_Send_init(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in.pointer(), kCount / 2, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    MPI_Startall(2, requests.data());
    (void)MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    expect(class_of(MPI_Wait(&requests[1], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE, "no error");
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// MPI lets requests outlive the handle of their communicator.
void of_a_freed_communicator() {
  test_name = "of a communicator that is freed";
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Window window(comm);
  window.start(7);
  MPI_Comm_free(&comm);
  MPI_Waitall(kWindow, window.sends.data(), MPI_STATUSES_IGNORE);
  MPI_Waitall(kWindow, window.receives.data(), MPI_STATUSES_IGNORE);
  window.check(7);
}

}  // namespace

int main(int argc, char** argv) {
  const bool single = argc > 1 && std::string(argv[1]) == "single";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const Buffers buffers;
  buffers.warm_up(rank);
  go_by_headers();
  by_each_call();
  of_types();
  synchronous();
  freed_or_cancelled();
  too_long();
  of_a_freed_communicator();
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
