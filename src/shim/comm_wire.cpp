// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/comm_wire.h"

#include <array>
#include <string>

#include "shim/shim.h"

namespace accord::shim {
namespace {

// As long as it lives, errors on a communicator of the program's are returned.
class Silence {
 public:
  explicit Silence(MPI_Comm comm) : comm_(comm) {
    is_known_ = host::Comm_get_errhandler(comm, &handler_) == MPI_SUCCESS;
    if (is_known_) (void)host::Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~Silence() {
    if (!is_known_) return;
    (void)host::Comm_set_errhandler(comm_, handler_);
    (void)host::Errhandler_free(&handler_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
  bool is_known_ = false;
};

Status not_made(int code) {
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  (void)host::Error_string(code, text.data(), &length);
  return {StatusCode::unsupported,
          std::string("nodes: no communicator for messages between them: ") + text.data()};
}

class CommWire final : public core::Wire {
 public:
  CommWire() = default;
  // What a failed call leaves behind is no communicator.
  ~CommWire() override {
    int finalized = 0;
    (void)host::Finalized(&finalized);
    if (is_open_ && finalized == 0) (void)host::Comm_free(&comm_);
  }

  Status issue(MPI_Comm comm, core::HostRequest& bits) {
    const Silence silence(comm);
    const int code = with_bits(
        bits, [&](MPI_Request* request) { return host::Comm_idup(comm, &comm_, request); });
    return code == MPI_SUCCESS ? Status() : not_made(code);
  }
  Status opened() override {
    is_open_ = true;
    return Status::from_host(host::Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  }

  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& bits) override {
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      return host::Isend(bytes, static_cast<int>(size_bytes), MPI_BYTE, rank, tag, comm_, request);
    }));
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& bits) override {
    return Status::from_host(with_bits(bits, [&](MPI_Request* request) {
      const int source = rank == kAnyRank ? MPI_ANY_SOURCE : rank;
      return host::Irecv(bytes, static_cast<int>(size_bytes), MPI_BYTE, source, tag, comm_,
                         request);
    }));
  }
  Status test(core::HostRequest& bits, bool& done, core::Completion& completion) override {
    return engine().port().test_message(bits, done, completion);
  }
  void cancel(core::HostRequest& bits) noexcept override {
    int finalized = 0;
    if (host::Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
    auto request = from_bits<MPI_Request>(bits);
    (void)host::Cancel(&request);
    (void)host::Wait(&request, MPI_STATUS_IGNORE);
  }

 private:
  template <class Issue>
  static int with_bits(core::HostRequest& bits, Issue issue) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = issue(&request);
    bits = to_bits(request);
    return code;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool is_open_ = false;
};

}  // namespace

Status issue_wire(MPI_Comm comm, std::shared_ptr<core::Wire>& wire, core::HostRequest& request) {
  const auto made = std::make_shared<CommWire>();
  wire = made;
  return made->issue(comm, request);
}

}  // namespace accord::shim
