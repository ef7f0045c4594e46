// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where a message arrives that may be a header (messages.h): what its receive would write. Host
// memory is seldom sent one, so a datatype is decoded only once one comes.
#pragma once

#include <mpi.h>

#include <limits>
#include <memory>
#include <utility>

#include "host_mpi.h"
#include "node/outbox.h"
#include "shim/kept_handles.h"
#include "shim/typemap.h"

namespace accord::shim {

template <class C>
core::Segment segment_of(C count, MPI_Datatype datatype) {
  if (count <= 0) return {};
  auto type = typemap(datatype);
  return type ? core::Segment{std::move(type), static_cast<std::size_t>(count), 0}
              : core::Segment{};
}

// How long a receive is under way.
enum class Lasts { call, request };

class Landing {
 public:
  Landing() = default;  // no header will come
  // There is room for a ticket.
  template <class C>
  Landing(C count, MPI_Datatype datatype, Lasts lasts)
      : count_(static_cast<std::size_t>(count)),
        datatype_(datatype),
        type_(known_typemap(datatype)) {
    if (!type_ && lasts == Lasts::request) kept_ = std::make_shared<KeptType>(datatype);
  }

  bool is_present() const noexcept { return count_ != 0; }
  bool may_hold_header(std::size_t received_bytes) const noexcept {
    constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
    return is_present() &&
           (node::MessageHeader::may_be(received_bytes) || received_bytes == kUnknown);
  }
  // While the datatype exists, or the request of which it is.
  core::Segment segment() {
    if (!type_ && is_present()) type_ = typemap(datatype_);
    return type_ ? core::Segment{type_, count_, 0} : core::Segment{};
  }

 private:
  std::size_t count_ = 0;
  MPI_Datatype datatype_ = MPI_DATATYPE_NULL;
  std::shared_ptr<const core::Typemap> type_;
  std::shared_ptr<KeptType> kept_;
};

}  // namespace accord::shim
