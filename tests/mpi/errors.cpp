// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What errors say: the program's own call, the communicator, the rank, the buffers; and that the
// function which the host MPI names is the program's. The argument picks the case: "texts" checks
// those that return; "fatal" ends in an error of ours, whose output ctest looks at; "aliased" makes
// calls whose buffers overlap, which are the host MPI's to refuse; "again" makes calls again that
// have failed on one rank alone.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "device_buffer.h"

namespace {

using accord::test::DeviceBuffer;
using Bytes = std::vector<std::byte>;

int rank = 0;
int failures = 0;
std::string handled;  // the texts that the handler below has got

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

void note(MPI_Comm*, int* code, ...) { handled += text_of(*code) + '\n'; }

void expect(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    const bool absent = *word == '!';
    if ((text.find(word + (absent ? 1 : 0)) == std::string::npos) == absent) continue;
    std::fprintf(stderr, "rank %d: \"%s\" %s in: %s\n", rank, word, absent ? "stands" : "is not",
                 text.c_str());
    ++failures;
  }
}

// A message that is longer than its receive; it goes by a header, so that the error is ours.
int truncate(MPI_Comm comm, const DeviceBuffer& buffer, int size_bytes) {
  if (rank == 0) return MPI_Send(buffer.pointer(), size_bytes, MPI_BYTE, 1, 0, comm);
  return MPI_Recv(buffer.pointer(), size_bytes / 4, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
}

void warm_up(MPI_Comm comm, const DeviceBuffer& buffer, int size_bytes) {
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) MPI_Send(buffer.pointer(), size_bytes, MPI_BYTE, 1, 1, comm);
    if (rank == 1) MPI_Recv(buffer.pointer(), size_bytes, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
  }
}

// Wrong arguments while an operation is under way, so that blocking calls go by requests.
void check_twins(MPI_Comm comm, const DeviceBuffer& buffer, int size_bytes) {
  const DeviceBuffer out(Bytes(static_cast<std::size_t>(size_bytes)));
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &other);
  MPI_Request request = MPI_REQUEST_NULL;
  const auto begin = [&] {
    MPI_Iallreduce(buffer.pointer(), out.pointer(), size_bytes, MPI_BYTE, MPI_BOR, other, &request);
  };
  int token = 0;
  if (rank == 0) begin();
  if (rank == 0) {
    expect(text_of(MPI_Send(buffer.pointer(), 1, MPI_BYTE, 77, 0, comm)), {"!Isend"});
    expect(text_of(MPI_Recv(buffer.pointer(), 1, MPI_BYTE, 77, 0, comm, MPI_STATUS_IGNORE)),
           {"!Irecv"});
    MPI_Send(&token, 1, MPI_INT, 1, 4, comm);
  } else {
    MPI_Recv(&token, 1, MPI_INT, 0, 4, comm, MPI_STATUS_IGNORE);
    begin();
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&other);
}

void check_texts(MPI_Comm comm, const DeviceBuffer& buffer, int size_bytes) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int code = truncate(comm, buffer, size_bytes);
  if (rank == 1)
    expect(text_of(code), {"MPI_Recv on ocean of 2 ranks, rank 1", "buf 0x",
                           "device memory of host device 0", "an allocation of"});
  // The request's call, not the one that waits for it.
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Isend(buffer.pointer(), size_bytes, MPI_BYTE, 1, 2, comm, &request);
  } else {
    MPI_Irecv(buffer.pointer(), size_bytes / 4, MPI_BYTE, 0, 2, comm, &request);
  }
  code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) expect(text_of(code), {"MPI_Irecv on ocean of 2 ranks, rank 1"});
  MPI_Barrier(comm);
  // Different calls.
  const DeviceBuffer out(Bytes(static_cast<std::size_t>(size_bytes)));
  code = MPI_Allreduce(buffer.pointer(), out.pointer(), size_bytes / (rank + 1), MPI_BYTE, MPI_BOR,
                       comm);
  expect(text_of(code), {"MPI_Allreduce on ocean of 2 ranks", "bytes"});
  check_twins(comm, buffer, size_bytes);
  // A function of the program's.
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  (void)truncate(comm, buffer, size_bytes);
  if (rank == 1) expect(handled, {"MPI_Recv on ocean of 2 ranks, rank 1", "buf 0x"});
#ifdef MPICH
  // A handle that is no communicator any more.
  MPI_Comm freed = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &freed);
  const MPI_Comm handle = freed;
  MPI_Comm_free(&freed);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  handled.clear();
  (void)MPI_Bcast(buffer.pointer(), size_bytes, MPI_BYTE, 0, handle);
  expect(handled, {"MPI_Bcast", "!get_attr"});
#endif
  MPI_Errhandler_free(&handler);
}

void check_windows(MPI_Comm comm, const DeviceBuffer& buffer) {
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_create(buffer.pointer(), 64, 1, MPI_INFO_NULL, comm, &window);
  MPI_Win_set_name(window, "tide");
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, window);
  const int code = MPI_Put(buffer.pointer(), 1, MPI_INT, 1 - rank, 64, 1, MPI_INT, window);
  expect(text_of(code), {"MPI_Put on tide of 2 ranks, rank", "origin_addr 0x", "device memory of"});
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

