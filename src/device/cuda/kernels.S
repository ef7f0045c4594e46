// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The compiled kernels as constant data of the library. ACCORD_CUDA_KERNELS_FATBIN,
// ACCORD_CUDA_PACK_KERNELS_FATBIN, ACCORD_CUDA_INBOX_KERNEL_FATBIN and
// ACCORD_CUDA_PARTITION_KERNELS_FATBIN are the paths of the files that nvcc made.
        .section .rodata
        .macro image name, path
        .balign 16
        .globl \name
        .hidden \name
        .type \name, %object
\name:
        .incbin "\path"
        .size \name, . - \name
        .endm
        image accord_cuda_kernels, ACCORD_CUDA_KERNELS_FATBIN
        image accord_cuda_pack_kernels, ACCORD_CUDA_PACK_KERNELS_FATBIN
        image accord_cuda_inbox_kernel, ACCORD_CUDA_INBOX_KERNEL_FATBIN
        image accord_cuda_partition_kernels, ACCORD_CUDA_PARTITION_KERNELS_FATBIN
        .section .note.GNU-stack, "", %progbits
