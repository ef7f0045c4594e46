// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What coll/select/selection would choose, told to programs: the part of the public C API that
// names algorithms. No exception leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "accord/accord.h"
#include "base/config.h"
#include "coll/select/selection.h"
#include "device/adapter_reach.h"
#include "device/packet_reach.h"
#include "device/registry.h"

namespace accord::coll {
namespace {

using Json = nlohmann::ordered_json;

std::vector<const char*> names_of(const Algorithm& algorithm) {
  std::vector<const char*> names;
  for (const NamedVariant& named : algorithm.variants) names.push_back(named.name);
  if (algorithm.variants.empty())
    for (const ccl::Library* library : ccl::libraries()) names.push_back(library->name());
  return names;
}

// One object a line of algorithms.def.
Json descriptions() {
  Json all = Json::array();
  for (const Algorithm* algorithm : all_of_registry()) {
    Json collectives = Json::array();
    for (const char* name : all_collectives())
      if (algorithm->has(*find_collective(name))) collectives.push_back(name);
    all.push_back({{"name", algorithm->name},
                   {"names", names_of(*algorithm)},
                   {"by_host", algorithm->by_host},
                   {"what", algorithm->what},
                   {"steps", algorithm->steps},
                   {"bytes", algorithm->bytes},
                   {"where", algorithm->where},
                   {"collectives", collectives}});
  }
  return all;
}

std::string algorithms_text() {
  Json algorithms = Json::array();
  for (const AlgorithmRow& row : all_algorithms())
    algorithms.push_back({{"name", row.name}, {"path", row.path}});
  Json ways = Json::array();
  for (const MessageWayRow& row : all_message_ways())
    ways.push_back({{"name", row.name}, {"path", row.path}});
  Json net_ways = Json::array();
  for (const NetWayRow& row : all_net_ways())
    net_ways.push_back({{"name", row.name}, {"path", row.path}});
  return Json{{"algorithms", algorithms},
              {"collectives", all_collectives()},
              {"message_ways", ways},
              {"net_message_ways", net_ways},
              {"descriptions", descriptions()}}
      .dump();
}

std::string reason_of(Origin origin, const char* rule) {
  switch (origin) {
    case Origin::setting:
      return fmt::format("ACCORD_ALGORITHM is {}", config().algorithm);
    case Origin::info:
      return "the info of the communicator asks for it";
    case Origin::table:
      return fmt::format("the table {} says so", config().table);
    case Origin::rule:
      break;
  }
  return fmt::format("the built-in rule: {}", rule);
}

constexpr const char* kRuleOfCollectives =
    "ACCORD_INBOX_BYTES, ACCORD_NODE_BYTES, ACCORD_DIRECT_BYTES, ACCORD_SPREAD_BYTES, "
    "ACCORD_ONE_SHOT_BYTES, ACCORD_TWO_LEVEL_BYTES and ACCORD_PIPELINE_BYTES";
constexpr const char* kRuleOfMessages = "ACCORD_P2P_BYTES and ACCORD_COPY_KERNEL_BYTES";

constexpr const char* kRuleOfNetMessages = "ACCORD_NET_DESIGN and ACCORD_NET_BYTES";

void add_problems(Json& answer, const std::string& problem) {
  answer["problems"] = Json::array();
  for (const std::string& text : {algorithm_problem(), table_problem(), problem}) {
    if (!text.empty()) answer["problems"].push_back(text);
  }
}

template <class Range>
void add_range(Json& answer, const Range* range, const char* key = "table_says") {
  if (range != nullptr)
    answer[key] = {{"first_bytes", range->first_bytes}, {"algorithm", name_of(range->algorithm)}};
}

std::string text_of(const Json& answer) {
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Of a message from here to a rank of another node, from device memory that UCX reaches, with a
// core for the proxy.
const char* net_outcome(const AskedNetMessage& asked, std::size_t size_bytes) {
  return name_of(outcome(size_bytes, asked, {.adapters = device::adapter_reach()}));
}

std::string explain_net_message(std::size_t size_bytes, const char* info) {
  std::string problem;
  const auto of_comm = AlgorithmChoice::parse(info == nullptr ? "auto" : info, problem);
  const Table& table = configured_table();
  const auto asked = asked_for_net_message({&algorithm_choice(), &of_comm, &table}, size_bytes);
  const bool by_algorithm = algorithm_choice().of_net_messages() != NetWay();
  const std::string reason = asked.origin == Origin::setting && !by_algorithm
                                 ? fmt::format("ACCORD_NET_DESIGN is {}, ACCORD_NET_BYTES {}",
                                               config().net_design, config().net_bytes)
                                 : reason_of(asked.origin, kRuleOfNetMessages);
  const char* const way = net_outcome(asked, size_bytes);
  Json answer = {{"collective", kNetMessages},
                 {"ranks", kRanksOfMessage},
                 {"size_bytes", size_bytes},
                 {"algorithm", way},
                 {"across_nodes", way},
                 {"asked", name_of(asked.way)},
                 {"origin", name_of(asked.origin)},
                 {"reason", reason},
                 {"rule", net_outcome({}, size_bytes)},
                 {"table", config().table}};
  add_problems(answer, problem);
  add_range(answer, table.find_net_message(size_bytes));
  return text_of(answer);
}

// Of a message to another rank of the node, from and to device memory.
std::string explain_message(std::size_t size_bytes, const char* info) {
  std::string problem;
  const auto of_comm = AlgorithmChoice::parse(info == nullptr ? "auto" : info, problem);
  const Table& table = configured_table();
  const Sources sources{&algorithm_choice(), &of_comm, &table};
  const AskedMessage asked = asked_for_message(sources, size_bytes);
  Json answer = {
      {"collective", kMessages},
      {"ranks", kRanksOfMessage},
      {"size_bytes", size_bytes},
      {"algorithm", name_of(outcome(size_bytes, asked))},
      {"across_nodes", net_outcome(asked_for_net_message(sources, size_bytes), size_bytes)},
      {"asked", name_of(asked.way)},
      {"origin", name_of(asked.origin)},
      {"reason", reason_of(asked.origin, kRuleOfMessages)},
      {"rule", name_of(outcome(size_bytes, AskedMessage{}))},
      {"table", config().table}};
  add_problems(answer, problem);
  add_range(answer, table.find_message(size_bytes));
  return text_of(answer);
}

// Of all devices here, as if each had a rank.
bool devices_take_packets() {
  device::DeviceRuntime& runtime = device::default_runtime();
  std::vector<device::PacketReach> of_all;
  for (int device = 0; device < runtime.device_count(); ++device)
    of_all.push_back(runtime.packet_reach(device));
  return device::all_take_packets(of_all);
}

// So many ranks on the devices here.
bool take_long_turns(int ranks) {
  device::DeviceRuntime& runtime = device::default_runtime();
  const int devices = runtime.device_count();
  std::vector<device::KernelPlace> places;
  for (int rank = 0; rank < ranks && devices != 0; ++rank)
    places.push_back(runtime.kernel_place(rank % devices));
  return device::take_long_turns(places);
}

std::string explain_text(const std::string& collective, int ranks, std::size_t size_bytes,
                         const char* info) {
  if (collective == kMessages) return explain_message(size_bytes, info);
  if (collective == kNetMessages) return explain_net_message(size_bytes, info);
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
  const Reach node{.packets = devices_take_packets(), .in_turns = take_long_turns(ranks)};
  const Reach nodes{.one_node = false, .adapters = device::adapter_reach()};
  const Variant variant = outcome(question, asked, node);
  Json answer = {{"collective", collective},
                 {"ranks", ranks},
                 {"size_bytes", size_bytes},
                 {"algorithm", name_of(variant)},
                 {"as_asked", asked.is_automatic() || asked.is(*variant.algorithm)},
                 {"across_nodes", name_of(outcome(question, asked, nodes))},
                 {"asked", name_of(asked.variant)},
                 {"origin", name_of(asked.origin)},
                 {"reason", reason_of(asked.origin, kRuleOfCollectives)},
                 {"rule", name_of(outcome(question, Asked{}, node))},
                 {"rule_across_nodes", name_of(outcome(question, Asked{}, nodes))},
                 {"table", config().table}};
  add_problems(answer, problem);
  // Which operations and types a library has, only the call itself tells.
  if (asked.variant.library != nullptr) {
    Asked without = asked;
    without.variant = {};
    answer["otherwise"] = name_of(outcome(question, without, node));
  }
  add_range(answer, table.find(*kind, ranks, size_bytes));
  add_range(answer, table.find_across(*kind, ranks, size_bytes), "table_says_across_nodes");
  return text_of(answer);
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
}  // namespace accord::coll

#define ACCORD_EXPORT extern "C" __attribute__((visibility("default")))

ACCORD_EXPORT size_t accord_algorithms_json(char* buffer, size_t capacity) {
  return accord::coll::give(buffer, capacity, accord::coll::algorithms_text);
}

ACCORD_EXPORT size_t accord_explain_json(const char* collective, int ranks, size_t size_bytes,
                                         const char* info, char* buffer, size_t capacity) {
  return accord::coll::give(buffer, capacity, [&] {
    return accord::coll::explain_text(collective == nullptr ? "" : collective, ranks, size_bytes,
                                      info);
  });
}
