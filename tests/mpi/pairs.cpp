// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives in which every pair of ranks has a size of its own: on device memory they go from
// device to device, pair by pair, as soon as one pair is long, and else as they did; where there
// are inboxes, short pairs go by these, and on several nodes all by messages. Each call gives what
// it should; ranks that disagree get an error, and the communicator stays as good as before. The
// way that long pairs take is the first argument, that of short ones the second.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::contents;
using accord::test::DeviceBuffer;
using accord::test::on_device;
using Numbers = std::vector<int>;

constexpr int kLong = 5000;  // elements: more than ACCORD_NODE_BYTES, and than a lane of a region
constexpr int kFew = 10;
constexpr int kGap = 3;
constexpr int kUntouched = -77;
std::string long_way = "node-pairs";
std::string short_way = "staged";

int rank = 0;
int size = 0;
int failures = 0;

void expect(bool good, const char* what, const std::string& how) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, how.c_str());
  ++failures;
}

// Elements from one rank to another: nothing, few, or many.
int count(int from, int to) {
  if ((from + to) % 3 == 2) return 0;
  return (from + to) % 3 == 0 ? kLong : 10 * from + to + 1;
}
int value(int from, int to, int i) { return from * 1000000 + to * 100000 + i; }

// The blocks of all peers, with a gap before each.
struct Blocks {
  Numbers counts;
  Numbers places;
  int room = 0;

  template <class CountOf>
  static Blocks of(CountOf count_of, int first = 0) {
    Blocks blocks;
    blocks.room = first;
    for (int peer = 0; peer < size; ++peer) {
      blocks.counts.push_back(count_of(peer));
      blocks.places.push_back(blocks.room + kGap);
      blocks.room += kGap + blocks.counts.back();
    }
    return blocks;
  }
  // Those of the peers whose blocks exist, as value_of(peer, element) gives them.
  template <class ValueOf>
  void write(Numbers& numbers, ValueOf value_of) const {
    for (int peer = 0; peer < size; ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      for (int i = 0; i < counts[at]; ++i)
        numbers[static_cast<std::size_t>(places[at] + i)] = value_of(peer, i);
    }
  }
};

Blocks sent_blocks() {
  return Blocks::of([](int peer) { return count(rank, peer); });
}
Blocks received_blocks(int first = 0) {
  return Blocks::of([](int peer) { return count(peer, rank); }, first);
}
int sent(int peer, int i) { return value(rank, peer, i); }
int received(int peer, int i) { return value(peer, rank, i); }

Numbers untouched(int room) { return Numbers(static_cast<std::size_t>(room), kUntouched); }
DeviceBuffer all_sent(const Blocks& blocks) {
  Numbers numbers = untouched(blocks.room);
  blocks.write(numbers, sent);
  return on_device(numbers);
}
Numbers all_received(const Blocks& blocks) {
  Numbers numbers = untouched(blocks.room);
  blocks.write(numbers, received);
  return numbers;
}
void check(const char* what, const DeviceBuffer& buffer, const Numbers& expected,
           const std::string& way = long_way) {
  expect(accord_last_path() == way, what, std::string("went by ") + accord_last_path());
  expect(contents(buffer) == expected, what, "wrong result");
}

// Where the only long pair of rank 0 is itself and that stays, or there is but the last rank, with
// which it has none.
std::string way_without_own() { return rank == 0 && short_way == "inbox" ? short_way : long_way; }

