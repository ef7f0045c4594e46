// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What core/selection would choose, told to programs: the part of the public C API that names
// algorithms. No exception leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "accord/accord.h"
#include "base/config.h"
#include "core/selection.h"

namespace accord::core {
namespace {

using Json = nlohmann::ordered_json;

std::string algorithms_text() {
  Json algorithms = Json::array();
  for (const AlgorithmRow& row : all_algorithms())
    algorithms.push_back({{"name", row.name}, {"path", row.path}});
  return Json{{"algorithms", algorithms}, {"collectives", all_collectives()}}.dump();
}

std::string reason_of(const Asked& asked) {
  switch (asked.origin) {
    case Origin::setting:
      return fmt::format("ACCORD_ALGORITHM is {}", config().algorithm);
    case Origin::info:
      return "the info of the communicator asks for it";
    case Origin::table:
      return fmt::format("the table {} says so", config().table);
    case Origin::rule:
      break;
  }
  return "the built-in rule: ACCORD_INBOX_BYTES, ACCORD_NODE_BYTES, ACCORD_DIRECT_BYTES, "
         "ACCORD_SPREAD_BYTES, ACCORD_ONE_SHOT_BYTES, ACCORD_TWO_LEVEL_BYTES and "
         "ACCORD_PIPELINE_BYTES";
}

std::string explain_text(const std::string& collective, int ranks, std::size_t size_bytes,
                         const char* info) {
  const auto kind = find_collective(collective);
  if (!kind || ranks < 1) {
    return Json{{"error", fmt::format("{} among {} ranks: no collective that Accord knows",
                                      collective, ranks)}}
        .dump();
  }
  std::string problem;
  const auto of_comm = AlgorithmChoice::parse(info == nullptr ? "auto" : info, problem);
  const Table& table = configured_table();
  const Sources sources{&algorithm_choice(), &of_comm, &table};
  const Asked asked = asked_for(sources, *kind, ranks, size_bytes);
  const Question question{.kind = *kind,
                          .ranks = ranks,
                          .size_bytes = size_bytes,
                          .longest_bytes = size_bytes,
                          .can_be_cut = can_be_cut(*kind)};
  Json answer = {{"collective", collective},
                 {"ranks", ranks},
                 {"size_bytes", size_bytes},
                 {"algorithm", name_of(outcome(question, asked))},
                 {"across_nodes", name_of(outcome_across_nodes(question, asked))},
                 {"asked", name_of(asked.algorithm)},
                 {"origin", name_of(asked.origin)},
                 {"reason", reason_of(asked)},
                 {"rule", name_of(outcome(question, {}))},
                 {"table", config().table},
                 {"problems", Json::array()}};
  for (const std::string& text : {algorithm_problem(), table_problem(), problem}) {
    if (!text.empty()) answer["problems"].push_back(text);
  }
  // Which operations and types a library has, only the call itself tells.
  if (asked.algorithm.library != nullptr) {
    Asked without = asked;
    without.algorithm.library = nullptr;
    answer["otherwise"] = name_of(outcome(question, without));
  }
  if (const auto* range = table.find(*kind, ranks, size_bytes); range != nullptr)
    answer["table_says"] = {{"first_bytes", range->first_bytes},
                            {"algorithm", name_of(range->algorithm)}};
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Whatever went wrong on the way, the caller gets text or a size of 0.
template <class Text>
std::size_t give(char* buffer, std::size_t capacity, Text make_text) noexcept {
  try {
    const std::string text = make_text();
    if (buffer != nullptr && capacity > 0) {
      const std::size_t length = std::min(text.size(), capacity - 1);
      std::memcpy(buffer, text.data(), length);
      buffer[length] = '\0';
    }
    return text.size() + 1;
  } catch (...) {
    return 0;
  }
}

}  // namespace
}  // namespace accord::core

#define ACCORD_EXPORT extern "C" __attribute__((visibility("default")))

ACCORD_EXPORT size_t accord_algorithms_json(char* buffer, size_t capacity) {
  return accord::core::give(buffer, capacity, accord::core::algorithms_text);
}

ACCORD_EXPORT size_t accord_explain_json(const char* collective, int ranks, size_t size_bytes,
                                         const char* info, char* buffer, size_t capacity) {
  return accord::core::give(buffer, capacity, [&] {
    return accord::core::explain_text(collective == nullptr ? "" : collective, ranks, size_bytes,
                                      info);
  });
}
