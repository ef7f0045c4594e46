// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every predefined operation on every predefined type it is for, on device memory of two ranks:
// which pairs are reduced on the device, and that those give the bits of the host MPI's own
// MPI_Reduce_local, on values that conformance cannot use since more ranks would have an order.
#include <accord/accord.h>
#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>  // some have MPIX_C_FLOAT16 there
#endif

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

using Random = std::mt19937;

constexpr int kCount = 5003;
constexpr unsigned char kUntouched = 0xa5;
constexpr bool kIsMpich =
#ifdef MPICH
    true;
#else
    false;
#endif

constexpr bool kIsOpenMpi =
#ifdef OPEN_MPI
    true;
#else
    false;
#endif

// Takes all integers for signed ones: no oracle for the unsigned.
constexpr bool kComparesAsSigned =
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    true;
#else
    false;
#endif

enum class Way { device, host };

struct Operation {
  const char* name;
  MPI_Op handle;
  enum Family { sum, prod, order, logical, bitwise, location } family;
};

const std::vector<Operation>& operations() {
  static const std::vector<Operation> list = {
      {"MPI_SUM", MPI_SUM, Operation::sum},
      {"MPI_PROD", MPI_PROD, Operation::prod},
      {"MPI_MIN", MPI_MIN, Operation::order},
      {"MPI_MAX", MPI_MAX, Operation::order},
      {"MPI_LAND", MPI_LAND, Operation::logical},
      {"MPI_LOR", MPI_LOR, Operation::logical},
      {"MPI_LXOR", MPI_LXOR, Operation::logical},
      {"MPI_BAND", MPI_BAND, Operation::bitwise},
      {"MPI_BOR", MPI_BOR, Operation::bitwise},
      {"MPI_BXOR", MPI_BXOR, Operation::bitwise},
      {"MPI_MINLOC", MPI_MINLOC, Operation::location},
      {"MPI_MAXLOC", MPI_MAXLOC, Operation::location},
  };
  return list;
}

struct Type {
  const char* name;
  MPI_Datatype handle;
  std::size_t extent_bytes;
  std::vector<Operation::Family> families;
  std::function<void(std::byte*, Operation::Family, Random&)> write;
  std::function<Way(Operation::Family)> way = [](Operation::Family) { return Way::device; };
};

const std::vector<Operation::Family> kArithmetic = {Operation::sum, Operation::prod};
const std::vector<Operation::Family> kNumbers = {Operation::sum, Operation::prod, Operation::order};
const std::vector<Operation::Family> kAddresses = {Operation::sum, Operation::prod,
                                                   Operation::order, Operation::bitwise};
const std::vector<Operation::Family> kIntegers = {Operation::sum, Operation::prod, Operation::order,
                                                  Operation::logical, Operation::bitwise};

const std::vector<Operation::Family> kBits = {Operation::bitwise};
// What Open MPI alone takes for a number.
const std::vector<Operation::Family> kCharacters =
    kIsOpenMpi ? kIntegers : std::vector<Operation::Family>{};

template <class T>
void put(std::byte* target, T value) {
  std::memcpy(target, &value, sizeof value);
}

// Of all sizes, but small where Open MPI would saturate.
template <class T>
Type integers(const char* name, MPI_Datatype handle,
              std::vector<Operation::Family> families = kIntegers) {
  Type type{name, handle, sizeof(T), std::move(families), {}};
  type.write = [](std::byte* target, Operation::Family family, Random& random) {
    const bool narrow = sizeof(T) <= 2 && !kIsMpich;
    const bool small = narrow && (family == Operation::sum || family == Operation::prod);
    const auto bits = (std::uint64_t{random()} << 32) | random();
    put(target, random() % 4 == 0 ? T{0} : static_cast<T>(small ? bits % 8 : bits));
  };
  if (kComparesAsSigned && std::is_unsigned_v<T>) std::erase(type.families, Operation::order);
  if (sizeof(T) == 1 && !kIsMpich) {
    type.way = [](Operation::Family family) {
      return family == Operation::sum || family == Operation::prod ? Way::host : Way::device;
    };
  }
  return type;
}

