// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "check.h"

namespace moe {
namespace {

struct Number {
  const Tokens& tokens;
  int token;

  ON_BOTH float operator()(int i) const { return tokens.number(token, i); }
};

}  // namespace

long long wrong_numbers(const Problem& problem, const Tokens& tokens, int count, int crowded,
                        const std::vector<float>& result) {
  const Gate gate{problem.experts, problem.top, problem.skew, crowded};
  long long wrong = 0;
  std::size_t at = 0;
  for (int token = 0; token < count; ++token) {
    const Number number{tokens, token};
    int chosen[kTopMax];
    gate.choose(problem.hidden, number, chosen);
    for (int i = 0; i < problem.hidden; ++i, ++at) {
      float sum = 0;
      for (int k = 0; k < problem.top; ++k)
        sum += weight(problem.top, k) * apply_expert(chosen[k], number(i));
      wrong += result[at] != sum;
    }
  }
  return wrong;
}

}  // namespace moe
