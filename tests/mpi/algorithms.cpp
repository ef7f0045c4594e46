// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every reduction on values whose sum depends on the order, against the sum in rank order, to the
// bit. So whatever way calls go, and however long they are, their results are the same. The first
// argument is the way that an allreduce of device memory shall take; "any" as the second: sums need
// not be in rank order, and are of values that are exact in every order.
#include <accord/accord.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using Numbers = std::vector<float>;

constexpr float kUntouched = -777;

int rank = 0;
int size = 0;
int failures = 0;
bool in_order = true;

// Large ones cancel, and swallow small ones that come while they are there.
float value(int from, int i) {
  const auto small = static_cast<float>(from * 5 + i % 11 + 1);
  if (!in_order) return small;
  const float large = 1e8F * static_cast<float>(1 + i % 5);
  return from % 4 == 0 ? large + small : from % 4 == 2 ? -large : small / 3;
}

Numbers contribution(int first, int count) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = value(rank, first + i);
  return numbers;
}
Numbers untouched(int count) { return Numbers(static_cast<std::size_t>(count), kUntouched); }

float sum_of_two(float a, float b) { return a + b; }
// Between the two floats of a pair.
int pair_stride = 0;

// Neither commutative nor associative.
float other_of_two(float a, float b) { return a / 2 - b; }
void other_operation(void* in, void* inout, int* count, MPI_Datatype* datatype) {
  int bytes = 0;
  MPI_Type_size(*datatype, &bytes);
  // One float, or a pair of them with a gap between.
  const int floats = bytes / static_cast<int>(sizeof(float));
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(*datatype, &low, &extent);
  for (int element = 0; element < *count; ++element) {
    for (int part = 0; part < floats; ++part) {
      const MPI_Aint at =
          element * extent + part * pair_stride * static_cast<MPI_Aint>(sizeof(float));
      float a = 0;
      float b = 0;
      std::memcpy(&a, static_cast<char*>(in) + at, sizeof a);
      std::memcpy(&b, static_cast<char*>(inout) + at, sizeof b);
      b = other_of_two(a, b);
      std::memcpy(static_cast<char*>(inout) + at, &b, sizeof b);
    }
  }
}

// Elements [first, first + count) of ((0 op 1) op 2) ... over the first `ranks` ranks.
Numbers reduced(int ranks, int first, int count, float (*op)(float, float)) {
  Numbers numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    float& result = numbers[static_cast<std::size_t>(i)];
    result = value(0, first + i);
    for (int from = 1; from < ranks; ++from) result = op(result, value(from, first + i));
  }
  return numbers;
}

// A buffer of the call: on the device or on the host.
class Buffer {
 public:
  Buffer(const Numbers& numbers, bool on_device) : host_(numbers) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(host_.data());
    if (on_device)
      device_ = std::make_unique<DeviceBuffer>(
          std::vector<std::byte>{bytes, bytes + host_.size() * sizeof(float)});
  }
  void* pointer() { return device_ ? device_->pointer() : host_.data(); }
  Numbers contents() const {
    if (!device_) return host_;
    const std::vector<std::byte> bytes = device_->contents();
    Numbers numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

 private:
  Numbers host_;
  std::unique_ptr<DeviceBuffer> device_;
};

void expect(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  ++failures;
}

void expect_bits(const Numbers& got, const Numbers& wanted, const std::string& what) {
  const bool same = got.size() == wanted.size() &&
                    std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0;
  expect(same, what + ": not the bits of the reduction in rank order");
}

struct Place {
  bool on_device;
  const char* name;
};
// On some ranks only: those on the host must come along.
Place place_of(int which) {
  if (which == 0) return {true, "device"};
  if (which == 1) return {rank % 2 == 0, "mixed"};
  return {false, "host"};
}

using Call = std::function<void(const void* send, void* recv)>;

void check(const std::string& name, const Numbers& send, const Numbers& recv, const Numbers& wanted,
           const Call& call) {
  for (int which = 0; which < 3; ++which) {
    if (which == 2 && std::getenv("ACCORD_DETERMINISTIC") == nullptr) continue;
    const Place place = place_of(which);
    Buffer from(send, place.on_device);
    Buffer to(recv, place.on_device);
    call(from.pointer(), to.pointer());
    expect_bits(to.contents(), wanted,
                name + " of " + std::to_string(wanted.size()) + ", " + place.name);
  }
}

