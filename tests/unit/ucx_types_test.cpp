// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// UCX is told what kind of memory it gets, where that is known: old ones take device memory that
// was mapped by cuMemMap for the host's.
#include <dlfcn.h>
#include <ucs/memory/memory_type.h>

#include <cstdlib>

#include "forwarding_runtime.h"
#include "net/worker.h"
#include "support.h"

namespace accord::test {
namespace {

using device::MemoryKind;
using device::PointerInfo;

class Named final : public ForwardingRuntime {
 public:
  explicit Named(const char* name) : name_(name) {}
  const char* name() const noexcept override { return name_; }

 private:
  const char* name_;
};

PointerInfo at(device::DeviceRuntime& runtime, MemoryKind kind) {
  PointerInfo where;
  where.kind = kind;
  where.runtime = &runtime;
  return where;
}

TEST(ucx_types, calls_say_what_memory_it_is) {
  std::unique_ptr<net::Worker> worker;
  ASSERT_OK(net::Worker::open({.net_devices = "", .transports = "tcp"}, worker));
  net::Peer* self = nullptr;
  ASSERT_OK(worker->connect(worker->address(), self));
  void* const witness = ::dlopen(std::getenv("ACCORD_UCX_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(nullptr, witness);
  const auto told = reinterpret_cast<int (*)()>(::dlsym(witness, "ucx_witness_told"));
  ASSERT_NE(nullptr, told);

  Named cuda("cuda");
  Named hip("hip");
  Named host("host");
  Named other("level_zero");
  constexpr int kNothing = -1;
  const struct {
    PointerInfo where;
    int type;
  } rows[] = {{{}, kNothing},
              {at(cuda, MemoryKind::device), UCS_MEMORY_TYPE_CUDA},
              {at(cuda, MemoryKind::managed), UCS_MEMORY_TYPE_CUDA_MANAGED},
              {at(cuda, MemoryKind::pinned), UCS_MEMORY_TYPE_HOST},
              {at(hip, MemoryKind::device), UCS_MEMORY_TYPE_ROCM},
              {at(hip, MemoryKind::managed), UCS_MEMORY_TYPE_ROCM_MANAGED},
              {at(host, MemoryKind::device), UCS_MEMORY_TYPE_HOST},
              {at(other, MemoryKind::device), kNothing}};
  char byte = 0;
  for (const auto& [where, type] : rows) {
    EXPECT_FALSE(worker->send(*self, 1, &byte, 1, where).status.ok());
    EXPECT_EQ(type, told());
    EXPECT_FALSE(worker->receive(*self, 1, &byte, 1, where).status.ok());
    EXPECT_EQ(type, told());
    std::unique_ptr<net::Region> region;
    EXPECT_FALSE(worker->share(&byte, 1, region, where).ok());
    EXPECT_EQ(type, told());
  }
}

}  // namespace
}  // namespace accord::test
