// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// MPI_Pack and MPI_Unpack of device memory: what the host MPI does on host copies, and, where both
// sides are on the device, without host memory in between. Errors stay the host MPI's.
#include <accord/accord.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "device_buffer.h"
#include "random_types.h"

namespace {

using accord::test::DeviceBuffer;
using Bytes = std::vector<std::byte>;

constexpr int kElements = 50;
constexpr int kPosition = 13;
constexpr std::size_t kPackedBytes = 20'000;

int failures = 0;

void expect(bool good, const char* type, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s (went by %s)\n", type, what, accord_last_path());
  ++failures;
}
bool went(const std::string& way) { return accord_last_path() == way; }

Bytes pattern(std::size_t size_bytes, unsigned seed) {
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i)
    bytes[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 0xff);
  return bytes;
}

void check(const char* name, MPI_Datatype type) {
  MPI_Type_commit(&type);
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &low, &extent);
  const Bytes elements = pattern(static_cast<std::size_t>(low + extent * kElements), 1);
  const int room = static_cast<int>(kPackedBytes);
  Bytes packed = pattern(kPackedBytes, 2);
  int end = kPosition;
  MPI_Pack(elements.data(), kElements, type, packed.data(), room, &end, MPI_COMM_WORLD);

  const DeviceBuffer in(elements);
  const DeviceBuffer out(pattern(kPackedBytes, 2));
  int position = kPosition;
  MPI_Pack(in.pointer(), kElements, type, out.pointer(), room, &position, MPI_COMM_WORLD);
  expect(went("device") && position == end, name, "pack within the device");
  expect(out.contents() == packed, name, "packed bytes");
  Bytes on_host = pattern(kPackedBytes, 2);
  position = kPosition;
  MPI_Pack(in.pointer(), kElements, type, on_host.data(), room, &position, MPI_COMM_WORLD);
  expect(went("staged") && position == end && on_host == packed, name, "pack to the host");

  Bytes unpacked = pattern(elements.size(), 3);
  position = kPosition;
  MPI_Unpack(packed.data(), room, &position, unpacked.data(), kElements, type, MPI_COMM_WORLD);
  for (const void* from :
       {static_cast<const void*>(packed.data()), static_cast<const void*>(out.pointer())}) {
    const DeviceBuffer to(pattern(elements.size(), 3));
    position = kPosition;
    MPI_Unpack(from, room, &position, to.pointer(), kElements, type, MPI_COMM_WORLD);
    expect(went(from == out.pointer() ? "device" : "staged") && position == end, name, "unpack");
    expect(to.contents() == unpacked, name, "unpacked bytes, and gaps");
  }

  // Too little room is for the host MPI to judge.
  int host_position = kPosition;
  position = kPosition;
  const int host_code = MPI_Pack(elements.data(), kElements, type, packed.data(), end - 1,
                                 &host_position, MPI_COMM_WORLD);
  const int code =
      MPI_Pack(in.pointer(), kElements, type, out.pointer(), end - 1, &position, MPI_COMM_WORLD);
  expect(went("staged") && code == host_code && position == host_position, name,
         "pack without room");
  MPI_Type_free(&type);
}

// Each byte from where the standard says. Open MPI takes some of these for types without gaps.
bool check_drawn(accord::test::RandomTypes& types) {
  constexpr MPI_Aint kOrigin = 1 << 15;
  accord::test::DrawnType type = types.make();
  MPI_Type_commit(&type.handle);
  const int count = types.between(1, 3);
  accord::test::Offsets wanted;
  for (int i = 0; i < count; ++i)
    for (const MPI_Aint byte : type.bytes)
      wanted.push_back(kOrigin + byte + i * accord::test::extent_of(type.handle));
  int size = 0;
  MPI_Type_size(type.handle, &size);  // Open MPI 5.0: any number, where a part is an empty darray
  const bool fits =
      !wanted.empty() && static_cast<std::size_t>(size) == type.bytes.size() &&
      std::ranges::all_of(wanted, [](MPI_Aint at) { return at >= 0 && at < 2 * kOrigin; });
  if (fits) {
    const int room = static_cast<int>(wanted.size());
    Bytes found(wanted.size());
    std::vector<unsigned> places(wanted.size());
    for (unsigned digit = 0; digit < 2; ++digit) {
      Bytes area(2 * kOrigin);
      for (std::size_t i = 0; i < area.size(); ++i)
        area[i] = static_cast<std::byte>(i >> (8 * digit) & 0xff);
      const DeviceBuffer in(area);
      int position = 0;
      MPI_Pack(static_cast<std::byte*>(in.pointer()) + kOrigin, count, type.handle, found.data(),
               room, &position, MPI_COMM_WORLD);
      for (std::size_t i = 0; i < found.size(); ++i)
        places[i] |= std::to_integer<unsigned>(found[i]) << (8 * digit);
    }
    expect(std::ranges::equal(places, wanted), types.text().c_str(), "drawn type");
  }
  MPI_Type_free(&type.handle);
  return fits;
}

