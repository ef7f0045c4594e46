// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// By which calls the shares of a random program are completed: one by one, all, any, some, after
// tests.
#include <algorithm>
#include <map>
#include <utility>

#include "generator.h"

namespace accord::model {
namespace generator {

// Waits that fall into one gap on one thread may be one call.
void Generator::add_waits() {
  std::map<std::pair<int, std::size_t>, std::vector<std::size_t>> groups;  // by gap, thread
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending& pending = pending_[i];
    if (!pending.waited) continue;
    if (in_gap(pending.ended)) {
      groups[{gap_of(pending.ended), pending.thread}].push_back(i);
    } else {
      add(pending.thread, pending.ended, Verb::wait, {pending.ref});
    }
  }
  for (auto& [where, group] : groups) add_wait_group(where.second, std::move(group));
}

void Generator::add_wait_group(std::size_t thread, std::vector<std::size_t> group) {
  enum Style : std::uint64_t { separate, all, any, some, tested, kStyles };
  const auto style = static_cast<Style>(random_.below(kStyles));
  if (style == separate) {
    for (const std::size_t i : group) add(thread, pending_[i].ended, Verb::wait, {pending_[i].ref});
    return;
  }
  // Everything at the earliest key: a persistent request may start again right after its own.
  double key = std::numeric_limits<double>::max();
  std::vector<Ref> refs;
  for (const std::size_t i : group) {
    key = std::min(key, pending_[i].ended);
    refs.push_back(pending_[i].ref);
  }
  if (style == any || style == some) {
    // Others that may or may not complete are welcome as long as one surely does.
    std::vector<Ref> wider = refs;
    const auto fresh = std::find_if(group.begin(), group.end(),
                                    [&](std::size_t i) { return !pending_[i].touched; });
    if (fresh != group.end() && random_.percent(60)) {
      pending_[*fresh].sure = true;
      for (Pending& other : pending_) {
        if (other.thread != thread || other.started >= key || other.ended <= key || other.sure)
          continue;
        if (std::find(wider.begin(), wider.end(), other.ref) != wider.end() || random_.percent(50))
          continue;
        other.touched = true;
        wider.push_back(other.ref);
      }
    }
    for (std::size_t i = wider.size(); i > 1; --i) std::swap(wider[i - 1], wider[random_.below(i)]);
    const Verb verb = style == any ? Verb::wait_any : Verb::wait_some;
    add(thread, key, verb, wider);
    for (std::size_t i = 1; i < refs.size() && random_.percent(60); ++i)
      add(thread, key, verb, refs);
  }
  if (style == tested) add(thread, key, Verb::test_all, refs);
  add(thread, key, Verb::wait_all, refs);
}

void Generator::add_tests() {
  for (Pending& pending : pending_) {
    if (pending.sure || !random_.percent(25)) continue;
    // Before its set-up is over, a rank's first thread asks for nothing that another thread has yet
    // to start.
    const double low =
        std::max(pending.started, program_.threads > 1 ? at_tick(setup_ticks_) + 0.95 : 0.0);
    const double key = low + (pending.ended - low) * (0.01 + 0.98 * uniform());
    std::vector<Ref> refs{pending.ref};
    pending.touched = true;
    if (random_.percent(30)) {
      for (Pending& other : pending_) {
        if (&other == &pending || other.sure || other.thread != pending.thread) continue;
        if (other.started >= key || other.ended <= key || random_.percent(50)) continue;
        other.touched = true;
        refs.push_back(other.ref);
      }
    }
    const Verb verb = refs.size() > 1       ? Verb::test_all
                      : random_.percent(50) ? Verb::test
                                            : Verb::status;
    add(pending.thread, key, verb, std::move(refs));
  }
}

Program Generator::make() {
  plan();
  place();
  add_waits();
  add_tests();
  for (auto& drafts : drafts_) {
    std::stable_sort(drafts.begin(), drafts.end(),
                     [](const Draft& a, const Draft& b) { return a.key < b.key; });
    program_.lists.emplace_back();
    for (Draft& draft : drafts) program_.lists.back().push_back(std::move(draft.action));
  }
  return std::move(program_);
}

}  // namespace generator

Program generate(std::uint64_t seed, const GeneratorOptions& options) {
  return generator::Generator(seed, options).make();
}

}  // namespace accord::model
