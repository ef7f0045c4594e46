// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// UCX's words for statuses, kinds of memory and regions. Known to worker.cpp alone.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <string_view>

#include "device/registry.h"
#include "net/ucx.h"
#include "net/worker.h"

namespace accord::net {

inline Status status_of(const Ucx& ucx, ucs_status_t status, const char* call) {
  if (status == UCS_OK) return {};
  return {status == UCS_ERR_NO_MEMORY ? StatusCode::no_memory : StatusCode::network,
          fmt::format("ucx: {}: {}", call, ucx.status_string(status))};
}

// unknown: UCX is to look by itself.
inline ucs_memory_type_t type_of(const device::PointerInfo& where) {
  if (where.runtime == nullptr) return UCS_MEMORY_TYPE_UNKNOWN;
  if (!device::needs_staging(where)) return UCS_MEMORY_TYPE_HOST;
  const bool is_managed = where.kind == device::MemoryKind::managed;
  const std::string_view runtime = where.runtime->name();
  if (runtime == "host") return UCS_MEMORY_TYPE_HOST;
  if (runtime == "cuda") return is_managed ? UCS_MEMORY_TYPE_CUDA_MANAGED : UCS_MEMORY_TYPE_CUDA;
  if (runtime == "hip") return is_managed ? UCS_MEMORY_TYPE_ROCM_MANAGED : UCS_MEMORY_TYPE_ROCM;
  return UCS_MEMORY_TYPE_UNKNOWN;
}

inline ucp_request_param_t param_of(const device::PointerInfo& where) {
  ucp_request_param_t param{};
  param.memory_type = type_of(where);
  if (param.memory_type != UCS_MEMORY_TYPE_UNKNOWN)
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  return param;
}

class MappedRegion final : public Region {
 public:
  MappedRegion(const Ucx& ucx, ucp_context_h context, ucp_mem_h memory, std::recursive_mutex& mutex)
      : ucx_(ucx), context_(context), memory_(memory), mutex_(mutex) {}
  ~MappedRegion() override {
    const std::lock_guard locked(mutex_);
    (void)ucx_.mem_unmap(context_, memory_);
  }
  Status pack() {
    void* packed = nullptr;
    std::size_t size_bytes = 0;
    ACCORD_TRY(
        status_of(ucx_, ucx_.rkey_pack(context_, memory_, &packed, &size_bytes), "ucp_rkey_pack"));
    const auto* const first = static_cast<const std::byte*>(packed);
    key_.assign(first, first + size_bytes);
    ucx_.rkey_buffer_release(packed);
    return {};
  }

 private:
  const Ucx& ucx_;
  ucp_context_h context_;
  ucp_mem_h memory_;
  std::recursive_mutex& mutex_;
};

class UnpackedRegion final : public RemoteRegion {
 public:
  UnpackedRegion(const Ucx& ucx, ucp_rkey_h remote_key, std::recursive_mutex& mutex)
      : key(remote_key), ucx_(ucx), mutex_(mutex) {}
  ~UnpackedRegion() override {
    const std::lock_guard locked(mutex_);
    ucx_.rkey_destroy(key);
  }
  const ucp_rkey_h key;

 private:
  const Ucx& ucx_;
  std::recursive_mutex& mutex_;
};

}  // namespace accord::net
