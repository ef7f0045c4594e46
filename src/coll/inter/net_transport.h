// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A transport over the network of messages between nodes (net/mail.h), by one of its designs.
#pragma once

#include "coll/transport.h"
#include "core/wire.h"
#include "net/mail.h"

namespace accord::coll {

class NetTransport final : public Transport {
 public:
  // They outlive it and its ends. What the design cannot carry goes by the fallback.
  NetTransport(net::Mail& mail, const net::Design& design, const core::Wire& wire)
      : mail_(mail), design_(design), wire_(wire) {}

  bool takes(const device::PointerInfo& where) const override {
    return mail_.takes(design_, where);
  }
  bool reaches(int rank) override { return mail_.is_met(wire_.job_rank(rank)); }
  std::unique_ptr<End> offer(int rank, const net::Memory& from, Name& name) override;
  std::unique_ptr<End> fetch(int rank, Name name, const net::Memory& to) override;
  void dismiss(int rank, Name name) noexcept override;

 private:
  net::Mail& mail_;
  const net::Design& design_;
  const core::Wire& wire_;
};

}  // namespace accord::coll
