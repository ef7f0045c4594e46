// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A collective of any kind on buffers of all ranks of a NodeWorld, run again and again and checked
// each time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node_world.h"

namespace accord::test {

using node::Kind;

inline constexpr std::size_t kRegionBytes = 64 << 10;
inline const char* const kDirect = "node-direct";

inline unsigned char value(int rank, int round, std::size_t at) {
  return static_cast<unsigned char>(rank * 37 + round * 101 + static_cast<int>(at % 251) + 1);
}

struct Case {
  node::Call call;
  bool in_place = false;
};

inline std::string name(const Case& c) {
  return "kind " + std::to_string(static_cast<int>(c.call.kind)) + " ranks " +
         std::to_string(c.call.size) + " root " + std::to_string(c.call.root) + " block " +
         std::to_string(c.call.block_bytes) + " one shot " + std::to_string(c.call.one_shot_bytes) +
         (c.in_place ? " in place" : "");
}

inline bool is_reduction(Kind kind) {
  return kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::reduce_scatter_block ||
         kind == Kind::reduce_scatter || kind == Kind::scan || kind == Kind::exscan;
}
inline bool gathers_all(Kind kind) { return kind == Kind::allgather || kind == Kind::allgatherv; }

inline Case make_case(Kind kind, int size, std::size_t block_bytes, bool in_place = false,
                      int root = 0, std::size_t one_shot_bytes = 0) {
  Case made{{.kind = kind, .size = size, .root = root, .block_bytes = block_bytes}, in_place};
  made.call.engine_bytes = 1000;
  if (is_reduction(kind)) {
    made.call.op = device::ReduceOp::sum;
    made.call.element = device::Element::uint8;
    made.call.one_shot_bytes = one_shot_bytes;
  }
  return made;
}

inline bool sends_blocks(Kind kind) {
  return kind == Kind::scatter || kind == Kind::alltoall || kind == Kind::reduce_scatter_block ||
         kind == Kind::reduce_scatter;
}
inline bool receives_blocks(Kind kind) {
  return kind == Kind::gather || gathers_all(kind) || kind == Kind::alltoall;
}
inline bool is_rooted(Kind kind) {
  return kind == Kind::bcast || kind == Kind::scatter || kind == Kind::gather ||
         kind == Kind::reduce;
}

// Buffers of all ranks for one case, which is run again and again on them.
class Collective {
 public:
  Collective(NodeWorld& world, const Case& c, device::MemoryKind kind = device::MemoryKind::device)
      : world_(&world), case_(c) {
    const std::size_t all = c.call.block_bytes * static_cast<std::size_t>(c.call.size);
    for (int rank = 0; rank < c.call.size; ++rank) {
      in_.push_back(std::make_unique<Buffer>(all, rank == 0 ? kind : device::MemoryKind::device));
      out_.push_back(std::make_unique<Buffer>(all));
    }
  }

  Buffer& in(int rank) { return *in_[static_cast<std::size_t>(rank)]; }
  void renew_in(int rank) {
    const std::size_t size_bytes = in(rank).size_bytes();
    in_[static_cast<std::size_t>(rank)].reset();
    in_[static_cast<std::size_t>(rank)] = std::make_unique<Buffer>(size_bytes);
  }

  void move_to(NodeWorld& world) { world_ = &world; }

  std::string run() {
    ++round_;
    std::vector<coll::CollArgs> views;
    for (int rank = 0; rank < case_.call.size; ++rank) {
      fill(rank);
      views.push_back(view(rank));
    }
    std::vector<Bytes> results(static_cast<std::size_t>(case_.call.size));
    const std::string way = world_->run(views, [&](int rank) {
      Buffer& out = *out_[static_cast<std::size_t>(rank)];
      results[static_cast<std::size_t>(rank)] = out.read(out.size_bytes());
      in(rank).write(Bytes(in(rank).size_bytes(), 0xdd));
      out.write(Bytes(out.size_bytes(), 0xbb));
    });
    for (int rank = 0; rank < case_.call.size; ++rank)
      check(rank, results[static_cast<std::size_t>(rank)]);
    return way;
  }

 private:
  // Where a rank contributes from the receive buffer.
  bool from_out(int rank) const {
    if (!case_.in_place) return false;
    return !is_rooted(case_.call.kind) ||
           (case_.call.kind == Kind::reduce && rank == case_.call.root);
  }