// Again and again on the same buffers: the ranks come to reach into them.
void alltoallv() {
  const Blocks from = sent_blocks();
  const Blocks to = received_blocks();
  const DeviceBuffer send = all_sent(from);
  for (int call = 0; call < 5; ++call) {
    const DeviceBuffer receive = on_device(untouched(to.room));
    MPI_Alltoallv(send.pointer(), from.counts.data(), from.places.data(), MPI_INT,
                  receive.pointer(), to.counts.data(), to.places.data(), MPI_INT, MPI_COMM_WORLD);
    check("alltoallv", receive, all_received(to));
  }
  const DeviceBuffer receive = on_device(untouched(to.room));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoallv(send.pointer(), from.counts.data(), from.places.data(), MPI_INT, receive.pointer(),
                 to.counts.data(), to.places.data(), MPI_INT, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("ialltoallv", receive, all_received(to), long_way == "staged" ? long_way : "queued");
}

// Rank 0 sends from host memory: it takes part as the others do.
void mixed_memory() {
  const Blocks from = sent_blocks();
  const Blocks to = received_blocks();
  const DeviceBuffer send = all_sent(from);
  Numbers on_host = contents(send);
  const DeviceBuffer receive = on_device(untouched(to.room));
  MPI_Alltoallv(rank == 0 ? on_host.data() : send.pointer(), from.counts.data(), from.places.data(),
                MPI_INT, receive.pointer(), to.counts.data(), to.places.data(), MPI_INT,
                MPI_COMM_WORLD);
  check("alltoallv from host and device memory", receive, all_received(to));
}

// Send and receive buffer are one, whose blocks lie apart.
void one_buffer() {
  const Blocks from = sent_blocks();
  const Blocks to = received_blocks(from.room);
  Numbers numbers = untouched(to.room);
  from.write(numbers, sent);
  const DeviceBuffer both = on_device(numbers);
  MPI_Alltoallv(both.pointer(), from.counts.data(), from.places.data(), MPI_INT, both.pointer(),
                to.counts.data(), to.places.data(), MPI_INT, MPI_COMM_WORLD);
  to.write(numbers, received);
  check("alltoallv within one buffer", both, numbers);
}

void alltoallv_in_place() {
  const auto both_ways = [](int peer) { return count(std::min(rank, peer), std::max(rank, peer)); };
  const Blocks blocks = Blocks::of(both_ways);
  const DeviceBuffer both = all_sent(blocks);
  MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, both.pointer(),
                blocks.counts.data(), blocks.places.data(), MPI_INT, MPI_COMM_WORLD);
  check("alltoallv in place", both, all_received(blocks), way_without_own());
}

// Blocks of one size that are as short: on several nodes they go as those of short pairs do.
void equal_blocks(bool in_place) {
  constexpr int kElements = 100;
  const auto whole = [](auto value_of) {
    Numbers numbers;
    for (int peer = 0; peer < size; ++peer)
      for (int i = 0; i < kElements; ++i) numbers.push_back(value_of(peer, i));
    return numbers;
  };
  const DeviceBuffer send = on_device(whole(sent));
  const DeviceBuffer receive = on_device(in_place ? whole(sent) : untouched(size * kElements));
  MPI_Alltoall(in_place ? MPI_IN_PLACE : send.pointer(), kElements, MPI_INT, receive.pointer(),
               kElements, MPI_INT, MPI_COMM_WORLD);
  const std::string way = short_way == "two-level-pairs" ? "two-level" : accord_last_path();
  check(in_place ? "alltoall in place" : "alltoall", receive, whole(received), way);
}

// Every second element is sent, and received without gaps.
void alltoallw() {
  const Blocks from = Blocks::of([](int peer) { return 2 * count(rank, peer); });
  const Blocks to = received_blocks();
  Numbers numbers = untouched(from.room);
  from.write(numbers, [](int peer, int i) { return sent(peer, i / 2); });
  const DeviceBuffer send = on_device(numbers);
  const DeviceBuffer receive = on_device(untouched(to.room));
  MPI_Datatype spread = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  const auto peers = static_cast<std::size_t>(size);
  const std::vector<MPI_Datatype> spreads(peers, spread);
  const std::vector<MPI_Datatype> ints(peers, MPI_INT);
  const auto in_bytes = [](Numbers places) {
    for (int& place : places) place *= static_cast<int>(sizeof(int));
    return places;
  };
  Numbers counts = from.counts;
  for (int& one : counts) one /= 2;
  MPI_Alltoallw(send.pointer(), counts.data(), in_bytes(from.places).data(), spreads.data(),
                receive.pointer(), to.counts.data(), in_bytes(to.places).data(), ints.data(),
                MPI_COMM_WORLD);
  check("alltoallw", receive, all_received(to));
  MPI_Type_free(&spread);
}

