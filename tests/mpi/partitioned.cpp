// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Partitioned communication that Accord carries: every call, in every order that MPI allows, on
// host and device memory, around a ring of ranks. Threads that stand for kernels are in
// partitioned_kernels.cpp, errors in partitioned_errors.cpp.
#include "partitioned.h"

#include <accord/accord.h>
#include <accord/partitioned.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#if ACCORD_TEST_PARTITIONED

namespace accord::test {
namespace {

// Both ends in every pair of memories and of numbers of partitions; partitions marked in any order,
// one by one, as ranges and as lists.
void shapes() {
  const int partitions[][2] = {{1, 1}, {4, 4}, {6, 3}, {3, 6}, {5, 7}, {35, 1}};
  for (const auto& [sends, receives] : partitions) {
    for (int where = 0; where < 4; ++where) {
      const int ints = sends * receives * 3;
      Pair pair({.sends = sends,
                 .receives = receives,
                 .ints = ints,
                 .send_on_device = (where & 1) != 0,
                 .receive_on_device = (where & 2) != 0});
      for (int round = 0; round < 3; ++round) {
        pair.start();
        pair.fill(round);
        if (round == 0) pair.mark_backwards();
        if (round == 1) expect_ok(MPI_Pready_range(0, sends - 1, pair.send), "Pready_range");
        if (round == 2) pair.mark_as_list();
        pair.wait();
        pair.check(round, "shapes");
        pair.check_status(ints * static_cast<int>(sizeof(int)));
      }
      pair.free();
    }
  }
}

// What is marked before the receiver has started waits for it, and arrives without any call of the
// sender's but the one that waits.
void early() {
  for (const bool on_device : {false, true}) {
    Pair pair({.sends = 4,
               .receives = 2,
               .ints = 400,
               .send_on_device = on_device,
               .receive_on_device = on_device});
    for (int round = 0; round < 3; ++round) {
      MPI_Start(&pair.send);
      pair.fill(round);
      pair.mark_backwards();
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Start(&pair.receive);
      expect_ok(MPI_Wait(&pair.receive, MPI_STATUS_IGNORE), "Wait of a receive");
      expect_ok(MPI_Wait(&pair.send, MPI_STATUS_IGNORE), "Wait of a send");
      pair.check(round, "early");
    }
    pair.free();
  }
}

// A partition is seen to arrive while the others have not even been marked.
void arrivals() {
  for (const bool on_device : {false, true}) {
    Pair pair({.sends = 6,
               .receives = 3,
               .ints = 600,
               .send_on_device = on_device,
               .receive_on_device = on_device});
    for (int round = 0; round < 3; ++round) {
      pair.start();
      pair.fill(round);
      int flag = 1;
      expect_ok(MPI_Parrived(pair.receive, 1, &flag), "Parrived");
      expect(flag == 0, "a partition arrived before it was marked");
      MPI_Barrier(MPI_COMM_WORLD);  // of a ring, so that nobody marks before all have looked
      MPI_Pready(2, pair.send);
      MPI_Pready(3, pair.send);
      for (flag = 0; flag == 0;) MPI_Parrived(pair.receive, 1, &flag);
      pair.check_part(round, 200, 400, "a partition that has arrived");
      MPI_Parrived(pair.receive, 2, &flag);
      expect(flag == 0, "a partition arrived that was not marked");
      int done = 1;
      MPI_Test(&pair.receive, &done, MPI_STATUS_IGNORE);
      expect(done == 0, "a receive is complete before its time");
      MPI_Barrier(MPI_COMM_WORLD);
      for (const int partition : {0, 1, 4, 5}) MPI_Pready(partition, pair.send);
      pair.wait();
      pair.check(round, "arrivals");
      MPI_Parrived(pair.receive, 2, &flag);
      expect(flag == 1, "Parrived of a request that is not active");
    }
    pair.free();
  }
}

// Partitions of no bytes tell that the others have marked theirs.
void empty() {
  for (const bool on_device : {false, true}) {
    Pair pair({.sends = 3,
               .receives = 2,
               .ints = 0,
               .send_on_device = on_device,
               .receive_on_device = on_device});
    for (int round = 0; round < 3; ++round) {
      pair.start();
      int flag = 1;
      MPI_Parrived(pair.receive, 0, &flag);
      expect(flag == 0, "a partition of no bytes arrived before it was marked");
      MPI_Barrier(MPI_COMM_WORLD);
      pair.mark_backwards();
      for (flag = 0; flag == 0;) MPI_Parrived(pair.receive, 1, &flag);
      MPI_Parrived(pair.receive, 0, &flag);
      expect(flag == 1, "of no bytes not all have arrived");
      pair.wait();
    }
    pair.free();
  }
}

// A communicator that some ranks make by themselves is no duplicate, on none of them.
void make_without_rank_0() {
  MPI_Group everyone = MPI_GROUP_NULL;
  MPI_Group others = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  const int first = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &everyone);
  MPI_Group_excl(everyone, 1, &first, &others);
  if (rank != first) MPI_Comm_create_group(MPI_COMM_WORLD, others, 5, &made);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
  MPI_Group_free(&others);
  MPI_Group_free(&everyone);
}

// Requests with one tag match in the order of their inits on each communicator, however it was made
// and in whatever order the communicators are taken on each rank.
void matching() {
  std::vector<MPI_Comm> comms(6, MPI_COMM_WORLD);
  make_without_rank_0();
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(comms[1], 0, rank, &comms[2]);
  MPI_Request made = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &comms[3], &made);
  MPI_Wait(&made, MPI_STATUS_IGNORE);
  MPI_Group everyone = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &everyone);
  MPI_Comm_create_group(MPI_COMM_WORLD, everyone, 4, &comms[4]);
  MPI_Group_free(&everyone);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comms[5]);
  // Those of rank r begin with communicator r; each says which it is, and its place there.
  struct Named {
    int name;
    Pair pair;
  };
  std::vector<Named> all;
  const int count = static_cast<int>(comms.size());
  for (int place = 0; place < 2; ++place) {
    for (int i = 0; i < count; ++i) {
      const int which = (i + rank) % count;
      all.push_back({10 * place + which, Pair({.sends = 2,
                                               .receives = 2,
                                               .ints = 64,
                                               .send_on_device = place == 1,
                                               .receive_on_device = place == 1,
                                               .comm = comms[static_cast<std::size_t>(which)]})});
    }
  }
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    one->pair.start();
    one->pair.fill(one->name);
    one->pair.mark_backwards();
  }
  for (Named& one : all) {
    one.pair.wait();
    one.pair.check(one.name, "matching");
    one.pair.free();
  }
  for (MPI_Comm& comm : comms)
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
}

