// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "symptom.h"

namespace accord::model {
namespace {

using Verb = Action::Verb;

// Another schedule may be needed once calls are gone.
constexpr std::uint64_t kSchedules = 40;
constexpr int kRunsMax = 20'000;

// Drops all references for which `gone` holds, and actions left without any.
void drop_refs(Program& program, const std::function<bool(const Ref&)>& gone) {
  for (auto& list : program.lists) {
    for (Action& action : list) std::erase_if(action.refs, gone);
    std::erase_if(list, [](const Action& action) {
      return action.refs.empty() && action.verb != Verb::open && action.verb != Verb::await;
    });
  }
}

void drop_event(Program& program, int number) {
  const std::vector<int> children = program.events[static_cast<std::size_t>(number)].children;
  drop_refs(program, [number](const Ref& ref) { return ref.event == number; });
  for (std::size_t other = 0; other < program.events.size(); ++other) {
    if (std::find(children.begin(), children.end(), program.events[other].comm) != children.end()) {
      drop_event(program, static_cast<int>(other));
    }
  }
}

bool uses(const Program& program, int number) {
  for (const auto& list : program.lists) {
    for (const Action& action : list) {
      if (!action.refs.empty() && action.refs.front().event == number) return true;
    }
  }
  return false;
}

// Of part number `index`, which is gone.
void drop_weights(Event& event, std::size_t index) {
  if (!has_uneven_pairs(event.collective)) {
    if (!event.weights.empty())
      event.weights.erase(event.weights.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  const std::size_t before = event.parts.size() + 1;
  std::vector<std::size_t> left;
  for (std::size_t pair = 0; pair < event.weights.size(); ++pair)
    if (pair / before != index && pair % before != index) left.push_back(event.weights[pair]);
  event.weights = std::move(left);
}

// Takes the last rank out of everything.
bool drop_last_rank(Program& program) {
  if (program.ranks == 2) return false;
  const int rank = --program.ranks;
  for (std::size_t number = 0; number < program.events.size(); ++number) {
    Event& event = program.events[number];
    const auto is_gone = [&](const Part& part) { return part.rank == rank; };
    if (event.kind != Event::Kind::collective) {
      if (std::any_of(event.parts.begin(), event.parts.end(), is_gone))
        drop_event(program, static_cast<int>(number));
      continue;
    }
    const auto gone = std::find_if(event.parts.begin(), event.parts.end(), is_gone);
    if (gone == event.parts.end()) continue;
    const int index = static_cast<int>(gone - event.parts.begin());
    event.parts.erase(gone);
    if (!event.colors.empty()) event.colors.erase(event.colors.begin() + index);
    drop_weights(event, static_cast<std::size_t>(index));
    if (event.root == index) event.root = 0;
    if (event.root > index) --event.root;
    drop_refs(program, [&](const Ref& ref) {
      return ref.event == static_cast<int>(number) && ref.part == index;
    });
    for (auto& list : program.lists) {
      for (Action& action : list) {
        for (Ref& ref : action.refs) {
          if (ref.event == static_cast<int>(number) && ref.part > index) --ref.part;
        }
      }
    }
  }
  for (auto& members : program.comms) std::erase(members, rank);
  program.lists.resize(static_cast<std::size_t>(program.ranks * program.threads));
  return true;
}

bool drop_round(Program& program, std::size_t number, int round) {
  Event& event = program.events[number];
  if (event.rounds == 1) return false;
  --event.rounds;
  const auto is_gone = [&](const Ref& ref) {
    return ref.event == static_cast<int>(number) && ref.round == round;
  };
  for (auto& list : program.lists) {
    for (Action& action : list) {
      // The release at the end of a persistent request names the last round, and the initialisation
      // the first.
      const bool persistent =
          !action.refs.empty() && is_gone(action.refs[0]) &&
          (event.persistent ||
           event.parts[static_cast<std::size_t>(action.refs[0].part)].persistent);
      if (persistent && (action.verb == Verb::release || action.verb == Verb::init)) {
        action.refs[0].round =
            action.verb == Verb::release && round == event.rounds ? round - 1 : -1;
      }
    }
  }
  drop_refs(program, is_gone);
  for (auto& list : program.lists) {
    for (Action& action : list) {
      for (Ref& ref : action.refs) {
        if (ref.event != static_cast<int>(number)) continue;
        if (ref.round > round) --ref.round;
        ref.round = std::max(ref.round, 0);
      }
    }
  }
  return true;
}

class Shrinker {
 public:
  Shrinker(Failure failure, RunProgram run_program)
      : best_(std::move(failure)),
        symptom_(symptom_of(best_.message)),
        run_program_(std::move(run_program)) {}

  Failure run() {
    for (bool smaller = true; smaller && runs_ < kRunsMax;) {
      smaller = drop_events() | drop_ranks() | drop_rounds() | drop_actions() |
                simplify_exchange() | simplify_data();
    }
    return best_;
  }

 private:
  bool accept(const Program& candidate) {
    RunOptions reference;
    reference.backend = RunOptions::Backend::reference;
    ++runs_;
    if (!run_program_(candidate, reference).empty()) return false;
    for (std::uint64_t i = 0; i < kSchedules && runs_ < kRunsMax; ++i, ++runs_) {
      RunOptions options = best_.options;
      options.seed += i;
      const std::string message = run_program_(candidate, options);
      if (message.empty() || symptom_of(message) != symptom_) continue;
      best_ = {candidate, options, message};
      return true;
    }
    return false;
  }

  bool drop_events() {
    bool any = false;
    for (int number = static_cast<int>(best_.program.events.size()) - 1; number >= 0; --number) {
      if (!uses(best_.program, number)) continue;
      Program candidate = best_.program;
      drop_event(candidate, number);
      any = accept(candidate) || any;
    }
    return any;
  }

  bool drop_ranks() {
    Program candidate = best_.program;
    return drop_last_rank(candidate) && accept(candidate);
  }

  bool drop_rounds() {
    bool any = false;
    for (std::size_t number = 0; number < best_.program.events.size(); ++number) {
      for (int round = best_.program.events[number].rounds - 1; round >= 0; --round) {
        Program candidate = best_.program;
        any = (drop_round(candidate, number, round) && accept(candidate)) || any;
      }
    }
    return any;
  }

  // Calls that only look, or complete what a later call completes anyway.
  bool drop_actions() {
    bool any = false;
    for (std::size_t list = 0; list < best_.program.lists.size(); ++list) {
      for (std::size_t i = best_.program.lists[list].size(); i-- > 0;) {
        const Verb verb = best_.program.lists[list][i].verb;
        if (verb != Verb::test && verb != Verb::status && verb != Verb::test_all &&
            verb != Verb::wait_any && verb != Verb::wait_some && verb != Verb::probe &&
            verb != Verb::iprobe) {
          continue;
        }
        Program candidate = best_.program;
        candidate.lists[list].erase(candidate.lists[list].begin() + static_cast<std::ptrdiff_t>(i));
        any = accept(candidate) || any;
      }
    }
    return any;
  }

  // Without exchange regions and inboxes, or one of them, or with devices that refuse nothing.
  bool simplify_exchange() {
    ExchangeOptions simple = best_.program.exchange;
    simple.refused_percent = simple.lending_refused_percent = 0;
    simple.kernels_percent = 100;
    simple.exclusive_percent = 0;
    simple.packets = false;
    ExchangeOptions without_inboxes = best_.program.exchange;
    without_inboxes.lane_bytes = 0;
    ExchangeOptions without_regions = best_.program.exchange;
    without_regions.node_bytes = 0;
    ExchangeOptions without_knobs = best_.program.exchange;
    without_knobs.knobs = {};
    without_knobs.descriptors = false;
    for (const auto& exchange :
         {ExchangeOptions{}, without_inboxes, without_regions, simple, without_knobs}) {
      if (exchange == best_.program.exchange) continue;
      Program candidate = best_.program;
      candidate.exchange = exchange;
      if (accept(candidate)) return true;
    }
    return false;
  }

  bool simplify_data() {
    bool any = false;
    const auto attempt = [&](const std::function<bool(Program&)>& change) {
      Program candidate = best_.program;
      if (change(candidate) && accept(candidate)) any = true;
    };
    for (std::size_t number = 0; number < best_.program.events.size(); ++number) {
      if (!uses(best_.program, static_cast<int>(number))) continue;
      attempt([&](Program& program) {
        Event& event = program.events[number];
        if (event.elements <= 1 && event.spare_elements == 0) return false;
        event.elements = std::min<std::size_t>(event.elements, 1);
        event.block_elements = 1;
        event.spare_elements = 0;
        return true;
      });
      attempt([&](Program& program) {
        std::vector<std::size_t>& weights = program.events[number].weights;
        const bool differ = std::ranges::any_of(weights, [](std::size_t one) { return one != 1; });
        std::ranges::fill(weights, 1);
        return differ;
      });
      attempt([&](Program& program) {  // without the communicator that only renames the world
        Event& event = program.events[number];
        // With several threads a rank, each communicator is one thread's.
        const bool same = program.threads == 1 && event.comm != 0 &&
                          program.comms[static_cast<std::size_t>(event.comm)] == program.comms[0];
        event.comm = same ? 0 : event.comm;
        return same;
      });
      for (std::size_t part = 0; part < best_.program.events[number].parts.size(); ++part) {
        attempt([&](Program& program) {
          Part& changed = program.events[number].parts[part];
          const bool was = changed.send.gap_elements != 0 || changed.recv.gap_elements != 0;
          changed.send.gap_elements = changed.recv.gap_elements = 0;
          return was;
        });
        attempt([&](Program& program) {
          Part& changed = program.events[number].parts[part];
          const bool was = changed.send.pool >= 0 || changed.recv.pool >= 0;
          changed.send.pool = changed.recv.pool = -1;
          return was;
        });
        attempt([&](Program& program) {
          Part& changed = program.events[number].parts[part];
          const bool was = changed.send.place != Place::host || changed.recv.place != Place::host;
          changed.send.place = changed.recv.place = Place::host;
          return was;
        });
      }
    }
    return any;
  }

  Failure best_;
  const Symptom symptom_;
  const RunProgram run_program_;
  int runs_ = 0;
};

}  // namespace

Failure shrink(const Program& program, const RunOptions& options, const std::string& message,
               RunProgram run_program) {
  return Shrinker({program, options, message}, std::move(run_program)).run();
}

std::string Failure::text() const {
  return fmt::format("{}\nschedule seed {}, program:\n{}", message, options.seed, to_text(program));
}

}  // namespace accord::model
