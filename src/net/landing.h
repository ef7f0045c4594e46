// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Where a message of freight.h lands: straight in its memory where the network writes that, else by
// way of page-locked pieces, each granted to the carrier, copied on once it is filled, and granted
// again. It fails only once nothing is put to its memory any more: when the carrier has said so,
// or is gone.
#pragma once

#include <deque>

#include "net/copying.h"
#include "net/design.h"
#include "net/freight.h"

namespace accord::net {

class Landing final : public Transfer, public FreightEnd {
 public:
  enum class Way { straight, by_pieces };
  // `number`: how carriers ask for it; of this worker alone.
  Landing(Freight& freight, std::uint64_t number, const Memory& to, Way way);
  ~Landing() override;
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  Status advance(bool& done) override;
  void stop() noexcept override;
  bool must_be_polled() const noexcept override;

  void hear(const FreightNote& note, Bytes bytes) override;

 private:
  struct Piece {
    std::unique_ptr<Freight::Room> room;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::size_t filled_bytes = 0;
    bool is_copying = false;
    Copying copying;
  };
  void meet(const FreightNote& note, Bytes bytes);
  Status fill(const FreightNote& note);
  Status go_on();
  void note_coming(std::size_t less_bytes, std::size_t more_bytes) const;
  Status end_copies();
  Status grant();
  Status grant(std::size_t offset_bytes, std::size_t size_bytes, void* place, const Region& region);
  Status named(const Status& status) const;
  Status check_carrier() const;
  void refuse();
  bool is_let_go() const;

  Freight& freight_;
  const std::uint64_t number_;
  const Memory to_;
  const Way way_;
  Peer* peer_ = nullptr;  // null: no carrier has come
  std::uint64_t carriage_ = 0;
  std::string carrier_;
  std::unique_ptr<Region> region_;
  std::deque<Piece> pieces_;
  std::size_t granted_bytes_ = 0;
  std::size_t filled_bytes_ = 0;
  std::size_t landed_bytes_ = 0;
  Status failed_;
  bool has_refused_ = false;
  bool has_ended_ = false;  // its carrier
};

}  // namespace accord::net
