/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * The exported functions MPI_X and PMPI_X and their table (trampolines.h). trampoline_names.inc, made by
 * api/trampolines.py, has one line `trampoline_pair MPI_X` for each name.
 */
#if defined(__x86_64__)

        .macro trampoline name
        .text
        .p2align 4
        .globl  \name
        .type   \name, @function
\name:
.Lcode_\name:
        .cfi_startproc
        endbr64
        jmp     *.Lrow_\name(%rip)
        .cfi_endproc
        .size   \name, . - \name
        .p2align 3
.Lunbound_\name:
        endbr64
        leaq    .Lrow_\name(%rip), %r11
        jmp     resolve_and_jump
        .p2align 3
.Lchooser_\name:
        endbr64
        leaq    .Lrow_\name(%rip), %rdi
        jmp     accord_symbol_address
        trampoline_row \name
        .endm

/* Entered by a jump with the row in r11 (free for linkers' use at any call) and the program's call still intact:
 * keeps every register that may carry an argument, including al (variadic MPI_Pcontrol) and the static chain. */
        .text
        .p2align 4
        .type   resolve_and_jump, @function
resolve_and_jump:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $208, %rsp
        andq    $-16, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movq    %r10, 56(%rsp)
        movq    %r11, 64(%rsp)
        movaps  %xmm0, 80(%rsp)
        movaps  %xmm1, 96(%rsp)
        movaps  %xmm2, 112(%rsp)
        movaps  %xmm3, 128(%rsp)
        movaps  %xmm4, 144(%rsp)
        movaps  %xmm5, 160(%rsp)
        movaps  %xmm6, 176(%rsp)
        movaps  %xmm7, 192(%rsp)
        movq    %r11, %rdi
        movq    8(%rbp), %rsi
        call    accord_resolve
        testl   %eax, %eax
        jne     1f
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movq    56(%rsp), %r10
        movq    64(%rsp), %r11
        movaps  80(%rsp), %xmm0
        movaps  96(%rsp), %xmm1
        movaps  112(%rsp), %xmm2
        movaps  128(%rsp), %xmm3
        movaps  144(%rsp), %xmm4
        movaps  160(%rsp), %xmm5
        movaps  176(%rsp), %xmm6
        movaps  192(%rsp), %xmm7
        leave
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        jmp     *(%r11)
        .cfi_restore_state
1:      cltq                    /* the error code, and 0.0 for a function that returns a double */
        xorps   %xmm0, %xmm0
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   resolve_and_jump, . - resolve_and_jump

#elif defined(__aarch64__)

        .macro trampoline name
        .text
        .p2align 4
        .globl  \name
        .type   \name, %function
\name:
.Lcode_\name:
        .cfi_startproc
        hint    #34             /* bti c */
        adrp    x16, .Lrow_\name
        add     x16, x16, :lo12:.Lrow_\name
        ldar    x16, [x16]      /* pairs with the release in bind.cpp: the target's data is ready, too */
        br      x16
        .cfi_endproc
        .size   \name, . - \name
.Lunbound_\name:
        hint    #38             /* bti jc */
        adrp    x17, .Lrow_\name
        add     x17, x17, :lo12:.Lrow_\name
        b       resolve_and_jump
.Lchooser_\name:
        hint    #34
        adrp    x0, .Lrow_\name
        add     x0, x0, :lo12:.Lrow_\name
        b       accord_symbol_address
        trampoline_row \name
        .endm

/* Entered by a jump with the row in x17 (free for linkers' use at any call) and the program's call still intact:
 * keeps every register that may carry an argument. */
        .text
        .p2align 4
        .type   resolve_and_jump, %function
resolve_and_jump:
        .cfi_startproc
        stp     x29, x30, [sp, #-240]!
        .cfi_def_cfa_offset 240
        .cfi_offset x29, -240
        .cfi_offset x30, -232
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        stp     x8, x17, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        mov     x0, x17
        mov     x1, x30
        bl      accord_resolve
        cbnz    w0, 1f
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldp     x8, x17, [sp, #80]
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     x29, x30, [sp], #240
        .cfi_remember_state
        .cfi_def_cfa sp, 0
        .cfi_restore x29
        .cfi_restore x30
        ldar    x16, [x17]
        br      x16
        .cfi_restore_state
1:      sxtw    x0, w0          /* the error code, and 0.0 for a function that returns a double */
        movi    d0, #0
        ldp     x29, x30, [sp], #240
        .cfi_def_cfa sp, 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   resolve_and_jump, . - resolve_and_jump

#else
#error "trampolines.S: write the jump, the stub and the chooser for this processor"
#endif

/* struct Trampoline: target, name, code, chooser, unbound_target. */
        .macro trampoline_row name
        .section .data.rel, "aw"
.Lrow_\name:
        .quad   .Lunbound_\name, .Lname_\name, .Lcode_\name, .Lchooser_\name, .Lunbound_\name
        .section .rodata
.Lname_\name:
        .asciz  "\name"
        .endm

        .macro trampoline_pair name
        trampoline \name
        trampoline P\name
        .endm

        .section .data.rel, "aw"
        .p2align 6
        .globl  accord_trampolines
        .hidden accord_trampolines
accord_trampolines:
#include "trampoline_names.inc"
        .section .data.rel, "aw"
        .globl  accord_trampolines_end
        .hidden accord_trampolines_end
accord_trampolines_end:

        .section .note.GNU-stack, "", %progbits
