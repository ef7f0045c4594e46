// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies that follow a layout: bytes of elements with gaps, to or from their packed form, or memory
// of the same layout or another one. The core says which bytes; a runtime decides whether a kernel
// follows the layout or copies of rows do. Gap bytes are never touched.
#pragma once

#include <memory>
#include <vector>

#include "device/device_runtime.h"
#include "device/typemap.h"

namespace accord::device {

// Bytes [first, first + length) of the packed form of elements that follow one another. The type
// must stay until the copy is done: whoever begins one holds it.
struct LayoutCopy {
  enum class Direction { pack, unpack };    // to `other`, or from there
  enum class Form { packed, same, typed };  // what lies at `other`

  std::shared_ptr<const Typemap> type;
  std::byte* elements;  // address of the first element
  // Packed: where byte `first_bytes` is. Same: the counterpart of `elements`. Typed: the address of
  // an element of `other_type`, whose packed form has the same bytes.
  std::byte* other;
  std::size_t first_bytes;
  std::size_t length_bytes;
  Direction direction;
  Form form = Form::packed;
  std::shared_ptr<const Typemap> other_type{};

  // How far from `other` a piece is.
  std::ptrdiff_t other_offset(std::ptrdiff_t offset_bytes, std::size_t packed_bytes) const {
    return form == Form::same ? offset_bytes
                              : static_cast<std::ptrdiff_t>(packed_bytes - first_bytes);
  }
  // From the first to behind the last byte of the elements that it is of, from their address; gaps
  // between and within them included.
  struct Bounds {
    std::ptrdiff_t low_bytes;
    std::ptrdiff_t high_bytes;
  };
  Bounds bounds() const;
  // The same of what lies at `other`, from there.
  Bounds other_bounds() const;
};

// The element whose runs lie in such steps.
std::shared_ptr<const Typemap> typemap_of(const Steps& runs);
// Bytes [first, first + length) of what lies at `elements` in such steps, to their packed form.
LayoutCopy packing_copy(const Steps& runs, std::byte* elements, std::size_t first_bytes,
                        std::size_t length_bytes, void* packed);

// Collects byte copies; joins neighbours into longer rows and equal steps into rectangles, so that
// a strided type costs one 2-D copy and not one copy a row.
class CopyList {
 public:
  void append(void* dst, const void* src, std::size_t length_bytes);
  void append_rows(const Copy& rows);
  // What the layout's copy comes to.
  void append_rows(const LayoutCopy& copy);
  // As they are: what lies in several allocations must not be joined.
  void add(const CopyList& others);
  const std::vector<Copy>& copies() const noexcept { return copies_; }
  bool empty() const noexcept { return copies_.empty(); }

 private:
  void append_pieces(const LayoutCopy& copy, std::size_t first_bytes, std::size_t end_bytes);
  void append_elements(const LayoutCopy& copy, std::size_t first_bytes, std::size_t elements);

  std::vector<Copy> copies_;
};

// Copies of both kinds that belong together. No two of them overlap.
struct CopyBatch {
  CopyList plain;
  std::vector<LayoutCopy> laid_out;

  bool empty() const noexcept { return plain.empty() && laid_out.empty(); }
  // As a plain one where there are no gaps, joined with its neighbours: all copies between the same
  // two allocations.
  void append(LayoutCopy copy);
  // Between other allocations.
  void add(CopyBatch&& others);
};

// Whether a kernel is the faster way: not for a few rows, nor for long ones, which the copy engines
// move at full speed. ACCORD_TEST_PACK=kernel or =copies takes that way always.
bool kernel_pays(const LayoutCopy& copy);
// Whether a runtime may take a kernel elsewhere, too: ACCORD_TEST_PACK leaves it that, and a kernel
// can follow both sides.
bool kernels_may_follow(const LayoutCopy& copy);

// The batch as plain copies alone.
CopyList rows_of(const CopyBatch& batch);

// Carries out the batch by the CPU, which must be able to touch all of it.
void copy_on_host(const CopyBatch& batch);

}  // namespace accord::device
