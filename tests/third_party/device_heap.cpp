// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// LD_PRELOAD, before libaccord.so: what a program allocates lies in device memory of the embedded
// host runtime, which its code may touch (ACCORD_TEST_TOUCHABLE). So a program that knows nothing
// of devices passes device memory to MPI: its own allocations of 64 bytes and more, and those of
// the libraries named in DEVICE_HEAP_OF (parts of file names, separated by commas). Stacks, static
// data, and what MPI, Accord and the C library allocate stay where they were.
//
// Long blocks are allocations of their own, which are freed as the program frees them. Short ones
// come from one large allocation, as from a program's memory pool, and are used again at once.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "accord/accord.h"

extern "C" {
void* __libc_malloc(std::size_t size);
void __libc_free(void* pointer);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

constexpr std::size_t kLeastBytes = 64;  // shorter ones are seldom sent
constexpr std::size_t kOwnBytes = std::size_t{1} << 20;
constexpr std::size_t kPoolBytes = std::size_t{1} << 30;
constexpr std::size_t kClasses = 32;

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "device_heap: %s\n", why);
  std::_Exit(3);
}

// In front of each block.
struct alignas(64) Header {
  Header* next;
  void* start;  // of an allocation of its own; null: in the pool
  std::size_t capacity;
};

struct Range {
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  bool has(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= start && address < end;
  }
};

bool is_named(std::string_view file) {
  const char* const all = std::getenv("DEVICE_HEAP_OF");
  std::string_view names = all == nullptr ? "" : all;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (end > 0 && file.find(names.substr(0, end)) != std::string_view::npos) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

void tell_at_end();

class Heap {
 public:
  // Whether it is for the code at `caller` to have that much from here.
  bool serves(const void* caller, std::size_t size) {
    if (size < kLeastBytes || inside_) return false;
    std::call_once(begun_, [this] { begin(); });
    return is_caller(caller) || (find_callers() && is_caller(caller));
  }

  void* take(std::size_t size, std::size_t alignment = 64) {
    const std::lock_guard lock(mutex_);
    blocks_.fetch_add(1, std::memory_order_relaxed);
    if (size >= kOwnBytes || alignment > 64)
      return take_own(size, std::max<std::size_t>(alignment, 64));
    const auto size_class = static_cast<std::size_t>(std::bit_width(size - 1));
    if (Header*& idle = idle_[size_class]; idle != nullptr)
      return std::exchange(idle, idle->next) + 1;
    Header* const header = reinterpret_cast<Header*>(top_);
    const std::size_t capacity = std::size_t{1} << size_class;
    top_ += sizeof(Header) + capacity;
    if (top_ > reinterpret_cast<std::byte*>(pool_.end)) give_up("the pool is full");
    header->start = nullptr;
    header->capacity = capacity;
    return header + 1;
  }

  bool owns(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= lowest_.load(std::memory_order_relaxed) &&
           address < highest_.load(std::memory_order_relaxed);
  }

  void give(void* pointer) {
    Header* const header = static_cast<Header*>(pointer) - 1;
    const std::lock_guard lock(mutex_);
    if (header->start != nullptr) {
      inside_ = true;
      free_(header->start);
      inside_ = false;
      return;
    }
    Header*& idle = idle_[static_cast<std::size_t>(std::bit_width(header->capacity - 1))];
    header->next = std::exchange(idle, header);
  }

  void tell() const {
    const char* const path = std::getenv("DEVICE_HEAP_LOG");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%zu blocks in device memory\n", blocks_.load());
    std::fclose(file);
  }

  static std::size_t capacity(void* pointer) {
    return (static_cast<Header*>(pointer) - 1)->capacity;
  }

 private:
  void begin() {
    inside_ = true;
    allocate_ = reinterpret_cast<decltype(allocate_)>(dlsym(RTLD_DEFAULT, "accord_malloc"));
    free_ = reinterpret_cast<decltype(free_)>(dlsym(RTLD_DEFAULT, "accord_free"));
    if (allocate_ == nullptr || free_ == nullptr)
      give_up("libaccord.so is not preloaded behind it");
    top_ = allocate(kPoolBytes);
    pool_ = {reinterpret_cast<std::uintptr_t>(top_),
             reinterpret_cast<std::uintptr_t>(top_) + kPoolBytes};
    std::atexit(tell_at_end);
    inside_ = false;
  }

  bool is_caller(const void* code) const {
    const auto* const end = callers_.begin() + callers_count_.load(std::memory_order_acquire);
    return std::any_of(callers_.begin(), end, [&](const Range& range) { return range.has(code); });
  }

  // Libraries may be loaded at any time. False: none has been.
  bool find_callers() {
    unsigned long long loaded = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* count) {
          *static_cast<unsigned long long*>(count) = info->dlpi_adds;
          return 1;
        },
        &loaded);
    if (loaded_.exchange(loaded) == loaded) return false;
    const std::lock_guard lock(mutex_);
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* heap) {
          static_cast<Heap*>(heap)->add_caller(*info);
          return 0;
        },
        this);
    return true;
  }

  void add_caller(const dl_phdr_info& info) {
    const std::string_view file = info.dlpi_name;  // empty for the program
    Range range{.start = UINTPTR_MAX, .end = 0};
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& part = info.dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      range.start = std::min(range.start, info.dlpi_addr + part.p_vaddr);
      range.end = std::max(range.end, info.dlpi_addr + part.p_vaddr + part.p_memsz);
    }
    const std::size_t count = callers_count_;
    const bool is_known = is_caller(reinterpret_cast<const void*>(range.start));
    if (is_known || count == callers_.size() || !(file.empty() || is_named(file))) return;
    callers_[count] = range;
    callers_count_.store(count + 1, std::memory_order_release);
  }

  // All that comes from the runtime lies between the lowest and the highest address of it.
  std::byte* allocate(std::size_t size) {
    void* pointer = nullptr;
    const bool was_inside = std::exchange(inside_, true);
    if (allocate_(&pointer, size, ACCORD_MEMORY_DEVICE) != 0) give_up("no device memory is left");
    inside_ = was_inside;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    lowest_.store(std::min(lowest_.load(), address));
    highest_.store(std::max(highest_.load(), address + size));
    return static_cast<std::byte*>(pointer);
  }

  void* take_own(std::size_t size, std::size_t alignment) {
    std::byte* const start = allocate(size + sizeof(Header) + alignment);
    const auto first = reinterpret_cast<std::uintptr_t>(start + sizeof(Header));
    auto* const header =
        reinterpret_cast<Header*>((first + alignment - 1) / alignment * alignment) - 1;
    header->start = start;
    header->capacity = size;
    return header + 1;
  }

  // Whether this thread allocates for the heap itself.
  [[gnu::tls_model("initial-exec")]] static thread_local bool inside_;

  std::once_flag begun_;
  std::mutex mutex_;
  decltype(&accord_malloc) allocate_ = nullptr;
  decltype(&accord_free) free_ = nullptr;
  std::array<Range, 64> callers_;  // only added to
  std::atomic<std::size_t> callers_count_{0};
  std::atomic<unsigned long long> loaded_{0};
  std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX};
  std::atomic<std::uintptr_t> highest_{0};
  Range pool_;
  std::byte* top_ = nullptr;
  std::array<Header*, kClasses> idle_{};
  std::atomic<std::size_t> blocks_{0};
};

