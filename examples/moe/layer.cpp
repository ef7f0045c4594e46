// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "layer.h"

namespace moe {
namespace {

int ranks_of(MPI_Comm comm) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  return ranks;
}

// Kernels. An index of a float may be large, so rows are counted as std::size_t.

struct Clear {
  int* numbers;

  ON_DEVICE void operator()(int i) const { numbers[i] = 0; }
};

struct Route {
  const float* tokens;
  int hidden;
  Gate gate;
  int* counts;
  int* chosen;
  int* places;

  ON_DEVICE void operator()(int token) const {
    int experts[kTopMax];
    const float* const mine = tokens + static_cast<std::size_t>(token) * hidden;
    gate.choose(hidden, Number{mine}, experts);
    for (int i = 0; i < gate.top; ++i) {
      chosen[token * gate.top + i] = experts[i];
      places[token * gate.top + i] = app::fetch_add(&counts[experts[i]], 1);
    }
  }
  struct Number {
    const float* token;

    ON_BOTH float operator()(int i) const { return token[i]; }
  };
};

// Where choice `i` of all lies among the rows that are sent.
struct Place {
  const int* chosen;
  const int* places;
  const int* starts;

  ON_DEVICE std::size_t row(int i) const {
    return static_cast<std::size_t>(starts[chosen[i]]) + static_cast<std::size_t>(places[i]);
  }
};

struct Permute {
  const float* tokens;
  int hidden;
  int top;
  Place place;
  float* rows;

  ON_DEVICE void operator()(int i) const {
    const int choice = i / hidden;
    const int number = i % hidden;
    rows[place.row(choice) * hidden + number] =
        tokens[static_cast<std::size_t>(choice / top) * hidden + number];
  }
};

// Of each row that is received, by the expert that it is for: the last one that begins there.
struct FindExpert {
  const int* starts;
  int count;
  int first_expert;
  int experts_each;
  int* experts;

  ON_DEVICE void operator()(int row) const {
    int low = 0;
    int high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (starts[middle] <= row)
        low = middle;
      else
        high = middle;
    }
    experts[row] = first_expert + low % experts_each;
  }
};

struct Work {
  const int* experts;
  int hidden;
  float* rows;

  ON_DEVICE void operator()(int i) const { rows[i] = apply_expert(experts[i / hidden], rows[i]); }
};

struct Combine {
  const float* rows;
  int hidden;
  int top;
  Place place;
  float* result;

  ON_DEVICE void operator()(int i) const {
    const int token = i / hidden;
    float sum = 0;
    for (int k = 0; k < top; ++k)
      sum += weight(top, k) * rows[place.row(token * top + k) * hidden + i % hidden];
    result[i] = sum;
  }
};

}  // namespace

Layer::Layer(MPI_Comm comm, const Problem& problem)
    : problem_(problem),
      ranks_(ranks_of(comm)),
      experts_each_((problem.experts + ranks_ - 1) / ranks_),
      exchange_(make_exchange(problem.exchange, comm, time_)),
      counts_(static_cast<std::size_t>(experts_each_ * ranks_)),
      chosen_(static_cast<std::size_t>(problem.tokens * problem.top)),
      places_(chosen_.count()),
      sent_starts_(counts_.sent.count()),
      received_starts_(counts_.sent.count()),
      sent_starts_made_(counts_.sent.count()),
      received_starts_made_(counts_.sent.count()),
      sent_(ranks_),
      received_(ranks_) {
  MPI_Comm_rank(comm, &rank_);
}

void Layer::run(const app::Array<float>& tokens, int count, int crowded,
                const app::Array<float>& result) {
  route(tokens, count, crowded);
  const app::Array<float>& sent_rows = sent_rows_.of(floats(count * problem_.top));
  permute(tokens, count, sent_rows);  // while the counts are under way
  exchange_->exchange(counts_);
  const int received = read_received();
  const app::Array<float>& received_rows = received_rows_.of(floats(received));
  stream_.synchronise();
  exchange_->exchange(sent_rows, sent_, received_rows, received_);
  work(received_rows, received);
  stream_.synchronise();
  exchange_->exchange(received_rows, received_, sent_rows, sent_);
  combine(sent_rows, count, result);
  stream_.synchronise();
}

void Layer::route(const app::Array<float>& tokens, int count, int crowded) {
  const std::size_t experts = counts_.sent.count();
  app::Kernel clear(stream_);
  clear.run(static_cast<int>(experts), Clear{clear.writes(counts_.sent)});
  app::Kernel kernel(stream_);
  kernel.run(count,
             Route{kernel.reads(tokens), problem_.hidden,
                   Gate{problem_.experts, problem_.top, problem_.skew, crowded},
                   kernel.writes(counts_.sent), kernel.writes(chosen_), kernel.writes(places_)});
  stream_.copy(counts_.sent_read.data(), counts_.sent.data(), experts * sizeof(int));
  stream_.synchronise();
}

namespace {

// Rows by expert and rank become places of rows, and of floats. Returns how many rows there are.
int lay_out(const app::Pinned<int>& counts, int experts_each, int hidden,
            const app::Pinned<int>& starts, Blocks& blocks) {
  int rows = 0;
  std::size_t at = 0;
  for (std::size_t rank = 0; rank < blocks.counts.size(); ++rank) {
    const int first = rows;
    for (int expert = 0; expert < experts_each; ++expert, ++at) {
      starts[at] = rows;
      rows += counts[at];
    }
    blocks.starts[rank] = first * hidden;
    blocks.counts[rank] = (rows - first) * hidden;
  }
  return rows;
}

}  // namespace

void Layer::permute(const app::Array<float>& tokens, int count, const app::Array<float>& rows) {
  lay_out(counts_.sent_read, experts_each_, problem_.hidden, sent_starts_made_, sent_);
  stream_.copy(sent_starts_.data(), sent_starts_made_.data(), sent_starts_.count() * sizeof(int));
  app::Kernel kernel(stream_);
  kernel.run(
      static_cast<int>(floats(count * problem_.top)),
      Permute{kernel.reads(tokens), problem_.hidden, problem_.top,
              Place{kernel.reads(chosen_), kernel.reads(places_), kernel.reads(sent_starts_)},
              kernel.writes(rows)});
}

int Layer::read_received() {
  const int rows = lay_out(counts_.received_read, experts_each_, problem_.hidden,
                           received_starts_made_, received_);
  stream_.copy(received_starts_.data(), received_starts_made_.data(),
               received_starts_.count() * sizeof(int));
  return rows;
}

void Layer::work(const app::Array<float>& rows, int count) {
  const app::Array<int>& experts = received_experts_.of(static_cast<std::size_t>(count));
  app::Kernel find(stream_);
  find.run(count,
           FindExpert{find.reads(received_starts_), static_cast<int>(received_starts_.count()),
                      rank_ * experts_each_, experts_each_, find.writes(experts)});
  app::Kernel kernel(stream_);
  kernel.run(static_cast<int>(floats(count)),
             Work{kernel.reads(experts), problem_.hidden, kernel.writes(rows)});
}

void Layer::combine(const app::Array<float>& rows, int count, const app::Array<float>& result) {
  app::Kernel kernel(stream_);
  kernel.run(
      static_cast<int>(floats(count)),
      Combine{kernel.reads(rows), problem_.hidden, problem_.top,
              Place{kernel.reads(chosen_), kernel.reads(places_), kernel.reads(sent_starts_)},
              kernel.writes(result)});
}

}  // namespace moe
