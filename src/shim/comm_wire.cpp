// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/comm_wire.h"

#include "shim/shim.h"

namespace accord::shim {
namespace {

class CommWire final : public core::Wire {
 public:
  CommWire() = default;
  ~CommWire() override {
    int finalized = 0;
    (void)host::Finalized(&finalized);
    if (comm_ != MPI_COMM_NULL && finalized == 0) (void)host::Comm_free(&comm_);
  }

  int issue(MPI_Comm comm, core::HostRequest& bits) {
    return with_bits(bits,
                     [&](MPI_Request* request) { return host::Comm_idup(comm, &comm_, request); });
  }
  Status opened() override {
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
};

}  // namespace

int issue_wire(MPI_Comm comm, std::shared_ptr<core::Wire>& wire, core::HostRequest& request) {
  const auto made = std::make_shared<CommWire>();
  wire = made;
  return made->issue(comm, request);
}

}  // namespace accord::shim