void gatherv(int root, bool in_place) {
  const int own = count(rank, root);
  const Blocks from = Blocks::of([&](int peer) { return peer == root ? own : 0; });
  const DeviceBuffer send = all_sent(from);
  auto* const first =
      static_cast<int*>(send.pointer()) + from.places[static_cast<std::size_t>(root)];
  const Blocks to = received_blocks();
  Numbers expected = all_received(to);
  Numbers before = untouched(to.room);
  if (in_place) before = expected;  // of the others' it is overwritten by the same
  const DeviceBuffer receive = on_device(before);
  MPI_Gatherv(in_place && rank == root ? MPI_IN_PLACE : first, own, MPI_INT, receive.pointer(),
              rank == root ? to.counts.data() : nullptr, rank == root ? to.places.data() : nullptr,
              MPI_INT, root, MPI_COMM_WORLD);
  if (rank != root) expected = before;
  check(in_place ? "gatherv in place" : "gatherv", receive, expected, way_without_own());
}

void scatterv(int root, bool in_place) {
  const Blocks from = sent_blocks();
  const DeviceBuffer send = all_sent(from);
  const int own = count(root, rank);
  Numbers expected = untouched(kLong);
  const DeviceBuffer receive = on_device(expected);
  const bool stays = in_place && rank == root;
  MPI_Scatterv(send.pointer(), rank == root ? from.counts.data() : nullptr,
               rank == root ? from.places.data() : nullptr, MPI_INT,
               stays ? MPI_IN_PLACE : receive.pointer(), own, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < own && !stays; ++i)
    expected[static_cast<std::size_t>(i)] = value(root, rank, i);
  check(in_place ? "scatterv in place" : "scatterv", receive, expected, way_without_own());
}

// The way of a call with so many elements from each rank to the last one, and one to the others.
std::string way_of(int elements_of_last, MPI_Comm comm) {
  const Blocks from = Blocks::of([&](int peer) { return peer == size - 1 ? elements_of_last : 1; });
  const Blocks to = Blocks::of([&](int) { return rank == size - 1 ? elements_of_last : 1; });
  const DeviceBuffer send = all_sent(from);
  const DeviceBuffer receive = on_device(untouched(to.room));
  MPI_Alltoallv(send.pointer(), from.counts.data(), from.places.data(), MPI_INT, receive.pointer(),
                to.counts.data(), to.places.data(), MPI_INT, comm);
  std::string way = accord_last_path();
  expect(contents(receive) == all_received(to), "alltoallv", "wrong result");
  return way;
}

std::string way_of_first(int elements_of_last) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::string way = way_of(elements_of_last, comm);
  MPI_Comm_free(&comm);
  return way;
}

// No rank knows of the others' pairs but by votes, whatever came before. Who has had many calls has
// inboxes, too.
bool goes_as_long(int elements, MPI_Comm comm) {
  const std::string way = way_of(elements, comm);
  return way == long_way || way == "inbox";
}

void long_behind_short() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int call = 0; call < 150; ++call) way_of(1, comm);
  constexpr int kSoon = 5;
  for (int call = 1; call < kSoon; ++call) way_of(kLong, comm);
  expect(goes_as_long(kLong, comm), "long pairs behind short ones", accord_last_path());
  for (int call = 0; call < 20; ++call) {
    way_of(1, comm);
    expect(goes_as_long(kLong, comm), "long pairs in turn", accord_last_path());
  }
  MPI_Comm_free(&comm);
}

// With a root votes are seldom, since for these alone the ranks wait for each other: one in 33
// calls, and the numbered ones.
std::string way_of_rooted(bool gathers, int elements, MPI_Comm comm) {
  const bool is_root = rank == 0;
  const Blocks all = Blocks::of([=](int) { return elements; });
  const int* const counts = is_root ? all.counts.data() : nullptr;
  const int* const places = is_root ? all.places.data() : nullptr;
  Numbers own;
  for (int i = 0; i < elements; ++i) own.push_back(gathers ? sent(0, i) : received(0, i));
  if (gathers) {
    const DeviceBuffer send = on_device(own);
    const DeviceBuffer receive = on_device(untouched(all.room));
    MPI_Gatherv(send.pointer(), elements, MPI_INT, receive.pointer(), counts, places, MPI_INT, 0,
                comm);
    expect(contents(receive) == (is_root ? all_received(all) : untouched(all.room)), "gatherv",
           "wrong result");
  } else {
    const DeviceBuffer send = all_sent(all);
    const DeviceBuffer receive = on_device(untouched(elements));
    MPI_Scatterv(send.pointer(), counts, places, MPI_INT, receive.pointer(), elements, MPI_INT, 0,
                 comm);
    expect(contents(receive) == own, "scatterv", "wrong result");
  }
  return accord_last_path();
}

