# Language level, warnings, instruction set, sanitizers.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O3")

find_program(SOYBEAN_CCACHE ccache)
mark_as_advanced(SOYBEAN_CCACHE)
if(SOYBEAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SOYBEAN_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SOYBEAN_CCACHE})
endif()

# No contraction of a*b+c into fma: numbers that must not depend on the plan (initial weights, masks, samples) would
# otherwise depend on how the compiler inlined them. stringop, restrict: g++ 12 misreads fmt and std::string.
set(soybean_flags -Wall -Wextra -Wno-missing-field-initializers -Wno-stringop-overflow -Wno-restrict -ffp-contract=off)
if(SOYBEAN_NATIVE)
  list(APPEND soybean_flags -march=native)
endif()
if(SOYBEAN_SANITIZE)
  list(APPEND soybean_flags -fsanitize=${SOYBEAN_SANITIZE} -fno-omit-frame-pointer -g -fno-sanitize-recover=all)
endif()
# fmt 9 takes nvcc for a compiler without constexpr, and then does not compile as C++20.
set(soybean_nvcc_flags --extended-lambda --expt-relaxed-constexpr -DFMT_USE_CONSTEXPR=1)
# What nvcc hands on to the compiler of host code, which takes what nvcc made of it for uninitialised here and there.
list(JOIN soybean_flags "," soybean_flags_of_nvcc)
string(APPEND soybean_flags_of_nvcc ",-Wno-maybe-uninitialized")

add_library(soybean_options INTERFACE)
target_compile_options(
  soybean_options
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${soybean_flags};-Wpedantic>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${soybean_flags_of_nvcc};${soybean_nvcc_flags}>")
if(SOYBEAN_WERROR)
  target_compile_options(soybean_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
                                                   $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
if(SOYBEAN_SANITIZE)
  target_link_options(soybean_options INTERFACE -fsanitize=${SOYBEAN_SANITIZE})
endif()
target_include_directories(soybean_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
