// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What `accord info` shows of collective libraries: accord_ccl_json of accord.h.
#include <accord/accord.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ccl/library.h"

namespace accord::ccl {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(Library& library) {
  const Status opened = library.open();
  if (!opened.ok()) return {{"name", library.name()}, {"usable", false}, {"why", opened.message()}};
  const accord_ccl_description& description = library.description();
  return {{"name", library.name()},
          {"usable", true},
          {"version", description.version},
          {"path", description.path},
          {"functions", description.found}};
}

std::string text() {
  Json rows = Json::array();
  for (Library* library : libraries()) rows.push_back(json_of(*library));
  return rows.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace
}  // namespace accord::ccl

extern "C" __attribute__((visibility("default"))) size_t accord_ccl_json(char* buffer,
                                                                         size_t capacity) {
  try {
    const std::string text = accord::ccl::text();
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
