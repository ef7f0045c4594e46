// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A table of accord tune, as ACCORD_TABLE names a file of.
#include "coll/select/table.h"

#include <nlohmann/json.hpp>

#include "fuzz.h"

namespace {

using accord::coll::Table;

// Whatever the file holds, what is said of it is a line, and not a long one.
void check_message(const std::string& message) {
  FUZZ_CHECK(!message.empty() && message.size() < 1000);
  for (const char c : message) FUZZ_CHECK(static_cast<unsigned char>(c) >= ' ');
}

// Where it says anything of a call, it does of that call with any size.
void check_ranges(const Table& table) {
  const std::size_t sizes[] = {0, 1, 4096, SIZE_MAX};
  for (const char* name : accord::coll::all_collectives()) {
    const auto kind = accord::coll::find_collective(name);
    if (!kind) continue;
    for (const int ranks : {0, 2, 8}) {
      const auto* const first = table.find(*kind, ranks, 0);
      for (const std::size_t size_bytes : sizes) {
        const auto* const range = table.find(*kind, ranks, size_bytes);
        FUZZ_CHECK((range == nullptr) == (first == nullptr));
        FUZZ_CHECK(range == nullptr || range->first_bytes <= size_bytes);
      }
    }
  }
  for (const std::size_t size_bytes : sizes) {
    FUZZ_CHECK((table.find_message(size_bytes) == nullptr) == (table.find_message(0) == nullptr));
    FUZZ_CHECK((table.find_net_message(size_bytes) == nullptr) ==
               (table.find_net_message(0) == nullptr));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
  Table table;
  const accord::Status status = Table::parse(text, table);
  if (!status.ok()) {
    FUZZ_CHECK(table.empty() && table.runtime().empty() && table.hash() == Table().hash());
    check_message(status.message());
    return 0;
  }
  FUZZ_CHECK(!table.runtime().empty());
  check_ranges(table);
  (void)table.has_design();
  // Written anew, with other blanks and its members in another order, it means the same.
  Table again;
  FUZZ_CHECK(Table::parse(nlohmann::json::parse(text).dump(1), again).ok());
  FUZZ_CHECK(again.hash() == table.hash() && again.runtime() == table.runtime());
  return 0;
}
