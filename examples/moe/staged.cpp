// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "staged.h"

#include <algorithm>

namespace moe {
namespace {

constexpr int kChunkFloats = 128 * 1024;  // half a MiB: long enough for the bandwidth of a copy

std::size_t end_of(const Blocks& blocks) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < blocks.counts.size(); ++i)
    end = std::max(end, static_cast<std::size_t>(blocks.starts[i] + blocks.counts[i]));
  return end;
}

}  // namespace

void Staged::exchange(const Counts& counts) {
  const int each = static_cast<int>(counts.sent.count()) / ranks_;
  time_.of([&] {
    MPI_Alltoall(counts.sent_read.data(), each, MPI_INT, counts.received_read.data(), each, MPI_INT,
                 comm_);
  });
}

// Messages of a pair arrive in order, so chunks need no other tags. Peers take turns, so that all
// have something to do from the beginning.
void Staged::cut(const Blocks& blocks, bool receives, std::vector<Chunk>& chunks) const {
  chunks.clear();
  const int longest = *std::max_element(blocks.counts.begin(), blocks.counts.end());
  for (int done = 0; done < longest; done += kChunkFloats)
    for (int turn = 1; turn < ranks_; ++turn) {
      const int who = peer(receives ? ranks_ - turn : turn);
      const auto at = static_cast<std::size_t>(who);
      const int left = blocks.counts[at] - done;
      if (left > 0) chunks.push_back({who, blocks.starts[at] + done, std::min(left, kChunkFloats)});
    }
}

void Staged::begin_receives(float* pinned) {
  receive_requests_.resize(receives_.size());
  arrived_.resize(receives_.size());
  time_.of([&] {
    for (std::size_t i = 0; i < receives_.size(); ++i)
      MPI_Irecv(pinned + receives_[i].start, receives_[i].count, MPI_FLOAT, receives_[i].peer, 0,
                comm_, &receive_requests_[i]);
  });
}

void Staged::begin_copies(const float* from, float* pinned) {
  while (copied_.size() < sends_.size()) copied_.emplace_back();
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    copies_.copy(pinned + sends_[i].start, from + sends_[i].start,
                 static_cast<std::size_t>(sends_[i].count) * sizeof(float));
    copied_[i].record(copies_);
  }
}

void Staged::send(std::size_t chunk, const float* pinned) {
  copied_[chunk].synchronise();
  const Chunk& what = sends_[chunk];
  time_.of([&] {
    MPI_Isend(pinned + what.start, what.count, MPI_FLOAT, what.peer, 0, comm_,
              &send_requests_[chunk]);
  });
}

bool Staged::land(float* to, const float* pinned, bool waits) {
  const int count = static_cast<int>(receive_requests_.size());
  int arrived = 0;
  time_.of([&] {
    if (waits)
      MPI_Waitsome(count, receive_requests_.data(), &arrived, arrived_.data(), MPI_STATUSES_IGNORE);
    else
      MPI_Testsome(count, receive_requests_.data(), &arrived, arrived_.data(), MPI_STATUSES_IGNORE);
  });
  if (arrived == MPI_UNDEFINED) return false;
  for (int i = 0; i < arrived; ++i) {
    const Chunk& what = receives_[static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])];
    arrivals_.copy(to + what.start, pinned + what.start,
                   static_cast<std::size_t>(what.count) * sizeof(float));
  }
  return true;
}

void Staged::exchange(const app::Array<float>& from, const Blocks& sent,
                      const app::Array<float>& to, const Blocks& received) {
  cut(sent, false, sends_);
  cut(received, true, receives_);
  float* const out = outgoing_.of(end_of(sent)).data();
  float* const in = incoming_.of(end_of(received)).data();
  begin_receives(in);
  begin_copies(from.data(), out);
  const auto here = static_cast<std::size_t>(rank_);
  arrivals_.copy(to.data() + received.starts[here], from.data() + sent.starts[here],
                 static_cast<std::size_t>(sent.counts[here]) * sizeof(float));
  send_requests_.resize(sends_.size());
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    send(i, out);
    land(to.data(), in, false);
  }
  while (land(to.data(), in, true)) {
  }
  time_.of([this] {
    MPI_Waitall(static_cast<int>(send_requests_.size()), send_requests_.data(),
                MPI_STATUSES_IGNORE);
  });
  arrivals_.synchronise();
}

}  // namespace moe
