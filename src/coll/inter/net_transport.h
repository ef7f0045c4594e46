// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A transport over the network of messages between nodes (net/mail.h), by one of its designs.
// Windows have it, too.
#pragma once

#include <functional>

#include "coll/transport.h"
#include "net/mail.h"

namespace accord::coll {

class NetTransport final : public Transport {
 public:
  // What its ranks are called in the job.
  using JobRank = std::function<std::uint32_t(int rank)>;
  // Mail and design outlive it and its ends. What the design cannot carry goes by the fallback.
  NetTransport(net::Mail& mail, const net::Design& design, JobRank job_rank)
      : mail_(mail), design_(design), job_rank_(std::move(job_rank)) {}

  bool takes(const device::PointerInfo& where) const override {
    return mail_.takes(design_, where);
  }
  bool reaches(int rank) override { return mail_.is_met(job_rank_(rank)); }
  std::unique_ptr<End> offer(int rank, const net::Memory& from, Name& name) override;
  std::unique_ptr<End> fetch(int rank, Name name, const net::Memory& to) override;
  void dismiss(int rank, Name name) noexcept override;

 private:
  net::Mail& mail_;
  const net::Design& design_;
  const JobRank job_rank_;
};

}  // namespace accord::coll
