// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A file descriptor with an owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace accord::node {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }  // -1: none
  void close() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_ = -1;
};

}  // namespace accord::node
