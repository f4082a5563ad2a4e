// What would end the process ends the launch instead: an unaligned or null pointer, an integer
// divided by zero. The compiler calls these (-fsanitize=alignment,null,integer-divide-by-zero); its
// own runtime is not linked.
#pragma once

namespace on_host {

// The start of what the compiler passes: the same for all checks.
struct Place {
    const char* file;
    uint32_t line, column;
};
struct Check {
    Place place;
    const struct { uint16_t kind, info; char name[1]; }* type;
    unsigned char log_alignment, kind;
};

[[noreturn]] inline void bad_pointer(const Check* check, uintptr_t address) {
    const Site site = {check->place.file, (int)check->place.line, ""};
    if (!address) fail("null", site, "a null pointer to %s is used", check->type->name);
    const unsigned alignment = 1u << check->log_alignment;
    fail("alignment", site, "a pointer to %s must be a multiple of %u bytes and is %u past one",
         check->type->name, alignment, (unsigned)(address & (alignment - 1)));
}

[[noreturn]] inline void bad_division(const Check* check) {
    fail("division", {check->place.file, (int)check->place.line, ""},
         "an integer is divided by zero, or its most negative value by -1");
}

}  // namespace on_host

#define TRTPATCH_HANDLER extern "C" __attribute__((visibility("hidden"))) void
TRTPATCH_HANDLER __ubsan_handle_type_mismatch_v1_abort(void* check, uintptr_t address) {
    on_host::bad_pointer(static_cast<on_host::Check*>(check), address);
}
TRTPATCH_HANDLER __ubsan_handle_divrem_overflow_abort(void* check, uintptr_t, uintptr_t) {
    on_host::bad_division(static_cast<on_host::Check*>(check));
}
#undef TRTPATCH_HANDLER
