// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bench/buffer.h"

namespace accord::bench {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr unsigned char kPoison = 0xA5;

std::byte* at(void* buffer, std::size_t offset_bytes) {
  return static_cast<std::byte*>(buffer) + offset_bytes;
}

// Calls body(first, count) for pieces of [0, elements).
template <class Body>
void in_pieces(std::size_t elements, std::size_t element_bytes, Body body) {
  const std::size_t piece = kPieceBytes / element_bytes;
  for (std::size_t first = 0; first < elements; first += piece) {
    body(first, std::min(piece, elements - first));
  }
}

// Checks one segment of the receive buffer, given what is in it and what must be.
class SegmentCheck {
 public:
  SegmentCheck(const Session& session, const Pattern& pattern, void* recv)
      : session_(session),
        element_(*session.element),
        pattern_(pattern),
        recv_(recv),
        expected_(kPieceBytes),
        copied_(cpu_may_touch(session.options.recv_memory) ? 0 : kPieceBytes) {}

  void check(const Segment& segment, Verdict& verdict) {
    in_pieces(segment.count, element_.size_bytes, [&](std::size_t first, std::size_t count) {
      expect(segment, {segment.source_first + first, count});
      compare(segment.recv_first + first, count, verdict);
    });
  }

 private:
  void expect(const Segment& segment, IndexRange range) {
    if (segment.rank_last - segment.rank_first == 1) {
      element_.source(pattern_, segment.rank_first, range, expected_.data());
    } else {
      element_.reduced(pattern_, session_.op, {segment.rank_first, segment.rank_last}, range,
                       expected_.data());
    }
  }

  void compare(std::size_t recv_first, std::size_t count, Verdict& verdict) {
    const std::byte* got = at(recv_, recv_first * element_.size_bytes);
    if (!copied_.empty()) {
      read_bytes(session_, session_.options.recv_memory, copied_.data(), got,
                 count * element_.size_bytes);
      got = copied_.data();
    }
    const std::size_t index = element_.mismatch(expected_.data(), got, count);
    verdict.checked += count;
    if (index == count) return;
    ++verdict.wrong;
    if (!verdict.first.empty()) return;
    verdict.first = fmt::format("element {}: expected {}, got {}", recv_first + index,
                                element_.text(&expected_[index * element_.size_bytes]),
                                element_.text(got + index * element_.size_bytes));
  }

  const Session& session_;
  const Element& element_;
  const Pattern& pattern_;
  void* recv_;
  std::vector<std::byte> expected_;
  std::vector<std::byte> copied_;  // empty when the CPU reads the buffer itself
};

}  // namespace

Pattern fresh_pattern(const Session& session, const Operation& operation) {
  static std::uint64_t epoch = 0;
  std::optional<ReduceOp> op;
  if (operation.reduces) op = session.op;
  return make_pattern(*session.element, op, session.ranks, ++epoch);
}

void fill_send(const Session& session, const Trial& trial, const Buffers& buffers,
               const Pattern& pattern) {
  const std::size_t element_bytes = session.element->size_bytes;
  const Memory memory = session.options.send_memory;
  std::vector<std::byte> piece(cpu_may_touch(memory) ? 0 : kPieceBytes);
  in_pieces(trial.extent.send, element_bytes, [&](std::size_t first, std::size_t count) {
    std::byte* target = at(buffers.send, first * element_bytes);
    void* out = piece.empty() ? target : piece.data();
    session.element->source(pattern, session.rank, {first, count}, out);
    if (!piece.empty()) write_bytes(session, memory, target, out, count * element_bytes);
  });
}

void poison_recv(const Session& session, const Trial& trial, const Buffers& buffers) {
  const std::vector<std::byte> poison(kPieceBytes, std::byte{kPoison});
  in_pieces(trial.extent.recv * session.element->size_bytes, 1,
            [&](std::size_t first, std::size_t count) {
              write_bytes(session, session.options.recv_memory, at(buffers.recv, first),
                          poison.data(), count);
            });
}

void corrupt_recv(const Session& session, const Trial& trial, const Buffers& buffers) {
  const std::size_t size_bytes = trial.extent.recv * session.element->size_bytes;
  if (size_bytes == 0) return;
  std::byte* target = at(buffers.recv, size_bytes / 2);
  std::byte value{};
  read_bytes(session, session.options.recv_memory, &value, target, 1);
  value ^= std::byte{0x11};
  write_bytes(session, session.options.recv_memory, target, &value, 1);
}

Verdict check_recv(const Session& session, const Trial& trial, const Buffers& buffers,
                   const Pattern& pattern) {
  Verdict verdict;
  SegmentCheck checker(session, pattern, buffers.recv);
  for (const Segment& segment : trial.operation->expected(trial.shape)) {
    checker.check(segment, verdict);
  }
  return verdict;
}

}  // namespace accord::bench