// The same over all forms of a call.
void check_forms(const std::string& name, const Numbers& send, const Numbers& recv,
                 const Numbers& wanted, const Call& blocking,
                 const std::function<void(const void*, void*, MPI_Request*)>& nonblocking) {
  check("MPI_" + name, send, recv, wanted, blocking);
  check("MPI_I" + name, send, recv, wanted, [&](const void* from, void* to) {
    MPI_Request request = MPI_REQUEST_NULL;
    nonblocking(from, to, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

struct Operator {
  const char* name;
  MPI_Op handle;
  float (*function)(float, float);
};

void check_whole(int count, const Operator& op) {
  const Numbers mine = contribution(0, count);
  const Numbers all = reduced(size, 0, count, op.function);
  const std::string suffix = std::string(" ") + op.name;
  check_forms(
      "allreduce" + suffix, mine, untouched(count), all,
      [&](const void* send, void* recv) {
        MPI_Allreduce(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Iallreduce(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD, request);
      });
  check("allreduce in place" + suffix, mine, mine, all, [&](const void*, void* recv) {
    MPI_Allreduce(MPI_IN_PLACE, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD);
  });
  const int root = size - 1;
  check_forms(
      "reduce" + suffix, mine, untouched(count), rank == root ? all : untouched(count),
      [&](const void* send, void* recv) {
        MPI_Reduce(send, recv, count, MPI_FLOAT, op.handle, root, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Ireduce(send, recv, count, MPI_FLOAT, op.handle, root, MPI_COMM_WORLD, request);
      });
  check_forms(
      "scan" + suffix, mine, untouched(count), reduced(rank + 1, 0, count, op.function),
      [&](const void* send, void* recv) {
        MPI_Scan(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Iscan(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD, request);
      });
  check_forms(
      "exscan" + suffix, mine, untouched(count),
      rank == 0 ? untouched(count) : reduced(rank, 0, count, op.function),
      [&](const void* send, void* recv) {
        MPI_Exscan(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Iexscan(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD, request);
      });
}

void check_blocks(int count, const Operator& op) {
  const std::string suffix = std::string(" ") + op.name;
  check_forms(
      "reduce_scatter_block" + suffix, contribution(0, count * size), untouched(count),
      reduced(size, rank * count, count, op.function),
      [&](const void* send, void* recv) {
        MPI_Reduce_scatter_block(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Ireduce_scatter_block(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD, request);
      });
  // One rank gets nothing.
  std::vector<int> counts(static_cast<std::size_t>(size));
  for (int to = 0; to < size; ++to) counts[static_cast<std::size_t>(to)] = to == 1 ? 0 : count + to;
  const int own = counts[static_cast<std::size_t>(rank)];
  const int first = std::accumulate(counts.begin(), counts.begin() + rank, 0);
  const int total = std::accumulate(counts.begin(), counts.end(), 0);
  check_forms(
      "reduce_scatter" + suffix, contribution(0, total), untouched(own),
      reduced(size, first, own, op.function),
      [&](const void* send, void* recv) {
        MPI_Reduce_scatter(send, recv, counts.data(), MPI_FLOAT, op.handle, MPI_COMM_WORLD);
      },
      [&](const void* send, void* recv, MPI_Request* request) {
        MPI_Ireduce_scatter(send, recv, counts.data(), MPI_FLOAT, op.handle, MPI_COMM_WORLD,
                            request);
      });
}

// Pairs that interleave: the next one begins between the two floats of one. The gaps stay.
void check_derived(int count, const Operator& op) {
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Datatype interleaved = MPI_DATATYPE_NULL;
  pair_stride = 2 * count;
  MPI_Type_vector(2, 1, pair_stride, MPI_FLOAT, &pair);
  MPI_Type_create_resized(pair, 0, 2 * sizeof(float), &interleaved);
  MPI_Type_commit(&interleaved);
  const int floats = 4 * count;
  Numbers wanted = untouched(floats);
  const Numbers all = reduced(size, 0, floats, op.function);
  for (int i = 0; i < floats; i += 2)
    wanted[static_cast<std::size_t>(i)] = all[static_cast<std::size_t>(i)];
  check(std::string("allreduce of pairs ") + op.name, contribution(0, floats), untouched(floats),
        wanted, [&](const void* send, void* recv) {
          MPI_Request request = MPI_REQUEST_NULL;
          MPI_Datatype type = MPI_DATATYPE_NULL;
          MPI_Type_dup(interleaved, &type);
          MPI_Iallreduce(send, recv, count, type, op.handle, MPI_COMM_WORLD, &request);
          MPI_Type_free(&type);  // which MPI allows: it is in use until the call is complete
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        });
  MPI_Type_free(&interleaved);
  MPI_Type_free(&pair);
}

#if MPI_VERSION >= 4
void check_persistent(int count, const Operator& op) {
  check(std::string("persistent allreduce ") + op.name, contribution(0, count), untouched(count),
        reduced(size, 0, count, op.function), [&](const void* send, void* recv) {
          MPI_Request request = MPI_REQUEST_NULL;
          MPI_Allreduce_init(send, recv, count, MPI_FLOAT, op.handle, MPI_COMM_WORLD, MPI_INFO_NULL,
                             &request);
          for (int start = 0; start < 2; ++start) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
          }
          MPI_Request_free(&request);
        });
}
#endif

// Buffers that are used again, since some ways need that.
void check_path(const char* wanted) {
  constexpr int kCount = 9000;
  constexpr int kCalls = 6;
  Buffer send(contribution(0, kCount), true);
  Buffer recv(untouched(kCount), true);
  for (int call = 0; call < kCalls; ++call)
    MPI_Allreduce(send.pointer(), recv.pointer(), kCount, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  expect(std::strcmp(accord_last_path(), wanted) == 0,
         std::string("an allreduce went by ") + accord_last_path());
  expect_bits(recv.contents(), reduced(size, 0, kCount, sum_of_two), "allreduce again and again");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  in_order = argc < 3 || std::string(argv[2]) != "any";
  check_path(argc > 1 ? argv[1] : "node");
  Operator other{"user operation", MPI_OP_NULL, other_of_two};
  MPI_Op_create(other_operation, 0, &other.handle);
  const Operator sum{"sum", MPI_SUM, sum_of_two};
  for (const int count : {1, 257, 5003}) {
    check_whole(count, sum);
    check_blocks(count, sum);
    if (!in_order || std::getenv("ACCORD_DETERMINISTIC") == nullptr) continue;
    check_whole(count, other);
    check_blocks(count, other);
    check_derived(count, other);
#if MPI_VERSION >= 4
    check_persistent(count, sum);
#endif
  }
  MPI_Op_free(&other.handle);
  int all_failures = 0;
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d failures\n", all_failures);
  MPI_Finalize();
  return all_failures == 0 ? 0 : 1;
}
