// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What programs written out by hand share: numbers in buffers, and an allreduce of them.
#pragma once

#include <numeric>
#include <vector>

#include "runner.h"
#include "user_buffer.h"

namespace accord::model {

inline constexpr std::uint64_t kSchedules = 60;

inline std::vector<std::int64_t> numbers(std::size_t count, std::int64_t first) {
  std::vector<std::int64_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline void expect(Rank& rank, const UserBuffer& buffer, const std::vector<std::int64_t>& values) {
  if (const std::string wrong = buffer.difference(values); !wrong.empty())
    rank.scheduler.fail(wrong);
}

struct Allreduce {
  Allreduce(Place place, std::size_t count, std::int64_t first)
      : send({place, 0}, count, 1), recv({place, 0}, count, 1) {
    send.fill(numbers(count, first));
    args.kind = Collective::allreduce;
    args.op = Op::sum;
    args.send = send.argument();
    args.recv = recv.argument();
  }
  UserBuffer send;
  UserBuffer recv;
  CollectiveArgs args{};
};

}  // namespace accord::model