void rooted_behind_short(bool gathers) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int call = 1; call <= 64; ++call) way_of_rooted(gathers, 1, comm);
  const std::string voted = way_of_rooted(gathers, 1, comm);
  for (int call = 66; call < 64 + 33; ++call)
    expect(way_of_rooted(gathers, kLong, comm) == "staged" || voted != "staged",
           "rooted before a vote", accord_last_path());
  const std::string way = way_of_rooted(gathers, kLong, comm);
  expect(way == long_way || way == "inbox", "rooted behind short ones", way);
  MPI_Comm_free(&comm);
}

// Rank 0 sends rank 1 `more` elements than that expects. Then all is well again.
void disagreement(int elements, int more) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (const int wrong : {0, more, 0}) {
    const Blocks from =
        Blocks::of([&](int peer) { return elements + (rank == 0 && peer == 1 ? wrong : 0); });
    const Blocks to = Blocks::of([=](int) { return elements; });
    const DeviceBuffer send = all_sent(from);
    const DeviceBuffer receive = on_device(untouched(to.room));
    const int code =
        MPI_Alltoallv(send.pointer(), from.counts.data(), from.places.data(), MPI_INT,
                      receive.pointer(), to.counts.data(), to.places.data(), MPI_INT, comm);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    const bool errs = wrong != 0 && rank == 1;
    if (errs) {
      expect(error_class == (more > 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER), "disagreement",
             "error class " + std::to_string(error_class));
    } else if (wrong == 0 || rank != 0) {
      expect(code == MPI_SUCCESS, "the others of a disagreement", "an error");
      expect(contents(receive) == all_received(to), "the others of a disagreement", "wrong result");
    }
  }
  MPI_Comm_free(&comm);
}

// The same where rank 1 receives by types of absolute addresses, hence through a shadow of its
// whole buffer: what the others send it arrives all the same.
void disagreement_at_absolute_addresses() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const Blocks from = Blocks::of([](int peer) { return kLong + (rank == 0 && peer == 1 ? 1 : 0); });
  const Blocks to = Blocks::of([](int) { return kLong; });
  const DeviceBuffer send = all_sent(from);
  const DeviceBuffer receive = on_device(untouched(to.room));
  const auto peers = static_cast<std::size_t>(size);
  std::vector<MPI_Datatype> absolute(peers);
  Numbers offsets;
  for (std::size_t peer = 0; peer < peers; ++peer) {
    MPI_Aint address = 0;
    MPI_Get_address(static_cast<int*>(receive.pointer()) + to.places[peer], &address);
    MPI_Type_create_hindexed(1, &to.counts[peer], &address, MPI_INT, &absolute[peer]);
    MPI_Type_commit(&absolute[peer]);
    offsets.push_back(from.places[peer] * static_cast<int>(sizeof(int)));
  }
  const std::vector<MPI_Datatype> ints(peers, MPI_INT);
  const Numbers ones(peers, 1);
  const Numbers zeros(peers, 0);
  const int code = MPI_Alltoallw(send.pointer(), from.counts.data(), offsets.data(), ints.data(),
                                 MPI_BOTTOM, ones.data(), zeros.data(), absolute.data(), comm);
  if (rank != 0)
    expect((code == MPI_SUCCESS) == (rank != 1), "alltoallw of a block nobody expects",
           "code " + std::to_string(code));
  Numbers expected = all_received(to);
  if (rank == 1) std::fill_n(expected.begin() + to.places[0], kLong, kUntouched);
  check("alltoallw at absolute addresses", receive, expected);
  for (MPI_Datatype& type : absolute) MPI_Type_free(&type);
  MPI_Comm_free(&comm);
}

