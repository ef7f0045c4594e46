// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "watchdog.h"

namespace accord::conformance {
namespace {

constexpr std::ptrdiff_t kGuardBytes = 64;
constexpr std::size_t kDataBytesMax = 8 << 10;  // of buffers whose type map is kept
constexpr int kCorruptEvery = 10;               // every tenth case is broken in a corruption mode

void fill_random(std::byte* target, std::size_t size_bytes, std::uint64_t seed) {
  Rng rng(seed);
  std::size_t at = 0;
  for (; at + 8 <= size_bytes; at += 8) {
    const std::uint64_t word = rng.next();
    std::memcpy(target + at, &word, 8);
  }
  const std::uint64_t word = rng.next();
  std::memcpy(target + at, &word, size_bytes - at);
}

const Api& choose_api(const Environment& environment, Side side, std::uint64_t salt) {
  if (side == Side::oracle) return environment.apis.oracle;
  return mix(salt, 0x706d7069) % 16 == 0 ? environment.apis.tested_pmpi : environment.apis.tested;
}

std::uint64_t case_salt(const Environment& environment, std::int64_t case_number) {
  return mix(environment.options.seed, static_cast<std::uint64_t>(case_number));
}

}  // namespace

Run::Run(Environment& environment, Side side, std::int64_t case_number)
    : global(case_salt(environment, case_number)),
      local(mix(case_salt(environment, case_number), environment.rank)),
      types(choose_api(environment, side, case_salt(environment, case_number))),
      environment_(environment),
      side_(side),
      api_(&choose_api(environment, side, case_salt(environment, case_number))),
      salt_(case_salt(environment, case_number)),
      memory_rng_(mix(salt_, 0x6d656d, environment.rank)),
      mix_kind_(static_cast<int>(mix(salt_, 0x6b696e64) % 10)),
      case_number_(case_number) {}

Run::~Run() { environment_.memory.release_all(); }

Comm& Run::fresh_comm(const Comm& parent) {
  MPI_Comm handle = MPI_COMM_NULL;
  if (parent.member) check(api_->Comm_dup(parent.handle, &handle), "Comm_dup");
  Comm comm = parent;
  comm.name = "fresh";
  comm.handle = handle;
  return fresh_.emplace_back(std::move(comm));
}

// Ten mixes: each buffer at random (4), all in device memory (2), all on the host, one kind a rank,
// send and receive buffers in different kinds (2).
accord_memory Run::draw_kind() {
  const std::vector<accord_memory>& kinds = environment_.kinds;
  const accord_memory drawn = memory_rng_.pick(kinds);
  if (side_ == Side::oracle) return ACCORD_MEMORY_HOST;
  const auto place = [&](std::uint64_t n) { return kinds[n % kinds.size()]; };
  const std::uint64_t rank = static_cast<std::uint64_t>(environment_.rank);
  if (mix_kind_ < 4) return drawn;
  if (mix_kind_ < 6) return kinds.back();
  if (mix_kind_ == 6) return kinds.front();
  if (mix_kind_ == 7) return place(mix(salt_, rank));
  return place(mix(salt_) + buffers_.size());
}

Buffer& Run::buffer(const char* role, Span span, std::size_t align_bytes) {
  const accord_memory kind = draw_kind();
  Buffer& buffer = buffers_.emplace_back();
  buffer.role = role;
  buffer.kind = kind;
  const std::ptrdiff_t below = (-span.low_bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  buffer.origin_bytes = kGuardBytes + below;
  buffer.size_bytes = static_cast<std::size_t>(buffer.origin_bytes + span.high_bytes + kGuardBytes);
  const int steps = static_cast<int>(256 / align_bytes);
  const std::size_t skew =
      memory_rng_.chance(50) ? 0 : static_cast<std::size_t>(memory_rng_.below(steps)) * align_bytes;
  const bool own = memory_rng_.chance(6) || own_allocations_;
  buffer.base = environment_.memory.take(
      {.kind = kind, .size_bytes = buffer.size_bytes, .skew_bytes = skew, .own_allocation = own});
  fill(buffer, 0);
  return buffer;
}

Buffer& Run::buffer(const char* role, const TypeModel& type, std::int64_t count,
                    std::size_t align_bytes) {
  Buffer& made = buffer(role, footprint(type, count), align_bytes);
  set_data(made, type, count, 0);
  set_padding(made, type, count, 0);
  note("buffer " + std::to_string(buffers_.size() - 1) + ", " + role + ": " +
       std::to_string(count) + " of " + type.text + " in " + memory_name(made.kind) + " memory");
  return made;
}

void Run::fill(Buffer& buffer, std::uint64_t salt) {
  const auto index =
      static_cast<std::uint64_t>(std::find_if(buffers_.begin(), buffers_.end(),
                                              [&](const Buffer& b) { return &b == &buffer; }) -
                                 buffers_.begin());
  const std::uint64_t group = buffer.unordered_group >= 0
                                  ? 1000U + static_cast<std::uint64_t>(buffer.unordered_group)
                                  : index;
  const std::uint64_t seed = mix(salt_, environment_.rank, group, salt);
  buffer.image.resize(buffer.size_bytes);
  fill_random(buffer.image.data(), buffer.size_bytes, seed);
  Rng rng(seed);
  if (buffer.paint) buffer.paint(buffer.image.data() + buffer.origin_bytes, rng);
  environment_.memory.write(buffer.base, buffer.image.data(), buffer.size_bytes);
}

void clear_undefined(const Buffer& buffer, std::vector<std::byte>& bytes) {
  for (const std::vector<bool>* undefined : {&buffer.loose, &buffer.soft})
    for (std::size_t i = 0; i < undefined->size(); ++i)
      if ((*undefined)[i]) bytes[i] = std::byte{0};
}

void Run::snapshot(const Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.size_bytes);
  environment_.memory.read(bytes.data(), buffer.base, buffer.size_bytes);
  clear_undefined(buffer, bytes);
  std::uint64_t hash = bytes.size();
  bytes.resize((bytes.size() + 7) / 8 * 8);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], 8);
    hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    hash ^= hash >> 35;
  }
  log(std::string("contents of ") + buffer.role + " buffer in mid-case",
      static_cast<std::int64_t>(hash));
}

