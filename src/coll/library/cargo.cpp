// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/cargo.h"

#include "coll/library/pairs.h"

namespace accord::coll {
namespace {

using Direction = core::CallEnd::Direction;

bool overlap(const std::byte* one, std::size_t one_bytes, const std::byte* other,
             std::size_t other_bytes) {
  return one < other + other_bytes && other < one + one_bytes;
}

// A call in which all ranks know all sizes.
class WholeCargo final : public CclCargo {
 public:
  WholeCargo(CclGroup& group, const CollArgs& args)
      : CclCargo(group),
        args_(args),
        plan_(group.library, *args.exchange, args.rank, args.in_place) {}

  Status pack(device::CopyTicket& ticket) override;
  std::vector<ccl::Work> works() const override {
    return plan_.works(for_library(in_), for_library(out_));
  }
  std::uint64_t memory_mark() const override;
  Status unpack(device::CopyTicket& ticket) override;

 private:
  std::byte* place_of(const core::CallEnd& end, CclPlan::Range range) const;

  const CollArgs& args_;
  const CclPlan plan_;
  std::byte* in_ = nullptr;   // what the library reads,
  std::byte* out_ = nullptr;  // and writes
  bool in_is_copy_ = false;
  bool out_direct_ = true;
};

// Null: elsewhere, or nowhere.
std::byte* WholeCargo::place_of(const core::CallEnd& end, CclPlan::Range range) const {
  const bool direct =
      range.length_bytes != 0 && is_direct(end, range.first_bytes, plan_.alignment_bytes());
  return direct ? end.address(range.first_bytes) : nullptr;
}

Status WholeCargo::pack(device::CopyTicket& ticket) {
  const auto in = plan_.in();
  const auto out = plan_.out();
  in_ = place_of(args_.in, in);
  out_ = place_of(args_.out, out);
  if (plan_.needs_apart() && in_ != nullptr && out_ != nullptr &&
      overlap(in_, in.length_bytes, out_, out.length_bytes))
    out_ = nullptr;
  in_is_copy_ = in_ == nullptr && in.length_bytes != 0;
  out_direct_ = out_ != nullptr || out.length_bytes == 0;
  const std::size_t in_bytes = in_is_copy_ ? CclGroup::whole_lines(in.length_bytes) : 0;
  const std::size_t out_bytes = out_direct_ ? 0 : out.length_bytes;
  if (in_bytes + out_bytes == 0) return {};
  std::byte* scratch = nullptr;
  ACCORD_TRY(group_.scratch(in_bytes + out_bytes, scratch));
  if (!out_direct_) out_ = scratch + in_bytes;
  if (!in_is_copy_) return {};
  in_ = scratch;
  return begin(args_.in.copies(Direction::pack, in.first_bytes, in.length_bytes, in_), ticket);
}

// Only where the library takes the user's own memory on both ends.
std::uint64_t WholeCargo::memory_mark() const {
  if (!out_direct_ || in_is_copy_) return 0;
  // All of it in the one allocation, or mapping, that the id is of.
  const auto known = [](const core::CallEnd& end, const std::byte* place, CclPlan::Range range) {
    std::uint64_t offset_bytes = 0;
    return place == nullptr ||
           (end.memory.buffer_id != 0 &&
            end.offset_in_memory(range.first_bytes, range.length_bytes, offset_bytes));
  };
  if (!known(args_.in, in_, plan_.in()) || !known(args_.out, out_, plan_.out())) return 0;
  const auto id_of = [](const core::CallEnd& end, const std::byte* place) {
    return place == nullptr ? 0 : end.memory.buffer_id;
  };
  const std::uint64_t mark = id_of(args_.in, in_) * 0x9e3779b97f4a7c15 + id_of(args_.out, out_);
  return mark == 0 ? 1 : mark;
}

// But for a block that stays as it is.
Status WholeCargo::unpack(device::CopyTicket& ticket) {
  if (out_direct_) return {};
  const auto kept = plan_.kept();
  const std::size_t behind = kept.first_bytes + kept.length_bytes;
  core::CopyBatch batch;
  const auto add = [&](std::size_t low, std::size_t high) {
    if (low < high) batch.add(args_.out.copies(Direction::unpack, low, high - low, out_ + low));
  };
  add(0, kept.first_bytes);
  add(behind, plan_.out().length_bytes);
  return begin(batch, ticket);
}

}  // namespace

std::unique_ptr<CclCargo> CclCargo::of(CclGroup& group, const CollArgs& args) {
  if (node::goes_by_pairs(args.exchange->kind)) return std::make_unique<CclPairs>(group, args);
  return std::make_unique<WholeCargo>(group, args);
}

bool CclCargo::is_direct(const core::CallEnd& end, std::size_t first_bytes,
                         std::size_t alignment_bytes) const {
  if (!end.usable_by(runtime(), device())) return false;
  return reinterpret_cast<std::uintptr_t>(end.address(first_bytes)) % alignment_bytes == 0;
}

Status CclCargo::begin(const core::CopyBatch& batch, device::CopyTicket& ticket) const {
  return batch.empty() ? Status() : runtime().batch_begin(device(), batch, ticket);
}

std::byte* CclCargo::for_library(std::byte* pointer) const {
  if (pointer == nullptr) return nullptr;
  return static_cast<std::byte*>(runtime().address_for_library(pointer));
}

}  // namespace accord::coll