// An int from and for each rank, both at absolute addresses, hence from one pointer into the same:
// which host MPIs take for a call in place where it is not MPI_BOTTOM itself. Near each other, and
// on both sides of a page of 64 KiB, the unit in which such addresses have shadows.
void all_at_absolute_addresses(bool on_two_pages) {
  constexpr std::uintptr_t kPageBytes = 1 << 16;
  const DeviceBuffer memory = on_device(untouched(kPageBytes / 2));
  const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(size);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.pointer());
  const std::uintptr_t page = (begin + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const send = reinterpret_cast<void*>(on_two_pages ? page - bytes : begin);
  void* const receive = reinterpret_cast<void*>(on_two_pages ? page : begin + bytes);
  const auto peers = static_cast<std::size_t>(size);
  const auto types_of = [](void* memory) {
    std::vector<MPI_Datatype> types(static_cast<std::size_t>(size));
    for (int peer = 0; peer < size; ++peer) {
      MPI_Aint address = 0;
      MPI_Get_address(static_cast<int*>(memory) + peer, &address);
      const int one = 1;
      MPI_Datatype* const type = &types[static_cast<std::size_t>(peer)];
      MPI_Type_create_hindexed(1, &one, &address, MPI_INT, type);
      MPI_Type_commit(type);
    }
    return types;
  };
  Numbers mine;
  Numbers expected;
  for (int peer = 0; peer < size; ++peer) {
    mine.push_back(100 * rank + peer);
    expected.push_back(100 * peer + rank);
  }
  const Numbers ones(peers, 1);
  const Numbers zeros(peers, 0);
  for (const int form : {0, 1, 2}) {
    Numbers got = untouched(size);
    (void)accord_memcpy(send, mine.data(), bytes);
    (void)accord_memcpy(receive, got.data(), bytes);
    auto from = types_of(send);
    auto to = types_of(receive);
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == 0) {
      MPI_Alltoallw(MPI_BOTTOM, ones.data(), zeros.data(), from.data(), MPI_BOTTOM, ones.data(),
                    zeros.data(), to.data(), MPI_COMM_WORLD);
    } else if (form == 1) {
      MPI_Ialltoallw(MPI_BOTTOM, ones.data(), zeros.data(), from.data(), MPI_BOTTOM, ones.data(),
                     zeros.data(), to.data(), MPI_COMM_WORLD, &request);
    }
#if MPI_VERSION >= 4
    if (form == 2) {
      MPI_Alltoallw_init(MPI_BOTTOM, ones.data(), zeros.data(), from.data(), MPI_BOTTOM,
                         ones.data(), zeros.data(), to.data(), MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request);
      MPI_Start(&request);
    }
#else
    if (form == 2) expected = untouched(size);
#endif
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    (void)accord_memcpy(got.data(), receive, bytes);
    expect(got == expected, "alltoallw all at absolute addresses", "wrong result");
    for (auto* types : {&from, &to})
      for (MPI_Datatype& type : *types) MPI_Type_free(&type);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) long_way = argv[1];
  if (argc > 2) short_way = argv[2];
  alltoallv();
  mixed_memory();
  one_buffer();
  alltoallv_in_place();
  alltoallw();
  equal_blocks(false);
  equal_blocks(true);
  for (const bool in_place : {false, true}) {
    gatherv(size - 1, in_place);
    scatterv(size - 1, in_place);
  }
  expect(way_of_first(1) == short_way, "short alltoallv", accord_last_path());
  expect(way_of_first(kLong) == long_way, "alltoallv with long pairs", accord_last_path());
  long_behind_short();
  for (const bool gathers : {true, false}) rooted_behind_short(gathers);
  if (long_way != "staged") {
    for (const int more : {1, -1}) disagreement(kLong, more);
    disagreement_at_absolute_addresses();
  }
  // Of lengths alike in all but the last unit, of nothing, and where one thinks the pair long.
  if (short_way != "staged") {
    for (const int more : {1, -1, -kFew, kLong}) disagreement(kFew, more);
    disagreement(kLong, kFew - kLong);
  }
  for (const bool on_two_pages : {false, true}) all_at_absolute_addresses(on_two_pages);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
