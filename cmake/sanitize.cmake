# Every native part with a sanitizer of the compiler's. The runtime is not linked into the programs:
# it is preloaded (scripts/sanitize).
if(DEEPUM_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined)
elseif(DEEPUM_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
  # It does not follow fences; the ring's stand between processes (native/wire/ring_reader.c), of
  # which it sees only one in any case.
  add_compile_options(-Wno-tsan)
else()
  message(FATAL_ERROR "DEEPUM_SANITIZE=${DEEPUM_SANITIZE}: is neither address nor thread")
endif()
add_compile_options(${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
add_link_options(${sanitizers})
# Half the time to compile, and stacks that can be read.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
# The shared ones: the runtime has to see throws (it clears the stack's poison behind them),
# operator new and delete.
set(DEEPUM_STATIC_RUNTIME "")