void Run::mark(const Buffer& buffer, std::vector<bool>& bytes, std::ptrdiff_t first,
               std::ptrdiff_t last) {
  if (first >= last) return;
  bytes.resize(buffer.size_bytes);
  const auto at = bytes.begin() + buffer.origin_bytes;
  std::fill(at + first, at + last, true);
}

void Run::set_loose(Buffer& buffer, std::ptrdiff_t first, std::ptrdiff_t last) {
  mark(buffer, buffer.loose, first, last);
}

void Run::set_data(Buffer& buffer, const TypeModel& type, std::int64_t count,
                   std::ptrdiff_t at_bytes) {
  if (buffer.size_bytes > kDataBytesMax) return;
  buffer.data.resize(buffer.size_bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Piece& piece : type.pieces) {
      const auto at = buffer.data.begin() + buffer.origin_bytes + at_bytes + i * type.extent_bytes +
                      piece.offset_bytes;
      std::fill(at, at + static_cast<std::ptrdiff_t>(piece.element->size_bytes), true);
    }
  }
}

void Run::set_padding(Buffer& buffer, const TypeModel& type, std::int64_t count,
                      std::ptrdiff_t at_bytes) {
  for (const Piece& piece : type.pieces) {
    const bool pair = piece.element->element_class == ElementClass::pair;
    for_each_padding(*piece.element, [&](std::size_t first, std::size_t last) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::ptrdiff_t at = at_bytes + i * type.extent_bytes + piece.offset_bytes;
        mark(buffer, pair ? buffer.soft : buffer.loose, at + static_cast<std::ptrdiff_t>(first),
             at + static_cast<std::ptrdiff_t>(last));
      }
    });
  }
}

ArrayRef Run::keep(const std::vector<std::int64_t>& values) {
  return {&arrays_.emplace_back(values)};
}

const MPI_Datatype* Run::keep(std::vector<MPI_Datatype> values) {
  values.push_back(MPI_DATATYPE_NULL);  // never empty
  return type_arrays_.emplace_back(std::move(values)).data();
}

void Run::fail(std::string text) {
  failures_.push_back((tested() ? "" : kOracleMark) + std::move(text));
}

int Run::error_class(int code) const {
  int value = -1;
  oracle_api().Error_class(code, &value);
  return value;
}

bool Run::check(int code, const char* what) {
  if (code == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  oracle_api().Error_string(code, text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  std::replace(line.begin(), line.end(), '\n', ' ');
  fail(std::string(what) + " returned error class " + std::to_string(error_class(code)) + ": " +
       line.substr(0, 300));
  return false;
}

void Run::world_barrier() const { oracle_api().Barrier.blocking(false, oracle_world()); }

void Run::describe(const std::string& text) {
  description_ += (description_.empty() ? "" : " ") + text;
  watchdog_describe(description_.c_str());
}

void Run::note(const std::string& text) const {
  if (options().verbose)
    std::fprintf(stderr, "  rank %d %s: %s\n", environment_.rank, tested() ? "tested" : "oracle",
                 text.c_str());
}

bool Run::corrupting(Corruption corruption) const {
  return tested() && options().corruption == corruption && case_number_ % kCorruptEvery == 0 &&
         environment_.rank == environment_.size - 1;
}

// Breaks one byte in the way asked for, in the first buffer where that is possible.
void Run::corrupt() {
  if (options().corruption == Corruption::none) return;
  for (Buffer& buffer : buffers_) {
    std::vector<bool> data = buffer.data;
    data.resize(buffer.size_bytes);
    for (std::size_t i = 0; i < buffer.size_bytes; ++i) {
      if (!buffer.loose.empty() && buffer.loose[i]) continue;
      const bool guard = i < static_cast<std::size_t>(kGuardBytes) ||
                         i + static_cast<std::size_t>(kGuardBytes) >= buffer.size_bytes;
      const bool input = std::strcmp(buffer.role, "send") == 0;
      const bool hit =
          (corrupting(Corruption::data) && data[i] && !input) ||
          (corrupting(Corruption::input) && data[i] && input) ||
          (corrupting(Corruption::gap) && !data[i] && !guard && !buffer.data.empty()) ||
          (corrupting(Corruption::guard) && guard);
      if (!hit) continue;
      std::byte byte{};
      environment_.memory.read(&byte, buffer.base + i, 1);
      byte ^= std::byte{0x10};
      environment_.memory.write(buffer.base + i, &byte, 1);
      return;
    }
  }
}

void Run::free_operations() {
  for (MPI_Op& operation : user_operations_) check(api_->Op_free(&operation), "Op_free");
  user_operations_.clear();
}

void Run::finish() {
  for (Comm& comm : fresh_)
    if (comm.handle != MPI_COMM_NULL) check(api_->Comm_free(&comm.handle), "Comm_free");
  types.free_all();
  free_operations();
  corrupt();
  for (Buffer& buffer : buffers_) {
    buffer.result.resize(buffer.size_bytes);
    environment_.memory.read(buffer.result.data(), buffer.base, buffer.size_bytes);
  }
}

}  // namespace accord::conformance