// What has been marked goes while its rank is in another blocking call.
void meanwhile() {
  for (const bool on_device : {false, true}) {
    Pair pair({.sends = 4,
               .receives = 4,
               .ints = 4000,
               .send_on_device = on_device,
               .receive_on_device = on_device});
    for (int round = 0; round < 3; ++round) {
      pair.fill(round);
      MPI_Start(&pair.send);
      pair.mark_backwards();
      if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&pair.receive);
      } else {
        ::usleep(2000);
        MPI_Start(&pair.receive);
        // What rank 0 sends comes to an end before rank 0 may leave the barrier.
        if (rank == 1) MPI_Wait(&pair.receive, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      pair.wait();
      pair.check(round, "meanwhile");
    }
    pair.free();
  }
}

// A request freed without a start has its place in the order all the same.
void freed_unused() {
  Pair unused({.sends = 2, .receives = 1, .ints = 8});
  unused.free();
  Pair pair({.sends = 2, .receives = 1, .ints = 16});
  pair.start();
  pair.fill(7);
  pair.mark_backwards();
  pair.wait();
  pair.check(7, "behind one that was freed");
  pair.free();
}

void arrays() {
  std::vector<Pair> pairs;
  for (int i = 0; i < 5; ++i)
    pairs.push_back(Pair({.sends = 3,
                          .receives = 3,
                          .ints = 30 << i,
                          .send_on_device = i % 2 == 0,
                          .receive_on_device = i % 3 == 0,
                          .tag = i}));
  std::vector<MPI_Request> all;
  for (Pair& pair : pairs) all.insert(all.end(), {pair.send, pair.receive});
  for (int round = 0; round < 4; ++round) {
    expect_ok(MPI_Startall(static_cast<int>(all.size()), all.data()), "Startall");
    for (Pair& pair : pairs) {
      pair.fill(round);
      pair.mark_backwards();
    }
    const int count = static_cast<int>(all.size());
    if (round % 2 == 0) {
      MPI_Status unset;
      unset.MPI_ERROR = MPI_ERR_OTHER;
      std::vector<MPI_Status> statuses(all.size(), unset);
      expect_ok(MPI_Waitall(count, all.data(), statuses.data()), "Waitall");
      for (const MPI_Status& one : statuses) expect_ok(one.MPI_ERROR, "a status of Waitall");
    } else {
      for (int done = 0; done < count; ++done) {
        int index = MPI_UNDEFINED;
        MPI_Waitany(count, all.data(), &index, MPI_STATUS_IGNORE);
        expect(index != MPI_UNDEFINED, "Waitany finds too few");
      }
    }
    for (Pair& pair : pairs) pair.check(round, "arrays");
  }
  for (Pair& pair : pairs) pair.free();
}

