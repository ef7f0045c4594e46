// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/link_clocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace accord::device {
namespace {

// Devices beyond share the links of others.
constexpr unsigned kDevices = 64;
constexpr unsigned kLinksOfOne = 8;
constexpr std::size_t kBytes = std::size_t{kDevices} * kLinksOfOne * sizeof(std::int64_t);

// Whoever uses the file holds a lock of it. The last one that ends in good order removes it.
class SharedFile {
 public:
  SharedFile() : path_(fmt::format("/dev/shm/accord_links_{}", ::geteuid())), owner_(::getpid()) {
    if (!open()) return;
    void* const mapped =
        ::ftruncate(descriptor_, kBytes) == 0
            ? ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
            : MAP_FAILED;
    if (mapped != MAP_FAILED) clocks_ = static_cast<std::int64_t*>(mapped);
  }
  // Leaves the mapping: other threads may still copy.
  ~SharedFile() {
    if (descriptor_ >= 0 && ::getpid() == owner_ && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0)
      (void)::unlink(path_.c_str());
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  std::int64_t* clocks() { return clocks_; }

 private:
  // Another one may remove the file before we hold its lock.
  bool open() {
    for (int i = 0; i < 100; ++i) {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (descriptor_ < 0) return false;
      struct stat ours {};
      struct stat there {};
      if (::flock(descriptor_, LOCK_SH) == 0 && ::fstat(descriptor_, &ours) == 0 &&
          ::stat(path_.c_str(), &there) == 0 && ours.st_ino == there.st_ino)
        return true;
      (void)::close(descriptor_);
      descriptor_ = -1;
    }
    return false;
  }

  const std::string path_;
  const pid_t owner_;
  int descriptor_ = -1;
  std::int64_t own_[kDevices * kLinksOfOne] = {};
  std::int64_t* clocks_ = own_;
};

}  // namespace

std::int64_t& link_clock(int device, unsigned link) {
  static SharedFile file;
  return file.clocks()[static_cast<unsigned>(device) % kDevices * kLinksOfOne + link];
}

}  // namespace accord::device
