// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels that clang has compiled for AMD's GPUs, as constant data of the library.
// ACCORD_HIP_KERNELS_IMAGE and its like are the paths of its files.
        .section .rodata
        .macro image name, path
        .balign 4096
        .globl \name
        .hidden \name
        .type \name, %object
\name:
        .incbin "\path"
        .size \name, . - \name
        .endm
        image accord_hip_kernels, ACCORD_HIP_KERNELS_IMAGE
        image accord_hip_pack_kernels, ACCORD_HIP_PACK_KERNELS_IMAGE
        image accord_hip_inbox_kernels, ACCORD_HIP_INBOX_KERNELS_IMAGE
        .section .note.GNU-stack, "", %progbits
