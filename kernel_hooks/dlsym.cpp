// The wrapped dlsym: hooked names are answered with the hooks, everything else by the real one as
// if nobody had come between.
#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

#include "real_driver.hpp"

using Dlsym = void*(void*, const char*);

extern "C" {
[[gnu::visibility("hidden")]] std::atomic<Dlsym*> deepum_real_dlsym{nullptr};
DEEPUM_EXPORT void* dlsym(void* handle, const char* name) noexcept;

// glibc 2.34 moved dlsym into libc under a new version; aarch64 began at 2.17.
[[gnu::visibility("hidden"), gnu::used]] void deepum_find_dlsym() noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      deepum_real_dlsym.store(reinterpret_cast<Dlsym*>(found), std::memory_order_relaxed);
      return;
    }
  }
  __builtin_trap();  // no libc without dlsym can have loaded us
}

// Null: not hooked, hand the call on.
[[gnu::visibility("hidden"), gnu::used]] void* deepum_hook_of(const char* name) noexcept {
  return deepum::hooks::inert.load(std::memory_order_relaxed) ? nullptr
                                                              : deepum::hooks::hook_of_symbol(name);
}

[[gnu::visibility("hidden"), gnu::used]] void* deepum_dlsym_hooked(void* handle, const char* name,
                                                                   void* hook) noexcept {
  void* const real = deepum::hooks::real_dlsym(handle, name);
  if (!real) {
    return nullptr;
  }
  deepum::hooks::cupti_symbol_found(hook, real);
  return hook;
}
}

void* deepum::hooks::real_dlsym(void* handle, const char* name) noexcept {
  if (!deepum_real_dlsym.load(std::memory_order_relaxed)) {
    deepum_find_dlsym();
  }
  return deepum_real_dlsym.load(std::memory_order_relaxed)(handle, name);
}

// dlsym(RTLD_NEXT) and RTLD_DEFAULT depend on the caller's address, so every call that is not ours
// must reach the real one by a jump that leaves the stack as it was, whatever the optimisation
// level: hence assembly. RTLD_NEXT is never answered by us: from a library before us it finds our
// export by itself, from one after us the real function is meant.
#if defined(__x86_64__)
asm(R"(
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    cmpq $0, deepum_real_dlsym(%rip)
    je 2f
0:  testq %rsi, %rsi
    je 1f
    cmpb $99, (%rsi)            # 'c'
    jne 1f
    cmpb $117, 1(%rsi)          # 'u'
    jne 1f
    cmpq $-1, %rdi              # RTLD_NEXT
    je 1f
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq %rsi, %rdi
    call deepum_hook_of
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    je 1f
    movq %rax, %rdx
    jmp deepum_dlsym_hooked
1:  jmpq *deepum_real_dlsym(%rip)
2:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call deepum_find_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp 0b
    .cfi_endproc
    .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    bti c
0:  adrp x9, deepum_real_dlsym
    ldr x9, [x9, :lo12:deepum_real_dlsym]
    cbz x9, 2f
    cbz x1, 1f
    ldrb w10, [x1]
    cmp w10, #99                // 'c'
    b.ne 1f
    ldrb w10, [x1, #1]
    cmp w10, #117               // 'u'
    b.ne 1f
    cmn x0, #1                  // RTLD_NEXT
    b.eq 1f
    stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    mov x29, sp
    mov x0, x1
    bl deepum_hook_of
    mov x2, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    cbnz x2, deepum_dlsym_hooked
    adrp x9, deepum_real_dlsym
    ldr x9, [x9, :lo12:deepum_real_dlsym]
1:  mov x16, x9
    br x16
2:  stp x29, x30, [sp, #-32]!
    stp x0, x1, [sp, #16]
    mov x29, sp
    bl deepum_find_dlsym
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    b 0b
    .cfi_endproc
    .size dlsym, .-dlsym
)");
#else
#error "dlsym is wrapped in assembly: add this architecture"
#endif
