// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fft3d {
namespace {

using Index = std::array<int, 3>;

constexpr double kPi = 3.14159265358979323846;
constexpr long long kSmall = 4096;  // points, of which every wave number is summed up
constexpr int kSome = 16;

template <class Body>
void for_each(const Box& box, const Body& body) {
  std::size_t element = 0;
  Index at;
  for (at[0] = box.first[0]; at[0] < box.first[0] + box.size[0]; ++at[0])
    for (at[1] = box.first[1]; at[1] < box.first[1] + box.size[1]; ++at[1])
      for (at[2] = box.first[2]; at[2] < box.first[2] + box.size[2]; ++at[2]) body(element++, at);
}

bool contains(const Box& box, const Index& at) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (at[axis] < box.first[axis] || at[axis] >= box.first[axis] + box.size[axis]) return false;
  return true;
}

std::uint64_t scrambled(std::uint64_t x) {
  x = (x + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// The same on any number of ranks.
double random_number(const Index& at, std::uint64_t part) {
  std::uint64_t x = part;
  for (const int i : at) x = scrambled(x + static_cast<std::uint64_t>(i));
  return static_cast<double>(x >> 11U) * 0x1p-52 - 1;
}
Complex random_point(const Index& at) { return {random_number(at, 0), random_number(at, 1)}; }

// Another for each axis, so that no two axes may change places.
int sine_waves(const Problem& problem, std::size_t axis) {
  return std::max(0, std::min(static_cast<int>(axis) + 1, (problem.size[axis] - 1) / 2));
}

Complex sine_point(const Problem& problem, const Index& at) {
  double product = 1;
  for (std::size_t axis = 0; axis < 3; ++axis)
    product *= std::sin(2 * kPi * sine_waves(problem, axis) * at[axis] / problem.size[axis]);
  return product;
}

// A sine has two wave numbers, n / 2i and its conjugate.
Complex sine_wave(const Problem& problem, const Index& at) {
  Complex product = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int n = problem.size[axis];
    const int waves = sine_waves(problem, axis);
    const int sign = waves == 0 ? 0 : at[axis] == waves ? 1 : at[axis] == n - waves ? -1 : 0;
    product *= Complex(0, -sign * 0.5 * n);
  }
  return product;
}

}  // namespace

Checker::Checker(MPI_Comm comm, const Problem& problem, Transform3d& transform)
    : comm_(comm), problem_(problem), transform_(transform) {}

double Checker::sine(Array<double>& points, Array<Complex>& waves) {
  forward([&](const Index& at) { return sine_point(problem_, at); }, points, waves);
  double error = 0;
  for_each(transform_.waves(), [&](std::size_t element, const Index& at) {
    error = std::max(error, std::abs(found_[element] - sine_wave(problem_, at)));
  });
  return largest(error) / (points_in_all() / 8);
}

double Checker::definition(Array<double>& points, Array<Complex>& waves) {
  forward(random_point, points, waves);
  double error = 0;
  double scale = 0;
  for (const Index& wave : wave_numbers_to_look_at()) {
    Complex sum = wave_of_my_points(wave);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm_);
    scale = std::max(scale, std::abs(sum));
    if (contains(transform_.waves(), wave)) error = std::max(error, std::abs(found_at(wave) - sum));
  }
  return largest(error) / scale;
}

double Checker::round_trip(const Array<Complex>& waves, Array<double>& returned) {
  returned.write(std::vector<double>(sent_.size(), -1));
  transform_.backward(waves.data(), returned.data());
  const std::vector<double> got = returned.read();
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    error = std::max(error, std::abs(got[i] / points_in_all() - sent_[i]));
  return largest(error);
}

double Checker::points_in_all() const {
  return static_cast<double>(problem_.size[0]) * problem_.size[1] * problem_.size[2];
}

double Checker::largest(double mine) const {
  // A maximum may pass over what is not a number.
  double value = std::isnan(mine) ? HUGE_VAL : mine;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return value;
}

void Checker::forward(const std::function<Complex(const Index&)>& value, Array<double>& points,
                      Array<Complex>& waves) {
  sent_.clear();
  for_each(transform_.points(), [&](std::size_t, const Index& at) {
    const Complex point = value(at);
    sent_.push_back(point.real());
    if (!problem_.real) sent_.push_back(point.imag());
  });
  points.write(sent_);
  waves.write(std::vector<Complex>(transform_.waves().elements(), {-1, -1}));
  transform_.forward(points.data(), waves.data());
  found_ = waves.read();
}

std::vector<Checker::Index> Checker::wave_numbers_to_look_at() const {
  Box all{{}, problem_.size};
  all.size[2] = wave_numbers(problem_.size[2], problem_.real);
  std::vector<Index> waves;
  if (points_in_all() <= kSmall) {
    for_each(all, [&](std::size_t, const Index& at) { waves.push_back(at); });
    return waves;
  }
  for (std::uint64_t i = 0; i < kSome; ++i) {
    Index wave;
    for (std::size_t axis = 0; axis < 3; ++axis)
      wave[axis] =
          static_cast<int>(scrambled(3 * i + axis) % static_cast<std::uint64_t>(all.size[axis]));
    waves.push_back(wave);
  }
  return waves;
}

Complex Checker::wave_of_my_points(const Index& wave) const {
  std::array<std::vector<Complex>, 3> turns;  // of this wave, point by point along an axis
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (long long i = 0; i < problem_.size[axis]; ++i) {
      const auto part = static_cast<double>(i * wave[axis] % problem_.size[axis]);
      turns[axis].push_back(std::polar(1.0, -2 * kPi * part / problem_.size[axis]));
    }
  const auto turn = [&](std::size_t axis, const Index& at) {
    return turns[axis][static_cast<std::size_t>(at[axis])];
  };
  Complex sum = 0;
  for_each(transform_.points(), [&](std::size_t element, const Index& at) {
    const Complex point = problem_.real ? Complex(sent_[element])
                                        : Complex(sent_[2 * element], sent_[2 * element + 1]);
    sum += point * (turn(0, at) * turn(1, at) * turn(2, at));
  });
  return sum;
}

Complex Checker::found_at(const Index& wave) const {
  const Box& box = transform_.waves();
  std::size_t element = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    element = element * static_cast<std::size_t>(box.size[axis]) +
              static_cast<std::size_t>(wave[axis] - box.first[axis]);
  return found_[element];
}

}  // namespace fft3d
