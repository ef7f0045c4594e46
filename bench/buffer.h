// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Memory of one kind, and moving bytes between it and the CPU outside the timed calls.
#pragma once

#include <cstddef>

#include "bench/session.h"

namespace accord::bench {

// Whether the CPU may touch the bytes itself.
inline bool cpu_may_touch(Memory memory) {
  return memory == Memory::host || memory == Memory::pinned;
}

// Owns memory that grows and is reused, as a program's buffers are. At least one page.
class Buffer {
 public:
  Buffer(AccordLibrary* accord, Memory memory) : accord_(accord), memory_(memory) {}
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Makes room; the contents are lost when it has to grow. Throws when there is no memory.
  void reserve(std::size_t size_bytes);
  void release() noexcept;
  void* data() const { return data_; }

 private:
  AccordLibrary* accord_;
  Memory memory_;
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// Untimed copies into and out of memory of the given kind.
void write_bytes(const Session& session, Memory memory, void* dst, const void* src,
                 std::size_t size_bytes);
void read_bytes(const Session& session, Memory memory, void* dst, const void* src,
                std::size_t size_bytes);

}  // namespace accord::bench
