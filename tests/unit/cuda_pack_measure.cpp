// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What it costs on this machine to follow a layout, by copies of rows and by one kernel: what the
// rule of kernel_pays rests on. Prints medians in microseconds, and checks that both ways give the
// same bytes; no test. Usage: cuda_pack_measure
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_program.h"
#include "device/cuda/driver.h"
#include "device/cuda/pack.h"
#include "device/layout_copy.h"

namespace accord::device {

DeviceRuntime& cuda_runtime();

namespace {

using Direction = LayoutCopy::Direction;
using Form = LayoutCopy::Form;

constexpr std::size_t kElementBytesMax = std::size_t{160} << 20;
constexpr std::size_t kPackedBytesMax = std::size_t{16} << 20;

void require(bool fine, const std::string& what) {
  if (fine) return;
  std::fprintf(stderr, "cuda_pack_measure: %s\n", what.c_str());
  std::exit(1);
}
void require(const Status& status) { require(status.ok(), status.message()); }

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count()) / 1000.0;
}

// Of at most 51 calls, or as many as fit half a second.
template <class Body>
double median_us(Body body) {
  body();
  body();
  std::vector<double> times;
  const double end = now_us() + 500'000;
  while (times.size() < 3 || (times.size() < 51 && now_us() < end)) {
    const double start = now_us();
    body();
    times.push_back(now_us() - start);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

struct Layout {
  std::string name;
  std::shared_ptr<const Typemap> type;
  std::size_t count;
};

// Rows of one length in one step: as many elements of one run each.
Layout rows(std::size_t row_bytes, std::size_t step_bytes, std::size_t count) {
  return {std::to_string(count) + " rows " + std::to_string(row_bytes) + "/" +
              std::to_string(step_bytes),
          std::make_shared<const Typemap>(std::vector<Run>{{0, row_bytes, 0}},
                                          static_cast<std::ptrdiff_t>(step_bytes)),
          count};
}

// A box of doubles in a cube with a side of `side` of them.
Layout box(const char* name, std::size_t side, std::size_t width, std::size_t height,
           std::size_t depth) {
  std::vector<Run> runs;
  for (std::size_t z = 0; z < depth; ++z) {
    for (std::size_t y = 0; y < height; ++y) {
      runs.push_back(
          {static_cast<std::ptrdiff_t>(((z + 1) * side + y + 1) * side + 1) * 8, width * 8, 0});
    }
  }
  const auto extent = static_cast<std::ptrdiff_t>(side * side * side * 8);
  return {name, std::make_shared<const Typemap>(runs, extent), 1};
}

// Blocks of 1 to 4 units in irregular steps.
Layout indexed(std::size_t blocks, std::size_t unit_bytes) {
  std::vector<Run> runs;
  std::size_t at = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t units = 1 + i * 7 % 4;
    runs.push_back({static_cast<std::ptrdiff_t>(at * unit_bytes), units * unit_bytes, 0});
    at += units + 1 + i * i % 5;
  }
  return {std::to_string(blocks) + " blocks of 1-4 x " + std::to_string(unit_bytes),
          std::make_shared<const Typemap>(runs, static_cast<std::ptrdiff_t>(at * unit_bytes)), 1};
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  constexpr std::size_t kRows[][2] = {{8, 16},      {12, 16},     {64, 128},      {512, 1024},
                                      {2048, 4096}, {4096, 8192}, {65536, 131072}};
  for (const auto& [row_bytes, step_bytes] : kRows) {
    for (const std::size_t size_bytes :
         {std::size_t{4} << 10, std::size_t{256} << 10, std::size_t{8} << 20}) {
      if (size_bytes > row_bytes)
        all.push_back(rows(row_bytes, step_bytes, size_bytes / row_bytes));
    }
  }
  all.push_back(box("face x of 256^3", 258, 1, 256, 256));
  all.push_back(box("face y of 256^3", 258, 256, 1, 256));
  all.push_back(box("face z of 256^3", 258, 256, 256, 1));
  all.push_back(box("box 64^3 of 256^3", 258, 64, 64, 64));
  for (const std::size_t blocks : {4, 8, 16, 64, 1000, 10'000}) all.push_back(indexed(blocks, 16));
  for (const std::size_t blocks : {4, 8, 16, 64, 1000}) all.push_back(indexed(blocks, 4096));
  return all;
}

struct Memory {
  std::byte* elements = nullptr;
  std::byte* on_device = nullptr;
  std::byte* pinned = nullptr;
};

void by_copies(const LayoutCopy& copy) {
  CopyList list;
  list.append_rows(copy);
  require(cuda_runtime().copy(0, list.copies()));
}
void by_kernel(const LayoutCopy& copy) {
  CopyBatch batch;
  batch.laid_out.push_back(copy);
  require(cuda_runtime().copy_batch(0, batch));
}

void check(const LayoutCopy& copy) {
  const std::size_t size = copy.length_bytes;
  std::memset(copy.other, 1, size);
  by_copies(copy);
  const std::vector<std::byte> wanted(copy.other, copy.other + size);
  std::memset(copy.other, 2, size);
  const std::uint64_t before = cuda::pack_launches();
  by_kernel(copy);
  require(cuda::pack_launches() > before, "no kernel");
  require(std::memcmp(wanted.data(), copy.other, size) == 0, "the kernel gave other bytes");
}

void measure(const Layout& layout, const Memory& memory) {
  const std::size_t size = layout.type->size_bytes() * layout.count;
  require(size <= kPackedBytesMax, "too large: " + layout.name);
  require(layout.type->high_bytes() +
                  static_cast<std::ptrdiff_t>(layout.count - 1) * layout.type->extent_bytes() <=
              static_cast<std::ptrdiff_t>(kElementBytesMax),
          "too large: " + layout.name);
  check({layout.type, memory.elements, memory.pinned, 0, size, Direction::pack});
  std::printf("%-30s %9zu", layout.name.c_str(), size);
  const struct {
    std::byte* other;
    Form form;
  } sides[] = {
      {memory.on_device, Form::packed}, {memory.pinned, Form::packed}, {memory.pinned, Form::same}};
  for (const auto& side : sides) {
    for (const Direction direction : {Direction::pack, Direction::unpack}) {
      const LayoutCopy copy{layout.type, memory.elements, side.other, 0,
                            size,        direction,       side.form};
      const double copies_us = median_us([&] { by_copies(copy); });
      const double kernel_us = median_us([&] { by_kernel(copy); });
      std::printf("  %9.1f %7.1f", copies_us, kernel_us);
    }
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace accord::device

int main() {
  using namespace accord::device;
  setenv("ACCORD_TEST_PACK", "kernel", 1);
  accord::test::load_fake_driver();
  if (cuda::driver() == nullptr || cuda_runtime().device_count() == 0) {
    std::printf("no CUDA device\n");
    return 77;
  }
  cuda::Context context = nullptr;
  require(cuda::driver()->primary_context_retain(&context, 0) == cuda::Result::success, "context");
  require(cuda::driver()->context_push(context) == cuda::Result::success, "context");
  void* memory[3] = {};
  require(cuda_runtime().allocate(0, MemoryKind::device, kElementBytesMax, memory[0]));
  require(cuda_runtime().allocate(0, MemoryKind::device, kPackedBytesMax, memory[1]));
  require(cuda_runtime().allocate(0, MemoryKind::pinned, kElementBytesMax, memory[2]));
  std::memset(memory[2], 0, kElementBytesMax);
  std::printf("us, by copies and by a kernel\n%-30s %9s", "layout", "bytes");
  for (const char* side :
       {"to device", "from device", "to pinned", "from pinned", "to shadow", "from shadow"})
    std::printf("  %17s", side);
  std::printf("\n");
  for (const Layout& layout : layouts()) {
    measure(layout, {static_cast<std::byte*>(memory[0]), static_cast<std::byte*>(memory[1]),
                     static_cast<std::byte*>(memory[2])});
  }
  return 0;
}
