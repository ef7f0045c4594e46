// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collectives to which the ranks bring different sizes, which MPI forbids: no rank hangs, every
// rank that Accord's own algorithms serve gets an error, and later calls that are right get right
// data. The argument: "all": every rank shall get an error; "bcast": those that the host MPI gives
// one, since some ranks are inside it. (Of an allreduce Open MPI 5 hangs there, and MPICH 5
// aborts.)
#include <accord/accord.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;

constexpr int kLong = 1 << 18;  // MPI_INTs
constexpr int kShort = kLong / 2;

int rank = 0;
int size = 0;
int failures = 0;
bool all_fail = false;

// A buffer of ones, on the host or on a device.
struct Ones {
  explicit Ones(bool on_device)
      : host(static_cast<std::size_t>(kLong) * static_cast<std::size_t>(size), 1),
        device(accord::test::on_device(on_device ? host : std::vector<int>(1))),
        pointer(on_device ? device.pointer() : host.data()) {}
  std::vector<int> host;
  DeviceBuffer device;
  void* pointer;
};

using Call = std::function<int(const void* in, void* out, int count, MPI_Comm comm)>;

int allreduce(const void* in, void* out, int count, MPI_Comm comm) {
  return MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
}
int iallreduce(const void* in, void* out, int count, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, comm, &request);
  return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int bcast(const void*, void* out, int count, MPI_Comm comm) {
  return MPI_Bcast(out, count, MPI_INT, 0, comm);
}
int allgather(const void* in, void* out, int count, MPI_Comm comm) {
  return MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
}

void expect_right(MPI_Comm comm, bool on_device, const char* name) {
  const Ones in(on_device);
  const Ones out(on_device);
  if (MPI_Allreduce(in.pointer, out.pointer, kShort, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS) {
    std::fprintf(stderr, "rank %d: %s: a right call fails later\n", rank, name);
    ++failures;
    return;
  }
  const auto result = on_device ? accord::test::contents(out.device) : out.host;
  if (std::any_of(result.begin(), result.begin() + kShort, [](int x) { return x != size; })) {
    std::fprintf(stderr, "rank %d: %s: wrong data later\n", rank, name);
    ++failures;
  }
}

// After so many right calls of either size.
void mismatch(const std::string& name, const Call& call, bool on_device, int earlier) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const Ones in(on_device);
  const Ones out(on_device);
  for (int i = 0; i < earlier; ++i)
    for (const int count : {kLong, kShort}) (void)call(in.pointer, out.pointer, count, comm);
  alarm(30);
  const int code = call(in.pointer, out.pointer, rank == 0 ? kLong : kShort, comm);
  std::vector<int> failed(static_cast<std::size_t>(size));
  const int mine = code != MPI_SUCCESS ? 1 : 0;
  MPI_Allgather(&mine, 1, MPI_INT, failed.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const auto errors = std::count(failed.begin(), failed.end(), 1);
  if (rank == 0) std::printf("%s: %d of %d fail\n", name.c_str(), static_cast<int>(errors), size);
  if (errors == 0 || (all_fail && errors != size)) ++failures;
  expect_right(comm, on_device, name.c_str());
  alarm(0);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string which = argc > 1 ? argv[1] : "all";
  all_fail = which == "all";
  for (const bool on_device : {true, false}) {
    for (const int earlier : {0, 3}) {
      const std::string where =
          std::string(on_device ? " device" : " host") + " after " + std::to_string(earlier);
      mismatch("bcast" + where, bcast, on_device, earlier);
      if (!all_fail) continue;
      mismatch("allreduce" + where, allreduce, on_device, earlier);
      mismatch("iallreduce" + where, iallreduce, on_device, earlier);
      mismatch("allgather" + where, allgather, on_device, earlier);
    }
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
