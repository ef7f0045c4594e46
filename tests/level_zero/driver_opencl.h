// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Kernels by a library of OpenCL for the CPU, found at run time: the SPIR-V that the library
// carries is what runs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace accord::test::level_zero {

struct OpenclProgram;
struct OpenclKernel;

// Whether ACCORD_TEST_ZE_OPENCL names one.
bool opencl_is_asked_for();

// What cannot be had ends the process.
std::shared_ptr<OpenclProgram> build_program(const void* spirv, std::size_t size_bytes);
OpenclKernel* make_kernel(const OpenclProgram& program, const std::string& name);
void run_kernel(const OpenclKernel& kernel, void* argument, std::size_t count,
                std::size_t group_size);

}  // namespace accord::test::level_zero
