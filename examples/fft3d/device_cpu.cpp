// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// FFTW, with ordinary memory or with what accord_malloc gives. The latter cannot be touched by the
// CPU, as on a GPU, so transforms copy what they work on. Not made for speed.
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "../common/accord_memory.h"
#include "device.h"
#include "library.h"

namespace fft3d {
namespace {

struct Fftw {
  using Plan = void*;
  Plan (*plan_complex)(int rank, const int* n, int count, Complex* from, const int* in_embed,
                       int in_stride, int in_distance, Complex* to, const int* out_embed,
                       int out_stride, int out_distance, int direction, unsigned flags);
  Plan (*plan_from_real)(int rank, const int* n, int count, double* from, const int* in_embed,
                         int in_stride, int in_distance, Complex* to, const int* out_embed,
                         int out_stride, int out_distance, unsigned flags);
  Plan (*plan_to_real)(int rank, const int* n, int count, Complex* from, const int* in_embed,
                       int in_stride, int in_distance, double* to, const int* out_embed,
                       int out_stride, int out_distance, unsigned flags);
  void (*execute)(Plan);
  void (*destroy)(Plan);

  explicit Fftw(const Library& library) {
    library.find(plan_complex, "fftw_plan_many_dft");
    library.find(plan_from_real, "fftw_plan_many_dft_r2c");
    library.find(plan_to_real, "fftw_plan_many_dft_c2r");
    library.find(execute, "fftw_execute");
    library.find(destroy, "fftw_destroy_plan");
  }
};
constexpr int kForward = -1;
constexpr int kBackward = 1;
constexpr unsigned kEstimate = 1U << 6U;  // plans without measuring

// Between copies in memory of the CPU.
class CpuTransform : public Transform {
 public:
  CpuTransform(const Fftw& fftw, Device& device, int length, int count, bool real)
      : fftw_(fftw),
        device_(device),
        points_bytes_(bytes(length, count, real ? sizeof(double) : sizeof(Complex))),
        waves_bytes_(bytes(wave_numbers(length, real), count, sizeof(Complex))),
        points_(points_bytes_ / sizeof(double)),
        waves_(waves_bytes_ / sizeof(Complex)) {
    auto* const complex_points = reinterpret_cast<Complex*>(points_.data());
    if (real) {
      forward_ = fftw_.plan_from_real(1, &length, count, points_.data(), nullptr, 1, length,
                                      waves_.data(), nullptr, count, 1, kEstimate);
      backward_ = fftw_.plan_to_real(1, &length, count, waves_.data(), nullptr, count, 1,
                                     points_.data(), nullptr, 1, length, kEstimate);
    } else {
      forward_ = fftw_.plan_complex(1, &length, count, complex_points, nullptr, 1, length,
                                    waves_.data(), nullptr, count, 1, kForward, kEstimate);
      backward_ = fftw_.plan_complex(1, &length, count, waves_.data(), nullptr, count, 1,
                                     complex_points, nullptr, 1, length, kBackward, kEstimate);
    }
    if (forward_ == nullptr || backward_ == nullptr) throw std::runtime_error("FFTW has no plan");
  }
  ~CpuTransform() override {
    fftw_.destroy(forward_);
    fftw_.destroy(backward_);
  }

  void forward(const void* from, void* to) override {
    device_.copy(points_.data(), from, points_bytes_);
    fftw_.execute(forward_);
    device_.copy(to, waves_.data(), waves_bytes_);
  }
  void backward(const void* from, void* to) override {
    device_.copy(waves_.data(), from, waves_bytes_);
    fftw_.execute(backward_);
    device_.copy(to, points_.data(), points_bytes_);
  }

 private:
  static std::size_t bytes(int length, int count, std::size_t element) {
    return static_cast<std::size_t>(length) * static_cast<std::size_t>(count) * element;
  }

  const Fftw& fftw_;
  Device& device_;
  std::size_t points_bytes_;
  std::size_t waves_bytes_;
  std::vector<double> points_;
  std::vector<Complex> waves_;
  Fftw::Plan forward_ = nullptr;
  Fftw::Plan backward_ = nullptr;
};

// All that is begun is over at once.
class CpuEvent : public Event {
 public:
  void record() override {}
  void wait() override {}
};

class CpuDevice : public Device {
 public:
  CpuDevice() : fftw_(Library({"libfftw3.so.3"})) {}

  std::string name() const override { return "host"; }
  void* allocate(std::size_t bytes) override { return allocate_pinned(bytes); }
  void release(void* memory) noexcept override { release_pinned(memory); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void* allocate_pinned(std::size_t bytes) override {
    void* const memory = std::malloc(bytes > 0 ? bytes : 1);
    if (memory == nullptr) throw std::runtime_error("no memory");
    return memory;
  }
  void release_pinned(void* memory) noexcept override { std::free(memory); }
  void begin_copy(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t bytes, std::size_t rows) override {
    for (std::size_t row = 0; row < rows; ++row)
      copy(static_cast<char*>(to) + row * to_pitch,
           static_cast<const char*>(from) + row * from_pitch, bytes);
  }
  void synchronise() override {}
  std::unique_ptr<Event> event() override { return std::make_unique<CpuEvent>(); }
  std::unique_ptr<Transform> transform(int length, int count, bool real) override {
    return std::make_unique<CpuTransform>(fftw_, *this, length, count, real);
  }

 private:
  Fftw fftw_;
};

class AccordDevice : public CpuDevice {
 public:
  explicit AccordDevice(int rank_in_node) { accord_.use_device_of(rank_in_node); }

  std::string name() const override { return std::string("accord ") + accord_.runtime_name(); }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    accord_.check(accord_.allocate(&memory, bytes > 0 ? bytes : 1, ACCORD_MEMORY_DEVICE),
                  "accord_malloc");
    return memory;
  }
  void release(void* memory) noexcept override { accord_.release(memory); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) accord_.check(accord_.copy(to, from, bytes), "accord_memcpy");
  }

 private:
  AccordMemory accord_;
};

}  // namespace

std::unique_ptr<Device> open_cpu(bool with_accord, int rank_in_node) {
  if (!with_accord) return std::make_unique<CpuDevice>();
  if (!AccordMemory::is_there()) return nullptr;
  return std::make_unique<AccordDevice>(rank_in_node);
}

std::unique_ptr<Device> open_device(const std::string& memory, int rank_in_node) {
  const bool any = memory == "auto";
  std::unique_ptr<Device> device;
  if (any || memory == "cuda") device = open_cuda(rank_in_node);
  if (device == nullptr && (any || memory == "accord")) device = open_cpu(true, rank_in_node);
  if (device == nullptr && (any || memory == "host")) device = open_cpu(false, rank_in_node);
  if (device == nullptr) throw std::runtime_error("no memory named " + memory + " here");
  return device;
}

}  // namespace fft3d
