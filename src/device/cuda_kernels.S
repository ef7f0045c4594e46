// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The compiled kernels of cuda_kernels.cu as constant data of the library. ACCORD_CUDA_FATBIN is the
// path of the file that nvcc made.
        .section .rodata
        .balign 16
        .globl accord_cuda_kernels
        .hidden accord_cuda_kernels
        .type accord_cuda_kernels, %object
accord_cuda_kernels:
        .incbin ACCORD_CUDA_FATBIN
        .size accord_cuda_kernels, . - accord_cuda_kernels
        .section .note.GNU-stack, "", %progbits
