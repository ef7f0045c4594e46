// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels that the library carries, loaded into a context when it first needs them, and whether
// they can address the memory they are given. Called by cuda/reduce.cpp, cuda/pack.cpp and
// cuda/copy_list.cpp.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string_view>

#include "device/cuda/copy.h"

namespace accord::device::cuda {

// That the driver does not take kernels, or has no room for what is theirs, is no error of the
// device: there are other ways.
Status unsupported(const Status& status);

// One image of kernels in all contexts. Lives for good: at exit the driver may be gone before us.
class Kernels {
 public:
  // `purpose`: for the message where a device does not take them.
  Kernels(const void* KernelImages::*image, const char* purpose)
      : image_(image), purpose_(purpose) {}

  // Loads them into the current context. What failed once is not tried again: unsupported.
  Status load(const Driver& driver, Context context);
  // A kernel in the current context. `name` stays valid.
  Status find(const Driver& driver, Context context, const char* name, Function& function);

 private:
  struct Loaded {
    Module module = nullptr;
    Status failure;
    std::map<std::string_view, Function> functions;
  };

  Status load_locked(const Driver& driver, Context context, Loaded*& loaded);

  const void* KernelImages::*const image_;
  const char* const purpose_;
  std::mutex mutex_;
  // By the id of the context, since a new one may have the handle of one that was destroyed, and
  // took its module along.
  std::map<unsigned long long, Loaded> contexts_;
};

// What a kernel is to touch, from the first byte to the last one.
struct ByteRange {
  const void* first;
  const void* last;
};

// Enters the context on the device that owns one of the buffers: only there can kernels address it.
// invalid_argument where a byte is unknown to the driver, unsupported where kernels of that context
// would fault, or beyond `reach`. `purpose` is for the messages.
// devices: no memory of the host; device: nothing but its own memory.
enum class Reach { everywhere, devices, device };
Status enter_for_kernel(const Driver& driver, Device device, std::span<const ByteRange> ranges,
                        const char* purpose, ContextScope& scope, Reach reach = Reach::everywhere);

}  // namespace accord::device::cuda