// Of MPI_BOTTOM: on the heap, the stack, static and in two allocations on the device.
void check_absolute() {
  static int fixed[4] = {1, 2, 3, 4};
  int local[4] = {5, 6, 7, 8};
  std::vector<int> heap = {9, 10, 11, 12};
  const auto ints = [](std::vector<int> numbers) { return accord::test::on_device(numbers); };
  const DeviceBuffer one = ints({13, 14, 15, 16});
  const DeviceBuffer two = ints({17, 18, 19, 20});
  const auto type_of = [](std::vector<void*> places) {
    std::vector<MPI_Aint> addresses(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) MPI_Get_address(places[i], &addresses[i]);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed_block(static_cast<int>(places.size()), 4, addresses.data(), MPI_INT,
                                   &type);
    MPI_Type_commit(&type);
    return type;
  };
  MPI_Datatype from = type_of({fixed, one.pointer(), local, two.pointer(), heap.data()});
  const DeviceBuffer into = ints(std::vector<int>(8));
  std::vector<int> on_host(8);
  int last[4] = {};
  MPI_Datatype to = type_of({on_host.data(), into.pointer(), last, on_host.data() + 4,
                             static_cast<int*>(into.pointer()) + 4});
  MPI_Sendrecv(MPI_BOTTOM, 1, from, 0, 1, MPI_BOTTOM, 1, to, 0, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  expect(on_host == std::vector<int>{1, 2, 3, 4, 17, 18, 19, 20} &&
             accord::test::contents(into) == std::vector<int>{13, 14, 15, 16, 9, 10, 11, 12} &&
             std::equal(std::begin(last), std::end(last), std::begin(local)),
         "absolute addresses", "pieces of several kinds of memory");
  MPI_Type_free(&from);
  MPI_Type_free(&to);
}

// A column of 2 KiB over 1 GiB: what a new handle costs over one that is known.
void check_column() {
  constexpr std::size_t kArrayBytes = std::size_t{1} << 30;
  constexpr int kRows = 256;
  constexpr double kSecondsMax = 200e-6;
  constexpr long kKibibytesMax = 1024;
  void* array = nullptr;
  if (accord_malloc(&array, kArrayBytes, ACCORD_MEMORY_DEVICE) != ACCORD_OK) return;
  std::vector<double> packed(kRows);
  double shortest = 1;
  rusage before{};
  rusage after{};
  for (int round = 0; round < 20; ++round) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(kRows, 1, static_cast<int>(kArrayBytes / kRows / sizeof(double)), MPI_DOUBLE,
                    &type);
    MPI_Type_commit(&type);
    const auto pack = [&] {
      int position = 0;
      const double begin = MPI_Wtime();
      MPI_Pack(array, 1, type, packed.data(), kRows * static_cast<int>(sizeof(double)), &position,
               MPI_COMM_WORLD);
      return MPI_Wtime() - begin;
    };
    if (round == 1) getrusage(RUSAGE_SELF, &before);  // the array's own pages are there by now
    const double first = pack();
    shortest = std::min(shortest, first - pack());
    MPI_Type_free(&type);
  }
  getrusage(RUSAGE_SELF, &after);
  (void)accord_free(array);
  expect(shortest < kSecondsMax, "column", "time of a new handle");
  expect(after.ru_maxrss - before.ru_maxrss < kKibibytesMax, "column", "memory of a new handle");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(9, 2, 5, MPI_SHORT, &type);
  check("vector", type);
  MPI_Type_dup(MPI_DOUBLE_INT, &type);
  check("pair", type);
  int lengths[] = {3, 1, 7, 2};
  int places[] = {40, 2, 10, 30};
  MPI_Type_indexed(4, lengths, places, MPI_INT, &type);
  check("indexed", type);
  int sizes[] = {6, 5, 4};
  int parts[] = {3, 2, 1};
  int starts[] = {1, 2, 3};
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  check("subarray", type);
  MPI_Type_contiguous(4, MPI_FLOAT, &type);
  check("contiguous", type);
  // As programs make those that are too long for an int.
  MPI_Datatype chunks = MPI_DATATYPE_NULL;
  MPI_Datatype rest = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(5, MPI_SHORT, &chunks);
  MPI_Type_contiguous(3, MPI_SHORT, &rest);
  int ones[] = {1, 1};
  MPI_Aint behind[] = {0, 5 * sizeof(short)};
  MPI_Datatype both[] = {chunks, rest};
  MPI_Type_create_struct(2, ones, behind, both, &type);
  check("chunks and the rest", type);
  MPI_Aint apart[] = {0, 6 * sizeof(short)};
  MPI_Type_create_struct(2, ones, apart, both, &type);
  check("chunks, a gap and the rest", type);
  MPI_Type_free(&chunks);
  MPI_Type_free(&rest);
#if MPI_VERSION >= 4
  MPI_Type_contiguous_c(4, MPI_FLOAT, &type);
  check("contiguous by a large count", type);
  MPI_Type_vector_c(9, 2, 5, MPI_SHORT, &type);
  check("vector by large counts", type);
#endif
  check_absolute();
  check_column();
  accord::test::RandomTypes types(1);
  int packed = 0;
  for (int round = 0; round < 3000; ++round) packed += check_drawn(types) ? 1 : 0;
  expect(packed > 1000, "drawn types", "hardly any has bytes");
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