// With oneself and with nobody.
void special_ranks() {
  for (const bool on_device : {false, true}) {
    Pair self({.sends = 4,
               .receives = 2,
               .ints = 80,
               .send_on_device = on_device,
               .receive_on_device = on_device,
               .comm = MPI_COMM_SELF});
    for (int round = 0; round < 2; ++round) {
      self.start();
      self.fill(round);
      self.mark_backwards();
      self.wait();
      self.check(round, "oneself");
    }
    self.free();
  }
  Ints ints(8, true);
  MPI_Request nobody[2];
  MPI_Psend_init(ints.pointer(), 2, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &nobody[0]);
  MPI_Precv_init(ints.pointer(), 2, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &nobody[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Startall(2, nobody);
    MPI_Pready_range(0, 1, nobody[0]);
    MPI_Status statuses[2];
    expect_ok(MPI_Waitall(2, nobody, statuses), "MPI_PROC_NULL");
    expect(statuses[1].MPI_SOURCE == MPI_PROC_NULL, "the source of nothing");
  }
  for (MPI_Request& request : nobody) MPI_Request_free(&request);
  // Of no partitions at all.
  MPI_Request nothing[2];
  MPI_Psend_init(ints.pointer(), 0, 4, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &nothing[0]);
  MPI_Precv_init(ints.pointer(), 0, 4, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD,
                 MPI_INFO_NULL, &nothing[1]);
  for (int round = 0; round < 2; ++round) {
    expect_ok(MPI_Startall(2, nothing), "Startall of no partitions");
    expect_ok(MPI_Waitall(2, nothing, MPI_STATUSES_IGNORE), "no partitions");
  }
  for (MPI_Request& request : nothing) MPI_Request_free(&request);
}

void groups() {
  if (size < 2) return;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  const int side = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &both);
  int own = 0;
  int others = 0;
  MPI_Comm_rank(half, &own);
  MPI_Comm_remote_size(both, &others);
  if (own < others && 2 * own + 1 < size) {
    Pair pair({.sends = 2,
               .receives = 4,
               .ints = 40,
               .send_on_device = true,
               .receive_on_device = true,
               .comm = both,
               .peer = own});
    pair.start();
    pair.fill(3);
    pair.mark_backwards();
    pair.wait();
    pair.check_from(rank ^ 1, 3, "between groups");
    pair.free();
  }
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

// Elements with gaps on either side; the gaps stay as they are.
void gaps() {
  MPI_Datatype every_other;
  MPI_Type_vector(5, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  constexpr int kExtent = 9;
  const int right = (rank + 1) % size;
  const int left = (rank + size - 1) % size;
  for (const bool on_device : {false, true}) {
    Ints from(4 * kExtent, on_device);
    Ints to(4 * kExtent, on_device);
    std::vector<int> values(4 * kExtent);
    std::iota(values.begin(), values.end(), 1000 * rank);
    from.set(values);
    to.set(std::vector<int>(4 * kExtent, -1));
    MPI_Request requests[2];
    MPI_Psend_init(from.pointer(), 4, 1, every_other, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(to.pointer(), 2, 2, every_other, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &requests[1]);
    MPI_Startall(2, requests);
    for (const int partition : {2, 0, 3, 1}) MPI_Pready(partition, requests[0]);
    expect_ok(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "elements with gaps");
    const std::vector<int> got = to.get();
    for (int i = 0; i < 4 * kExtent; ++i) {
      const int wanted = i % kExtent % 2 == 0 ? 1000 * left + i : -1;
      expect(got[static_cast<std::size_t>(i)] == wanted, "an element with gaps");
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  }
  MPI_Type_free(&every_other);
}

// Longer than a message of the host MPI may be here (ACCORD_CHUNK_BYTES), and empty.
void sizes() {
  for (const int ints : {0, 12, 3 << 16}) {
    for (int where = 0; where < 4; ++where) {
      Pair pair({.sends = 3,
                 .receives = 3,
                 .ints = ints,
                 .send_on_device = (where & 1) != 0,
                 .receive_on_device = (where & 2) != 0});
      for (int round = 0; round < 2; ++round) {
        pair.start();
        pair.fill(round);
        pair.mark_backwards();
        pair.wait();
        pair.check(round, "sizes");
      }
      pair.free();
    }
  }
}

// MPI_Request_get_status leaves the request, and its status, to the call that completes it.
void looked_at() {
  Pair pair({.sends = 2,
             .receives = 2,
             .ints = 20,
             .send_on_device = true,
             .receive_on_device = true,
             .tag = 6});
  for (int round = 0; round < 2; ++round) {
    pair.start();
    pair.fill(round);
    pair.mark_backwards();
    MPI_Status status;
    for (int flag = 0; flag == 0;) MPI_Request_get_status(pair.receive, &flag, &status);
    expect(status.MPI_TAG == 6, "the tag that MPI_Request_get_status tells");
    pair.check(round, "looked at");
    pair.wait();
    pair.check_status(20 * static_cast<int>(sizeof(int)));
  }
  pair.free();
}

void prepared() {
  Pair pair(
      {.sends = 2, .receives = 2, .ints = 32, .send_on_device = true, .receive_on_device = true});
  Pair other({.sends = 2, .receives = 2, .ints = 32, .tag = 9});
  for (int round = 0; round < 3; ++round) {
    pair.start();
    other.start();
    MPI_Request all[] = {pair.send, pair.receive, other.receive, other.send};
    if (rank % 2 != 0) std::reverse(all, all + 4);
    expect_ok(MPIX_Pbuf_prepare_all(4, all), "Pbuf_prepare_all");
    expect_ok(MPIX_Pbuf_prepare(pair.send), "Pbuf_prepare");
    pair.fill(round);
    other.fill(round);
    pair.mark_backwards();
    other.mark_as_list();
    pair.wait();
    other.wait();
    pair.check(round, "prepared");
    other.check(round, "prepared");
  }
  pair.free();
  other.free();
}

}  // namespace
}  // namespace accord::test

int main(int argc, char** argv) {
  using namespace accord::test;
  MPI_Init(&argc, &argv);
  start();
  shapes();
  early();
  arrivals();
  empty();
  meanwhile();
  matching();
  freed_unused();
  arrays();
  special_ranks();
  groups();
  gaps();
  sizes();
  looked_at();
  prepared();
  // One that nobody frees.
  Pair forgotten({.sends = 2, .receives = 2, .ints = 4, .send_on_device = true});
  return finish();
}

#else

#include <cstdio>

int main() {
  std::puts("skipped: this MPI has no partitioned communication");
  return 77;
}

#endif
