// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether all ranks count the same calls for the votes on the way a collective goes, whatever
// memory each of them uses and whichever form they call in between: a rank that counts another way
// votes alone and waits for ever.
#include <accord/accord.h>
#include <mpi.h>

#include <cstdio>
#include <initializer_list>

namespace {

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
constexpr bool kHasPersistent = true;
int bcast_init(void* buffer, MPI_Request* request) {
  return MPI_Bcast_init(buffer, 1, MPI_LONG, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request);
}
#else
constexpr bool kHasPersistent = false;
int bcast_init(void*, MPI_Request*) { return MPI_ERR_OTHER; }
#endif

enum class Form { blocking, nonblocking, persistent };

// Broadcasts `value` on this rank's kind of memory; what arrives.
long bcast(Form form, bool on_device, long value) {
  long host = value;
  void* buffer = &host;
  if (on_device) {
    accord_malloc(&buffer, sizeof host, ACCORD_MEMORY_DEVICE);
    accord_memcpy(buffer, &host, sizeof host);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (form == Form::blocking) MPI_Bcast(buffer, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  if (form == Form::nonblocking) MPI_Ibcast(buffer, 1, MPI_LONG, 0, MPI_COMM_WORLD, &request);
  if (form == Form::persistent) {
    bcast_init(buffer, &request);
    MPI_Start(&request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (form == Form::persistent) MPI_Request_free(&request);
  if (on_device) {
    accord_memcpy(&host, buffer, sizeof host);
    accord_free(buffer);
  }
  return host;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long wrong = 0;
  long expected = 0;
  // On host memory alone first, so that the ranks know such calls as ones for the host MPI; then
  // another form in between, for which only some ranks use a device.
  for (Form between : {Form::persistent, Form::nonblocking, Form::blocking}) {
    if (between == Form::persistent && !kHasPersistent) continue;
    for (int round = 0; round < 50; ++round) {
      for (int call = 0; call < 3; ++call) {
        ++expected;
        wrong += bcast(Form::blocking, false, rank == 0 ? expected : 0) != expected;
      }
      ++expected;
      wrong += bcast(between, rank == round % 2, rank == 0 ? expected : 0) != expected;
    }
  }
  if (wrong != 0) std::fprintf(stderr, "rank %d: %ld wrong results\n", rank, wrong);
  MPI_Finalize();
  return wrong != 0;
}
