// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/accord_library.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bench/shared_object.h"

namespace accord::bench {

std::unique_ptr<AccordLibrary> AccordLibrary::find(const std::string& path, std::string& why_not) {
  std::unique_ptr<AccordLibrary> library(new AccordLibrary);
  void* handle = RTLD_DEFAULT;
  library->intercepts_ = dlsym(RTLD_DEFAULT, "accord_malloc") != nullptr;
  if (!library->intercepts_) {
    if (path.empty()) {
      why_not = "Accord is not loaded and --library names no libaccord.so";
      return nullptr;
    }
    handle = open_first({path}, why_not);
    if (handle == nullptr) return nullptr;
  }
  const bool complete = find_function(handle, "accord_malloc", library->malloc_) &&
                        find_function(handle, "accord_free", library->free_) &&
                        find_function(handle, "accord_memcpy", library->memcpy_) &&
                        find_function(handle, "accord_set_device", library->set_device_) &&
                        find_function(handle, "accord_device_count", library->device_count_) &&
                        find_function(handle, "accord_runtime_name", library->runtime_name_) &&
                        find_function(handle, "accord_last_error", library->last_error_) &&
                        find_function(handle, "accord_info_json", library->info_json_);
  if (!complete) {
    why_not = fmt::format("{} lacks a function of accord.h: {}", path, dlerror());
    return nullptr;
  }
  find_function(handle, "accord_last_path", library->last_path_);
  return library;
}

void AccordLibrary::want_device_memory() {
  decltype(&accord_device_count) device_count = nullptr;
  if (find_function(RTLD_DEFAULT, "accord_device_count", device_count)) (void)device_count();
}

int AccordLibrary::use_device_of(int local_rank) {
  const int count = device_count_();
  if (count <= 0) return -1;
  const int device = local_rank % count;
  if (set_device_(device) != ACCORD_OK) fail("accord_set_device");
  return device;
}

void* AccordLibrary::allocate(std::size_t size_bytes, Memory memory) {
  void* pointer = nullptr;
  if (malloc_(&pointer, size_bytes, static_cast<accord_memory>(memory)) != ACCORD_OK) {
    fail("accord_malloc");
  }
  return pointer;
}

void AccordLibrary::free(void* pointer) {
  if (free_(pointer) != ACCORD_OK) fail("accord_free");
}

void AccordLibrary::copy(void* dst, const void* src, std::size_t size_bytes) {
  if (memcpy_(dst, src, size_bytes) != ACCORD_OK) fail("accord_memcpy");
}

std::string AccordLibrary::info_json() const {
  std::string text(info_json_(nullptr, 0), '\0');
  if (text.empty()) return text;
  info_json_(text.data(), text.size());
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return text;
}

std::string AccordLibrary::last_path() const {
  const char* path = last_path_ == nullptr ? nullptr : last_path_();
  return path == nullptr || *path == '\0' ? "-" : path;
}

void AccordLibrary::fail(const char* what) const {
  throw std::runtime_error(fmt::format("{}: {}", what, last_error_()));
}

}  // namespace accord::bench
