// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Programs that are legal only because every blocking MPI call makes progress on everything
// outstanding. The *late* ranks wait for an operation first and then join a second one; the *early*
// ranks block in the second one with the first unfinished. A library that stages data and does not
// progress inside blocking calls hangs here.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kProgressTag = 81;

// The call the early ranks block in.
enum class Second {
  message,
  synchronous,
  probe,
  iprobe,
  sendrecv,
  test_loop,
  waitany,
  barrier,
  bcast,
  allreduce,
  comm_dup,
  comm_idup,
  comm_split,
  comm_create,
  cart_create,
  win_create,
  file_open,
};
constexpr int kSeconds = 17;
constexpr const char* kSecondNames[kSeconds] = {
    "Recv",       "Ssend",       "Probe",       "Iprobe loop", "Sendrecv", "Test loop",
    "Waitany",    "Barrier",     "Bcast",       "Allreduce",   "Comm_dup", "Comm_idup",
    "Comm_split", "Comm_create", "Cart_create", "Win_create",  "File_open"};

class Progress {
 public:
  Progress(Run& run, Second second) : run_(run), api_(run.api()), second_(second) {}

  void execute() {
    const auto& comms = run_.comms().all();
    const Comm& first_comm = comms[2];  // dup
    comm_ = &comms[3];                  // idup
    early_ = early(comm_->rank);
    draw_first(first_comm);
    run_.check(start(), "the first operation");
    if (!early_) finish();
    run_.check(block(), kSecondNames[static_cast<int>(second_)]);
    if (early_) finish();
  }

 private:
  bool early(int rank) const { return mix(run_.salt(), 0x6561, rank) % 2 == 0; }

  // A collective, or messages around the ring; large enough to need help on the way.
  void draw_first(const Comm& comm) {
    ring_ = run_.global.chance(35);
    form_ = run_.global.chance(30) ? Form::persistent : Form::nonblocking;
    static constexpr std::array<Kind, 8> kKinds = {Kind::allreduce, Kind::bcast,    Kind::allgather,
                                                   Kind::alltoall,  Kind::reduce,   Kind::scan,
                                                   Kind::barrier,   Kind::alltoallv};
    const Kind kind = run_.global.pick(kKinds);
    if (!available(run_, kind, form_, false)) form_ = Form::nonblocking;
    require_call(run_, comm, kind, form_);
    if (!ring_) {
      run_.describe(form_name(form_));
      prepared_ = prepare(run_, comm, {.kind = kind, .form = form_});
      return;
    }
    static constexpr std::array<std::int64_t, 4> kSizes = {64, 20000, 200000, 1000000};
    const std::int64_t bytes =
        std::min(run_.global.pick(kSizes), static_cast<std::int64_t>(run_.options().bytes_max));
    send_ = &run_.buffer("send", Span{0, bytes}, 1);
    receive_ = &run_.buffer("receive", Span{0, bytes}, 1);
    ring_bytes_ = bytes;
    ring_comm_ = &comm;
    run_.describe("ring of " + std::to_string(bytes) + " bytes,");
  }

  int start() {
    if (ring_) {
      const Comm& comm = *ring_comm_;
      const int to = (comm.rank + 1) % comm.size;
      const int from = (comm.rank + comm.size - 1) % comm.size;
      const void* data = send_->pointer();
      requests_.assign(2, MPI_REQUEST_NULL);
      const int code =
          api_.Irecv(false, static_cast<void*>(receive_->pointer()), Count{ring_bytes_}, MPI_BYTE,
                     from, kProgressTag, comm.handle, &requests_[0]);
      if (code != MPI_SUCCESS) return code;
      return api_.Isend(false, data, Count{ring_bytes_}, MPI_BYTE, to, kProgressTag, comm.handle,
                        &requests_[1]);
    }
    requests_.assign(1, MPI_REQUEST_NULL);
    const int code = prepared_.call(form_, false, &requests_[0]);
    if (code != MPI_SUCCESS || form_ == Form::nonblocking) return code;
    return api_.Start(&requests_[0]);
  }

  void finish() {
    const Completion completion = random_completion(run_.local);
    if (ring_ || form_ != Form::persistent) {
      run_.check(complete(run_, completion, requests_, nullptr, run_.local.fork()),
                 "completion of the first operation");
      return;
    }
    run_.check(complete_persistent(run_, requests_[0], run_.local.fork()),
               "completion of the first operation");
    run_.check(api_.Request_free(&requests_[0]), "Request_free");
  }

  int block() {
    if (second_ <= Second::waitany) return token();
    int code = MPI_SUCCESS;
    MPI_Comm made = MPI_COMM_NULL;
    switch (second_) {
      case Second::barrier:
        return api_.Barrier.blocking(false, comm_->handle);
      case Second::bcast:
      case Second::allreduce:
        return collective();
      case Second::win_create:
        return window();
      case Second::file_open:
        return file();
      default:
        code = communicator(made);
    }
    if (made != MPI_COMM_NULL) run_.check(api_.Comm_free(&made), "Comm_free");
    return code;
  }

  int collective() {
    Buffer& in = run_.buffer("send", Span{0, 64}, 8);
    Buffer& out = run_.buffer("receive", Span{0, 64}, 8);
    const void* data = in.pointer();
    void* result = out.pointer();
    if (second_ == Second::bcast)
      return api_.Bcast.blocking(false, result, Count{16}, MPI_INT, 0, comm_->handle);
    return api_.Allreduce.blocking(false, data, result, Count{16}, MPI_INT, MPI_BXOR,
                                   comm_->handle);
  }

