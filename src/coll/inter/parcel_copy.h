// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What goes up and down where a node has one rank: between its user's memory and the parcel that
// goes to other nodes, in one copy. Through a region it would be three copies up and two down. What
// the rank has for itself goes from its one end to the other.
#pragma once

#include "coll/exchange.h"
#include "coll/inter/plan.h"
#include "core/call_end.h"

namespace accord::coll {

class ParcelCopy final : public Exchange {
 public:
  // The packed form of `user`, to the parts of a parcel (pack) or from there (unpack). Both outlive
  // the copy.
  ParcelCopy(const core::CallEnd& user, const core::CallEnd& parcel,
             core::CallEnd::Direction direction) noexcept
      : user_(user), parcel_(parcel), direction_(direction) {}
  // And this, between ends for which may_keep says yes, which outlive it, too.
  void keep(const core::CallEnd& in, const core::CallEnd& out, const TwoLevelPlan::Own& own) {
    kept_in_ = &in;
    kept_out_ = &out;
    own_ = own;
  }
  // Whether one copy gets from the one to the other.
  static bool may_keep(const core::CallEnd& in, const core::CallEnd& out);

  Status advance(bool& done) override;
  void stop(bool& done) override;

 private:
  core::CopyBatch copies() const;
  // Whose runtime copies: that of the end that the CPU does not reach.
  const core::CallEnd& carrier() const noexcept {
    if (kept_out_ != nullptr) return *kept_out_;
    return user_.runtime != nullptr ? user_ : parcel_;
  }

  const core::CallEnd& user_;
  const core::CallEnd& parcel_;
  core::CallEnd::Direction direction_;
  const core::CallEnd* kept_in_ = nullptr;
  const core::CallEnd* kept_out_ = nullptr;
  TwoLevelPlan::Own own_;
  bool begun_ = false;
  device::CopyTicket ticket_;
};

}  // namespace accord::coll
