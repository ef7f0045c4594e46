// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "cases.h"
#include "collectives.h"
#include "exclusions.h"
#include "reduction.h"
#include "requests.h"

namespace accord::conformance {
namespace {

constexpr int kPackTag = 61;
constexpr const char* kExternal = "external32";

// Several pieces packed one behind the other, perhaps sent to a neighbour as MPI_PACKED, and
// unpacked into other layouts.
class Packing {
 public:
  Packing(Run& run, const Comm& comm) : run_(run), api_(run.api()), comm_(comm) {
    external_ = run.global.chance(30);
    large_ = run.global.chance(30) && run.oracle_api().Pack_c != nullptr && !external_;
    pieces_ = run.global.between(1, 4);
    for (int i = 0; i < pieces_; ++i) {
      payloads_.push_back(random_payload(run));
      if (external_) make_external(payloads_.back());
      units_.push_back(random_units(run, payloads_.back(), pieces_));
    }
    travels_ = run.global.chance(50) && !external_;
    run.describe(std::string(external_ ? "external32 " : "") + "pack of " +
                 std::to_string(pieces_) + " pieces of " + payloads_[0].signature[0]->name +
                 " on " + comm.name);
  }

  void execute() {
    std::vector<Blocks> sources;
    std::vector<Blocks> targets;
    for (int i = 0; i < pieces_; ++i) {
      sources.push_back(make("send", i));
      targets.push_back(make("receive", i));
    }
    std::int64_t room = run_.local.below(16);
    for (const Blocks& source : sources) room += size_of(source);
    Buffer& packed = run_.buffer("packed", Span{0, room}, 1);
    if (has_padding()) run_.set_loose(packed, 0, room);
    position_ = 0;
    for (const Blocks& source : sources) {
      run_.check(pack(source, packed.pointer(), room), "Pack");
      run_.log("position after Pack", position_);
    }
    const std::int64_t used = position_;
    void* from = packed.pointer();
    if (travels_) from = travel(packed, room, used);
    position_ = 0;
    for (const Blocks& target : targets) {
      run_.check(unpack(target, from, room), "Unpack");
      run_.log("position after Unpack", position_);
    }
  }

 private:
  Blocks make(const char* role, int i) {
    const auto at = static_cast<std::size_t>(i);
    return make_blocks(run_, role, payloads_[at], std::vector{units_[at]}, Spread::one);
  }

  // Few MPIs know the external form of every type: keep to plain C numbers.
  void make_external(Payload& payload) {
    const Element* element = nullptr;
    while (element == nullptr) {
      const Element& drawn = run_.global.pick(run_.elements());
      const bool number = drawn.element_class == ElementClass::c_integer ||
                          drawn.element_class == ElementClass::floating;
      if (number && drawn.size_bytes <= 8) element = &drawn;
    }
    payload.unit_bytes = element->size_bytes * payload.signature.size();
    payload.signature.assign(payload.signature.size(), element);
  }

  // Padding of long double has no defined packed form.
  bool has_padding() const {
    bool found = false;
    for (const Payload& payload : payloads_)
      for (const Element* element : payload.signature)
        for_each_padding(*element, [&](std::size_t, std::size_t) { found = true; });
    return found;
  }

  std::int64_t size_of(const Blocks& source) {
    if (external_) {
      MPI_Aint size = 0;
      run_.check(api_.Pack_external_size(kExternal, source.count, source.type, &size),
                 "Pack_external_size");
      run_.log("Pack_external_size", size);
      return size;
    }
    int size = 0;
    run_.check(api_.Pack_size(source.count, source.type, comm_.handle, &size), "Pack_size");
    run_.log("Pack_size", size);
    return size;
  }

  // Some MPIs refuse a null pointer here, count 0 or not.
  static void* address(const Blocks& blocks) { return blocks.buffer->pointer(); }

  int pack(const Blocks& source, void* target, std::int64_t room) {
    int position = static_cast<int>(position_);
    MPI_Aint external = position_;
    MPI_Count large = position_;
    int code = MPI_SUCCESS;
    if (external_)
      code = api_.Pack_external(kExternal, address(source), source.count, source.type, target, room,
                                &external);
    else if (large_)
      code = api_.Pack_c(source.pointer, source.count, source.type, target, room, &large,
                         comm_.handle);
    else
      code = api_.Pack(source.pointer, source.count, source.type, target, static_cast<int>(room),
                       &position, comm_.handle);
    position_ = external_ ? external : large_ ? large : position;
    return code;
  }

  int unpack(const Blocks& target, const void* source, std::int64_t room) {
    int position = static_cast<int>(position_);
    MPI_Aint external = position_;
    MPI_Count large = position_;
    int code = MPI_SUCCESS;
    if (external_)
      code = api_.Unpack_external(kExternal, source, room, &external, address(target), target.count,
                                  target.type);
    else if (large_)
      code = api_.Unpack_c(source, room, &large, target.pointer, target.count, target.type,
                           comm_.handle);
    else
      code = api_.Unpack(source, static_cast<int>(room), &position, target.pointer, target.count,
                         target.type, comm_.handle);
    position_ = external_ ? external : large_ ? large : position;
    return code;
  }

  // Around the ring, in packed form. What arrives is used for unpacking.
  void* travel(const Buffer& packed, std::int64_t room, std::int64_t used) {
    Buffer& arrived = run_.buffer("arrived", Span{0, room}, 1);
    if (has_padding()) run_.set_loose(arrived, 0, room);
    const int to = (comm_.rank + 1) % comm_.size;
    const int from = (comm_.rank + comm_.size - 1) % comm_.size;
    MPI_Status status{};
    const void* pointer = packed.pointer();
    // The ranks' layouts differ, and with them what MPI_Pack_size allows for; what is sent is what
    // was packed.
    run_.check(api_.Sendrecv(false, pointer, Count{used}, MPI_PACKED, to, kPackTag,
                             static_cast<void*>(arrived.pointer()), Count{room}, MPI_PACKED, from,
                             kPackTag, comm_.handle, &status),
               "Sendrecv");
    log_status(run_, status, MPI_PACKED);
    return arrived.pointer();
  }

  Run& run_;
  const Api& api_;
  const Comm& comm_;
  bool external_;
  bool large_;
  bool travels_;
  int pieces_;
  std::vector<Payload> payloads_;
  std::vector<std::int64_t> units_;
  std::int64_t position_ = 0;
};

void reduce_local(Run& run) {
  const Reduction reduction = random_reduction(run);
  const std::int64_t count = random_units(run, reduction.type->size_bytes, 1);
  const bool large = run.global.chance(30) && run.oracle_api().Reduce_local.large != nullptr;
  run.describe(std::string("reduce_local ") + reduction.name + " of " + std::to_string(count) +
               " " + reduction.type->text);
  Buffer& in = reduction_buffer(run, "send", reduction, count, 0);
  Buffer& inout = reduction_buffer(run, "receive", reduction, count, 1);
  set_padding_loose(run, inout, reduction, count);
  const void* pointer = in.pointer();
  run.check(run.api().Reduce_local(large, pointer, static_cast<void*>(inout.pointer()),
                                   Count{count}, reduction.type->handle, reduction.op),
            "Reduce_local");
}

}  // namespace

void case_pack(Run& run) {
  if (run.global.chance(45)) {
    require(run, "reduce_local");
    reduce_local(run);
    return;
  }
  const int which = run.global.pick(run.comms().intra());
  const Comm& comm = run.comms().all()[static_cast<std::size_t>(which)];
  require(run, "pack");
  Packing packing(run, comm);
  if (comm.member) packing.execute();
}

}  // namespace accord::conformance
