// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One NCCL communicator over all ranks, made at first use and shared by the NCCL peers. Its members
// throw std::runtime_error with NCCL's or CUDA's words.
#pragma once

#include <memory>
#include <string>

#include "bench/nccl_library.h"
#include "bench/session.h"

namespace accord::bench {

class NcclCommunicator {
 public:
  // Collective.
  NcclCommunicator(const Session& session, std::unique_ptr<NcclLibrary> library);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const NcclLibrary& library() const { return *library_; }
  NcclLibrary::Comm comm() const { return comm_; }
  NcclLibrary::Stream stream() const { return stream_; }
  // Two bytes of device memory.
  char* token() const { return token_; }

  // Device memory registered as a symmetric window. Collective.
  void* allocate_window(std::size_t size_bytes, NcclLibrary::Window& window);
  void free_window(void* pointer, NcclLibrary::Window window) noexcept;

 private:
  const Session& session_;
  std::unique_ptr<NcclLibrary> library_;
  NcclLibrary::Comm comm_ = nullptr;
  NcclLibrary::Stream stream_ = nullptr;
  char* token_ = nullptr;
};

// Null with the reason in `why_not` when NCCL cannot be used here. Collective; the answer is kept.
std::shared_ptr<NcclCommunicator> shared_nccl_communicator(const Session& session,
                                                           std::string& why_not);

}  // namespace accord::bench
