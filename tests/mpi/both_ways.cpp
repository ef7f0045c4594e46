// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages by headers (header_messages.h) both ways at once. "windows": of many, few are moved out
// of the way; "late": to a receiver that comes late, of which none are.
#include <chrono>
#include <thread>

#include "header_messages.h"

namespace {

using namespace accord::test;

// Both ranks wait for their sends first, while what they have receives for waits for them.
void windows() {
  constexpr int kMessages = 400;
  constexpr int kPart = 4 << 10;
  constexpr int kRounds = 10;
  test_name = "windows both ways";
  const DeviceBuffer out = empty(kMessages * kPart);
  const DeviceBuffer in = empty(kMessages * kPart);
  const auto part = [](const DeviceBuffer& buffer, int i) {
    return static_cast<int*>(buffer.pointer()) + i * kPart;
  };
  for (int round = 0; round < kRounds; ++round) {
    const auto sent = bytes_of(numbers(round + rank, kMessages * kPart));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    meet();
    MPI_Request sends[kMessages];
    MPI_Request receives[kMessages];
    for (int i = 0; i < kMessages; ++i)
      MPI_Irecv(part(in, i), kPart, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, receives + i);
    for (int i = 0; i < kMessages; ++i)
      MPI_Isend(part(out, i), kPart, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, sends + i);
    meet();
    MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
    MPI_Status statuses[kMessages];
    MPI_Waitall(kMessages, receives, statuses);
    for (const MPI_Status& status : statuses) {
      int count = 0;
      MPI_Get_count(&status, MPI_INT, &count);
      expect(count == kPart && status.MPI_SOURCE == 1 - rank && status.MPI_TAG == kTag,
             "wrong status");
    }
    expect(contents(in) == numbers(round + 1 - rank, kMessages * kPart), "wrong data");
  }
}

// Who waits for a receive, too, moves nothing meanwhile, however late its receiver comes.
void late_receiver() {
  test_name = "a late receiver, whose answer is waited for, too";
  const DeviceBuffer out = empty();
  const DeviceBuffer in = empty();
  for (int round = 0; round < 50; ++round) {
    const auto sent = bytes_of(numbers(round + rank));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    meet();
    if (rank == 0) {
      MPI_Request requests[2];
      MPI_Irecv(in.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, requests + round % 2);
      MPI_Isend(out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, requests + 1 - round % 2);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    }
    expect(contents(in) == numbers(round + 1 - rank), "wrong data");
  }
}

// As windows(), by blocking sends, and in a call that waits for something else.
void sends_both_ways() {
  test_name = "sends both ways";
  const DeviceBuffer out = empty();
  const DeviceBuffer in = empty();
  for (int round = 0; round < 50; ++round) {
    const auto sent = bytes_of(numbers(round + rank));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    meet();
    MPI_Request request;
    MPI_Irecv(in.pointer(), kCount, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD, &request);
    if (round % 2 == 0 || rank == 0)
      MPI_Send(out.pointer(), kCount, MPI_INT, 1 - rank, kTag, MPI_COMM_WORLD);
    if (round % 2 != 0 && rank == 0) MPI_Send(&round, 1, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD);
    if (round % 2 != 0 && rank == 1) {
      int got = 0;
      MPI_Recv(&got, 1, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    }
    MPI_Status status;
    int flag = 0;
    while (flag == 0) MPI_Request_get_status(request, &flag, &status);
    expect(contents(in) == numbers(round + 1 - rank), "wrong data");
    MPI_Wait(&request, &status);
    expect(status.MPI_SOURCE == 1 - rank && status.MPI_TAG == kTag, "wrong status");
  }
}

// Who waits for the receiver of its message fetches what it has receives for meanwhile, though that
// one's sender waits for nothing yet: osu_bibw's ranks wait for their sends first, and for their
// receives.
void while_its_own_waits() {
  test_name = "a message that is fetched while its receiver waits for another one";
  const DeviceBuffer out = empty();
  const DeviceBuffer in = empty();
  for (int round = 0; round < 20; ++round) {
    const auto sent = bytes_of(numbers(round + rank));
    (void)accord_memcpy(out.pointer(), sent.data(), sent.size());
    meet();
    MPI_Request request;
    if (rank == 0) MPI_Irecv(in.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request);
    if (rank == 1) MPI_Isend(out.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
    meet();
    if (rank == 0) {
      MPI_Send(out.pointer(), kCount, MPI_INT, 1, kTag, MPI_COMM_WORLD);
      MPI_Send(&round, 1, MPI_INT, 1, kOtherTag, MPI_COMM_WORLD);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      int got = 0;
      MPI_Recv(&got, 1, MPI_INT, 0, kOtherTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      int is_sent = 0;
      for (int i = 0; i < 3 && is_sent == 0; ++i) MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
      expect(is_sent != 0, "has not been fetched in round " + std::to_string(round));
      MPI_Recv(in.pointer(), kCount, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect(contents(in) == numbers(round + 1 - rank), "wrong data");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  return run_messages(argc, argv, [&] {
    if (mode == "late") return late_receiver();
    if (mode == "windows") return windows();
    sends_both_ways();
    while_its_own_waits();
  });
}