template <class T>
Type numbers(const char* name, MPI_Datatype handle) {
  Type type{name, handle, sizeof(T), kNumbers, {}};
  type.write = [](std::byte* target, Operation::Family, Random& random) {
    put(target, static_cast<T>(static_cast<int>(random() % 20001) - 10000) / T{777});
  };
  // Long double has no twin on devices, unless it is a double.
  if (sizeof(T) > sizeof(double)) type.way = [](Operation::Family) { return Way::host; };
  return type;
}

// Whole numbers: how a complex product is rounded is the compiler's choice.
template <class T>
Type complex_numbers(const char* name, MPI_Datatype handle) {
  Type type{name, handle, sizeof(std::complex<T>), kArithmetic, {}};
  type.write = [](std::byte* target, Operation::Family, Random& random) {
    put(target, std::complex<T>(static_cast<T>(random() % 99), static_cast<T>(random() % 77)));
  };
  return type;
}

template <class Value, class Index = int>
Type pairs(const char* name, MPI_Datatype handle) {
  struct Pair {
    Value value;
    Index index;
  };
  Type type{name, handle, sizeof(Pair), {Operation::location}, {}};
  type.write = [](std::byte* target, Operation::Family, Random& random) {
    const bool far = random() % 4 == 0;
    put(target + offsetof(Pair, value),
        static_cast<Value>(static_cast<int>(random() % (far ? 30000 : 3)) - 1));
    put(target + offsetof(Pair, index), static_cast<Index>(random() % 100));
  };
  if (std::is_same_v<Value, long double>) type.way = [](Operation::Family) { return Way::host; };
  return type;
}

Type truths(const char* name, MPI_Datatype handle, std::size_t size_bytes, Way way) {
  Type type{name, handle, size_bytes, {Operation::logical}, {}};
  type.write = [size_bytes](std::byte* target, Operation::Family, Random& random) {
    std::memset(target, 0, size_bytes);
    target[0] = static_cast<std::byte>(random() % (size_bytes == 1 ? 2 : 3));
  };
  type.way = [way](Operation::Family) { return way; };
  return type;
}