thread_local bool Heap::inside_ = false;

constinit Heap heap;

void tell_at_end() { heap.tell(); }

void* take(const void* caller, std::size_t size, std::size_t alignment) {
  if (!heap.serves(caller, size)) return __libc_memalign(alignment, size);
  return heap.take(size, alignment);
}

void* take(const void* caller, std::size_t size) {
  return heap.serves(caller, size) ? heap.take(size) : __libc_malloc(size);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return take(__builtin_return_address(0), size); }

void free(void* pointer) {
  if (heap.owns(pointer)) {
    heap.give(pointer);
  } else {
    __libc_free(pointer);
  }
}

void* calloc(std::size_t count, std::size_t size) {
  if (!heap.serves(__builtin_return_address(0), count * size)) return __libc_calloc(count, size);
  return std::memset(heap.take(count * size), 0, count * size);
}

void* realloc(void* pointer, std::size_t size) {
  if (pointer == nullptr) return take(__builtin_return_address(0), size);
  if (!heap.owns(pointer)) return __libc_realloc(pointer, size);
  const std::size_t old_bytes = Heap::capacity(pointer);
  if (size != 0 && size <= old_bytes) return pointer;
  void* const moved = size == 0 ? nullptr : std::memcpy(heap.take(size), pointer, old_bytes);
  heap.give(pointer);
  return moved;
}

void* memalign(std::size_t alignment, std::size_t size) {
  return take(__builtin_return_address(0), size, alignment);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return take(__builtin_return_address(0), size, alignment);
}

int posix_memalign(void** pointer, std::size_t alignment, std::size_t size) {
  *pointer = take(__builtin_return_address(0), size, alignment);
  return *pointer == nullptr ? ENOMEM : 0;
}

}  // extern "C"

void* operator new(std::size_t size) {
  return take(__builtin_return_address(0), std::max<std::size_t>(size, 1));
}
void* operator new[](std::size_t size) {
  return take(__builtin_return_address(0), std::max<std::size_t>(size, 1));
}
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete[](void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { free(pointer); }
