// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The verdict on a case: both passes must have left the same bytes everywhere and logged the same
// values.
#include <algorithm>
#include <cstdio>
#include <map>

#include "run.h"

namespace accord::conformance {
namespace {

constexpr std::size_t kLinesMax = 4;

std::string hex(const std::vector<std::byte>& bytes, std::size_t at) {
  std::string text;
  char part[4];
  for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i) {
    std::snprintf(part, sizeof part, "%02x", static_cast<unsigned>(bytes[i]));
    text += part;
  }
  return text;
}

bool has(const std::vector<bool>& bytes, std::size_t at) { return !bytes.empty() && bytes[at]; }

// Whether a difference at this byte is none. Padding inside a pair is a gap and must be left alone,
// unless the host MPI itself writes it; in host memory it was the host MPI that wrote.
bool excused(const Buffer& expected, const Buffer& got, std::size_t at) {
  if (has(got.loose, at)) return true;
  if (!has(got.soft, at)) return false;
  const bool host = got.kind == ACCORD_MEMORY_HOST || got.kind == ACCORD_MEMORY_PINNED;
  return host || got.result[at] == got.image[at] || expected.result[at] != expected.image[at];
}

std::vector<std::byte> defined_bytes(const Buffer& buffer) {
  std::vector<std::byte> bytes = buffer.result;
  clear_undefined(buffer, bytes);
  return bytes;
}

// One line about the first byte that differs, or nothing.
std::string first_difference(const Buffer& expected, const Buffer& got) {
  if (expected.size_bytes != got.size_bytes) return "the harness made buffers of two sizes";
  if (expected.result == got.result) return {};
  std::size_t first = got.size_bytes;
  std::size_t different = 0;
  std::size_t untouched = 0;  // the MPI left these bytes alone, the tested side did not
  for (std::size_t i = 0; i < got.size_bytes; ++i) {
    if (expected.result[i] == got.result[i] || excused(expected, got, i)) continue;
    first = std::min(first, i);
    ++different;
    if (expected.result[i] == expected.image[i]) ++untouched;
  }
  if (different == 0) return {};
  const auto offset = static_cast<std::ptrdiff_t>(first) - got.origin_bytes;
  std::string line = std::string(got.role) + " buffer (" + memory_name(got.kind) + ", " +
                     std::to_string(got.size_bytes) +
                     " bytes with guards): " + std::to_string(different) + " bytes differ, " +
                     std::to_string(untouched) + " of them not to be written; first at offset " +
                     std::to_string(offset) + ": expected " + hex(expected.result, first) +
                     " got " + hex(got.result, first);
  if (got.result[first] == got.image[first]) line += " (the old value)";
  return line;
}

// Bytes outside the type map that the oracle itself wrote: a defect of the host MPI or of the
// harness.
std::string oracle_gap(const Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.data.size(); ++i) {
    if (buffer.data[i] || has(buffer.loose, i) || has(buffer.soft, i)) continue;
    if (buffer.result[i] != buffer.image[i])
      return std::string(buffer.role) + " buffer: " + kOracleMark + "wrote a gap byte at offset " +
             std::to_string(static_cast<std::ptrdiff_t>(i) - buffer.origin_bytes);
  }
  return {};
}

void compare_logs(const Run& oracle, const Run& tested, std::vector<std::string>& lines) {
  const auto& expected = oracle.log_entries();
  const auto& got = tested.log_entries();
  for (std::size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    if (i >= expected.size() || i >= got.size()) {
      lines.push_back("logged " + std::to_string(got.size()) + " values, expected " +
                      std::to_string(expected.size()));
      return;
    }
    if (expected[i].label == got[i].label && expected[i].value == got[i].value) continue;
    lines.push_back(got[i].label + ": expected " + std::to_string(expected[i].value) + " got " +
                    std::to_string(got[i].value));
    if (expected[i].label != got[i].label) lines.back() += " (expected " + expected[i].label + ")";
    if (lines.size() >= kLinesMax) return;
  }
}

// Buffers that wildcard receives filled: the same contents, in any order.
void compare_unordered(const Run& oracle, const Run& tested, std::vector<std::string>& lines) {
  std::map<int, std::vector<std::vector<std::byte>>> expected;
  std::map<int, std::vector<std::vector<std::byte>>> got;
  for (const Buffer& b : oracle.buffers())
    if (b.unordered_group >= 0) expected[b.unordered_group].push_back(defined_bytes(b));
  for (const Buffer& b : tested.buffers())
    if (b.unordered_group >= 0) got[b.unordered_group].push_back(defined_bytes(b));
  for (auto& [group, contents] : expected) {
    std::sort(contents.begin(), contents.end());
    std::sort(got[group].begin(), got[group].end());
    if (contents != got[group])
      lines.push_back("the " + std::to_string(contents.size()) +
                      " buffers of a group of wildcard receives hold other contents");
  }
}

}  // namespace

std::vector<std::string> compare(const Run& oracle, const Run& tested) {
  std::vector<std::string> lines = oracle.failures();
  lines.insert(lines.end(), tested.failures().begin(), tested.failures().end());
  if (oracle.buffers().size() != tested.buffers().size()) {
    lines.push_back("the harness made another number of buffers on the two sides");
    return lines;
  }
  for (std::size_t i = 0; i < oracle.buffers().size(); ++i) {
    const std::string gap = oracle_gap(oracle.buffers()[i]);
    if (!gap.empty()) lines.push_back("buffer " + std::to_string(i) + ", " + gap);
    if (tested.buffers()[i].unordered_group >= 0) continue;
    const std::string line = first_difference(oracle.buffers()[i], tested.buffers()[i]);
    if (!line.empty()) lines.push_back("buffer " + std::to_string(i) + ", " + line);
  }
  compare_unordered(oracle, tested, lines);
  compare_logs(oracle, tested, lines);
  if (lines.size() > kLinesMax) lines.resize(kLinesMax);
  return lines;
}

}  // namespace accord::conformance