  int communicator(MPI_Comm& made) {
    MPI_Group group = MPI_GROUP_NULL;
    const int dims[1] = {comm_->size};
    const int periods[1] = {0};
    int code = MPI_SUCCESS;
    switch (second_) {
      case Second::comm_dup:
        return api_.Comm_dup(comm_->handle, &made);
      case Second::comm_idup: {
        MPI_Request request = MPI_REQUEST_NULL;
        code = api_.Comm_idup(comm_->handle, &made, &request);
        return code == MPI_SUCCESS ? api_.Wait(&request, MPI_STATUS_IGNORE) : code;
      }
      case Second::comm_split:
        return api_.Comm_split(comm_->handle, comm_->rank % 2, 0, &made);
      case Second::cart_create:
        return api_.Cart_create(comm_->handle, 1, dims, periods, 0, &made);
      default:
        run_.check(api_.Comm_group(comm_->handle, &group), "Comm_group");
        code = api_.Comm_create(comm_->handle, group, &made);
        run_.check(api_.Group_free(&group), "Group_free");
        return code;
    }
  }

  int window() {
    std::vector<int> memory(16);
    MPI_Win win = MPI_WIN_NULL;
    const int code = api_.Win_create(memory.data(), 64, 4, MPI_INFO_NULL, comm_->handle, &win);
    return code == MPI_SUCCESS ? api_.Win_free(&win) : code;
  }

  int file() {
    const char* folder = std::getenv("TMPDIR");
    const std::string path = std::string(folder == nullptr ? "/tmp" : folder) +
                             "/accord_conformance_" + std::to_string(getuid()) + "_" +
                             std::to_string(run_.salt());
    MPI_File handle = MPI_FILE_NULL;
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    const int code = api_.File_open(comm_->handle, path.c_str(), mode, MPI_INFO_NULL, &handle);
    return code == MPI_SUCCESS ? api_.File_close(&handle) : code;
  }

  // A chain through all ranks: each receives from the one below and sends to the one above. The
  // order of early and late ranks along it is random.
  int token() {
    const int to = comm_->rank + 1 < comm_->size ? comm_->rank + 1 : MPI_PROC_NULL;
    const int from = comm_->rank > 0 ? comm_->rank - 1 : MPI_PROC_NULL;
    Buffer& data = run_.buffer("receive", Span{0, 64}, 8);
    void* pointer = data.pointer();
    int code = receive_token(pointer, from);
    if (code != MPI_SUCCESS) return code;
    const void* out = pointer;
    if (second_ == Second::synchronous)
      return api_.Ssend(false, out, Count{8}, MPI_DOUBLE, to, kProgressTag, comm_->handle);
    return api_.Send(false, out, Count{8}, MPI_DOUBLE, to, kProgressTag, comm_->handle);
  }

  int receive_token(void* pointer, int from) {
    MPI_Status status{};
    MPI_Request request = MPI_REQUEST_NULL;
    int flag = 0;
    int index = 0;
    int code = MPI_SUCCESS;
    const Count eight{8};
    switch (second_) {
      case Second::probe:
        run_.check(api_.Probe(from, kProgressTag, comm_->handle, &status), "Probe");
        break;
      case Second::iprobe:
        for (; flag == 0 && code == MPI_SUCCESS; sched_yield())
          code = api_.Iprobe(from, kProgressTag, comm_->handle, &flag, &status);
        run_.check(code, "Iprobe");
        break;
      case Second::sendrecv:
        return api_.Sendrecv(false, nullptr, Count{0}, MPI_DOUBLE, MPI_PROC_NULL, 0, pointer, eight,
                             MPI_DOUBLE, from, kProgressTag, comm_->handle, &status);
      case Second::test_loop:
      case Second::waitany:
        run_.check(api_.Irecv(false, pointer, eight, MPI_DOUBLE, from, kProgressTag, comm_->handle,
                              &request),
                   "Irecv");
        if (second_ == Second::waitany) return api_.Waitany(1, &request, &index, &status);
        for (; flag == 0 && code == MPI_SUCCESS; sched_yield())
          code = api_.Test(&request, &flag, &status);
        return code;
      default:
        break;
    }
    return api_.Recv(false, pointer, eight, MPI_DOUBLE, from, kProgressTag, comm_->handle, &status);
  }

  Run& run_;
  const Api& api_;
  Second second_;
  const Comm* comm_ = nullptr;
  bool early_ = false;
  bool ring_ = false;
  Form form_ = Form::nonblocking;
  Prepared prepared_;
  std::vector<MPI_Request> requests_;
  Buffer* send_ = nullptr;
  Buffer* receive_ = nullptr;
  const Comm* ring_comm_ = nullptr;
  std::int64_t ring_bytes_ = 0;
};

}  // namespace

void case_progress(Run& run) {
  const Second second = static_cast<Second>(run.global.below(kSeconds));
  run.describe(std::string(kSecondNames[static_cast<int>(second)]) + " while unfinished:");
  require(run, (std::string(kSecondNames[static_cast<int>(second)]) + " while unfinished").c_str());
  Progress(run, second).execute();
}

}  // namespace accord::conformance
