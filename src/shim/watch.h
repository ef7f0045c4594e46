// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The requests of an array that calls which complete requests have something to do for.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "shim/messaging.h"
#include "shim/shim.h"

namespace accord::shim {

// A tracked request as it was before the host MPI completed it and took the handle away.
struct Watched {
  int index;
  core::HostRequest bits;
  std::shared_ptr<core::Tracked> work;
};

// The active tracked requests of an array, claimed for this thread as long as they are watched.
class Watch {
 public:
  Watch(int count, const MPI_Request handles[]) : handles_(handles) {
    if (requests().empty() || handles == nullptr) return;
    for (int i = 0; i < count; ++i) {
      const core::HostRequest bits = to_bits(handles[i]);
      auto work = requests().claim(bits);
      if (!work) continue;
      if (work->active) {
        work->wanted();
        watched_.push_back({i, bits, std::move(work)});
      } else {
        requests().unclaim(work);
      }
    }
  }
  // Those that were not completed are anybody's again. Where the program's error handler has
  // thrown, what its call has completed is through: the host MPI gives the handle out again.
  ~Watch() {
    const bool has_thrown = host::thrown != thrown_ || std::uncaught_exceptions() > exceptions_;
    for (const Watched& one : watched_) {
      if (has_thrown && to_bits(handles_[one.index]) != one.bits) {
        core::Completion failed;
        failed.failed = true;
        (void)requests().finish(one.bits, one.work, failed);
      } else {
        requests().unclaim(one.work);
      }
    }
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // One that another request of the host MPI has brought, so that its own seems inactive there, or
  // of which a call has told that it is complete; null: none is through.
  const Watched* early() const {
    const auto found = std::find_if(watched_.begin(), watched_.end(), [](const Watched& one) {
      return one.work->is_told ||
             (one.work->early && one.work->early_is_through() && !one.work->is_being_fetched());
    });
    return found == watched_.end() ? nullptr : &*found;
  }
  bool has_early() const {
    return std::ranges::any_of(
        watched_, [](const Watched& one) { return one.work->early || one.work->is_told; });
  }
  // Several that copy out what has come: together that takes far less time than one by one.
  bool have_copies_in_common() const {
    return std::ranges::count_if(watched_,
                                 [](const Watched& one) { return one.work->copies_out(); }) > 1;
  }
  // Some that are, or may have to be, fetched from another node, which takes long.
  bool may_come_from_afar() const {
    return messaging.net_joined && std::ranges::any_of(watched_, [](const Watched& one) {
             return one.work->may_fetch_early() || one.work->is_being_fetched();
           });
  }
  bool all_early_through() const {
    return std::ranges::all_of(watched_, [](const Watched& one) {
      return !one.work->early || one.work->early_is_through();
    });
  }

  // Whether the host MPI has completed the request at that index, which is watched, in a call that
  // has thrown. An inactive one is complete.
  bool is_over(int index) const {
    const auto one = std::ranges::find(watched_, index, &Watched::index);
    if (to_bits(handles_[index]) != one->bits) return true;
    int flag = 0;
    return one->work->persistent &&
           host::Request_get_status(handles_[index], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           flag != 0;
  }

  bool empty() const noexcept { return watched_.empty(); }
  const Watched& front() const { return watched_.front(); }
  auto begin() const { return watched_.begin(); }
  auto end() const { return watched_.end(); }

 private:
  const MPI_Request* handles_;
  int thrown_ = host::thrown;
  int exceptions_ = std::uncaught_exceptions();
  // Most calls are for one request: for that nothing is allocated.
  alignas(Watched) std::array<std::byte, sizeof(Watched)> room_;
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
  std::pmr::vector<Watched> watched_{&memory_};
};

}  // namespace accord::shim
