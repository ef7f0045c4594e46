// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// UCX, but for the calls that are told of memory: these only keep what they were told, and fail.
#include <ucp/api/ucp.h>

namespace {

// -1: UCX is to find out.
int told = -1;

int type_in(const ucp_request_param_t* param) {
  const bool is_told = (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0;
  return is_told ? static_cast<int>(param->memory_type) : -1;
}
ucs_status_ptr_t keep(const ucp_request_param_t* param) {
  told = type_in(param);
  return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
}

}  // namespace

extern "C" {

int ucx_witness_told() { return told; }

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h, const void*, size_t, ucp_tag_t,
                                  const ucp_request_param_t* param) {
  return keep(param);
}
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h, void*, size_t, ucp_tag_t, ucp_tag_t,
                                  const ucp_request_param_t* param) {
  return keep(param);
}
ucs_status_ptr_t ucp_put_nbx(ucp_ep_h, const void*, size_t, uint64_t, ucp_rkey_h,
                             const ucp_request_param_t* param) {
  return keep(param);
}
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h, void*, size_t, uint64_t, ucp_rkey_h,
                             const ucp_request_param_t* param) {
  return keep(param);
}
ucs_status_t ucp_mem_map(ucp_context_h, const ucp_mem_map_params_t* params, ucp_mem_h*) {
  const bool is_told = (params->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) != 0;
  told = is_told ? static_cast<int>(params->memory_type) : -1;
  return UCS_ERR_UNSUPPORTED;
}

}  // extern "C"