  void fill(int rank) {
    Bytes bytes(in(rank).size_bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = value(rank, round_, i);
    in(rank).write(bytes);
    if (!from_out(rank)) return;
    Buffer& out = *out_[static_cast<std::size_t>(rank)];
    if (!gathers_all(case_.call.kind)) return out.write(bytes);
    Bytes own(out.size_bytes(), 0xaa);
    std::copy_n(bytes.begin(), case_.call.block_bytes,
                own.begin() + static_cast<std::ptrdiff_t>(block(rank)));
    out.write(own);
  }

  coll::CollArgs view(int rank) {
    const node::Call& call = case_.call;
    const bool is_root = rank == call.root;
    const bool root_sends = call.kind == Kind::bcast || call.kind == Kind::scatter;
    const bool root_receives = call.kind == Kind::gather || call.kind == Kind::reduce;
    const std::size_t all = call.block_bytes * static_cast<std::size_t>(call.size);
    const std::size_t out_bytes = receives_blocks(call.kind) ? all : call.block_bytes;
    const bool whole = sends_blocks(call.kind) || (case_.in_place && gathers_all(call.kind));
    coll::CollArgs made;
    made.exchange = call;
    made.ways.direct = true;
    made.rank = rank;
    made.in_place = case_.in_place && (gathers_all(call.kind) || (is_root && is_rooted(call.kind)));
    const Buffer& source = from_out(rank) ? *out_[static_cast<std::size_t>(rank)] : in(rank);
    const bool skips_in = call.kind == Kind::gather && made.in_place;
    if ((!root_sends || is_root) && !skips_in) made.in = source.end(whole ? all : call.block_bytes);
    const bool skips_out = call.kind == Kind::scatter && made.in_place;
    if ((!root_receives || is_root) && !skips_out && !(call.kind == Kind::bcast && is_root))
      made.out = out_[static_cast<std::size_t>(rank)]->end(out_bytes);
    return made;
  }

  void check(int rank, const Bytes& got) {
    const node::Call& call = case_.call;
    const bool is_root = rank == call.root;
    const bool root_receives = call.kind == Kind::gather || call.kind == Kind::reduce;
    if (root_receives && !is_root) return;
    if (call.kind == Kind::exscan && rank == 0) return;
    if (is_root && (call.kind == Kind::bcast || (call.kind == Kind::scatter && case_.in_place)))
      return;
    const int blocks = receives_blocks(call.kind) ? call.size : 1;
    for (int peer = 0; peer < blocks; ++peer) {
      if (call.kind == Kind::gather && case_.in_place && peer == rank) continue;
      for (std::size_t i = 0; i < call.block_bytes; ++i) {
        ASSERT_EQ(static_cast<int>(expected(rank, peer, i)), static_cast<int>(got[block(peer) + i]))
            << name(case_) << ": round " << round_ << " rank " << rank << " block " << peer
            << " byte " << i;
      }
    }
  }

  unsigned char expected(int rank, int peer, std::size_t at) const {
    const node::Call& call = case_.call;
    unsigned char sum = 0;
    const std::size_t place = sends_blocks(call.kind) ? block(rank) + at : at;
    const int sources = call.kind == Kind::scan     ? rank + 1
                        : call.kind == Kind::exscan ? rank
                                                    : call.size;
    switch (call.kind) {
      case Kind::bcast:
        return value(call.root, round_, at);
      case Kind::scatter:
        return value(call.root, round_, block(rank) + at);
      case Kind::gather:
      case Kind::allgather:
      case Kind::allgatherv:
        return value(peer, round_, at);
      case Kind::alltoall:
        return value(peer, round_, block(rank) + at);
      default:
        for (int source = 0; source < sources; ++source)
          sum = static_cast<unsigned char>(sum + value(source, round_, place));
        return sum;
    }
  }

  std::size_t block(int rank) const {
    return static_cast<std::size_t>(rank) * case_.call.block_bytes;
  }

  NodeWorld* world_;
  Case case_;
  std::vector<std::unique_ptr<Buffer>> in_;
  std::vector<std::unique_ptr<Buffer>> out_;
  int round_ = 0;
};

}  // namespace accord::test
