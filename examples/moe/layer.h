// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A layer of a mixture of experts. Each expert is on one rank; experts of a rank follow each other.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "../common/device.h"
#include "../common/mpi_time.h"
#include "exchange.h"
#include "grows.h"
#include "tokens.h"

namespace moe {

struct Problem {
  int tokens = 0;  // of a rank
  int hidden = 0;  // floats of a token
  int experts = 0;
  int top = 0;  // experts of a token
  int skew = 0;
  std::string exchange;
};

class Layer {
 public:
  Layer(MPI_Comm comm, const Problem& problem);

  // Takes `count` tokens to their experts and back; `crowded` as in Gate.
  void run(const app::Array<float>& tokens, int count, int crowded,
           const app::Array<float>& result);
  double seconds_in_mpi() const { return time_.seconds(); }

 private:
  // Chooses experts, and counts how many tokens go to each.
  void route(const app::Array<float>& tokens, int count, int crowded);
  // Sorts the tokens by expert.
  void permute(const app::Array<float>& tokens, int count, const app::Array<float>& rows);
  // Has the experts of this rank work on what they got.
  void work(const app::Array<float>& rows, int count);
  void combine(const app::Array<float>& rows, int count, const app::Array<float>& result);
  int read_received();
  std::size_t floats(int rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(problem_.hidden);
  }

  Problem problem_;
  int rank_ = 0;
  int ranks_ = 0;
  int experts_each_ = 0;  // of a rank; the last ones may have fewer
  app::MpiTime time_;
  app::Stream stream_;
  std::unique_ptr<Exchange> exchange_;
  Counts counts_;
  // By choice of a token: the expert, and its place among those that this rank sends there.
  app::Array<int> chosen_;
  app::Array<int> places_;
  // By expert, where its tokens begin among those that are sent; by rank and expert of this rank,
  // where they begin among those that are received.
  app::Array<int> sent_starts_;
  app::Array<int> received_starts_;
  app::Pinned<int> sent_starts_made_;
  app::Pinned<int> received_starts_made_;
  Grows<app::Array<float>> sent_rows_;
  Grows<app::Array<float>> received_rows_;
  Grows<app::Array<int>> received_experts_;
  Blocks sent_;
  Blocks received_;
};

}  // namespace moe
