// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/inter/parcel_copy.h"

#include <utility>

#include "base/stages.h"

namespace accord::coll {

Status ParcelCopy::advance(bool& done) {
  stages::enter(stages::Stage::move);
  if (!std::exchange(begun_, true)) {
    const core::CopyBatch batch = copies();
    if (!batch.empty()) ACCORD_TRY(carrier().carry(batch, ticket_));
  }
  return carrier().copied(ticket_, done);
}

void ParcelCopy::stop(bool& done) {
  if (!carrier().copied(ticket_, done).ok()) done = true;
}

// Of the first end the bytes lie as they are packed.
bool ParcelCopy::may_keep(const core::CallEnd& in, const core::CallEnd& out) {
  return in.on_device && out.on_device && in.runtime == out.runtime && in.device == out.device &&
         !in.shadowed && !out.shadowed && in.present() && out.present() && in.contiguous();
}

core::CopyBatch ParcelCopy::copies() const {
  core::CopyBatch batch;
  if (own_.length_bytes != 0)
    batch.add(kept_out_->copies(core::CallEnd::Direction::unpack, own_.out_bytes, own_.length_bytes,
                                kept_in_->address(own_.in_bytes)));
  if (!user_.present() || !parcel_.present()) return batch;
  std::size_t first_bytes = 0;
  for (const core::CallEnd::Part& part : parcel_.parts) {
    if (!part.nowhere())
      batch.add(user_.copies(direction_, first_bytes, part.length_bytes,
                             parcel_.address(part.first_bytes)));
    first_bytes += part.length_bytes;
  }
  return batch;
}

}  // namespace accord::coll
