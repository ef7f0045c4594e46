// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between devices of one node by a collective library, of three ranks: several at a time,
// both ways, in an order that is another on each rank; and of what does not go that way between
// them. The command line says what is to be seen of them, and by which library ("nccl"):
//   some   some messages have gone by it
//   info   the same, on a communicator whose info asks for that
//   none   none have, and all is right all the same
#include <accord/accord.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kCount = 3000;
constexpr int kMessages = 4;  // between any two ranks at a time
constexpr int kRounds = 6;

int rank = 0;
int size = 0;
int failures = 0;
int by_library = 0;
std::string library = "nccl";
MPI_Comm comm = MPI_COMM_WORLD;

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}

Numbers numbers(int sender, int receiver, int number, int count = kCount) {
  Numbers made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    made[static_cast<std::size_t>(i)] = ((sender * 16 + receiver) * 64 + number) * 10000 + i;
  return made;
}
std::unique_ptr<DeviceBuffer> device(const Numbers& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return std::make_unique<DeviceBuffer>(
      std::vector<std::byte>(bytes, bytes + values.size() * sizeof(int)));
}
void write(const DeviceBuffer& buffer, const Numbers& values) {
  (void)accord_memcpy(buffer.pointer(), values.data(), values.size() * sizeof(int));
}
void note_path() {
  if (accord_last_path() == library) ++by_library;
}

