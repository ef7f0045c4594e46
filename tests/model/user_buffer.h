// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A buffer of a modelled program, in any kind of memory: blocks of 64-bit elements with gaps
// between them and guards around, all of which are checked. Those of device memory are reached by
// program_memory.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "program.h"

namespace accord::model {

class BufferPool;

class UserBuffer {
 public:
  // `elements` in blocks of block_elements (which divides them). Where the end names a pool of
  // `pool` and that has room, the memory comes from there and goes back.
  UserBuffer(const End& end, std::size_t elements, std::size_t block_elements,
             BufferPool* pool = nullptr);
  ~UserBuffer();
  UserBuffer(const UserBuffer&) = delete;
  UserBuffer& operator=(const UserBuffer&) = delete;

  bool is_of_pool() const noexcept { return pool_ != nullptr; }

  // As the user passes it to MPI.
  Buffer argument() const;

  void fill(const std::vector<std::int64_t>& values);
  void poison();

  // Empty, or what is wrong: the first values.size() elements must be `values`, the other elements
  // poison, and gaps and guards as they were made. Elements from `checked` on may be anything.
  std::string difference(const std::vector<std::int64_t>& values,
                         std::size_t checked = SIZE_MAX) const;

 private:
  class Raw;  // all elements, guards included, as the test reaches them
  void allocate(std::size_t size_bytes, BufferPool* pool);
  std::size_t raw_index(std::size_t element) const;
  bool is_payload(std::size_t raw) const;

  const End end_;
  const std::size_t elements_;
  const std::size_t block_elements_;
  std::size_t raw_elements_ = 0;
  mutable std::vector<std::int64_t> host_;
  void* device_ = nullptr;
  BufferPool* pool_ = nullptr;
};

// What participant `who` contributes as its i-th element in one round of an event.
std::int64_t value_of(int event, int round, int who, std::size_t index);

}  // namespace accord::model
