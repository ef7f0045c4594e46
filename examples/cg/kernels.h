// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of conjugate gradients. Scalars are read where they are: in device memory.
#pragma once

#include "../common/device.h"
#include "../common/grid.h"

namespace cg {

// The matrix of Poisson's equation: six times a point minus its neighbours, which are 0 beyond the
// end of the grid.
ON_BOTH inline double poisson(const double* at, int sx, int sy) {
  return 6 * at[0] - at[-sx] - at[sx] - at[-sy] - at[sy] - at[-1] - at[1];
}

// q = A p at the points of some boxes.
struct Multiply {
  const double* p;
  double* q;
  app::Boxes boxes;
  app::Layout layout;
  ON_DEVICE void operator()(int i) const {
    const int at = boxes.place(layout, i);
    q[at] = poisson(p + at, layout.stride_x(), layout.stride_y());
  }
};

// a . b without their ghosts.
struct Dot {
  const double* a;
  const double* b;
  app::Boxes all;
  app::Layout layout;
  ON_DEVICE double operator()(int i) const {
    const int at = all.place(layout, i);
    return a[at] * b[at];
  }
};

// to += sign * above / below * from. Nothing is added if `below` is 0: then all is solved.
struct AddScaled {
  double* to;
  const double* from;
  double sign;
  const double* above;
  const double* below;
  app::Boxes all;
  app::Layout layout;
  ON_DEVICE void operator()(int i) const {
    const int at = all.place(layout, i);
    if (*below != 0) to[at] += sign * (*above / *below) * from[at];
  }
};

// p = r + above / below * p
struct Turn {
  double* p;
  const double* r;
  const double* above;
  const double* below;
  app::Boxes all;
  app::Layout layout;
  ON_DEVICE void operator()(int i) const {
    const int at = all.place(layout, i);
    p[at] = r[at] + (*below == 0 ? 0 : *above / *below * p[at]);
  }
};

// difference = b - q
struct Subtract {
  double* difference;
  const double* b;
  const double* q;
  app::Boxes all;
  app::Layout layout;
  ON_DEVICE void operator()(int i) const {
    const int at = all.place(layout, i);
    difference[at] = b[at] - q[at];
  }
};

}  // namespace cg