#if MPI_VERSION >= 4
void check_partitions(MPI_Comm comm, const DeviceBuffer& buffer) {
  constexpr int kPartitions = 4;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    MPI_Psend_init(buffer.pointer(), kPartitions, 16, MPI_INT, 1, 3, comm, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(buffer.pointer(), kPartitions, 16, MPI_INT, 0, 3, comm, MPI_INFO_NULL, &request);
  }
  MPI_Start(&request);
  if (rank == 0)
    expect(text_of(MPI_Pready(kPartitions, request)),
           {"MPI_Pready on ocean of 2 ranks, rank 0", "buf 0x", "device memory of"});
  if (rank == 0) MPI_Pready_range(0, kPartitions - 1, request);
  int flag = 0;
  if (rank == 1)
    expect(text_of(MPI_Parrived(request, kPartitions, &flag)),
           {"MPI_Parrived on ocean of 2 ranks, rank 1", "buf 0x", "device memory of"});
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}
#endif

// The host MPI's error, or what it makes of one buffer for both where it looks for no such mistake.
void expect_refused(int code, const DeviceBuffer& buffer,
                    [[maybe_unused]] const std::vector<int>& otherwise, const char* call) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
#ifdef MPICH
  const bool good = error_class == MPI_ERR_BUFFER;
#else
  const bool good = error_class == MPI_ERR_BUFFER ||
                    (code == MPI_SUCCESS && accord::test::contents(buffer) == otherwise);
#endif
  if (good) return;
  std::fprintf(stderr, "rank %d: %s of one buffer: %s\n", rank, call, text_of(code).c_str());
  ++failures;
}

// Every rank sends from where it receives its own block: of rank 0 alone both buffers have one
// address.
void check_aliased(MPI_Comm comm) {
  constexpr int kCount = 8192;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<int> all(2 * kCount);
  for (int i = 0; i < 2 * kCount; ++i) all[i] = i;
  std::vector<int> own = all;
  for (int i = 0; i < kCount; ++i) own[(1 - rank) * kCount + i] = -1;
  const int counts[] = {kCount, kCount};
  const int places[] = {0, kCount};
  for (const bool has_counts : {false, true}) {
    const DeviceBuffer buffer = accord::test::on_device(own);
    int* const block = static_cast<int*>(buffer.pointer()) + rank * kCount;
    const int code =
        has_counts ? MPI_Allgatherv(block, kCount, MPI_INT, buffer.pointer(), counts, places,
                                    MPI_INT, comm)
                   : MPI_Allgather(block, kCount, MPI_INT, buffer.pointer(), kCount, MPI_INT, comm);
    expect_refused(code, buffer, all, has_counts ? "MPI_Allgatherv" : "MPI_Allgather");
  }
  const DeviceBuffer buffer = accord::test::on_device(all);
  std::vector<int> twice = all;
  for (int& number : twice) number *= 2;
  const int code =
      MPI_Reduce_local(buffer.pointer(), buffer.pointer(), 2 * kCount, MPI_INT, MPI_SUM);
  expect_refused(code, buffer, twice, "MPI_Reduce_local");
#ifdef MPICH  // which tells by the arrays whether both buffers' blocks are the same
  const DeviceBuffer both = accord::test::on_device(all);
  MPI_Request request = MPI_REQUEST_NULL;
  const int refused = MPI_Ialltoallv(both.pointer(), counts, places, MPI_INT, both.pointer(),
                                     counts, places, MPI_INT, comm, &request);
  expect_refused(refused, both, all, "MPI_Ialltoallv");
#endif
  // The communicator is as good as before.
  const DeviceBuffer sum = accord::test::on_device(all);
  const DeviceBuffer summand = accord::test::on_device(all);
  MPI_Allreduce(summand.pointer(), sum.pointer(), 2 * kCount, MPI_INT, MPI_SUM, comm);
  if (accord::test::contents(sum) == twice) return;
  std::fprintf(stderr, "rank %d: wrong sums\n", rank);
  ++failures;
}

// A call that fails on one rank before the host MPI gets it, since its memory is too short, may be
// made again there.
void check_again(MPI_Comm comm) {
  constexpr int kCount = 4096;
  constexpr int kCalls = 12;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const std::vector<int> ones(kCount, 1);
  const DeviceBuffer send = accord::test::on_device(ones);
  const DeviceBuffer sum = accord::test::on_device(ones);
  const DeviceBuffer short_one = accord::test::on_device(std::vector<int>(16));
  for (int call = 0; call < kCalls; ++call) {
    const auto reduce = [&](const DeviceBuffer& from) {
      return MPI_Allreduce(from.pointer(), sum.pointer(), kCount, MPI_INT, MPI_SUM, comm);
    };
    if (rank == 1 && call > 1 && reduce(short_one) == MPI_SUCCESS) {
      std::fprintf(stderr, "call %d: memory that is too short is no error\n", call);
      ++failures;
    }
    const int code = reduce(send);
    if (code == MPI_SUCCESS && accord::test::contents(sum) == std::vector<int>(kCount, 2)) continue;
    std::fprintf(stderr, "rank %d: call %d: %s\n", rank, call, text_of(code).c_str());
    ++failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int kSizeBytes = 1 << 16;
  const bool fatal = argc > 1 && std::strcmp(argv[1], "fatal") == 0;
  {
    const DeviceBuffer buffer{Bytes(kSizeBytes)};
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "ocean");
    warm_up(comm, buffer, kSizeBytes);
    if (argc > 1 && std::strcmp(argv[1], "aliased") == 0) {
      check_aliased(comm);
      MPI_Finalize();
      return failures == 0 ? 0 : 1;
    }
    if (argc > 1 && std::strcmp(argv[1], "again") == 0) {
      check_again(comm);
      MPI_Finalize();
      return failures == 0 ? 0 : 1;
    }
    if (fatal) {
      (void)truncate(comm, buffer, kSizeBytes);
      MPI_Barrier(comm);
      return 1;
    }
    check_texts(comm, buffer, kSizeBytes);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check_windows(comm, buffer);
#if MPI_VERSION >= 4
    check_partitions(comm, buffer);
#endif
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
