// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/window_transports.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coll/inter/net_transport.h"
#include "shim/messages.h"

namespace accord::shim {
namespace {

class WindowTransports final : public rma::Transports {
 public:
  // `ranks`: what those of other nodes are called in the job; -1: the others.
  WindowTransports(std::vector<int> ranks, std::shared_ptr<const coll::AlgorithmChoice> info)
      : ranks_(std::move(ranks)), info_(std::move(info)) {
    const auto job_rank = [this](int rank) { return static_cast<std::uint32_t>(at(rank)); };
    for (unsigned number = 0; const net::Design* const design = net::design_at(number); ++number)
      by_design_.push_back(std::make_unique<coll::NetTransport>(net_mail(), *design, job_rank));
  }

  std::int32_t choose(int rank, std::size_t size_bytes, const device::PointerInfo& where) override {
    if (!messaging.net_joined || at(rank) < 0) return kNone;
    const net::Design* const design = design_of_bytes(info_.get(), where, size_bytes);
    if (design == nullptr) return kNone;
    const unsigned number = net::number_of(*design);
    return by_design_[number]->reaches(rank) ? static_cast<std::int32_t>(number) : kNone;
  }
  net::Transport* find(std::int32_t number) override {
    const auto index = static_cast<std::size_t>(number);
    return number >= 0 && index < by_design_.size() ? by_design_[index].get() : nullptr;
  }

 private:
  int at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  const std::vector<int> ranks_;
  const std::shared_ptr<const coll::AlgorithmChoice> info_;
  std::vector<std::unique_ptr<net::Transport>> by_design_;
};

}  // namespace

std::unique_ptr<rma::Transports> window_transports(MPI_Comm comm) {
  const CommState* const state = comm_state(comm);
  if (!messaging.net_joined || state->mixed_worlds) return nullptr;
  std::vector<int> ranks;
  for (int rank = 0; rank < state->size; ++rank) ranks.push_back(net_rank(comm, rank));
  if (std::ranges::count(ranks, -1) == state->size) return nullptr;
  return std::make_unique<WindowTransports>(std::move(ranks), state->algorithms);
}

}  // namespace accord::shim
