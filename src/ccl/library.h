// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Collective libraries (NCCL and its like) behind one face: those of plugins.def, and one that is a
// shared object of the user's (include/accord/ccl.h). Found and loaded at first use. Knows neither
// MPI nor the ranks of a node. Called by coll.
#pragma once

#include <accord/ccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace accord::ccl {

using Work = accord_ccl_work;
using Id = accord_ccl_id;

// One rank's end of a communicator of a library. Not thread-safe, but for what is said.
class Communicator {
 public:
  Communicator(const accord_ccl_plugin& plugin, void* made) : plugin_(plugin), made_(made) {}
  ~Communicator() {
    if (made_ != nullptr) plugin_.leave(made_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Puts the works on the stream as one step; see accord_ccl_plugin::enqueue. After an error some
  // of them may be under way until abort(). Where the stream records it is then as if nothing had
  // been asked.
  Status enqueue(std::span<const Work> works, void* stream);
  Status usable() const;
  // An error of something that is under way.
  Status check();
  // From here on nothing is asked of it but abort(), by whoever is told that it was the first to
  // say so: that may take long, and so be left to another thread.
  bool give_up() noexcept { return !given_up_.exchange(true); }
  void abort() noexcept;

 private:
  const accord_ccl_plugin& plugin_;
  void* made_;  // null: aborted
  std::atomic<bool> given_up_{false};
};

// Never destroyed.
class Library {
 public:
  // The plug-in stays for good; of the paths the first that can be opened counts, and null is for
  // the plug-in to know.
  struct Source {
    const accord_ccl_plugin* plugin;
    std::vector<const char*> paths;
    int version_min = 0;
    bool named_by_user = false;
  };
  explicit Library(Source source) : source_(std::move(source)) {}

  const char* name() const noexcept { return source_.plugin->name; }
  const char* runtime() const noexcept { return source_.plugin->runtime; }

  // Whether it takes the memory of this device runtime. The embedded host runtime stands in for
  // any, with a library of the user's that works on the CPU.
  bool takes(std::string_view runtime_name) const noexcept;

  // Loads it, once: ok, or why it cannot be used.
  Status open();

  // Only once it is open.
  const accord_ccl_description& description() const noexcept { return description_; }
  bool supports(accord_ccl_call call, accord_ccl_type type, accord_ccl_op op) const noexcept;
  // What it puts on a stream can be recorded and put there again.
  bool can_be_recorded() const noexcept;
  Status make_id(Id& id);
  Status join(const Id& id, int rank, int size, std::unique_ptr<Communicator>& joined);

 private:
  Status load();

  Source source_;
  std::once_flag once_;
  Status opened_;
  void* library_ = nullptr;
  accord_ccl_description description_{};
};

// All, in the order of plugins.def. Made at first use, which loads none but ACCORD_CCL_PLUGIN.
std::span<Library* const> libraries();
// Null: no such name.
Library* find(std::string_view name) noexcept;

// What is wrong with ACCORD_CCL_LIBRARIES or ACCORD_CCL_PLUGIN; empty when nothing is.
const std::string& problem();

}  // namespace accord::ccl
