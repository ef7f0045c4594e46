// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/nccl_communicator.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

namespace accord::bench {
namespace {

// The reason is the same on all ranks.
std::shared_ptr<NcclCommunicator> make_communicator(const Session& session, std::string& why_not) {
  const Options& options = session.options;
  if (session.cuda == nullptr || options.send_memory != Memory::device ||
      options.recv_memory != Memory::device) {
    why_not = "NCCL needs CUDA device memory on both sides";
    return nullptr;
  }
  std::string local;
  auto library = NcclLibrary::open(local);
  why_not = session.first_text(library == nullptr ? local : "");
  // NCCL does not allow two ranks on one GPU.
  if (why_not.empty()) why_not = session.shared_gpu();
  if (!why_not.empty()) return nullptr;
  return std::make_shared<NcclCommunicator>(session, std::move(library));
}

}  // namespace

NcclCommunicator::NcclCommunicator(const Session& session, std::unique_ptr<NcclLibrary> library)
    : session_(session), library_(std::move(library)) {
  NcclUniqueId id{};
  if (session.rank == 0) library_->check(library_->get_unique_id(&id), "ncclGetUniqueId");
  session.broadcast(id.internal, sizeof id.internal);
  library_->check(library_->comm_init_rank(&comm_, session.ranks, id, session.rank),
                  "ncclCommInitRank");
  stream_ = session.cuda->make_stream();
  token_ = static_cast<char*>(session.accord->allocate(2, Memory::device));
}

NcclCommunicator::~NcclCommunicator() {
  library_->comm_destroy(comm_);
  try {
    session_.accord->free(token_);
  } catch (const std::exception&) {
    // The device is lost; whoever used it has said so.
  }
}

void* NcclCommunicator::allocate_window(std::size_t size_bytes, NcclLibrary::Window& window) {
  constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
  void* pointer = nullptr;
  // Registering waits for all ranks, so all must have memory before any begins.
  const int code = library_->mem_alloc(&pointer, size_bytes);
  if (session_.max(code) != 0) {
    if (code == 0) library_->mem_free(pointer);
    throw std::runtime_error(fmt::format("ncclMemAlloc has no {} bytes on every rank", size_bytes));
  }
  library_->check(library_->window_register(comm_, pointer, size_bytes, &window, kSymmetric),
                  "ncclCommWindowRegister");
  return pointer;
}

void NcclCommunicator::free_window(void* pointer, NcclLibrary::Window window) noexcept {
  library_->window_deregister(comm_, window);
  library_->mem_free(pointer);
}

std::shared_ptr<NcclCommunicator> shared_nccl_communicator(const Session& session,
                                                           std::string& why_not) {
  // Kept by the ways that use it; here only remembered, so that it ends before MPI does.
  static std::weak_ptr<NcclCommunicator> remembered;
  static std::string remembered_why_not;
  if (!remembered_why_not.empty()) {
    why_not = remembered_why_not;
    return nullptr;
  }
  if (auto communicator = remembered.lock()) return communicator;
  auto communicator = make_communicator(session, why_not);
  remembered = communicator;
  remembered_why_not = communicator == nullptr ? why_not : "";
  return communicator;
}

}  // namespace accord::bench
