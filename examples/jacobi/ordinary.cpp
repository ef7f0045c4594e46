// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ordinary program. The first and last row are made on a stream of their own and sent while the
// inner rows are made. The host waits for the former alone; the next sweep of the first and last
// row begins once the inner ones are there, which the streams see to.
#include "borders.h"
#include "residuals.h"
#include "ways.h"

namespace jacobi {
namespace {

template <class SomeBorders>
class Ordinary : public Way {
 public:
  Ordinary(const Grid& grid, bool in_host_memory)
      : grid_(grid), borders_(grid, time_), residuals_(grid.blocks(), in_host_memory, time_) {}

  std::vector<float> run(int sweeps, int every) override {
    for (int sweep = 0; sweep < sweeps; ++sweep) make(sweep, every > 0 && (sweep + 1) % every == 0);
    outer_.synchronise();
    inner_.synchronise();
    return residuals_.take();
  }

 private:
  void make(int sweep, bool is_checked) {
    float* const changes = is_checked ? residuals_.changes() : nullptr;
    const int first = grid_.border_blocks();
    borders_.receive(sweep);
    inner_rows_are_made_.hold(outer_);
    app::launch_on(outer_, first, grid_.kernel(sweep, 0, changes));
    borders_.begin(sweep, outer_);
    // These read the borders of no other rank, so of the last sweep they need what is there.
    app::launch_on(inner_, grid_.blocks() - first, grid_.kernel(sweep, first, changes));
    outer_.synchronise();
    borders_.send(sweep);
    residuals_.combine();
    if (is_checked) residuals_.measure(inner_);
    inner_rows_are_made_.record(inner_);
    borders_.wait(sweep, outer_);
  }

  const Grid& grid_;
  app::Stream outer_;
  app::Stream inner_;
  app::Event inner_rows_are_made_;
  SomeBorders borders_;
  Residuals residuals_;
};

}  // namespace

std::unique_ptr<Way> ordinary_way(const Grid& grid) {
  return std::make_unique<Ordinary<DeviceBorders>>(grid, false);
}

std::unique_ptr<Way> put_way(const Grid& grid) {
  return std::make_unique<Ordinary<PutBorders>>(grid, false);
}

std::unique_ptr<Way> staged_way(const Grid& grid) {
  return std::make_unique<Ordinary<StagedBorders>>(grid, true);
}

}  // namespace jacobi
