// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the transform needs of a device: memory, copies, and transforms of one dimension. There are
// two: CUDA with cuFFT, and FFTW on the CPU. Both libraries are loaded at run time.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fft3d {

using Complex = std::complex<double>;

// Many transforms of the same length. In physical space the points of one transform lie beside each
// other. Its wave numbers lie `count` elements apart: the transformed axis, which was the innermost
// of an array, becomes the outermost. So the next axis lies beside each other, and nothing has to
// be transposed. Neither direction divides by the length.
class Transform {
 public:
  Transform() = default;
  virtual ~Transform() = default;
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  // Begin on the device. `from` and `to` differ.
  virtual void forward(const void* from, void* to) = 0;
  virtual void backward(const void* from, void* to) = 0;
};

// A real transform has so many wave numbers; the others are their conjugates.
inline int wave_numbers(int length, bool real) { return real ? length / 2 + 1 : length; }

// A point in the order of what a device does.
class Event {
 public:
  Event() = default;
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  virtual void record() = 0;
  // Waits for all that was begun before it was recorded.
  virtual void wait() = 0;
};

// All throw std::runtime_error.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string name() const = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;

  // From or to memory of the CPU; returns when the bytes have arrived.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  // Memory of the CPU from which and to which the device copies fast, and such copies, which are
  // only begun.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(void* memory) noexcept = 0;
  virtual void begin_copy(void* to, const void* from, std::size_t bytes) = 0;

  // Begins to copy `rows` rows of `bytes` bytes within the device; a row follows a pitch after the
  // one before.
  virtual void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t bytes, std::size_t rows) = 0;

  // Waits for all that was begun.
  virtual void synchronise() = 0;
  virtual std::unique_ptr<Event> event() = 0;

  // `real`: from real numbers forward, to real numbers backward.
  virtual std::unique_ptr<Transform> transform(int length, int count, bool real) = 0;
};

// `memory` is cuda (a GPU), accord (what accord_malloc gives, if libaccord is preloaded), host
// (malloc), or auto, the first of these that this machine has.
std::unique_ptr<Device> open_device(const std::string& memory, int rank_in_node);
std::unique_ptr<Device> open_cuda(int rank_in_node);  // null without a GPU
std::unique_ptr<Device> open_cpu(bool with_accord, int rank_in_node);

// Device memory for `count` elements of a type.
template <class T>
class Array {
 public:
  Array(Device& device, std::size_t count)
      : device_(&device), count_(count), data_(device.allocate(count * sizeof(T))) {}
  Array(Array&& from) noexcept
      : device_(from.device_), count_(from.count_), data_(std::exchange(from.data_, nullptr)) {}
  ~Array() {
    if (data_ != nullptr) device_->release(data_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  void write(const std::vector<T>& from) { device_->copy(data_, from.data(), count_ * sizeof(T)); }
  std::vector<T> read() const {
    std::vector<T> to(count_);
    device_->copy(to.data(), data_, count_ * sizeof(T));
    return to;
  }

 private:
  Device* device_;
  std::size_t count_;
  void* data_;
};

// Pinned memory of the CPU.
template <class T>
class Pinned {
 public:
  Pinned(Device& device, std::size_t count)
      : device_(device), data_(device.allocate_pinned(count * sizeof(T))) {}
  ~Pinned() { device_.release_pinned(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  T* data() const { return static_cast<T*>(data_); }

 private:
  Device& device_;
  void* data_;
};

}  // namespace fft3d