std::vector<Type> c_types() {
  return {
      integers<int>("MPI_INT", MPI_INT),
      integers<long>("MPI_LONG", MPI_LONG),
      integers<std::int8_t>("MPI_INT8_T", MPI_INT8_T),
      integers<std::uint8_t>("MPI_UINT8_T", MPI_UINT8_T),
      integers<std::int16_t>("MPI_INT16_T", MPI_INT16_T),
      integers<std::uint16_t>("MPI_UINT16_T", MPI_UINT16_T),
      integers<std::int32_t>("MPI_INT32_T", MPI_INT32_T),
      integers<std::uint32_t>("MPI_UINT32_T", MPI_UINT32_T),
      integers<std::int64_t>("MPI_INT64_T", MPI_INT64_T),
      integers<std::uint64_t>("MPI_UINT64_T", MPI_UINT64_T),
      integers<MPI_Aint>("MPI_AINT", MPI_AINT, kAddresses),
      integers<MPI_Count>("MPI_COUNT", MPI_COUNT, kAddresses),
      integers<signed char>("MPI_CHAR", MPI_CHAR),
      integers<unsigned char>("MPI_BYTE", MPI_BYTE, kIsOpenMpi ? kIntegers : kBits),
      numbers<float>("MPI_FLOAT", MPI_FLOAT),
      numbers<double>("MPI_DOUBLE", MPI_DOUBLE),
      numbers<long double>("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE),
      complex_numbers<float>("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX),
      complex_numbers<double>("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX),
      complex_numbers<double>("MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX),
      truths("MPI_C_BOOL", MPI_C_BOOL, sizeof(bool), Way::device),
      truths("MPI_CXX_BOOL", MPI_CXX_BOOL, sizeof(bool), Way::device),
      pairs<float>("MPI_FLOAT_INT", MPI_FLOAT_INT),
      pairs<double>("MPI_DOUBLE_INT", MPI_DOUBLE_INT),
      pairs<long>("MPI_LONG_INT", MPI_LONG_INT),
      pairs<int>("MPI_2INT", MPI_2INT),
      pairs<short>("MPI_SHORT_INT", MPI_SHORT_INT),
      pairs<long double>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT),
  };
}

// The sizes are those without compiler options that change them.
std::vector<Type> fortran_types() {
  return {
      integers<int>("MPI_INTEGER", MPI_INTEGER, kAddresses),
      integers<std::int8_t>("MPI_INTEGER1", MPI_INTEGER1, kAddresses),
      integers<std::int64_t>("MPI_INTEGER8", MPI_INTEGER8, kAddresses),
      numbers<float>("MPI_REAL", MPI_REAL),
      numbers<double>("MPI_REAL8", MPI_REAL8),
      numbers<double>("MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION),
      complex_numbers<float>("MPI_COMPLEX", MPI_COMPLEX),
      complex_numbers<double>("MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX),
      truths("MPI_LOGICAL", MPI_LOGICAL, sizeof(int), Way::device),
      integers<std::uint8_t>("MPI_CHARACTER", MPI_CHARACTER, kCharacters),
      pairs<int>("MPI_2INTEGER", MPI_2INTEGER),
      pairs<float, float>("MPI_2REAL", MPI_2REAL),
      pairs<double, double>("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION),
  };
}

std::vector<Type> fortran_types_of_precision() {
  MPI_Datatype real = MPI_DATATYPE_NULL;
  MPI_Datatype complex = MPI_DATATYPE_NULL;
  MPI_Datatype integer = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_real(15, 300, &real);
  MPI_Type_create_f90_complex(6, 30, &complex);
  MPI_Type_create_f90_integer(9, &integer);
  return {numbers<double>("f90_real(15)", real), complex_numbers<float>("f90_complex(6)", complex),
          integers<int>("f90_integer(9)", integer, kAddresses)};
}

// Open MPI compares MPI_OFFSET as unsigned.
Type offsets() {
  Type type = integers<MPI_Offset>("MPI_OFFSET", MPI_OFFSET, kAddresses);
  type.way = [](Operation::Family family) {
    return family == Operation::order && !kIsMpich ? Way::host : Way::device;
  };
  return type;
}

// MPICH 4.0 has the name MPIX_C_FLOAT16 and aborts where it is used; 5.0 has only sums of
// MPIX_BFLOAT16, and rounds ties away from zero: small whole numbers are exact.
void add_halves([[maybe_unused]] std::vector<Type>& types) {
#if defined(MPIX_C_FLOAT16) && (!defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40100000)
  Type half{"MPIX_C_FLOAT16", MPIX_C_FLOAT16, 2, kNumbers, {}};
  half.write = [](std::byte* target, Operation::Family, Random& random) {
    const auto bits = static_cast<std::uint16_t>(random());
    const bool finite = (bits & 0x7c00U) != 0x7c00U;
    put(target, static_cast<std::uint16_t>(finite ? bits : bits & 0x83ffU));
  };
  types.push_back(half);
#endif
#ifdef MPIX_BFLOAT16
  Type bfloat{"MPIX_BFLOAT16", MPIX_BFLOAT16, 2, {Operation::sum}, {}};
  bfloat.write = [](std::byte* target, Operation::Family, Random& random) {
    const auto value = static_cast<float>(random() % 100);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    put(target, static_cast<std::uint16_t>(bits >> 16));
  };
  types.push_back(bfloat);
#endif
}

bool has(const Type& type) {
  int size = 0;
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  return type.handle != MPI_DATATYPE_NULL && MPI_Type_size(type.handle, &size) == MPI_SUCCESS &&
         size > 0 && MPI_Type_get_extent(type.handle, &low, &extent) == MPI_SUCCESS &&
         static_cast<std::size_t>(extent) == type.extent_bytes;
}

// What a rank gives; gaps hold the byte that nothing may touch.
std::vector<std::byte> contribution(const Type& type, const Operation& operation, int rank) {
  std::vector<std::byte> bytes(type.extent_bytes * kCount, std::byte{kUntouched});
  Random random(static_cast<unsigned>(rank + 1));
  for (std::size_t i = 0; i < kCount; ++i)
    type.write(bytes.data() + i * type.extent_bytes, operation.family, random);
  return bytes;
}

int failures = 0;

void fail(const Type& type, const Operation& operation, const std::string& what) {
  std::fprintf(stderr, "%s of %s: %s\n", operation.name, type.name, what.c_str());
  ++failures;
}

// Through inboxes go elements of which a whole number fits into a unit of theirs.
const char* device_way(const Type& type, const char* first_choice) {
  constexpr int kInboxUnitBytes = 16;
  int size_bytes = 0;
  MPI_Type_size(type.handle, &size_bytes);
  return kInboxUnitBytes % size_bytes == 0 ? first_choice : "node";
}

void check(const Type& type, const Operation& operation, const char* first_choice, int rank) {
  std::vector<std::byte> expected = contribution(type, operation, 0);
  std::vector<std::byte> second = contribution(type, operation, 1);
  MPI_Reduce_local(second.data(), expected.data(), kCount, type.handle, operation.handle);
  const DeviceBuffer send(contribution(type, operation, rank));
  const DeviceBuffer receive(std::vector<std::byte>(expected.size(), std::byte{kUntouched}));
  MPI_Allreduce(send.pointer(), receive.pointer(), kCount, type.handle, operation.handle,
                MPI_COMM_WORLD);
  const bool on_device = std::strcmp(accord_last_path(), device_way(type, first_choice)) == 0;
  if (on_device != (type.way(operation.family) == Way::device))
    fail(type, operation, std::string("went by ") + accord_last_path());
  // Padding inside a long double is nobody's.
  if (on_device && receive.contents() != expected) fail(type, operation, "wrong result");
}

// What the host MPI refuses is refused on devices, by the same error.
void check_refused(const char* name, MPI_Datatype handle, const Operation& operation) {
  const Type type{name, handle, 0, {}, {}};
  std::vector<std::byte> bytes(kCount * sizeof(std::int64_t));
  const DeviceBuffer send(bytes);
  const DeviceBuffer receive(bytes);
  const auto error_class = [&](const void* from, void* to) {
    int found = MPI_SUCCESS;
    MPI_Error_class(MPI_Allreduce(from, to, kCount, handle, operation.handle, MPI_COMM_WORLD),
                    &found);
    return found;
  };
  std::vector<std::byte> result(bytes);
  const int expected = error_class(bytes.data(), result.data());
  if (expected == MPI_SUCCESS) return;
  if (error_class(send.pointer(), receive.pointer()) != expected)
    fail(type, operation, "refused on the host only, or otherwise");
}

}  // namespace

// The one argument: by which way calls go from device to device where they can, "node" or "inbox".
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const first_choice = argc > 1 ? argv[1] : "node";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<Type> types = c_types();
  types.push_back(offsets());
  for (const Type& type : fortran_types()) types.push_back(type);
  add_halves(types);
  for (const Type& type : fortran_types_of_precision()) types.push_back(type);
  int checked = 0;
  for (const Operation& operation : operations()) {
    check_refused("MPI_CHAR", MPI_CHAR, operation);
    check_refused("MPI_WCHAR", MPI_WCHAR, operation);
    check_refused("MPI_PACKED", MPI_PACKED, operation);
    check_refused("MPI_CHARACTER", MPI_CHARACTER, operation);
    check_refused("MPI_LOGICAL", MPI_LOGICAL, operation);
    check_refused("MPI_BYTE", MPI_BYTE, operation);
    check_refused("MPI_C_BOOL", MPI_C_BOOL, operation);
    check_refused("MPI_AINT", MPI_AINT, operation);
    check_refused("MPI_INTEGER", MPI_INTEGER, operation);
  }
  for (const Type& type : types) {
    if (!has(type)) continue;
    for (const Operation& operation : operations()) {
      for (const Operation::Family family : type.families) {
        if (family != operation.family) continue;
        check(type, operation, first_choice, rank);
        ++checked;
      }
    }
  }
  if (rank == 0) std::printf("%d operations, %d failures\n", checked, failures);
  MPI_Finalize();
  return failures == 0 && checked > 0 ? 0 : 1;
}
