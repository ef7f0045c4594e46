// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/bell.h"

#include <map>
#include <mutex>
#include <utility>

namespace accord::node {
namespace {

// Never destroyed: groups may outlive static objects.
struct Bells {
  std::mutex mutex;  // guards what follows
  std::unique_ptr<SharedPages> own;
  std::map<std::uint64_t, std::weak_ptr<const Bell>> peers;
};

Bells& bells() {
  static Bells& instance = *new Bells;
  return instance;
}

}  // namespace

Status own_bell(int& descriptor) {
  const std::lock_guard lock(bells().mutex);
  std::unique_ptr<SharedPages>& own = bells().own;
  if (own == nullptr) {
    auto page = std::make_unique<SharedPages>();
    ACCORD_TRY(page->make(sizeof(std::atomic<std::uint64_t>)));
    own = std::move(page);
    detail::own_word.store(reinterpret_cast<std::atomic<std::uint64_t>*>(own->data()),
                           std::memory_order_release);
  }
  descriptor = own->descriptor().number();
  return {};
}

Status bell_of(std::uint64_t process, const Descriptor& descriptor,
               std::shared_ptr<const Bell>& bell) {
  const std::lock_guard lock(bells().mutex);
  std::erase_if(bells().peers, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<const Bell>& known = bells().peers[process];
  bell = known.lock();
  if (bell != nullptr) return {};
  auto page = std::make_unique<SharedPages>();
  ACCORD_TRY(page->map(descriptor));
  bell = std::make_shared<const Bell>(std::move(page));
  known = bell;
  return {};
}

}  // namespace accord::node
