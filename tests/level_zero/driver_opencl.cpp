// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "driver_opencl.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "driver.h"

namespace accord::test::level_zero {

struct OpenclProgram {
  void* handle;
};
struct OpenclKernel {
  void* handle;
};

namespace {

// The functions of OpenCL 2.1 that it takes; its handles are pointers.
class Opencl {
 public:
  Opencl() {
    const char* path = std::getenv("ACCORD_TEST_ZE_OPENCL");
    library_ = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) fail(::dlerror());
    std::int32_t code = 0;
    void* platform = nullptr;
    const auto get_platforms =
        find<std::int32_t(std::uint32_t, void**, std::uint32_t*)>("clGetPlatformIDs");
    check(get_platforms(1, &platform, nullptr), "clGetPlatformIDs");
    const auto get_devices =
        find<std::int32_t(void*, std::uint64_t, std::uint32_t, void**, std::uint32_t*)>(
            "clGetDeviceIDs");
    check(get_devices(platform, kAllDevices, 1, &device_, nullptr), "clGetDeviceIDs");
    const auto create_context =
        find<void*(const std::intptr_t*, std::uint32_t, void* const*, void*, void*, std::int32_t*)>(
            "clCreateContext");
    context_ = create_context(nullptr, 1, &device_, nullptr, nullptr, &code);
    check(code, "clCreateContext");
    const auto create_queue =
        find<void*(void*, void*, std::uint64_t, std::int32_t*)>("clCreateCommandQueue");
    queue_ = create_queue(context_, device_, 0, &code);
    check(code, "clCreateCommandQueue");
  }

  void* build(const void* spirv, std::size_t size_bytes) const {
    std::int32_t code = 0;
    const auto create =
        find<void*(void*, const void*, std::size_t, std::int32_t*)>("clCreateProgramWithIL");
    void* const program = create(context_, spirv, size_bytes, &code);
    check(code, "clCreateProgramWithIL");
    const auto build_program =
        find<std::int32_t(void*, std::uint32_t, void* const*, const char*, void*, void*)>(
            "clBuildProgram");
    const std::int32_t built = build_program(program, 1, &device_, "", nullptr, nullptr);
    if (built != 0) fail("clBuildProgram: " + std::to_string(built) + "\n" + build_log(program));
    return program;
  }

  std::string build_log(void* program) const {
    constexpr std::uint32_t kBuildLog = 0x1183;
    const auto get_info =
        find<std::int32_t(void*, void*, std::uint32_t, std::size_t, void*, std::size_t*)>(
            "clGetProgramBuildInfo");
    std::string log(4096, '\0');
    std::size_t length = 0;
    if (get_info(program, device_, kBuildLog, log.size(), log.data(), &length) != 0) length = 0;
    log.resize(length);
    return log;
  }

  void* kernel(void* program, const std::string& name) const {
    std::int32_t code = 0;
    const auto create = find<void*(void*, const char*, std::int32_t*)>("clCreateKernel");
    void* const made = create(program, name.c_str(), &code);
    check(code, "clCreateKernel");
    return made;
  }

  // One after the other: the argument is part of the kernel.
  void run(void* kernel, const void* argument, std::size_t count, std::size_t group_size) {
    const std::lock_guard lock(mutex_);
    const auto set_argument =
        find<std::int32_t(void*, std::uint32_t, const void*)>("clSetKernelArgSVMPointer");
    check(set_argument(kernel, 0, argument), "clSetKernelArgSVMPointer");
    const auto enqueue =
        find<std::int32_t(void*, void*, std::uint32_t, const std::size_t*, const std::size_t*,
                          const std::size_t*, std::uint32_t, void*, void*)>(
            "clEnqueueNDRangeKernel");
    check(enqueue(queue_, kernel, 1, nullptr, &count, &group_size, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    check(find<std::int32_t(void*)>("clFinish")(queue_), "clFinish");
  }

 private:
  static constexpr std::uint64_t kAllDevices = 0xffffffff;

  template <class Function>
  Function* find(const char* name) const {
    auto* const found = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (found == nullptr) fail(std::string("no ") + name);
    return found;
  }
  static void check(std::int32_t code, const char* call) {
    if (code != 0) fail(std::string(call) + ": " + std::to_string(code));
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  void* context_ = nullptr;
  void* queue_ = nullptr;
  std::mutex mutex_;
};

Opencl& opencl() {
  static Opencl& loaded = *new Opencl;
  return loaded;
}

}  // namespace

bool opencl_is_asked_for() { return std::getenv("ACCORD_TEST_ZE_OPENCL") != nullptr; }

std::shared_ptr<OpenclProgram> build_program(const void* spirv, std::size_t size_bytes) {
  return std::make_shared<OpenclProgram>(OpenclProgram{opencl().build(spirv, size_bytes)});
}

OpenclKernel* make_kernel(const OpenclProgram& program, const std::string& name) {
  return new OpenclKernel{opencl().kernel(program.handle, name)};
}

void run_kernel(const OpenclKernel& kernel, void* argument, std::size_t count,
                std::size_t group_size) {
  opencl().run(kernel.handle, argument, count, group_size);
}

}  // namespace accord::test::level_zero