// Of every message to and from every other rank; each rank waits in an order of its own.
void exchange_with_all(int round) {
  std::vector<std::unique_ptr<DeviceBuffer>> sent;
  std::vector<std::unique_ptr<DeviceBuffer>> received;
  std::vector<Numbers> expected;
  std::vector<MPI_Request> requests;
  for (int distance = 1; distance < size; ++distance) {
    const int from = (rank + distance) % size;
    for (int number = 0; number < kMessages; ++number) {
      expected.push_back(numbers(from, rank, number + round));
      received.push_back(device(Numbers(kCount, -1)));
      MPI_Irecv(received.back()->pointer(), kCount, MPI_INT, from, number, comm,
                &requests.emplace_back());
    }
  }
  const std::size_t receives = requests.size();
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + size - distance) % size;
    for (int number = 0; number < kMessages; ++number) {
      sent.push_back(device(numbers(rank, to, number + round)));
      MPI_Isend(sent.back()->pointer(), kCount, MPI_INT, to, number, comm,
                &requests.emplace_back());
    }
  }
  for (std::size_t i = 0; i < receives; ++i) {
    const std::size_t which = rank % 2 == 0 ? i : receives - 1 - i;
    MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
    note_path();
    expect(contents(*received[which]) == expected[which], "an exchange with all: wrong contents");
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// The same buffers again and again: they are lent to the receivers, whose messages come from there.
// Each is written again as soon as its send is complete.
void exchange_lent() {
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  const auto send = device(Numbers(kCount, -1));
  const auto recv = device(Numbers(kCount, -1));
  for (int repeat = 0; repeat < 10; ++repeat) {
    write(*send, numbers(rank, next, repeat));
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(recv->pointer(), kCount, MPI_INT, last, 6, comm, &requests[0]);
    MPI_Isend(send->pointer(), kCount, MPI_INT, next, 6, comm, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    note_path();
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    write(*send, Numbers(kCount, -2));
    expect(contents(*recv) == numbers(last, rank, repeat), "lent: wrong contents");
  }
}

// Before any longer one, so short that the library may not be worth it.
void exchange_short() {
  constexpr int kFew = 10;
  for (int distance = 1; distance < size; ++distance) {
    const int to = (rank + distance) % size;
    const int from = (rank + size - distance) % size;
    const auto send = device(numbers(rank, to, 0, kFew));
    const auto recv = device(Numbers(kFew, -1));
    for (int repeat = 0; repeat < 20; ++repeat) {
      MPI_Sendrecv(send->pointer(), kFew, MPI_INT, to, 5, recv->pointer(), kFew, MPI_INT, from, 5,
                   comm, MPI_STATUS_IGNORE);
      expect(contents(*recv) == numbers(from, rank, 0, kFew), "short: wrong contents");
    }
  }
}

// Around the ring, longer receives than messages, and types and memory that cannot go that way.
void exchange_around() {
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  const auto send = device(numbers(rank, next, 0));
  const auto recv = device(Numbers(kCount + 10, -1));
  MPI_Status status;
  MPI_Sendrecv(send->pointer(), kCount, MPI_INT, next, 0, recv->pointer(), kCount + 10, MPI_INT,
               last, 0, comm, &status);
  note_path();
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  expect(count == kCount, "around: a wrong count");
  Numbers expected = numbers(last, rank, 0);
  expected.resize(kCount + 10, -1);
  expect(contents(*recv) == expected, "around: wrong contents");

  MPI_Datatype every_second = MPI_DATATYPE_NULL;
  MPI_Type_vector(kCount / 2, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  const auto gaps = device(Numbers(kCount, -1));
  MPI_Sendrecv(send->pointer(), kCount / 2, MPI_INT, next, 1, gaps->pointer(), 1, every_second,
               last, 1, comm, MPI_STATUS_IGNORE);
  MPI_Type_free(&every_second);
  for (int i = 0; i < kCount; ++i)
    expect(contents(*gaps)[static_cast<std::size_t>(i)] ==
               (i % 2 == 0 ? expected[static_cast<std::size_t>(i) / 2] : -1),
           "around, with gaps: wrong contents");

  Numbers host(kCount, -1);
  MPI_Sendrecv(send->pointer(), kCount, MPI_INT, next, 2, host.data(), kCount, MPI_INT, last, 2,
               comm, MPI_STATUS_IGNORE);
  expect(host == numbers(last, rank, 0), "around, into host memory: wrong contents");
}

// A sender that makes one more call of MPI, or none, in which it may see that its receiver asks for
// the message, and no other one before that has it.
void receive_from_the_absent() {
  int* arrived = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                          &arrived, &window);
  MPI_Aint size_bytes = 0;
  int unit_bytes = 0;
  MPI_Win_shared_query(window, 0, &size_bytes, &unit_bytes, &arrived);
  const std::atomic_ref<int> count(*arrived);
  if (rank == 0) count.store(0);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto buffer = device(numbers(0, 1, 9));
  for (int message = 1; message <= 30; ++message) {
    if (rank == 0) {
      MPI_Send(buffer->pointer(), kCount, MPI_INT, 1, 3, comm);
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      int flag = 0;
      if (message > 2) MPI_Iprobe(1, 3, comm, &flag, MPI_STATUS_IGNORE);
      const double end = MPI_Wtime() + 20;
      while (count.load() < message && MPI_Wtime() < end) std::this_thread::yield();
      expect(count.load() >= message, "from the absent: never came");
    } else if (rank == 1) {
      const auto recv = device(Numbers(kCount, -1));
      MPI_Recv(recv->pointer(), kCount, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
      expect(contents(*recv) == numbers(0, 1, 9), "from the absent: wrong contents");
      count.store(message);
    }
  }
  MPI_Win_free(&window);
}

// Collectives by the library beside messages that wait.
void reduce_beside(int round) {
  const int next = (rank + 1) % size;
  const int last = (rank + size - 1) % size;
  const auto send = device(numbers(rank, next, round));
  const auto recv = device(Numbers(kCount, -1));
  const auto sum = device(Numbers(kCount, 1));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(send->pointer(), kCount, MPI_INT, next, 4, comm, &request);
  MPI_Allreduce(MPI_IN_PLACE, sum->pointer(), kCount, MPI_INT, MPI_SUM, comm);
  MPI_Recv(recv->pointer(), kCount, MPI_INT, last, 4, comm, MPI_STATUS_IGNORE);
  note_path();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(contents(*recv) == numbers(last, rank, round), "beside a sum: wrong contents");
  expect(contents(*sum) == Numbers(kCount, size), "a sum beside messages is wrong");
}

void ask_for_library() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "accord_algorithm", ("send:" + library).c_str());
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "some";
  if (argc > 2) library = argv[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (accord_device_count() > 0) accord_set_device(rank % accord_device_count());
  if (wanted == "info") ask_for_library();
  exchange_short();
  for (int round = 0; round < kRounds; ++round) {
    exchange_with_all(round);
    reduce_beside(round);
    exchange_around();
  }
  exchange_lent();
  receive_from_the_absent();
  std::array<int, 2> counts{failures, by_library};
  MPI_Allreduce(MPI_IN_PLACE, counts.data(), 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if ((counts[1] != 0) != (wanted != "none")) ++counts[0];
  if (rank == 0) std::printf("%d by the library, %d failures\n", counts[1], counts[0]);
  if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
  MPI_Finalize();
  return counts[0] == 0 ? 0 : 1;
}
