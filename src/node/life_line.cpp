// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/life_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace accord::node {
namespace {

// Never destroyed: groups may outlive static objects.
struct LifeLines {
  std::mutex mutex;  // guards what follows
  pid_t owner = 0;   // whose line it is: a fork makes its own
  Descriptor own;
  Descriptor held;  // the other end of a pipe
  std::map<std::uint64_t, std::weak_ptr<const LifeLine>> peers;
};

LifeLines& life_lines() {
  static LifeLines& instance = *new LifeLines;
  return instance;
}

// A child that this process forks has none of its lines, or a pipe would stay whole while the child
// lives.
void cut_lines_in_children() {
  static const int registered =
      ::pthread_atfork([] { life_lines().mutex.lock(); }, [] { life_lines().mutex.unlock(); },
                       [] {
                         life_lines().own.close();
                         life_lines().held.close();
                         life_lines().owner = 0;
                         life_lines().mutex.unlock();
                       });
  static_cast<void>(registered);
}

}  // namespace

// A pidfd, which says that its process has ended to whoever holds it, whatever PID namespace that
// is in; where the kernel has none (before 5.3) or a sandbox forbids it, a pipe whose other end
// closes with this process.
Status own_life_line(int& descriptor) {
  cut_lines_in_children();
  LifeLines& lines = life_lines();
  const std::lock_guard lock(lines.mutex);
  if (lines.owner != ::getpid()) {
    int ends[2] = {-1, -1};
#ifdef SYS_pidfd_open
    ends[0] = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
#endif
    if (ends[0] < 0 && ::pipe2(ends, O_CLOEXEC) != 0)
      return {StatusCode::unsupported, fmt::format("node: pipe: {}", std::strerror(errno))};
    lines.own = Descriptor(ends[0]);
    lines.held = Descriptor(ends[1]);
    lines.owner = ::getpid();
  }
  descriptor = lines.own.number();
  return {};
}

// Both kinds wake whoever polls them: a pidfd can be read once its process has ended, a pipe hangs
// up.
bool LifeLine::is_cut() const noexcept {
  if (!descriptor_.is_open()) return was_cut_.load(std::memory_order_acquire);
  pollfd look{descriptor_.number(), POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

std::shared_ptr<const LifeLine> life_line_of(std::uint64_t process, Descriptor descriptor) {
  LifeLines& lines = life_lines();
  const std::lock_guard lock(lines.mutex);
  std::erase_if(lines.peers, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<const LifeLine>& known = lines.peers[process];
  std::shared_ptr<const LifeLine> line = known.lock();
  if (line == nullptr) line = std::make_shared<const LifeLine>(std::move(descriptor));
  known = line;
  return line;
}

}  // namespace accord::node
